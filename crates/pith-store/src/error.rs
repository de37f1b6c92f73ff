//! Why a session cannot be opened or changed. The texts reach hosts unchanged.

use pith_protocol::{CommandError, ErrorCode};
use std::io;
use std::path::PathBuf;

/// The newest file format this version reads and the only one it writes.
pub const FORMAT_VERSION: u32 = 3;

/// A refused store operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("Session file not found: {}", .0.display())]
    NotFound(PathBuf),
    #[error("Session file is not a valid pi session: {}", .0.display())]
    NotASession(PathBuf),
    #[error("Session is in use by another process (pid {}): {}", .pid.map_or("unknown".to_owned(), |pid| pid.to_string()), .path.display())]
    InUse { pid: Option<u32>, path: PathBuf },
    #[error(
        "Session file {} has format version {found}, newer than version {FORMAT_VERSION} which this program writes; \
         use --fork to continue it in a new file", .path.display()
    )]
    NewerVersion { path: PathBuf, found: u32 },
    #[error(
        "Stored session working directory does not exist: {stored}\nSession file: {}\nCurrent working directory: {}",
        .path.display(), .current.display()
    )]
    MissingCwd { stored: String, path: PathBuf, current: PathBuf },
    #[error("Session file {} is larger than 2 GiB", .0.display())]
    FileTooLarge(PathBuf),
    #[error("Session file {}: line {line} is longer than 64 MiB", .path.display())]
    LineTooLong { path: PathBuf, line: u64 },
    #[error("Session file {}: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("Entry not found: {0}")]
    EntryNotFound(String),
    #[error("Entry {0} cannot be edited")]
    NotEditable(String),
    #[error("Invalid entry ID for forking")]
    NotForkable,
    #[error("This session has not been saved yet. Wait for the first assistant response before cloning or forking it.")]
    NotSaved,
    #[error("Session already exists with id '{0}'")]
    IdTaken(String),
    #[error("No session found matching '{0}'")]
    NoMatch(String),
    #[error("Cannot clone session: no current entry selected")]
    NothingToClone,
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::NotFound(_) | StoreError::NoMatch(_) => ErrorCode::SessionNotFound,
            StoreError::NotASession(_)
            | StoreError::NewerVersion { .. }
            | StoreError::FileTooLarge(_)
            | StoreError::LineTooLong { .. }
            | StoreError::IdTaken(_) => ErrorCode::SessionInvalid,
            StoreError::InUse { .. } => ErrorCode::SessionInUse,
            StoreError::MissingCwd { .. } => ErrorCode::DirectoryMissing,
            StoreError::Io { .. } => ErrorCode::Io,
            StoreError::EntryNotFound(_) | StoreError::NotEditable(_) | StoreError::NotForkable => {
                ErrorCode::EntryNotFound
            }
            StoreError::NotSaved | StoreError::NothingToClone => ErrorCode::NothingThere,
        };
        CommandError::new(code, error.to_string())
    }
}
