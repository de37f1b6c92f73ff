//! `acp`: what editors do for pith.

use serde::Deserialize;

/// What editors do for pith.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Acp {
    /// Whether files are read and written through the buffers of an editor that offers it.
    pub client_fs: bool,
    /// Whether commands of the model run in terminals of an editor that offers them.
    pub client_terminal: bool,
}

impl Default for Acp {
    fn default() -> Self {
        Acp { client_fs: true, client_terminal: false }
    }
}
