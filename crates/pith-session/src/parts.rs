//! What a session is made of. Whoever opens one fills this in; the session itself reads no files to start.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pith_agent::{ModelClient, Tool};
use pith_ai::Registry;
use pith_ai::select::Start;
use pith_config::settings::Fsync;
use pith_protocol::{CacheRetention, InterruptMode, QueueMode, StreamUpdates, ThinkingLevel};
use pith_store::SessionStore;
use pith_tools::Workbench;

use crate::extensions::ExtensionSetup;
use crate::outbox::Outbox;
use crate::project::{LoadProject, ProjectFiles};
use crate::run::RetryPolicy;
use crate::tools::{MakeTools, ToolChoice};

/// Everything a session is made of.
pub struct SessionParts {
    pub out: Box<dyn Outbox>,
    pub store: SessionStore,
    pub places: SessionPlaces,
    /// Makes the tools of another working directory, for sessions that belong there.
    pub make_tools: MakeTools,
    pub client: Arc<dyn ModelClient>,
    pub registry: Arc<Registry>,
    /// Settings, options and resources of the session's directory.
    pub files: ProjectFiles,
    /// Reads them again, for `reload` and when a file has changed.
    pub load_project: LoadProject,
    /// The model, level and scope to start with.
    pub start: Start,
    pub workbench: Arc<Workbench>,
    pub tools: Vec<Arc<dyn Tool>>,
    pub tool_choice: ToolChoice,
    pub extensions: ExtensionSetup,
    /// Called when nothing has happened for a moment after the start or after work.
    pub on_rest: fn(),
}

/// Where sessions are looked for.
#[derive(Clone, Debug)]
pub struct SessionPlaces {
    /// Those of this working directory.
    pub dir: PathBuf,
    /// All of them.
    pub root: PathBuf,
}

/// Choices fixed for the life of the process or changed by setters.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    pub steering_mode: QueueMode,
    pub follow_up_mode: QueueMode,
    pub interrupt_mode: InterruptMode,
    pub stream_updates: StreamUpdates,
    pub auto_compaction: bool,
    pub retry: RetryPolicy,
    pub max_turns: Option<u32>,
    pub block_images: bool,
    pub cache: CacheRetention,
    /// Who a user message is attributed to, where hosts expect it.
    pub attribution: Option<&'static str>,
    /// What the name of an exported page begins with, where the host names none.
    pub export_app: &'static str,
    /// The refusal of a second prompt.
    pub busy_text: &'static str,
    /// Whether `get_state` repeats the system prompt and the tools.
    pub state_has_prompt: bool,
    /// The strongest thinking level the host knows; stronger ones are shown as this one.
    pub highest_level: ThinkingLevel,
    /// Whether `get_session_stats` counts premium requests.
    pub counts_premium_requests: bool,
    /// Whether an accepted prompt that turns out to be impossible is answered a second time.
    pub tells_late_failures: bool,
    /// Whether tool calls of an aborted answer are reported as failed.
    pub reports_aborted_calls: bool,
    /// Whether the model has the todo tool before the host has set todos.
    pub has_todo_tool: bool,
    /// Whether a model that stops is reminded of the host's open todos.
    pub todo_reminders: bool,
    /// When finished todos disappear; `None` keeps them.
    pub todo_clear_after: Option<Duration>,
    /// How long a host tool may take; `None` waits for ever.
    pub host_tool_timeout: Option<Duration>,
    /// When data must have reached the disk.
    pub fsync: Fsync,
    /// The session's display name, from the command line.
    pub name: Option<String>,
}
