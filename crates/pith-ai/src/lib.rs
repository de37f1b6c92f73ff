//! Talking to models: which exist, who may use them, and how they are spoken to.
//!
//! Everything here leads from settings and keys to a stream of
//! `AssistantEvent`s. It knows nothing of sessions, tools or the RPC protocol.

// which models exist, and who may use them
pub mod auth_file;
pub mod catalogue;
pub mod command;
pub mod discovery;
pub mod models_file;
pub mod network;
pub mod registry;
pub mod secrets;
pub mod select;
pub mod values;

// how they are spoken to
pub mod assemble;
pub mod client;
pub mod failure;
pub mod fuzz;
mod hooks;
pub mod http;
pub mod limits;
pub mod prepare;
pub mod repair;
pub mod schema;
pub mod scripted;
pub mod sse;
#[cfg(test)]
mod testing;
pub mod wire;

pub use client::{ClientOptions, Notice, Providers};
pub use http::{CredentialSource, Credentials, Patience, Tape};
pub use scripted::Scripts;
