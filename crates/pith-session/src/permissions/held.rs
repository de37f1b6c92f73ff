//! Calls that do not simply run, on their way from the gate to the session.

use std::path::Path;
use std::sync::Arc;

use pith_agent::{Effect, ToolOutput};
use pith_permissions::{Action, Judgement, Policy, ToolUse, Verdict};
use pith_tools::Workbench;
use pith_tools::sandbox::Sandbox;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

/// What a gate sends to the session.
pub(crate) enum FromGate {
    /// A call that is refused, or asked about. Dropping the sender ends it as aborted.
    Held(Box<HeldCall>, oneshot::Sender<Result<(), ToolOutput>>),
    /// A call that was held no longer waits.
    Gone(Arc<str>),
    /// An extension has refused a call.
    Blocked { id: Arc<str>, tool: String },
}

/// A call, as far as it matters to those who decide about it.
#[derive(Clone, Debug)]
pub(crate) struct HeldCall {
    pub id: Arc<str>,
    pub tool: String,
    /// As they would be used.
    pub arguments: Map<String, Value>,
    pub effect: Effect,
    pub server: Option<ServerTool>,
    pub judgement: Judgement,
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
        match &self.effect {
            Effect::Command { unsandboxed, .. } => unsandboxed.as_deref(),
            _ => None,
        }
    }
}

/// What calls are judged by: rules, and where the tools work.
#[derive(Clone)]
pub(crate) struct Judge {
    pub policy: Arc<Policy>,
    pub workbench: Arc<Workbench>,
}

impl Judge {
    /// Judges a call that does this.
    pub fn judge(&self, tool: &str, effect: &Effect, server: Option<&ServerTool>) -> Judgement {
        let mut judgement = self.policy.judge(&self.tool_use(tool, effect));
        let is_unsandboxed = matches!(effect, Effect::Command { unsandboxed: Some(_), .. });
        judgement.verdict = match judgement.verdict {
            Verdict::Ask if server.is_some_and(|tool| tool.is_approved) => Verdict::Allow,
            Verdict::Allow if is_unsandboxed => Verdict::Ask,
            verdict => verdict,
        };
        judgement
    }

    /// The call as rules look at it.
    pub fn tool_use<'a>(&'a self, tool: &'a str, effect: &'a Effect) -> ToolUse<'a> {
        let base = &self.workbench.base;
        let is_unsandboxed = matches!(effect, Effect::Command { unsandboxed: Some(_), .. });
        ToolUse {
            tool,
            action: match effect {
                Effect::Command { command, .. } => Action::Command(command),
                Effect::Read(path) => Action::Read(path),
                Effect::Change(path) => Action::Change(path),
                Effect::Nothing => Action::Harmless,
                Effect::Unknown => Action::Other,
            },
            workspace: &base.cwd,
            home: base.home.as_deref().unwrap_or(Path::new("/")),
            is_confined: matches!(self.workbench.sandbox.as_deref(), Some(Sandbox::Enforced(_))) && !is_unsandboxed,
        }
    }
}
