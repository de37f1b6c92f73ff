//! How pith writes JSON: one line, integral floats without a fraction, and the
//! Unicode line separators escaped so that naive line readers stay in step.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;

/// Appends `value` as one line's worth of JSON, without the newline.
pub fn append<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let mut serializer = serde_json::Serializer::with_formatter(out, Compact);
    value.serialize(&mut serializer).expect("wire types always serialize");
}

/// The JSON text of `value`.
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> String {
    let mut out = Vec::with_capacity(128);
    append(&mut out, value);
    String::from_utf8(out).expect("the encoder writes UTF-8")
}

/// Appends the inside of a JSON string, without the quotes.
pub fn append_escaped(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut written = 0;
    let mut at = 0;
    while at < bytes.len() {
        let (escape, width): (&[u8], usize) = match bytes[at] {
            b'"' => (b"\\\"", 1),
            b'\\' => (b"\\\\", 1),
            b'\n' => (b"\\n", 1),
            b'\r' => (b"\\r", 1),
            b'\t' => (b"\\t", 1),
            control @ 0..0x20 => {
                out.extend_from_slice(&bytes[written..at]);
                write!(out, "\\u{control:04x}").expect("a vector takes every byte");
                at += 1;
                written = at;
                continue;
            }
            0xC2 | 0xE2 => match separator(&bytes[at..]) {
                Some(found) => found,
                None => {
                    at += 1;
                    continue;
                }
            },
            _ => {
                at += 1;
                continue;
            }
        };
        out.extend_from_slice(&bytes[written..at]);
        out.extend_from_slice(escape);
        at += width;
        written = at;
    }
    out.extend_from_slice(&bytes[written..]);
}

/// The escape of a Unicode line separator and how many bytes it replaces.
fn separator(bytes: &[u8]) -> Option<(&'static [u8], usize)> {
    match bytes {
        [0xC2, 0x85, ..] => Some((b"\\u0085", 2)),
        [0xE2, 0x80, 0xA8, ..] => Some((b"\\u2028", 3)),
        [0xE2, 0x80, 0xA9, ..] => Some((b"\\u2029", 3)),
        _ => None,
    }
}

struct Compact;

impl Formatter for Compact {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        // `Display` is the shortest decimal that reads back equal, and has no fraction when there is none.
        write!(writer, "{value}")
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let bytes = fragment.as_bytes();
        let mut written = 0;
        let mut at = 0;
        while at < bytes.len() {
            if !matches!(bytes[at], 0xC2 | 0xE2) {
                at += 1;
                continue;
            }
            let Some((escape, width)) = separator(&bytes[at..]) else {
                at += 1;
                continue;
            };
            writer.write_all(&bytes[written..at])?;
            writer.write_all(escape)?;
            at += width;
            written = at;
        }
        writer.write_all(&bytes[written..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_and_separators() {
        assert_eq!(to_string(&json!({"a": 3.0, "b": 0.00009, "c": 1})), r#"{"a":3,"b":0.00009,"c":1}"#);
        assert_eq!(to_string("a\u{2028}b\u{2029}c\u{85}d\u{2027}é"), "\"a\\u2028b\\u2029c\\u0085d\u{2027}é\"");
    }

    #[test]
    fn escaped_text_has_no_quotes_of_its_own() {
        let mut out = b"x".to_vec();
        append_escaped(&mut out, "say \"hi\"\n");
        assert_eq!(out, br#"xsay \"hi\"\n"#);
        for text in ["", "\u{1}\u{7f}\t\r\\", "é\u{2028}\u{85}x", "\u{c280}\u{2027}"] {
            let mut escaped = vec![b'"'];
            append_escaped(&mut escaped, text);
            escaped.push(b'"');
            assert_eq!(String::from_utf8(escaped).expect("UTF-8"), to_string(text));
        }
    }
}
