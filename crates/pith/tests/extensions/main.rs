//! The binary with extensions, as a host sees it: sources written by the test,
//! a scripted model, and nothing but JSON lines in between.

mod chat;
mod cli;
mod examples;
mod models;
mod run;
mod services;
mod session;
mod state;
mod state_messages;
mod state_queue;
#[path = "../rpc/support.rs"]
#[allow(dead_code, reason = "shared with the tests without extensions")]
mod support;
