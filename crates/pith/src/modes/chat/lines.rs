//! The chat on a terminal that cannot redraw (`TERM=dumb`): lines in, lines out.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::Sender;
use std::time::Instant;

use super::app::{Action, App, Setup, decision};
use super::frames::Happening;
use super::interface::Channels;
use crate::modes::client::{answer_frame, line_of};

/// Reads lines on a thread of its own, which ends with the process.
pub fn read(happenings: Sender<Happening>) -> io::Result<()> {
    std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if happenings.send(Happening::Line(Some(line))).is_err() {
                return;
            }
        }
        let _ = happenings.send(Happening::Line(None));
    })?;
    Ok(())
}

/// Serves the user until they leave or the session ends.
pub fn run(setup: Setup, channels: &Channels) -> io::Result<()> {
    let mut app = App::new(setup);
    // Whether a prompt stands at the end of the screen.
    let mut is_prompted = false;
    loop {
        let mut is_over = false;
        for action in app.take_actions() {
            match action {
                Action::Send(command) => drop(channels.session.blocking_send(line_of(&command))),
                Action::Answer { id, answer } => {
                    drop(channels.session.blocking_send(line_of(&answer_frame(&id, &answer))));
                }
                Action::Decide { id, option, message } => {
                    let frame = decision(&id, option, message.as_deref());
                    drop(channels.session.blocking_send(line_of(&frame)));
                }
                Action::Leave => is_over = true,
                // Nothing is on the screen that could be changed.
                Action::Edit { .. } | Action::Title(_) | Action::Suspend | Action::Redraw => {}
            }
        }
        let rows = if is_over { app.farewell() } else { app.take_rows() };
        let mut text: String = rows.iter().map(|row| row.text().trim_end().to_owned() + "\n").collect();
        if !text.is_empty() && std::mem::take(&mut is_prompted) {
            text.insert(0, '\n');
        }
        if !is_over && !is_prompted && !app.is_moving() {
            text.push_str("› ");
            is_prompted = true;
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()?;
        drop(stdout);
        app.question_seen();
        if is_over {
            return Ok(());
        }
        let Ok(happening) = channels.happenings.recv() else { return Ok(()) };
        app.now = Instant::now();
        match happening {
            Happening::Frame(frame) => {
                channels.backlog.done(&frame);
                app.frame(frame);
            }
            Happening::Line(line) => {
                is_prompted = false;
                app.line(line);
            }
            Happening::Interrupted => app.interrupted(),
            Happening::Printed(line) => app.printed(&line),
            Happening::Ended => return Ok(()),
            Happening::Typed | Happening::Resized | Happening::Continued => {}
        }
    }
}
