//! Checkpoints from outside: a project, sessions that change it, and what comes back.

#![allow(clippy::unwrap_used, reason = "whatever fails here fails the test")]

mod bench;
mod histories;
mod kills;
mod limits;
mod restores;
