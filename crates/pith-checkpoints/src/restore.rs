//! Puts files back.
//!
//! Contents are opened by whoever may read the store; the steps are taken by whoever may write the files, which is a
//! confined thread if there is a sandbox. Every file changes in one step, in a directory that was reached without a
//! link.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use uuid::Uuid;

use crate::directory::Parent;
use crate::log::Covered;
use crate::state::{Digest, Name, State};
use crate::store::Store;
use crate::undo::{NOT_KEPT, Plan, Skipped, is_of_file};

/// Files whose contents are open at the same time.
const OPEN_AT_ONCE: usize = 64;

/// Says whether a name in an open directory may be changed; the path of the directory is as it was asked for.
pub type Admit<'a> = dyn Fn(BorrowedFd<'_>, &Path, &OsStr) -> Result<(), String> + 'a;

/// Files on their way back.
#[derive(Debug)]
pub struct Restore {
    project: PathBuf,
    changes: Vec<Covered>,
    skipped: Vec<Skipped>,
    /// What is left to do, the last first.
    steps: Vec<Planned>,
}

/// A step, before its content is opened.
#[derive(Clone, Debug)]
struct Planned {
    change: usize,
    action: PlannedAction,
}

#[derive(Clone, Debug)]
enum PlannedAction {
    Remove,
    RemoveDirectory,
    MakeDirectory(u32),
    SetMode(u32),
    PutLink(PathBuf),
    PutFile(Digest, u32),
}

/// Something that is done to one path.
#[derive(Debug)]
pub struct Step {
    change: usize,
    path: PathBuf,
    action: Action,
}

#[derive(Debug)]
enum Action {
    Remove,
    RemoveDirectory,
    MakeDirectory(u32),
    SetMode(u32),
    PutLink(PathBuf),
    PutFile(File, u32),
}

/// What became of a step.
#[derive(Debug)]
pub struct Taken {
    change: usize,
    outcome: Result<(), String>,
}

impl Restore {
    /// Keeps what is there now, so that the restore can be undone, and finds out the steps.
    pub(crate) fn prepare(store: &Store, plan: Plan) -> io::Result<Restore> {
        let Plan { mut changes, skipped } = plan;
        for change in &mut changes {
            change.before = store.capture.keep(&change.path.within(store.project()))?;
        }
        let mut steps = steps(&changes);
        steps.reverse();
        Ok(Restore { project: store.project().to_owned(), changes, skipped, steps })
    }

    pub(crate) fn covered(&self) -> impl Iterator<Item = &Covered> {
        self.changes.iter()
    }

    /// Opens the contents of the next steps; there are none when everything is done.
    pub fn next(&mut self, store: &Store) -> Vec<Step> {
        let mut steps = Vec::new();
        while steps.len() < OPEN_AT_ONCE
            && let Some(Planned { change, action }) = self.steps.pop()
        {
            let action = match action {
                PlannedAction::Remove => Action::Remove,
                PlannedAction::RemoveDirectory => Action::RemoveDirectory,
                PlannedAction::MakeDirectory(mode) => Action::MakeDirectory(mode),
                PlannedAction::SetMode(mode) => Action::SetMode(mode),
                PlannedAction::PutLink(target) => Action::PutLink(target),
                PlannedAction::PutFile(digest, mode) => match store.capture.objects.open(&digest) {
                    Some(content) => Action::PutFile(content, mode),
                    None => {
                        self.skip(change, NOT_KEPT.to_owned());
                        continue;
                    }
                },
            };
            steps.push(Step { change, path: self.changes[change].path.within(&self.project), action });
        }
        steps
    }

    /// Notes what became of steps.
    pub fn note(&mut self, taken: Vec<Taken>) {
        for Taken { change, outcome } in taken {
            if let Err(why) = outcome {
                self.skip(change, why);
            }
        }
    }

    /// Returns the files that went back, directories aside, and those that did not.
    pub fn finish(self) -> (Vec<Name>, Vec<Skipped>) {
        let is_skipped = |path: &Name| self.skipped.iter().any(|skipped| skipped.path == *path);
        let restored = self.changes.iter().filter(|change| is_of_file(change)).map(|change| &change.path);
        (restored.filter(|path| !is_skipped(path)).cloned().collect(), self.skipped.clone())
    }

    fn skip(&mut self, change: usize, reason: String) {
        let path = self.changes[change].path.clone();
        if !self.skipped.iter().any(|skipped| skipped.path == path) {
            self.skipped.push(Skipped { path, reason });
        }
    }
}

fn is_content(state: &State) -> bool {
    matches!(state, State::File { .. } | State::Link { .. } | State::Unkept { .. })
}

/// The steps in an order in which each can be taken: what is in the way goes first, from the inside out; directories
/// come before what is in them; their modes come last, because they may forbid the rest.
fn steps(changes: &[Covered]) -> Vec<Planned> {
    let (mut removals, mut directories, mut contents, mut modes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (change, Covered { before, after, .. }) in changes.iter().enumerate() {
        let Some(after) = after else { continue };
        let planned = |action| Planned { change, action };
        let is_replaced_whole = is_content(before) && is_content(after);
        match before {
            State::Absent => {}
            State::Directory { .. } if after.is_directory() => {}
            State::Directory { .. } => removals.push(planned(PlannedAction::RemoveDirectory)),
            _ if is_replaced_whole => {}
            _ => removals.push(planned(PlannedAction::Remove)),
        }
        match after {
            State::Absent | State::Unkept { .. } => {}
            State::Directory { mode } => {
                if !before.is_directory() {
                    directories.push(planned(PlannedAction::MakeDirectory(*mode)));
                }
                modes.push(planned(PlannedAction::SetMode(*mode)));
            }
            State::Link { target } => contents.push(planned(PlannedAction::PutLink(target.0.clone()))),
            State::File { sha256, mode, .. } => {
                contents.push(planned(PlannedAction::PutFile(sha256.clone(), *mode)));
            }
        }
    }
    let depth = |planned: &Planned| changes[planned.change].path.0.components().count();
    removals.sort_by_key(|planned| std::cmp::Reverse(depth(planned)));
    directories.sort_by_key(depth);
    modes.sort_by_key(|planned| std::cmp::Reverse(depth(planned)));
    removals.into_iter().chain(directories).chain(contents).chain(modes).collect()
}

/// Takes steps, one after the other. `admit` may refuse a path.
pub fn take(steps: Vec<Step>, admit: &Admit<'_>) -> Vec<Taken> {
    let take = |Step { change, path, action }| {
        let outcome = Parent::of(&path).map_err(|error| error.to_string()).and_then(|parent| {
            admit(parent.directory.as_fd(), path.parent().unwrap_or(&path), &parent.name)?;
            action.perform(&parent).map_err(|error| error.to_string())
        });
        Taken { change, outcome }
    };
    steps.into_iter().map(take).collect()
}

impl Action {
    fn perform(self, Parent { directory, name }: &Parent) -> io::Result<()> {
        match self {
            Action::Remove => match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
                Err(Errno::NOENT) | Ok(()) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Action::RemoveDirectory => match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
                // What is in it by now is not the session's, or not covered.
                Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) | Ok(()) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Action::MakeDirectory(mode) => {
                // Until everything is in it, its owner has to be able to write there.
                match rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(mode | 0o700)) {
                    Err(Errno::EXIST) | Ok(()) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            }
            Action::SetMode(mode) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let opened = rustix::fs::openat(directory, name, flags, Mode::empty())?;
                Ok(rustix::fs::fchmod(opened, Mode::from_raw_mode(mode))?)
            }
            Action::PutLink(target) => {
                let temporary = temporary_name();
                rustix::fs::symlinkat(target.as_path(), directory, temporary.as_str())?;
                publish(directory, &temporary, name)
            }
            Action::PutFile(content, mode) => put_file(directory, name, content, mode),
        }
    }
}

fn put_file(directory: impl AsFd, name: &OsStr, mut content: File, mode: u32) -> io::Result<()> {
    let old = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let old = old.filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    content.rewind()?;
    // A file with several names stays one file.
    if old.is_some_and(|stat| stat.st_nlink > 1) {
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&directory, name, flags, Mode::empty())?);
        io::copy(&mut content, &mut file)?;
        return Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?);
    }
    let temporary = temporary_name();
    let (mut file, has_name) = match unnamed(&directory) {
        Some(file) => (file, false),
        None => (named(&directory, &temporary)?, true),
    };
    let written = (|| {
        io::copy(&mut content, &mut file)?;
        if let Some(old) = &old {
            copy_owner(&file, old);
        }
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        // Not synced: thousands of files may go back, and the store has the content of each, old and new.
        if !has_name {
            let open_file = format!("/proc/self/fd/{}", file.as_raw_fd());
            let flags = AtFlags::SYMLINK_FOLLOW;
            rustix::fs::linkat(rustix::fs::CWD, open_file, &directory, temporary.as_str(), flags)?;
        }
        Ok(())
    })();
    match written {
        Ok(()) => publish(&directory, &temporary, name),
        Err(error) => {
            // It may have no name yet.
            let _ = rustix::fs::unlinkat(&directory, temporary.as_str(), AtFlags::empty());
            Err(error)
        }
    }
}

/// Creates a file that disappears by itself if pith is killed before it is complete.
#[cfg(target_os = "linux")]
fn unnamed(directory: impl AsFd) -> Option<File> {
    if !Path::new("/proc/self/fd").exists() {
        return None;
    }
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, ".", flags, Mode::from_raw_mode(0o600)).ok().map(File::from)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_directory: impl AsFd) -> Option<File> {
    None
}

fn named(directory: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o600))?))
}

/// Copies the owner where allowed.
fn copy_owner(file: &File, old: &Stat) {
    let (owner, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
    if rustix::fs::fchown(file, Some(owner), Some(group)).is_err() {
        let _ = rustix::fs::fchown(file, None, Some(group));
    }
}

fn publish(directory: impl AsFd, temporary: &str, name: &OsStr) -> io::Result<()> {
    rustix::fs::renameat(&directory, temporary, &directory, name).map_err(|error| {
        let _ = rustix::fs::unlinkat(&directory, temporary, AtFlags::empty());
        error.into()
    })
}

fn temporary_name() -> String {
    format!(".pith-{}", Uuid::new_v4().simple())
}
