//! What the sessions of one process have in common.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pith_ai::Clients;

use crate::project::TrustDecisions;
use crate::telemetry::Exporter;

/// What the sessions of one process share. Cheap to clone; everything in it is created when first needed.
#[derive(Clone, Default)]
pub struct Shared {
    /// Connections, by the proxy that settings name.
    clients: Arc<Mutex<HashMap<Option<String>, Arc<Clients>>>>,
    /// Which directories are trusted: one question for each, whichever session asks it.
    pub(super) trust_decisions: TrustDecisions,
    pub(super) telemetry: Exporter,
}

impl Shared {
    /// Called at the end of the process, when everything has stopped. Takes a second at most.
    pub fn end(&self) {
        self.telemetry.end();
    }

    /// The connections through a proxy, or without one.
    pub(super) fn clients(&self, proxy: Option<&String>) -> Arc<Clients> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Clients::with_proxy(proxy.cloned()));
        clients.entry(proxy.cloned()).or_insert_with(new).clone()
    }
}
