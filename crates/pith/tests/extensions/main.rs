//! The binary with extensions, as a host sees it.

mod models;
mod services;
#[path = "../rpc/support.rs"]
#[allow(dead_code, reason = "shared with the tests without extensions")]
mod support;
