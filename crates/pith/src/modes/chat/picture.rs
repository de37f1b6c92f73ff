//! Pictures in the scrollback, on terminals that say by their environment that they draw them. Nothing is asked: a
//! terminal that does not answer would be waited for.

use base64::Engine as _;
use pith_protocol::ImageBlock;

/// Rows that a picture takes at most.
const MAX_ROWS: usize = 12;

/// Columns and rows of pixels that a cell stands for where the terminal does not say.
const CELL: (usize, usize) = (8, 16);

/// A larger picture, in characters of base64, is only named: keys would wait while it is sent.
const MAX_DATA: usize = 4 << 20;

/// Characters of one part of a picture, as the protocol of kitty allows.
const MAX_PART: usize = 4096;

/// How a terminal is sent pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Of kitty, Ghostty and others; PNG only.
    Kitty,
    /// Of iTerm2 and WezTerm.
    Iterm,
}

/// A picture as it is written, where the cursor stands in the first of its rows.
#[derive(Debug, PartialEq, Eq)]
pub struct Drawing {
    pub sequence: String,
    pub n_rows: usize,
}

impl Protocol {
    /// Returns what the terminal of an environment understands, if anything.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Protocol> {
        let is = |name: &str, values: &[&str]| variable(name).is_some_and(|value| values.contains(&value.as_str()));
        let has = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        // Multiplexers pass neither on.
        if has("TMUX") || has("STY") {
            return None;
        }
        if has("KITTY_WINDOW_ID") || is("TERM", &["xterm-kitty", "xterm-ghostty"]) || is("TERM_PROGRAM", &["ghostty"]) {
            return Some(Protocol::Kitty);
        }
        let is_iterm = is("TERM_PROGRAM", &["iTerm.app", "WezTerm"]) || is("LC_TERMINAL", &["iTerm2"]);
        is_iterm.then_some(Protocol::Iterm)
    }

    /// Draws a picture on a screen of so many columns; `None` if this terminal cannot, or if it is no picture.
    pub fn draw(self, picture: &ImageBlock, columns: usize) -> Option<Drawing> {
        let data = picture.data.as_str();
        // Nothing but base64 may stand inside a control sequence.
        let is_encoded = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
        if !is_encoded || data.is_empty() || data.len() > MAX_DATA {
            return None;
        }
        let size = png_size(data);
        let n_rows = size.map_or(MAX_ROWS, |size| fitting_rows(size, columns));
        let sequence = match self {
            Protocol::Kitty => kitty(data, size.map(|_| n_rows)?),
            Protocol::Iterm => {
                format!("\x1b]1337;File=inline=1;height={n_rows};width={columns};preserveAspectRatio=1:{data}\x07")
            }
        };
        Some(Drawing { sequence, n_rows })
    }
}

/// The picture in parts, none of which moves the cursor or is answered.
fn kitty(data: &str, n_rows: usize) -> String {
    let mut sequence = String::with_capacity(data.len() + data.len() / 100 + 64);
    let n_parts = data.len().div_ceil(MAX_PART);
    for at in 0..n_parts {
        let part = &data[at * MAX_PART..data.len().min((at + 1) * MAX_PART)];
        let how = if at == 0 { format!("a=T,f=100,r={n_rows},C=1,q=2,") } else { String::new() };
        let has_more = u8::from(at + 1 < n_parts);
        sequence.push_str(&format!("\x1b_G{how}m={has_more};{part}\x1b\\"));
    }
    sequence
}

/// The rows of a picture that is neither enlarged nor wider than the screen.
fn fitting_rows((width, height): (usize, usize), columns: usize) -> usize {
    let natural = height.div_ceil(CELL.1);
    // As high as it is where it is as wide as the screen.
    let narrow = (columns * CELL.0 * height) / (width.max(1) * CELL.1);
    natural.min(narrow).clamp(1, MAX_ROWS)
}

/// Width and height of a PNG, which stand at its beginning.
fn png_size(data: &str) -> Option<(usize, usize)> {
    let head = base64::engine::general_purpose::STANDARD.decode(data.get(..32)?).ok()?;
    let number = |at: usize| {
        let bytes = head.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_be_bytes(bytes)).ok()
    };
    let is_png = head.starts_with(b"\x89PNG\r\n\x1a\n");
    Some((number(16)?, number(20)?)).filter(|_| is_png)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32, n_more: usize) -> ImageBlock {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.resize(bytes.len() + n_more, 0);
        ImageBlock { data: base64::engine::general_purpose::STANDARD.encode(bytes), mime_type: "image/png".to_owned() }
    }

    #[test]
    fn the_environment_names_the_protocol() {
        let of = |variables: &[(&str, &str)]| {
            Protocol::of(|name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[("TERM", "xterm-kitty")]), Some(Protocol::Kitty));
        assert_eq!(of(&[("TERM_PROGRAM", "iTerm.app")]), Some(Protocol::Iterm));
        assert_eq!(of(&[("TERM_PROGRAM", "WezTerm"), ("TMUX", "/tmp/x")]), None);
        assert_eq!(of(&[("TERM", "xterm-256color")]), None);
    }

    #[test]
    fn a_picture_is_sent_in_parts() {
        let drawing = Protocol::Kitty.draw(&png(64, 32, 4000), 80).expect("drawn");
        assert_eq!(drawing.n_rows, 2);
        let parts: Vec<&str> = drawing.sequence.split("\x1b\\").collect();
        assert!(parts[0].starts_with("\x1b_Ga=T,f=100,r=2,C=1,q=2,m=1;iVBOR") && parts[1].starts_with("\x1b_Gm=0;"));
        let drawing = Protocol::Iterm.draw(&png(4000, 100, 9), 80).expect("drawn");
        assert!(drawing.n_rows == 1 && drawing.sequence.starts_with("\x1b]1337;File=inline=1;height=1;width=80;"));
    }

    #[test]
    fn what_is_no_picture_is_not_drawn() {
        let hostile = ImageBlock { data: "AAAA\x07\x1b]0;stolen\x07".to_owned(), mime_type: "image/png".to_owned() };
        assert_eq!(Protocol::Iterm.draw(&hostile, 80), None);
        let other = ImageBlock { data: "R0lGODlh".repeat(9), mime_type: "image/gif".to_owned() };
        assert_eq!(Protocol::Kitty.draw(&other, 80), None);
        assert!(Protocol::Iterm.draw(&other, 80).is_some());
        let empty = ImageBlock { data: String::new(), mime_type: String::new() };
        assert_eq!(Protocol::Iterm.draw(&empty, 80), None);
    }
}
