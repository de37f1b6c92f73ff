//! Checkpoints: what files were before a tool call, and how they get back there.
//!
//! A [`Store`] keeps contents by their digest and a log of checkpoints, for all sessions of one project. A [`Recorder`]
//! fills it while tools run: [`tree`] finds what a command has changed. [`undo`] decides what goes back, [`restore`] puts
//! it there. Nothing is read, created or started before the first call that changes files.

pub mod state;

mod capture;
mod directory;
mod log;
mod objects;
pub mod recorder;
pub mod restore;
mod show;
pub mod store;
pub mod tree;
pub mod undo;
mod usage;
mod work;

pub use log::{Checkpoint, Covered};
pub use recorder::{CallInfo, Patience, Recorder, StorePlace};
pub use state::State;
pub use store::{Bounds, Mode, Store};
pub use usage::disk_usage;
