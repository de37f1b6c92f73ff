//! The styles of the interface. Only colours of the terminal's own palette, so light and dark backgrounds both work.

use ratatui::style::{Color, Modifier, Style};

/// What a text is.
pub fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

pub fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

pub fn italic() -> Style {
    Style::new().add_modifier(Modifier::ITALIC)
}

/// The user's own words, and what is selected.
pub fn accent() -> Style {
    Style::new().fg(Color::Cyan)
}

pub fn good() -> Style {
    Style::new().fg(Color::Green)
}

pub fn bad() -> Style {
    Style::new().fg(Color::Red)
}

pub fn heading() -> Style {
    bold().add_modifier(Modifier::UNDERLINED)
}

pub fn code() -> Style {
    Style::new().fg(Color::Cyan)
}

pub fn link() -> Style {
    Style::new().fg(Color::Blue).add_modifier(Modifier::UNDERLINED)
}

pub fn keyword() -> Style {
    Style::new().fg(Color::Magenta)
}

pub fn string() -> Style {
    Style::new().fg(Color::Green)
}

pub fn number() -> Style {
    Style::new().fg(Color::Cyan)
}

pub fn comment() -> Style {
    dim().add_modifier(Modifier::ITALIC)
}

/// The style of a line of a difference, by its first character.
pub fn of_difference(line: &str) -> Style {
    match line.bytes().next() {
        Some(b'+') => good(),
        Some(b'-') => bad(),
        Some(b'@') => accent(),
        _ => dim(),
    }
}
