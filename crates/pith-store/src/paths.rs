//! Where session files live and what they are called.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::time;

/// Returns the directory for sessions of `cwd` below the agent directory.
///
/// Two working directories can share a name (`/a/b-c`, `/a-b/c`), so callers
/// that filter sessions compare the header's `cwd` too.
pub fn session_directory(agent_dir: &Path, cwd: &Path) -> PathBuf {
    sessions_root(agent_dir).join(directory_name(cwd))
}

/// Returns the directory that holds one directory per working directory.
pub fn sessions_root(agent_dir: &Path) -> PathBuf {
    agent_dir.join("sessions")
}

/// Returns `--home-u-my.proj--` for `/home/u/my.proj`.
fn directory_name(cwd: &Path) -> String {
    let cwd = normalise(cwd);
    let text = cwd.to_string_lossy();
    let text = text.strip_prefix(['/', '\\']).unwrap_or(&text);
    format!("--{}--", text.replace(['/', '\\', ':'], "-"))
}

/// Removes `.` and resolves `..` without asking the file system: links keep their names.
pub(crate) fn normalise(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match out.components().next_back() {
                Some(Component::Normal(_)) => _ = out.pop(),
                Some(Component::RootDir | Component::Prefix(_)) => {}
                Some(Component::CurDir | Component::ParentDir) | None => out.push(component),
            },
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(component),
        }
    }
    out
}

/// Returns `<stamp>_<session id>.jsonl`.
pub(crate) fn file_name(created: i64, id: &str) -> String {
    format!("{}_{id}.jsonl", time::to_iso(created).replace([':', '.'], "-"))
}

/// Returns a file next to the session file, named after it. Never ends in `.jsonl`.
pub(crate) fn side_file(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_named_after_the_working_directory() {
        let check = |cwd: &str, name: &str| {
            assert_eq!(session_directory(Path::new("/a"), Path::new(cwd)), Path::new("/a/sessions").join(name));
        };
        check("/home/u/my.proj", "--home-u-my.proj--");
        check("/home/u/./x/../my.proj/", "--home-u-my.proj--");
        check("/a/b-c", "--a-b-c--");
        check("/a-b/c", "--a-b-c--");
        check("/with:colon\\s", "--with-colon-s--");
        check("/", "----");
        check("/..", "----");
    }

    #[test]
    fn files_are_named_after_their_creation() {
        let created = time::from_iso("2026-11-15T06:52:54.872Z").unwrap();
        assert_eq!(file_name(created, "x-1"), "2026-11-15T06-52-54-872Z_x-1.jsonl");
        assert_eq!(side_file(Path::new("/d/a.jsonl"), ".lock"), Path::new("/d/a.jsonl.lock"));
    }
}
