//! Opens files for reading without blocking on pipes and devices.

use std::fs::{File, FileType, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::confine::Confinement;
use crate::os_error;
use crate::workbench::Workbench;

/// Opens a regular file inside the confinement. The error is the text for the model.
pub(crate) fn open_regular(path: &Path, confinement: &Confinement) -> Result<(File, Metadata), String> {
    confinement.admit(path, "access")?;
    let on_path = |error: io::Error| os_error::on_path(&error, "access", path);
    // Checked before opening, because opening some devices has effects.
    check_regular(path.metadata().map_err(on_path)?.file_type(), path)?;
    let file = open_admitted(path, confinement)?;
    let metadata = file.metadata().map_err(on_path)?;
    check_regular(metadata.file_type(), path)?;
    Ok((file, metadata))
}

/// Opens what is there to be read, if it is inside the confinement.
pub(crate) fn open_admitted(path: &Path, confinement: &Confinement) -> Result<File, String> {
    let file = open(path).map_err(|error| os_error::on_path(&error, "access", path))?;
    confinement.admit_open(&file, path, "open")?;
    Ok(file)
}

/// Opens a file without waiting for the other end of a pipe that was put there meanwhile, and without following links of
/// the kernel to what a process has open: it cannot be seen afterwards that one was on the way.
fn open(path: &Path) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, Mode, ResolveFlags, openat2};
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
            // Older kernels, and containers that keep new calls out.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(File::from(opened?)),
        }
    }
    File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

/// What is in a file, for somebody who shows it.
#[derive(Debug, PartialEq, Eq)]
pub enum Contents {
    Text(String),
    /// There is no file.
    Absent,
    /// It is too large, no text, no regular file, or tools must not change it.
    Unknown,
}

impl Contents {
    /// Reads a file that a tool of the workbench may change, if it has at most `max_bytes`.
    pub fn of(path: &Path, max_bytes: u64, workbench: &Workbench) -> Self {
        let confinement = &workbench.confinement;
        if confinement.admit_change(path, "open").is_err() {
            return Contents::Unknown;
        }
        if path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Contents::Absent;
        }
        let Ok((file, metadata)) = open_regular(path, confinement) else { return Contents::Unknown };
        let mut text = String::new();
        // It may grow while it is read.
        let is_text = metadata.len() <= max_bytes && file.take(max_bytes).read_to_string(&mut text).is_ok();
        if is_text { Contents::Text(text) } else { Contents::Unknown }
    }
}

/// Refuses everything but regular files.
pub(crate) fn check_regular(file_type: FileType, path: &Path) -> Result<(), String> {
    let kind = match file_type {
        t if t.is_file() => return Ok(()),
        t if t.is_dir() => return Err(os_error::on_open_file(&Errno::ISDIR.into(), "read")),
        t if t.is_fifo() => "named pipe",
        t if t.is_socket() => "socket",
        _ => "device",
    };
    Err(format!("EINVAL: not a regular file but a {kind}, read '{}'", path.display()))
}
