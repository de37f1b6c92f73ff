//! Texts as JSON wants them.

use std::io::Write;

/// Appends the inside of a JSON string, without the quotes.
pub fn append_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    out.reserve(rest.len());
    while let Some(word) = rest.first_chunk::<8>() {
        let marks = marks(u64::from_le_bytes(*word));
        // Always eight bytes: a copy of known length is one instruction.
        out.extend_from_slice(word);
        if marks == 0 {
            rest = &rest[8..];
            continue;
        }
        let n_plain = marks.trailing_zeros() as usize / 8;
        out.truncate(out.len() + n_plain - 8);
        rest = append_first(out, &rest[n_plain..]);
    }
    while !rest.is_empty() {
        rest = append_first(out, rest);
    }
}

/// The highest bit of each of eight bytes that may have to be escaped: quotes, backslashes, control characters, and
/// the first bytes of line separators (`C2`, `E2`) and of much else.
fn marks(word: u64) -> u64 {
    const fn all(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    // Exact for each byte on its own: nothing is carried into its neighbour.
    let zeros = |word: u64| !(((word & all(0x7F)) + all(0x7F)) | word | all(0x7F));
    zeros(word & all(0xE0)) | zeros(word ^ all(b'"')) | zeros(word ^ all(b'\\')) | zeros((word & all(0xDF)) ^ all(0xC2))
}

/// Appends the first byte of a text, or the escape of what it begins with, and returns what comes after it.
fn append_first<'t>(out: &mut Vec<u8>, text: &'t [u8]) -> &'t [u8] {
    let named = |out: &mut Vec<u8>, name| out.extend_from_slice(&[b'\\', name]);
    let mut width = 1;
    match *text {
        [byte @ (b'"' | b'\\'), ..] => named(out, byte),
        [b'\n', ..] => named(out, b'n'),
        [b'\r', ..] => named(out, b'r'),
        [b'\t', ..] => named(out, b't'),
        [0x08, ..] => named(out, b'b'),
        [0x0C, ..] => named(out, b'f'),
        [control @ 0..0x20, ..] => write!(out, "\\u{control:04x}").expect("a vector takes every byte"),
        [0xC2, 0x85, ..] => {
            out.extend_from_slice(b"\\u0085");
            width = 2;
        }
        [0xE2, 0x80, last @ (0xA8 | 0xA9), ..] => {
            out.extend_from_slice(if last == 0xA8 { b"\\u2028" } else { b"\\u2029" });
            width = 3;
        }
        [byte, ..] => out.push(byte),
        [] => width = 0,
    }
    &text[width..]
}
