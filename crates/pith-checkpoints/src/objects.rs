//! Contents by their digest: `objects/ab/<sha256>`. A content is there whole or not at all.
//!
//! Nothing is synced: a killed process loses nothing by that, and what a power failure damages is found out by its
//! digest when it is read.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ring::digest::{Context, SHA256};
use uuid::Uuid;

use crate::state::Digest;

/// Below this size a copy is quicker than asking the file system to share blocks.
const MIN_SHARED: u64 = 64 << 10;
/// What nothing refers to is removed only after this time: its record may be about to be written.
const SETTLED: Duration = Duration::from_secs(600);
/// The beginning of the names of files that are being written.
const UNFINISHED: &str = ".new-";

/// The kept contents of one project.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    root: PathBuf,
}

impl Objects {
    pub fn below(store: &Path) -> Self {
        Objects { root: store.join("objects") }
    }

    /// Keeps the content of an open file, and returns the digest of what was kept.
    pub fn keep(&self, file: &mut File) -> io::Result<Digest> {
        let digest = digest_of(file)?;
        if self.path(&digest).exists() {
            return Ok(digest);
        }
        create_private(&self.root)?;
        let unfinished = Unfinished::create(&self.root)?;
        let mut copy = unfinished.file.try_clone()?;
        let is_shared = file.metadata()?.len() >= MIN_SHARED && share_blocks(&copy, file).is_ok();
        if !is_shared {
            file.rewind()?;
            io::copy(file, &mut copy)?;
        }
        // The file may have changed meanwhile; what counts is what was kept.
        let digest = digest_of(&mut copy)?;
        let path = self.path(&digest);
        path.parent().map_or(Ok(()), create_private)?;
        unfinished.publish(&path)?;
        Ok(digest)
    }

    /// Opens a content; `None` if it is not kept or damaged.
    pub fn open(&self, digest: &Digest) -> Option<File> {
        let mut file = File::open(self.path(digest)).ok()?;
        let is_whole = digest_of(&mut file).is_ok_and(|found| found == *digest);
        if !is_whole {
            // So that the next checkpoint keeps it again.
            let _ = fs::remove_file(self.path(digest));
            return None;
        }
        file.rewind().ok()?;
        Some(file)
    }

    /// Removes what is not wanted any more.
    pub fn sweep(&self, wanted: &HashSet<&Digest>) {
        let is_settled = |path: &Path| {
            let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
            modified.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > SETTLED))
        };
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                remove_if(&entry.path(), is_settled);
                continue;
            }
            for object in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                let name = object.file_name().to_string_lossy().into_owned();
                if !Digest::try_from(name).is_ok_and(|digest| wanted.contains(&digest)) {
                    remove_if(&object.path(), is_settled);
                }
            }
        }
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.root.join(&digest.as_str()[..2]).join(digest.as_str())
    }
}

/// Creates a directory and its parents, readable only by their owner.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The digest of a whole file.
pub(crate) fn digest_of(file: &mut File) -> io::Result<Digest> {
    file.rewind()?;
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Digest::new(context.finish().as_ref())),
            Ok(n) => context.update(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn remove_if(path: &Path, condition: impl Fn(&Path) -> bool) {
    if condition(path) {
        // Another process may have been quicker.
        let _ = fs::remove_file(path);
    }
}

#[cfg(target_os = "linux")]
fn share_blocks(to: &File, from: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(to, from)?)
}

#[cfg(not(target_os = "linux"))]
fn share_blocks(_to: &File, _from: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A private file that is removed unless it is published.
struct Unfinished {
    file: File,
    path: PathBuf,
}

impl Unfinished {
    fn create(directory: &Path) -> io::Result<Self> {
        let path = directory.join(format!("{UNFINISHED}{}", Uuid::new_v4().simple()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Unfinished { file, path })
    }

    fn publish(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.path = PathBuf::new();
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}
