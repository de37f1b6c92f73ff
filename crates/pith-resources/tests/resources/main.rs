//! Resources as a user lays them out, in directories of their own.

// Helpers are not test functions, but they are nothing else.
#![allow(clippy::unwrap_used)]

mod commands;
mod context_files;
mod expansion;
mod prompt_files;
mod reload;
mod skill_discovery;
mod skill_files;
mod speed;
mod system_prompt;
mod templates;
mod trust;
mod world;
