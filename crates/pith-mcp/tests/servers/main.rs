//! Servers of a session against servers made for tests.

mod bench;
mod http;
mod prompts;
mod questions;
mod sampling;
mod sharing;
mod sign_in;
mod stdio;
