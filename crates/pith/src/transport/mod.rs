//! The only place that touches stdin and stdout.

mod lines;
pub mod reader;
pub mod writer;

use std::fs::File;
use std::io;

/// Takes stdout away from everybody else: the returned descriptor is the
/// protocol's, and whatever prints to descriptor 1 from now on, child
/// processes included, reaches stderr.
pub fn take_stdout() -> io::Result<File> {
    let private = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(private))
}
