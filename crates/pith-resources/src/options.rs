//! Where to look for resources and which of them are wanted.

use std::path::PathBuf;

use pith_config::settings::ResourceLists;

use crate::followed::Followed;
use crate::source_info::Scope;

/// Everything a load depends on besides the files themselves.
#[derive(Clone, Debug, Default)]
pub struct ResourceOptions {
    /// The user's configuration directory.
    pub agent_dir: PathBuf,
    /// Name of a project's configuration directory: `.pi` or `.xcsh`.
    pub project_dir_name: String,
    /// Working directory of the session, absolute.
    pub cwd: PathBuf,
    /// For `~` and `~/.agents/skills`.
    pub home: Option<PathBuf>,
    /// Whether resources of the project may be used.
    pub trusted: bool,
    /// `--no-skills`: only explicit ones.
    pub no_skills: bool,
    /// `--no-prompt-templates`: only explicit ones.
    pub no_prompt_templates: bool,
    /// `--no-context-files`.
    pub no_context_files: bool,
    /// `--skill`, as given.
    pub skill_paths: Vec<String>,
    /// `--prompt-template`, as given.
    pub prompt_paths: Vec<String>,
    /// `--skills`: name globs that limit which skills are kept; empty keeps all.
    pub skill_names: Vec<String>,
    /// Contributed by extensions.
    pub contributed_skills: Vec<ContributedPath>,
    /// Contributed by extensions.
    pub contributed_prompts: Vec<ContributedPath>,
    /// Lists of the user's settings file.
    pub user_lists: ResourceLists,
    /// Lists of the project's settings file.
    pub project_lists: ResourceLists,
    /// Installed packages, in order of precedence.
    pub packages: Vec<PackageResources>,
    /// `--system-prompt`
    pub system_prompt: Option<PromptText>,
    /// `--append-system-prompt`
    pub append_system_prompt: Vec<PromptText>,
    /// Which files may be read.
    pub followed: Followed,
}

/// A text for the system prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptText {
    /// What a flag says: a text, or the path of a file with it.
    TextOrFile(String),
    /// The text itself. It joins what flags or files append, instead of taking their place.
    Literal(String),
}

/// The value of a flag.
impl From<String> for PromptText {
    fn from(value: String) -> Self {
        PromptText::TextOrFile(value)
    }
}

/// An installed package and which of its resources are wanted: `None` is all, an empty list none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageResources {
    pub root: PathBuf,
    /// Shown as `sourceInfo.source`.
    pub source: String,
    pub scope: Scope,
    pub skills: Option<Vec<String>>,
    pub prompts: Option<Vec<String>>,
}

/// A file or directory that an extension contributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContributedPath {
    /// Absolute, or relative to the working directory.
    pub path: String,
    /// Shown as `sourceInfo.source`.
    pub source: String,
    /// The directory of the extension, shown as `sourceInfo.baseDir`; `None` for one that is not a file.
    pub base_dir: Option<PathBuf>,
}

impl ResourceOptions {
    /// Returns the project's configuration directory.
    pub fn project_dir(&self) -> PathBuf {
        self.cwd.join(&self.project_dir_name)
    }
}
