//! The `bash` command of the protocol: a shell command of the host, not of the model.

use std::path::PathBuf;
use std::time::Duration;

use pith_secrets::Stream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bash::{Started, start};
use crate::command::capture::{Capture, Log};
use crate::command::decode::Decoder;
use crate::command::environment::Caller;
pub use crate::command::environment::{CommandEnv, SESSION_VARIABLES, Shell};
use crate::command::follow::{Ending, Listener, follow};
use crate::command::limits::CommandLimits;
use crate::command::sanitise::Sanitiser;
pub use crate::command::spill::OutputDir;
use crate::process::{Exit, not_run};
use crate::workbench::Workbench;

/// The shortest interval between two pieces of output.
const DELTA_INTERVAL: Duration = Duration::from_millis(50);
/// A command whose unsent output reaches this size waits for the host.
const MAX_DELTA: usize = 1 << 20;

/// The result of a shell command of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserBash {
    /// Plain text; only its end if it is too long.
    pub output: String,
    /// 128 plus the signal number if a signal ended the command; `None` if it was cancelled.
    pub exit_code: Option<i32>,
    pub cancelled: bool,
    pub truncated: bool,
    /// The complete plain text, if the output is too long.
    pub full_output_path: Option<PathBuf>,
    /// Lines are counted as xcsh hosts expect: one more than there are newlines, none in an empty text.
    pub total_lines: usize,
    pub total_bytes: usize,
    pub output_lines: usize,
    pub output_bytes: usize,
    /// Plain text at the end that `on_delta` has not accepted.
    pub unsent: String,
}

/// Runs `command` to its end. `on_delta` gets the plain text in order, piece by piece, and returns whether it accepted
/// the piece; while it does not, the command waits. Text that was never accepted is in the result.
///
/// Fails only if the shell cannot be started; a non-zero exit and an abort are results.
pub async fn run_user_command(
    workbench: &Workbench,
    command: &str,
    cancel: &CancellationToken,
    on_delta: impl FnMut(&str) -> bool,
) -> Result<UserBash, String> {
    let Started { running, .. } = start(workbench, command, Caller::Host, None)?;
    let mut transcript = Transcript::new(workbench, on_delta);
    let ending = follow(running, &mut transcript, cancel, None, &CommandLimits::default())
        .await
        .map_err(|error| not_run(&error))?;
    Ok(transcript.finish(ending))
}

/// The output of a command that an extension runs, treated as [`run_user_command`] treats its own.
pub struct UserOutput<'a, F>(Transcript<'a, F>);

impl<'a, F: FnMut(&str) -> bool> UserOutput<'a, F> {
    /// Creates the output. `on_delta` works as in [`run_user_command`].
    pub fn new(workbench: &'a Workbench, on_delta: F) -> Self {
        UserOutput(Transcript::new(workbench, on_delta))
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.output(bytes);
        self.flush_if_due();
    }

    /// Passes output on that has waited long enough. Must be called from time to time.
    pub fn flush_if_due(&mut self) {
        if self.0.flush_at().is_some_and(|due| due <= Instant::now()) {
            self.0.flush();
        }
    }

    /// Called when the command has ended.
    pub fn finish(self, exit_code: Option<i32>) -> UserBash {
        UserBash { exit_code, ..self.0.finish(Ending::Exited(Exit::Code(0))) }
    }

    /// Called when the command was cancelled.
    pub fn cancel(self) -> UserBash {
        self.0.finish(Ending::Cancelled)
    }
}

struct Transcript<'a, F> {
    decoder: Decoder,
    sanitiser: Sanitiser,
    /// The plain text without secrets: codes for colours must not hide one.
    masked: Stream,
    capture: Capture<'a>,
    /// Plain text that was not passed on yet.
    pending: String,
    last_delta: Option<Instant>,
    on_delta: F,
}

impl<'a, F: FnMut(&str) -> bool> Transcript<'a, F> {
    fn new(workbench: &'a Workbench, on_delta: F) -> Self {
        Transcript {
            decoder: Decoder::without_mark(),
            sanitiser: Sanitiser::default(),
            masked: Stream::new(workbench.secrets.clone()),
            capture: Capture::new(&workbench.output_dir),
            pending: String::new(),
            last_delta: None,
            on_delta,
        }
    }

    fn finish(mut self, ending: Ending) -> UserBash {
        let (mut plain, before) = (String::new(), self.pending.len());
        let (sanitiser, pending) = (&mut self.sanitiser, &mut self.pending);
        self.decoder.finish(|text| sanitiser.push(text, &mut plain));
        self.masked.push(plain.as_bytes(), |bytes| pending.push_str(&String::from_utf8_lossy(bytes)));
        self.masked.finish(|bytes| pending.push_str(&String::from_utf8_lossy(bytes)));
        self.keep(before);
        if !self.pending.is_empty() {
            self.flush();
        }
        let (total_lines, total_bytes) = (self.capture.tail.opened_lines(), self.capture.tail.total().bytes);
        let captured = self.capture.finish();
        UserBash {
            exit_code: match ending {
                Ending::Exited(exit) => Some(exit.code()),
                Ending::TimedOut { .. } | Ending::Cancelled | Ending::Limited(_) => None,
            },
            cancelled: ending == Ending::Cancelled,
            truncated: captured.truncation.is_some(),
            full_output_path: match captured.log {
                Log::At(path) => Some(path),
                Log::NotNeeded | Log::Lost(_) => None,
            },
            total_lines,
            total_bytes,
            output_lines: if captured.text.is_empty() { 0 } else { captured.text.matches('\n').count() + 1 },
            output_bytes: captured.text.len(),
            output: captured.text,
            unsent: self.pending,
        }
    }

    /// Records the pending text from `before` on.
    fn keep(&mut self, before: usize) {
        let new = &self.pending[before..];
        if !new.is_empty() {
            self.capture.tail.push(new);
            self.capture.log(new.as_bytes());
        }
    }
}

impl<F: FnMut(&str) -> bool> Listener for Transcript<'_, F> {
    fn output(&mut self, bytes: &[u8]) {
        let (mut plain, before) = (String::new(), self.pending.len());
        let (sanitiser, pending) = (&mut self.sanitiser, &mut self.pending);
        self.decoder.push(bytes, |text| sanitiser.push(text, &mut plain));
        // Whole characters come out, because whole characters went in.
        self.masked.push(plain.as_bytes(), |bytes| pending.push_str(&String::from_utf8_lossy(bytes)));
        self.keep(before);
    }

    fn flush_at(&self) -> Option<Instant> {
        // The first piece is passed on at once.
        (!self.pending.is_empty()).then(|| self.last_delta.map_or_else(Instant::now, |last| last + DELTA_INTERVAL))
    }

    fn flush(&mut self) {
        if (self.on_delta)(&self.pending) {
            self.pending.clear();
        }
        self.last_delta = Some(Instant::now());
    }

    fn is_full(&self) -> bool {
        self.pending.len() >= MAX_DELTA
    }
}
