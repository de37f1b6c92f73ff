//! Runs the command whose output is a configured value (`!command`), and leaves nothing of it running.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use pith_tools::process::{CommandLine, Exit, Jobs};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// How long the command may take, and how long the value may be.
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_VALUE: usize = 64 * 1024;

/// Returns what the command prints, without the white space around it. The error completes "the command …".
pub async fn value_of(command: CommandLine, jobs: &Jobs) -> Result<String, String> {
    let ran = tokio::time::timeout(TIMEOUT, run(command, jobs)).await;
    let ran = ran.map_err(|_| format!("took longer than {} s", TIMEOUT.as_secs()))?;
    let (printed, exit) = ran.map_err(|error| format!("failed: {error}"))?;
    let text = String::from_utf8_lossy(&printed);
    if printed.len() > MAX_VALUE {
        Err(format!("printed more than {} KiB", MAX_VALUE >> 10))
    } else if exit != Exit::Code(0) {
        let why = exit.signal().unwrap_or_else(|| format!("exit code {}", exit.code()));
        Err(format!("failed: {why}"))
    } else if text.trim().is_empty() {
        Err("printed nothing".to_owned())
    } else {
        Ok(text.trim().to_owned())
    }
}

/// Runs the command until it exits or has printed too much. What it leaves in the background ends with it.
async fn run(command: CommandLine, jobs: &Jobs) -> io::Result<(Vec<u8>, Exit)> {
    let (reader, writer) = io::pipe()?;
    let job = jobs.spawn_to(command, writer.into(), Stdio::null())?;
    let mut output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
    let (mut printed, mut is_open) = (Vec::new(), true);
    let exit = loop {
        tokio::select! {
            biased;
            read = output.read_buf(&mut printed), if is_open => is_open = read? > 0,
            exit = job.exited() => break exit?,
        }
        if printed.len() > MAX_VALUE {
            return Ok((printed, Exit::Code(0)));
        }
    };
    // Its last words may have come with its exit.
    while is_open && printed.len() <= MAX_VALUE {
        match output.try_read_buf(&mut printed) {
            Ok(n_read) => is_open = n_read > 0,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok((printed, exit))
}
