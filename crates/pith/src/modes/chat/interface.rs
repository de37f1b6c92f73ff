//! The loop that owns the terminal: what happens changes the state, the state is drawn, at most sixty times a second, and
//! at once when a key was pressed. However much the session says, no key waits for more than one piece of it.

use std::io::{self, Stdout, Write};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use pith_protocol::Inbound;
use tokio::sync::mpsc;

use super::app::{Action, App, Setup, decision};
use super::console;
use super::frames::{Backlog, Happening};
use super::keyboard::Keyboard;
use super::surface::{Looks, Surface, encode_row};
use super::view;
use crate::modes::client::{answer_frame, line_of};

/// Drawn at most this often, unless a key was pressed or many rows wait.
const FRAME: Duration = Duration::from_millis(16);

/// What has gathered is taken in for this long before it is drawn.
const BATCH: Duration = Duration::from_millis(8);

/// Characters for the scrollback that are written at once: a key that comes meanwhile waits for the terminal to read them.
const MAX_WRITTEN: usize = 16 << 10;

/// The ends of the channels between the chat and the session.
pub struct Channels {
    /// From the outbox, the keyboard and signals.
    pub happenings: Receiver<Happening>,
    /// From the keyboard. Keys overtake frames: the user has pressed them for what is on the screen.
    pub inputs: Receiver<crossterm::event::Event>,
    pub backlog: Backlog,
    /// To the session; closing it ends the session.
    pub session: mpsc::Sender<Inbound>,
}

/// The chat on a terminal.
pub struct Interface {
    app: App,
    surface: Surface<Stdout>,
    keyboard: Keyboard,
    channels: Channels,
    looks: Looks,
    /// Whether a key was pressed whose effect is not drawn.
    is_urgent: bool,
    /// Whether the signal that continued the process has been dealt with before it was heard of.
    has_continued: bool,
}

impl Interface {
    /// Takes the terminal.
    pub fn start(setup: Setup, channels: Channels, keyboard: Keyboard, looks: Looks) -> io::Result<Self> {
        console::enter()?;
        let surface = Surface::new(io::stdout(), looks);
        let app = App::new(setup);
        Ok(Interface { app, surface, keyboard, channels, looks, is_urgent: false, has_continued: false })
    }

    /// Serves the user until they leave or the session ends, then puts the terminal back.
    pub fn run(mut self) -> io::Result<()> {
        let served = self.serve();
        let farewell = self.app.farewell();
        let cleared = self.surface.clear();
        let text: String = farewell.iter().map(|row| encode_row(row, self.looks) + "\r\n").collect();
        let told = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
        console::leave();
        served.and(cleared).and(told)
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut drawn_at: Option<Instant> = None;
        let mut is_changed = true;
        loop {
            if self.act()? == Next::Leave {
                return Ok(());
            }
            let due = drawn_at.map_or(Duration::ZERO, |at| FRAME.saturating_sub(at.elapsed()));
            // Keys that have gathered are drawn together.
            if !due.is_zero() && self.take_key() {
                continue;
            }
            if is_changed && due.is_zero() || self.is_urgent || self.app.n_rows() > self.max_rows() {
                self.draw()?;
                (drawn_at, is_changed) = (Some(Instant::now()), self.app.n_rows() > 0);
                continue;
            }
            let wait =
                if is_changed { Some(due) } else { self.app.is_moving().then_some(Duration::from_millis(view::TICK)) };
            match self.next(wait) {
                Ok(happening) => {
                    if self.take(happening) == Next::Leave {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            is_changed = true;
        }
    }

    fn next(&self, wait: Option<Duration>) -> Result<Happening, RecvTimeoutError> {
        match wait {
            Some(wait) => self.channels.happenings.recv_timeout(wait),
            None => self.channels.happenings.recv().map_err(RecvTimeoutError::from),
        }
    }

    /// Takes what has happened, and what has gathered behind it.
    fn take(&mut self, first: Happening) -> Next {
        let began = Instant::now();
        self.app.now = began;
        let mut next = Some(first);
        while let Some(happening) = next {
            match happening {
                Happening::Frame(frame) => {
                    self.channels.backlog.done(&frame);
                    self.app.frame(frame);
                }
                Happening::Resized | Happening::Typed => {}
                Happening::Continued if std::mem::take(&mut self.has_continued) => {}
                Happening::Continued => {
                    self.surface.forget();
                    // A terminal that cannot be taken any more fails when it is drawn.
                    let _ = console::enter();
                }
                Happening::Printed(line) => self.app.printed(&line),
                Happening::Line(None) | Happening::Ended => return Next::Leave,
                // Keys are read one by one; this signal is not from the keyboard.
                Happening::Line(Some(_)) | Happening::Interrupted => {}
            }
            let is_enough = self.take_key() || self.app.n_rows() > self.max_rows() || began.elapsed() >= BATCH;
            next = if is_enough { None } else { self.channels.happenings.try_recv().ok() };
        }
        Next::Go
    }

    /// Takes one key, if any waits: it may need something done before the next one.
    fn take_key(&mut self) -> bool {
        let Ok(event) = self.channels.inputs.try_recv() else { return false };
        self.app.now = Instant::now();
        self.app.input(event);
        self.is_urgent = true;
        true
    }

    /// Finished rows that are written at once.
    fn max_rows(&self) -> usize {
        MAX_WRITTEN / self.app.width()
    }

    fn draw(&mut self) -> io::Result<()> {
        self.app.now = Instant::now();
        let size = console::size();
        if size != self.app.setup.size {
            self.surface.resized(size.0);
            self.app.setup.size = size;
        }
        self.is_urgent = false;
        let rows = self.app.take_first_rows(self.max_rows().max(1));
        self.surface.draw(&rows, &view::draw(&self.app))?;
        if self.app.has_new_question() {
            self.take_earlier_keys();
        }
        Ok(())
    }

    /// Takes the keys that were pressed before a question stood on the screen: they are not for it.
    fn take_earlier_keys(&mut self) {
        self.keyboard.pause(|| ());
        while self.take_key() {}
        self.app.question_seen();
        self.is_urgent = true;
    }

    /// Does what the state asks for.
    fn act(&mut self) -> io::Result<Next> {
        for action in self.app.take_actions() {
            match action {
                Action::Send(command) => self.send(line_of(&command)),
                Action::Answer { id, answer } => self.send(line_of(&answer_frame(&id, &answer))),
                Action::Decide { id, option, message } => {
                    self.send(line_of(&decision(&id, option, message.as_deref())))
                }
                Action::Edit { id, text } => {
                    let edited = self.edit(&text)?;
                    self.app.edited(&id, edited);
                }
                Action::Title(title) => self.surface.set_title(&title)?,
                Action::Suspend => {
                    self.surface.clear()?;
                    self.keyboard.pause(|| {
                        console::leave();
                        console::suspend();
                    });
                    console::enter()?;
                    self.has_continued = true;
                }
                Action::Redraw => self.surface.clear()?,
                Action::Leave => return Ok(Next::Leave),
            }
        }
        Ok(Next::Go)
    }

    /// A session that has ended says so itself.
    fn send(&self, line: Inbound) {
        let _ = self.channels.session.blocking_send(line);
    }

    /// Opens a text in the user's editor; `None` if there is no result.
    fn edit(&mut self, text: &str) -> io::Result<Option<String>> {
        self.surface.clear()?;
        let edited = self.keyboard.pause(|| {
            console::leave();
            edit_in(&editor().unwrap_or_default(), text)
        });
        self.surface.forget();
        console::enter()?;
        Ok(edited.ok().flatten())
    }
}

/// What the loop does next.
#[derive(PartialEq, Eq)]
enum Next {
    Go,
    Leave,
}

/// The user's editor, if one is configured.
pub fn editor() -> Option<String> {
    let named = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok());
    named.filter(|editor| !editor.trim().is_empty())
}

fn edit_in(editor: &str, text: &str) -> io::Result<Option<String>> {
    let file = std::env::temp_dir().join(format!("pith-{}.md", pith_store::new_session_id()));
    std::fs::write(&file, text)?;
    // The variable may hold a command with arguments.
    let script = format!("{editor} \"$1\"");
    let status = Command::new("sh").args(["-c", &script, "sh"]).arg(&file).status();
    let edited =
        status.and_then(|status| if status.success() { std::fs::read_to_string(&file).map(Some) } else { Ok(None) });
    // A file that cannot be removed is left to the system's clean-up.
    let _ = std::fs::remove_file(&file);
    edited
}
