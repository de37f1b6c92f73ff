//! Talking to models: which exist, who may use them, and how they are spoken to.
//!
//! Everything here leads from configuration and keys to a stream of
//! `AssistantEvent`s. It knows nothing of sessions, tools or the RPC protocol.

// Which models exist.
mod catalogue;
mod discovery;
mod models_file;
mod registry;
pub mod select;

// Who may use them.
mod auth_file;
mod config_value;
mod credentials;
mod key_command;

// How they are spoken to: from a call to a request body, over HTTP, back to events.
mod assemble;
mod client;
mod explain;
mod failure;
mod hooks;
mod http;
mod limits;
mod network;
mod prepare;
mod repair;
mod schema;
mod sse;
mod wire;

// Models that are no servers, and tests.
#[doc(hidden)]
pub mod fuzz;
pub mod scripted;
#[cfg(test)]
mod testing;

pub use assemble::MessageBuilder;
pub use auth_file::Stored;
pub use client::{ClientOptions, Notice, Providers};
pub use credentials::{CredentialSource, Credentials};
pub use explain::{cause, explain};
pub use failure::{Fault, failure, is_overflow, is_retryable};
pub use http::{Clients, Redirect, Tape, Timeouts, Web, WebRequest, WebResponse};
pub use limits::{message_tokens, safety_tokens};
pub use models_file::{ModelConfig, ModelFields, ProviderConfig};
pub use prepare::{as_model_sees, bash_text};
pub use registry::{
    Answers, AuthStatus, Logins, NO_KEY, NO_MODEL, Registry, Service, Visibility, key_variable, model_catalogue,
    model_table,
};
pub use scripted::Scripts;
pub use sse::{SseDecoder, SseEvent};
