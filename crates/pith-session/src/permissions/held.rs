//! Calls that do not simply run, on their way from the gate to the session.

use std::path::Path;
use std::sync::Arc;

use pith_agent::{Effect, Verdict};
use pith_permissions::{self as permissions, Action, Bases, Judgement, Origin, Policy, Reason, ToolUse};
use pith_protocol::audit::PermissionBy;
use pith_tools::Workbench;
use pith_tools::hosts::Host;
use pith_tools::sandbox::Sandbox;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::hosts::HostQuestion;
use super::parsed;

/// What a gate sends to the session.
pub(crate) enum FromGate {
    /// A call that is refused, or asked about. Dropping the sender ends it as aborted.
    Held(Box<HeldCall>, oneshot::Sender<Verdict>),
    /// A call that was held no longer waits.
    Gone(Arc<str>),
    /// An extension has refused a call.
    Blocked { id: Arc<str>, tool: String },
    /// A command wants to reach a host that no list of the sandbox has.
    Host(HostQuestion),
    /// The command whose question has this number no longer waits.
    HostGone(u64),
}

/// A call, as far as it matters to those who decide about it.
#[derive(Clone, Debug)]
pub(crate) struct HeldCall {
    pub id: Arc<str>,
    pub tool: String,
    /// As they would be used.
    pub arguments: Map<String, Value>,
    pub subject: Subject,
    pub server: Option<ServerTool>,
    pub judgement: Judgement,
}

/// What somebody decides about.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    /// What a call does.
    Call(Effect),
    /// A connection of a command, while its call runs.
    Host(Host, u16),
}

impl Subject {
    /// Why a command asks to run outside the sandbox, if this is one that does.
    fn unsandboxed(&self) -> Option<&str> {
        match self {
            Subject::Call(Effect::Command { unsandboxed, .. }) => unsandboxed.as_deref(),
            Subject::Call(_) | Subject::Host(..) => None,
        }
    }
}

/// The tool of a server, and what may be believed of it.
#[derive(Clone, Debug)]
pub(crate) struct ServerTool {
    pub server: String,
    pub tool: String,
    pub is_destructive: bool,
    /// The user has approved all calls in advance.
    pub is_approved: bool,
}

impl HeldCall {
    /// Why a command asks to run outside the sandbox, if this is one.
    pub fn unsandboxed(&self) -> Option<&str> {
        self.subject.unsandboxed()
    }
}

/// What calls are judged by: rules, and where the tools work.
#[derive(Clone)]
pub(crate) struct Judge {
    pub policy: Arc<Policy>,
    pub workbench: Arc<Workbench>,
}

impl Judge {
    /// Judges a call that does this, or a connection of one.
    pub fn judge(&self, tool: &str, subject: &Subject, server: Option<&ServerTool>) -> Judgement {
        let mut judgement = self.policy.judge(&self.tool_use(tool, subject));
        judgement.verdict = match judgement.verdict {
            permissions::Verdict::Ask if server.is_some_and(|tool| tool.is_approved) => permissions::Verdict::Allow,
            permissions::Verdict::Allow if subject.unsandboxed().is_some() => permissions::Verdict::Ask,
            verdict => verdict,
        };
        judgement
    }

    /// Whether a call would run if the user had granted these rules.
    pub fn would_run(&self, call: &HeldCall, rules: &[String], bases: &Bases) -> bool {
        let mut policy = Policy::clone(&self.policy);
        policy.granted.extend(rules.iter().filter_map(|rule| parsed(rule, Origin::Session, bases)));
        let judge = Judge { policy: Arc::new(policy), workbench: self.workbench.clone() };
        let judgement = judge.judge(&call.tool, &call.subject, call.server.as_ref());
        judgement.verdict == permissions::Verdict::Allow
    }

    /// The call as rules look at it.
    pub fn tool_use<'a>(&'a self, tool: &'a str, subject: &'a Subject) -> ToolUse<'a> {
        let base = &self.workbench.base;
        let is_unsandboxed = subject.unsandboxed().is_some();
        ToolUse {
            tool,
            action: match subject {
                Subject::Call(Effect::Command { command, .. }) => Action::Command(command),
                Subject::Call(Effect::Read(path)) => Action::Read(path),
                Subject::Call(Effect::Change(path)) => Action::Change(path),
                Subject::Call(Effect::Nothing) => Action::Harmless,
                Subject::Call(Effect::Unknown) => Action::Other,
                Subject::Host(host, port) => Action::Connect(host, *port),
            },
            workspace: &base.cwd,
            home: base.home.as_deref().unwrap_or(Path::new("/")),
            is_confined: matches!(self.workbench.sandbox.as_deref(), Some(Sandbox::Enforced(_))) && !is_unsandboxed,
        }
    }
}

/// Who has decided, if nobody was asked.
pub(crate) fn decided_by(judgement: &Judgement) -> PermissionBy {
    match judgement.reason {
        Reason::Rule { .. } | Reason::Possible { .. } => PermissionBy::Rule,
        Reason::Mode | Reason::Opaque => PermissionBy::Mode,
    }
}
