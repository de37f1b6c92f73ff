//! The binary as a host sees it: JSON lines in, JSON lines out, a scripted
//! model behind it. One module per topic of `docs/protocol.md`.

mod abort;
mod bash;
mod examples;
mod framing;
mod host_tools;
mod lifecycle;
mod models;
mod prompt;
mod queue;
mod resources;
mod sessions;
mod streaming;
mod support;
mod todos;
mod tools;
mod transcripts;
mod ttsr;
