//! The live session: sole owner of everything that changes.
//!
//! Knows nothing of stdin, stdout or dialects: lines arrive decoded, frames
//! leave through [`Outbox`], and differences between hosts are plain options.

mod session;

mod activity;
mod context;
mod dispatch;
mod images;
mod intake;
mod library;
mod models;
mod outbox;
mod prompt;
mod queue;
mod reply;
mod retry;
mod run;
mod shell;
mod state;
mod tools;
mod waiting;

pub use library::{Brought, ReadAgain};
pub use outbox::{Outbox, Room};
pub use retry::RetryPolicy;
pub use session::{NewStore, Session, SessionOptions, SessionParts};
pub use tools::ToolChoice;
