//! Colours of code and of differences.

use pith_highlight::{Lines, Token};
use ratatui::style::Style;

use super::text::Piece;
use super::theme;

/// The state between two lines of code.
#[derive(Clone, Debug)]
pub enum Highlighter {
    Code(Lines),
    Difference,
}

impl Highlighter {
    /// Begins a block of code in a language.
    pub fn new(language: &str) -> Self {
        match language {
            "diff" | "patch" => Highlighter::Difference,
            // Whatever follows the name is for other programs: `rust,ignore`.
            language => Highlighter::Code(Lines::new(language.split([',', ' ', '{']).next().unwrap_or_default())),
        }
    }

    /// Returns the line in pieces.
    pub fn line(&mut self, line: &str) -> Vec<Piece> {
        match self {
            Highlighter::Difference => vec![Piece::new(line, theme::of_difference(line))],
            Highlighter::Code(code) if !code.has_colours() => vec![Piece::new(line, theme::code())],
            Highlighter::Code(code) => {
                code.line(line).into_iter().map(|(text, token)| Piece::new(text, style(token))).collect()
            }
        }
    }
}

fn style(token: Option<Token>) -> Style {
    match token {
        Some(Token::Comment) => theme::comment(),
        Some(Token::String) => theme::string(),
        Some(Token::Number) => theme::number(),
        Some(Token::Keyword) => theme::keyword(),
        Some(Token::Function | Token::Type | Token::Member) | None => Style::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_differences_have_colours() {
        let styled = |language: &str, line: &str| -> Vec<(String, Style)> {
            let pieces = Highlighter::new(language).line(line);
            pieces.iter().map(|piece| (piece.text().to_owned(), piece.style)).collect()
        };
        let of = |text: &str, style| (text.to_owned(), style);
        let code = [of("let", theme::keyword()), of(" x = ", Style::default()), of("\"a\"", theme::string())];
        assert_eq!(styled("rust,ignore", "let x = \"a\""), code);
        assert_eq!(styled("diff", "+a"), [of("+a", theme::good())]);
        assert_eq!(styled("", "let"), [of("let", theme::code())]);
    }
}
