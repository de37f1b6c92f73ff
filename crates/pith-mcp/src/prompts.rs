//! Prompts of servers, as slash commands of the user: `/mcp:server:prompt arguments`.

use std::sync::Arc;
use std::time::Duration;

use pith_protocol::Block;
use pith_protocol::host::{UiAnswer, UiMethod};
use pith_tools::shell::OutputDir;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::config::is_same;
use crate::offer::{OfferedPrompt, PromptArgument};
use crate::query::Query;
use crate::result::Call;
use crate::server::{Server, Wanted};

/// What every such command begins with.
pub const PREFIX: &str = "mcp:";

/// Returns the command that calls a prompt. Spaces in names would end it.
pub fn command_name(server: &str, prompt: &str) -> String {
    format!("{PREFIX}{}:{}", word(server), word(prompt))
}

fn word(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join("_")
}

/// A text that calls a prompt.
#[derive(Debug, PartialEq, Eq)]
pub struct Called<'a> {
    pub server: &'a str,
    pub prompt: &'a str,
    pub arguments: &'a str,
}

impl<'a> Called<'a> {
    /// Reads a text; `None` if it has not the form of such a command.
    pub fn read(text: &'a str) -> Option<Self> {
        let text = text.strip_prefix('/')?.strip_prefix(PREFIX)?;
        let (name, arguments) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let (server, prompt) = name.split_once(':')?;
        Some(Called { server, prompt, arguments: arguments.trim() })
    }

    /// Whether a server is the one that is meant.
    pub fn means(&self, server: &Server) -> bool {
        is_same(&word(&server.config.name), self.server)
    }
}

/// Asks a server for its prompt and returns what the user says with it.
pub async fn fetch(
    server: &Arc<Server>,
    prompt: &str,
    arguments: &str,
    output_dir: &OutputDir,
) -> Result<Vec<Block>, String> {
    let cancel = CancellationToken::new();
    server.connect(Wanted::Used).await.map_err(|failure| format!("{}: {}", server.config.name, failure.why))?;
    let name = &server.config.name;
    let offered = server.snapshot().offer;
    let mut prompts = offered.iter().flat_map(|offer| &offer.prompts);
    let Some(found) = prompts.find(|offered| word(&offered.name) == prompt) else {
        return Err(format!("{name} has no prompt \"{prompt}\""));
    };
    let mut arguments = fill(found, arguments)?;
    ask_for_missing(server, found, &mut arguments).await?;
    let result = server.query(&Query::Prompt { name: &found.name, arguments }, &cancel).await?;
    let call = Call { server: name, tool: &found.name, duration: Duration::ZERO, output_dir };
    let blocks = said(&result, &call);
    if blocks.is_empty() {
        return Err(format!("{name}: the prompt \"{prompt}\" is empty"));
    }
    Ok(blocks)
}

/// What the messages of a prompt say, in their order; those of the assistant are quoted.
fn said(result: &Value, call: &Call<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for message in result.get("messages").and_then(Value::as_array).into_iter().flatten() {
        let is_quoted = message.get("role").and_then(Value::as_str) == Some("assistant");
        let content = match message.get("content") {
            Some(Value::Array(content)) => content.clone(),
            Some(content) => vec![content.clone()],
            None => Vec::new(),
        };
        for block in call.output(&json!({ "content": content })).content {
            blocks.push(match block.as_text() {
                Some(text) if is_quoted => Block::text(quoted(text)),
                _ => block,
            });
        }
    }
    blocks
}

fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

/// Fills the arguments of a prompt from what follows the command: `key=value` words, others in declared order; the
/// last one takes the rest.
pub fn fill(prompt: &OfferedPrompt, text: &str) -> Result<Map<String, Value>, String> {
    let mut filled = Map::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (value, after) = first_word(rest);
        let open: Vec<&PromptArgument> =
            prompt.arguments.iter().filter(|argument| !filled.contains_key(&argument.name)).collect();
        let pair = value.split_once('=').filter(|(key, _)| open.iter().any(|argument| argument.name == *key));
        match (pair, open.as_slice()) {
            (Some((key, value)), _) => drop(filled.insert(key.to_owned(), json!(value))),
            (None, []) => return Err(format!("the prompt \"{}\" takes nothing for \"{value}\"", prompt.name)),
            (None, [last]) if !after.trim().is_empty() => {
                filled.insert(last.name.clone(), json!(rest.trim_end()));
                break;
            }
            (None, [next, ..]) => drop(filled.insert(next.name.clone(), json!(value))),
        }
        rest = after.trim_start();
    }
    Ok(filled)
}

/// Asks the user for the arguments that a prompt needs and has not. If nobody can be asked, or one is not given, the
/// error names what is missing.
async fn ask_for_missing(
    server: &Server,
    prompt: &OfferedPrompt,
    filled: &mut Map<String, Value>,
) -> Result<(), String> {
    if let Some(user) = &server.launch.user {
        for argument in missing(prompt, filled) {
            let about = argument.description.as_ref().map_or_else(String::new, |about| format!(": {about}"));
            let title =
                format!("The prompt \"{}\" of {} needs {}{about}", prompt.name, server.config.name, argument.name);
            match user.ask(UiMethod::Input { title, placeholder: None, timeout: None }, None).await {
                UiAnswer::Value(value) if !value.trim().is_empty() => {
                    filled.insert(argument.name.clone(), json!(value.trim()));
                }
                _ => break,
            }
        }
    }
    let names: Vec<&str> = missing(prompt, filled).iter().map(|argument| argument.name.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(format!("the prompt \"{}\" needs {} (NAME=VALUE, or in this order)", prompt.name, names.join(", ")))
}

fn missing<'a>(prompt: &'a OfferedPrompt, filled: &Map<String, Value>) -> Vec<&'a PromptArgument> {
    prompt.arguments.iter().filter(|argument| argument.required && !filled.contains_key(&argument.name)).collect()
}

/// Splits off the first word, as shells do; an open quote runs to the end.
fn first_word(text: &str) -> (String, &str) {
    let (mut word, mut quote) = (String::new(), None);
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match quote {
            None | Some('"') if letter == '\\' => word.extend(letters.next().map(|(_, escaped)| escaped)),
            Some(open) if letter == open => quote = None,
            Some(_) => word.push(letter),
            None if matches!(letter, '"' | '\'') => quote = Some(letter),
            None if letter.is_whitespace() => return (word, &text[at..]),
            None => word.push(letter),
        }
    }
    (word, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(arguments: &[(&str, bool)]) -> OfferedPrompt {
        let argument = |(name, required): &(&str, bool)| PromptArgument {
            name: (*name).to_owned(),
            description: None,
            required: *required,
        };
        OfferedPrompt { name: "p".to_owned(), description: None, arguments: arguments.iter().map(argument).collect() }
    }

    #[test]
    fn arguments_are_named_or_in_order() {
        let two = prompt(&[("city", true), ("note", false)]);
        let check = |text: &str, expected: Value| {
            assert_eq!(Value::Object(fill(&two, text).expect("fits")), expected, "{text}")
        };
        check("Oslo", json!({"city": "Oslo"}));
        check("'New York' see you there", json!({"city": "New York", "note": "see you there"}));
        check("note=\"a b\" Oslo", json!({"city": "Oslo", "note": "a b"}));
        check("city=Rome x=1 y", json!({"city": "Rome", "note": "x=1 y"}));
        check("Oslo 'one word'", json!({"city": "Oslo", "note": "one word"}));
        check("\"open end", json!({"city": "open end"}));
        check(r#""a \"b\" c" d\ e"#, json!({"city": "a \"b\" c", "note": "d e"}));
        check(r"'C:\x'", json!({"city": r"C:\x"}));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let check = |prompt: &OfferedPrompt, text: &str, why: &str| assert_eq!(fill(prompt, text), Err(why.to_owned()));
        check(&prompt(&[]), "x", "the prompt \"p\" takes nothing for \"x\"");
    }

    #[test]
    fn commands_are_read() {
        let check = |text: &str, expected: Option<(&str, &str, &str)>| {
            let called = Called::read(text);
            assert_eq!(called.map(|called| (called.server, called.prompt, called.arguments)), expected, "{text}");
        };
        check("/mcp:git:log  a b ", Some(("git", "log", "a b")));
        check("/mcp:git:a:b", Some(("git", "a:b", "")));
        check("/mcp:git", None);
        check("/mcp", None);
        check("mcp:git:log", None);
        assert_eq!(command_name("my git", "a b"), "mcp:my_git:a_b");
    }
}
