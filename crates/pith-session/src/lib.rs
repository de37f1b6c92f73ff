//! The live session: the only owner of state that changes.
//!
//! It knows nothing of stdin, stdout or dialects: lines arrive decoded, frames leave through [`Outbox`], and
//! differences between hosts are plain options. Two tasks cannot have one session:
//!
//! ```compile_fail,E0277
//! fn shared<T: Sync>() {}
//! shared::<pith_session::Session>();
//! ```

// The event loop, its events and its answers.
mod dispatch;
mod failure;
mod hello;
mod log;
mod outbox;
mod parts;
mod reply;
mod session;
mod state;

// What a session does; at most one activity at a time.
mod activity;
mod admission;
mod compaction;
mod gate;
mod jobs;
mod limits;
mod navigation;
mod replace;
mod run;

// What it works with.
mod audit;
mod checkpoints;
mod export;
mod history;
mod integrations;
mod mcp;
mod models;
mod permissions;
mod project;
mod rules;
mod sandbox;
mod telemetry;
mod todos;
mod tools;

mod extensions;

pub use extensions::{
    ExtensionSetup, FindExtensions, LoadingExtensions, RunningExtensions, answer_from_registry, model_auth,
    register_provider, serve_fetch, serve_model_request, serve_tool,
};
pub use history::History;
pub use limits::{LimitScope, WorkLimits};
pub use log::{short_name, with_name};
pub use mcp::{FromMcp, McpInput, McpPage, McpPrompt, McpSample, McpServers, McpSetup, McpUnlisted};
pub use outbox::{Outbox, Room};
pub use parts::{SessionOptions, SessionParts, SessionPlaces};
pub use permissions::Attendance;
pub use project::{Contributed, LoadProject, OpenQuestion, ProjectFiles, ReloadReason};
pub use rules::StreamRules;
pub use run::RetryPolicy;
pub use sandbox::ChangeSandbox;
pub use session::{Session, SessionExit};
pub use tools::{MadeTools, MakeTools, ToolChoice, ToolFlags, name_in_entry};
