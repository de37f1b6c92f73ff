//! Which servers start when nobody has named them: by themselves, for the work of a session, for a search of the model.

use std::cell::LazyCell;
use std::sync::Arc;

use pith_agent::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::config::{Lifecycle, NeededBy, ServerConfig};
use crate::names::may_name;
use crate::server::{NeedsStart, Server, Wanted};
use crate::servers::Servers;
use crate::state::State;

/// A server whose tools the model searches for and nobody knows yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlistedServer {
    pub name: String,
    /// What it is good for, in a line.
    pub about: Option<String>,
    /// Why its tools are not known.
    pub why: String,
}

impl Servers {
    /// Called when work begins: reads the configuration, if that has not happened, and starts the servers that the first
    /// request needs. Returns what to wait for, if tools are missing. `found` names the tools that searches in this
    /// session have found: those are declared, so their servers are needed, too.
    pub fn begin_work(&self, found: impl FnOnce() -> Vec<String>) -> Option<BoxFuture<'static, ()>> {
        self.load();
        let found = LazyCell::new(found);
        let mut awaited = Vec::new();
        for server in self.all() {
            let is_lazy = server.config.lifecycle == Lifecycle::Lazy;
            match server.needs_start() {
                NeedsStart::No => continue,
                NeedsStart::InBackground => {}
                NeedsStart::ForRequest => awaited.push(server.clone()),
                NeedsStart::ForSearch if found.iter().any(|name| may_name(name, &server.config.name)) => {
                    awaited.push(server.clone());
                }
                NeedsStart::ForSearch if is_lazy => continue,
                NeedsStart::ForSearch => {}
            }
            server.begin_start();
        }
        self.wait_for(awaited)
    }

    /// Called when the model searches for tools: starts the servers whose tools it may find and nobody knows. Returns
    /// what to wait for, if there are any. Old lists are renewed meanwhile; that counts from the next search on.
    pub fn begin_search(&self) -> Option<BoxFuture<'static, ()>> {
        let is_renewed =
            |server: &Arc<Server>| server.config.tools_needed_by() == NeededBy::Search && server.has_old_list();
        self.all().into_iter().filter(is_renewed).for_each(|server| server.begin_start());
        let mut searched = self.searched_servers();
        searched.iter().for_each(|server| server.begin_start());
        searched.retain(|server| !server.is_overdue());
        self.wait_for(searched)
    }

    /// Starts the servers that do not wait to be needed. If there are none, nothing that was read is kept.
    pub fn start_eager(&self) {
        let is_eager = |server: &ServerConfig| server.is_enabled && server.lifecycle != Lifecycle::Lazy;
        if !self.is_loaded() && !self.read_files().1.servers.iter().any(is_eager) {
            return;
        }
        self.load();
        for server in self.all() {
            if server.config.lifecycle != Lifecycle::Lazy && server.needs_start() != NeedsStart::No {
                server.begin_start();
            }
        }
    }

    /// The servers whose tools the model searches for and nobody knows yet.
    pub fn unlisted(&self) -> Vec<UnlistedServer> {
        let unlisted = |server: Arc<Server>| UnlistedServer {
            name: server.config.name.clone(),
            about: server.about().map(str::to_owned),
            why: server.snapshot().error.unwrap_or_else(|| "it has not answered yet".to_owned()),
        };
        self.searched_servers().into_iter().map(unlisted).collect()
    }

    fn searched_servers(&self) -> Vec<Arc<Server>> {
        let is_searched = |server: &Arc<Server>| {
            let snapshot = server.snapshot();
            let is_unknown = snapshot.offer.is_none() && snapshot.state != State::Disabled;
            is_unknown && server.config.tools_needed_by() == NeededBy::Search
        };
        self.all().into_iter().filter(is_searched).collect()
    }

    /// Waits until servers have started or failed, but not for ever.
    fn wait_for(&self, awaited: Vec<Arc<Server>>) -> Option<BoxFuture<'static, ()>> {
        if awaited.is_empty() {
            return None;
        }
        let limit = self.startup_wait();
        Some(Box::pin(async move {
            let mut starting = JoinSet::new();
            for server in &awaited {
                let server = server.clone();
                starting.spawn(async move { server.connect(Wanted::Used).await.map(drop) });
            }
            let started = timeout(limit, async { while starting.join_next().await.is_some() {} }).await;
            if started.is_err() {
                awaited.iter().for_each(|server| server.note_overdue());
            }
        }))
    }
}
