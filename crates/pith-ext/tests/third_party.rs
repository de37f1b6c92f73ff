//! Published extensions of other people, with their dependencies.
//!
//! Needs npm and a network; runs when `PITH_EXT_PACKAGES` names a directory in
//! which the packages are, or may be, installed.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and a table for people")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pith_ext::{Limits, Loading};
use serde_json::Value;
use support::Harness;

/// Packages and whether they are expected to load; the reason stands next to those that are not.
const PACKAGES: &[(&str, Expected)] = &[
    ("@aliou/pi-processes@0.12.0", Expected::Loads),
    ("@firstpick/pi-extension-stats@0.2.7", Expected::Loads),
    ("@gotgenes/pi-permission-system@20.7.3", Expected::Loads),
    ("@ogulcancelik/pi-ghostty-theme-sync@0.1.2", Expected::Loads),
    ("@samfp/pi-memory@1.5.0", Expected::Loads),
    ("@tintinweb/pi-subagents@0.14.1", Expected::Loads),
    ("@tmustier/pi-ralph-wiggum@0.2.3", Expected::Loads),
    ("@walterra/pi-charts@0.0.6", Expected::Loads),
    ("context-mode@1.0.169", Expected::Fails("better_sqlite3.node")),
    ("pi-autoresearch@1.6.0", Expected::Loads),
    ("pi-bar@0.3.44", Expected::Loads),
    ("pi-bash-live-view@0.1.1", Expected::Fails("native module: pty.node")),
    ("pi-btw@0.4.1", Expected::Loads),
    ("pi-docparser@4.0.0", Expected::Loads),
    ("pi-lens@3.8.73", Expected::Loads),
    ("pi-markdown-preview@0.16.0", Expected::Loads),
    ("pi-mcp-adapter@2.36.0", Expected::Loads),
    ("pi-mermaid@0.3.0", Expected::Loads),
    ("pi-prompt-template-model@0.12.2", Expected::Loads),
    ("pi-schedule-prompt@0.4.1", Expected::Loads),
    ("pi-simplify@0.2.2", Expected::Loads),
    ("pi-subagents@0.67.0", Expected::Loads),
    ("pi-web-access@0.28.0", Expected::Loads),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Expected {
    Loads,
    Fails(&'static str),
}

fn install(cache: &Path, package: &str) -> Option<PathBuf> {
    let name = package.rsplit_once('@').unwrap().0;
    let directory = cache.join("third").join(name.replace('/', "+"));
    let root = directory.join("node_modules").join(name);
    if !root.is_dir() {
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("package.json"), "{}").unwrap();
        let installed = Command::new("npm")
            .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--legacy-peer-deps", package])
            .current_dir(&directory)
            .status();
        if !installed.is_ok_and(|status| status.success()) {
            return None;
        }
    }
    Some(root)
}

/// The files the package names as its extensions.
fn entries(root: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(root.join("package.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let listed: Vec<String> = manifest["pi"]["extensions"]
        .as_array()
        .map(|list| list.iter().filter_map(|path| path.as_str().map(str::to_owned)).collect())
        .unwrap_or_else(|| vec!["extensions".to_owned()]);
    listed.iter().flat_map(|path| expand(&root.join(path))).collect()
}

fn expand(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    if let Some(index) = ["index.ts", "index.js"].map(|name| path.join(name)).into_iter().find(|index| index.is_file())
    {
        return vec![index];
    }
    let Ok(children) = std::fs::read_dir(path) else { return Vec::new() };
    let mut found: Vec<PathBuf> = children
        .flatten()
        .map(|entry| entry.path())
        .flat_map(|child| match child.is_dir() {
            true => ["index.ts", "index.js"]
                .map(|name| child.join(name))
                .into_iter()
                .filter(|index| index.is_file())
                .collect(),
            false if child.extension().is_some_and(|ending| ending == "ts" || ending == "js") => vec![child],
            false => Vec::new(),
        })
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn published_packages_load_and_register_what_they_offer() {
    let Some(cache) = std::env::var_os("PITH_EXT_PACKAGES").map(PathBuf::from) else {
        println!("skipped: PITH_EXT_PACKAGES is not set");
        return;
    };
    let mut surprises = Vec::new();
    for (package, expected) in PACKAGES {
        let Some(root) = install(&cache, package) else {
            println!("{package:44} not installable");
            continue;
        };
        let harness = Harness::with_limits(Limits { slice: Duration::from_secs(20), ..Limits::default() });
        let sources: Vec<_> = entries(&root).iter().map(|path| harness.source(path)).collect();
        let began = std::time::Instant::now();
        let report = harness.handle.load(&sources, Loading::Add, &harness.surroundings).await;
        harness.bind().await;
        harness.handle.session_start("startup", None).await;
        let registry = harness.handle.registry();
        let result = match report.errors.first() {
            None if sources.is_empty() => "no extension files".to_owned(),
            None => format!(
                "ok {:>9.1?} {} tools, {} commands, {} events",
                began.elapsed(),
                registry.tools.len(),
                registry.commands.len(),
                registry.listening.len()
            ),
            Some(error) => format!("FAILED {}", error.error.rsplit("\": ").next().unwrap_or(&error.error)),
        };
        println!("{package:44} {result}");
        for error in harness.errors() {
            println!("{:44}   reports {} ({}) {}", "", error.error, error.event, error.stack.unwrap_or_default());
        }
        let is_loaded = report.errors.is_empty() && !sources.is_empty();
        let is_expected = match expected {
            Expected::Loads => is_loaded,
            Expected::Fails(why) => report.errors.iter().any(|error| error.error.contains(why)),
        };
        if !is_expected {
            surprises.push(format!("{package} ({expected:?}): {result}"));
        }
    }
    assert!(surprises.is_empty(), "not as expected:\n{}", surprises.join("\n"));
}
