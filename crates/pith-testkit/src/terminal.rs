//! A program in a real pseudo-terminal, with keys typed to it and its output read.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use regex::Regex;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::{TempHome, timeout};

/// A program and its output.
pub struct Terminal {
    keyboard: File,
    shown: Arc<Shown>,
    child: Child,
    /// Text before this index has been waited for.
    cursor: usize,
}

#[derive(Default)]
struct Shown {
    bytes: Mutex<Vec<u8>>,
    more: Condvar,
}

impl Terminal {
    /// Starts a program with its own terminal, in the work directory of a home.
    #[track_caller]
    pub fn spawn(program: &str, arguments: &[&str], home: &TempHome) -> Terminal {
        Terminal::spawn_with(program, arguments, home, &[])
    }

    /// Starts pith as a chat and waits for its first prompt.
    #[track_caller]
    pub fn chat(pith: &str, arguments: &[&str], home: &TempHome) -> Terminal {
        let mut terminal = Terminal::spawn(pith, arguments, home);
        terminal.wait("/help lists commands");
        terminal.wait("›");
        terminal
    }

    /// Leaves the chat with a command: a typed line is always read, Ctrl-D only on a prompt.
    #[track_caller]
    pub fn leave(mut self) {
        self.type_keys("/quit\r");
        assert_eq!(self.exit_code(), 0);
    }

    /// Starts a program with further environment variables.
    #[track_caller]
    pub fn spawn_with(program: &str, arguments: &[&str], home: &TempHome, variables: &[(&str, &str)]) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a pseudo-terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("a fresh pseudo-terminal can be unlocked");
        let name = ptsname(&master, Vec::new()).expect("it has a name").into_string().expect("an ASCII name");
        let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(master.as_fd(), size).expect("a terminal has a size");
        let slave = OpenOptions::new().read(true).write(true).open(Path::new(&name)).expect("the other end opens");
        let end = || Stdio::from(slave.try_clone().expect("descriptors are left"));
        // `setsid` makes the terminal the controlling one, so that Ctrl-C is a signal.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", program]).args(arguments);
        command.env_clear().envs(home.environment()).env("TERM", "xterm").current_dir(home.work());
        command.envs(variables.iter().copied());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("setsid is installed");
        drop(slave);
        let keyboard = File::from(master);
        let shown = Arc::new(Shown::default());
        let (reader, sink) = (keyboard.try_clone().expect("descriptors are left"), Arc::clone(&shown));
        thread::spawn(move || sink.read(reader));
        Terminal { keyboard, shown, child, cursor: 0 }
    }

    /// Types text or keys such as `\r` (Enter) and `\x03` (Ctrl-C).
    #[track_caller]
    pub fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Waits until `text` is shown, after what was waited for before.
    #[track_caller]
    pub fn wait(&mut self, text: &str) {
        self.wait_all(&[text]);
    }

    /// Waits until all these texts are shown, after what was waited for before: one frame may show them in any order.
    #[track_caller]
    pub fn wait_all(&mut self, texts: &[&str]) {
        let deadline = Instant::now() + timeout();
        let mut bytes = self.shown.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let plain = plain(&bytes);
            let rest = plain.get(self.cursor..).unwrap_or_default();
            let ends: Option<Vec<usize>> = texts.iter().map(|text| Some(rest.find(text)? + text.len())).collect();
            if let Some(end) = ends.and_then(|ends| ends.into_iter().max()) {
                self.cursor += end;
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{texts:?} were never shown; the screen: {plain}");
            bytes = self.shown.more.wait_timeout(bytes, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Types keys and returns how long it takes until the terminal is sent a text that it was not sent before.
    #[track_caller]
    pub fn time_until(&mut self, keys: &str, text: &str) -> Duration {
        let from = self.shown.bytes.lock().unwrap_or_else(PoisonError::into_inner).len();
        let start = Instant::now();
        self.type_keys(keys);
        self.wait_bytes(text, from);
        start.elapsed()
    }

    /// Waits until the bytes of a text, without control sequences between them, are written after a place.
    #[track_caller]
    pub fn wait_bytes(&self, text: &str, mut from: usize) {
        let deadline = Instant::now() + timeout();
        let mut bytes = self.shown.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        while !bytes[from..].windows(text.len()).any(|part| part == text.as_bytes()) {
            from = from.max(bytes.len().saturating_sub(text.len()));
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{text:?} was never written");
            bytes = self.shown.more.wait_timeout(bytes, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether a text is among the last bytes that were written.
    pub fn has_written(&self, text: &str) -> bool {
        const LAST: usize = 64 << 10;
        let bytes = self.shown.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        bytes[bytes.len().saturating_sub(LAST)..].windows(text.len()).any(|part| part == text.as_bytes())
    }

    /// The id of the process: `setsid` becomes the program.
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Everything shown so far, without control sequences.
    pub fn screen(&self) -> String {
        plain(&self.shown.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns everything that was written to the terminal so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.shown.bytes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the program has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_some()
    }

    /// Waits for the end and returns the exit code.
    #[track_caller]
    pub fn exit_code(&mut self) -> i32 {
        let deadline = Instant::now() + timeout();
        loop {
            match self.child.try_wait().expect("a child can be waited for") {
                Some(status) => return status.code().unwrap_or(-1),
                None if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                None => panic!("still running; the screen: {}", self.screen()),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Closing the keyboard hangs up on the program; this is for one that ignores that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Shown {
    fn read(&self, mut from: File) {
        let mut chunk = [0; 4096];
        // The read fails when the last holder of the other end is gone.
        while let Ok(n_bytes @ 1..) = from.read(&mut chunk) {
            self.bytes.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&chunk[..n_bytes]);
            self.more.notify_all();
        }
    }
}

/// The text without control sequences and carriage returns.
fn plain(bytes: &[u8]) -> String {
    let sequences = Regex::new("\x1b\\[[0-9;?]*[A-Za-z]|\r").expect("a valid pattern");
    sequences.replace_all(&String::from_utf8_lossy(bytes), "").into_owned()
}
