//! The built-in tools: what the model can do to the machine.
//!
//! Knows nothing of sessions and models. A [`Workbench`] holds where and with which options the tools work;
//! [`builtin_tools`] makes them.

pub mod workbench;

pub mod bash;
pub mod edit;
pub mod read;
pub mod search;
pub mod write;

pub mod hosts;
pub mod image;
pub mod process;
pub mod sandbox;
pub mod shell;
pub mod truncate;

mod arguments;
mod bridge;
mod builtin;
mod checkpoints;
mod command;
mod confine;
mod denied;
mod files;
mod mutation;
mod os_error;
mod paths;
mod proxy;
mod replace;
mod seen;
mod terminal;
mod tool;

pub use bridge::{Bridge, Lines};
pub use builtin::{BUILTINS, Builtin, builtin_tool, builtin_tools};
pub use command::limits::CommandLimits;
pub use confine::{Confinement, real_path};
pub use denied::Denied;
pub use files::Contents;
pub use mutation::MutationQueue;
pub use paths::Base;
pub use terminal::{InTerminal, TerminalCommand, TerminalEnd, TerminalFailure};
pub use workbench::{CallOptions, Workbench, WorkbenchOptions};
