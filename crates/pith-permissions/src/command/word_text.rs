//! The text of words for whoever looks for mentions: what is literal stays, what the shell computes is marked.

use brush_parser::ast;
use brush_parser::word::{self as shell, Parameter, ParameterExpr, WordPiece, WordPieceWithSource};

use super::reader::OPTIONS;
use super::tokens::COMPUTED;

/// A word, and what stands inside it.
#[derive(Default)]
pub(super) struct Decoded {
    pub text: String,
    /// The scripts of command substitutions.
    pub scripts: Vec<String>,
    /// Why it runs what cannot be read.
    pub hidden: Option<String>,
    /// Why the shell evaluates a value in it.
    pub evaluates: Option<String>,
}

impl Decoded {
    pub fn of_word(written: &str) -> Decoded {
        let mut decoded = Decoded::default();
        match shell::parse(written, &OPTIONS) {
            Ok(pieces) => decoded.pieces(&pieces, false),
            Err(_) => decoded.refuse(written, "a word that cannot be read"),
        }
        decoded
    }

    /// Reads text between double quotes, or a here-document.
    pub fn of_document(body: &str) -> Decoded {
        let mut decoded = Decoded::default();
        match shell::parse_heredoc(body, &OPTIONS) {
            Ok(pieces) => decoded.pieces(&pieces, true),
            Err(_) => decoded.refuse(body, "a here-document that cannot be read"),
        }
        decoded
    }

    pub fn of_arithmetic(expression: &str) -> Decoded {
        let mut decoded = Decoded::default();
        decoded.arithmetic(expression);
        decoded
    }

    fn refuse(&mut self, written: &str, why: &str) {
        self.text.push_str(written);
        self.hidden.get_or_insert_with(|| why.to_owned());
    }

    fn hide(&mut self, why: &str) {
        self.hidden.get_or_insert_with(|| why.to_owned());
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource], is_quoted: bool) {
        for (position, WordPieceWithSource { piece, .. }) in pieces.iter().enumerate() {
            let is_last = position + 1 == pieces.len();
            match piece {
                WordPiece::Text(text) => self.plain(text, is_quoted, is_last),
                WordPiece::SingleQuotedText(text) => self.text.push_str(text),
                WordPiece::AnsiCQuotedText(text) => self.ansi_c(text),
                WordPiece::DoubleQuotedSequence(pieces) | WordPiece::GettextDoubleQuotedSequence(pieces) => {
                    self.pieces(pieces, true);
                }
                WordPiece::TildeExpansion(_) => self.text.push('~'),
                WordPiece::ParameterExpansion(expression) => self.parameter(expression),
                WordPiece::CommandSubstitution(script) => self.substitution(script),
                WordPiece::BackquotedCommandSubstitution(script) => {
                    let script = script.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\");
                    self.substitution(if is_quoted { script.replace("\\\"", "\"") } else { script }.as_str());
                }
                WordPiece::EscapeSequence(escaped) => {
                    let text = escaped.strip_prefix('\\').unwrap_or(escaped);
                    self.text.push_str(if text == "\n" { "" } else { text });
                }
                WordPiece::ArithmeticExpression(ast::UnexpandedArithmeticExpr { value }) => {
                    self.text.push(COMPUTED);
                    self.arithmetic(value);
                }
            }
        }
    }

    /// Text in which the parser found nothing.
    fn plain(&mut self, text: &str, is_quoted: bool, is_last: bool) {
        let begins = |c: char| c.is_alphanumeric() || "_{(@*#?!$-'\"".contains(c);
        let mut after_dollar = text.split('$').skip(1).map(|rest| rest.chars().next());
        // In quotes, a dollar before a quote is one.
        let is_begun = after_dollar.any(|c| c.is_some_and(|c| begins(c) && !(is_quoted && c == '\'')));
        if is_begun || text.ends_with('$') && !is_last {
            self.hide("a dollar that is not understood");
        }
        if text.contains('`') || !is_quoted && text.contains(['(', ')', '"', '\'', ';', '&', '|', '<', '>', '\n']) {
            self.hide("a character that is not expected in a word");
        }
        let text = text.replace("\\\n", "");
        if is_quoted {
            return self.text.push_str(&text);
        }
        // A pattern may become any name that it fits; braces become several words.
        let mut rest = text.chars();
        let mut others = String::new();
        while let Some(c) = rest.next() {
            match c {
                '*' | '?' => self.text.push(COMPUTED),
                '[' if rest.clone().any(|c| c == ']') => {
                    self.text.push(COMPUTED);
                    rest.by_ref().find(|c| *c == ']');
                }
                '{' => {
                    let inside: String = rest.clone().take_while(|c| *c != '}').collect();
                    let is_closed = rest.clone().any(|c| c == '}');
                    if is_closed && !inside.contains(',') && !inside.contains("..") {
                        self.text.push(c);
                    } else {
                        self.text.push(COMPUTED);
                        others.push_str(&format!(" {}", inside.replace(',', " ")));
                        rest.by_ref().find(|c| *c == '}');
                    }
                }
                c => self.text.push(c),
            }
        }
        self.text.push_str(&others);
    }

    fn ansi_c(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            if c != '\\' {
                self.text.push(c);
                continue;
            }
            let Some(kind) = rest.chars().next() else { break };
            let (skipped, longest, radix) = match kind {
                'x' => (1, 2, 16),
                'u' => (1, 4, 16),
                'U' => (1, 8, 16),
                '0'..='7' => (0, 3, 8),
                _ => (0, 0, 10),
            };
            let digits = rest[skipped..].chars().take(longest).take_while(|c| c.is_digit(radix)).count();
            if digits == 0 {
                rest = &rest[kind.len_utf8()..];
                self.text.push(match kind {
                    'n' | 'r' => '\n',
                    't' => '\t',
                    kind => kind,
                });
                continue;
            }
            let value = u32::from_str_radix(&rest[skipped..skipped + digits], radix).unwrap_or(0);
            // The shell ends the text at a NUL.
            let read = char::from_u32(value & 0x1f_ffff).unwrap_or('\u{FFFD}');
            if read == COMPUTED {
                break;
            }
            self.text.push(read);
            rest = &rest[skipped + digits..];
        }
    }

    fn substitution(&mut self, script: &str) {
        self.text.push(COMPUTED);
        // Where such a command ends depends on comments, patterns and documents in it; the parser only counts brackets.
        if !ends_where_it_seems(script) {
            self.hide("a comment, case or here-document inside a substitution");
        }
        self.scripts.push(script.to_owned());
    }

    fn parameter(&mut self, expression: &ParameterExpr) {
        use ParameterExpr as E;
        match expression {
            E::Parameter { parameter, indirect } | E::ParameterLength { parameter, indirect } => {
                self.simple(parameter, *indirect);
            }
            E::UseDefaultValues { parameter, indirect, default_value: word, .. }
            | E::AssignDefaultValues { parameter, indirect, default_value: word, .. }
            | E::IndicateErrorIfNullOrUnset { parameter, indirect, error_message: word, .. }
            | E::UseAlternativeValue { parameter, indirect, alternative_value: word, .. }
            | E::RemoveSmallestSuffixPattern { parameter, indirect, pattern: word }
            | E::RemoveLargestSuffixPattern { parameter, indirect, pattern: word }
            | E::RemoveSmallestPrefixPattern { parameter, indirect, pattern: word }
            | E::RemoveLargestPrefixPattern { parameter, indirect, pattern: word }
            | E::UppercaseFirstChar { parameter, indirect, pattern: word }
            | E::UppercasePattern { parameter, indirect, pattern: word }
            | E::LowercaseFirstChar { parameter, indirect, pattern: word }
            | E::LowercasePattern { parameter, indirect, pattern: word } => {
                self.simple(parameter, *indirect);
                self.nested(word.as_deref());
            }
            E::ReplaceSubstring { parameter, indirect, pattern, replacement, .. } => {
                self.simple(parameter, *indirect);
                self.nested(Some(pattern));
                self.nested(replacement.as_deref());
            }
            E::Substring { parameter, indirect, offset, length } => {
                self.simple(parameter, *indirect);
                self.arithmetic(&offset.value);
                if let Some(length) = length {
                    self.arithmetic(&length.value);
                }
            }
            E::Transform { .. } => {
                self.text.push(COMPUTED);
                self.evaluate("an expansion that transforms a value");
            }
            E::VariableNames { .. } | E::MemberKeys { .. } => self.text.push(COMPUTED),
        }
    }

    fn evaluate(&mut self, why: &str) {
        self.evaluates.get_or_insert_with(|| why.to_owned());
    }

    fn simple(&mut self, parameter: &Parameter, is_indirect: bool) {
        match parameter {
            // It separates words whatever it is.
            Parameter::Named(name) if name == "IFS" => self.text.push_str(" \0 "),
            Parameter::NamedWithIndex { index, .. } => {
                self.text.push(COMPUTED);
                self.arithmetic(index);
            }
            _ => self.text.push(COMPUTED),
        }
        if is_indirect {
            self.evaluate("an indirect expansion");
        }
    }

    /// Reads a word inside an expansion: the expansion may become it.
    fn nested(&mut self, word: Option<&str>) {
        let Some(word) = word.filter(|word| !word.is_empty()) else { return };
        let inner = Decoded::of_word(word);
        if inner.hidden.is_some() && word.contains(['$', '`']) {
            self.hide("quotes inside an expansion");
        }
        self.text.push_str(&format!(" {} ", if inner.hidden.is_some() { word } else { &inner.text }));
        self.scripts.extend(inner.scripts);
        self.evaluates = self.evaluates.take().or(inner.evaluates);
    }

    /// A name in an arithmetic expression is evaluated, and with it any command that its value contains.
    fn arithmetic(&mut self, expression: &str) {
        let is_plain = expression.chars().all(|c| c.is_ascii_digit() || " +-*/%()<>=!&|^~,?:".contains(c));
        if is_plain {
            return;
        }
        self.evaluate("arithmetic with names or expansions");
        if expression.contains(['$', '`']) {
            let inner = Decoded::of_document(expression);
            self.hidden = self.hidden.take().or(inner.hidden);
            self.scripts.extend(inner.scripts);
        }
    }
}

/// Whether the parser and the shell agree about the end of a command substitution.
fn ends_where_it_seems(script: &str) -> bool {
    let text = script.replace("<<<", "");
    let is_separator = |c: char| c.is_whitespace() || ";&|()`".contains(c);
    let has_comment =
        text.char_indices().any(|(at, c)| c == '#' && text[..at].chars().next_back().is_none_or(is_separator));
    let has_case = text.split(is_separator).any(|word| word == "case" || word == "esac");
    let is_plain = !has_comment && !has_case && !text.contains("<<");
    is_plain || is_document(script)
}

/// Knows `cat <<'END'` with its lines and nothing else.
fn is_document(script: &str) -> bool {
    let Some((first, rest)) = script.trim_start().split_once('\n') else { return false };
    let Some(word) = first.strip_prefix("cat <<").map(str::trim) else { return false };
    let Some(word) = word.strip_prefix('\'').and_then(|word| word.strip_suffix('\'')) else { return false };
    let is_name = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
    let mut after = rest.lines().skip_while(|line| *line != word).skip(1);
    is_name && rest.lines().any(|line| line == word) && after.all(|line| line.trim().is_empty())
}
