//! Decodes bytes in pieces of any size to text: UTF-8, with U+FFFD for invalid bytes.

/// Decodes one stream; a character that is split between two reads is reassembled.
#[derive(Default)]
pub(crate) struct Decoder {
    /// The beginning of a character whose rest has not arrived.
    pending: Vec<u8>,
    /// Whether a byte order mark is to be dropped if the text begins with one.
    drops_mark: bool,
}

impl Decoder {
    /// Creates a decoder that drops a byte order mark at the very start.
    pub fn without_mark() -> Self {
        Decoder { drops_mark: true, ..Decoder::default() }
    }

    /// Passes the text of `bytes` to `take`, in order.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&str)) {
        let mut drops_mark = self.drops_mark;
        let mut take = |text: &str| match text.strip_prefix('\u{feff}') {
            Some(rest) if std::mem::take(&mut drops_mark) => {
                if !rest.is_empty() {
                    take(rest);
                }
            }
            _ => {
                drops_mark = false;
                take(text);
            }
        };
        if self.pending.is_empty() {
            self.decode(bytes, &mut take);
        } else {
            let mut joined = std::mem::take(&mut self.pending);
            joined.extend_from_slice(bytes);
            self.decode(&joined, &mut take);
        }
        self.drops_mark = drops_mark;
    }

    /// Ends the stream: an unfinished character becomes U+FFFD.
    pub fn finish(&mut self, mut take: impl FnMut(&str)) {
        if !std::mem::take(&mut self.pending).is_empty() {
            take("\u{fffd}");
        }
    }

    fn decode(&mut self, mut bytes: &[u8], take: &mut impl FnMut(&str)) {
        loop {
            let error = match std::str::from_utf8(bytes) {
                Ok("") => return,
                Ok(text) => return take(text),
                Err(error) => error,
            };
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            if !valid.is_empty() {
                take(std::str::from_utf8(valid).expect("checked just above"));
            }
            match error.error_len() {
                Some(length) => {
                    take("\u{fffd}");
                    bytes = &rest[length..];
                }
                None => {
                    self.pending.extend_from_slice(rest);
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
        decoded_by(Decoder::default(), pieces)
    }

    fn decoded_by<'a>(mut decoder: Decoder, pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
        let mut text = String::new();
        for piece in pieces {
            decoder.push(piece, |part| text.push_str(part));
        }
        decoder.finish(|part| text.push_str(part));
        text
    }

    #[test]
    fn invalid_bytes_become_replacement_characters() {
        assert_eq!(decoded([b"c\xff\xfed".as_slice()]), "c\u{fffd}\u{fffd}d");
        assert_eq!(decoded([b"a\xf0\x9f".as_slice(), b"\x98\x80b"]), "a😀b");
        assert_eq!(decoded([b"a\xf0\x9f".as_slice()]), "a\u{fffd}");
    }

    #[test]
    fn a_byte_order_mark_is_dropped_at_the_very_start_only() {
        let check = |pieces: &[&[u8]], expected: &str| {
            assert_eq!(decoded_by(Decoder::without_mark(), pieces.iter().copied()), expected, "{pieces:?}");
        };
        check(&[b"\xef\xbb\xbfa\xef\xbb\xbf"], "a\u{feff}");
        check(&[b"\xef", b"\xbb", b"\xbf", b"a"], "a");
        check(&[b"\xef\xbb\xbf", b"\xef\xbb\xbfa"], "\u{feff}a");
        check(&[b"a", b"\xef\xbb\xbf"], "a\u{feff}");
        check(&[b"\xff\xef\xbb\xbf"], "\u{fffd}\u{feff}");
        check(&[b"\xef\xbb"], "\u{fffd}");
        assert_eq!(decoded([b"\xef\xbb\xbfa".as_slice()]), "\u{feff}a");
    }

    proptest! {
        #[test]
        fn the_pieces_do_not_matter(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
            cut in 0usize..40,
            other in 0usize..40,
        ) {
            let (first, second) = (cut.min(other).min(bytes.len()), cut.max(other).min(bytes.len()));
            let whole = decoded([bytes.as_slice()]);
            prop_assert_eq!(&whole, &String::from_utf8_lossy(&bytes).into_owned());
            prop_assert_eq!(decoded([&bytes[..first], &bytes[first..second], &bytes[second..]]), whole);
        }
    }
}
