//! When this process may write its session file: for as long as it runs, or for one append.
//!
//! An idle process has released the file, so that another process can continue the session.
//! Entries are only ever added, so what others wrote meanwhile is a branch beside ours.

use std::io;
use std::path::Path;

use crate::error::StoreError;
use crate::lock::{Lock, LockError, Purpose};
use crate::store::SessionStore;

impl SessionStore {
    /// Keeps other processes from using the session until [`SessionStore::unlock`], for the time of a run. Fails if
    /// one of them is running on it. Without this call, every append takes the file for itself alone.
    pub fn lock(&mut self) -> Result<(), StoreError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.lock().map_err(|pid| StoreError::InUse { pid, path: journal.path.clone() })?;
        if let Err(error) = self.claim_for_run() {
            self.unlock();
            return Err(error);
        }
        self.refresh();
        Ok(())
    }

    /// Lets other processes use the session again. To be called before a host hears that the run is over, since the
    /// host may then open the session elsewhere.
    pub fn unlock(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.unlock();
        }
    }
}

/// The right to write, and how long it lasts.
#[derive(Default)]
pub(crate) struct WriteAccess {
    state: State,
    /// Kept from one append to the next.
    is_kept: bool,
}

#[derive(Default)]
enum State {
    #[default]
    Idle,
    Locked(Lock),
    /// Where nothing can be locked, sessions still work; looking before each append remains.
    Unlockable,
    /// Another process has the lock; its pid, if known.
    Refused(Option<u32>),
}

impl WriteAccess {
    /// Uses a lock that was taken to open the file.
    pub fn with(lock: Option<Lock>) -> Self {
        WriteAccess { state: lock.map_or(State::Unlockable, State::Locked), is_kept: false }
    }

    /// Takes the lock unless it is there already. [`WriteAccess::check`] reports a refusal.
    pub fn begin(&mut self, target: &Path) {
        if matches!(self.state, State::Idle | State::Refused(_)) {
            let purpose = if self.is_kept { Purpose::Run } else { Purpose::Access };
            self.state = match Lock::take(target, purpose) {
                Ok(lock) => State::Locked(lock),
                Err(LockError::Unavailable) => State::Unlockable,
                Err(LockError::Taken(pid)) => State::Refused(pid),
            };
        }
    }

    /// Does the same for a file that was not known before; the error is the pid of the process that has its lock. A
    /// lock of another file, or one whose own file was removed, does not count.
    pub fn begin_for(&mut self, target: &Path) -> Result<(), Option<u32>> {
        let is_usable = matches!(&self.state, State::Locked(lock) if lock.is_for(target));
        if !is_usable {
            self.state = State::Idle;
        }
        self.begin(target);
        match self.state {
            State::Refused(pid) => Err(pid),
            State::Idle | State::Locked(_) | State::Unlockable => Ok(()),
        }
    }

    /// Whether the file may be written now.
    pub fn check(&self) -> io::Result<()> {
        match &self.state {
            State::Locked(_) | State::Unlockable => Ok(()),
            State::Refused(Some(pid)) => Err(io::Error::other(format!("another process is using it (pid {pid})"))),
            State::Idle | State::Refused(None) => Err(io::Error::other("another process is using it")),
        }
    }

    /// Gives the lock back after an append, unless it is held.
    pub fn end(&mut self) {
        if !self.is_kept {
            self.state = State::Idle;
        }
    }

    /// Keeps the lock from now on. A file that does not exist yet (`None`) is locked when it is created.
    pub fn lock(&mut self, target: Option<&Path>) -> Result<(), Option<u32>> {
        self.is_kept = true;
        let Some(target) = target else { return Ok(()) };
        self.begin(target);
        if let State::Refused(pid) = self.state {
            self.unlock();
            return Err(pid);
        }
        Ok(())
    }

    /// Gives the lock back.
    pub fn unlock(&mut self) {
        *self = WriteAccess::default();
    }
}
