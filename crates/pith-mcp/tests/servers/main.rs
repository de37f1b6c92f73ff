//! Servers of a session against servers made for tests.

mod bench;
mod http;
mod prompts;
mod questions;
mod sampling;
mod sign_in;
mod stdio;
