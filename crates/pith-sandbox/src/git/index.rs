//! The paths in an index that are repositories of their own: where git goes by itself.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const GITLINK: u32 = 0o160_000;
/// An index says how many entries it has; more than this is not read.
const MAX_ENTRIES: u32 = 2_000_000;

/// Returns the gitlinks of an index, relative to the top of the worktree. What cannot be read has none.
pub fn gitlinks(git_dir: &Path) -> Vec<PathBuf> {
    // A path is read to its end before it is known to be one, so the file is bounded too.
    let index = File::open(git_dir.join("index")).ok().filter(|file| file.metadata().is_ok_and(|it| it.is_file()));
    let mut found = Vec::new();
    // What was found before the file turned out to be broken counts.
    index.and_then(|file| read(BufReader::with_capacity(1 << 16, file.take(1 << 30)), &mut found));
    found
}

fn read(mut index: impl BufRead, found: &mut Vec<PathBuf>) -> Option<()> {
    let mut header = [0; 12];
    index.read_exact(&mut header).ok()?;
    let version = number(&header[4..8]);
    let n_entries = number(&header[8..12]);
    if &header[..4] != b"DIRC" || !(2..=4).contains(&version) || n_entries > MAX_ENTRIES {
        return None;
    }
    let mut path: Vec<u8> = Vec::new();
    // Ten numbers, the object's name, flags. Only names of 20 bytes are read; with others the path does not fit.
    let mut fixed = [0; 62];
    for _ in 0..n_entries {
        index.read_exact(&mut fixed).ok()?;
        let mode = number(&fixed[24..28]);
        let mut length = 62;
        if version >= 3 && fixed[60] & 0x40 != 0 {
            index.read_exact(&mut [0; 2]).ok()?;
            length += 2;
        }
        if version == 4 {
            let n_cut = offset(&mut index)?;
            path.truncate(path.len().checked_sub(n_cut)?);
            index.read_until(0, &mut path).ok()?;
            path.pop();
        } else {
            path.clear();
            index.read_until(0, &mut path).ok()?;
            path.pop();
            // Padded with one to eight zeros, of which one was read.
            let n_padding = 8 - (length + path.len()) % 8;
            index.read_exact(&mut [0; 8][..n_padding - 1]).ok()?;
        }
        if mode & 0o170_000 == GITLINK {
            found.push(PathBuf::from(OsStr::from_bytes(&path)));
        }
    }
    Some(())
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// A number in seven-bit parts, as packs have it for offsets.
fn offset(index: &mut impl Read) -> Option<usize> {
    let mut byte = [0];
    index.read_exact(&mut byte).ok()?;
    let mut value = usize::from(byte[0] & 0x7F);
    while byte[0] & 0x80 != 0 {
        index.read_exact(&mut byte).ok()?;
        value = value.checked_add(1)?.checked_mul(128)? | usize::from(byte[0] & 0x7F);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn gitlinks_are_found_in_every_version_of_an_index() {
        let dir = tempfile::tempdir().unwrap();
        let git = |script: &str| {
            let script = format!("export HOME=$PWD GIT_CONFIG_NOSYSTEM=1; {script}");
            Command::new("sh").args(["-ec", &script]).current_dir(dir.path()).status().is_ok_and(|it| it.success())
        };
        if !pith_testkit::has(git("git init -q .").then_some(()).ok_or("no git".to_owned())) {
            return;
        }
        let object = "0123456789012345678901234567890123456789";
        for n in 0..40 {
            assert!(git(&format!("mkdir -p d{n}; echo > d{n}/{}; git add d{n}", "x".repeat(n + 1))));
        }
        for link in ["a", "d3/zz", "long/er/path/to/it"] {
            assert!(git(&format!("git update-index --add --cacheinfo 160000,{object},{link}")));
        }
        for version in ["2", "3", "4"] {
            assert!(git(&format!(
                "git update-index --index-version {version}; echo > new{version}; git add -N new{version}"
            )));
            let found = gitlinks(&dir.path().join(".git"));
            assert_eq!(found, ["a", "d3/zz", "long/er/path/to/it"].map(PathBuf::from), "version {version}");
        }
        let index = std::fs::read(dir.path().join(".git/index")).unwrap();
        for end in [0, 5, 12, 70, index.len() / 2] {
            std::fs::write(dir.path().join(".git/index"), &index[..end]).unwrap();
            gitlinks(&dir.path().join(".git"));
        }
    }
}
