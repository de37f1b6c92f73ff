//! Every command on one screen: wire name, fields, answer.

use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::answers::*;
use crate::audit::Audit;
use crate::fields::{Field, FieldError, Place, read_object, read_word};
use crate::host_tool::HostToolInput;
use crate::limits::LimitUses;
use crate::permissions::{ApprovalMode, PermissionMode, Permissions};
use crate::todos::TodoPhaseInput;
use crate::{ImageBlock, Model, ThinkingLevel};

/// Ties a command to its name and its answer. It is written as hosts send it, without an id.
pub trait Call: Serialize + Into<Command> + 'static {
    const NAME: &'static str;
    type Answer: Answer;
}

/// The `data` of a response. The unit answer has none.
#[cfg(not(feature = "schema"))]
pub trait Answer: Serialize + DeserializeOwned {
    const HAS_DATA: bool = true;
}

/// The `data` of a response. The unit answer has none.
#[cfg(feature = "schema")]
pub trait Answer: Serialize + DeserializeOwned + schemars::JsonSchema {
    const HAS_DATA: bool = true;
}

macro_rules! commands {
    ($($(#[doc = $doc:literal])* $wire:literal => $name:ident { $($field:ident $(as $key:literal)?: $type:ty),* } -> $answer:ty;)*) => {
        /// A decoded command.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Command { $($name($name)),* }

        impl Command {
            /// All wire names.
            pub const NAMES: &[&str] = &[$($wire),*];

            /// Reads the fields of a command; `None` if there is no such command.
            pub fn read(name: &str, fields: &mut Map<String, Value>) -> Option<Result<Command, FieldError>> {
                Some(match name {
                    $($wire => $name::read(fields).map(Command::$name),)*
                    _ => return None,
                })
            }

            /// Name, meaning, fields and answer of every command, in order.
            #[cfg(feature = "schema")]
            pub(crate) fn shapes(generator: &mut schemars::SchemaGenerator) -> Vec<crate::schema::CommandShape> {
                vec![$(crate::schema::CommandShape {
                    name: $wire,
                    about: concat!("", $($doc),*),
                    fields: vec![$((
                        wire_key!($field $($key)?),
                        <$type as Field>::schema(generator),
                        <$type as Field>::IS_REQUIRED,
                    )),*],
                    answer: <$name as Call>::Answer::HAS_DATA
                        .then(|| generator.subschema_for::<<$name as Call>::Answer>()),
                }),*]
            }

            /// The wire name.
            pub fn name(&self) -> &'static str {
                match self { $(Command::$name(_) => $wire),* }
            }
        }

        /// The data of a successful response, by command.
        #[derive(Clone, Debug)]
        pub enum AnyAnswer { $($name(<$name as Call>::Answer)),* }

        impl AnyAnswer {
            /// Reads the data of a response; `None` if there is no such command. No data reads as `null`.
            pub fn read(command: &str, data: &str) -> Option<Result<AnyAnswer, serde_json::Error>> {
                Some(match command {
                    $($wire => serde_json::from_str(data).map(AnyAnswer::$name),)*
                    _ => return None,
                })
            }
        }

        impl Serialize for Command {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(Command::$name(command) => command.serialize(serializer)),* }
            }
        }

        impl Serialize for AnyAnswer {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(AnyAnswer::$name(answer) => answer.serialize(serializer)),* }
            }
        }

        $(
            $(#[doc = $doc])*
            #[derive(Clone, Debug, PartialEq)]
            pub struct $name { $(pub $field: $type),* }

            impl $name {
                #[allow(unused_variables, reason = "commands without fields")]
                fn read(fields: &mut Map<String, Value>) -> Result<Self, FieldError> {
                    Ok($name { $($field: {
                        let key = wire_key!($field $($key)?);
                        <$type as Field>::read(fields.remove(key), &Place::new($wire, key))?
                    }),* })
                }
            }

            impl Serialize for $name {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    let mut command = serializer.serialize_map(None)?;
                    command.serialize_entry("type", $wire)?;
                    $(self.$field.write(wire_key!($field $($key)?), &mut command)?;)*
                    command.end()
                }
            }

            impl From<$name> for Command {
                fn from(command: $name) -> Command {
                    Command::$name(command)
                }
            }

            impl Call for $name {
                const NAME: &'static str = $wire;
                type Answer = $answer;
            }
        )*
    };
}

macro_rules! wire_key {
    ($field:ident $key:literal) => {
        $key
    };
    ($field:ident) => {
        stringify!($field)
    };
}

commands! {
    /// Says who the host is and what it accepts; answers what pith can do. Optional, at any time, the last one counts.
    "hello" => Hello { client: Option<Client>, accept: Option<Accept> } -> Greeting;

    // prompting
    /// Starts a run, or queues while one is active and `streamingBehavior` says how.
    "prompt" => Prompt { message: String, images: Vec<ImageBlock>, streaming_behavior as "streamingBehavior": Option<StreamingBehavior>, locale: Option<String>, traceparent: Option<String> } -> PromptDisposition;
    /// Queues a message for the next pause of the run.
    "steer" => Steer { message: String, images: Vec<ImageBlock> } -> PromptDisposition;
    /// Queues a message for when the run would end.
    "follow_up" => FollowUp { message: String, images: Vec<ImageBlock> } -> PromptDisposition;
    /// Stops the run; answered when it has stopped.
    "abort" => Abort {} -> ();
    /// Stops the run, then prompts.
    "abort_and_prompt" => AbortAndPrompt { message: String, images: Vec<ImageBlock> } -> PromptDisposition;
    /// Empties both queues and returns what was in them.
    "clear_queue" => ClearQueue {} -> Queues;
    "set_steering_mode" => SetSteeringMode { mode: QueueMode } -> ();
    "set_follow_up_mode" => SetFollowUpMode { mode: QueueMode } -> ();
    "set_interrupt_mode" => SetInterruptMode { mode: InterruptMode } -> ();
    "set_stream_updates" => SetStreamUpdates { mode: StreamUpdates } -> ();

    // state
    "get_state" => GetState {} -> State;
    "get_messages" => GetMessages {} -> Messages;
    "get_last_assistant_text" => GetLastAssistantText {} -> LastText;
    "get_session_stats" => GetSessionStats {} -> SessionStats;
    "get_commands" => GetCommands {} -> Commands;
    /// What is wrong with settings, models and resources.
    "get_diagnostics" => GetDiagnostics {} -> Diagnostics;
    /// Tightens the sandbox for what starts from now on; loosening needs `--sandbox-may-loosen`. `network` and `filesystem`
    /// are as in the settings.
    "set_sandbox" => SetSandbox { profile: Option<SandboxProfile>, network: Option<Map<String, Value>>, filesystem: Option<Map<String, Value>> } -> SandboxState;
    /// Holds before the next request to the model and the next tool call; `freeze` also stops running commands.
    "pause" => Pause { freeze: Option<bool> } -> ();
    /// Goes on after `pause`.
    "resume" => Resume {} -> ();
    /// Sets limits by name, as in `limits` of the settings, for as long as pith runs; `null` takes one away.
    "set_limits" => SetLimits { limits: Map<String, Value> } -> LimitUses;
    /// The rules about tool calls, and the mode for calls that no rule is about.
    "get_permissions" => GetPermissions {} -> Permissions;
    /// Changes the mode, adds rules or takes rules back, for this session; grants of the project are taken back for good.
    "set_permissions" => SetPermissions { mode: Option<PermissionMode>, allow: Option<Vec<String>>, ask: Option<Vec<String>>, deny: Option<Vec<String>>, forget: Option<Vec<String>> } -> Permissions;
    /// Changes the mode by the name that editors have for it; the same as `set_permissions` with that mode.
    "set_approval_mode" => SetApprovalMode { mode: ApprovalMode } -> Permissions;
    /// Reads settings, models and resources again; answers what changed.
    "reload" => Reload {} -> Reloaded;

    // model
    "set_model" => SetModel { provider: String, model_id as "modelId": String } -> Model;
    "cycle_model" => CycleModel {} -> Option<CycledModel>;
    "get_available_models" => GetAvailableModels {} -> Models;
    "set_thinking_level" => SetThinkingLevel { level: ThinkingLevel } -> ();
    "cycle_thinking_level" => CycleThinkingLevel {} -> Option<Level>;
    "get_available_thinking_levels" => GetAvailableThinkingLevels {} -> Levels;

    // compaction and retry
    "compact" => Compact { custom_instructions as "customInstructions": Option<String> } -> CompactionResult;
    "set_auto_compaction" => SetAutoCompaction { enabled: bool } -> ();
    "set_auto_retry" => SetAutoRetry { enabled: bool } -> ();
    "abort_retry" => AbortRetry {} -> ();

    // the host's own shell commands
    "bash" => Bash { command: String, exclude_from_context as "excludeFromContext": Option<bool> } -> BashResult;
    "abort_bash" => AbortBash { target_id as "targetId": Option<Value> } -> ();

    // sessions
    "new_session" => NewSession { parent_session as "parentSession": Option<String> } -> Cancelled;
    "switch_session" => SwitchSession { session_path as "sessionPath": String } -> Cancelled;
    "fork" => Fork { entry_id as "entryId": String, restore_files as "restoreFiles": Option<bool> } -> Forked;
    "branch" => Branch { entry_id as "entryId": String, restore_files as "restoreFiles": Option<bool> } -> Forked;
    "clone" => CloneSession {} -> Cancelled;
    "get_fork_messages" => GetForkMessages {} -> ForkMessages;
    "get_branch_messages" => GetBranchMessages {} -> ForkMessages;
    "get_entries" => GetEntries { since: Option<String> } -> Entries;
    /// What was asked, allowed and refused: the entries of the audit, or those after one.
    "get_audit" => GetAudit { since: Option<String> } -> Audit;
    /// All entries, nested by parent, or as one list with `flat`.
    "get_tree" => GetTree { flat: Option<bool> } -> Tree;
    /// The sessions of this working directory, or of all.
    "list_sessions" => ListSessions { all: Option<bool> } -> Sessions;
    /// Continues from another entry of the session.
    "navigate_tree" => NavigateTree { target_id as "targetId": String, summarize: Option<bool>, custom_instructions as "customInstructions": Option<String>, replace_instructions as "replaceInstructions": Option<bool>, label: Option<String>, restore_files as "restoreFiles": Option<bool> } -> Navigated;
    /// Puts a bookmark on an entry, or removes it.
    "set_label" => SetLabel { entry_id as "entryId": String, label: Option<String> } -> ();
    "set_session_name" => SetSessionName { name: String } -> ();
    "export_html" => ExportHtml { output_path as "outputPath": Option<String> } -> Exported;

    // checkpoints
    /// What files were before the calls of this session, newest first.
    "list_checkpoints" => ListCheckpoints { limit: Option<u64> } -> Checkpoints;
    /// Puts files back to what they were before a call. Without `checkpointId` the id of the command names the checkpoint.
    "restore_checkpoint" => RestoreCheckpoint { checkpoint_id as "checkpointId": Option<String>, paths: Option<Vec<String>>, dry_run as "dryRun": Option<bool>, force: Option<bool> } -> Restored;

    // MCP servers
    /// Replaces the host's MCP servers, by name, as in `mcpServers` of a file; `wait` answers when they have started.
    "set_mcp_servers" => SetMcpServers { servers: Map<String, Value>, wait: Option<bool> } -> McpServerStates;
    /// The MCP servers and their tools; `connect` starts those that do not run.
    "get_mcp_servers" => GetMcpServers { connect: Option<bool> } -> McpServers;
    /// Ends an MCP server and starts it again.
    "mcp_reconnect" => McpReconnect { name: String } -> McpServerStates;
    /// Begins a sign-in to an MCP server; the user opens the page of the answer.
    "mcp_login" => McpLogin { name: String } -> McpSignIn;
    /// Switches an MCP server on or off, for this session.
    "set_mcp_enabled" => SetMcpEnabled { name: String, enabled: bool } -> McpServerStates;

    // what xcsh hosts add
    "set_todos" => SetTodos { phases: Vec<TodoPhaseInput> } -> TodoPhases;
    "set_host_tools" => SetHostTools { tools: Vec<HostToolInput> } -> HostToolNames;
    "set_locale" => SetLocale { locale: String } -> ();
    "get_integrations" => GetIntegrations {} -> Integrations;
}

macro_rules! texts {
    ($($name:ident { $($field:ident: $value:expr),* }),*) => {$(
        /// The command with nothing but a text.
        impl<T: Into<String>> From<T> for $name {
            fn from(message: T) -> Self {
                $name { message: message.into(), images: Vec::new() $(, $field: $value)* }
            }
        }
    )*};
}

texts! { Prompt { streaming_behavior: None, locale: None, traceparent: None }, Steer {}, FollowUp {}, AbortAndPrompt {} }

macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal),* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name { $($(#[$variant_meta])* #[serde(rename = $word)] $variant),* }

        impl $name {
            /// Wire words and their meaning.
            pub const WORDS: &[(&str, $name)] = &[$(($word, $name::$variant)),*];

            /// Returns the wire word.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }
        }

        impl Field for $name {
            #[cfg(feature = "schema")]
            fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                generator.subschema_for::<$name>()
            }

            fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
                read_word(value, place, $name::WORDS)
            }
        }
    )*};
}

words! {
    /// How a prompt joins a running agent.
    StreamingBehavior { Steer = "steer", FollowUp = "followUp" }
    /// How much of a queue one opportunity takes.
    QueueMode { All = "all", OneAtATime = "one-at-a-time" }
    /// Whether steering disturbs a running tool batch.
    InterruptMode { Immediate = "immediate", Wait = "wait" }
    /// Cumulative or linear-size `message_update` frames.
    StreamUpdates { Full = "full", Delta = "delta" }
    /// How much a session may touch: what the user may; what the settings list; everything read and
    /// the session's directory written; everything read and nothing written.
    #[derive(Default)]
    SandboxProfile { #[default] Off = "off", Custom = "custom", WorkspaceWrite = "workspace-write", ReadOnly = "read-only" }
    /// How much of a sandbox must be enforced before anything runs: what the kernel can hold; that, and no gap that pith
    /// knows of; what there is.
    #[derive(Default)]
    SandboxRequirement { #[default] Full = "full", Strict = "strict", BestEffort = "best-effort" }
    /// Whether a sandbox uses user namespaces.
    #[derive(Default)]
    SandboxNamespaces { #[default] Auto = "auto", Never = "never", Require = "require" }
    /// Whether confined commands reach the network, the loosest first; `domains` means listed ones.
    #[derive(Default, PartialOrd, Ord)]
    SandboxNetwork { On = "on", Domains = "domains", #[default] Off = "off" }
}

impl FromStr for SandboxProfile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = SandboxProfile::WORDS.iter().find(|(word, _)| *word == text);
        found.map(|(_, profile)| *profile).ok_or_else(|| {
            let words: Vec<&str> = SandboxProfile::WORDS.iter().map(|(word, _)| *word).collect();
            format!("expected {}, not {text:?}", words.join(", "))
        })
    }
}

impl fmt::Display for SandboxProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Field for ThinkingLevel {
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<ThinkingLevel>()
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        let words = ThinkingLevel::ALL.map(|level| (level.as_str(), level));
        read_word(value, place, &words)
    }
}

/// Objects whose members have a meaning elsewhere.
impl Field for Map<String, Value> {
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Map<String, Value>>()
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        match value {
            None | Some(Value::Null) => Err(place.missing()),
            Some(value) => read_object(value, place),
        }
    }
}

/// Ids are echoed, so any JSON value may name a command.
impl Field for Value {
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Value>()
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        value.ok_or_else(|| place.missing())
    }
}
