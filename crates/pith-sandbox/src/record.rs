//! What protected paths held before a command ran, and putting it back.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::put_back;

/// More than this is not kept in memory.
const MAX_BYTES: u64 = 32 << 20;
const MAX_ENTRIES: usize = 20_000;

/// What was at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    Nothing,
    File { contents: Vec<u8>, mode: u32 },
    Link { target: PathBuf },
    Directory { mode: u32, entries: BTreeMap<OsString, Recorded> },
}

/// The contents of all protected paths at one moment.
#[derive(Debug)]
pub(crate) struct Record {
    paths: Vec<(PathBuf, Recorded)>,
    /// Taken before the contents were read. As long as they hold, nothing needs to be read again.
    stamps: Stamps,
}

/// What the system says about every file below the protected paths; `None` where there is nothing.
#[derive(Debug, Default)]
struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

/// A file that is another one, was changed or got another mode has another stamp: nobody can set the time of its last
/// change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    mode: u32,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamps {
    fn of(paths: &[PathBuf]) -> Stamps {
        let mut stamps = Stamps::default();
        paths.iter().for_each(|path| stamps.take_below(path));
        stamps
    }

    fn take_below(&mut self, path: &Path) {
        let metadata = fs::symlink_metadata(path).ok();
        self.0.push((path.to_owned(), metadata.as_ref().map(Stamp::of)));
        if metadata.is_some_and(|metadata| metadata.is_dir()) {
            fs::read_dir(path).into_iter().flatten().flatten().for_each(|entry| self.take_below(&entry.path()));
        }
    }

    /// Whether everything is as it was. What came into a directory has changed that.
    fn hold(&self) -> bool {
        self.0.iter().all(|(path, before)| fs::symlink_metadata(path).ok().as_ref().map(Stamp::of) == *before)
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            mode: metadata.mode(),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// How much more may be recorded.
struct Room {
    bytes: u64,
    entries: usize,
}

impl Record {
    /// Records what is there. Fails if it is too much to keep, or cannot be read.
    pub fn of(paths: &[PathBuf]) -> io::Result<Record> {
        let mut room = Room { bytes: MAX_BYTES, entries: MAX_ENTRIES };
        let stamps = Stamps::of(paths);
        let recorded = paths.iter().map(|path| Ok((path.clone(), record(path, &mut room)?)));
        Ok(Record { paths: recorded.collect::<io::Result<_>>()?, stamps })
    }

    /// Whether nothing was touched since.
    pub fn is_current(&self) -> bool {
        self.stamps.hold()
    }

    /// Puts back whatever has changed, and returns those paths.
    pub fn put_back(&mut self) -> Vec<PathBuf> {
        if self.is_current() {
            return Vec::new();
        }
        let stamps = Stamps::of(&self.paths.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>());
        let mut changed = Vec::new();
        for (path, before) in &self.paths {
            let mut room = Room { bytes: u64::MAX, entries: usize::MAX };
            // What cannot be read any more has changed too.
            if record(path, &mut room).is_ok_and(|now| now == *before) {
                continue;
            }
            changed.push(first_difference(path, before));
            // Tried again with the next change; the caller is told in any case.
            let _ = put_back::restore(path, before);
        }
        // After a change everything is read again next time: another one may have come while this one was put back.
        if changed.is_empty() {
            self.stamps = stamps;
        }
        changed
    }
}

/// Reads a file. Never waits for a pipe that has taken its place.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)?;
    file.take(MAX_BYTES).read_to_end(&mut contents)?;
    Ok(contents)
}

/// What is at a path now. What is too large, or cannot be read, is an error.
pub(crate) fn now(path: &Path) -> io::Result<Recorded> {
    record(path, &mut Room { bytes: MAX_BYTES, entries: MAX_ENTRIES })
}

/// The rights of a file as far as they mean something: on its configuration `git init` tries out whether a file can be
/// made executable.
fn meant(path: &Path, mode: u32) -> u32 {
    if path.ends_with(".git/config") { mode & !0o111 } else { mode }
}

fn record(path: &Path, room: &mut Room) -> io::Result<Recorded> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Recorded::Nothing);
        }
        Err(error) => return Err(error),
    };
    let mode = meant(path, metadata.permissions().mode());
    let take =
        room.entries.checked_sub(1).zip(room.bytes.checked_sub(if metadata.is_file() { metadata.len() } else { 0 }));
    let Some((entries, bytes)) = take else {
        return Err(io::Error::other(format!("{} is too large to be protected", path.display())));
    };
    *room = Room { bytes, entries };
    if metadata.is_symlink() {
        return Ok(Recorded::Link { target: fs::read_link(path)? });
    }
    if !metadata.is_dir() {
        // Pipes and devices have no contents to keep.
        let contents = if metadata.is_file() { read(path)? } else { Vec::new() };
        return Ok(Recorded::File { contents, mode });
    }
    let mut entries = BTreeMap::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        entries.insert(entry.file_name(), record(&entry.path(), room)?);
    }
    Ok(Recorded::Directory { mode, entries })
}

/// The path that is told: the first one below that is not as it was.
pub(crate) fn first_difference(path: &Path, before: &Recorded) -> PathBuf {
    let mut room = Room { bytes: u64::MAX, entries: usize::MAX };
    let now = record(path, &mut room).unwrap_or(Recorded::Nothing);
    let (Recorded::Directory { entries: before, .. }, Recorded::Directory { entries: now, .. }) = (before, &now) else {
        return path.to_owned();
    };
    let changed = now.iter().find(|(name, entry)| before.get(*name) != Some(entry)).map(|(name, _)| name);
    let gone = before.keys().find(|name| !now.contains_key(*name));
    match changed.or(gone) {
        Some(name) => first_difference(&path.join(name), before.get(name).unwrap_or(&Recorded::Nothing)),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_a_link_leads_to_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for path in ["work/.git/hooks", "outside/hooks"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in ["work/.git/config", "outside/config", "outside/hooks/mine"] {
            fs::write(root.join(path), path).unwrap();
        }
        let git = root.join("work/.git");
        let paths = [git.join("hooks"), git.join("config"), git.join("info")];
        let mut record = Record::of(&paths).unwrap();
        fs::create_dir(root.join("outside/info")).unwrap();
        fs::rename(&git, root.join("work/away")).unwrap();
        symlink(root.join("outside"), &git).unwrap();
        record.put_back();
        record.put_back();
        assert_eq!(fs::read_to_string(git.join("config")).unwrap(), "work/.git/config");
        assert!(!git.is_symlink() && git.join("hooks").is_dir());
        for path in ["outside/config", "outside/hooks/mine"] {
            assert_eq!(fs::read_to_string(root.join(path)).unwrap(), path);
        }
        assert!(root.join("outside/info").is_dir());
    }

    #[test]
    fn git_may_try_out_rights_on_its_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().canonicalize().unwrap().join(".git/config");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        fs::write(&config, "[core]").unwrap();
        let mut record = Record::of(std::slice::from_ref(&config)).unwrap();
        fs::set_permissions(&config, Permissions::from_mode(0o755)).unwrap();
        assert!(record.put_back().is_empty());
        fs::set_permissions(&config, Permissions::from_mode(0o606)).unwrap();
        assert_eq!(record.put_back(), [config]);
    }

    #[test]
    fn every_kind_of_change_is_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let hooks = root.join(".git/hooks");
        let build = || {
            fs::create_dir_all(&hooks).unwrap();
            fs::write(hooks.join("a"), "old").unwrap();
            symlink("a", hooks.join("link")).unwrap();
        };
        build();
        let paths = [hooks.clone(), root.join(".git/config"), root.join(".envrc")];
        let mut record = Record::of(&paths).unwrap();
        assert!(record.put_back().is_empty(), "nothing has changed");
        type Change = fn(&Path);
        let changes: [(&str, Change); 7] = [
            (".git/hooks/new", |root| fs::write(root.join(".git/hooks/new"), "x").unwrap()),
            (".git/hooks/a", |root| fs::write(root.join(".git/hooks/a"), "x").unwrap()),
            (".git/hooks/a", |root| fs::remove_file(root.join(".git/hooks/a")).unwrap()),
            (".git/hooks/a", |root| {
                fs::set_permissions(root.join(".git/hooks/a"), Permissions::from_mode(0o755)).unwrap();
            }),
            (".git/hooks", |root| fs::rename(root.join(".git"), root.join("moved")).unwrap()),
            (".envrc", |root| fs::create_dir(root.join(".envrc")).unwrap()),
            (".git/config", |root| symlink("/etc/passwd", root.join(".git/config")).unwrap()),
        ];
        for (told, change) in changes {
            change(&root);
            assert_eq!(record.put_back(), [root.join(told)]);
            assert!(record.put_back().is_empty(), "{told} is back");
            assert_eq!(fs::read_to_string(hooks.join("link")).unwrap(), "old");
        }
    }
}
