//! What a session is made of. The caller fills this in; the session itself reads no files to start.

use pith_protocol::answers::Wire;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pith_agent::{ModelClient, Tool, Tracer};
use pith_ai::Registry;
use pith_ai::select::Start;
use pith_config::settings::{Fsync, Limits};
use pith_permissions::Sources;
use pith_protocol::{CacheRetention, InterruptMode, QueueMode, StreamUpdates, ThinkingLevel};
use pith_store::SessionStore;
use pith_tools::Workbench;
use pith_tools::hosts::SessionHosts;

use crate::extensions::ExtensionSetup;
use crate::limits::WorkLimits;
use crate::mcp::McpSetup;
use crate::outbox::Outbox;
use crate::permissions::Attendance;
use crate::project::{LoadProject, ProjectFiles};
use crate::run::RetryPolicy;
use crate::sandbox::ChangeSandbox;
use crate::tools::{MakeTools, ToolChoice};

/// Everything a session is made of.
pub struct SessionParts {
    pub out: Box<dyn Outbox>,
    pub store: SessionStore,
    pub places: SessionPlaces,
    /// Makes the tools for another working directory, for sessions that belong there.
    pub make_tools: MakeTools,
    /// Changes the sandbox those tools work in, for `set_sandbox`.
    pub change_sandbox: ChangeSandbox,
    /// Where the sandbox asks about hosts that none of its lists has.
    pub hosts: SessionHosts,
    pub client: Arc<dyn ModelClient>,
    pub registry: Arc<Registry>,
    /// Settings, options and resources of the session's directory.
    pub files: ProjectFiles,
    /// Reads those files again, for `reload` and when a file has changed.
    pub load_project: LoadProject,
    /// The model, the thinking level and the models to cycle through at the start.
    pub start: Start,
    pub workbench: Arc<Workbench>,
    pub tools: Vec<Arc<dyn Tool>>,
    pub tool_choice: ToolChoice,
    pub extensions: ExtensionSetup,
    pub mcp: McpSetup,
    /// Where rules about tool calls are read, when they are needed.
    pub permissions: Sources,
    /// Hears when pieces of work begin and how they end, if somebody watches.
    pub tracer: Option<Arc<dyn Tracer>>,
    /// Called when nothing has happened for a moment after the start or after work.
    pub on_rest: Box<dyn Fn()>,
}

/// Where sessions are looked for.
#[derive(Clone, Debug)]
pub struct SessionPlaces {
    /// The directory with the sessions of this working directory.
    pub dir: PathBuf,
    /// The directory above, with the sessions of all working directories.
    pub root: PathBuf,
}

/// Choices from flags, settings and dialects. Commands change some of them.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    pub steering_mode: QueueMode,
    pub follow_up_mode: QueueMode,
    pub interrupt_mode: InterruptMode,
    pub stream_updates: StreamUpdates,
    pub auto_compaction: bool,
    pub retry: RetryPolicy,
    /// What the user allows for a prompt.
    pub limits: WorkLimits,
    /// What a whole session may use.
    pub session_limits: Limits,
    pub block_images: bool,
    pub cache: CacheRetention,
    /// Whether somebody can be asked: a host with dialogs, or a user at a terminal.
    pub has_ui: bool,
    /// Who user messages are attributed to, where hosts expect that.
    pub attribution: Option<&'static str>,
    /// The beginning of an exported page's file name, used if the host gives no path.
    pub export_app: &'static str,
    /// What `hello` tells about the wire.
    pub wire: Wire,
    /// The answer to a prompt while the agent is busy.
    pub busy_text: &'static str,
    /// Whether `get_state` includes the system prompt and the tools.
    pub state_has_prompt: bool,
    /// Whether `get_state` without a usable model has one whose members are `unknown`.
    pub state_has_unknown_model: bool,
    /// The strongest thinking level the host knows; stronger levels are reported as this one.
    pub highest_level: ThinkingLevel,
    /// Whether `get_session_stats` counts premium requests.
    pub counts_premium_requests: bool,
    /// Whether hosts get a second, failing response if an accepted prompt turns out to be impossible.
    pub tells_late_failures: bool,
    /// Whether tool calls of an aborted answer are reported as failed.
    pub reports_aborted_calls: bool,
    /// Whether the model has the todo tool before the host has set todos.
    pub has_todo_tool: bool,
    /// Whether a model that stops is reminded of open todos that the host set.
    pub todo_reminders: bool,
    /// How long finished todos stay in the list; `None` keeps them.
    pub todo_clear_after: Option<Duration>,
    /// How long a host tool may take; `None` sets no limit.
    pub host_tool_timeout: Option<Duration>,
    /// When data must have reached the disk.
    pub fsync: Fsync,
    /// How long the host may take to say whether a project is trusted; `None` sets no limit.
    pub trust_answer_limit: Option<Duration>,
    /// Who can be asked whether a tool call may run, until the host says more about itself.
    pub attendance: Attendance,
    /// Whether another session may take the place of this one. Where clients know sessions by their ids, those who ask
    /// are told that it was cancelled.
    pub is_replaceable: bool,
    /// The session's display name, from the command line.
    pub name: Option<String>,
}
