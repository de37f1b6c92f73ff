//! Rules of the repository that a compiler cannot hold.

use std::fs;
use std::path::{Path, PathBuf};

use pith_protocol::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test(&path) {
            found.push(path);
        }
    }
}

/// Tests that outgrew the file they belong to.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests")
        || path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
}

#[test]
fn every_command_is_documented() {
    let docs = fs::read_to_string(root().join("docs/protocol.md")).expect("docs/protocol.md");
    let headings: Vec<_> = docs.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let missing: Vec<_> = Command::NAMES.iter().filter(|name| !headings.contains(name)).collect();
    let unknown: Vec<_> = headings.iter().filter(|name| !Command::NAMES.contains(name)).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "without a heading: {missing:?}; no such command: {unknown:?}");
}

#[test]
fn files_of_logic_stay_readable() {
    let mut found = Vec::new();
    for directory in fs::read_dir(root().join("crates")).expect("crates").flatten() {
        sources(&directory.path().join("src"), &mut found);
    }
    let logic = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("UTF-8 source");
        // Tests at the end of a file are not logic.
        text.split("#[cfg(test)]").next().unwrap_or_default().lines().count()
    };
    let long: Vec<_> = found.iter().filter(|path| logic(path) > 400).collect();
    assert!(found.len() > 50 && long.is_empty(), "over 400 lines: {long:?}");
}

#[test]
fn every_module_says_what_it_is_for() {
    let mut found = Vec::new();
    for directory in fs::read_dir(root().join("crates")).expect("crates").flatten() {
        sources(&directory.path().join("src"), &mut found);
    }
    let bare: Vec<_> =
        found.iter().filter(|path| !fs::read_to_string(path).expect("UTF-8 source").starts_with("//!")).collect();
    assert!(bare.is_empty(), "without an opening paragraph: {bare:?}");
}

#[test]
fn text_reaches_a_terminal_only_where_it_is_made_visible() {
    const WRITERS: [&str; 9] = [
        "pith-visible/src/lib.rs",
        // Programs and open files of extensions have the process's stderr itself.
        "pith-ext/src/ops/fs.rs",
        "pith-ext/src/ops/process.rs",
        // Plays a script of pith's own.
        "pith/src/tour.rs",
        "pith/src/lib.rs",
        "pith/src/people/screen.rs",
        "pith/src/people/one_shot.rs",
        "pith/src/people/chat/mod.rs",
        "pith/src/transport/mod.rs",
    ];
    let mut found = Vec::new();
    for directory in fs::read_dir(root().join("crates")).expect("crates").flatten() {
        // Tests have a terminal of their own.
        if !directory.file_name().to_string_lossy().ends_with("testkit") {
            sources(&directory.path().join("src"), &mut found);
        }
    }
    let writes = |path: &&PathBuf| {
        let text = fs::read_to_string(path).expect("UTF-8 source");
        let logic = text.split("#[cfg(test)]").next().unwrap_or_default();
        ["io::stdout()", "io::stderr()", "println!(", "eprint!("].iter().any(|word| logic.contains(word))
    };
    let strays: Vec<_> =
        found.iter().filter(writes).filter(|path| !WRITERS.iter().any(|writer| path.ends_with(writer))).collect();
    assert!(strays.is_empty(), "these write to a terminal past pith_visible: {strays:?}");
}

#[test]
fn every_difference_between_dialects_has_its_proof() {
    let docs = fs::read_to_string(root().join("docs/dialects.md")).expect("docs/dialects.md");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let rows: Vec<_> = docs.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| topic")).collect();
    assert!(rows.len() > 20, "the tables are there");
    for row in rows {
        let proofs = row.trim_end_matches(['|', ' ']).rsplit(" | ").next().expect("a last cell");
        let names: Vec<_> = proofs.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no proof: {row}");
        for name in names {
            let is_transcript = tests.join(format!("transcripts/{name}.jsonl")).exists();
            let is_test = name.split_once("::").is_some_and(|(file, test)| {
                let sources = [tests.join(format!("rpc/{file}.rs")), tests.join(format!("../src/{file}.rs"))];
                sources.iter().any(|path| fs::read_to_string(path).is_ok_and(|text| text.contains(test)))
            });
            assert!(is_transcript || is_test, "no such proof: {name}");
        }
    }
}
