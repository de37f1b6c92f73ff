//! Examples of the reference agent with the real binary: all that can work without a terminal must load, and most are
//! exercised.
//!
//! Needs npm and a network, or packages installed before; runs when `PITH_EXT_PACKAGES` names a directory for them. One
//! command does everything: `tests/extensions/run`.

mod commands;
mod gates;
mod prompts;
mod providers;
mod repositories;
mod tools;

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use pith_testkit::packages::{HEADLESS, Packages, example};
use pith_testkit::{HostBuilder, ModelServer, Script, TempHome, Turn};
use serde_json::json;

use crate::stage::{Stage, tell};

/// Some examples use one place of the machine, so two must not run at once.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Releases whose examples are run.
const RELEASES: [&str; 2] = ["0.87.1", "0.74.2"];

/// Examples that only the newer release has.
const NEWER: &[&str] = &["entry-renderer", "git-merge-and-resolve", "input-transform-streaming", "project-trust"];

/// The examples of a release.
pub struct Lab {
    examples: PathBuf,
    version: &'static str,
}

/// One example and a check of its use; `run` panics if that does not work.
pub struct Exercise {
    example: &'static str,
    what: &'static str,
    run: fn(&Lab),
}

pub const fn exercise(example: &'static str, what: &'static str, run: fn(&Lab)) -> Exercise {
    Exercise { example, what, run }
}

impl Lab {
    /// Whether this is the release whose API pith implements.
    pub fn is_new(&self) -> bool {
        self.version == RELEASES[0]
    }

    fn has(&self, name: &str) -> bool {
        self.is_new() || !NEWER.contains(&name)
    }

    /// Starts pith with one example and a model with these answers.
    pub fn start(&self, name: &str, turns: impl IntoIterator<Item = Turn>) -> Stage {
        self.start_in(name, turns, |_, _| {}, |builder| builder)
    }

    /// Starts pith in a home the exercise prepares, with further arguments.
    pub fn start_in(
        &self,
        name: &str,
        turns: impl IntoIterator<Item = Turn>,
        furnish: impl FnOnce(&TempHome, &ModelServer),
        configure: impl FnOnce(HostBuilder) -> HostBuilder,
    ) -> Stage {
        let stage = self.load(name, turns, furnish, configure);
        let errors = stage.host.frames().into_iter().filter(|frame| frame["type"] == "extension_error");
        assert_eq!(errors.collect::<Vec<_>>(), [] as [serde_json::Value; 0]);
        stage
    }
}

impl Lab {
    /// Loads an example; one that fails ends pith before its first answer.
    fn load(
        &self,
        name: &str,
        turns: impl IntoIterator<Item = Turn>,
        furnish: impl FnOnce(&TempHome, &ModelServer),
        configure: impl FnOnce(HostBuilder) -> HostBuilder,
    ) -> Stage {
        let path = example(&self.examples, name).unwrap_or_else(|| panic!("{name} is not in {}", self.version));
        let mut stage = Stage::furnished(Script::of(turns), furnish, |builder| configure(builder.arg("-e").arg(path)));
        // The first answer comes after the factories, which may be slow.
        stage.host.data(json!({"type": "get_state"}));
        stage
    }
}

/// A repository with one commit in the work directory.
pub fn repository(home: &TempHome) {
    std::fs::write(
        home.home().join(".gitconfig"),
        "[user]\nname = T\nemail = t@example.org\n[init]\ndefaultBranch = main\n",
    )
    .expect("the home is writable");
    home.write_file("file.txt", "one\n");
    git(home, &["init", "-q"]);
    git(home, &["add", "-A"]);
    git(home, &["commit", "-qm", "first"]);
}

/// Runs git in the work directory and returns its output.
pub fn git(home: &TempHome, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(arguments).env_clear().envs(home.environment()).current_dir(home.work());
    let output = command.output().expect("git starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Creates a program for the `PATH` of one host; returns that path.
pub fn program(home: &TempHome, name: &str, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    home.write_file(&format!("../bin/{name}"), script);
    let directory = home.work().join("../bin");
    std::fs::set_permissions(directory.join(name), std::fs::Permissions::from_mode(0o755)).expect("just written");
    format!("{}:{}", directory.display(), home.environment()["PATH"])
}

fn labs() -> Vec<Lab> {
    let Some(packages) = Packages::find() else {
        pith_testkit::skip("PITH_EXT_PACKAGES is not set");
        return Vec::new();
    };
    RELEASES.into_iter().map(|version| Lab { examples: packages.examples(version), version }).collect()
}

/// Writes a table next to the build and shows it.
pub fn publish(name: &str, table: &str) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../extensions");
    std::fs::create_dir_all(&directory)
        .and_then(|()| std::fs::write(directory.join(name), table))
        .expect("a writable target");
    tell(table);
}

#[test]
fn every_headless_example_loads() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut table, mut failures) = ("| example | release | loads |\n|---|---|---|\n".to_owned(), Vec::new());
    for lab in labs() {
        for name in HEADLESS.iter().filter(|name| lab.has(name)) {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let stage = lab.load(name, [], |_, _| {}, |builder| builder);
                stage.finish(name);
            }));
            let result = if outcome.is_ok() { "yes" } else { "NO" };
            writeln!(table, "| {name} | {} | {result} |", lab.version).expect("a string takes any text");
            if outcome.is_err() {
                failures.push(format!("{name} of {}", lab.version));
            }
        }
    }
    publish("loaded.md", &table);
    assert!(failures.is_empty(), "these do not load: {failures:?}");
}

#[test]
fn examples_do_what_they_are_for() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let parts = [commands::ALL, gates::ALL, prompts::ALL, providers::ALL, repositories::ALL, tools::ALL];
    let (mut table, mut failures) =
        ("| example | release | exercised | result |\n|---|---|---|---|\n".to_owned(), Vec::new());
    for lab in labs() {
        for Exercise { example, what, run } in parts.into_iter().flatten() {
            if !lab.has(example) || only().is_some_and(|only| only != *example) {
                continue;
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| run(&lab)));
            let result = if outcome.is_ok() { "works" } else { "FAILS" };
            writeln!(table, "| {example} | {} | {what} | {result} |", lab.version).expect("a string takes any text");
            if outcome.is_err() {
                failures.push(format!("{example} of {}: {what}", lab.version));
            }
        }
    }
    publish("exercised.md", &table);
    assert!(failures.is_empty(), "these do not work:\n{}", failures.join("\n"));
}

/// `PITH_EXT_ONLY` limits a run to one example.
fn only() -> Option<String> {
    std::env::var("PITH_EXT_ONLY").ok()
}

/// A prompt whose answer does not matter.
pub fn any() -> Turn {
    Turn::text("fine")
}

/// An answer that calls a tool, and the one after it.
pub fn calling(tool: &str, arguments: serde_json::Value) -> [Turn; 2] {
    [Turn::call(tool, arguments), Turn::text("done")]
}

/// Answers that run a shell command.
pub fn bash(command: &str) -> [Turn; 2] {
    calling("bash", json!({"command": command}))
}
