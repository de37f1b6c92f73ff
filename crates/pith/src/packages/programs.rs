//! npm and git, which fetch packages. Each call is shown before it is made.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::source::Repository;
use crate::warn;

/// Whether npm may run the scripts of a package while it is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallScripts {
    Ignored,
    Run,
}

/// The programs, as the user has set them up.
pub struct Programs {
    /// The setting `npmCommand`: a program and its first arguments.
    pub npm: Vec<String>,
    pub install_scripts: InstallScripts,
    /// Whether somebody is there to answer git's questions.
    pub is_attended: bool,
}

impl Programs {
    /// Installs `spec`, a name with or without a version, into the npm project at `project`.
    pub fn npm_install(&self, project: &Path, spec: &str) -> anyhow::Result<()> {
        prepare_npm_project(project)?;
        // The host provides what packages want as peers.
        self.npm(project, &["install", spec, "--legacy-peer-deps", "--no-audit", "--no-fund"])
    }

    /// Removes a package from the npm project at `project`.
    pub fn npm_uninstall(&self, project: &Path, name: &str) -> anyhow::Result<()> {
        self.npm(project, &["uninstall", name, "--legacy-peer-deps", "--no-audit", "--no-fund"])
    }

    /// Clones a repository to `root`, which appears only when it is whole.
    pub fn clone(&self, repository: &Repository, root: &Path) -> anyhow::Result<()> {
        let parent = root.parent().context("a package has a directory above it")?;
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        let incoming = tempfile::Builder::new().prefix(".incoming-").tempdir_in(parent)?;
        let clone = incoming.path().join("package");
        let target = clone.to_str().context("the agent directory is not UTF-8")?;
        self.git(parent, &["clone", "--", &repository.address, target])?;
        if let Some(reference) = &repository.reference {
            self.fetch_reference(&clone, reference)?;
        }
        self.install_dependencies(&clone)?;
        fs::rename(&clone, root).with_context(|| format!("cannot put the package at {}", root.display()))
    }

    /// Brings a clone to what its source names now. One with changes of the user is left alone.
    pub fn update_clone(&self, repository: &Repository, root: &Path) -> anyhow::Result<()> {
        let status = self.git_command(root, &["status", "--porcelain", "--untracked-files=no"]).output();
        let status = status.map_err(|error| missing("git", &error))?;
        if !status.status.success() || !status.stdout.is_empty() {
            bail!("{} has changes that are not committed; commit or undo them first", root.display());
        }
        self.fetch_reference(root, repository.reference.as_deref().unwrap_or("HEAD"))?;
        self.install_dependencies(root)
    }

    fn fetch_reference(&self, clone: &Path, reference: &str) -> anyhow::Result<()> {
        self.git(clone, &["fetch", "--no-tags", "origin", "--", reference])?;
        self.git(clone, &["reset", "--hard", "--quiet", "FETCH_HEAD"])
    }

    /// Installs what the manifest of a cloned package names.
    fn install_dependencies(&self, root: &Path) -> anyhow::Result<()> {
        let manifest = fs::read(root.join("package.json")).ok();
        let manifest = manifest.and_then(|text| serde_json::from_slice::<Value>(&text).ok()).unwrap_or_default();
        let has_some = manifest["dependencies"].as_object().is_some_and(|dependencies| !dependencies.is_empty());
        if has_some {
            self.npm(root, &["install", "--omit=dev", "--legacy-peer-deps", "--no-audit", "--no-fund"])?;
        }
        Ok(())
    }

    fn npm(&self, directory: &Path, arguments: &[&str]) -> anyhow::Result<()> {
        let (program, first) = self.npm.split_first().context("the setting npmCommand is empty")?;
        let mut command = Command::new(program);
        command.args(first).args(arguments).current_dir(directory);
        if self.install_scripts == InstallScripts::Ignored {
            command.arg("--ignore-scripts");
        }
        run(command)
    }

    fn git(&self, directory: &Path, arguments: &[&str]) -> anyhow::Result<()> {
        run(self.git_command(directory, arguments))
    }

    fn git_command(&self, directory: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(directory);
        if !self.is_attended {
            // A private or misspelt repository is an error then, and no question that nobody answers.
            command.env("GIT_TERMINAL_PROMPT", "0");
        }
        command
    }
}

/// Makes the directory in which npm keeps packages, as pi makes it: a project of its own that git ignores.
fn prepare_npm_project(project: &Path) -> anyhow::Result<()> {
    let context = || format!("cannot prepare {}", project.display());
    fs::create_dir_all(project).with_context(context)?;
    let manifest = json!({"name": "pi-extensions", "private": true});
    let files = [("package.json", format!("{manifest:#}")), (".gitignore", "*\n!.gitignore\n".to_owned())];
    for (name, text) in files {
        let file = project.join(name);
        if !file.exists() {
            fs::write(file, text).with_context(context)?;
        }
    }
    Ok(())
}

/// Shows a call, makes it, and waits. What the program prints goes to stderr, as progress.
fn run(mut command: Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let words = command.get_args().map(|argument| argument.to_string_lossy());
    let words: Vec<_> = std::iter::once(program.as_str().into()).chain(words).collect();
    let directory = command.get_current_dir().map(|directory| directory.display().to_string()).unwrap_or_default();
    warn(&format!("$ {}    (in {directory})", words.join(" ")));
    command.stdin(Stdio::inherit()).stdout(std::io::stderr());
    let status = command.status().map_err(|error| missing(&program, &error))?;
    if status.success() { Ok(()) } else { bail!("{program} failed ({status})") }
}

fn missing(program: &str, error: &std::io::Error) -> anyhow::Error {
    if error.kind() == ErrorKind::NotFound {
        anyhow::anyhow!("{program} is needed for this and is not in PATH; install it and try again")
    } else {
        anyhow::anyhow!("{program} cannot be started: {error}")
    }
}
