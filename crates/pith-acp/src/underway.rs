//! What a session is in the middle of: the message that is being told and the calls that run. None of it is stored yet.

use agent_client_protocol_schema::v1::{ContentBlock, ContentChunk, MessageId, SessionUpdate};

use crate::piece::Piece;

/// The part of a conversation that is not stored yet, as an editor is shown it that loads the session now.
#[derive(Default)]
pub struct Underway {
    pub(crate) calls: Vec<(String, Vec<SessionUpdate>)>,
    pub(crate) message: Vec<SessionUpdate>,
}

impl Underway {
    /// The ids of the calls.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().map(|(id, _)| id.as_str())
    }

    /// Takes the updates that show a call.
    pub(crate) fn take_call(&mut self, id: &str) -> Option<Vec<SessionUpdate>> {
        let at = self.calls.iter().position(|(call, _)| call == id)?;
        Some(self.calls.remove(at).1)
    }
}

/// The message that is being told, as far as it was told.
#[derive(Default)]
pub(crate) struct Partial {
    texts: Vec<(Piece, String)>,
    input: Vec<SessionUpdate>,
}

impl Partial {
    /// Begins with the blocks of an input.
    pub fn set_input(&mut self, entry: Option<&MessageId>, blocks: Vec<ContentBlock>) {
        let chunk = |block| SessionUpdate::UserMessageChunk(ContentChunk::new(block).message_id(entry.cloned()));
        *self = Partial { input: blocks.into_iter().map(chunk).collect(), texts: Vec::new() };
    }

    /// Takes the next words of an answer.
    pub fn add(&mut self, piece: &Piece, text: &str) {
        match self.texts.last_mut() {
            Some((last, told)) if last == piece => told.push_str(text),
            _ => self.texts.push((piece.clone(), text.to_owned())),
        }
    }

    /// Called when the message has ended, and is stored.
    pub fn clear(&mut self) {
        *self = Partial::default();
    }

    pub fn updates(&self) -> Vec<SessionUpdate> {
        let texts = self.texts.iter().map(|(piece, text)| piece.update(text));
        self.input.iter().cloned().chain(texts).collect()
    }
}
