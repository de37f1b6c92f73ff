//! Whether a project's own settings and resources may be used.
//!
//! The decision is a pure function of facts from several sources. The caller collects
//! them, and may ask an extension or the host in between.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pith_config::FileLock;
use pith_config::settings::DefaultTrust;
use serde_json::Value;

use crate::discovery::{OLD_PROMPTS, is_users_own};
use crate::followed::Followed;
use crate::text;

/// How long the host may take to answer; silence means no.
pub const HOST_ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Entries of a project's configuration directory that are not used without trust.
const GATED: [&str; 13] = [
    "mcp.json",
    "settings.json",
    "settings.yml",
    "config.yml",
    "config.yaml",
    "extensions",
    "skills",
    "rules",
    "prompts",
    OLD_PROMPTS,
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
];
/// A longer file is not a list of decisions.
const MAX_FILE: usize = 8 * 1024 * 1024;

/// The facts that decide whether a project is trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrustInputs {
    /// Whether the project has something that needs trust.
    pub is_gated: bool,
    /// `--approve` or `--no-approve`, the last one given.
    pub flag: Option<bool>,
    /// What an extension said.
    pub extension: Option<bool>,
    /// The nearest decision in `trust.json`.
    pub saved: Option<bool>,
    /// `defaultProjectTrust`.
    pub default: DefaultTrust,
}

/// The decision about a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Trusted,
    Untrusted,
    /// Undecided. Ask the host if it can be asked; otherwise it means untrusted.
    Ask,
}

/// Decides whether a project is trusted.
pub fn decide(inputs: &TrustInputs) -> Verdict {
    let said = match inputs.flag {
        Some(said) => Some(said),
        None if !inputs.is_gated => Some(true),
        None => inputs.extension.or(inputs.saved),
    };
    match (said, inputs.default) {
        (Some(true), _) | (None, DefaultTrust::Always) => Verdict::Trusted,
        (Some(false), _) | (None, DefaultTrust::Never) => Verdict::Untrusted,
        (None, DefaultTrust::Ask) => Verdict::Ask,
    }
}

/// The files and directories of a project that need trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatedResources {
    pub paths: Vec<PathBuf>,
}

/// A yes-or-no question for the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub title: String,
    pub message: String,
}

impl GatedResources {
    /// Looks for them in the project's configuration directory, in files of MCP servers and in `.agents/skills` from
    /// `cwd` upwards.
    pub fn find(cwd: &Path, project_dir_name: &str, home: Option<&Path>) -> GatedResources {
        let project = cwd.join(project_dir_name);
        let mut paths = Vec::new();
        if project.is_dir() {
            let entries = GATED.iter().map(|name| project.join(name));
            paths.extend(entries.filter(|path| fs::symlink_metadata(path).is_ok()));
        }
        // MCP servers of the project, where other programs have them.
        let servers = [".mcp.json", ".omp/mcp.json"].map(|name| cwd.join(name));
        paths.extend(servers.into_iter().filter(|path| fs::symlink_metadata(path).is_ok()));
        for directory in cwd.ancestors() {
            let skills = directory.join(".agents/skills");
            if skills.exists() && !is_users_own(directory, home) {
                paths.push(skills);
            }
        }
        GatedResources { paths }
    }

    /// Whether nothing of the project needs trust.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns what to ask the host, naming what would be loaded.
    pub fn question(&self, cwd: &Path) -> Question {
        let list: Vec<String> = self.paths.iter().map(|path| format!("- {}", path.display())).collect();
        Question {
            title: "Trust this project?".to_owned(),
            message: format!(
                "{} brings its own settings or resources, which can change what the agent does and run code:\n{}",
                cwd.display(),
                list.join("\n")
            ),
        }
    }
}

/// The file with saved decisions.
#[derive(Clone, Debug)]
pub struct TrustFile {
    path: PathBuf,
}

/// Why saved decisions cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("trust file {}: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("trust file {}: {reason}", .path.display())]
    WrongShape { path: PathBuf, reason: String },
    #[error("trust file: {} is not Unicode and cannot be saved", .0.display())]
    NotUnicode(PathBuf),
}

/// Canonical directory to decision; `None` is an entry that says nothing.
type Decisions = BTreeMap<String, Option<bool>>;

impl TrustFile {
    /// Names the file of an agent directory. It need not exist.
    pub fn in_agent_dir(agent_dir: &Path) -> TrustFile {
        TrustFile { path: agent_dir.join("trust.json") }
    }

    /// Returns the decision that applies to a directory: its own, else that of the nearest directory above it.
    pub fn decision(&self, cwd: &Path) -> Result<Option<bool>, TrustError> {
        if !self.path.exists() {
            return Ok(None);
        }
        // Other agents write in place, under the lock. Where no lock can be made, nothing can be written either.
        let lock = FileLock::acquire(&self.path);
        let decisions = self.read()?;
        drop(lock);
        let real = canonical(cwd);
        Ok(real.ancestors().find_map(|directory| decisions.get(directory.to_str()?).copied().flatten()))
    }

    /// Saves a decision for a directory, keeping all others.
    pub fn save(&self, cwd: &Path, trusted: bool) -> Result<(), TrustError> {
        self.update(cwd, Some(trusted))
    }

    /// Forgets the decision for a directory, keeping all others.
    pub fn forget(&self, cwd: &Path) -> Result<(), TrustError> {
        self.update(cwd, None)
    }

    fn update(&self, cwd: &Path, decision: Option<bool>) -> Result<(), TrustError> {
        let real = canonical(cwd);
        let Some(key) = real.to_str() else { return Err(TrustError::NotUnicode(real)) };
        let failed = |error| TrustError::Io { path: self.path.clone(), error };
        self.path.parent().map_or(Ok(()), pith_config::create_private_directory).map_err(failed)?;
        let _lock = FileLock::acquire(&self.path).map_err(failed)?;
        let mut decisions = if self.path.exists() { self.read()? } else { Decisions::new() };
        match decision {
            Some(trusted) => drop(decisions.insert(key.to_owned(), Some(trusted))),
            None => drop(decisions.remove(key)),
        }
        let mut text = serde_json::to_vec_pretty(&decisions).expect("a map of texts always serializes");
        text.push(b'\n');
        pith_config::replace(&self.path, &text).map_err(failed)
    }

    fn read(&self) -> Result<Decisions, TrustError> {
        let wrong = |reason: String| TrustError::WrongShape { path: self.path.clone(), reason };
        let read = text::read(&self.path, MAX_FILE, &Followed::default());
        let read = read.map_err(|error| TrustError::Io { path: self.path.clone(), error })?;
        if read.is_cut {
            return Err(wrong(format!("longer than {MAX_FILE} bytes")));
        }
        let value: Value = serde_json::from_str(&read.text).map_err(|error| wrong(error.to_string()))?;
        let Value::Object(entries) = value else { return Err(wrong("expected an object".to_owned())) };
        let decision = |(key, value)| match value {
            Value::Bool(trusted) => Ok((key, Some(trusted))),
            Value::Null => Ok((key, None)),
            other => Err(wrong(format!("{key}: expected true, false or null, not {other}"))),
        };
        entries.into_iter().map(decision).collect()
    }
}

fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}
