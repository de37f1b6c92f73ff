//! Terminal output: colours and styles become classes, every other control
//! sequence is dropped.

use std::io;

use crate::html::Html;

/// Writes what a terminal would have shown of a text.
pub(crate) fn terminal(html: &mut Html<'_>, text: &str) -> io::Result<()> {
    let mut style = Style::default();
    let mut rest = text;
    loop {
        let end = rest.find(['\u{1b}', '\u{9b}', '\r']).unwrap_or(rest.len());
        style.write(html, &rest[..end])?;
        rest = &rest[end..];
        let Some(control) = rest.chars().next() else { return Ok(()) };
        let behind = &rest[control.len_utf8()..];
        rest = match control {
            // Back to the start of the line: what follows gets a line of its own, nothing is lost.
            '\r' => {
                let behind = behind.trim_start_matches('\r');
                if !behind.starts_with('\n') {
                    style.write(html, "\n")?;
                }
                behind
            }
            '\u{9b}' => control_sequence(behind, &mut style),
            _ => escape(behind, &mut style),
        };
    }
}

/// Skips what follows an escape character, applying it if it is about style.
fn escape<'t>(text: &'t str, style: &mut Style) -> &'t str {
    match text.chars().next() {
        Some('[') => control_sequence(&text[1..], style),
        // A string for the terminal itself: title, clipboard, links. Without an end only its start goes.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let string = &text[1..];
            let bell = string.find('\u{7}').map(|at| (at, 1));
            let terminator = string.find("\u{1b}\\").map(|at| (at, 2));
            match bell.into_iter().chain(terminator).min() {
                Some((at, width)) => &string[at + width..],
                None => string,
            }
        }
        Some(c) if c.is_ascii() && !c.is_ascii_control() => {
            let text = text.trim_start_matches(|c| ('\u{20}'..='\u{2f}').contains(&c));
            text.strip_prefix(|c| ('\u{30}'..='\u{7e}').contains(&c)).unwrap_or(text)
        }
        _ => text,
    }
}

/// Skips parameters and final character of a control sequence.
fn control_sequence<'t>(text: &'t str, style: &mut Style) -> &'t str {
    let is_parameter = |c: char| ('\u{20}'..='\u{3f}').contains(&c);
    let end = text.find(|c| !is_parameter(c)).unwrap_or(text.len());
    let (parameters, rest) = text.split_at(end);
    match rest.chars().next() {
        Some('m') => {
            style.apply(parameters);
            &rest[1..]
        }
        Some('\u{40}'..='\u{7e}') => &rest[1..],
        _ => rest,
    }
}

/// How text looks at the moment.
#[derive(Clone, Copy, Default, PartialEq)]
struct Style {
    foreground: Option<u8>,
    background: Option<u8>,
    /// One bit for each of [`ATTRIBUTES`].
    attributes: u8,
}

/// Class, code that switches it on, code that switches it off.
const ATTRIBUTES: [(&str, u32, u32); 6] =
    [("bd ", 1, 22), ("dm ", 2, 22), ("it ", 3, 23), ("ul ", 4, 24), ("iv ", 7, 27), ("st ", 9, 29)];

#[rustfmt::skip]
const FOREGROUND: [&str; 16] =
    ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12", "f13", "f14", "f15"];

#[rustfmt::skip]
const BACKGROUND: [&str; 16] =
    [" g0", " g1", " g2", " g3", " g4", " g5", " g6", " g7", " g8", " g9", " g10", " g11", " g12", " g13", " g14", " g15"];

impl Style {
    fn write(&self, html: &mut Html<'_>, text: &str) -> io::Result<()> {
        if text.is_empty() || *self == Style::default() || !html.take_colour() {
            return html.text(text);
        }
        html.markup("<i class=\"")?;
        for (bit, (class, _, _)) in ATTRIBUTES.into_iter().enumerate() {
            if self.attributes & (1 << bit) != 0 {
                html.markup(class)?;
            }
        }
        if let Some(colour) = self.foreground {
            html.markup(FOREGROUND[usize::from(colour)])?;
        }
        if let Some(colour) = self.background {
            html.markup(BACKGROUND[usize::from(colour)])?;
        }
        html.markup("\">")?;
        html.text(text)?;
        html.markup("</i>")
    }

    /// Follows the parameters of an `m` sequence; those it does not know change nothing.
    fn apply(&mut self, parameters: &str) {
        if parameters.contains(|c: char| !c.is_ascii_digit() && c != ';' && c != ':') {
            return;
        }
        let mut codes = parameters.split(';');
        while let Some(code) = codes.next() {
            if let Some((code, colour)) = code.split_once(':') {
                self.set_colour(code, &mut colour.split(':').filter(|part| !part.is_empty()));
                continue;
            }
            match code.parse().unwrap_or(0) {
                0 => *self = Style::default(),
                code @ (30..=37 | 90..=97) => self.foreground = Some(basic(code)),
                code @ (40..=47 | 100..=107) => self.background = Some(basic(code - 10)),
                39 => self.foreground = None,
                49 => self.background = None,
                38 | 48 => self.set_colour(code, &mut codes),
                code => {
                    for (bit, (_, on, off)) in ATTRIBUTES.into_iter().enumerate() {
                        match code {
                            _ if code == on => self.attributes |= 1 << bit,
                            _ if code == off => self.attributes &= !(1 << bit),
                            _ => {}
                        }
                    }
                }
            }
        }
    }

    fn set_colour(&mut self, code: &str, parts: &mut dyn Iterator<Item = &str>) {
        let mut next = || parts.next().and_then(|part| part.parse::<u8>().ok());
        let colour = match next() {
            Some(5) => next().map(indexed),
            Some(2) => match (next(), next(), next()) {
                (Some(red), Some(green), Some(blue)) => Some(nearest(red, green, blue)),
                _ => None,
            },
            _ => None,
        };
        match code {
            "38" => self.foreground = colour,
            "48" => self.background = colour,
            _ => {}
        }
    }
}

fn basic(code: u32) -> u8 {
    match code {
        90.. => (code - 90 + 8) as u8,
        _ => (code - 30) as u8,
    }
}

/// Returns a colour of the 256-colour palette as one of the sixteen the page has.
fn indexed(index: u8) -> u8 {
    match index {
        0..16 => index,
        16..232 => {
            let level = |part: u8| if part == 0 { 0 } else { part * 40 + 55 };
            let cube = index - 16;
            nearest(level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        232.. => {
            let grey = (index - 232) * 10 + 8;
            nearest(grey, grey, grey)
        }
    }
}

/// Returns the closest of the sixteen colours, whose exact look is the page's choice.
fn nearest(red: u8, green: u8, blue: u8) -> u8 {
    let brightest = red.max(green).max(blue);
    let darkest = red.min(green).min(blue);
    if brightest - darkest < 32 {
        return match brightest {
            0..64 => 0,
            64..144 => 8,
            144..224 => 7,
            224.. => 15,
        };
    }
    let middle = brightest / 2 + darkest / 2;
    let bit = |part: u8, bit: u8| if part > middle { bit } else { 0 };
    let hue = bit(red, 1) | bit(green, 2) | bit(blue, 4);
    if brightest > 215 { hue + 8 } else { hue }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::to_string;

    fn check(text: &str, expected: &str) {
        assert_eq!(to_string(|html| terminal(html, text)), expected, "{text:?}");
    }

    #[test]
    fn colours_become_classes() {
        check("plain", "plain");
        check("\u{1b}[31mred\u{1b}[0m end", "<i class=\"f1\">red</i> end");
        check("\u{1b}[1;92mok\u{1b}[39;22m.", "<i class=\"bd f10\">ok</i>.");
        check("\u{1b}[44mb\u{1b}[m.", "<i class=\" g4\">b</i>.");
        check("\u{1b}[38;5;196mx\u{1b}[38;5;9my", "<i class=\"f9\">x</i><i class=\"f9\">y</i>");
        check("\u{1b}[38;2;10;200;10mx", "<i class=\"f2\">x</i>");
        check("\u{1b}[38:2::10:200:10mx", "<i class=\"f2\">x</i>");
        check("\u{1b}[38;5;240mx", "<i class=\"f8\">x</i>");
        check("\u{9b}32mx", "<i class=\"f2\">x</i>");
    }

    #[test]
    fn everything_else_is_dropped() {
        check("a\u{1b}[2Kb\u{1b}[10;20Hc\u{1b}[?25ld", "abcd");
        check("\u{1b}]0;title\u{7}x", "x");
        check("\u{1b}]8;;javascript:alert(1)\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link");
        check("\u{1b}Pq#0\u{1b}\\x\u{1b}(By\u{1b}=z", "xyz");
        check("\u{1b}[<script>m", "cript&gt;m");
        check("\u{1b}]never ended <b>", "never ended &lt;b&gt;");
        check("\u{1b}", "");
        check("\u{1b}[", "");
        check("\u{1b}[31", "");
        check("\u{1b}é", "é");
        check("\u{1b}\u{1b}[31mx", "<i class=\"f1\">x</i>");
    }

    #[test]
    fn text_is_escaped_inside_styles() {
        check("\u{1b}[31m</i><script>", "<i class=\"f1\">&lt;/i&gt;&lt;script&gt;</i>");
        check("\u{1b}[38;5;999mx\u{1b}[999mx", "xx");
    }

    #[test]
    fn carriage_returns_start_lines() {
        check("a\r\nb\rc\r\r\nd", "a\nb\nc\nd");
    }
}
