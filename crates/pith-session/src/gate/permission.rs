//! The step that asks whether a call may run at all.
//!
//! Calls are judged here, in the run's task. The session hears of those that do not simply run, in the order of the
//! calls, and says when they may.

use std::sync::Arc;

use pith_agent::link::Call;
use pith_agent::{ABORTED, Effect, PendingVerdict, Tool, ToolOutput, Verdict};
use pith_permissions::Verdict::Allow;
use pith_protocol::audit::PermissionBy;
use pith_tools::builtin_tool;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tracing::debug;

use crate::permissions::{FromGate, HeldCall, Judge, ServerTool, Subject, decided_by};

/// What the calls of one answer are judged by.
pub(super) struct Judging {
    pub judge: Judge,
    /// Closed only when the session is gone.
    pub to_session: mpsc::UnboundedSender<FromGate>,
}

/// What rules say of a call.
pub(super) enum Judged {
    Allowed(PermissionBy),
    /// It is refused, or somebody is asked.
    Held(Box<HeldCall>),
}

impl Judging {
    /// Judges a call.
    pub fn judge(&self, call: &Call, tool: &dyn Tool, arguments: &Map<String, Value>) -> Judged {
        let effect = match tool.effect(arguments) {
            // A tool in the place of a built-in one is held to the rules about that one.
            Effect::Unknown => builtin_tool(&call.name, &self.judge.workbench)
                .map_or(Effect::Unknown, |builtin| builtin.effect(arguments)),
            effect => effect,
        };
        let server = tool.origin().map(|origin| ServerTool {
            server: origin.server.to_owned(),
            tool: origin.tool.to_owned(),
            is_destructive: origin.hints.is_destructive,
            is_approved: origin.hints.is_approved,
        });
        let subject = Subject::Call(effect);
        let judgement = self.judge.judge(&call.name, &subject, server.as_ref());
        debug!(target: "pith::tool", name = call.name, id = %call.id, verdict = judgement.verdict.as_str(), "judged");
        if judgement.verdict == Allow {
            return Judged::Allowed(decided_by(&judgement));
        }
        let (id, tool, arguments) = (call.id.clone(), call.name.clone(), arguments.clone());
        Judged::Held(Box::new(HeldCall { id, tool, arguments, subject, server, judgement }))
    }

    /// Hands a call over to the session. Returns what the call waits for.
    pub fn hold(&self, call: Box<HeldCall>) -> PendingVerdict {
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting { id: Some(call.id.clone()), to_session: self.to_session.clone() };
        // If nobody receives it, the answer is dropped and the call ends as aborted.
        let _ = self.to_session.send(FromGate::Held(call, answer));
        Box::pin(async move {
            let answer = answered.await;
            waiting.end();
            answer.unwrap_or_else(|_| Verdict::Refuse { output: ToolOutput::error(ABORTED), by: PermissionBy::Abort })
        })
    }

    /// Tells the session that an extension has refused a call.
    pub fn note_blocked(&self, call: &Call) {
        let _ = self.to_session.send(FromGate::Blocked { id: call.id.clone(), tool: call.name.clone() });
    }
}

/// Tells the session when a call no longer waits.
struct Waiting {
    /// The call; `None` once there is an answer.
    id: Option<Arc<str>>,
    to_session: mpsc::UnboundedSender<FromGate>,
}

impl Waiting {
    /// Called when there is an answer.
    fn end(mut self) {
        self.id = None;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            let _ = self.to_session.send(FromGate::Gone(id));
        }
    }
}
