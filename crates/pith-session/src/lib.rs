//! The live session: sole owner of everything that changes.
//!
//! Knows nothing of stdin, stdout or dialects: lines arrive decoded, frames
//! leave through [`Outbox`], and differences between hosts are plain options.

mod session;

mod activity;
mod compact;
mod compaction;
mod context;
mod dispatch;
mod due;
mod images;
mod intake;
mod models;
mod navigation;
mod outbox;
mod plan;
mod prompt;
mod queue;
mod replace;
mod reply;
mod retry;
mod run;
mod shell;
mod state;
mod summary;
mod system_prompt;
mod tools;
mod waiting;

pub use outbox::{Outbox, Room};
pub use retry::RetryPolicy;
pub use session::{Relocation, Session, SessionOptions, SessionParts, SessionPlaces};
pub use tools::ToolChoice;
