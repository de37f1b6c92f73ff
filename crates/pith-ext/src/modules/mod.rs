//! Finds, reads and prepares the modules of extensions.

mod depth;
pub mod embedded;
mod erase;
pub mod package;
pub mod resolve;
pub mod rewrite;
pub mod scope;
pub mod stack;
pub mod transpile;
