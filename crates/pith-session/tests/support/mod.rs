//! A session, its host and its model in one process, for tests; see `docs/testing.md`.
//!
//! Only `session.rs` knows how a session is assembled; the rest needs an inbox, the frames and a task to watch.
#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod harness;

mod builder;
mod clock;
mod extensions;
mod frames;
mod model;
mod no_servers;
mod session;
mod tools;

pub use builder::Builder;
pub use frames::{Frames, describe, is_like};
pub use harness::{Harness, Surroundings};
pub use model::{Script, Turn, is_summary};
pub use session::{MODELS, Opened, PROVIDER, RetryPolicy};
