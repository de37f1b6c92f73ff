//! A server that is a program: its process, its pipes, what it writes beside the protocol, its end.

use std::sync::Arc;
use std::time::Duration;

use pith_tools::process::{Job, Jobs};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{Level, debug, enabled};

use crate::config::ServerConfig;
use crate::connection::CANCEL_GRACE;
use crate::handler::Handler;
use crate::handshake::{self, Era, Refusal, Service};
use crate::launch::{Launch, Prepared};
use crate::remarks::{MAX_LINE, Remarks};
use crate::state::Failure;
use crate::stdio::Pipes;

/// How long a program may take to end after its input was closed.
const END_OF_INPUT_GRACE: Duration = Duration::from_secs(1);
/// How long it may take after SIGTERM.
const TERM_GRACE: Duration = Duration::from_millis(500);
/// How long to wait for what follows a lost connection: the exit code and the last lines.
const AFTERMATH: Duration = Duration::from_secs(2);
/// How many lines of stderr an error shows.
const SHOWN_REMARKS: usize = 5;

/// The server's child process and its pipes.
pub struct Program {
    job: Job,
    pipes: Pipes<pipe::Receiver, pipe::Sender>,
    /// Reads stderr until it is closed.
    errors: AbortHandle,
    /// Cancelled when stderr was read to its end.
    errors_read: CancellationToken,
    pub remarks: Remarks,
}

impl Program {
    /// Starts the program of a server.
    pub fn start(server: &str, prepared: Prepared, launch: &Launch, jobs: &Arc<Jobs>) -> Result<Program, Failure> {
        let launched = launch.start(prepared, jobs)?;
        let (piped, remarks) = (launched.pipes, launched.remarks);
        let pipes = Pipes::new(piped.output, piped.input, remarks.clone());
        let errors_read = CancellationToken::new();
        let errors = {
            let (remarks, at_end) = (remarks.clone(), errors_read.clone().drop_guard());
            let server = server.to_owned();
            tokio::spawn(async move {
                keep_remarks(&server, piped.errors, remarks).await;
                drop(at_end);
            })
        };
        Ok(Program { job: piped.job, pipes, errors: errors.abort_handle(), errors_read, remarks })
    }

    /// Shakes hands; a program that does not is ended.
    pub async fn shake_hands(
        &self,
        config: &ServerConfig,
        last: Option<Era>,
        handler: impl Fn() -> Handler,
    ) -> Result<Service, Failure> {
        let shaken =
            timeout(config.startup_timeout, handshake::over_pipes(config.protocol, last, &self.pipes, handler));
        let why = match shaken.await {
            Ok(Ok(service)) => return Ok(service),
            Ok(Err(Refusal::Said(why))) => self.remarks.masked(&why) + &self.last_remarks(),
            Ok(Err(Refusal::Lost(why))) => self.fate(Some(why)).await,
            Err(_) => {
                let seconds = config.startup_timeout.as_secs_f64();
                format!("did not answer within {seconds} s{}", self.last_remarks())
            }
        };
        self.end().await;
        Err(Failure::failed(why))
    }

    /// Says what became of a program that does not answer.
    pub async fn fate(&self, refusal: Option<String>) -> String {
        let why = match (self.pipes.broken(), refusal) {
            (Some(broken), _) => broken.to_owned(),
            (None, refusal) => match timeout(AFTERMATH, self.job.exited()).await {
                Ok(Ok(exit)) => {
                    // Its last words may still be on their way.
                    let _ = timeout(AFTERMATH, self.errors_read.cancelled()).await;
                    format!("ended with exit code {}", exit.code())
                }
                Ok(Err(error)) => format!("cannot be started: {error}"),
                Err(_) => refusal.unwrap_or_else(|| "closed the connection".to_owned()),
            },
        };
        self.remarks.masked(&why) + &self.last_remarks()
    }

    /// Waits until the program has ended.
    pub async fn ended(&self) {
        let _ = self.job.exited().await;
    }

    /// Closes the input, then insists.
    pub async fn end(&self) {
        // A write that is stuck holds the pipe; then the signals below end it.
        let _ = timeout(CANCEL_GRACE, self.pipes.close_input()).await;
        if timeout(END_OF_INPUT_GRACE, self.job.exited()).await.is_ok() {
            // What it started may have stayed.
            self.job.end(Duration::ZERO);
        } else {
            self.job.end(TERM_GRACE);
        }
        let _ = timeout(TERM_GRACE * 2, self.job.gone()).await;
        self.errors.abort();
    }

    /// The last remarks, to be appended to an error.
    fn last_remarks(&self) -> String {
        let last = self.remarks.last(SHOWN_REMARKS);
        if last.is_empty() { String::new() } else { format!("; it wrote: {}", last.join(" | ")) }
    }
}

/// Keeps what a program writes to stderr, line by line; a line that never ends is kept in pieces.
async fn keep_remarks(server: &str, mut errors: impl AsyncRead + Unpin, remarks: Remarks) {
    let keep = |line: &[u8]| {
        if !line.is_empty() && enabled!(target: "pith::mcp", Level::DEBUG) {
            debug!(target: "pith::mcp", server, line = String::from_utf8_lossy(line).trim_end(), "stderr");
        }
        remarks.push(line);
    };
    let (mut masking, mut written) = (remarks.masking(), Vec::new());
    let mut piece = [0; 8192];
    while let Ok(n_bytes @ 1..) = errors.read(&mut piece).await {
        masking.push(&piece[..n_bytes], &mut written);
        while let Some(line) = take_line(&mut written) {
            keep(&line);
        }
    }
    masking.finish(&mut written);
    written.split_inclusive(|byte| *byte == b'\n').for_each(keep);
}

/// Takes a line off the beginning of a text, or as much as is kept of one, if there is that much.
fn take_line(written: &mut Vec<u8>) -> Option<Vec<u8>> {
    let end = written.iter().take(MAX_LINE).position(|byte| *byte == b'\n').map(|end| end + 1);
    let end = end.or((written.len() > MAX_LINE).then_some(MAX_LINE))?;
    Some(written.drain(..end).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_part_of_a_secret_shows_where_a_long_line_is_cut() {
        let secret = "sk-12345678";
        let remarks = Remarks::hiding(&[secret.to_owned()], &Arc::default());
        for before in [MAX_LINE - 5, 8192 - 5] {
            let text = format!("{}{secret}\nnext", "x".repeat(before));
            keep_remarks("s", text.as_bytes(), remarks.clone()).await;
            let kept = remarks.last(usize::MAX).concat();
            assert!(!kept.contains("sk-") && !kept.contains("345678") && kept.ends_with("next"), "{kept}");
        }
    }
}
