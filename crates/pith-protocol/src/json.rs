//! How pith writes JSON: as `serde_json` does, but integral floats have no fraction, and the Unicode line separators
//! are escaped so that naive line readers stay in step.

use std::io::{self, Write};

use memchr::memchr2_iter;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Appends `value` as one line's worth of JSON, without the newline.
pub fn append<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    write(out, value, Quotes::Written);
}

/// Appends the inside of a JSON string, without the quotes.
pub fn append_escaped(out: &mut Vec<u8>, text: &str) {
    write(out, text, Quotes::LeftOut);
}

/// The JSON text of `value`.
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> String {
    let mut out = Vec::with_capacity(128);
    append(&mut out, value);
    String::from_utf8(out).expect("the encoder writes UTF-8")
}

fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T, quotes: Quotes) {
    value.serialize(&mut Serializer::with_formatter(out, Wire { quotes })).expect("wire types always serialize");
}

/// What differs from the library's own way of writing.
struct Wire {
    quotes: Quotes,
}

/// Whether texts get their quotes; pieces of a text that is still growing do not.
#[derive(PartialEq)]
enum Quotes {
    Written,
    LeftOut,
}

impl Formatter for Wire {
    fn write_f32<W: Write + ?Sized>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        write!(writer, "{value}")
    }

    fn write_f64<W: Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        // `Display` is the shortest decimal that reads back equal, and has no fraction when there is none.
        write!(writer, "{value}")
    }

    fn begin_string<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.quotes == Quotes::Written { writer.write_all(b"\"") } else { Ok(()) }
    }

    fn end_string<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin_string(writer)
    }

    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let bytes = fragment.as_bytes();
        let mut written = 0;
        for at in memchr2_iter(0xC2, 0xE2, bytes) {
            let (escape, width): (&[u8], usize) = match bytes[at..] {
                [0xC2, 0x85, ..] => (b"\\u0085", 2),
                [0xE2, 0x80, 0xA8, ..] => (b"\\u2028", 3),
                [0xE2, 0x80, 0xA9, ..] => (b"\\u2029", 3),
                _ => continue,
            };
            writer.write_all(&bytes[written..at])?;
            writer.write_all(escape)?;
            written = at + width;
        }
        writer.write_all(&bytes[written..])
    }
}

#[cfg(test)]
mod tests;
