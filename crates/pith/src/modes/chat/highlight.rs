//! Colours of code: strings, comments, numbers and the keywords of common languages.
//!
//! One small lexer for all of them. Grammars for each language take megabytes, more than the rest of an idle pith; what
//! a reader gains from them in an answer of a model is small.

use ratatui::style::Style;

use super::text::Piece;
use super::theme;

/// Words that begin a statement, declare or decide, in C-like languages, scripts and shells.
const KEYWORDS: &[&str] = &[
    "abstract",
    "and",
    "as",
    "assert",
    "async",
    "await",
    "begin",
    "bool",
    "boolean",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "constexpr",
    "continue",
    "crate",
    "def",
    "default",
    "defer",
    "del",
    "delete",
    "do",
    "done",
    "double",
    "dyn",
    "elif",
    "else",
    "elsif",
    "end",
    "enum",
    "esac",
    "except",
    "export",
    "extends",
    "extern",
    "false",
    "fi",
    "final",
    "finally",
    "float",
    "fn",
    "for",
    "foreach",
    "from",
    "func",
    "function",
    "global",
    "go",
    "goto",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "include",
    "inline",
    "int",
    "interface",
    "is",
    "lambda",
    "let",
    "local",
    "long",
    "loop",
    "match",
    "mod",
    "module",
    "mut",
    "namespace",
    "new",
    "nil",
    "none",
    "None",
    "not",
    "null",
    "of",
    "or",
    "override",
    "package",
    "pass",
    "private",
    "protected",
    "pub",
    "public",
    "raise",
    "ref",
    "require",
    "return",
    "select",
    "self",
    "Self",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "super",
    "switch",
    "template",
    "then",
    "this",
    "throw",
    "throws",
    "trait",
    "true",
    "True",
    "False",
    "try",
    "type",
    "typedef",
    "typeof",
    "union",
    "unless",
    "unsafe",
    "unsigned",
    "until",
    "use",
    "using",
    "val",
    "var",
    "virtual",
    "void",
    "volatile",
    "when",
    "where",
    "while",
    "with",
    "yield",
];

/// How comments look, and which quotes may go on over several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// `//`, `/* */`; a template in back quotes.
    Slashes,
    /// `#`; three quotes.
    Hash,
    /// `--`.
    Dashes,
    /// Lines with a sign in front.
    Difference,
    /// No code, or none that is known.
    Plain,
}

/// What a line begins inside of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Nothing,
    Comment,
    /// A text that ends with this.
    Text(&'static str),
}

/// Colours lines of one piece of code, in order.
#[derive(Clone, Debug)]
pub struct Highlighter {
    family: Family,
    inside: Inside,
}

impl Highlighter {
    /// Creates one for the language a fence names.
    pub fn new(language: &str) -> Self {
        let family = match language.trim().to_lowercase().as_str() {
            "diff" | "patch" => Family::Difference,
            "py" | "python" | "sh" | "bash" | "shell" | "zsh" | "fish" | "rb" | "ruby" | "yaml" | "yml" | "toml"
            | "perl" | "r" | "make" | "makefile" | "dockerfile" | "ini" | "conf" | "nix" | "elixir" | "julia" => {
                Family::Hash
            }
            "sql" | "lua" | "haskell" | "hs" | "ada" | "elm" => Family::Dashes,
            "" | "text" | "txt" | "plain" | "console" | "output" | "md" | "markdown" => Family::Plain,
            _ => Family::Slashes,
        };
        Highlighter { family, inside: Inside::Nothing }
    }

    /// Returns the line in pieces.
    pub fn line(&mut self, line: &str) -> Vec<Piece> {
        match self.family {
            Family::Plain => vec![Piece::new(line, theme::code())],
            Family::Difference => vec![Piece::new(line, theme::of_difference(line))],
            Family::Slashes | Family::Hash | Family::Dashes => self.code(line),
        }
    }

    fn code(&mut self, line: &str) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut rest = line;
        let mut plain = 0;
        // `rest[..plain]` has no style.
        while plain < rest.len() || self.inside != Inside::Nothing && !rest.is_empty() {
            let Some((n_bytes, style)) = self.token(&rest[plain..]) else {
                plain += rest[plain..].chars().next().map_or(1, char::len_utf8);
                continue;
            };
            if plain > 0 {
                pieces.push(Piece::plain(&rest[..plain]));
            }
            let (token, after) = rest[plain..].split_at(n_bytes);
            pieces.push(Piece::new(token, style));
            (rest, plain) = (after, 0);
        }
        if !rest.is_empty() {
            pieces.push(Piece::plain(rest));
        }
        pieces
    }

    /// Returns length and style of what the text begins with; `None` for a character without a style.
    fn token(&mut self, text: &str) -> Option<(usize, Style)> {
        match self.inside {
            Inside::Comment => return Some((self.until(text, "*/"), theme::comment())),
            Inside::Text(end) => return Some((self.until(text, end), theme::string())),
            Inside::Nothing => {}
        }
        let comment = match self.family {
            Family::Slashes => "//",
            Family::Hash => "#",
            _ => "--",
        };
        if text.starts_with(comment) {
            return Some((text.len(), theme::comment()));
        }
        if self.family == Family::Slashes && text.starts_with("/*") {
            self.inside = Inside::Comment;
            return Some((2 + self.until(&text[2..], "*/"), theme::comment()));
        }
        for open in ["\"\"\"", "'''", "`"] {
            let is_known = if open == "`" { self.family == Family::Slashes } else { self.family == Family::Hash };
            if is_known && text.starts_with(open) {
                self.inside = Inside::Text(open);
                return Some((open.len() + self.until(&text[open.len()..], open), theme::string()));
            }
        }
        let first = text.chars().next()?;
        match first {
            '"' | '\'' => quoted(text, first).map(|n_bytes| (n_bytes, theme::string())),
            '0'..='9' => {
                let end = text.find(|char: char| !char.is_ascii_alphanumeric() && char != '_' && char != '.');
                Some((end.unwrap_or(text.len()), theme::number()))
            }
            first if first.is_alphabetic() || first == '_' => {
                let end = text.find(|char: char| !char.is_alphanumeric() && char != '_').unwrap_or(text.len());
                let style = if KEYWORDS.contains(&&text[..end]) { theme::keyword() } else { Style::default() };
                Some((end, style))
            }
            _ => None,
        }
    }

    /// Returns the length up to and with `end`, or of the whole text if that comes in a later line.
    fn until(&mut self, text: &str, end: &str) -> usize {
        match text.find(end) {
            Some(at) => {
                self.inside = Inside::Nothing;
                at + end.len()
            }
            None => text.len(),
        }
    }
}

/// Returns the length of a quoted text; `None` if the quote is not closed, as in `don't` and `&'a`.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, char) in text.char_indices().skip(1) {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            char if char == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn styled(language: &str, lines: &[&str]) -> Vec<(String, Style)> {
        let mut highlighter = Highlighter::new(language);
        let pieces = lines.iter().flat_map(|line| highlighter.line(line));
        pieces
            .filter(|piece| piece.style != Style::default())
            .map(|piece| (piece.text().to_owned(), piece.style))
            .collect()
    }

    #[test]
    fn code_is_coloured_by_its_words() {
        let of = |text: &str, style| (text.to_owned(), style);
        let rust = styled("rust", &["let x = \"a\\\"b\"; // 1", "fn f<'a>() {} /* open", "still */ 0x1f"]);
        let expected = [
            of("let", theme::keyword()),
            of("\"a\\\"b\"", theme::string()),
            of("// 1", theme::comment()),
            of("fn", theme::keyword()),
            of("/* open", theme::comment()),
            of("still */", theme::comment()),
            of("0x1f", theme::number()),
        ];
        assert_eq!(rust, expected);
        assert_eq!(styled("diff", &["+a", "-b"]), [of("+a", theme::good()), of("-b", theme::bad())]);
        assert_eq!(styled("py", &["'''a", "b''' # c"]).len(), 3);
    }

    #[test]
    fn nothing_is_lost() {
        for line in ["", "x", "'", "a /* b", "\"open", "日本 = 'x' # y", "`", "1.5e3"] {
            for language in ["rs", "py", "sql", "diff", ""] {
                let pieces = Highlighter::new(language).line(line);
                assert_eq!(pieces.iter().map(Piece::text).collect::<String>(), line);
            }
        }
    }
}
