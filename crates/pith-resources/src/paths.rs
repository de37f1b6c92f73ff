//! Paths as patterns and the model see them.

use std::path::Path;

/// Returns `path` relative to `base`, with `/` between names.
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

/// Returns a path as text with `/` between names.
pub(crate) fn slashed(path: &Path) -> String {
    let text = path.to_string_lossy();
    match std::path::MAIN_SEPARATOR {
        '/' => text.into_owned(),
        separator => text.replace(separator, "/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
