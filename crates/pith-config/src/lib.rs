//! Configuration: where it lives, how it is read, checked and written.
//!
//! Synchronous and free of sessions, models and tasks. What a setting means is decided by the crate that acts on it.

// Where configuration lives.
mod agent_dir;
mod environment;
mod paths;

// What it says.
mod diagnostic;
mod near;
mod project_trust;
pub mod settings;

// The files it is read from and written to.
mod atomic_file;
pub mod document;
mod file_lock;
pub mod locked_file;

pub use agent_dir::{AgentDir, Layout};
pub use atomic_file::{
    TemporaryFile, create_private_directory, is_gone, make_private, remove_if_stale, remove_stale_in, replace,
    sync_directory,
};
pub use diagnostic::{Collision, Diagnostic, DiagnosticKind, optional_path_text, path_text};
pub use environment::Environment;
pub use file_lock::FileLock;
pub use near::{near, suggestion};
pub use paths::{expand_home, normalize, resolve};
pub use project_trust::ProjectTrust;
pub use settings::Settings;
