//! Hosts that no list of a sandbox has, and who decides about them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use pith_agent::BoxFuture;
pub use pith_sandbox::domains::Host;

/// What becomes of a connection to a host that no list has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostVerdict {
    Allowed,
    /// Nothing is known of it.
    NoRule,
    /// Why not: a sentence.
    Refused(String),
}

/// Decides about hosts that no list has.
pub trait HostRules: Send + Sync {
    /// The connection waits for the verdict; dropping the future means that nobody waits any more.
    fn judge(&self, host: &Host, port: u16) -> BoxFuture<'static, HostVerdict>;
}

/// The rules of a session about hosts: none until there is a session. Clones are the same.
#[derive(Clone, Default)]
pub struct SessionHosts(Arc<OnceLock<Arc<dyn HostRules>>>);

impl SessionHosts {
    /// Sets who decides. The first one stays: a sandbox has one session.
    pub fn set(&self, rules: Arc<dyn HostRules>) {
        let _ = self.0.set(rules);
    }

    pub(crate) async fn judge(&self, host: &Host, port: u16) -> HostVerdict {
        match self.0.get() {
            Some(rules) => rules.judge(host, port).await,
            None => HostVerdict::NoRule,
        }
    }
}

impl fmt::Debug for SessionHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionHosts").field("is_set", &self.0.get().is_some()).finish()
    }
}
