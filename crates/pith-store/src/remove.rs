//! Removing a session for good.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::StoreError;
use crate::lock::{Lock, LockError, Purpose};
use crate::paths::side_file;

/// What may stand beside a session file. Inputs of other processes have numbered files, which go unused without it.
const BESIDE: [&str; 2] = [".leaf", ".inputs"];

/// Removes a session file and what stands beside it. A session that another process works on is left alone.
pub fn remove(path: &Path) -> Result<(), StoreError> {
    let lock = match Lock::take(path, Purpose::Access) {
        Ok(lock) => Some(lock),
        Err(LockError::Taken(pid)) => return Err(StoreError::InUse { pid, path: path.to_owned() }),
        Err(LockError::Unavailable) => None,
    };
    let removed = fs::remove_file(path);
    for suffix in BESIDE {
        // There is one only if the session needed it.
        let _ = fs::remove_file(side_file(path, suffix));
    }
    drop(lock);
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::Io { path: path.to_owned(), error }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_and_what_stands_beside_it_are_gone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.jsonl");
        for name in ["s.jsonl", "s.jsonl.leaf", "s.jsonl.inputs"] {
            fs::write(directory.path().join(name), "x").unwrap();
        }
        remove(&path).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        remove(&path).expect("what is gone already is no error");
    }

    #[test]
    fn a_session_in_use_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.jsonl");
        fs::write(&path, "x").unwrap();
        let _lock = Lock::take(&path, Purpose::Run).unwrap();
        assert!(matches!(remove(&path), Err(StoreError::InUse { .. })));
        assert!(path.exists());
    }
}
