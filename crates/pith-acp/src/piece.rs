//! Updates with text that continues what earlier ones have told: those that wait for a slow client can be merged.

use agent_client_protocol_schema::v1::{ContentBlock, ContentChunk, MessageId, SessionUpdate, TextContent};

use crate::terminal;

/// What a text belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The answer with that entry in the session file.
    Message(Option<MessageId>),
    /// The thoughts of that answer.
    Thought(Option<MessageId>),
    /// The terminal of the call with that id.
    Terminal(String),
}

impl Piece {
    /// Returns a name that only pieces of the same whole have.
    pub fn key(&self) -> String {
        let name = |id: &Option<MessageId>| id.as_ref().map_or_else(String::new, |id| id.0.to_string());
        match self {
            Piece::Message(id) => format!("message {}", name(id)),
            Piece::Thought(id) => format!("thought {}", name(id)),
            Piece::Terminal(call) => format!("terminal {call}"),
        }
    }

    /// Returns the update that adds a text.
    pub fn update(&self, text: &str) -> SessionUpdate {
        let chunk = |id: &Option<MessageId>| {
            ContentChunk::new(ContentBlock::Text(TextContent::new(text))).message_id(id.clone())
        };
        match self {
            Piece::Message(id) => SessionUpdate::AgentMessageChunk(chunk(id)),
            Piece::Thought(id) => SessionUpdate::AgentThoughtChunk(chunk(id)),
            Piece::Terminal(call) => terminal::output(call, text),
        }
    }
}
