//! What is needed to open a session.

use std::path::PathBuf;
use std::time::Duration;

use pith_ai::select::Defaults;
use pith_config::Environment;
use pith_resources::HOST_ANSWER_LIMIT;
use pith_tools::process::Supervisor;

use crate::cli::Cli;
use crate::dialect::Dialect;
use crate::project::Ask;

/// What is needed to open a session.
pub struct OpenRequest {
    /// Where to start; a session that exists belongs to its own directory.
    pub cwd: PathBuf,
    pub environment: Environment,
    /// The command line, which also selects the session.
    pub arguments: Cli,
    /// Which arguments give way to what a session remembers.
    pub defaults: Defaults,
    pub dialect: &'static Dialect,
    pub mode: pith_ext::Mode,
    /// Asks the user questions before the session exists.
    pub ask: Option<Ask>,
    /// Supervises the commands of the session; without one, ending their processes is best effort.
    pub supervisor: Option<Supervisor>,
    /// Directories that file tools may use beside the working directory, where settings confine them.
    pub additional_roots: Vec<PathBuf>,
    /// Whether the host is given the form of an MCP server whole, and not field by field.
    pub takes_forms: bool,
    /// Whether commands may put another session in the place of this one.
    pub is_replaceable: bool,
    /// How long the host may take to say whether a project is trusted; `None` sets no limit.
    pub trust_answer_limit: Option<Duration>,
    /// Whether other sessions are served on this thread, which a long file must not hold up.
    pub shares_thread: bool,
}

impl OpenRequest {
    /// Creates a request for the directory and environment of this process.
    pub fn of_process(arguments: Cli, dialect: &'static Dialect, mode: pith_ext::Mode) -> anyhow::Result<Self> {
        Ok(OpenRequest {
            cwd: crate::current_dir()?,
            environment: Environment::of_process(),
            arguments,
            defaults: Defaults::default(),
            dialect,
            mode,
            ask: None,
            supervisor: Supervisor::this_program().ok(),
            additional_roots: Vec::new(),
            takes_forms: false,
            is_replaceable: true,
            trust_answer_limit: Some(HOST_ANSWER_LIMIT),
            shares_thread: false,
        })
    }
}
