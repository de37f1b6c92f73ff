//! How much of the disk a project takes.
//!
//! Unlike the walks of checkpoints this looks at ignored files too: what builds leave is what fills a disk.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

/// What `st_blocks` counts in, whatever the file system.
const BLOCK: u64 = 512;

/// Returns how many bytes everything below a directory takes. Links are not followed, and other file systems are not
/// entered. Fails if it takes longer than until `deadline`: a part of the sum would say nothing.
pub fn disk_usage(directory: &Path, deadline: Instant) -> io::Result<u64> {
    let device = directory.metadata()?.dev();
    let mut bytes = 0;
    // Files with several names are counted once.
    let mut linked = HashSet::new();
    let mut unread = vec![fs::read_dir(directory)?];
    while let Some(entries) = unread.pop() {
        for entry in entries.flatten() {
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            // It may be gone by now.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.dev() != device {
                continue;
            }
            if metadata.is_dir() {
                // What must not be read is not counted.
                unread.extend(fs::read_dir(entry.path()));
            } else if metadata.nlink() > 1 && !linked.insert(metadata.ino()) {
                continue;
            }
            bytes += metadata.blocks() * BLOCK;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(600)
    }

    #[test]
    fn every_file_counts_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let outside = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        fs::create_dir_all(path("target/.hidden")).expect("created");
        fs::write(path(".gitignore"), "target\n").expect("written");
        let before = disk_usage(directory.path(), soon()).expect("measured");
        let megabyte = vec![7; 1 << 20];
        fs::write(path("target/.hidden/object"), &megabyte).expect("written");
        fs::hard_link(path("target/.hidden/object"), path("target/program")).expect("linked");
        fs::write(outside.path().join("large"), &megabyte).expect("written");
        std::os::unix::fs::symlink(outside.path(), path("elsewhere")).expect("linked");
        fs::File::create(path("sparse")).expect("created").set_len(1 << 40).expect("grown");
        let grown = disk_usage(directory.path(), soon()).expect("measured") - before;
        assert!((1 << 20..(1 << 20) + (256 << 10)).contains(&grown), "{grown}");
    }

    #[test]
    fn what_takes_too_long_or_is_not_there_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("file"), "").expect("written");
        let kind = |path: &Path, deadline| disk_usage(path, deadline).expect_err("no sum").kind();
        assert_eq!(kind(directory.path(), Instant::now()), io::ErrorKind::TimedOut);
        assert_eq!(kind(&directory.path().join("none"), soon()), io::ErrorKind::NotFound);
    }
}
