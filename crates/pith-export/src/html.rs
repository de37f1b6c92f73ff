//! The writer of the page; nothing reaches the page without it.
//!
//! Markup must be a literal of the program; data goes through an escape. So no
//! string of a session can end up as a tag, an attribute, a style or a script,
//! whatever it contains.

use std::io::{self, Write};

/// The page under construction.
pub(crate) struct Html<'w> {
    out: &'w mut dyn Write,
    colours: usize,
}

/// Browsers take seconds for millions of elements, and a long session has that many words of code.
const MAX_COLOURS: usize = 250_000;

impl<'w> Html<'w> {
    pub fn new(out: &'w mut dyn Write) -> Self {
        Html { out, colours: MAX_COLOURS }
    }

    /// Writes markup of ours.
    pub fn markup(&mut self, markup: &'static str) -> io::Result<()> {
        self.out.write_all(markup.as_bytes())
    }

    /// Writes data as text, or inside a quoted attribute.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        let bytes = text.as_bytes();
        let mut written = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            let (escape, width): (&str, usize) = match byte {
                b'&' => ("&amp;", 1),
                b'<' => ("&lt;", 1),
                b'>' => ("&gt;", 1),
                b'"' => ("&quot;", 1),
                b'\'' => ("&#39;", 1),
                b'\n' | b'\t' => continue,
                // A line end of Windows; the newline follows.
                b'\r' if bytes.get(at + 1) == Some(&b'\n') => ("", 1),
                0..0x20 => (CONTROL_PICTURES[byte as usize], 1),
                0x7F => ("\u{2421}", 1),
                // U+0080 to U+009F, which no browser shows.
                0xC2 if matches!(bytes.get(at + 1), Some(0x80..=0x9F)) => ("\u{FFFD}", 2),
                _ => continue,
            };
            self.out.write_all(&bytes[written..at])?;
            self.out.write_all(escape.as_bytes())?;
            written = at + width;
        }
        self.out.write_all(&bytes[written..])
    }

    /// Writes ` name="value"` inside a tag.
    pub fn attribute(&mut self, name: &'static str, value: &str) -> io::Result<()> {
        write!(self.out, " {name}=\"")?;
        self.text(value)?;
        self.markup("\"")
    }

    /// Writes a whole number, which needs no escape anywhere.
    pub fn number(&mut self, number: usize) -> io::Result<()> {
        write!(self.out, "{number}")
    }

    /// Writes an element around text.
    pub fn element(&mut self, open: &'static str, text: &str, close: &'static str) -> io::Result<()> {
        self.markup(open)?;
        self.text(text)?;
        self.markup(close)
    }

    /// Whether one more word of code may have a colour.
    pub fn take_colour(&mut self) -> bool {
        let may = self.colours > 0;
        self.colours = self.colours.saturating_sub(1);
        may
    }

    /// Writes bytes in base64, whose alphabet is harmless everywhere but in a URL.
    pub fn base64(&mut self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let engine = &base64::engine::general_purpose::STANDARD;
        let mut encoder = base64::write::EncoderWriter::new(&mut *self.out, engine);
        fill(&mut encoder)?;
        encoder.finish().map(|_| ())
    }
}

/// Returns the fragment that leads to an entry: ids are kept where they are plain, everything else is spelled in hex.
pub(crate) fn anchor(id: &str) -> String {
    use std::fmt::Write as _;
    let mut anchor = String::with_capacity(id.len() + 2);
    anchor.push_str("e-");
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => anchor.push(char::from(byte)),
            _ => write!(anchor, ".{byte:02x}").expect("a string takes every character"),
        }
    }
    anchor
}

/// Visible pictures for the control characters below the space.
const CONTROL_PICTURES: [&str; 32] = [
    "␀", "␁", "␂", "␃", "␄", "␅", "␆", "␇", "␈", "␉", "␊", "␋", "␌", "␍", "␎", "␏", "␐", "␑", "␒", "␓", "␔", "␕", "␖",
    "␗", "␘", "␙", "␚", "␛", "␜", "␝", "␞", "␟",
];

/// Renders into a string.
#[cfg(test)]
pub(crate) fn to_string(fill: impl FnOnce(&mut Html<'_>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    fill(&mut Html::new(&mut out)).expect("memory takes every byte");
    String::from_utf8(out).expect("pages are UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_a_text_position() {
        let check = |text: &str, expected: &str| assert_eq!(to_string(|html| html.text(text)), expected);
        check("plain é 😀\n\tnext", "plain é 😀\n\tnext");
        check("</script><script>x</script>", "&lt;/script&gt;&lt;script&gt;x&lt;/script&gt;");
        check("a & b &amp; c", "a &amp; b &amp;amp; c");
        check("<!--", "&lt;!--");
        check("\0\u{1b}[31m\u{7f}", "␀␛[31m␡");
        check("a\r\nb\rc", "a\nb␍c");
        check("\u{9b}31m \u{a0} \u{85}", "\u{fffd}31m \u{a0} \u{fffd}");
        check("\u{2028}", "\u{2028}");
    }

    #[test]
    fn nothing_leaves_an_attribute() {
        let check =
            |value: &str, expected: &str| assert_eq!(to_string(|html| html.attribute("title", value)), expected);
        check("a\" onload=\"x", " title=\"a&quot; onload=&quot;x\"");
        check("it's <b>", " title=\"it&#39;s &lt;b&gt;\"");
    }

    #[test]
    fn colours_run_out() {
        let mut out = Vec::new();
        let mut html = Html::new(&mut out);
        assert_eq!((0..2 * MAX_COLOURS).filter(|_| html.take_colour()).count(), MAX_COLOURS);
    }

    #[test]
    fn anchors_are_plain_and_distinct() {
        let check = |id: &str, expected: &str| assert_eq!(anchor(id), expected);
        check("902fc257", "e-902fc257");
        check("a\"b", "e-a.22b");
        check("a.22b", "e-a.2e22b");
        check("é x", "e-.c3.a9.20x");
        check("", "e-");
    }
}
