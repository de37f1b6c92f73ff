//! Talking to models: which exist, who may use them, and how they are spoken to.
//!
//! Knows nothing of sessions, tools or the RPC protocol.

pub mod agent_dir;
pub mod auth_file;
pub mod catalogue;
pub mod command;
pub mod diagnostic;
pub mod discovery;
pub mod document;
pub mod environment;
pub mod locked_file;
pub mod models_file;
pub mod registry;
pub mod secrets;
pub mod select;
pub mod settings;
pub mod values;
