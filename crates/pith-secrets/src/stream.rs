//! Takes values out of a text that comes in pieces.

use std::borrow::Cow;
use std::sync::Arc;

use crate::searcher::Searcher;
use crate::secrets::Secrets;

/// How much of a line is kept for the patterns of the user; a longer one is passed on in parts.
const MAX_LINE: usize = 64 << 10;

/// The bytes of one stream. What could be the beginning of a value is held back until it is known to be none.
pub struct Stream {
    /// `None` lets everything pass.
    secrets: Option<Arc<Secrets>>,
    /// Not passed on yet; shorter than the longest value.
    held: Vec<u8>,
}

impl Stream {
    /// Makes a stream without the values that are known when a piece of it comes; with everything if there are no
    /// secrets.
    pub fn new(secrets: Option<Arc<Secrets>>) -> Self {
        Stream { secrets, held: Vec::new() }
    }

    /// Takes the next bytes and passes on what is certain.
    pub fn push(&mut self, bytes: &[u8], mut pass: impl FnMut(&[u8])) {
        let Some(secrets) = &self.secrets else { return pass(bytes) };
        let mut held = std::mem::take(&mut self.held);
        let text = if held.is_empty() {
            Cow::Borrowed(bytes)
        } else {
            held.extend_from_slice(bytes);
            Cow::Owned(held)
        };
        let from = pass_certain(&secrets.searcher(), &text, &mut pass);
        self.held = text[from..].to_vec();
    }

    /// Passes on what was held back.
    pub fn finish(&mut self, pass: impl FnMut(&[u8])) {
        let held = std::mem::take(&mut self.held);
        if let Some(secrets) = self.secrets.as_ref().filter(|_| !held.is_empty()) {
            secrets.searcher().pass_all(&held, pass);
        }
    }
}

/// Passes on what no further byte can change; returns where the rest begins.
fn pass_certain(searcher: &Searcher, text: &[u8], pass: &mut impl FnMut(&[u8])) -> usize {
    let end = searcher.open_end(text);
    let end = if searcher.has_patterns() { end.min(line_end(text)) } else { end };
    searcher.pass_before(end, text, pass)
}

/// Returns where the last line begins that is not complete: patterns see whole lines.
fn line_end(text: &[u8]) -> usize {
    let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if text.len() - end > MAX_LINE { text.len() } else { end }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Rule;

    fn streamed(secrets: &Arc<Secrets>, pieces: &[&[u8]]) -> String {
        let mut text = Vec::new();
        let mut stream = Stream::new(Some(secrets.clone()));
        for piece in pieces {
            stream.push(piece, |bytes| text.extend_from_slice(bytes));
        }
        stream.finish(|bytes| text.extend_from_slice(bytes));
        String::from_utf8(text).expect("UTF-8")
    }

    #[test]
    fn a_value_may_be_split_anywhere() {
        let secrets = Arc::new(Secrets::default());
        secrets.remember("sk-12345678");
        secrets.remember("sk-12345678-and-longer");
        let text = "a sk-12345678 b c2stMTIzNDU2Nzg= sk-12345678-and-longer sk-12345678-and";
        let expected = "a [redacted] b [redacted] [redacted] [redacted]-and";
        for first in 0..text.len() {
            for second in first..text.len() {
                let (head, middle, tail) = (&text[..first], &text[first..second], &text[second..]);
                assert_eq!(streamed(&secrets, &[head.as_bytes(), middle.as_bytes(), tail.as_bytes()]), expected);
            }
        }
    }

    #[test]
    fn only_what_could_be_a_value_waits() {
        let secrets = Arc::new(Secrets::default());
        secrets.remember("sk-12345678");
        let mut stream = Stream::new(Some(secrets));
        let mut passed = |piece: &str| {
            let mut text = String::new();
            stream.push(piece.as_bytes(), |bytes| text.push_str(std::str::from_utf8(bytes).expect("ASCII")));
            text
        };
        assert_eq!(passed("Listening on port 80\n"), "Listening on port 80\n");
        assert_eq!(passed("key: sk-1234"), "key: ");
        assert_eq!(passed("5"), "");
        assert_eq!(passed("99"), "sk-1234599");
    }

    #[test]
    fn patterns_see_whole_lines() {
        let secrets = Arc::new(Secrets::default());
        secrets.add_rules([Rule::pattern("token=[0-9]+", "").expect("a pattern")]);
        assert_eq!(streamed(&secrets, &[b"a tok", b"en=12", b"34 b\nto", b"ken=5"]), "a [redacted] b\n[redacted]");
        let long = "x".repeat(MAX_LINE + 1);
        assert_eq!(streamed(&secrets, &[long.as_bytes(), "é\n".as_bytes()]), format!("{long}é\n"));
    }

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_gives(
            values in prop::collection::vec("[ab\"/é]{8,12}", 1..4),
            parts in prop::collection::vec(("[ab\"/é ]{0,9}", any::<prop::sample::Index>()), 0..8),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let secrets = Arc::new(Secrets::default());
            values.iter().for_each(|value| secrets.remember(value));
            let text: String = parts.iter().map(|(part, index)| format!("{part}{}", index.get(&values))).collect();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            let expected = secrets.redact(&text);
            prop_assert_eq!(streamed(&secrets, &pieces), &*expected);
            for value in &values {
                prop_assert!(!expected.contains(value.as_str()));
            }
        }
    }
}
