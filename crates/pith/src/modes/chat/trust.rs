//! The question whether a project is trusted, asked before there is a session.

use std::io::{self, BufRead};

use pith_resources::Question;
use pith_visible::write_stderr;

/// Asks the user at the terminal; anything but yes or no is no answer.
pub fn ask(question: &Question) -> Option<bool> {
    write_stderr(&format!("{}\n{}\n\nTrust it from now on? [y/n] ", question.title, question.message));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).ok()?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    }
}
