//! The live session: sole owner of everything that changes.
//!
//! Knows nothing of stdin, stdout or dialects: lines arrive decoded, frames
//! leave through [`Outbox`], and differences between hosts are plain options.

// The loop, what can happen in it, and what it answers.
mod dispatch;
mod outbox;
mod parts;
mod reply;
mod session;
mod state;

// What it does, one thing at a time.
mod activity;
mod admission;
mod compaction;
mod jobs;
mod navigation;
mod replace;
mod run;

// What it works with.
mod export;
mod integrations;
mod models;
mod project;
mod rules;
mod todos;
mod tools;

mod extensions;

pub use extensions::{
    ExtensionSetup, FindExtensions, LoadingExtensions, RunningExtensions, answer_from_registry, model_auth,
    register_provider, serve_fetch,
};
pub use outbox::{Outbox, Room};
pub use parts::{SessionOptions, SessionParts, SessionPlaces};
pub use project::{Contributed, LoadProject, ProjectFiles, ReloadReason};
pub use rules::StreamRules;
pub use run::RetryPolicy;
pub use session::{Session, SessionExit};
pub use tools::{MakeTools, ToolChoice};
