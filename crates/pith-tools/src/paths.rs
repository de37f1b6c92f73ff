//! Resolves the path a model wrote to the one it means.
//!
//! Models copy paths from chat windows, shells and file managers, so look-alike spaces, a leading `@`, `~` and
//! `file://` are understood. If a file with exactly that name exists, it wins over the interpretation.

use std::path::{Component, Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

/// Where relative paths start and what `~` means.
#[derive(Clone, Debug)]
pub struct Base {
    pub cwd: PathBuf,
    pub home: Option<PathBuf>,
}

impl Base {
    /// Returns the absolute path that `input` means.
    pub fn resolve(&self, input: &str) -> PathBuf {
        let literal = self.absolute(input);
        let mended = mend(input);
        if mended == input || literal.symlink_metadata().is_ok() {
            return literal;
        }
        self.absolute(&mended)
    }

    /// Like [`Base::resolve`], but also tries the spellings that macOS uses in the file names it generates.
    pub fn resolve_existing(&self, input: &str) -> PathBuf {
        let plain = self.resolve(input);
        if plain.symlink_metadata().is_ok() {
            return plain;
        }
        let Some(text) = plain.to_str() else { return plain };
        variants(text).into_iter().map(PathBuf::from).find(|path| path.symlink_metadata().is_ok()).unwrap_or(plain)
    }

    fn absolute(&self, input: &str) -> PathBuf {
        let local = file_url(input);
        let path = local.as_deref().unwrap_or(input);
        let expanded = match (path, path.strip_prefix("~/"), &self.home) {
            ("~", _, Some(home)) => home.clone(),
            (_, Some(rest), Some(home)) => home.join(rest),
            _ => self.cwd.join(path),
        };
        normalise(&expanded)
    }
}

/// Removes `.` and `..` without reading the disk.
pub fn normalise(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => normal.push(component),
        }
    }
    normal
}

/// Returns the path relative to `base`, with `/` between its components.
pub fn relative(path: &Path, base: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).to_string_lossy().into_owned()
}

fn mend(input: &str) -> String {
    let spaced: String = input.chars().map(|c| if is_odd_space(c) { ' ' } else { c }).collect();
    spaced.strip_prefix('@').map(str::to_owned).unwrap_or(spaced)
}

fn is_odd_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

fn file_url(input: &str) -> Option<String> {
    let rest = input.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    path.starts_with('/').then(|| percent_decoded(path))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = (byte == b'%').then(|| after.get(..2)).flatten();
        match code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Other spellings of the same name, most likely first.
fn variants(path: &str) -> Vec<String> {
    let decomposed: String = path.nfd().collect();
    let curly = |text: &str| text.replace('\'', "\u{2019}");
    vec![narrow_before_meridiem(path), decomposed.clone(), curly(path), curly(&decomposed)]
}

/// Inserts the narrow no-break space that macOS puts into the names of screenshots: `… 9.41.00 AM.png`.
fn narrow_before_meridiem(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for (at, c) in path.char_indices() {
        let follows = path.as_bytes().get(at + 1..at + 4).map(<[u8]>::to_ascii_lowercase);
        let before_meridiem = matches!(follows.as_deref(), Some(b"am." | b"pm."));
        out.push(if c == ' ' && before_meridiem { '\u{202f}' } else { c });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Base {
        Base { cwd: "/w/d".into(), home: Some("/home/u".into()) }
    }

    fn check(input: &str, expected: &str) {
        assert_eq!(base().resolve(input), Path::new(expected), "{input:?}");
    }

    #[test]
    fn paths_as_models_write_them_are_understood() {
        check("a.txt", "/w/d/a.txt");
        check("", "/w/d");
        check("../x/./y", "/w/x/y");
        check("/../../etc", "/etc");
        check("@src/lib.rs", "/w/d/src/lib.rs");
        check("@@x", "/w/d/@x");
        check("~", "/home/u");
        check("~/a", "/home/u/a");
        check("~other", "/w/d/~other");
        check("a\u{a0}b\u{202f}c", "/w/d/a b c");
        check("file:///tmp/a%20b%zz", "/tmp/a b%zz");
        check("file://localhost/tmp/x", "/tmp/x");
        check("file://host/tmp/x", "/w/d/file:/host/tmp/x");
    }

    #[test]
    fn an_existing_literal_name_wins() {
        let dir = tempfile::tempdir().unwrap();
        let base = Base { cwd: dir.path().into(), home: None };
        for name in ["@x", "with\u{202f}narrow"] {
            std::fs::write(dir.path().join(name), "").unwrap();
            assert_eq!(base.resolve(name), dir.path().join(name));
        }
        assert_eq!(base.resolve("@y"), dir.path().join("y"));
    }

    #[test]
    fn reading_finds_names_in_other_spellings() {
        let dir = tempfile::tempdir().unwrap();
        let base = Base { cwd: dir.path().into(), home: None };
        for (asked, on_disk) in [
            ("Shot 9.41.00 PM.png", "Shot 9.41.00\u{202f}PM.png"),
            ("caf\u{e9}.txt", "cafe\u{301}.txt"),
            ("it's.txt", "it\u{2019}s.txt"),
            ("l'\u{e9}t\u{e9}.txt", "l\u{2019}e\u{301}te\u{301}.txt"),
        ] {
            std::fs::write(dir.path().join(on_disk), "").unwrap();
            assert_eq!(base.resolve_existing(asked), dir.path().join(on_disk), "{asked:?}");
        }
        assert_eq!(base.resolve_existing("none's AM.x"), dir.path().join("none's AM.x"));
    }
}
