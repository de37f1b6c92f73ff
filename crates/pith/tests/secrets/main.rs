//! Keys in every place a key can be in, printed on every way out, and found nowhere.

mod debug;
mod own_process;
mod places;
mod servers;

use std::fs;
use std::path::Path;

/// Fails if one of these texts is somewhere below a directory.
#[track_caller]
fn assert_not_below(directory: &Path, texts: &[String]) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            assert_not_below(&path, texts);
        } else if let Ok(content) = fs::read(&path) {
            assert_not_in(&path.display().to_string(), &content, texts);
        }
    }
}

#[track_caller]
fn assert_not_in(place: &str, content: &[u8], texts: &[String]) {
    let content = String::from_utf8_lossy(content);
    for text in texts {
        let around = content
            .find(text.as_str())
            .map(|at| content[..at].chars().rev().take(80).collect::<Vec<_>>().into_iter().rev().collect::<String>());
        assert_eq!(around, None, "{text} is in {place} after this");
    }
}
