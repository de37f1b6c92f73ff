//! Tests that cannot run on a machine say so, and are counted.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::thread;

/// Called by a test that lacks something, before it returns: writes `skipped: NAME: REASON` to stderr, past the test
/// harness that would keep it to itself, and to the file `PITH_SKIPPED` names. `.ci/run` adds these up.
pub fn skip(reason: &str) {
    let thread = thread::current();
    let line = format!("skipped: {}: {reason}\n", thread.name().unwrap_or("a test"));
    let _ = io::stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("PITH_SKIPPED") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// Returns whether a test has what it needs; says `skipped` and why if it has not.
pub fn has(needed: Result<(), String>) -> bool {
    if let Err(why) = &needed {
        skip(why);
    }
    needed.is_ok()
}
