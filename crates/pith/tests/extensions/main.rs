//! The binary with extensions, as a host sees it: sources written by the test, a scripted model, and only JSON lines in
//! between.

mod bad_input;
mod bad_tools;
mod chat;
mod cli;
mod dialogs;
mod examples;
mod left_open;
mod models;
mod published;
mod run;
mod sdk;
mod services;
mod session;
mod stage;
mod state;
mod state_messages;
mod state_queue;
#[path = "../rpc/support.rs"]
#[allow(dead_code, reason = "shared with the tests without extensions")]
mod support;
mod third_party;
