//! The namespaces that the commands of a policy run in, and the proxy that leads out of them: made with the first
//! command, shared by all.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use pith_sandbox::domains::Domains;
use pith_sandbox::namespaces::{Placeholders, Plan, View};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::keeper::Keeper;
use super::supervisor::Supervisor;
use crate::hosts::SessionHosts;
use crate::proxy::{Proxy, RefusedHost};

/// How long placeholders stay for the next command. Making them, mounting on them and removing them takes longer than
/// everything else that confines a command, and one command seldom comes alone.
const PLACEHOLDERS_KEPT: Duration = Duration::from_secs(1);

/// Makes the namespaces of a policy when they are needed.
#[derive(Debug)]
pub(crate) struct Namespaces {
    supervisor: Supervisor,
    plan: Arc<Plan>,
    /// Whom the proxy connects to.
    domains: Domains,
    /// Decides about other hosts.
    hosts: SessionHosts,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    kept: Option<Arc<Kept>>,
    /// How many commands may still have processes.
    n_commands: usize,
    /// There while commands run, and a moment longer.
    placeholders: Placeholders,
    /// Waits for that moment to be over; there is one while no command runs.
    removal: Option<Removal>,
}

/// A task that removes placeholders; dropped, it does not.
#[derive(Debug)]
struct Removal(AbortHandle);

impl Drop for Removal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Namespaces that exist.
#[derive(Debug)]
struct Kept {
    keeper: Keeper,
    /// There if the network is that of a list.
    proxy: Option<Proxy>,
    /// Which files the writable paths were when they were mounted.
    roots: Vec<Option<(u64, u64)>>,
    /// What is seen of homes in them.
    view: Arc<View>,
}

/// The namespaces as one command has them: they are there, and so are placeholders, until the last clone is dropped.
#[derive(Clone, Debug)]
pub struct CommandNamespaces(Arc<Joined>);

#[derive(Debug)]
struct Joined {
    kept: Arc<Kept>,
    /// How many hosts the proxy had refused before the command began.
    n_refused: usize,
    plan: Arc<Plan>,
    state: Arc<Mutex<State>>,
    /// Where placeholders are waited for; a command may be dropped on another thread.
    runtime: Handle,
}

impl Namespaces {
    pub fn new(supervisor: Supervisor, plan: Plan, domains: Domains, hosts: SessionHosts) -> Namespaces {
        Namespaces { supervisor, plan: Arc::new(plan), domains, hosts, state: Arc::default() }
    }

    /// Called before a command is started. The error says why it must not run. Needs a tokio runtime.
    pub fn for_command(&self, view: &Arc<View>) -> Result<CommandNamespaces, String> {
        let mut state = lock(&self.state);
        state.removal = None;
        let kept = self.prepare(&mut state, view);
        if kept.is_err() {
            state.clear_if_unused();
        }
        let kept = kept?;
        state.n_commands += 1;
        let n_refused = kept.proxy.as_ref().map_or(0, Proxy::n_refused);
        let (plan, state) = (Arc::clone(&self.plan), Arc::clone(&self.state));
        let runtime = Handle::current();
        Ok(CommandNamespaces(Arc::new(Joined { kept, n_refused, plan, state, runtime })))
    }

    fn prepare(&self, state: &mut State, view: &Arc<View>) -> Result<Arc<Kept>, String> {
        let kept = self.kept(state, view)?;
        let missing = Placeholders::missing(&self.plan);
        // Told before they are made: should pith be killed at this moment, they do not stay.
        kept.keeper.tell(&missing).map_err(|error| format!("the keeper: {error}"))?;
        state.placeholders.make(missing).map_err(|error| error.to_string())?;
        Ok(kept)
    }

    /// Returns what there is, or makes it anew if the keeper has ended or writable paths are other files by now, or homes are to be seen in
    /// another way.
    fn kept(&self, state: &mut State, view: &Arc<View>) -> Result<Arc<Kept>, String> {
        let roots = self.plan.roots();
        // What an old view does not show is closed, and those who run in it may be waited for at its loopback device.
        let is_used = state.n_commands > 0;
        let is_current =
            |kept: &&Arc<Kept>| kept.keeper.is_alive() && kept.roots == roots && (is_used || kept.view == *view);
        if let Some(kept) = state.kept.as_ref().filter(is_current) {
            return Ok(Arc::clone(kept));
        }
        let (keeper, listener) = Keeper::start(&self.supervisor, &self.plan, view)?;
        let start = |listener| Proxy::start(listener, self.domains.clone(), self.hosts.clone());
        let proxy = listener.map(start).transpose();
        let proxy = proxy.map_err(|error| format!("the proxy: {error}"))?;
        let kept = Arc::new(Kept { keeper, proxy, roots, view: Arc::clone(view) });
        state.kept = Some(Arc::clone(&kept));
        Ok(kept)
    }
}

impl CommandNamespaces {
    pub(super) fn keeper(&self) -> BorrowedFd<'_> {
        self.0.kept.keeper.process()
    }

    /// Returns the hosts that commands were refused since this one began, in order. Nobody knows which of several
    /// commands asked for one.
    pub fn refused_hosts(&self) -> Vec<RefusedHost> {
        let Joined { kept, n_refused, .. } = &*self.0;
        kept.proxy.as_ref().map(|proxy| proxy.refused_since(*n_refused)).unwrap_or_default()
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.0.plan
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.n_commands -= 1;
        if state.n_commands == 0 && !state.placeholders.is_empty() {
            let removal = self.runtime.spawn(remove_placeholders(Arc::downgrade(&self.state)));
            state.removal = Some(Removal(removal.abort_handle()));
        }
    }
}

async fn remove_placeholders(state: Weak<Mutex<State>>) {
    tokio::time::sleep(PLACEHOLDERS_KEPT).await;
    if let Some(state) = state.upgrade() {
        lock(&state).clear_if_unused();
    }
}

impl State {
    /// Removes the placeholders if no command needs them.
    fn clear_if_unused(&mut self) {
        if self.n_commands == 0 {
            self.placeholders = Placeholders::default();
        }
    }
}

/// Makes namespaces and gives them up again, to see whether this system allows them. The error says why not.
pub fn probe_namespaces(supervisor: &Supervisor) -> Result<(), String> {
    Keeper::start(supervisor, &Plan::probe(), &View::default()).map(drop)
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
