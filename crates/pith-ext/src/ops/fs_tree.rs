//! The calls of `node:fs` that walk directories.

use std::fs::{self, DirBuilder, FileType};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::fs::Request;

/// The type of a file in one word.
pub fn kind(file_type: FileType) -> &'static str {
    if file_type.is_file() {
        "file"
    } else if file_type.is_dir() {
        "directory"
    } else if file_type.is_symlink() {
        "link"
    } else if file_type.is_fifo() {
        "fifo"
    } else if file_type.is_socket() {
        "socket"
    } else if file_type.is_block_device() {
        "block"
    } else {
        "char"
    }
}

/// Names and types of a directory's entries, sorted by name.
pub fn list(path: &Path, recursive: bool) -> io::Result<Value> {
    let mut found = Vec::new();
    collect(path, "", recursive, &mut found)?;
    found.sort();
    Ok(json!(found))
}

fn collect(path: &Path, prefix: &str, recursive: bool, found: &mut Vec<(String, &'static str)>) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let file_type = entry.file_type()?;
        if recursive && file_type.is_dir() {
            collect(&entry.path(), &format!("{name}/"), recursive, found)?;
        }
        found.push((name, kind(file_type)));
    }
    Ok(())
}

/// Creates a directory. With `recursive`, returns the first one that had to be created.
pub fn make(path: &Path, recursive: bool, mode: Option<u32>) -> io::Result<Value> {
    let mut builder = DirBuilder::new();
    builder.mode(mode.unwrap_or(0o777));
    if !recursive {
        return builder.create(path).map(|()| Value::Null);
    }
    let missing = path.ancestors().take_while(|ancestor| !ancestor.exists()).last().map(Path::to_owned);
    builder.recursive(true).create(path)?;
    Ok(missing.map_or(Value::Null, |first| json!(first.to_string_lossy())))
}

/// Creates a directory whose name begins with `prefix`.
pub fn make_temporary(prefix: &str) -> io::Result<Value> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    loop {
        let random = uuid::Uuid::new_v4().into_bytes();
        let ending: String =
            random[..6].iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect();
        let path = format!("{prefix}{ending}");
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(Value::String(path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Removes a file or, with `recursive`, a whole directory. With `force`, a missing file is no error.
pub fn remove(path: &Path, recursive: bool, force: bool) -> io::Result<()> {
    let facts = match fs::symlink_metadata(path) {
        Ok(facts) => facts,
        Err(error) if force && error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    match (facts.is_dir(), recursive) {
        (true, true) => fs::remove_dir_all(path),
        (true, false) => Err(io::Error::from_raw_os_error(rustix::io::Errno::ISDIR.raw_os_error())),
        (false, _) => fs::remove_file(path),
    }
}

/// Copies one file.
pub fn copy_file(from: &Path, to: &Path, exclusive: bool) -> io::Result<()> {
    if exclusive && to.symlink_metadata().is_ok() {
        return Err(io::Error::from_raw_os_error(rustix::io::Errno::EXIST.raw_os_error()));
    }
    fs::copy(from, to).map(drop)
}

/// Copies a file or, if asked to, a directory with its contents.
pub fn copy(from: &Path, to: &Path, request: &Request) -> io::Result<()> {
    let facts = fs::symlink_metadata(from)?;
    if facts.is_dir() {
        if !request.recursive {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::ISDIR.raw_os_error()));
        }
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let name: PathBuf = entry?.file_name().into();
            copy(&from.join(&name), &to.join(&name), request)?;
        }
        return Ok(());
    }
    if to.symlink_metadata().is_ok() && !request.force {
        let exists = io::Error::from_raw_os_error(rustix::io::Errno::EXIST.raw_os_error());
        return if request.error_on_exist { Err(exists) } else { Ok(()) };
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    if facts.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    fs::copy(from, to).map(drop)
}
