//! Paths as people write them in flags and settings.

use std::path::{Component, Path, PathBuf};

use percent_encoding::percent_decode_str;

/// Returns the absolute path that a flag or a setting names. `~` and `file://` are understood; anything else that is
/// relative starts at `base`.
pub fn resolve(value: &str, base: &Path, home: Option<&Path>) -> PathBuf {
    normalize(&base.join(expand(value.trim(), home)))
}

/// Replaces a leading `~` by the home directory, or a `file://` address by its path.
pub(crate) fn expand(value: &str, home: Option<&Path>) -> PathBuf {
    let Some(rest) = value.strip_prefix("file://") else { return expand_home(value, home) };
    // The host part is empty or names this machine.
    let rest = rest.strip_prefix("localhost").filter(|rest| rest.starts_with('/')).unwrap_or(rest);
    PathBuf::from(percent_decode_str(rest).decode_utf8_lossy().into_owned())
}

/// Replaces a leading `~` or `~/` by the home directory.
pub fn expand_home(value: &str, home: Option<&Path>) -> PathBuf {
    let rest = value.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with(['/', '\\']));
    match (rest, home) {
        (Some(""), Some(home)) => home.to_path_buf(),
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches(['/', '\\'])),
        _ => PathBuf::from(value),
    }
}

/// Removes `.` and `..` without asking the file system, so that links stay as the user wrote them.
pub fn normalize(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(clean.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(component),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_absolute_paths() {
        let check = |value: &str, expected: &str| {
            let resolved = resolve(value, Path::new("/work"), Some(Path::new("/home/u")));
            assert_eq!(resolved, Path::new(expected), "{value}");
        };
        check("a/b", "/work/a/b");
        check(" ./a ", "/work/a");
        check("../a/./b/../c", "/a/c");
        check("/x", "/x");
        check("~", "/home/u");
        check("~/s", "/home/u/s");
        check("~other/s", "/work/~other/s");
        check("file:///a%20b/c", "/a b/c");
        check("file://localhost/a", "/a");
        check("file:///100%/%zz", "/100%/%zz");
        check("../../../..", "/");
    }

    #[test]
    fn a_tilde_without_a_home_is_a_name() {
        assert_eq!(resolve("~/s", Path::new("/work"), None), Path::new("/work/~/s"));
    }
}
