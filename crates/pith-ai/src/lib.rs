//! Talking to models: one driver for HTTP, one wire module per API family, and
//! a scripted model that needs neither.
//!
//! Everything here turns an `LlmCall` into a stream of `AssistantEvent`s. It
//! knows nothing of sessions, tools or the RPC protocol.

pub mod assemble;
pub mod client;
pub mod failure;
pub mod fuzz;
pub mod http;
pub mod limits;
pub mod prepare;
pub mod repair;
pub mod schema;
pub mod sse;
#[cfg(test)]
mod testing;
pub mod wire;

pub use client::{ClientOptions, Notice, Providers};
pub use http::{CredentialSource, Credentials, Patience};
