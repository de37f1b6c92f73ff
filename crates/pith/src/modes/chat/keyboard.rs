//! Reads keys on a thread of its own, and stops reading while another program has the terminal.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, poll};

use super::frames::Happening;

/// The thread that reads keys.
pub struct Keyboard {
    /// A byte written here asks the thread to pause.
    wake: OwnedFd,
    /// The thread says that it has paused.
    paused: Receiver<()>,
    /// Lets it go on; closing it ends the thread.
    resume: Sender<()>,
}

impl Keyboard {
    /// Starts to read.
    pub fn start(inputs: Sender<Event>, happenings: Sender<Happening>) -> io::Result<Keyboard> {
        let (woken, wake) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let ((say_paused, paused), (resume, resumed)) = (mpsc::channel(), mpsc::channel());
        let reader = Reader { inputs, happenings, woken, say_paused, resumed };
        std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
            if reader.run().is_err() {
                // The terminal is gone.
                let _ = reader.happenings.send(Happening::Line(None));
            }
        })?;
        Ok(Keyboard { wake, paused, resume })
    }

    /// Lets a function use the terminal alone.
    pub fn pause<R>(&self, use_terminal: impl FnOnce() -> R) -> R {
        let is_paused = rustix::io::write(&self.wake, b"p").is_ok() && self.paused.recv().is_ok();
        let result = use_terminal();
        if is_paused {
            let _ = self.resume.send(());
        }
        result
    }
}

struct Reader {
    inputs: Sender<Event>,
    /// Wakes the interface.
    happenings: Sender<Happening>,
    woken: OwnedFd,
    say_paused: Sender<()>,
    resumed: Receiver<()>,
}

impl Reader {
    fn run(&self) -> io::Result<()> {
        loop {
            let stdin = rustix::stdio::stdin();
            let mut sources = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
            match poll(&mut sources, None) {
                Err(rustix::io::Errno::INTR) => continue,
                result => drop(result?),
            }
            let (keys, wake) = (sources[0].revents(), sources[1].revents());
            if wake.contains(PollFlags::IN) {
                // What was typed until now is told before the thread says that it has paused.
                if keys.contains(PollFlags::IN) && !self.tell()? {
                    return Ok(());
                }
                rustix::io::read(&self.woken, &mut [0; 1])?;
                if self.say_paused.send(()).is_err() || self.resumed.recv().is_err() {
                    return Ok(());
                }
                continue;
            }
            if wake.intersects(PollFlags::HUP | PollFlags::ERR) {
                return Ok(());
            }
            if keys.intersects(PollFlags::HUP | PollFlags::ERR) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if !self.tell()? {
                return Ok(());
            }
        }
    }

    /// Tells what was typed; `false` if nobody listens any more.
    fn tell(&self) -> io::Result<bool> {
        // With no time at all crossterm does not look.
        while event::poll(Duration::from_millis(1))? {
            let is_heard = self.inputs.send(event::read()?).is_ok() && self.happenings.send(Happening::Typed).is_ok();
            if !is_heard {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
