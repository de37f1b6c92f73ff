//! A question to the user at a terminal that is answered with yes or no.

use std::io::{self, BufRead};

use pith_visible::write_stderr;

/// Asks; anything but yes or no is no answer.
pub fn confirm(question: &str) -> Option<bool> {
    write_stderr(&format!("{question} [y/n] "));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).ok()?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    }
}
