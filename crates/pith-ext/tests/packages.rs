//! Examples of the reference agent, taken from its published packages at test time.
//!
//! Needs npm and a network; runs when `PITH_EXT_PACKAGES` names a directory in
//! which the packages are, or may be, installed.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and a table for people")]

mod support;

use pith_ext::{Limits, Loading};
use pith_testkit::packages::{HEADLESS, Packages, example};
use support::Harness;

/// Examples that need a terminal: they must load nevertheless.
const TERMINAL_EXAMPLES: &[&str] = &[
    "border-status-editor",
    "custom-footer",
    "custom-header",
    "doom-overlay",
    "github-issue-autocomplete",
    "handoff",
    "hidden-thinking-label",
    "interactive-shell",
    "mac-system-theme",
    "modal-editor",
    "overlay-qa-tests",
    "overlay-test",
    "qna",
    "question",
    "questionnaire",
    "rainbow-editor",
    "snake",
    "space-invaders",
    "tools",
    "working-indicator",
    "working-message-test",
];

/// Examples the older release does not have.
const NEWER: &[&str] = &["entry-renderer", "git-merge-and-resolve", "input-transform-streaming", "project-trust"];

async fn check_release(version: &str, is_new: bool) {
    let Some(packages) = Packages::find() else { return pith_testkit::skip("PITH_EXT_PACKAGES is not set") };
    let examples = packages.examples(version);
    let mut failures = Vec::new();
    for name in HEADLESS.iter().chain(TERMINAL_EXAMPLES) {
        if !is_new && NEWER.contains(name) {
            continue;
        }
        let Some(path) = example(&examples, name) else {
            failures.push(format!("{name}: no such example"));
            continue;
        };
        let harness = Harness::with_limits(Limits::default());
        let began = std::time::Instant::now();
        let report = harness.handle.load(&[harness.source(&path)], Loading::Add, &harness.surroundings).await;
        let spent = began.elapsed();
        match report.errors.first() {
            None => {
                let found = &report.extensions[0];
                println!(
                    "{name:28} ok {spent:>10.1?}  tools {:?} commands {:?} events {:?} flags {:?} providers {:?}",
                    found.tools, found.commands, found.events, found.flags, found.providers
                );
            }
            Some(error) => {
                println!("{name:28} FAILED {}", error.error);
                failures.push(format!("{name}: {}", error.error));
            }
        }
    }
    assert!(failures.is_empty(), "examples of {version} that do not load:\n{}", failures.join("\n"));
}

#[tokio::test]
async fn examples_of_the_current_release_load() {
    check_release("0.87.1", true).await;
}

#[tokio::test]
async fn examples_of_the_seed_release_load() {
    check_release("0.74.2", false).await;
}
