//! The addresses by which editors name files and selections.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

/// What a URI of an editor names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// A file, if it is one; other addresses are kept as they are.
    pub path: Option<PathBuf>,
    /// First and last line of a selection, such as `5-15`.
    pub lines: Option<String>,
}

impl Place {
    /// Reads `file:///path#L5:15`, `file:///path?symbol=Name#L5`, a plain path, or anything else.
    pub fn of(uri: &str) -> Self {
        let (rest, fragment) = uri.split_once('#').map_or((uri, None), |(rest, fragment)| (rest, Some(fragment)));
        let lines = fragment.and_then(lines_of);
        let path = match rest.strip_prefix("file://") {
            Some(path) => {
                let path = path.split('?').next().unwrap_or_default();
                let decoded = percent_decode_str(path).decode_utf8_lossy().into_owned();
                // A host may stand before the path; it is this machine.
                decoded.find('/').map(|start| PathBuf::from(&decoded[start..]))
            }
            None if rest.starts_with('/') => Some(PathBuf::from(rest)),
            None => None,
        };
        Place { path, lines }
    }

    /// The path as the model should use it: relative where it is inside the working directory.
    pub fn shown(&self, uri: &str, cwd: &Path) -> String {
        let Some(path) = &self.path else { return uri.to_owned() };
        let inside = path.strip_prefix(cwd).ok().filter(|inside| !inside.as_os_str().is_empty());
        let shown = inside.unwrap_or(path).display().to_string();
        // A path forgets the slash that marks a directory.
        let is_directory = path.as_os_str().as_encoded_bytes().ends_with(b"/") && !shown.ends_with('/');
        if is_directory { shown + "/" } else { shown }
    }
}

/// `L10:20` and `L10-20` as `10-20`, `L10` as `10`.
fn lines_of(fragment: &str) -> Option<String> {
    let range = fragment.strip_prefix('L')?.replace([':', 'L'], "-").replace("--", "-");
    let is_range = range.split('-').count() <= 2 && range.split('-').all(|part| part.parse::<u32>().is_ok());
    is_range.then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str, shown: &str, lines: Option<&str>) {
        let place = Place::of(uri);
        assert_eq!((place.shown(uri, Path::new("/w")).as_str(), place.lines.as_deref()), (shown, lines), "{uri}");
    }

    #[test]
    fn uris_of_editors() {
        check("file:///w/src/a.rs", "src/a.rs", None);
        check("file:///w/a%20b.rs#L10:20", "a b.rs", Some("10-20"));
        check("file:///w/a.rs?symbol=Name#L10:20", "a.rs", Some("10-20"));
        check("file:///w/src/", "src/", None);
        check("file:///w", "/w", None);
        check("file:///etc/x#L3", "/etc/x", Some("3"));
        check("file://localhost/w/a.rs#L5-L9", "a.rs", Some("5-9"));
        check("/w/a.rs", "a.rs", None);
        check("zed:///agent/untitled-buffer#L1:10", "zed:///agent/untitled-buffer#L1:10", Some("1-10"));
        // Other addresses of Zed.
        for uri in [
            "zed:///agent/untitled-buffer",
            "zed:///agent/pasted-image?name=Image",
            "zed:///agent/thread/4711?name=My+thread",
            "zed:///agent/diagnostics?include_errors=true",
            "zed:///agent/terminal-selection?lines=12",
        ] {
            check(uri, uri, None);
        }
        check("https://example.com/x#L", "https://example.com/x#L", None);
    }
}
