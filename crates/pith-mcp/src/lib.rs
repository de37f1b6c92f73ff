//! MCP servers: who configured them, when they run, what they offer and how they are called.
//!
//! Knows nothing of sessions, stdout or dialects. The protocol itself is rmcp's.

// All servers, one of them, and its tools.
mod server;
mod servers;
mod shown;
mod sign_ins;
mod starts;
mod state;
mod texts;
mod tool;

// What users configure.
pub mod config;

// A running server.
mod answers;
mod callers;
mod calls;
mod changes;
mod connection;
mod environment;
mod frames;
mod handler;
mod handshake;
mod http;
mod inputs;
mod introduction;
mod launch;
mod oauth;
mod pool;
mod program;
mod questions;
mod remarks;
mod sampling;
mod stdio;
mod value_command;

// What servers offer and answer.
mod cache;
mod digest;
mod names;
mod offer;
mod prompts;
mod query;
mod resources;
mod result;
mod schema;

pub use calls::CallError;
pub use connection::Connection;
#[doc(hidden)]
pub use frames::answer_to_line;
pub use oauth::{DeviceCode, Means};
pub use offer::Offer;
pub use pool::Pool;
pub use questions::User;
pub use rmcp::model::ProgressNotificationParam as Progress;
pub use sampling::{Sample, SampleRequest};
pub use server::{Server, Snapshot, Wanted};
pub use servers::{Options, Servers};
pub use sign_ins::PendingSignIn;
pub use starts::UnlistedServer;
pub use state::{Failure, State};
pub use texts::{Expanded, PromptCommand};
