//! What the extension engine is started with.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::registry::SourceInfo;

/// The value of `process.argv[1]`: the script of a pi that was compiled into one file. There is no such file, so code
/// that starts the agent again uses `process.execPath` alone, or passes this as the first argument.
pub const SCRIPT: &str = "/$bunfs/root/pi";

/// An extension to load. The order of a list of sources is the order in which handlers are called.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionSource {
    /// The path that errors and `sourceInfo` show.
    pub path: String,
    /// The file that is evaluated: the path itself, or the index of the directory it names.
    pub file: String,
    pub source_info: SourceInfo,
}

impl ExtensionSource {
    /// Creates a source from a path alone.
    pub fn new(path: impl Into<String>, source: &str, scope: &str) -> Self {
        let path = path.into();
        let source_info = SourceInfo {
            path: path.clone(),
            source: source.to_owned(),
            scope: scope.to_owned(),
            origin: "top-level".to_owned(),
            base_dir: None,
        };
        ExtensionSource { file: path.clone(), path, source_info }
    }
}

/// Facts about the process and the session that extensions can see.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Surroundings {
    pub cwd: PathBuf,
    pub mode: Mode,
    /// Whether someone can answer dialogs.
    #[serde(rename = "hasUI")]
    pub has_ui: bool,
    /// Whether someone can answer dialogs while trust in the project is being decided.
    #[serde(rename = "trustHasUI")]
    pub trust_has_ui: bool,
    pub agent_dir: PathBuf,
    /// `.pi` or `.xcsh`.
    pub config_dir_name: String,
    /// The version that extensions are told.
    pub version: String,
    /// Whether theme functions style their text.
    pub color: bool,
}

/// How the agent is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Tui,
    Rpc,
    Json,
    Print,
}

/// Limits for extension code.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Uninterrupted execution of JavaScript.
    pub slice: Duration,
    /// An event handler, not counting time spent waiting for dialogs, processes or the network.
    pub handler: Duration,
    /// A handler of an observation such as `message_update`.
    pub observer: Duration,
    pub factory: Duration,
    /// `session_shutdown` when the process ends.
    pub shutdown: Duration,
    /// The time between the abort of a tool call and giving up on it.
    pub abort_grace: Duration,
    /// How long the engine may exceed its slice before it is given up.
    pub hang_grace: Duration,
    /// The session's answer to a query.
    pub query: Duration,
    /// The heap of the engine, in bytes.
    pub memory: usize,
    /// The stack of the engine, in bytes.
    pub stack: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            slice: Duration::from_secs(5),
            handler: Duration::from_secs(30),
            observer: Duration::from_secs(1),
            factory: Duration::from_secs(30),
            shutdown: Duration::from_secs(3),
            abort_grace: Duration::from_secs(2),
            hang_grace: Duration::from_secs(10),
            query: Duration::from_secs(5),
            memory: 256 << 20,
            stack: 2 << 20,
        }
    }
}

/// Where the output of extensions goes. Never standard output, which carries the protocol.
#[derive(Clone)]
pub struct Output(Arc<dyn Fn(&str) + Send + Sync>);

impl Output {
    /// Creates an output that passes every piece of text to a function.
    pub fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Output(Arc::new(write))
    }

    pub(crate) fn write(&self, text: &str) {
        (self.0)(text);
    }
}

impl Default for Output {
    fn default() -> Self {
        Output::new(pith_visible::write_stderr)
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Output")
    }
}

/// Starts the programs of `pi.exec` so that none of them outlives the agent, however it ends.
pub trait Launcher: fmt::Debug + Send + Sync {
    /// Starts a program with empty input.
    fn launch(
        &self,
        program: &str,
        args: &[String],
        cwd: &Path,
        stdout: Stdio,
        stderr: Stdio,
    ) -> io::Result<Box<dyn Launched>>;
}

/// A program that was launched.
pub trait Launched: Send + Sync {
    /// Waits for its exit code; blocks.
    fn wait(&self) -> io::Result<i32>;

    /// Asks the program and everything it started to end, and kills them after `grace`.
    fn end(&self, grace: Duration);
}

/// A built-in tool of the agent, as extensions that wrap it see it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BuiltinTool {
    pub name: String,
    pub label: String,
    pub description: String,
    /// JSON Schema object.
    pub parameters: Arc<Value>,
    pub prompt_snippet: Option<String>,
    pub prompt_guidelines: Vec<String>,
    /// Whether `createCodingTools` returns it.
    pub is_default: bool,
    /// Whether `createReadOnlyTools` returns it.
    pub is_read_only: bool,
}

/// Everything the engine needs to start.
#[derive(Clone, Debug)]
pub struct ExtensionConfig {
    pub surroundings: Surroundings,
    /// The tools that `createBashTool` and the like describe.
    pub builtin_tools: Vec<BuiltinTool>,
    pub limits: Limits,
    pub output: Output,
    /// The variables that extensions and their programs see; `None` means those of this process.
    pub environment: Option<Vec<(String, String)>>,
    /// The arguments of the process, which `process.argv` shows after the program and [`SCRIPT`].
    pub arguments: Vec<String>,
    /// Starts programs; without one they are ordinary children.
    pub launcher: Option<Arc<dyn Launcher>>,
}
