//! Strings in the arguments of a call: escapes that are cut in two, control characters and lone surrogates that models
//! write.

use super::{PartialArguments, State};

impl PartialArguments {
    /// Reads inside a string, up to its end or the end of `rest`.
    pub(super) fn read_string(&mut self, rest: &str) -> usize {
        let bytes = rest.as_bytes();
        if !self.escape.is_empty() {
            return self.read_escape(bytes[0]);
        }
        let plain = bytes.iter().position(|&byte| is_special(byte)).unwrap_or(bytes.len());
        if plain > 0 {
            self.settle_surrogate();
            self.clean.extend_from_slice(&bytes[..plain]);
            return plain;
        }
        if bytes[0] == b'\\' {
            self.escape.push(b'\\');
            return 1;
        }
        self.settle_surrogate();
        match bytes {
            [b'"', ..] => {
                let next = if self.state == State::InKey { State::Colon } else { State::AfterValue };
                self.keep(b'"', next);
                1
            }
            [0xC2, 0x85, ..] => self.replace(b"\\u0085", 2),
            [0xE2, 0x80, 0xA8, ..] => self.replace(b"\\u2028", 3),
            [0xE2, 0x80, 0xA9, ..] => self.replace(b"\\u2029", 3),
            [byte @ ..0x20, ..] => {
                let hex = |digit: u8| b"0123456789abcdef"[usize::from(digit)];
                self.replace(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte & 15)], 1)
            }
            // An ordinary character that shares its first byte with one of the above.
            _ => {
                let taken = if bytes[0] == 0xC2 { 2 } else { 3 };
                self.replace(&bytes[..taken], taken)
            }
        }
    }

    fn replace(&mut self, escaped: &[u8], taken: usize) -> usize {
        self.clean.extend_from_slice(escaped);
        taken
    }

    /// Reads one byte of an escape sequence. A byte that spoils the sequence is not used up.
    fn read_escape(&mut self, byte: u8) -> usize {
        let valid = match self.escape.len() {
            1 => matches!(byte, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'u'),
            _ => byte.is_ascii_hexdigit(),
        };
        if !valid {
            // Not an escape after all: the backslash stands for itself.
            self.settle_surrogate();
            self.clean.push(b'\\');
            self.clean.append(&mut self.escape);
            return 0;
        }
        self.escape.push(byte);
        match self.escape[..] {
            [b'\\', b'u', a, b, c, d] => self.end_unicode_escape([b'\\', b'u', a, b, c, d]),
            [b'\\', b'u', ..] => {}
            _ => {
                self.settle_surrogate();
                self.clean.append(&mut self.escape);
            }
        }
        1
    }

    fn end_unicode_escape(&mut self, sequence: [u8; 6]) {
        self.escape.clear();
        let is_surrogate = sequence[2].eq_ignore_ascii_case(&b'd');
        match sequence[3].to_ascii_lowercase() {
            b'8' | b'9' | b'a' | b'b' if is_surrogate => {
                self.settle_surrogate();
                self.high_surrogate = Some(sequence);
            }
            b'c'..=b'f' if is_surrogate => match self.high_surrogate.take() {
                Some(high) => {
                    self.clean.extend_from_slice(&high);
                    self.clean.extend_from_slice(&sequence);
                }
                None => self.clean.extend_from_slice(b"\\ufffd"),
            },
            _ => {
                self.settle_surrogate();
                self.clean.extend_from_slice(&sequence);
            }
        }
    }

    /// Half a pair that stays alone cannot be represented; it becomes U+FFFD.
    fn settle_surrogate(&mut self) {
        if self.high_surrogate.take().is_some() {
            self.clean.extend_from_slice(b"\\ufffd");
        }
    }
}

/// Bytes of a string that may not simply be copied.
fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | ..0x20 | 0xC2 | 0xE2)
}
