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
    let start = out.len();
    append(out, text);
    // The quotes are the first and last byte just written.
    out.pop();
    out.remove_first_of(start);
}

trait RemoveFirst {
    fn remove_first_of(&mut self, start: usize);
}

impl RemoveFirst for Vec<u8> {
    fn remove_first_of(&mut self, start: usize) {
        self.copy_within(start + 1.., start);
        self.pop();
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
            let escape: &[u8] = match bytes[at] {
                0xC2 if bytes[at + 1] == 0x85 => b"\\u0085",
                0xE2 if bytes[at + 1..].starts_with(&[0x80, 0xA8]) => b"\\u2028",
                0xE2 if bytes[at + 1..].starts_with(&[0x80, 0xA9]) => b"\\u2029",
                _ => {
                    at += 1;
                    continue;
                }
            };
            writer.write_all(&bytes[written..at])?;
            writer.write_all(escape)?;
            at += if escape == b"\\u0085" { 2 } else { 3 };
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
        append_escaped(&mut out, "");
        assert_eq!(out, br#"xsay \"hi\"\n"#);
    }
}
