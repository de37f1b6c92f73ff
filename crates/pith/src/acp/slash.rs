//! Slash commands of pith's own: they answer with one message, which is not part of the conversation.

use std::rc::Rc;

use pith_acp::acp::{
    AvailableCommand, AvailableCommandInput, ContentBlock, ContentChunk, Error, SessionUpdate, TextContent,
    UnstructuredCommandInput,
};
use pith_acp::error::invalid_params;
use pith_protocol::answers::{Diagnostic, Diagnostics, McpServer, SessionStats};
use pith_protocol::commands::{Compact, ExportHtml, GetMcpServers, GetSessionStats, Reload, SetSessionName};

use super::conversation::{Conversation, of_command};
use super::own::after_reload;

/// A command with its description, and the hint of its arguments if it takes any.
const COMMANDS: &[(&str, &str, Option<&str>)] = &[
    ("compact", "Summarise the conversation so far", Some("what to focus on")),
    ("name", "Name the session", Some("the name")),
    ("model", "Select the model, or show it", Some("provider/model")),
    ("thinking", "Select the thinking level, or show it", Some("off, low, medium, high, …")),
    ("stats", "Tokens and cost of the session", None),
    ("export", "Write the session as an HTML page", Some("file")),
    ("reload", "Read settings, models, skills and templates again", None),
    ("mcp", "The MCP servers and their tools, or a sign-in to one", Some("login NAME")),
    ("diagnostics", "What is wrong with settings, models and resources", None),
];

/// A command of pith's own, with what follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlashCommand {
    name: &'static str,
    arguments: String,
}

impl SlashCommand {
    /// Reads a prompt; `None` if it is none of these commands.
    pub fn of(prompt: &str) -> Option<Self> {
        let line = prompt.strip_prefix('/')?;
        let (word, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let (name, ..) = COMMANDS.iter().find(|(name, ..)| *name == word)?;
        Some(SlashCommand { name, arguments: arguments.trim().to_owned() })
    }

    pub fn name(&self) -> &str {
        self.name
    }

    /// The commands as editors list them.
    pub fn offered() -> impl Iterator<Item = AvailableCommand> {
        COMMANDS.iter().map(|(name, description, hint)| {
            let input = hint.map(|hint| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
            AvailableCommand::new(*name, *description).input(input)
        })
    }

    /// Carries the command out and tells the user what came of it, also if that is nothing.
    pub async fn run(self, conversation: &Rc<Conversation>) {
        let text = self.carry_out(conversation).await.unwrap_or_else(|error| error.message);
        let chunk = ContentChunk::new(ContentBlock::Text(TextContent::new(text)));
        conversation.channel.update(SessionUpdate::AgentMessageChunk(chunk));
    }

    async fn carry_out(self, conversation: &Rc<Conversation>) -> Result<String, Error> {
        let seat = &conversation.seat;
        let arguments = (!self.arguments.is_empty()).then_some(self.arguments);
        match self.name {
            "compact" => {
                let result = seat.ask(Compact { custom_instructions: arguments }).await.map_err(of_command)?;
                // Editors with cards for compactions show the summary there.
                Ok(format!("Summarised: {} tokens before.", result.tokens_before))
            }
            "name" => {
                let name = arguments.ok_or_else(|| invalid_params("prompt", "/name needs a name"))?;
                seat.ask(SetSessionName { name: name.clone() }).await.map_err(of_command)?;
                Ok(format!("The session is called {name}."))
            }
            "model" => {
                if let Some(model) = arguments {
                    conversation.change(|choices| choices.model_change(&model)).await?;
                    conversation.tell_options().await;
                }
                let model = conversation.choices().await?.model;
                Ok(model.map_or_else(
                    || "No model is selected.".to_owned(),
                    |model| format!("The model is {}/{}.", model.provider, model.id),
                ))
            }
            "thinking" => {
                if let Some(word) = arguments {
                    conversation.change(|choices| choices.level_change(&word)).await?;
                    conversation.tell_options().await;
                }
                Ok(format!("The thinking level is {}.", conversation.choices().await?.level.as_str()))
            }
            "stats" => Ok(stats(&seat.ask(GetSessionStats {}).await.map_err(of_command)?)),
            "export" => {
                let exported = seat.ask(ExportHtml { output_path: arguments }).await.map_err(of_command)?;
                Ok(format!("Written to {}.", exported.path))
            }
            "reload" => {
                seat.ask(Reload {}).await.map_err(of_command)?;
                after_reload(conversation).await;
                Ok("Settings, models and resources were read again.".to_owned())
            }
            "mcp" => match arguments.as_deref().map(|words| words.strip_prefix("login ")) {
                None => Ok(servers(&seat.ask(GetMcpServers { connect: None }).await.map_err(of_command)?.servers)),
                Some(Some(name)) => conversation.sign_in(name.trim()).await,
                Some(None) => Err(invalid_params("prompt", "/mcp takes nothing, or login NAME")),
            },
            _ => Ok(diagnostics(&conversation.diagnostics().await.map_err(of_command)?)),
        }
    }
}

fn stats(stats: &SessionStats) -> String {
    let SessionStats { user_messages, assistant_messages, tool_calls, tokens, cost, .. } = stats;
    format!(
        "{user_messages} prompts, {assistant_messages} answers, {tool_calls} tool calls; {} tokens in, {} out, {} from \
         the cache; ${cost:.4}",
        tokens.input, tokens.output, tokens.cache_read
    )
}

fn servers(servers: &[McpServer]) -> String {
    if servers.is_empty() {
        return "No MCP server is configured.".to_owned();
    }
    let line = |server: &McpServer| {
        let McpServer { state, transport, tools, .. } = server;
        let why = state.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        format!("- {} ({transport}): {}, {} tools{why}", state.name, state.state, tools.len())
    };
    servers.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn diagnostics(found: &Diagnostics) -> String {
    if found.diagnostics.is_empty() {
        return "Nothing is wrong.".to_owned();
    }
    let line = |one: &Diagnostic| match &one.path {
        Some(path) => format!("- {path}: {}", one.message),
        None => format!("- {}", one.message),
    };
    found.diagnostics.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_commands_are_taken() {
        let read = |prompt: &str| SlashCommand::of(prompt).map(|command| (command.name, command.arguments));
        assert_eq!(read("/compact the tests\n"), Some(("compact", "the tests".to_owned())));
        assert_eq!(read("/stats"), Some(("stats", String::new())));
        assert_eq!((read("/etc/passwd"), read("/compactly"), read("compact")), (None, None, None));
    }
}
