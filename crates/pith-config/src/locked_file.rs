//! JSON objects in files that other agents write too: read whole, changed under the lock.

use std::io;
use std::path::Path;

use serde_json::{Map, Value};

use crate::atomic_file::{create_private_directory, replace};
use crate::document;
use crate::file_lock::FileLock;

/// Reads a file others write in place. Half of a text never parses, so only a text that does not parse
/// has to be looked at again under the lock.
pub fn read(file: &Path) -> Result<Option<Value>, String> {
    document::read(file).or_else(|_| {
        // Without the lock (a read-only directory, a long holder) a second look may still help.
        let _lock = FileLock::acquire(file);
        document::read(file)
    })
}

/// Changes a JSON object on disk under its lock. What `edit` does not touch survives, and a file that
/// cannot be read is never overwritten.
pub fn update(file: &Path, edit: impl FnOnce(&mut Map<String, Value>)) -> io::Result<()> {
    file.parent().map_or(Ok(()), create_private_directory)?;
    let lock = FileLock::acquire(file)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
    update_locked(&lock, file, edit)
}

/// Does the same for a caller that has the lock already.
pub fn update_locked(_lock: &FileLock, file: &Path, edit: impl FnOnce(&mut Map<String, Value>)) -> io::Result<()> {
    let mut object = match document::read(file) {
        Ok(None) => Map::new(),
        Ok(Some(Value::Object(object))) => object,
        Ok(Some(_)) => return Err(io::Error::other(format!("{}: expected an object", file.display()))),
        Err(reason) => return Err(io::Error::other(format!("{}: {reason}", file.display()))),
    };
    edit(&mut object);
    let text = serde_json::to_vec_pretty(&object).expect("a JSON tree always serializes");
    replace(file, &text)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::thread;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("metadata").permissions().mode() & 0o777
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("read dir");
        entries.map(|entry| entry.expect("entry").file_name().into_string().expect("utf-8")).collect()
    }

    #[test]
    fn new_files_are_private_and_old_ones_keep_their_mode() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("a/b/auth.json");
        update(&file, |object| drop(object.insert("x".into(), json!(1)))).expect("update");
        assert_eq!((mode(&file), mode(file.parent().expect("parent"))), (0o600, 0o700));
        assert_eq!(fs::read_to_string(&file).expect("read"), "{\n  \"x\": 1\n}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("chmod");
        update(&file, |object| drop(object.insert("y".into(), json!(2)))).expect("update");
        assert_eq!(mode(&file), 0o640);
        assert_eq!(document::read(&file), Ok(Some(json!({"x": 1, "y": 2}))));
        assert_eq!(names(file.parent().expect("parent")), ["auth.json"], "neither lock nor temporary file is left");
    }

    #[test]
    fn a_file_that_does_not_parse_is_never_overwritten() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("settings.json");
        fs::write(&file, "{ precious").expect("write");
        assert!(update(&file, |object| drop(object.insert("x".into(), json!(1)))).is_err());
        assert_eq!(fs::read_to_string(&file).expect("read"), "{ precious");
    }

    #[test]
    fn a_reader_waits_for_a_writer_in_the_middle_of_a_text() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("settings.json");
        fs::write(&file, "{\"half").expect("write");
        let lock = FileLock::acquire(&file).expect("lock");
        let (sender, receiver) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| sender.send(read(&file)).expect("send"));
            fs::write(&file, "{\"half\": 1}").expect("write");
            drop(lock);
        });
        assert_eq!(receiver.recv().expect("answer"), Ok(Some(json!({"half": 1}))));
    }

    #[test]
    fn symbolic_links_stay_links() {
        let directory = tempfile::tempdir().expect("temp dir");
        let (target, link) = (directory.path().join("real.json"), directory.path().join("link.json"));
        fs::write(&target, "{}").expect("write");
        std::os::unix::fs::symlink(&target, &link).expect("symlink");
        update(&link, |object| drop(object.insert("x".into(), json!(1)))).expect("update");
        assert!(fs::symlink_metadata(&link).expect("metadata").is_symlink());
        assert_eq!(document::read(&target), Ok(Some(json!({"x": 1}))));
    }

    #[test]
    fn concurrent_updates_are_all_kept() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("settings.json");
        thread::scope(|scope| {
            for n in 0..4 {
                let file = &file;
                scope.spawn(move || {
                    for m in 0..3 {
                        let name = format!("{n}-{m}");
                        while update(file, |object| drop(object.insert(name.clone(), json!(true)))).is_err() {}
                    }
                });
            }
        });
        let object = document::read(&file).expect("parse").expect("file");
        assert_eq!(object.as_object().expect("object").len(), 12);
    }
}
