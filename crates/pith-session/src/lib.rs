//! The live session: sole owner of everything that changes.
//!
//! Knows nothing of stdin, stdout or dialects: lines arrive decoded, frames
//! leave through [`Outbox`], and differences between hosts are plain options.

mod session;

mod acceptance;
mod activity;
mod compact;
mod compaction;
mod context;
mod dispatch;
mod due;
mod export;
mod extensions;
mod host_tools;
mod images;
mod intake;
mod integrations;
mod library;
mod locale;
mod models;
mod navigation;
mod outbox;
mod pending;
mod plan;
mod prompt;
mod queue;
mod replace;
mod reply;
mod retry;
mod run;
mod run_link;
mod shell;
mod state;
mod summary;
mod todos;
mod tool_link;
mod tools;
mod trust;
mod ttsr;
mod waiting;

pub use extensions::{
    ExtensionSetup, FindExtensions, LoadingExtensions, RunningExtensions, register_provider, serve_fetch,
};
pub use library::{Brought, Contributed, ReadAgain, Reading};
pub use outbox::{Outbox, Room};
pub use retry::RetryPolicy;
pub use session::{Relocation, Served, Session, SessionOptions, SessionParts, SessionPlaces};
pub use tools::ToolChoice;
pub use ttsr::StreamRules;
