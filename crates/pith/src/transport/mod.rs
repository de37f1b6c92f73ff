//! The only module that uses stdin and stdout.

mod lines;
pub mod output;
pub mod reader;
pub mod writer;

pub use lines::Line;

use std::fs::File;
use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the last output may take to be written.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);

/// Reserves stdout for the protocol: the returned descriptor is the protocol's, and everything else that writes to
/// descriptor 1 from now on, child processes included, reaches stderr.
pub fn take_stdout() -> io::Result<File> {
    let private = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(private))
}

/// Waits for the thread that writes the last output, but not for a host that does not read it.
pub fn finish(writer: JoinHandle<()>) {
    let deadline = Instant::now() + FLUSH_LIMIT;
    while !writer.is_finished() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}
