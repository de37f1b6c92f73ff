//! Where configuration lives: the user's agent directory and the project directory, in two layouts.

use std::path::{Path, PathBuf};

use crate::environment::Environment;

/// Whose directory names and file formats are in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// `~/.pi/agent` and `.pi`, JSON files.
    #[default]
    Pi,
    /// `~/.xcsh/agent` and `.xcsh`, YAML or JSON files.
    Xcsh,
}

/// The user's configuration directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentDir {
    root: PathBuf,
    layout: Layout,
}

// The first existing name wins; YAML is what the xcsh layout writes itself.
const SETTINGS_NAMES: [&str; 4] = ["config.yml", "config.yaml", "settings.yml", "settings.json"];
const MODELS_NAMES: [&str; 3] = ["models.yml", "models.yaml", "models.json"];

impl AgentDir {
    /// Finds the directory from the environment. It need not exist.
    pub fn locate(layout: Layout, environment: &Environment) -> AgentDir {
        let named = environment.get("PITH_AGENT_DIR").or_else(|| environment.get("PI_CODING_AGENT_DIR"));
        let root = match named {
            Some(path) => environment.expand(path.trim()),
            None => environment.home().join(layout.project_name()).join("agent"),
        };
        AgentDir { root, layout }
    }

    /// Makes the directory at a path.
    pub fn at(root: impl Into<PathBuf>, layout: Layout) -> AgentDir {
        AgentDir { root: root.into(), layout }
    }

    /// Returns the directory itself.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Returns the layout in use.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns the path of the user's settings file. It need not exist.
    pub fn settings_file(&self) -> PathBuf {
        self.layout.settings_in(&self.root)
    }

    /// Returns the path of the file with custom providers and overrides. It need not exist.
    pub fn models_file(&self) -> PathBuf {
        match self.layout {
            Layout::Pi => self.root.join("models.json"),
            Layout::Xcsh => first_existing(&self.root, &MODELS_NAMES),
        }
    }

    /// Returns the path of the stored credentials.
    pub fn auth_file(&self) -> PathBuf {
        self.root.join("auth.json")
    }

    /// Returns the path of the project trust decisions.
    pub fn trust_file(&self) -> PathBuf {
        self.root.join("trust.json")
    }

    /// Returns the configuration directory of a project.
    pub fn project_dir(&self, cwd: &Path) -> PathBuf {
        cwd.join(self.layout.project_name())
    }

    /// Returns the files of MCP servers that another program of this layout keeps in a project. They need not exist.
    pub fn foreign_mcp_files(&self, cwd: &Path) -> Vec<PathBuf> {
        match self.layout {
            Layout::Pi => Vec::new(),
            Layout::Xcsh => vec![cwd.join(".omp/mcp.json")],
        }
    }

    /// Returns the path of a project's settings file. It need not exist.
    pub fn project_settings_file(&self, cwd: &Path) -> PathBuf {
        self.layout.settings_in(&self.project_dir(cwd))
    }
}

impl Layout {
    /// Returns the name of the directory in a project, and of the one in the home directory.
    pub fn project_name(self) -> &'static str {
        match self {
            Layout::Pi => ".pi",
            Layout::Xcsh => ".xcsh",
        }
    }

    fn settings_in(self, directory: &Path) -> PathBuf {
        match self {
            Layout::Pi => directory.join("settings.json"),
            Layout::Xcsh => first_existing(directory, &SETTINGS_NAMES),
        }
    }
}

fn first_existing(directory: &Path, names: &[&str]) -> PathBuf {
    let mut paths = names.iter().map(|name| directory.join(name));
    paths.find(|path| path.exists()).unwrap_or_else(|| directory.join(names[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_follows_the_environment() {
        let check = |layout, variables: &[(&'static str, &'static str)], expected: &str| {
            let variables = variables.to_vec();
            let environment = Environment::new("/home/u", move |name| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            });
            assert_eq!(AgentDir::locate(layout, &environment).path(), Path::new(expected), "{layout:?}");
        };
        let pi = ("PI_CODING_AGENT_DIR", "~/p");
        let pith = ("PITH_AGENT_DIR", "/q");
        check(Layout::Pi, &[], "/home/u/.pi/agent");
        check(Layout::Pi, &[pi], "/home/u/p");
        check(Layout::Pi, &[pi, pith], "/q");
        check(Layout::Pi, &[("PITH_AGENT_DIR", ""), pi], "/home/u/p");
        check(Layout::Xcsh, &[], "/home/u/.xcsh/agent");
        check(Layout::Xcsh, &[pi], "/home/u/p");
        check(Layout::Xcsh, &[pith], "/q");
        check(Layout::Xcsh, &[pi, pith], "/q");
    }

    #[test]
    fn the_xcsh_layout_takes_either_format() {
        let directory = tempfile::tempdir().expect("temp dir");
        let agent = AgentDir::at(directory.path(), Layout::Xcsh);
        assert!(agent.settings_file().ends_with("config.yml"));
        std::fs::write(directory.path().join("settings.json"), "{}").expect("write");
        std::fs::write(directory.path().join("models.json"), "{}").expect("write");
        assert!(agent.settings_file().ends_with("settings.json"));
        assert!(agent.models_file().ends_with("models.json"));
        std::fs::write(directory.path().join("models.yml"), "").expect("write");
        assert!(agent.models_file().ends_with("models.yml"));
        // The other layout knows JSON only.
        assert!(AgentDir::at(directory.path(), Layout::Pi).models_file().ends_with("models.json"));
        assert!(agent.project_settings_file(Path::new("/w")).starts_with("/w/.xcsh"));
    }
}
