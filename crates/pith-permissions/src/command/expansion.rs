//! Expansions inside words: which ones can run commands that the text does not show.

use brush_parser::ParserOptions;
use brush_parser::word::{Parameter, ParameterExpr};

use super::reader::{OPTIONS, Reader};
use super::word::Quoting;

/// How words inside expansions are read.
type Nested<'a> = Option<&'a String>;

impl Reader {
    /// Reads a parameter expansion. Those that make the shell evaluate the *value* of a variable are opaque.
    pub fn parameter(&mut self, expression: &ParameterExpr) {
        use ParameterExpr as E;
        match expression {
            E::Parameter { parameter, indirect } | E::ParameterLength { parameter, indirect } => {
                self.simple(parameter, *indirect);
            }
            E::UseDefaultValues { parameter, indirect, default_value: word, .. }
            | E::IndicateErrorIfNullOrUnset { parameter, indirect, error_message: word, .. }
            | E::UseAlternativeValue { parameter, indirect, alternative_value: word, .. } => {
                self.with_word(parameter, *indirect, word.as_ref());
            }
            E::AssignDefaultValues { parameter, indirect, default_value, .. } => {
                self.with_word(parameter, *indirect, default_value.as_ref());
                match parameter {
                    Parameter::Named(name) => self.assigned(name),
                    _ => self.opaque("an assignment inside an expansion".to_owned()),
                }
            }
            E::RemoveSmallestSuffixPattern { parameter, indirect, pattern }
            | E::RemoveLargestSuffixPattern { parameter, indirect, pattern }
            | E::RemoveSmallestPrefixPattern { parameter, indirect, pattern }
            | E::RemoveLargestPrefixPattern { parameter, indirect, pattern }
            | E::UppercaseFirstChar { parameter, indirect, pattern }
            | E::UppercasePattern { parameter, indirect, pattern }
            | E::LowercaseFirstChar { parameter, indirect, pattern }
            | E::LowercasePattern { parameter, indirect, pattern } => {
                self.with_word(parameter, *indirect, pattern.as_ref());
            }
            E::ReplaceSubstring { parameter, indirect, pattern, replacement, .. } => {
                self.with_word(parameter, *indirect, Some(pattern));
                self.nested(replacement.as_ref());
            }
            E::Substring { parameter, indirect, offset, length } => {
                self.simple(parameter, *indirect);
                self.arithmetic(&offset.value);
                if let Some(length) = length {
                    self.arithmetic(&length.value);
                }
            }
            // `@P` runs what the value says; the others print it as commands.
            E::Transform { .. } => self.opaque("an expansion that transforms a value".to_owned()),
            E::VariableNames { .. } | E::MemberKeys { .. } => {}
        }
    }

    fn with_word(&mut self, parameter: &Parameter, is_indirect: bool, word: Nested<'_>) {
        self.simple(parameter, is_indirect);
        self.nested(word);
    }

    fn simple(&mut self, parameter: &Parameter, is_indirect: bool) {
        if is_indirect {
            self.opaque("an indirect expansion".to_owned());
        }
        if let Parameter::NamedWithIndex { index, .. } = parameter {
            self.arithmetic(index);
        }
    }

    /// Reads a word inside an expansion. What quotes mean there depends on those outside.
    fn nested(&mut self, word: Nested<'_>) {
        let Some(word) = word else { return };
        if !word.contains(['$', '`']) {
            return;
        }
        if word.contains(['\'', '"', '\\']) {
            return self.opaque("quotes inside an expansion".to_owned());
        }
        self.word_text(word);
    }

    /// Reads an arithmetic expression. A name in it is evaluated, and with it any command that its value contains.
    pub fn arithmetic(&mut self, expression: &str) {
        let is_plain = expression.chars().all(|c| c.is_ascii_digit() || " +-*/%()<>=!&|^~,?:".contains(c));
        if is_plain {
            return;
        }
        self.opaque("arithmetic with names or expansions".to_owned());
        if !expression.contains(['\'', '"', '\\']) {
            let options = ParserOptions { tilde_expansion_at_word_start: false, ..OPTIONS };
            if let Ok(pieces) = brush_parser::word::parse(expression, &options) {
                self.pieces(&pieces, Quoting::Double);
            }
        }
    }
}
