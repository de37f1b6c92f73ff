//! Stores the full output of a command in a private file of bounded size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

/// The sizes of the two parts that are kept of a long output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub head: u64,
    pub end: u64,
}

impl Bounds {
    /// 64 MiB in total, including the marker between the parts.
    pub const DEFAULT: Bounds = Bounds { head: 32 << 20, end: (32 << 20) - 256 };
}

/// Logs older than this are removed when a new one is created.
const KEEP_LOGS: Duration = Duration::from_hours(7 * 24);
const DIRECTORY_PREFIX: &str = "pith-logs-";

/// The directory for full outputs of one session, created when first needed.
#[derive(Debug)]
pub struct OutputDir {
    base: PathBuf,
    made: Mutex<Option<PathBuf>>,
}

impl OutputDir {
    /// The private directory will be created in `base`, usually the system's temporary directory.
    pub fn below(base: PathBuf) -> Self {
        OutputDir { base, made: Mutex::default() }
    }

    /// Writes a text to a file of its own, mode 0600.
    pub fn keep(&self, text: &str) -> io::Result<PathBuf> {
        let path = self.path()?.join(format!("pith-text-{}.txt", random_hex()));
        private(&path)?.write_all(text.as_bytes())?;
        Ok(path)
    }

    /// Writes bytes that are no text to a file of its own, mode 0600.
    pub fn keep_bytes(&self, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.path()?.join(format!("pith-data-{}", random_hex()));
        private(&path)?.write_all(bytes)?;
        Ok(path)
    }

    /// Creates the directory, readable by this user only, and removes what old sessions left.
    fn path(&self) -> io::Result<PathBuf> {
        let mut made = self.made.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(path) = made.as_ref().filter(|path| path.is_dir()) {
            return Ok(path.clone());
        }
        remove_old(&self.base, SystemTime::now());
        let path = self.base.join(format!("{DIRECTORY_PREFIX}{}", random_hex()));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        *made = Some(path.clone());
        Ok(path)
    }
}

/// Sixteen random hexadecimal digits.
pub(crate) fn random_hex() -> String {
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    // Folding hides the fixed version bits of the UUID.
    format!("{:016x}", high ^ low.rotate_left(32))
}

fn remove_old(base: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(base) else { return };
    let own = rustix::process::getuid().as_raw();
    let is_old = |path: &Path| {
        let metadata = fs::symlink_metadata(path).ok().filter(|metadata| metadata.uid() == own)?;
        Some(now.duration_since(metadata.modified().ok()?).ok()? > KEEP_LOGS)
    };
    let ours = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(DIRECTORY_PREFIX);
    for directory in entries.flatten().filter(ours).map(|entry| entry.path()) {
        // Checked first, because removing its files updates the directory's modification time.
        let directory_is_old = is_old(&directory) == Some(true);
        for file in fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if is_old(&file) == Some(true) {
                let _ = fs::remove_file(file);
            }
        }
        if directory_is_old {
            // Fails while newer logs are in it, as intended.
            let _ = fs::remove_dir(directory);
        }
    }
}

/// A log being written.
pub(crate) struct Spill {
    path: PathBuf,
    file: File,
    bounds: Bounds,
    written: u64,
    /// Receives output once the head is full.
    ring: Option<Ring>,
}

impl Spill {
    /// Creates a new log, mode 0600.
    pub fn create(directory: &OutputDir, bounds: Bounds) -> io::Result<Spill> {
        let path = directory.path()?.join(format!("pith-bash-{}.log", random_hex()));
        let file = private(&path)?;
        Ok(Spill { path, file, bounds, written: 0, ring: None })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = usize::try_from(self.bounds.head.saturating_sub(self.written)).unwrap_or(usize::MAX);
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.file.write_all(head)?;
        self.written += bytes.len() as u64;
        if rest.is_empty() {
            return Ok(());
        }
        if self.ring.is_none() {
            self.ring = Some(Ring::create(&self.path.with_extension("end"), self.bounds.end)?);
        }
        self.ring.as_mut().map_or(Ok(()), |ring| ring.write(rest))
    }

    /// Completes and closes the log.
    pub fn finish(mut self) -> io::Result<PathBuf> {
        if let Some(mut ring) = self.ring.take() {
            let left_out = ring.written.saturating_sub(ring.size);
            if left_out > 0 {
                write!(self.file, "\n[... {left_out} bytes left out ...]\n")?;
            }
            ring.copy_to(&mut self.file)?;
        }
        Ok(self.path)
    }
}

/// The last bytes of a stream, in an unnamed file.
struct Ring {
    file: File,
    size: u64,
    written: u64,
}

impl Ring {
    fn create(path: &Path, size: u64) -> io::Result<Ring> {
        let file = private(path)?;
        fs::remove_file(path)?;
        Ok(Ring { file, size, written: 0 })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Only the end of a piece larger than the ring is kept.
        let skipped = bytes.len().saturating_sub(usize::try_from(self.size).unwrap_or(usize::MAX));
        self.written += skipped as u64;
        let mut rest = &bytes[skipped..];
        while !rest.is_empty() {
            let at = self.written % self.size;
            let room = usize::try_from(self.size - at).unwrap_or(usize::MAX);
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.file.seek(SeekFrom::Start(at))?;
            self.file.write_all(now)?;
            self.written += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    /// Copies the contents, oldest byte first.
    fn copy_to(&mut self, out: &mut File) -> io::Result<()> {
        let oldest = if self.written > self.size { self.written % self.size } else { 0 };
        let filled = self.written.min(self.size);
        for (start, end) in [(oldest, filled), (0, oldest)] {
            self.file.seek(SeekFrom::Start(start))?;
            io::copy(&mut (&self.file).take(end - start), out)?;
        }
        Ok(())
    }
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn log(bounds: Bounds, pieces: &[&[u8]]) -> String {
        let base = tempfile::tempdir().unwrap();
        let mut spill = Spill::create(&OutputDir::below(base.path().into()), bounds).unwrap();
        for piece in pieces {
            spill.write(piece).unwrap();
        }
        fs::read_to_string(spill.finish().unwrap()).unwrap()
    }

    #[test]
    fn a_long_log_keeps_its_two_ends() {
        let bounds = Bounds { head: 4, end: 4 };
        assert_eq!(log(bounds, &[b"abcd"]), "abcd");
        assert_eq!(log(bounds, &[b"ab", b"cdefgh"]), "abcdefgh");
        assert_eq!(log(bounds, &[b"abcdefghi"]), "abcd\n[... 1 bytes left out ...]\nfghi");
        assert_eq!(log(bounds, &[b"abc", b"def", b"ghi", b"jkl", b"m"]), "abcd\n[... 5 bytes left out ...]\njklm");
        assert_eq!(log(bounds, &[b"abcde", b"0123456789", b"X"]), "abcd\n[... 8 bytes left out ...]\n789X");
    }

    #[test]
    fn logs_are_private_and_nothing_else_is_left() {
        let base = tempfile::tempdir().unwrap();
        let directory = OutputDir::below(base.path().into());
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0, "made only when needed");
        let mut spill = Spill::create(&directory, Bounds { head: 1, end: 1 }).unwrap();
        spill.write(b"abc").unwrap();
        let path = spill.finish().unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("pith-bash-") && name.ends_with(".log") && name.len() == 30, "{name}");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn old_logs_are_removed() {
        let base = tempfile::tempdir().unwrap();
        let make = || Spill::create(&OutputDir::below(base.path().into()), Bounds::DEFAULT).unwrap().finish().unwrap();
        let log = make();
        fs::write(base.path().join("unrelated.log"), "").unwrap();
        let days = |n: u64| SystemTime::now() + Duration::from_hours(24 * n);
        remove_old(base.path(), days(6));
        assert!(log.exists());
        remove_old(base.path(), days(8));
        assert!(!log.exists() && !log.parent().unwrap().exists());
        assert!(base.path().join("unrelated.log").exists());
    }
}
