//! Published extensions, installed with npm when a test needs them; nothing of them is kept in the repository.
//!
//! `PITH_EXT_PACKAGES` names the directory they are, or may be, installed in; without it there are none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Examples that work without a terminal, fully or in part.
pub const HEADLESS: &[&str] = &[
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

/// The package whose examples are run.
const REFERENCE: &str = "@earendil-works/pi-coding-agent";

/// The directory packages are installed in.
#[derive(Clone, Debug)]
pub struct Packages {
    cache: PathBuf,
}

/// What is expected of a published package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Loads,
    /// Part of the reason.
    Fails(&'static str),
}

/// Third-party extensions, and whether they can work.
pub const THIRD_PARTY: &[(&str, Expected)] = &[
    ("@aliou/pi-processes@0.12.0", Expected::Loads),
    ("@firstpick/pi-extension-stats@0.2.7", Expected::Loads),
    ("@gotgenes/pi-permission-system@20.7.3", Expected::Loads),
    ("@ogulcancelik/pi-ghostty-theme-sync@0.1.2", Expected::Loads),
    ("@samfp/pi-memory@1.5.0", Expected::Loads),
    ("@tintinweb/pi-subagents@0.14.1", Expected::Loads),
    ("@tmustier/pi-ralph-wiggum@0.2.3", Expected::Loads),
    ("@walterra/pi-charts@0.0.6", Expected::Loads),
    ("context-mode@1.0.169", Expected::Loads),
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

impl Packages {
    /// Returns the packages of the directory the environment names.
    pub fn find() -> Option<Self> {
        std::env::var_os("PITH_EXT_PACKAGES").map(|cache| Packages { cache: cache.into() })
    }

    /// The directory with the examples of a release of the reference agent.
    pub fn examples(&self, version: &str) -> PathBuf {
        let directory = self.cache.join(format!("pi-{version}"));
        // Some examples have their own dependencies.
        let wanted = format!("{REFERENCE}@{version}");
        let is_there = directory.join("node_modules").is_dir();
        assert!(is_there || install(&directory, &[&wanted, "ms", "@anthropic-ai/sdk"]), "npm installs {wanted}");
        directory.join("node_modules").join(REFERENCE).join("examples/extensions")
    }

    /// Returns the root of a package such as `name@1.0.0`, or `None` if it is not available.
    pub fn third_party(&self, package: &str) -> Option<PathBuf> {
        let name = package.rsplit_once('@').map_or(package, |(name, _)| name);
        let directory = self.cache.join("third").join(name.replace('/', "+"));
        let root = directory.join("node_modules").join(name);
        (root.is_dir() || install(&directory, &["--legacy-peer-deps", package])).then_some(root)
    }
}

fn install(directory: &Path, arguments: &[&str]) -> bool {
    let prepared = fs::create_dir_all(directory).and_then(|()| fs::write(directory.join("package.json"), "{}"));
    prepared.unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let status = Command::new("npm")
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"])
        .args(arguments)
        .current_dir(directory)
        .status();
    status.is_ok_and(|status| status.success())
}

/// Returns the file of an example, in any of the usual places.
pub fn example(examples: &Path, name: &str) -> Option<PathBuf> {
    let places = [format!("{name}.ts"), format!("{name}/index.ts"), format!("{name}/src/index.ts")];
    places.into_iter().map(|place| examples.join(place)).find(|path| path.is_file())
}

/// Returns the files that a package names as its extensions.
pub fn entries(root: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(root.join("package.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_str(&text).unwrap_or_default();
    let listed: Vec<&str> = match manifest["pi"]["extensions"].as_array() {
        Some(list) => list.iter().filter_map(Value::as_str).collect(),
        None => vec!["extensions"],
    };
    listed.into_iter().flat_map(|path| expand(&root.join(path))).collect()
}

fn expand(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    if let Some(index) = index_of(path) {
        return vec![index];
    }
    let children = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_source = |path: &Path| path.extension().is_some_and(|ending| ending == "ts" || ending == "js");
    let mut found: Vec<PathBuf> = children
        .filter_map(|child| if child.is_dir() { index_of(&child) } else { is_source(&child).then_some(child) })
        .collect();
    found.sort();
    found
}

fn index_of(directory: &Path) -> Option<PathBuf> {
    ["index.ts", "index.js"].map(|name| directory.join(name)).into_iter().find(|index| index.is_file())
}
