//! Words of a command: what they are, or that only the shell will know.

use brush_parser::ast;
use brush_parser::word::{self as shell, TildeExpr, WordPiece, WordPieceWithSource};

use super::reader::{OPTIONS, Reader};

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// The program gets exactly this.
    Literal(String),
    /// The shell computes it, and it may become several words or none. As it is written.
    Unknown(String),
}

impl Word {
    /// Returns the text, if it is known.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Word::Literal(text) => Some(text),
            Word::Unknown(_) => None,
        }
    }

    /// Returns what is shown to people.
    pub fn shown(&self) -> &str {
        match self {
            Word::Literal(text) | Word::Unknown(text) => text,
        }
    }
}

/// Whether pieces stand inside double quotes, where less is special.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    None,
    Double,
}

/// The text of a word so far; `None` once a piece of it is computed.
type Text = Option<String>;

impl Reader {
    /// Reads a word and the commands inside it.
    pub fn word(&mut self, word: &ast::Word) -> Word {
        self.word_text(&word.value)
    }

    pub fn word_text(&mut self, written: &str) -> Word {
        // The parser knows no brace expansion here; `{}` alone is a plain word.
        if written == "{}" || written == "[" || written == "]" {
            return Word::Literal(written.to_owned());
        }
        let unknown = Word::Unknown(written.to_owned());
        let Ok(pieces) = shell::parse(written, &OPTIONS) else {
            self.opaque(format!("a word that cannot be read: {written}"));
            return unknown;
        };
        if written.contains('=') && written.contains('~') || written.contains(":~") {
            self.pieces(&pieces, Quoting::None);
            return unknown;
        }
        self.pieces(&pieces, Quoting::None).map_or(unknown, Word::Literal)
    }

    /// Reads the path of a redirection; `~/` at its start stays, and a name that begins with `~` gets a `./`.
    pub fn path(&mut self, word: &ast::Word) -> Word {
        let pieces = shell::parse(&word.value, &OPTIONS).unwrap_or_default();
        if let [WordPieceWithSource { piece: WordPiece::TildeExpansion(TildeExpr::Home), .. }, rest @ ..] = &pieces[..]
        {
            let rest = self.pieces(rest, Quoting::None);
            return rest.map_or_else(|| Word::Unknown(word.value.clone()), |rest| Word::Literal(format!("~{rest}")));
        }
        match self.word(word) {
            Word::Literal(path) if path.starts_with('~') => Word::Literal(format!("./{path}")),
            other => other,
        }
    }

    /// Reads the body of a here-document for the commands inside it.
    pub fn here_document(&mut self, body: &str) {
        if !body.contains(['$', '`']) {
            return;
        }
        match shell::parse_heredoc(body, &OPTIONS) {
            Ok(pieces) => drop(self.pieces(&pieces, Quoting::Double)),
            Err(_) => self.opaque("a here-document that cannot be read".to_owned()),
        }
    }

    /// Reads pieces of a word; `None` if the shell computes one of them.
    pub fn pieces(&mut self, pieces: &[WordPieceWithSource], quoting: Quoting) -> Text {
        let mut text = Some(String::new());
        for (position, WordPieceWithSource { piece, .. }) in pieces.iter().enumerate() {
            let is_last = position + 1 == pieces.len();
            let read = self.piece(piece, quoting, is_last);
            text = text.zip(read).map(|(mut text, read)| {
                text.push_str(&read);
                text
            });
        }
        text
    }

    fn piece(&mut self, piece: &WordPiece, quoting: Quoting, is_last: bool) -> Text {
        match piece {
            WordPiece::Text(text) if quoting == Quoting::Double => self.quoted_text(text, is_last),
            WordPiece::Text(text) => self.plain_text(text, is_last),
            WordPiece::SingleQuotedText(text) => Some(text.clone()),
            WordPiece::AnsiCQuotedText(text) => ansi_c(text),
            WordPiece::DoubleQuotedSequence(pieces) => self.pieces(pieces, Quoting::Double),
            WordPiece::GettextDoubleQuotedSequence(pieces) => {
                self.pieces(pieces, Quoting::Double);
                None
            }
            WordPiece::TildeExpansion(_) => None,
            WordPiece::ParameterExpansion(expression) => {
                self.parameter(expression);
                None
            }
            WordPiece::CommandSubstitution(script) => {
                self.substitution(script);
                None
            }
            WordPiece::BackquotedCommandSubstitution(script) => {
                if script.contains('\\') {
                    self.opaque("a backslash between backquotes".to_owned());
                }
                self.substitution(script);
                None
            }
            WordPiece::EscapeSequence(escaped) => {
                let text = escaped.strip_prefix('\\').unwrap_or(escaped);
                // A line that goes on leaves nothing.
                Some(if text == "\n" { String::new() } else { text.to_owned() })
            }
            WordPiece::ArithmeticExpression(expression) => {
                self.arithmetic(&expression.value);
                None
            }
        }
    }

    fn quoted_text(&mut self, text: &str, is_last: bool) -> Text {
        self.check_dollar(text, is_last);
        if text.contains('`') {
            self.opaque("a backquote without its other".to_owned());
        }
        Some(text.replace("\\\n", ""))
    }

    fn plain_text(&mut self, text: &str, is_last: bool) -> Text {
        self.check_dollar(text, is_last);
        if text.contains(['(', ')', '`', '"', '\'', '\\', ' ', '\t', '\n', ';', '&', '|', '<', '>']) {
            self.opaque(format!("a character that is not expected in a word: {text}"));
        }
        // Patterns and braces become other words; what they become depends on the files there are.
        (!text.contains(['*', '?', '[', ']', '{', '}', '!', '^'])).then(|| text.to_owned())
    }

    /// A dollar that the parser took for itself although something follows it may begin an expansion for the shell.
    fn check_dollar(&mut self, text: &str, is_last: bool) {
        if text.ends_with('$') && !is_last || text.trim_end_matches('$').contains('$') {
            self.opaque("a dollar that is not understood".to_owned());
        }
    }

    /// Reads a command between `$(` and `)`.
    pub fn substitution(&mut self, script: &str) {
        // Where such a command ends depends on comments, patterns and documents in it; the parser only counts brackets.
        if script.contains('#') || script.contains("<<") || script.contains("case") || script.contains("esac") {
            self.opaque("a comment, case or here-document inside a substitution".to_owned());
        }
        self.script(script);
    }
}

/// Returns the text of `$'…'` if its escapes are the usual ones.
fn ansi_c(text: &str) -> Text {
    let mut read = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        read.push(match c {
            '\\' => match rest.next()? {
                'n' => '\n',
                't' => '\t',
                c @ ('\\' | '\'' | '"') => c,
                _ => return None,
            },
            c => c,
        });
    }
    Some(read)
}
