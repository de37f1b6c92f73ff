//! Opens files for reading without blocking on pipes and devices.

use std::fs::{File, FileType, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::confine::Confinement;
use crate::os_error;

/// Opens a regular file inside the confinement. The error is the text for the model.
pub(crate) fn open_regular(path: &Path, confinement: &Confinement) -> Result<(File, Metadata), String> {
    confinement.admit(path, "access")?;
    let on_path = |error: io::Error| os_error::on_path(&error, "access", path);
    // Checked before opening, because opening some devices has effects.
    check_regular(path.metadata().map_err(on_path)?.file_type(), path)?;
    // A pipe that was put there meanwhile must not block.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(on_path)?;
    confinement.admit_open(&file, path, "open")?;
    let metadata = file.metadata().map_err(on_path)?;
    check_regular(metadata.file_type(), path)?;
    Ok((file, metadata))
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
