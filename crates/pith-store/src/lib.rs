//! Session files: an append-only tree of entries, one JSON object per line.
//!
//! Synchronous and free of models, tasks and the agent loop, so that other
//! programs can read and write the same files.

mod append;
mod backing;
mod branch;
mod context;
mod error;
mod export;
mod files;
mod fork;
mod ids;
mod intake;
mod journal;
mod lenient;
mod line;
mod listing;
mod load;
mod lock;
mod message;
mod migrate;
mod navigate;
mod paths;
mod query;
mod reconcile;
mod report;
mod resolve;
mod resume;
mod sketch;
mod store;
mod summary;
mod tally;
mod time;
mod tokens;
mod tree;

pub use append::{BranchSummaryEntry, CompactionEntry};
pub use branch::BranchSettings;
pub use error::{FORMAT_VERSION, StoreError};
pub use fork::ForkMessage;
pub use ids::{EntryId, is_session_id, new_session_id};
pub use journal::SyncTask;
pub use listing::{latest, list, list_all};
pub use load::fuzz_load;
pub use navigate::Destination;
pub use paths::{session_directory, sessions_root};
pub use query::ContextEntry;
pub use report::{ReportKind, StoreReport};
pub use resolve::{FoundSession, Places, find_by_id, find_session};
pub use store::{NewSession, SessionStore};
pub use summary::SessionSummary;
pub use tally::Tally;
pub use tokens::estimate_tokens;
pub use tree::{EntryTree, Header, Kind, Label, Role};
