//! The only kind of text that the screen accepts: pith's own control sequences, and other text made visible.

use std::borrow::Cow;

use pith_visible::{push_visible, visible};

/// Text that is ready to be written to a stream.
#[derive(Debug)]
pub struct Styled {
    text: String,
    is_terminal: bool,
}

impl Styled {
    /// Starts a text for a terminal, which obeys control sequences, or for another stream, which gets text unchanged.
    pub fn new(is_terminal: bool) -> Self {
        Styled { text: String::new(), is_terminal }
    }

    /// Appends pith's own text, control sequences included.
    pub fn own(mut self, text: &'static str) -> Self {
        self.push_own(text);
        self
    }

    /// Appends any text; control characters in it are made visible.
    pub fn text(mut self, text: &str) -> Self {
        self.push(text);
        self
    }

    /// Like [`Styled::own`], in place.
    pub fn push_own(&mut self, text: &'static str) {
        self.text.push_str(text);
    }

    /// Like [`Styled::text`], in place.
    pub fn push(&mut self, text: &str) {
        let shown = if self.is_terminal { visible(text) } else { Cow::Borrowed(text) };
        self.text.push_str(&shown);
    }

    /// Appends one character of a text.
    pub fn push_char(&mut self, char: char) {
        if self.is_terminal {
            push_visible(char, &mut self.text);
        } else {
            self.text.push(char);
        }
    }

    /// The text to write.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pith_own_sequences_reach_a_terminal() {
        let styled = |is_terminal| Styled::new(is_terminal).own("\x1b[2m").text("a\x1b[2J\r\nb").own("\x1b[0m");
        assert_eq!(styled(true).as_str(), "\x1b[2ma␛[2J\nb\x1b[0m");
        assert_eq!(styled(false).as_str(), "\x1b[2ma\x1b[2J\r\nb\x1b[0m");
    }
}
