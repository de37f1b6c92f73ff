//! What the sessions of one process have in common.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pith_ai::{ClientOptions, Clients, Notice, Registry};
use pith_config::Settings;
use pith_tools::MutationQueue;

use crate::project::TrustDecisions;
use crate::telemetry::Exporter;
use crate::warn;

/// What the sessions of one process share. Cheap to clone; everything in it is created when first needed.
#[derive(Clone, Default)]
pub struct Shared {
    /// Connections, by the proxy that settings name.
    clients: Arc<Mutex<HashMap<Option<String>, Arc<Clients>>>>,
    /// Which directories are trusted: one question for each, whichever session asks it.
    pub(super) trust_decisions: TrustDecisions,
    pub(super) telemetry: Exporter,
    /// Keeps sessions that change the same file from undoing each other's changes.
    pub(super) mutations: Arc<MutationQueue>,
    /// Programs of MCP servers, where settings let sessions share them.
    pub(super) mcp: pith_mcp::Pool,
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

/// How models are reached, and who is told when that is odd.
pub(super) fn client_options(settings: &Settings, registry: &Registry) -> ClientOptions {
    let notice: Arc<dyn Fn(Notice) + Send + Sync> = Arc::new(|notice| warn(&format!("pith: {notice}")));
    ClientOptions { notice: Some(notice), secrets: registry.secrets(), ..ClientOptions::from(settings) }
}
