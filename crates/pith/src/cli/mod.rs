//! The command line. Hosts pass flags written for other agents and other versions, so rpc mode warns about unknown
//! flags instead of refusing them.

mod completions;
mod extension_flags;
mod flags;
mod help;
mod man;
mod parse;
mod subcommand;
mod table;
mod values;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use pith_config::settings::Limits;
use pith_permissions::RuleFlags;
use pith_protocol::{StreamUpdates, ThinkingLevel};
use pith_resources::PromptText;
use pith_sandbox::Profile;

use crate::dialect::Dialect;
use crate::sessions::SessionFlags;
pub use completions::completions;
pub use extension_flags::{ExtensionFlags, ResolvedFlags, UnknownFlags};
pub use help::help;
pub use man::man;
pub use parse::SIGN_IN;
pub use subcommand::{PackageVerb, Shell};
pub use values::{dialect_named, duration, stream_updates};

/// The parsed command line.
#[derive(Clone, Debug, Default)]
pub struct Cli {
    pub action: Action,
    pub mode: Option<Mode>,
    pub print: bool,
    /// `--json`: the same as `--mode json`, once the flags are known.
    pub json: bool,
    pub output: OutputFlags,
    pub max_turns: Option<u32>,
    /// US dollars.
    pub max_cost: Option<f64>,
    pub timeout: Option<Duration>,
    /// What a whole session may use.
    pub limits: Limits,
    /// The search term of `--list-models`.
    pub search: Option<String>,
    /// `--all`: `--list-models` lists also what cannot be used now.
    pub lists_all: bool,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub models: Option<String>,
    pub thinking: Option<ThinkingLevel>,
    pub api_key: Option<String>,
    pub script: Option<PathBuf>,
    pub session_dir: Option<PathBuf>,
    pub sessions: SessionFlags,
    pub name: Option<String>,
    /// Started under the name `pi`.
    pub is_called_pi: bool,
    pub tools: Option<Vec<String>>,
    pub exclude_tools: Vec<String>,
    pub no_tools: bool,
    /// `--sandbox`, or `--no-sandbox`, whichever was given last.
    pub sandbox: Option<Profile>,
    pub sandbox_may_loosen: bool,
    /// `--permission-mode`, `--approval-mode`, `--allowed-tools`, `--disallowed-tools`.
    pub permissions: RuleFlags,
    /// The flag that has set the mode.
    mode_flag: Option<&'static str>,
    pub no_builtin_tools: bool,
    pub system_prompt: Option<PromptText>,
    pub append_system_prompt: Vec<PromptText>,
    pub skill_paths: Vec<String>,
    pub skill_names: Vec<String>,
    pub no_skills: bool,
    pub prompt_paths: Vec<String>,
    pub no_prompt_templates: bool,
    pub no_context_files: bool,
    /// `--mcp-config`: files, or JSON texts.
    pub mcp_configs: Vec<String>,
    /// `--no-mcp`: no MCP servers but those of `--mcp-config` and of the host.
    pub no_mcp: bool,
    pub extensions: Vec<String>,
    pub no_extensions: bool,
    /// `--extension-errors`: which extensions must load.
    pub extension_errors: Option<ExtensionErrors>,
    /// Options that may belong to extensions.
    pub extension_flags: ExtensionFlags,
    /// `--approve` or `--no-approve`, whichever was given last.
    pub approve: Option<bool>,
    pub offline: bool,
    pub verbose: bool,
    pub debug: DebugFlags,
    pub dialect: Option<&'static Dialect>,
    pub stream_updates: Option<StreamUpdates>,
    pub max_line_bytes: Option<usize>,
    pub host_tool_timeout: Option<Duration>,
    pub no_rules: bool,
    pub ui_cancel: bool,
    pub messages: Vec<String>,
    pub files: Vec<String>,
    /// Printed to stderr before anything else.
    pub warnings: Vec<String>,
    /// Unknown options with one dash.
    unknown: Vec<String>,
}

/// Where the answer goes and what it has to look like; only for the modes that answer once.
#[derive(Clone, Debug, Default)]
pub struct OutputFlags {
    /// `--output`.
    pub file: Option<PathBuf>,
    /// `--output-schema`.
    pub schema: Option<PathBuf>,
    /// `--output-tries`.
    pub n_tries: Option<u32>,
}

/// What is written down for whoever has to find out what happened.
#[derive(Clone, Debug, Default)]
pub struct DebugFlags {
    /// `--debug`.
    pub file: Option<PathBuf>,
    /// `--debug-content`.
    pub shows_content: bool,
}

/// What the process is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// A conversation, in any mode.
    #[default]
    Serve,
    Help,
    Version,
    ListModels,
    /// Writes a session file as a page.
    Export(PathBuf),
    /// A scripted session; `raw` shows every line of both sides.
    Tour {
        raw: bool,
    },
    ConfigCheck,
    /// `auth`, with its own arguments.
    Auth(Vec<String>),
    /// `mcp`, with its own arguments.
    Mcp(Vec<String>),
    /// `sandbox`, with its own arguments.
    Sandbox(Vec<String>),
    /// `permissions`, with its own arguments.
    Permissions(Vec<String>),
    /// `debug`, with its own arguments.
    Debug(Vec<String>),
    /// `trust`, with its own arguments.
    Trust(Vec<String>),
    /// `schema`, with its own arguments.
    Schema(Vec<String>),
    /// `install` and its kin, with their own arguments.
    Packages(PackageVerb, Vec<String>),
    /// `conformance`, with its own arguments.
    Conformance(Vec<String>),
    Completions(Shell),
    Man,
    /// `-h` of a subcommand.
    Usage(String),
    /// Something pith does not do; the text says so.
    Refuse(String),
}

/// What happens if extensions cannot be loaded. If unset, only those of the command line must load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionErrors {
    /// They are reported and left out.
    Warn,
    /// pith does not start.
    Fatal,
}

/// The `--mode` values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Text,
    Json,
    Rpc,
    /// The Agent Client Protocol, which editors speak.
    Acp,
}

impl Mode {
    /// Whether a program reads and writes at the other end, instead of a person or a script.
    pub fn serves_host(self) -> bool {
        matches!(self, Mode::Rpc | Mode::Acp)
    }
}
