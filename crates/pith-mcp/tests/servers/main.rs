//! Servers of a session against servers made for tests.

mod bench;
mod http;
mod http_server;
mod lives;
mod prompts;
mod questions;
mod sampling;
mod sharing;
mod sign_in;
mod starts;
mod stdio;
