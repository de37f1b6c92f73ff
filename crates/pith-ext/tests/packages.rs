//! Examples of the reference agent, taken from its published packages at test time.
//!
//! Needs npm and a network; runs when `PITH_EXT_PACKAGES` names a directory in
//! which the packages are, or may be, installed.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and a table for people")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use pith_ext::{Limits, Loading};
use support::Harness;

const PACKAGE: &str = "@earendil-works/pi-coding-agent";

/// Examples that work without a terminal, fully or in part.
const EXAMPLES: &[&str] = &[
    "auto-commit-on-exit",
    "bash-spawn-hook",
    "bookmark",
    "built-in-tool-renderer",
    "claude-rules",
    "commands",
    "confirm-destructive",
    "custom-compaction",
    "custom-provider-anthropic",
    "custom-provider-gitlab-duo",
    "dirty-repo-guard",
    "dynamic-resources",
    "dynamic-tools",
    "entry-renderer",
    "event-bus",
    "file-trigger",
    "git-checkpoint",
    "git-merge-and-resolve",
    "hello",
    "inline-bash",
    "input-transform",
    "input-transform-streaming",
    "message-renderer",
    "minimal-mode",
    "model-status",
    "notify",
    "permission-gate",
    "pirate",
    "plan-mode",
    "preset",
    "project-trust",
    "prompt-customizer",
    "protected-paths",
    "provider-payload",
    "reload-runtime",
    "rpc-demo",
    "send-user-message",
    "session-name",
    "shutdown-command",
    "ssh",
    "status-line",
    "structured-output",
    "subagent",
    "summarize",
    "system-prompt-header",
    "tic-tac-toe",
    "timed-confirm",
    "titlebar-spinner",
    "todo",
    "tool-override",
    "trigger-compact",
    "truncated-tool",
    "widget-placement",
    "with-deps",
];

/// Examples that need a terminal: they must load all the same.
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

fn cache() -> Option<PathBuf> {
    let directory = std::env::var_os("PITH_EXT_PACKAGES").map(PathBuf::from);
    if directory.is_none() {
        println!("skipped: PITH_EXT_PACKAGES is not set");
    }
    directory
}

/// Installs packages into a directory of the cache, once.
fn install(directory: &Path, packages: &[&str]) {
    if directory.join("node_modules").is_dir() {
        return;
    }
    std::fs::create_dir_all(directory).unwrap();
    std::fs::write(directory.join("package.json"), "{}").unwrap();
    let status = Command::new("npm")
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"])
        .args(packages)
        .current_dir(directory)
        .status()
        .expect("npm starts");
    assert!(status.success(), "npm installs {packages:?}");
}

fn entry(examples: &Path, name: &str) -> Option<PathBuf> {
    [format!("{name}.ts"), format!("{name}/index.ts"), format!("{name}/src/index.ts")]
        .into_iter()
        .map(|file| examples.join(file))
        .find(|path| path.is_file())
}

async fn check_release(version: &str, is_new: bool) {
    let Some(cache) = cache() else { return };
    let directory = cache.join(format!("pi-{version}"));
    // Some examples have dependencies of their own.
    install(&directory, &[&format!("{PACKAGE}@{version}"), "ms", "@anthropic-ai/sdk"]);
    let examples = directory.join("node_modules").join(PACKAGE).join("examples/extensions");
    let mut failures = Vec::new();
    for name in EXAMPLES.iter().chain(TERMINAL_EXAMPLES) {
        if !is_new && NEWER.contains(name) {
            continue;
        }
        let Some(path) = entry(&examples, name) else {
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
