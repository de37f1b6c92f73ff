//! Which files may be read that a path leads to. Who has a sandbox decides; without one every link is followed.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Decide = dyn Fn(&Path, &Path) -> Result<(), String> + Send + Sync;

/// Decides about files by what they are called and where they are. The default admits all.
#[derive(Clone, Default)]
pub struct Followed(Option<Arc<Decide>>);

impl Followed {
    /// Asks about each file that is opened. The error says why it is not to be read.
    pub fn by(decide: impl Fn(&Path, &Path) -> Result<(), String> + Send + Sync + 'static) -> Followed {
        Followed(Some(Arc::new(decide)))
    }

    /// Opens a file that may be read.
    pub(crate) fn open(&self, path: &Path) -> io::Result<File> {
        let file = File::open(path)?;
        if let Some(decide) = &self.0 {
            // Where it is was decided when it was opened, whatever becomes of links afterwards.
            let real = path_of(&file).map_or_else(|| path.canonicalize(), Ok)?;
            decide(path, &real).map_err(|why| io::Error::new(io::ErrorKind::PermissionDenied, why))?;
        }
        Ok(file)
    }
}

impl fmt::Debug for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Followed(as decided)" } else { "Followed(all)" })
    }
}

#[cfg(target_os = "linux")]
fn path_of(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

#[cfg(not(target_os = "linux"))]
fn path_of(_file: &File) -> Option<PathBuf> {
    None
}
