//! A client for hosts of pith. What follows is its README.
#![doc = include_str!("../README.md")]

mod builder;
mod connection;
mod error;
mod events;
mod handlers;
mod host;
mod pith;
mod process;

pub use builder::Builder;
pub use error::{CommandFailed, Error, Exited};
pub use events::{Events, Told};
pub use host::{HostTool, ToolContext, ToolOutput};
pub use pith::{Pith, Run};

/// The types of the wire.
pub use pith_protocol as protocol;
