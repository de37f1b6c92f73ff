//! Session files: an append-only tree of entries, one JSON object per line.
//!
//! Synchronous and free of models, tasks and the agent loop, so that other
//! programs can read and write the same files.

// An open session and what can be done with it.
mod append;
mod fork;
mod inputs;
mod navigate;
mod spent;
mod store;
mod write_access;

// Its entries, and the conversation they make.
mod branch;
mod context;
mod message;
mod query;
mod reader;
mod tally;
mod tree;

// The file on disk.
mod backing;
mod claim;
mod files;
mod intake;
mod journal;
mod load;
mod lock;
mod migrate;
mod position;
mod reconcile;
mod resume;

// Many sessions.
mod listing;
mod remove;
mod resolve;
mod summary;

// Lines, names and words.
mod error;
mod fuzz;
mod ids;
mod lenient;
mod line;
mod paths;
mod report;
mod sketch;
mod time;

pub use append::{BranchSummaryEntry, CompactionEntry};
pub use branch::BranchSettings;
pub use error::{FORMAT_VERSION, StoreError};
pub use files::remove_stale_replacements;
pub use fork::ForkMessage;
pub use fuzz::fuzz_load;
pub use ids::{EntryId, is_session_id, new_session_id};
pub use inputs::{InputId, InputKind, OrphanedInput};
pub use journal::SyncTask;
pub use listing::{latest, list, list_all};
pub use message::with_content;
pub use navigate::Destination;
pub use paths::{session_directory, sessions_root};
pub use query::ContextEntry;
pub use reader::{EntryOutline, EntryReader, StoredBranch, StoredEntry};
pub use remove::remove;
pub use report::{ReportKind, StoreReport};
pub use resolve::{FoundSession, LocatedSession, Places, find_anywhere, find_by_id, find_session, find_unreadable};
pub use spent::{Spent, SpentSince};
pub use store::{NewSession, SessionStore};
pub use summary::SessionSummary;
pub use tally::Tally;
pub use tree::{EntryTree, Header, Kind, Label, Role};
