//! In which files servers are looked for.

use std::path::PathBuf;

use pith_config::{AgentDir, Environment};

use super::sources::{Source, TimeoutUnit};

/// Where files are looked for.
#[derive(Clone, Debug)]
pub struct Places {
    pub agent_dir: AgentDir,
    pub environment: Environment,
    /// The session's directory.
    pub cwd: PathBuf,
}

/// A file in which servers are looked for.
pub struct ConfigFile {
    pub path: PathBuf,
    pub source: Source,
    pub unit: TimeoutUnit,
}

impl Places {
    /// The file that `pith mcp add` writes for the user.
    pub fn user_file(&self) -> PathBuf {
        self.agent_dir.path().join("mcp.json")
    }

    /// The file that `pith mcp add -l` writes for the project.
    pub fn project_file(&self) -> PathBuf {
        self.agent_dir.project_dir(&self.cwd).join("mcp.json")
    }

    /// The files of the project, the one that counts most first.
    pub fn project_files(&self) -> Vec<ConfigFile> {
        let file = |path: PathBuf, unit| ConfigFile { path, source: Source::Project, unit };
        let mut files = vec![file(self.project_file(), TimeoutUnit::Seconds)];
        let foreign = self.agent_dir.foreign_mcp_files(&self.cwd);
        files.extend(foreign.into_iter().map(|path| file(path, TimeoutUnit::Milliseconds)));
        files.push(file(self.cwd.join(".mcp.json"), TimeoutUnit::Milliseconds));
        files
    }

    /// The files of the user, the one that counts most first.
    pub fn user_files(&self) -> Vec<ConfigFile> {
        let home = self.environment.home();
        let paths = [self.user_file(), home.join(".config/mcp/mcp.json"), home.join(".agents/mcp.json")];
        paths.map(|path| ConfigFile { path, source: Source::User, unit: TimeoutUnit::Seconds }).into()
    }
}
