//! What the streams of the process are connected to.

use std::io::IsTerminal;
use std::os::fd::AsFd;

/// What a stream can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    pub is_terminal: bool,
    /// Whether the cursor can be moved, so that a line can be drawn again.
    pub can_redraw: bool,
    pub has_colour: bool,
}

impl Abilities {
    /// Determines the abilities of a stream, from the environment as well.
    pub fn of(stream: &impl IsTerminal) -> Self {
        let is_terminal = stream.is_terminal();
        let can_redraw = is_terminal && std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb");
        let wants_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Abilities { is_terminal, can_redraw, has_colour: can_redraw && wants_colour }
    }
}

/// The number of columns of a terminal.
pub fn width(stream: impl AsFd) -> usize {
    const USUAL: usize = 80;
    let size = rustix::termios::tcgetwinsize(stream).ok();
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(USUAL)
}
