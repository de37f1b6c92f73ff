//! The files that the user's settings of git name. Git ends with an error if it cannot read one of them.

use std::fs;
use std::path::{Path, PathBuf};

/// How deep files include each other at most, as in git.
const MAX_DEPTH: usize = 10;

/// Returns the files that git reads because the settings in a home say so: more settings, and lists of patterns.
pub(crate) fn named_in(home: &Path) -> Vec<PathBuf> {
    let mut named = Vec::new();
    for settings in [".gitconfig", ".config/git/config"] {
        add_named_in(&home.join(settings), home, MAX_DEPTH, &mut named);
    }
    named
}

fn add_named_in(settings: &Path, home: &Path, depth: usize, named: &mut Vec<PathBuf>) {
    let text = Some(settings).filter(|path| path.is_file()).and_then(|path| fs::read_to_string(path).ok());
    let mut section = String::new();
    for line in text.unwrap_or_default().lines().map(str::trim) {
        let mut line = line;
        if let Some((name, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            section = name.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
            line = rest.trim();
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let includes = section == "include" || section == "includeif";
        let path = match (&*section, &*key.trim().to_ascii_lowercase()) {
            (_, "path") if includes => value,
            ("core", "excludesfile" | "attributesfile") | ("commit", "template") => value,
            _ => continue,
        };
        let path = path.split([';', '#']).next().unwrap_or_default().trim().trim_matches('"');
        let path = match path.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None => settings.parent().unwrap_or(home).join(path),
        };
        if !path.is_file() || named.contains(&path) {
            continue;
        }
        named.push(path.clone());
        if includes && depth > 0 {
            add_named_in(&path, home, depth - 1, named);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_lead_to_more_settings_and_lists() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        for (name, text) in [
            (
                ".gitconfig",
                "[Include] path = ~/.git-work ; mine\n[core]\n\texcludesFile = \".ignored\"\n\tpager = .pager\n",
            ),
            (".git-work", "[includeIf \"gitdir:~/w/\"]\n\tpath = .git-inner\n[credential]\n\tpath = .secret\n"),
            (".git-inner", "[include]\npath = ~/.git-work\npath = ~/.missing\n"),
            (".ignored", ""),
            (".pager", ""),
            (".secret", ""),
        ] {
            fs::write(home.join(name), text).unwrap();
        }
        assert_eq!(named_in(home), [".git-work", ".git-inner", ".ignored"].map(|name| home.join(name)));
    }
}
