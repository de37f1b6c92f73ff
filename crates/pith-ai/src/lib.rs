//! Talking to models: which exist, who may use them, and how they are spoken to.
//!
//! Knows nothing of sessions, tools or the RPC protocol.

pub mod agent_dir;
pub mod catalogue;
pub mod diagnostic;
pub mod document;
pub mod environment;
pub mod settings;
