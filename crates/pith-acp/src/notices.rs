//! What a user is told beside the conversation.

use agent_client_protocol_schema::v1::NoticeSeverity::{self, Error, Info, Warning};
use agent_client_protocol_schema::v1::{ContentBlock, ContentChunk, Notice, SessionUpdate, TextContent};
use pith_protocol::Event;

use crate::updates::{Notable, Sink, Translator};

impl Translator {
    /// Passes on what an extension tells the user. Where the client shows no notices, what a command says is its answer.
    pub fn notify(&self, severity: NoticeSeverity, text: &str, sink: &mut impl Sink) {
        if self.is_commanded && !self.client.shows_notices() {
            let block = ContentBlock::Text(TextContent::new(format!("{text}\n")));
            return sink.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(block)));
        }
        self.say(severity, text, None, sink);
    }

    /// Tells the user something beside the conversation.
    pub fn say(&self, severity: NoticeSeverity, title: &str, description: Option<String>, sink: &mut impl Sink) {
        if self.client.shows_notices() && !title.is_empty() {
            return sink.update(SessionUpdate::Notice(Notice::new(severity, title).description(description)));
        }
        let text = description.map_or_else(|| title.to_owned(), |text| format!("{title}: {text}"));
        sink.log(&text);
        sink.tell(Notable::Unshown(text));
    }

    /// Tells the user of an event that is not part of the conversation.
    pub(crate) fn notice(&self, event: &Event<'_>, sink: &mut impl Sink) {
        if let Some((severity, title, description)) = of(event) {
            self.say(severity, &title, Some(description), sink);
        }
    }
}

/// The notice about an event: how much it matters, its title, and more about it.
fn of(event: &Event<'_>) -> Option<(NoticeSeverity, String, String)> {
    let notice = match event {
        Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message } => {
            let seconds = delay_ms.div_ceil(1000);
            (Warning, format!("Trying again in {seconds}s ({attempt}/{max_attempts})"), error_message.to_string())
        }
        Event::AutoRetryEnd { success: false, final_error: Some(error), .. } => {
            (Error, "Gave up trying again".to_owned(), error.to_string())
        }
        Event::RetryFallbackApplied { from, to, .. } => {
            (Warning, format!("Using {to} instead of {from}"), "the first model does not answer".to_owned())
        }
        Event::ExtensionError { extension_path, event, error } => {
            (Error, format!("Extension {extension_path} failed in {event}"), error.to_string())
        }
        Event::McpServerUpdate { name, state, error } if ["failed", "needs_auth"].contains(&&**state) => {
            let why = error.as_deref().unwrap_or(if state == "failed" { "it has ended" } else { "it wants a sign-in" });
            (Warning, format!("MCP server {name} cannot be used"), why.to_owned())
        }
        Event::TtsrTriggered { rules } => {
            let names: Vec<_> = rules.iter().map(|rule| rule.name.as_str()).collect();
            (Info, "A rule has stopped the answer".to_owned(), names.join(", "))
        }
        _ => return None,
    };
    Some(notice)
}
