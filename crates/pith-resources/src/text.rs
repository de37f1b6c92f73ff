//! Reading text that may be huge, not text at all, or not a file.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use crate::followed::Followed;

/// The beginning of a file, decoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Text {
    /// Without a byte-order mark; bytes that are no UTF-8 are replaced.
    pub text: String,
    /// Whether more follows.
    pub is_cut: bool,
    /// Whether every byte was UTF-8.
    pub is_utf8: bool,
}

/// Reads at most `limit` bytes of a regular file. Pipes and devices are refused: reading them may never end.
pub(crate) fn read(path: &Path, limit: usize, followed: &Followed) -> io::Result<Text> {
    if !fs::metadata(path)?.is_file() {
        return Err(not_a_file());
    }
    read_from(followed.open(path)?, limit)
}

/// Returns the error for anything but a regular file.
pub(crate) fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

/// Reads at most `limit` bytes.
pub(crate) fn read_from(reader: impl Read, limit: usize) -> io::Result<Text> {
    let mut bytes = Vec::new();
    // One byte more tells whether there is more.
    reader.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    let is_cut = bytes.len() > limit;
    bytes.truncate(limit);
    Ok(decode(bytes, is_cut))
}

/// Decodes bytes that may end in the middle of a character when cut.
pub(crate) fn decode(bytes: Vec<u8>, is_cut: bool) -> Text {
    let (mut text, is_utf8) = match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => {
            let (end, is_end_incomplete) = (error.utf8_error().valid_up_to(), error.utf8_error().error_len().is_none());
            if is_cut && is_end_incomplete {
                (String::from_utf8_lossy(&error.as_bytes()[..end]).into_owned(), true)
            } else {
                (String::from_utf8_lossy(error.as_bytes()).into_owned(), false)
            }
        }
    };
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Text { text, is_cut, is_utf8 }
}

/// Shortens a text to at most `limit` bytes without splitting a character.
pub(crate) fn cut(text: &mut String, limit: usize) {
    text.truncate(text.floor_char_boundary(limit));
}

/// Makes `\n` the only line end.
pub(crate) fn with_plain_line_ends(text: String) -> String {
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_stops_at_the_limit() {
        // An endless source: reading all of it would never end.
        let text = read_from(io::repeat(b'x'), 1000).unwrap();
        assert_eq!((text.text.len(), text.is_cut), (1000, true));
    }

    #[test]
    fn bytes_become_text() {
        let check = |bytes: &[u8], limit: usize, expected: &str, is_cut: bool, is_utf8: bool| {
            let text = read_from(bytes, limit).unwrap();
            assert_eq!(text, Text { text: expected.into(), is_cut, is_utf8 }, "{bytes:?}");
        };
        check(b"abc", 3, "abc", false, true);
        check(b"abc", 2, "ab", true, true);
        check("\u{feff}a".as_bytes(), 10, "a", false, true);
        check("aé".as_bytes(), 2, "a", true, true); // the cut falls inside a character
        check(b"a\xffb", 10, "a\u{fffd}b", false, false);
        check(b"a\xc3", 10, "a\u{fffd}", false, false); // not cut, so the end is wrong
        check(b"", 0, "", false, true);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_a_file_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(directory.path(), 10, &Followed::default()).unwrap_err().to_string(), "not a regular file");
        // Reading these would never end.
        assert_eq!(
            read(Path::new("/dev/zero"), 10, &Followed::default()).unwrap_err().to_string(),
            "not a regular file"
        );
    }
    proptest::proptest! {
        #[test]
        fn a_cut_never_splits_a_character(text in "[aé€😀]{0,12}", limit in 0usize..50) {
            let read = read_from(text.as_bytes(), limit).unwrap();
            proptest::prop_assert!(read.is_utf8 && text.starts_with(&read.text));
            proptest::prop_assert_eq!(read.is_cut, text.len() > limit);
            let mut shortened = text.clone();
            cut(&mut shortened, limit);
            proptest::prop_assert_eq!(shortened, read.text);
        }
    }
}
