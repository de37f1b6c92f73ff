//! Releases memory that is not needed while pith waits.
//!
//! Starting up runs code that serving never uses again, and every page of it brings in its neighbours; a request with a
//! long history is made of many small pieces, whose room the allocator keeps. All of it counts as this process's memory
//! while the process waits for its host, which is most of the time. Pages of code and of constants belong to the
//! program's file and are never written, so they can be dropped: pages that are needed again are mapped again from the
//! page cache.

use std::fs;
use std::io;
use std::ops::Range;
use std::thread;

/// How much free memory is kept for the next commands.
#[cfg(target_env = "gnu")]
const TOP_PAD: usize = 256 << 10;

/// Enough for the little that the thread does.
const STACK: usize = 64 << 10;

/// Releases what is not needed while nothing happens. A thread does that which ends at once: whoever goes on afterwards
/// maps the pages it runs on again, and their neighbours. On the way back to waiting that would be a megabyte.
pub fn release() {
    let releasing = || {
        // If the kernel refuses, the pages stay mapped.
        let _ = release_program();
        trim_heap();
    };
    // Without a thread nothing is released.
    let _ = thread::Builder::new().name("release".to_owned()).stack_size(STACK).spawn(releasing);
}

#[allow(unsafe_code, reason = "the C library has no safe name for it")]
fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes the allocator's own locks and touches free memory only.
    unsafe {
        libc::malloc_trim(TOP_PAD);
    }
}

/// Releases the pages of the program's file that are mapped now.
fn release_program() -> io::Result<()> {
    let program = fs::read_link("/proc/self/exe")?;
    let maps = fs::read_to_string("/proc/self/maps")?;
    let program = program.to_string_lossy();
    for range in maps.lines().filter_map(|line| unwritten(line, &program)) {
        release_range(range)?;
    }
    Ok(())
}

/// The addresses of a mapping, if it is a part of the program that was never written: its code, or its constants, with
/// which the file begins. Other parts that cannot be written any more hold addresses that the loader has put in.
fn unwritten(line: &str, program: &str) -> Option<Range<usize>> {
    // Five columns, then a path that may contain spaces.
    let mut columns = line.splitn(6, ' ');
    let (addresses, rights, offset) = (columns.next()?, columns.next()?, columns.next()?);
    let path = columns.nth(2)?.trim_start();
    let code = rights == "r-xp";
    let constants = rights == "r--p" && offset.bytes().all(|digit| digit == b'0');
    if !(code || constants) || path != program {
        return None;
    }
    let (start, end) = addresses.split_once('-')?;
    let number = |digits| usize::from_str_radix(digits, 16).ok();
    Some(number(start)?..number(end)?)
}

#[allow(unsafe_code, reason = "the kernel is told about addresses")]
fn release_range(range: Range<usize>) -> io::Result<()> {
    use rustix::mm::{Advice, madvise};
    let start = std::ptr::without_provenance_mut(range.start);
    // SAFETY: the range is a mapping of this process that is backed by the program's file and cannot be
    // written, so no page of it differs from the file; letting go of one only means that the next access
    // maps it from there again. Nothing is unmapped and no address changes its meaning.
    unsafe { madvise(start, range.len(), Advice::LinuxDontNeed) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_and_constants_of_the_program_are_found() {
        let check =
            |line: &str, range: Option<Range<usize>>| assert_eq!(unwritten(line, "/opt/a b/pith"), range, "{line}");
        check("1000-3000 r-xp 00002000 fe:00 77                         /opt/a b/pith", Some(0x1000..0x3000));
        check("1000-3000 r--p 00000000 fe:00 77                         /opt/a b/pith", Some(0x1000..0x3000));
        check("1000-3000 r--p 00002000 fe:00 77                         /opt/a b/pith", None);
        check("1000-3000 rw-p 00000000 fe:00 77                         /opt/a b/pith", None);
        check("1000-3000 rwxp 00002000 fe:00 77                         /opt/a b/pith", None);
        check("1000-3000 r-xp 00002000 fe:00 77                         /lib/libc.so.6", None);
        check("1000-3000 r-xp 00000000 00:00 0", None);
    }

    #[test]
    fn the_program_runs_after_releasing_its_pages() {
        release_program().expect("its own mappings");
        assert_eq!("still here".to_uppercase(), "STILL HERE");
    }
}
