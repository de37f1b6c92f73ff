//! How pith writes JSON: one line, integral floats without a fraction, and the
//! Unicode line separators escaped so that naive line readers stay in step.
//!
//! Texts are most of what it writes, so they are looked at eight bytes
//! at a time: a long history goes to a model with every request.

mod escape;
mod writer;

use serde::Serialize;

pub use escape::append_escaped;
use writer::Writer;

/// Appends `value` as one line's worth of JSON, without the newline.
pub fn append<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    value.serialize(&mut Writer(out)).expect("wire types always serialize");
}

/// The JSON text of `value`.
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> String {
    let mut out = Vec::with_capacity(128);
    append(&mut out, value);
    String::from_utf8(out).expect("the encoder writes UTF-8")
}

#[cfg(test)]
mod tests;
