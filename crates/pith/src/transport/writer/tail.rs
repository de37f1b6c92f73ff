//! The last frame of the queue while it may still grow.

use pith_protocol::live::Delta;

/// Text that is not encoded yet, because more of it may follow.
pub(super) enum Tail {
    /// A piece of the answer that is being streamed.
    Delta(Delta),
    Chunk(Chunk),
}

/// Text of a frame that later frames with the same key continue.
pub(super) struct Chunk {
    pub key: String,
    pub text: String,
    pub encode: EncodeText,
}

/// Encodes a frame with a text in it.
pub(super) type EncodeText = Box<dyn Fn(&str, &mut Vec<u8>) + Send>;

impl Tail {
    pub fn len(&self) -> usize {
        match self {
            Tail::Delta(delta) => delta.escaped.len(),
            Tail::Chunk(chunk) => chunk.text.len(),
        }
    }
}
