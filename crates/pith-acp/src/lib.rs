//! The words of the Agent Client Protocol: what editors send becomes commands of pith, what pith tells becomes updates.
//!
//! Everything here is a function of its arguments: no tasks, no files, no sessions. The shapes on the wire are those of
//! the official crate, re-exported as [`acp`].

pub use agent_client_protocol_schema::v1 as acp;

// Frames and parameters.
pub mod error;
pub mod params;
pub mod wire;

// Who the client is, and what it is told of pith.
pub mod client;
pub mod options;

// From the editor to the model.
pub mod prompt;
mod uri;

// From the session to the editor.
mod call;
mod compaction;
pub mod dialog;
mod diff;
mod live_call;
pub mod looks;
mod notices;
pub mod outcome;
pub mod permission;
pub mod piece;
pub mod place;
mod plan;
pub mod replay;
mod terminal;
mod time;
pub mod underway;
pub mod updates;

pub use client::Client;
pub use plan::plan;
pub use time::iso;
