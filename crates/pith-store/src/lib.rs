//! Session files: an append-only tree of entries, one JSON object per line.
//!
//! Synchronous and free of models, tasks and the agent loop, so that other
//! programs can read and write the same files.

mod append;
mod backing;
mod branch;
mod context;
mod error;
mod files;
mod ids;
mod intake;
mod journal;
mod lenient;
mod line;
mod load;
mod lock;
mod message;
mod migrate;
mod paths;
mod reader;
mod reconcile;
mod report;
mod resume;
mod sketch;
mod store;
mod tally;
mod time;
mod tree;

pub use append::{BranchSummaryEntry, CompactionEntry};
pub use branch::BranchSettings;
pub use error::{FORMAT_VERSION, StoreError};
pub use ids::{EntryId, is_session_id, new_session_id};
pub use journal::SyncTask;
pub use load::fuzz_load;
pub use paths::{session_directory, sessions_root};
pub use reader::{EntryOutline, EntryReader, StoredEntry};
pub use report::{ReportKind, StoreReport};
pub use store::{NewSession, SessionStore};
pub use tally::Tally;
pub use tree::{EntryTree, Header, Kind, Label, Role};
