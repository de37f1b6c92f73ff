//! The binary with extensions, as a host sees it: sources written by the test,
//! a scripted model, and nothing but JSON lines in between.

mod cli;
mod session;
#[path = "../rpc/support.rs"]
#[allow(dead_code, reason = "shared with the tests without extensions")]
mod support;
