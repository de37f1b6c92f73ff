//! Converts terminal output to plain text by removing escape sequences and control characters.
//!
//! A state machine rather than a regular expression, because reads can cut sequences anywhere and the result must not
//! depend on that.

/// The longest escape sequence that is recognised; a stray introducer must not swallow the output.
const MAX_SEQUENCE: usize = 4096;

/// Removes escape sequences and control characters from one stream.
#[derive(Default)]
pub(crate) struct Sanitiser {
    state: State,
    /// The number of characters of the sequence being removed.
    length: usize,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After `ESC [`, until a final character.
    Control,
    /// A string such as a window title, until BEL or ST.
    String,
    /// ESC inside a string: the first half of ST.
    StringEscape,
}

impl Sanitiser {
    /// Appends the plain text of `text` to `out`.
    pub fn push(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if self.state == State::Text {
                let plain = rest.find(is_removed).unwrap_or(rest.len());
                out.push_str(&rest[..plain]);
                rest = &rest[plain..];
                let Some(c) = rest.chars().next() else { return };
                self.enter(c);
                rest = &rest[c.len_utf8()..];
            } else {
                self.length += 1;
                if self.inside(c, out) {
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
    }

    fn enter(&mut self, c: char) {
        self.length = 0;
        self.state = match c {
            '\u{1b}' => State::Escape,
            '\u{9b}' => State::Control,
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => State::String,
            _ => State::Text,
        };
    }

    /// Takes one character of a sequence; returns false if it is text after all.
    fn inside(&mut self, c: char, out: &mut String) -> bool {
        if self.length > MAX_SEQUENCE || c == '\n' {
            self.state = State::Text;
            if c == '\n' {
                out.push(c);
            }
            return c == '\n';
        }
        let (next, taken) = match (self.state, c) {
            (_, '\u{1b}') if self.state != State::String => (State::Escape, true),
            (State::Escape, '[') => (State::Control, true),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => (State::String, true),
            (State::Escape, ' '..='/') => (State::Escape, true),
            (State::Escape, '0'..='~') => (State::Text, true),
            (State::Control, ' '..='?') => (State::Control, true),
            (State::Control, '@'..='~') => (State::Text, true),
            (State::String, '\u{1b}') => (State::StringEscape, true),
            (State::String, '\u{7}' | '\u{9c}') => (State::Text, true),
            (State::String, _) => (State::String, true),
            (State::StringEscape, '\\') => (State::Text, true),
            // Not a sequence after all; what follows is text.
            (State::Text | State::Escape | State::Control | State::StringEscape, _) => (State::Text, false),
        };
        self.state = next;
        taken
    }
}

fn is_removed(c: char) -> bool {
    (c.is_control() && c != '\t' && c != '\n') || ('\u{fff9}'..='\u{fffb}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sanitised<'a>(pieces: impl IntoIterator<Item = &'a str>) -> String {
        let (mut sanitiser, mut out) = (Sanitiser::default(), String::new());
        for piece in pieces {
            sanitiser.push(piece, &mut out);
        }
        out
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(sanitised([text]), expected, "{text:?}");
    }

    #[test]
    fn sequences_and_controls_go() {
        check("\u{1b}[31mred\u{1b}[0m\r\nx\0y\u{fffd}z\n", "red\nxy\u{fffd}z\n");
        check("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "alink");
        check("\u{1b}(Bb\u{1b}=c\u{1b}[?25l\u{1b}[1;2Hd", "bcd");
        check("a\tb\u{8}c\u{7f}d\u{fff9}e", "a\tbcde");
        check("\u{9b}1mx", "x");
        check("progress 1%\rprogress 2%\n", "progress 1%progress 2%\n");
    }

    #[test]
    fn a_stray_introducer_swallows_little() {
        check("\u{1b}]never ended\nnext", "\nnext");
        check("\u{1b}é", "é");
        check("\u{1b}[1\u{1b}[2mx", "x");
        let long = format!("\u{1b}]{}", "x".repeat(10_000));
        assert!(sanitised([long.as_str()]).len() > 5000);
    }

    proptest! {
        #[test]
        fn the_pieces_do_not_matter(text in "(\u{1b}|\\[|\\]|\u{7}|\\\\|;|m|a|é|\n|3){0,30}", cut in 0usize..60) {
            let cut = text.floor_char_boundary(cut.min(text.len()));
            prop_assert_eq!(sanitised([&text[..cut], &text[cut..]]), sanitised([text.as_str()]));
        }
    }
}
