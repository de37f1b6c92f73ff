//! One file per session, however many processes begin it.
//!
//! A session gets its file with its first content. Two processes that were started for the same
//! id or path, before there was a file, would make two of them, and one could not be found any
//! more. So the second process continues in the file of the first.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{FORMAT_VERSION, StoreError};
use crate::listing::is_cwd;
use crate::lock::{Lock, LockError, Purpose};
use crate::resolve::find_named;
use crate::store::SessionStore;
use crate::tree::Header;

/// What was chosen for a session that has no file yet, and may have been chosen by others too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    Id,
    Path,
}

impl SessionStore {
    /// Continues in the file another process has begun for this session, if there is one.
    pub(crate) fn join_existing(&mut self) -> Result<(), StoreError> {
        let Some(path) = self.existing_file() else { return Ok(()) };
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.begin_at(&path).map_err(|pid| StoreError::InUse { pid, path: path.clone() })?;
        let claim = self.claim;
        let is_ours = |header: &Header| match claim {
            Some(Claim::Path) => header.version == FORMAT_VERSION && is_cwd(&header.cwd, &self.cwd),
            Some(Claim::Id) | None => header.version == FORMAT_VERSION && header.id == self.id(),
        };
        let present =
            self.present_file(&path, is_ours).map_err(|error| StoreError::Io { path: path.clone(), error })?;
        if let Some(present) = present {
            self.claim = None;
            self.switch_to(present, |_, _| {
                format!("session file {}: another process began the session there", path.display())
            });
        }
        Ok(())
    }

    /// Makes the file for a run that is about to begin, or goes on in the one another process has begun. After that
    /// nobody else can begin one, so what the run says has its place. Without a disk to write to, the run goes on.
    pub(crate) fn claim_for_run(&mut self) -> Result<(), StoreError> {
        let Some(journal) = self.journal.as_mut().filter(|_| self.claim.is_some()) else { return Ok(()) };
        journal.is_wanted = true;
        match self.claim_file() {
            Err(StoreError::Io { error, .. }) => {
                self.report_write_failure(&error);
                Ok(())
            }
            result => result,
        }
    }

    /// Writes the first content, to a file of its own or to one another process has begun.
    pub(crate) fn save_first(&mut self) -> io::Result<()> {
        self.claim_file().map_err(|error| match error {
            StoreError::Io { error, .. } => error,
            other => io::Error::other(other),
        })
    }

    fn claim_file(&mut self) -> Result<(), StoreError> {
        let _claimed = self.take_claim()?;
        self.join_existing()?;
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let saved = journal.save(&mut self.tree);
        saved.map_err(|error| StoreError::Io { path: journal.path.clone(), error })?;
        self.claim = None;
        Ok(())
    }

    /// Keeps others from making a file for the same id until the lock is dropped. Files of the same path are kept
    /// apart by their own lock.
    pub(crate) fn take_claim(&mut self) -> Result<Option<Lock>, StoreError> {
        let (Some(claim), Some(journal)) = (self.claim, &mut self.journal) else { return Ok(None) };
        let path = journal.path.clone();
        journal.create_directory().map_err(|error| StoreError::Io { path: path.clone(), error })?;
        match claim {
            Claim::Id => match Lock::take(&path.with_file_name(self.id()), Purpose::Access) {
                Ok(lock) => Ok(Some(lock)),
                Err(LockError::Unavailable) => Ok(None),
                Err(LockError::Taken(pid)) => Err(StoreError::InUse { pid, path }),
            },
            Claim::Path => {
                journal.begin_at(&path).map_err(|pid| StoreError::InUse { pid, path })?;
                Ok(None)
            }
        }
    }

    /// Returns the file another process has begun for this session.
    pub(crate) fn existing_file(&self) -> Option<PathBuf> {
        let journal = self.journal.as_ref().filter(|journal| !journal.is_created())?;
        match self.claim? {
            Claim::Id => find_named(self.id(), journal.path.parent().unwrap_or(Path::new("")), &self.cwd),
            Claim::Path => fs::metadata(&journal.path).is_ok_and(|file| file.len() > 0).then(|| journal.path.clone()),
        }
    }
}
