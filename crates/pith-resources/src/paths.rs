//! Paths as people write them, made absolute.

use std::path::{Component, Path, PathBuf};

/// Resolves a path from a flag or a setting: `~`, `file://` URLs, and the rest against `base`.
pub(crate) fn resolve(value: &str, base: &Path, home: Option<&Path>) -> PathBuf {
    let value = value.trim();
    if let Some(rest) = value.strip_prefix("file://") {
        // The host part is empty or names this machine.
        let rest = rest.strip_prefix("localhost").filter(|rest| rest.starts_with('/')).unwrap_or(rest);
        return normalize(&base.join(percent_decoded(rest)));
    }
    normalize(&base.join(expand_home(value, home)))
}

/// Replaces a leading `~` or `~/` by the home directory.
pub(crate) fn expand_home(value: &str, home: Option<&Path>) -> PathBuf {
    let rest = value.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match (rest, home) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(value),
    }
}

/// Removes `.` and `..` without asking the file system, so that links stay as the user wrote them.
pub(crate) fn normalize(path: &Path) -> PathBuf {
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

/// `path` as seen from `base`, with `/` between names.
pub(crate) fn relative(path: &Path, base: &Path) -> String {
    let (mut path_rest, mut base_rest) = (path.components().peekable(), base.components().peekable());
    while path_rest.peek().is_some() && path_rest.peek() == base_rest.peek() {
        path_rest.next();
        base_rest.next();
    }
    let ups = base_rest.map(|_| "..".into());
    let downs = path_rest.map(|component| component.as_os_str().to_string_lossy());
    ups.chain(downs).collect::<Vec<_>>().join("/")
}

/// A path as text with `/` between names.
pub(crate) fn slashed(path: &Path) -> String {
    let text = path.to_string_lossy();
    match std::path::MAIN_SEPARATOR {
        '/' => text.into_owned(),
        separator => text.replace(separator, "/"),
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
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

    #[test]
    fn relative_paths() {
        let check = |path: &str, base: &str, expected: &str| {
            assert_eq!(relative(Path::new(path), Path::new(base)), expected, "{path} from {base}");
        };
        check("/a/b/c", "/a", "b/c");
        check("/a/b", "/a/b", "");
        check("/a/x/y", "/a/b/c", "../../x/y");
    }
}
