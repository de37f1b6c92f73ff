//! The user's and the project's settings, merged and checked key by key.
//!
//! Reading only: nothing in pith rewrites a settings file on its own.

mod acp;
mod checkpoints;
mod keys;
mod limits;
mod load;
mod mcp;
mod migrate;
mod secrets;
mod thinking;

use std::collections::BTreeMap;
use std::time::Duration;

use pith_protocol::{InterruptMode, QueueMode, ThinkingLevel};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub use acp::Acp;
pub use checkpoints::{CheckpointMode, Checkpoints};
pub use keys::UnknownKey;
pub use limits::Limits;
pub use load::{LoadedSettings, file_with, load, session_dir, unknown_keys, written};
pub use mcp::Mcp;
pub use secrets::{Redact, SecretsSettings};
pub use thinking::ThinkingBudgets;

/// Every setting a headless agent acts on, with defaults filled in.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// Takes effect together with `default_model`.
    pub default_provider: Option<String>,
    pub default_model: Option<String>,
    pub default_thinking_level: Option<ThinkingLevel>,
    /// Start-up level by `provider/id`.
    pub model_thinking_levels: BTreeMap<String, ThinkingLevel>,
    pub thinking_budgets: ThinkingBudgets,
    /// The model scope, as `--models` would give it.
    pub enabled_models: Option<Vec<String>>,
    pub steering_mode: QueueMode,
    pub follow_up_mode: QueueMode,
    pub interrupt_mode: InterruptMode,
    /// `None` leaves the built-in choice; an empty list switches the built-in tools off.
    pub default_tools: Option<Vec<String>>,
    /// The program that is npm, with its first arguments.
    pub npm_command: Option<Vec<String>>,
    /// As written; relative paths start at the working directory.
    pub session_dir: Option<String>,
    pub session: SessionFiles,
    pub compaction: Compaction,
    pub branch_summary: BranchSummary,
    pub retry: Retry,
    pub http_proxy: Option<String>,
    /// Longest silence of a server; `None` means no limit.
    #[serde(rename = "httpIdleTimeoutMs", deserialize_with = "idle_timeout")]
    pub http_idle_timeout: Option<Duration>,
    pub images: Images,
    /// As written; `~` is not expanded yet.
    pub shell_path: Option<String>,
    pub shell_command_prefix: Option<String>,
    pub bash: Bash,
    pub acp: Acp,
    pub mcp: Mcp,
    pub tools: Tools,
    /// Only to see that it has changed: a sandbox is made from the files themselves, where a mistake is an error.
    pub sandbox: Option<Value>,
    pub checkpoints: Checkpoints,
    pub telemetry: Telemetry,
    pub secrets: SecretsSettings,
    /// The most turns of one run; unlimited when absent.
    pub max_turns: Option<u64>,
    /// What a session may use; a project only lowers it.
    #[serde(skip)]
    pub limits: Limits,
    pub tasks: Tasks,
    pub default_project_trust: DefaultTrust,
    pub extension_limits: ExtensionLimits,
    /// Whether attribution headers are sent.
    pub enable_install_telemetry: bool,
    pub handoff: Handoff,
    /// Keys in an old settings file; today they are in `auth.json`.
    pub api_keys: BTreeMap<String, String>,
    /// Resource lists of the user's file.
    #[serde(skip)]
    pub user_resources: ResourceLists,
    /// Resource lists of the project's file, which are used besides the user's.
    #[serde(skip)]
    pub project_resources: ResourceLists,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            default_provider: None,
            default_model: None,
            default_thinking_level: None,
            model_thinking_levels: BTreeMap::new(),
            thinking_budgets: ThinkingBudgets::default(),
            enabled_models: None,
            steering_mode: QueueMode::OneAtATime,
            follow_up_mode: QueueMode::OneAtATime,
            interrupt_mode: InterruptMode::Wait,
            default_tools: None,
            npm_command: None,
            session_dir: None,
            session: SessionFiles::default(),
            compaction: Compaction::default(),
            branch_summary: BranchSummary::default(),
            retry: Retry::default(),
            http_proxy: None,
            http_idle_timeout: Some(Duration::from_secs(300)),
            images: Images::default(),
            shell_path: None,
            shell_command_prefix: None,
            bash: Bash::default(),
            acp: Acp::default(),
            mcp: Mcp::default(),
            tools: Tools::default(),
            sandbox: None,
            checkpoints: Checkpoints::default(),
            telemetry: Telemetry::default(),
            secrets: SecretsSettings::default(),
            max_turns: None,
            limits: Limits::default(),
            tasks: Tasks::default(),
            default_project_trust: DefaultTrust::default(),
            extension_limits: ExtensionLimits::default(),
            enable_install_telemetry: false,
            handoff: Handoff::default(),
            api_keys: BTreeMap::new(),
            user_resources: ResourceLists::default(),
            project_resources: ResourceLists::default(),
        }
    }
}

/// Where to look for resources, as written in one settings file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ResourceLists {
    pub skills: Vec<String>,
    pub prompts: Vec<String>,
    pub extensions: Vec<String>,
    /// Sources, or objects with a `source` and what to take of it. Not checked.
    pub packages: Vec<Value>,
}

/// When the context is summarised.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Compaction {
    pub enabled: bool,
    pub reserve_tokens: u64,
    pub keep_recent_tokens: u64,
    /// By `provider/id`.
    pub model_overrides: BTreeMap<String, CompactionOverride>,
}

impl Default for Compaction {
    fn default() -> Self {
        Compaction { enabled: true, reserve_tokens: 16384, keep_recent_tokens: 20000, model_overrides: BTreeMap::new() }
    }
}

impl Compaction {
    /// Returns the reserved and the recent tokens for one model.
    pub fn tokens_for(&self, provider: &str, model_id: &str) -> (u64, u64) {
        let special = self.model_overrides.get(&format!("{provider}/{model_id}"));
        (
            special.and_then(|special| special.reserve_tokens).unwrap_or(self.reserve_tokens),
            special.and_then(|special| special.keep_recent_tokens).unwrap_or(self.keep_recent_tokens),
        )
    }
}

/// Compaction numbers of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionOverride {
    pub reserve_tokens: Option<u64>,
    pub keep_recent_tokens: Option<u64>,
}

/// Summaries of abandoned branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BranchSummary {
    pub reserve_tokens: u64,
}

impl Default for BranchSummary {
    fn default() -> Self {
        BranchSummary { reserve_tokens: 16384 }
    }
}

/// What happens after a failed model answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Retry {
    pub enabled: bool,
    pub max_retries: u64,
    #[serde(rename = "baseDelayMs", deserialize_with = "millis")]
    pub base_delay: Duration,
    #[serde(rename = "maxAgentDelayMs", deserialize_with = "millis")]
    pub max_agent_delay: Duration,
    pub provider: ProviderRetry,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            enabled: true,
            max_retries: 3,
            base_delay: Duration::from_secs(2),
            max_agent_delay: Duration::from_secs(60),
            provider: ProviderRetry::default(),
        }
    }
}

/// Retries inside one request, before an answer has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderRetry {
    /// Limit of a whole request; the idle limit alone applies when absent.
    #[serde(rename = "timeoutMs", deserialize_with = "optional_millis")]
    pub timeout: Option<Duration>,
    pub max_retries: u64,
    /// Longest wait a server may ask for; zero means any.
    #[serde(rename = "maxRetryDelayMs", deserialize_with = "millis")]
    pub max_retry_delay: Duration,
}

impl Default for ProviderRetry {
    fn default() -> Self {
        ProviderRetry { timeout: None, max_retries: 0, max_retry_delay: Duration::from_secs(60) }
    }
}

/// Pictures on their way to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Images {
    pub auto_resize: bool,
    pub block_images: bool,
}

impl Default for Images {
    fn default() -> Self {
        Images { auto_resize: true, block_images: false }
    }
}

/// Shell commands of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bash {
    /// Whether commands see the credentials pith knows.
    pub inherit_secrets: bool,
    /// Whether background jobs of a finished command live on when the session ends.
    pub keep_background: bool,
}

impl Default for Bash {
    fn default() -> Self {
        Bash { inherit_secrets: true, keep_background: false }
    }
}

/// The file tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Tools {
    /// Directories file tools may not leave; empty means anywhere.
    pub root: Vec<String>,
}

/// Spans and metrics for a collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Telemetry {
    pub enabled: bool,
}

/// The todo list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tasks {
    /// How long a finished todo stays listed; `None` keeps it. Seconds in the file, a negative number for `None`.
    #[serde(deserialize_with = "optional_seconds")]
    pub todo_clear_delay: Option<Duration>,
}

impl Default for Tasks {
    fn default() -> Self {
        Tasks { todo_clear_delay: Some(Duration::from_secs(60)) }
    }
}

/// Limits on extension code; `None` leaves the built-in limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtensionLimits {
    /// How long code may run without returning.
    #[serde(rename = "executionMs", deserialize_with = "optional_millis")]
    pub execution: Option<Duration>,
    /// How long an event handler may take.
    #[serde(rename = "handlerMs", deserialize_with = "optional_millis")]
    pub handler: Option<Duration>,
    /// The same for a handler of an event that comes often.
    #[serde(rename = "observerMs", deserialize_with = "optional_millis")]
    pub observer: Option<Duration>,
    /// How long the function an extension exports may take.
    #[serde(rename = "factoryMs", deserialize_with = "optional_millis")]
    pub factory: Option<Duration>,
    /// How long the last handlers may take when the process ends.
    #[serde(rename = "shutdownMs", deserialize_with = "optional_millis")]
    pub shutdown: Option<Duration>,
    /// How long a tool call may go on after its abort.
    #[serde(rename = "abortMs", deserialize_with = "optional_millis")]
    pub abort: Option<Duration>,
    /// How long past `execution` the engine may take to stop.
    #[serde(rename = "hangMs", deserialize_with = "optional_millis")]
    pub hang: Option<Duration>,
    pub memory_mb: Option<u64>,
}

/// How session files are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SessionFiles {
    pub fsync: Fsync,
}

/// What a model is shown of the answers of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Handoff {
    pub thinking: HandoffThinking,
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$default:ident])? $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
        pub enum $name {
            $($(#[$default])? #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// The words a settings file may use.
            pub const WORDS: &'static [&'static str] = &[$($text),+];

            /// Returns the word for this choice.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }
        }
    };
}

choice! {
    /// Whether a project without a decision is trusted.
    DefaultTrust { #[default] Ask = "ask", Always = "always", Never = "never" }
}
choice! {
    /// When session data is forced to the disk.
    Fsync { #[default] Turn = "turn", Always = "always", Never = "never" }
}
choice! {
    /// Whether thinking of another model is passed on as text.
    HandoffThinking { #[default] Keep = "keep", Drop = "drop" }
}

fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}

fn optional_millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
}

fn optional_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    f64::deserialize(deserializer).map(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

/// Reads a limit that zero switches off.
fn idle_timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    millis(deserializer).map(|limit| (!limit.is_zero()).then_some(limit))
}
