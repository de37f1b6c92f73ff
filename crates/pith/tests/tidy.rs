//! Rules of the repository that the compiler cannot check.

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

/// Test modules that have their own files.
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
    const WRITERS: [&str; 13] = [
        "pith-visible/src/lib.rs",
        // Programs and open files of extensions get the process's stderr itself.
        "pith-ext/src/ops/fs.rs",
        "pith-ext/src/ops/process.rs",
        // npm and git show their progress themselves.
        "pith/src/packages/programs.rs",
        // Plays pith's own script.
        "pith/src/tour.rs",
        "pith/src/lib.rs",
        "pith/src/modes/screen.rs",
        "pith/src/modes/one_shot.rs",
        // Their rows are made of pieces that were made visible.
        "pith/src/modes/chat/mod.rs",
        "pith/src/modes/chat/console.rs",
        "pith/src/modes/chat/interface.rs",
        "pith/src/modes/chat/lines.rs",
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

/// The files of a crate without tests, by their path in the repository, without comments.
fn code_of(name: &str) -> Vec<(String, String)> {
    let directory = root().join("crates").join(name).join("src");
    let mut found = Vec::new();
    sources(&directory, &mut found);
    let code = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("UTF-8 source");
        let logic = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = logic.lines().map(|line| line.split("//").next().unwrap_or_default());
        let path = path.strip_prefix(directory.parent().expect("a crate")).expect("inside").display().to_string();
        (format!("{name}/{path}"), lines.collect::<Vec<_>>().join("\n"))
    };
    found.iter().map(code).collect()
}

fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).expect("crates").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name != "pith-testkit").collect()
}

/// Files with one of the words, beyond those that may have it.
fn strays(names: &[String], words: &[&str], allowed: &[&str]) -> Vec<String> {
    let files = names.iter().flat_map(|name| code_of(name));
    let stray = files.filter(|(path, code)| {
        words.iter().any(|word| code.contains(word)) && !allowed.iter().any(|allowed| path.starts_with(allowed))
    });
    stray.map(|(path, _)| path).collect()
}

#[test]
fn only_the_transport_touches_the_hosts_streams() {
    let words = ["io::stdin()", "io::stdout()", "dup2_std", "stdio::stdin()", "stdio::stdout()"];
    let allowed = [
        "pith/src/transport/",
        // Before a mode is chosen, or in one without a host.
        "pith/src/lib.rs",
        "pith/src/tour.rs",
        "pith/src/packages/manage.rs",
        "pith/src/modes/",
        // Its own process, with streams of its own.
        "pith-tools/src/process/supervisor.rs",
    ];
    assert_eq!(strays(&crates(), &words, &allowed), [""; 0]);
}

#[test]
fn nobody_below_pith_knows_dialects() {
    let below: Vec<String> = crates().into_iter().filter(|name| name != "pith").collect();
    let allowed = [
        "pith-config/src/agent_dir.rs",
        // Which events each leaves out, for the schema.
        "pith-protocol/src/events.rs",
        // The protocol as documents, one for each; and the name that `hello` passes on.
        "pith-protocol/src/schema/",
        "pith-protocol/src/answers/hello.rs",
        // What projects keep for agents is protected, whichever reads it.
        "pith-sandbox/src/names.rs",
        // Other programs are started with the name of one.
        "pith-conformance/src/",
    ];
    assert_eq!(strays(&below, &["dialect", "Dialect", "DIALECT", "xcsh", "Xcsh", "XCSH"], &allowed), [""; 0]);
}

#[test]
fn the_current_directory_is_never_changed() {
    let clippy = fs::read_to_string(root().join("clippy.toml")).expect("clippy.toml");
    assert!(clippy.contains("std::env::set_current_dir"));
    assert_eq!(strays(&crates(), &["set_current_dir", "chdir("], &["pith-ext/src/ops"]), [""; 0]);
}

#[test]
fn every_invariant_has_its_proof() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, below) = page.split_once("## Invariants").expect("a section");
    let rows = below.lines().skip_while(|line| !line.starts_with("| 1 ")).take_while(|line| line.starts_with('|'));
    let rows: Vec<_> = rows.collect();
    assert!(rows.len() > 9);
    let mut tests = Vec::new();
    for name in fs::read_dir(root().join("crates")).expect("crates").flatten() {
        all_sources(&name.path(), &mut tests);
    }
    let texts: Vec<_> = tests.iter().map(|path| fs::read_to_string(path).expect("UTF-8 source")).collect();
    for row in rows {
        let proofs = row.trim_end_matches(['|', ' ']).rsplit(" | ").next().expect("a last cell");
        let names: Vec<_> = proofs.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no proof: {row}");
        for name in names.iter().filter(|name| !["disallowed_methods", "disallowed_types"].contains(name)) {
            let forms = [format!("fn {name}("), format!("pub struct {name}(")];
            let is_there = |text: &String| forms.iter().any(|form| text.contains(form));
            assert!(texts.iter().any(is_there), "no such test or type: {name}");
        }
    }
}

#[test]
fn every_file_that_architecture_names_exists() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let mut sources = Vec::new();
    all_sources(&root().join("crates"), &mut sources);
    // It leaves out `pith-` and `src` where that is clear.
    let short = |path: &str| path.replace("/src/", "/");
    let sources: Vec<_> = sources.iter().map(|path| short(&path.to_string_lossy())).collect();
    let named = page.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs") && !word.contains(['<', '*']));
    let is_named = |path: &String, name: &str| path.strip_suffix(name).is_some_and(|rest| rest.ends_with(['/', '-']));
    let missing: Vec<_> = named.filter(|name| !sources.iter().any(|path| is_named(path, &short(name)))).collect();
    assert_eq!(missing, [""; 0]);
}

fn all_sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() {
            all_sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}
