//! Permissions: which tool calls run, which the user is asked about, which are refused.
//!
//! Rules are read when the first request, or a command of the host, needs them. The gate judges calls in the run's task;
//! a call that does not simply run comes here and waits until it is settled.

mod commands;
mod held;
mod hosts;
mod own;
mod question;
mod questions;

use std::sync::Arc;
use std::time::Duration;

use pith_permissions::{Bases, LoadedPolicy, Mode, Policy, Rule, Sources};
use tokio::sync::mpsc;

use crate::log::log_line;
use crate::session::Session;
pub(crate) use held::{FromGate, HeldCall, Judge, ServerTool, Subject, decided_by};
use hosts::AnsweredHosts;
pub(crate) use hosts::HostQuestions;
use own::{OWN_RULES, OwnRules};
use questions::Questions;

/// How long a question waits for a host that has not said that it shows dialogs: it may ignore them.
const UNSURE_LIMIT: Duration = Duration::from_secs(300);

/// Who can be asked whether a call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attendance {
    /// Nobody is there.
    Nobody,
    /// A host that may ignore dialogs.
    Unsure,
    /// Somebody who sees dialogs.
    Present,
}

/// The rules of a session, and the calls that wait for somebody.
pub(crate) struct Permissions {
    /// Where rules are read. Directory and trust are those of the moment.
    sources: Sources,
    /// `None` until something needs them.
    rules: Option<Rules>,
    /// The mode that the host has set since the session was opened.
    chosen_mode: Option<Mode>,
    /// Whether the host takes questions as `permission_request`.
    pub takes_frames: bool,
    questions: Questions,
    answered_hosts: AnsweredHosts,
    /// Cloned into the gate of each answer.
    to_session: mpsc::UnboundedSender<FromGate>,
    /// From those gates; open as long as the session.
    from_gate: mpsc::UnboundedReceiver<FromGate>,
}

/// The rules, as read at one moment, and as they apply.
struct Rules {
    read: LoadedPolicy,
    own: OwnRules,
    /// All of them together.
    policy: Arc<Policy>,
}

impl Permissions {
    /// Reads nothing.
    pub fn new(sources: Sources) -> Self {
        let (to_session, from_gate) = mpsc::unbounded_channel();
        Permissions {
            sources,
            rules: None,
            chosen_mode: None,
            takes_frames: false,
            questions: Questions::default(),
            answered_hosts: AnsweredHosts::default(),
            to_session,
            from_gate,
        }
    }

    /// Waits for the next message of a gate. Cancel safe.
    pub async fn next(&mut self) -> Option<FromGate> {
        self.from_gate.recv().await
    }

    pub fn to_session(&self) -> mpsc::UnboundedSender<FromGate> {
        self.to_session.clone()
    }

    /// Whether a call waits for an answer.
    pub fn is_waiting(&self) -> bool {
        self.questions.is_waiting()
    }

    /// Reads the rules again when they are next needed.
    pub fn reread(&mut self) {
        self.rules = None;
    }

    /// Called when another session takes the place of this one.
    pub fn forget(&mut self) {
        self.rules = None;
        self.chosen_mode = None;
    }

    /// Where the paths of rules start that stand in no file.
    fn bases(&self) -> Bases {
        self.sources.bases(&self.sources.cwd)
    }

    /// Puts the rules together again after one of their parts has changed.
    fn compose(&mut self) {
        let bases = self.bases();
        let Some(rules) = &mut self.rules else { return };
        let mut policy = rules.read.policy.clone();
        rules.own.add_to(&mut policy, &bases);
        let flags = &self.sources.flags;
        let recorded = rules.own.mode.filter(|_| flags.mode.is_none() || flags.mode_is_default);
        if let Some(mode) = self.chosen_mode.or(recorded) {
            policy.mode = mode;
        }
        rules.policy = Arc::new(policy);
    }
}

impl Session {
    /// The rules that apply now. The first to ask has them read.
    fn rules(&mut self) -> &mut Rules {
        if self.permissions.rules.is_none() {
            self.read_rules();
        }
        self.permissions.rules.as_mut().expect("they were just read")
    }

    fn read_rules(&mut self) {
        let decides_hosts = self.decides_hosts();
        let permissions = &mut self.permissions;
        permissions.sources.cwd = self.store.cwd().to_owned();
        permissions.sources.is_trusted = self.project.is_trusted;
        let read = permissions.sources.load();
        let unenforced = if decides_hosts { Vec::new() } else { read.unenforced() };
        let found = read.diagnostics.iter().chain(&unenforced);
        found.for_each(|found| log_line(&format!("Warning: {}", found.message)));
        let own = OwnRules::last_in(self.store.tree());
        permissions.rules = Some(Rules { read, own, policy: Arc::default() });
        permissions.compose();
    }

    /// What calls are judged by.
    pub(crate) fn judge(&mut self) -> Judge {
        let policy = self.rules().policy.clone();
        Judge { policy, workbench: self.workbench().clone() }
    }

    /// What is wrong with the rules, and which of them hold nothing back.
    pub(crate) fn permission_findings(&mut self) -> Vec<pith_config::Diagnostic> {
        let decides_hosts = self.decides_hosts();
        let read = &self.rules().read;
        let mut found = read.diagnostics.clone();
        if !decides_hosts {
            found.extend(read.unenforced());
        }
        found
    }

    /// Whether pith decides which hosts commands reach.
    fn decides_hosts(&self) -> bool {
        self.workbench().sandbox.as_ref().is_some_and(|sandbox| sandbox.decides_hosts())
    }

    /// Changes what this session has added, records it in the session file and applies it.
    fn change_own_rules(&mut self, change: impl FnOnce(&mut OwnRules)) {
        let own = &mut self.rules().own;
        change(own);
        let data = serde_json::to_value(&*own).expect("rules are JSON");
        self.append_custom_entry(OWN_RULES, Some(data));
        self.permissions.compose();
    }
}

/// Reads a rule of the session; one that was accepted before is understood again.
fn parsed(text: &str, origin: pith_permissions::Origin, bases: &Bases) -> Option<Rule> {
    Rule::parse(text, origin, bases).ok()
}
