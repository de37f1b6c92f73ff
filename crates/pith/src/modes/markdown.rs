//! Renders Markdown for a terminal, character by character as it arrives.
//!
//! Marks become styles; text is never reordered, and never held back longer than it takes to recognise a mark.

use super::styled::Styled;

const BOLD: &str = "\x1b[1m";
const CODE: &str = "\x1b[36m";
const DIM: &str = "\x1b[2m";
const HEADING: &str = "\x1b[1;35m";
const OFF: &str = "\x1b[0m";

/// The state between two pieces of text.
#[derive(Debug, Default)]
pub struct Markdown {
    /// The beginning of a line that may still become a mark.
    pending: String,
    place: Place,
    is_fenced: bool,
    is_heading: bool,
    is_bold: bool,
    is_code: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    LineStart,
    Inline,
}

impl Markdown {
    /// Appends the styled form of a piece.
    pub fn push(&mut self, piece: &str, out: &mut Styled) {
        for char in piece.chars() {
            match (char, self.place) {
                ('\n', _) => self.end_line(out),
                (char, Place::LineStart) => self.at_line_start(char, out),
                (char, Place::Inline) => self.inline(char, out),
            }
        }
    }

    /// Ends the text: appends what was held back, and turns styles off.
    pub fn finish(&mut self, out: &mut Styled) {
        self.decide_line_start(out);
        self.flush_star(out);
        if self.is_heading || self.is_bold || self.is_code || self.is_fenced {
            out.push_own(OFF);
        }
        *self = Markdown::default();
    }

    /// Holds back what may be the mark of a heading, a list, a quote or a fence.
    fn at_line_start(&mut self, char: char, out: &mut Styled) {
        self.pending.push(char);
        let mark = self.pending.trim_start();
        let is_open = match mark {
            "" | "`" | "``" | "-" | "*" | "+" | ">" => true,
            mark if mark.starts_with("```") => true,
            mark => !self.is_fenced && mark.len() <= 6 && mark.bytes().all(|byte| byte == b'#'),
        };
        if !is_open {
            self.decide_line_start(out);
        }
    }

    /// Decides what the held back beginning of a line is.
    fn decide_line_start(&mut self, out: &mut Styled) {
        self.place = Place::Inline;
        let held = std::mem::take(&mut self.pending);
        let mark = held.trim_start();
        let indent = &held[..held.len() - mark.len()];
        if self.is_fenced || mark.starts_with("```") {
            out.push(&held);
            return;
        }
        out.push(indent);
        let hashes = mark.bytes().take_while(|byte| *byte == b'#').count();
        if hashes > 0 && mark[hashes..].starts_with(' ') {
            self.is_heading = true;
            out.push_own(HEADING);
            return mark[hashes..].trim_start().chars().for_each(|char| self.inline(char, out));
        }
        match mark.strip_prefix(['-', '*', '+']).filter(|rest| rest.starts_with(' ')) {
            Some(rest) => {
                out.push_own("•");
                rest.chars().for_each(|char| self.inline(char, out));
            }
            None if mark.starts_with('>') => {
                [DIM, "│", OFF].into_iter().for_each(|own| out.push_own(own));
                mark[1..].chars().for_each(|char| self.inline(char, out));
            }
            None => mark.chars().for_each(|char| self.inline(char, out)),
        }
    }

    fn inline(&mut self, char: char, out: &mut Styled) {
        if self.is_fenced {
            return out.push_char(char);
        }
        match char {
            '`' => {
                self.flush_star(out);
                self.is_code = !self.is_code;
                self.restyle(out);
            }
            '*' if !self.is_code && self.pending == "*" => {
                self.pending.clear();
                self.is_bold = !self.is_bold;
                self.restyle(out);
            }
            '*' if !self.is_code => self.pending.push('*'),
            char => {
                self.flush_star(out);
                out.push_char(char);
            }
        }
    }

    /// Appends a held back star, which was not part of a mark.
    fn flush_star(&mut self, out: &mut Styled) {
        out.push(&std::mem::take(&mut self.pending));
    }

    fn restyle(&self, out: &mut Styled) {
        out.push_own(OFF);
        if self.is_heading {
            out.push_own(HEADING);
        }
        if self.is_bold {
            out.push_own(BOLD);
        }
        if self.is_code {
            out.push_own(CODE);
        }
    }

    fn end_line(&mut self, out: &mut Styled) {
        if self.place == Place::LineStart {
            if self.pending.trim_start().starts_with("```") {
                return self.fence(out);
            }
            self.decide_line_start(out);
        }
        self.flush_star(out);
        // Styles end with their line, even if the model did not close them.
        if self.is_heading || self.is_bold || self.is_code {
            out.push_own(OFF);
        }
        (self.is_heading, self.is_bold, self.is_code) = (false, false, false);
        self.next_line(out);
    }

    /// Handles a fence: code begins or ends.
    fn fence(&mut self, out: &mut Styled) {
        let line = std::mem::take(&mut self.pending);
        if self.is_fenced {
            out.push_own(OFF);
        }
        out.push_own(DIM);
        out.push(&line);
        out.push_own(OFF);
        out.push_own("\n");
        if !self.is_fenced {
            out.push_own(CODE);
        }
        self.is_fenced = !self.is_fenced;
        self.place = Place::LineStart;
    }

    fn next_line(&mut self, out: &mut Styled) {
        out.push_own("\n");
        self.place = Place::LineStart;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(pieces: &[&str]) -> String {
        let (mut markdown, mut out) = (Markdown::default(), Styled::new(true));
        pieces.iter().for_each(|piece| markdown.push(piece, &mut out));
        markdown.finish(&mut out);
        let names = [(OFF, "<off>"), (BOLD, "<b>"), (CODE, "<c>"), (DIM, "<d>"), (HEADING, "<h>")];
        names.iter().fold(out.as_str().to_owned(), |text, (code, name)| text.replace(code, name))
    }

    #[test]
    fn marks_become_styles() {
        let check = |text: &str, expected: &str| assert_eq!(render(&[text]), expected, "{text:?}");
        check("plain", "plain");
        check("## Title\nx", "<h>Title<off>\nx");
        check("a **b** c", "a <off><b>b<off> c");
        check("use `x*y`", "use <off><c>x*y<off>");
        check("- one\n  * two", "• one\n  • two");
        check("**bold** start", "<off><b>bold<off> start");
        check("> said", "<d>│<off> said");
        check("```rs\nlet **a** = 1;\n```\nb", "<d>```rs<off>\n<c>let **a** = 1;\n<off><d>```<off>\nb");
        check("2 * 3 * 4", "2 * 3 * 4");
        check("-5 and #5", "-5 and #5");
        check("an open `code\nnext", "an open <off><c>code<off>\nnext");
        check("*", "*");
        check("- \x1b[2J **\u{9b}b**", "• ␛[2J <off><b>\\u{9b}b<off>");
        check("\x1b]0;t\x07\n```\x1b[8m\n\x1bc", "␛]0;t␇\n<d>```␛[8m<off>\n<c>␛c<off>");
        check("```\nopen", "<d>```<off>\n<c>open<off>");
    }

    #[test]
    fn any_cut_gives_the_same_text() {
        let text = "# A **b** `c`\n\n- x\n* y\n```sh\n# no **mark**\n```\n> q *i* **b\nend*";
        let whole = render(&[text]);
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(render(&[&text[..at], &text[at..]]), whole, "cut at {at}");
        }
    }
}
