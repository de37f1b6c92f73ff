//! Attempts to get out of the sandbox. Each one runs without it, where it must have its effect (or it would prove
//! nothing), and with it, where the effect must stay away; as a normal user, and as root if the suite may.
//!
//! `cargo test --test escape -- --nocapture` prints a line for each. `PITH_TEST_SANDBOX=require` makes it a failure that
//! this kernel has no sandbox.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail anywhere, and prints a table")]

mod ground;
#[path = "../others/mod.rs"]
mod rows;

mod files;
mod kernel;
mod network;
mod others;
mod policies;
mod processes;
mod protected;
mod worker;
