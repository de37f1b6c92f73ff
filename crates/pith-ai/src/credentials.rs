//! The credentials of a model call, and who looks them up.

use std::fmt;

use futures_util::future::BoxFuture;
use pith_protocol::Model;

/// The credentials of a call. Values are secrets: they never enter a message.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    pub api_key: Option<String>,
    /// Send the key as `Authorization: Bearer`, also where the API has a header of its own.
    pub bearer: bool,
    /// Configured headers, which win over ours; no value suppresses one.
    pub headers: Vec<(String, Option<String>)>,
    /// Send `Authorization: Bearer` besides the API's own header.
    pub auth_header: bool,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values stay out of logs; names are enough to see what was sent.
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Credentials")
            .field("has_key", &self.api_key.is_some())
            .field("bearer", &self.bearer)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// Finds the credentials of a model, perhaps by running a command.
pub trait CredentialSource: Send + Sync {
    /// Returns the credentials for one call, or why there are none. No key is not an error here: the source knows which
    /// servers want none.
    fn credentials<'a>(&'a self, model: &'a Model) -> BoxFuture<'a, Result<Credentials, String>>;

    /// Returns the place in the configuration that has the address of a model, for people who have to change it.
    fn base_url_location(&self, _model: &Model) -> Option<String> {
        None
    }

    /// Called when a server has said how large the context window of a model is.
    fn on_window(&self, _model: &Model, _window: u64) {}
}
