//! What extensions have to say about servers.

use std::path::PathBuf;

use serde_json::Value;

/// The servers of extensions, and whether one of them does without pith's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registered {
    pub servers: Vec<RegisteredServer>,
    /// Whether an extension brings a client of its own, which reads the files itself: only the host's servers are left
    /// to pith, because nobody else is told of them.
    pub has_client: bool,
}

/// A server that an extension has registered.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisteredServer {
    pub name: String,
    /// As in a file.
    pub entry: Value,
    /// The file of the extension.
    pub extension: PathBuf,
}
