//! Whether a server has to start although nobody has named it.

use std::sync::Arc;

use super::{Server, Wanted};
use crate::config::{Lifecycle, NeededBy};
use crate::state::State;

/// Whether the beginning of work starts a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedsStart {
    No,
    /// Nobody waits for it.
    InBackground,
    /// The model may have to be told of its tools, which are not known.
    ForRequest,
    /// The model searches for its tools, which are not known.
    ForSearch,
}

impl Server {
    /// Whether it has to run before its tools are known, or their list should be renewed.
    pub fn needs_start(&self) -> NeedsStart {
        let inner = self.inner();
        let is_unknown = inner.offer.is_none();
        match (inner.state, self.config.tools_needed_by()) {
            (State::Disabled | State::Ready, _) => NeedsStart::No,
            // Somebody else has started it. Work that begins meanwhile waits for it, unless that was in vain before.
            (State::Starting, _) if inner.is_overdue => NeedsStart::No,
            (_, NeededBy::Request) if is_unknown => NeedsStart::ForRequest,
            (_, NeededBy::Search) if is_unknown => NeedsStart::ForSearch,
            (State::Starting, _) => NeedsStart::No,
            (_, NeededBy::Request) if inner.is_offer_old => NeedsStart::InBackground,
            _ if self.config.lifecycle != Lifecycle::Lazy => NeedsStart::InBackground,
            _ => NeedsStart::No,
        }
    }

    /// Starts the server unless it runs, has just failed, or is switched off. It keeps what comes of it.
    pub fn begin_start(self: &Arc<Self>) {
        let _ = self.step(Wanted::Used, false);
    }

    /// Whether its list should be renewed before the model searches it again.
    pub fn has_old_list(&self) -> bool {
        let inner = self.inner();
        inner.state == State::Idle && inner.is_offer_old
    }

    /// Notes that somebody has waited for the start of the server as long as one may.
    pub fn note_overdue(&self) {
        let mut inner = self.inner();
        inner.is_overdue = inner.state == State::Starting;
    }

    /// Whether its start has kept somebody waiting in vain.
    pub fn is_overdue(&self) -> bool {
        self.inner().is_overdue
    }
}
