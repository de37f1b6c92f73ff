//! The binary as a host sees it: JSON lines in, JSON lines out, a scripted
//! model behind it. One module per topic of `docs/protocol.md`.

mod abort;
mod acknowledged;
mod bash;
mod compaction;
mod compaction_auto;
mod examples;
mod export;
mod framing;
mod host_tools;
mod lifecycle;
mod log;
mod many;
mod models;
mod no_threads;
mod prompt;
mod queue;
mod resources;
mod sessions;
mod sessions_faults;
mod sessions_flags;
mod sessions_peer;
mod sessions_replace;
mod sessions_tree;
mod streaming;
mod support;
mod third_party;
mod tls;
mod todos;
mod tools;
mod transcripts;
mod ttsr;
