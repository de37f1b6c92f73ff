//! The binary with extensions, as a host sees it: sources written by the test,
//! a scripted model, and nothing but JSON lines in between.

mod bad_input;
mod bad_tools;
mod cli;
mod dialogs;
mod examples;
mod session;
mod stage;
#[path = "../rpc/support.rs"]
#[allow(dead_code, reason = "shared with the tests without extensions")]
mod support;
mod third_party;
