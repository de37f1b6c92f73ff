//! Code that arrives line by line.

use crate::languages::{Language, by_name};
use crate::scanner::{Scanner, Token};

/// The state between two lines.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// `None` for text that has no colours.
    language: Option<&'static Language>,
    /// A comment or a text that the line before has left open, and what ends it.
    open: Option<(Token, &'static str)>,
}

impl Lines {
    /// Begins code in a language, by its name in a code fence.
    pub fn new(name: &str) -> Self {
        Lines { language: by_name(name), open: None }
    }

    /// Whether the language is known.
    pub fn has_colours(&self) -> bool {
        self.language.is_some()
    }

    /// Returns the next line in pieces.
    pub fn line<'t>(&mut self, line: &'t str) -> Vec<(&'t str, Option<Token>)> {
        let Some(language) = self.language else { return vec![(line, None)] };
        let mut pieces = Vec::new();
        let mut rest = line;
        if let Some((token, end)) = self.open {
            let Some(at) = line.find(end) else { return vec![(line, Some(token))] };
            let (inside, after) = line.split_at(at + end.len());
            pieces.push((inside, Some(token)));
            rest = after;
        }
        let mut scanner = Scanner::of_line(rest, language);
        pieces.extend(&mut scanner);
        self.open = scanner.open;
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: &str, lines: &[&str], expected: &[(&str, Token)]) {
        let mut code = Lines::new(language);
        let pieces = lines.iter().flat_map(|line| code.line(line));
        let tokens: Vec<_> = pieces.filter_map(|(text, token)| Some((text, token?))).collect();
        assert_eq!(tokens, expected);
    }

    #[test]
    fn what_a_line_leaves_open_goes_on_in_the_next() {
        use Token::{Comment, Keyword, Number, String};
        check(
            "rust",
            &["let a /* open", "still */ 0x1f", "'a \"open"],
            &[("let", Keyword), ("/* open", Comment), ("still */", Comment), ("0x1f", Number)],
        );
        check("py", &["'''a", "b", "c''' # d"], &[("'''a", String), ("b", String), ("c'''", String), ("# d", Comment)]);
        check("js", &["`a", "b` 1"], &[("`a", String), ("b`", String), ("1", Number)]);
        // An apostrophe is no text that goes on.
        check("sh", &["# don't", "echo don't", "1"], &[("# don't", Comment), ("echo", Keyword), ("1", Number)]);
    }

    #[test]
    fn nothing_is_lost() {
        for line in ["", "x", "'", "a /* b", "\"open", "日本 = 'x' # y", "`", "1.5e3", "<!-- x"] {
            for language in ["rs", "py", "sql", "html", "nope", ""] {
                let mut code = Lines::new(language);
                for line in [line, line, "*/ ''' ` x"] {
                    assert_eq!(code.line(line).iter().map(|(text, _)| *text).collect::<String>(), line, "{language}");
                }
            }
        }
    }
}
