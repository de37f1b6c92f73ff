//! Texts for users: help, version, manual, completions.

use std::io::Write;
use std::process::{Command, Stdio};

use pith_testkit::TempHome;

use super::support::{PITH, run};

const HELP: &str = include_str!("help.txt");

#[test]
fn the_help_is_as_reviewed() {
    let help = run(&TempHome::new(), ["--help"]).quiet();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/help.txt"), &help).expect("written");
        return;
    }
    assert!(help == HELP, "--help has changed; UPDATE_SNAPSHOTS=1 accepts it:\n{help}");
}

#[test]
fn the_version_depends_on_the_name() {
    let home = TempHome::new();
    assert_eq!(run(&home, ["--version"]).quiet(), format!("pith {}\n", env!("CARGO_PKG_VERSION")));
    let pi = home.work().join("pi");
    std::os::unix::fs::symlink(PITH, &pi).expect("a link");
    let output = Command::new(&pi).arg("--version").output().expect("runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1.4.0\n");
}

/// Whether a shell accepts a script; `None` if the shell is not installed.
fn parses(shell: &str, script: &str) -> Option<bool> {
    let mut child = Command::new(shell).arg("-n").stdin(Stdio::piped()).spawn().ok()?;
    child.stdin.take().expect("stdin is piped").write_all(script.as_bytes()).expect("written");
    Some(child.wait().expect("ends").success())
}

#[test]
fn completions_are_scripts_of_their_shells() {
    let home = TempHome::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&home, ["completions", shell]).quiet();
        assert!(script.contains("stream-updates") && script.contains("tour"), "{script}");
        assert_ne!(parses(shell, &script), Some(false), "{shell}: {script}");
    }
    let output = run(&home, ["completions", "tcsh"]);
    assert_eq!((output.stderr.as_str(), output.code), ("usage: pith completions <bash|zsh|fish>\n", 2));
}

#[test]
fn bash_completes_flags_values_and_subcommands() {
    let script = run(&TempHome::new(), ["completions", "bash"]).quiet();
    let check = |words: &str, expected: &str| {
        let n_words = words.split(' ').count() - 1;
        let probe = format!(
            "{script}\nCOMP_WORDS=({words}); [ \"${{words: -1}}\" = ' ' ]; COMP_CWORD={n_words}; _pith; echo \"${{COMPREPLY[*]}}\""
        );
        let output = Command::new("bash").args(["-c", &probe]).output().expect("bash");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{words}");
    };
    check("pith --stream-up", "--stream-updates");
    check("pith --stream-updates d", "delta");
    check("pith compl", "completions");
    check("pith completions z", "zsh");
    check("pith --thinking hi", "high");
}

#[test]
fn the_manual_page_is_troff() {
    let page = run(&TempHome::new(), ["man"]).quiet();
    assert!(
        page.starts_with(".TH PITH 1 ") && page.contains(".SH OPTIONS\n") && page.contains("\\-\\-thinking <LEVEL>"),
        "{page}"
    );
}
