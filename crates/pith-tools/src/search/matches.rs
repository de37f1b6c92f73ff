//! Searches one file and formats its matches.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use pith_secrets::Secrets;
use tokio_util::sync::CancellationToken;

use super::listing::Listing;

/// Longer lines are cut.
const MAX_CHARS: usize = 500;
/// A longer line is not searched.
const HEAP: usize = 64 << 20;

/// All matches so far.
pub(super) struct Matches {
    pub listing: Listing,
    /// Whether there was a match beyond the limit.
    pub has_more: bool,
    left: usize,
    pub cut_lines: bool,
    context: usize,
    secrets: Option<Arc<Secrets>>,
}

impl Matches {
    /// Makes room for `limit` matches, each with `context` lines around it. Secrets are hidden in lines that are cut: the
    /// beginning of one would not be found later.
    pub fn new(limit: usize, context: usize, secrets: Option<Arc<Secrets>>) -> Self {
        Matches { listing: Listing::default(), has_more: false, left: limit, cut_lines: false, context, secrets }
    }

    /// Searches a file that is shown as `name`. Files that cannot be read have no matches.
    pub fn search(
        &mut self,
        searcher: &mut Searcher,
        matcher: &RegexMatcher,
        name: &str,
        file: File,
        cancel: &CancellationToken,
    ) {
        let secrets = self.secrets.clone();
        let mut found = FileMatches { left: self.left, context: self.context, secrets, ..FileMatches::default() };
        let searched = searcher.search_reader(matcher, Interruptible { file, cancel }, &mut found);
        if searched.is_err() || found.is_binary {
            return;
        }
        self.left = found.left;
        self.has_more |= found.has_more;
        for line in found.lines {
            self.cut_lines |= line.is_cut;
            let mark = if line.is_match { ':' } else { '-' };
            self.listing.push(&format!("{name}{mark}{}{mark} {}", line.number, line.text));
        }
    }
}

/// What to do with files that are not text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Skip,
    /// The call named the file.
    Search,
}

/// Creates a searcher by line, with `context` lines around matches.
pub(super) fn searcher(context: usize, binary: Binary) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(HEAP))
        .binary_detection(match binary {
            Binary::Skip => BinaryDetection::quit(0),
            Binary::Search => BinaryDetection::none(),
        })
        .build()
}

/// A file whose reading fails once the call is aborted.
struct Interruptible<'a> {
    file: File,
    cancel: &'a CancellationToken,
}

impl Read for Interruptible<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("aborted"));
        }
        self.file.read(buffer)
    }
}

/// The matches of one file with the lines around them.
#[derive(Default)]
struct FileMatches {
    lines: Vec<FoundLine>,
    left: usize,
    has_more: bool,
    context: usize,
    /// The line of the last match that is shown.
    last_match: Option<u64>,
    is_binary: bool,
    secrets: Option<Arc<Secrets>>,
}

struct FoundLine {
    number: u64,
    text: String,
    is_match: bool,
    is_cut: bool,
}

impl FileMatches {
    /// Takes a line; returns false when no more are needed. Beyond the limit only the context of the last match is
    /// shown, but it takes another match to know that there was more.
    fn take(&mut self, number: u64, bytes: &[u8], is_match: bool) -> bool {
        self.has_more |= is_match && self.left == 0;
        let is_match = is_match && self.left > 0;
        if is_match {
            self.left -= 1;
            self.last_match = Some(number);
        }
        let last_shown = self.last_match.map_or(0, |line| line + self.context as u64);
        if self.left > 0 || number <= last_shown {
            let (text, is_cut) = shown(bytes, self.secrets.as_deref());
            self.lines.push(FoundLine { number, text, is_match, is_cut });
        }
        !self.has_more || number < last_shown
    }
}

impl Sink for FileMatches {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        Ok(self.take(found.line_number().unwrap_or(0), found.bytes(), true))
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, io::Error> {
        Ok(self.take(line.line_number().unwrap_or(0), line.bytes(), false))
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        self.is_binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// The text of a line without its ending, as the model sees it, and whether it was cut.
fn shown(line: &[u8], secrets: Option<&Secrets>) -> (String, bool) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
    if text.char_indices().nth(MAX_CHARS).is_none() {
        return (text.into_owned(), false);
    }
    let text = secrets.map_or(Cow::Borrowed(&*text), |secrets| secrets.redact(&text));
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => (format!("{}... [truncated]", &text[..end]), true),
        None => (text.into_owned(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grep_regex::RegexMatcherBuilder;
    use std::io::Write as _;

    fn search(contents: &[u8], context: usize, limit: usize, binary: Binary) -> Vec<String> {
        search_hiding(contents, context, limit, binary, None)
    }

    fn search_hiding(
        contents: &[u8],
        context: usize,
        limit: usize,
        binary: Binary,
        secrets: Option<Arc<Secrets>>,
    ) -> Vec<String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(contents).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let matcher = RegexMatcherBuilder::new().line_terminator(Some(b'\n')).build("beta").unwrap();
        let mut matches = Matches::new(limit, context, secrets);
        matches.search(&mut searcher(context, binary), &matcher, "f", file, &CancellationToken::new());
        let output = matches.listing.finish(None);
        output.content[0].as_text().unwrap().lines().map(str::to_owned).collect()
    }

    fn check(contents: &str, context: usize, limit: usize, expected: &[&str]) {
        assert_eq!(search(contents.as_bytes(), context, limit, Binary::Skip), expected, "{contents:?}");
    }

    #[test]
    fn context_blocks_are_merged() {
        check("alpha\nbeta\na.b", 1, 9, &["f-1- alpha", "f:2: beta", "f-3- a.b"]);
        check(
            "beta\nx\nbeta\n1\n2\n3\nbeta",
            1,
            9,
            &["f:1: beta", "f-2- x", "f:3: beta", "f-4- 1", "f-6- 3", "f:7: beta"],
        );
        check("x\nbeta\n", 2, 9, &["f-1- x", "f:2: beta"]);
        check("beta\n\n", 2, 9, &["f:1: beta", "f-2- "]);
    }

    #[test]
    fn the_last_match_keeps_its_context() {
        check("beta\n1\nbeta\n2\n3\nbeta\n", 1, 2, &["f:1: beta", "f-2- 1", "f:3: beta", "f-4- 2"]);
        check("beta\nbeta\nbeta\nbeta\n", 1, 1, &["f:1: beta", "f-2- beta"]);
        check("beta\nx\nx\nx\nbeta\n", 2, 1, &["f:1: beta", "f-2- x", "f-3- x"]);
        check("beta\nbeta\n", 0, 1, &["f:1: beta"]);
    }

    #[test]
    fn there_is_more_only_after_another_match() {
        let matcher = RegexMatcherBuilder::new().line_terminator(Some(b'\n')).build("beta").unwrap();
        let mut matches = Matches::new(2, 1, None);
        let mut search = |contents: &str| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(contents.as_bytes()).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            matches.search(&mut searcher(1, Binary::Skip), &matcher, "f", file, &CancellationToken::new());
            matches.has_more
        };
        assert!(!search("beta\nx\nbeta\ny\nz\n"), "two of two");
        assert!(!search("x\ny\n"), "none");
        assert!(search("x\nbeta\ny\n"), "a third, in another file");
        let output = matches.listing.finish(None);
        assert_eq!(output.content[0].as_text(), Some("f:1: beta\nf-2- x\nf:3: beta\nf-4- y"));
    }

    #[test]
    fn lines_are_made_presentable() {
        check("beta\r\n", 0, 9, &["f:1: beta"]);
        check("beta\r", 0, 9, &["f:1: beta"]);
        assert_eq!(shown(b"beta a\rmid\r\r\n", None), ("beta a\rmid\r".to_owned(), false));
        let long = search(format!("beta{}", "é".repeat(600)).as_bytes(), 0, 9, Binary::Skip);
        assert_eq!(long, [format!("f:1: beta{}... [truncated]", "é".repeat(496))]);
        assert_eq!(search(b"\xffbeta", 0, 9, Binary::Skip), ["f:1: \u{fffd}beta"]);
    }

    #[test]
    fn a_key_at_the_cut_leaves_nothing_behind() {
        let secrets = Arc::new(Secrets::default());
        secrets.remember("key-0123456789");
        for n_before in 480..500 {
            let line = format!("beta{}key-0123456789 {}", "x".repeat(n_before - 4), "y".repeat(100));
            let found = search_hiding(line.as_bytes(), 0, 9, Binary::Skip, Some(secrets.clone())).concat();
            assert!(!found.contains("ke"), "{found}");
            assert!(found.ends_with("... [truncated]"), "{found}");
        }
        // Hiding makes the line short enough.
        let line = format!("beta {} {}", "key-0123456789".repeat(40), "y".repeat(40));
        let found = search_hiding(line.as_bytes(), 0, 9, Binary::Skip, Some(secrets));
        assert_eq!(found, [format!("f:1: beta {} {}", "[redacted]".repeat(40), "y".repeat(40))]);
    }

    #[test]
    fn binary_files_are_searched_only_when_named() {
        let late = [b"beta\n".as_slice(), &b"x".repeat(200_000), b"\n\0\n"].concat();
        assert!(search(b"beta\0\nbeta\n", 0, 9, Binary::Skip).concat().is_empty());
        assert!(search(&late, 0, 9, Binary::Skip).concat().is_empty());
        assert_eq!(search(b"beta\0\nbeta\n", 0, 9, Binary::Search), ["f:1: beta\0", "f:2: beta"]);
    }
}
