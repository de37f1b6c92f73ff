//! The sandbox as the host sees it: changes it asks for, and what tool calls are refused.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use pith_agent::ToolOutput;
use pith_agent::link::Call;
use pith_protocol::answers::SandboxState;
use pith_protocol::audit::{AuditRecord, DeniedRecord, SandboxRecord};
use pith_protocol::commands::SetSandbox;
use pith_protocol::{CommandError, ErrorCode, Event};
use pith_tools::Denied;
use pith_tools::sandbox::Sandbox;

use crate::reply::Reply;
use crate::session::Session;

/// Changes the sandbox of a directory for everything that starts from now on. The error says why it stays as it is.
pub type ChangeSandbox = Box<dyn Fn(&Path, &SetSandbox) -> Result<(), String> + Send>;

impl Session {
    pub(crate) fn set_sandbox(&mut self, call: &SetSandbox, reply: Reply<SetSandbox>) {
        let before = self.workbench().sandbox.clone();
        if let Err(why) = (self.change_sandbox)(self.store.cwd(), call) {
            return self.answer(reply, Err(CommandError::new(ErrorCode::Sandbox, why)));
        }
        self.tools.remake(self.store.cwd(), &self.settings);
        self.update_call_options();
        self.assemble_prompt();
        let mut state = self.sandbox_state();
        if !is_same(before.as_ref(), self.workbench().sandbox.as_ref()) {
            state.stale_commands = self.workbench().jobs.running();
            let record = SandboxRecord { profile: state.profile.clone(), enforced: state.enforced };
            self.audit(&AuditRecord::Sandbox(record));
        }
        self.answer(reply, Ok(state));
    }

    fn sandbox_state(&self) -> SandboxState {
        self.workbench().sandbox.as_ref().map_or_else(SandboxState::off, |sandbox| sandbox.state())
    }

    /// Tells the host what the sandbox has refused a call.
    pub(crate) fn tell_denied(&mut self, call: &Call, output: &ToolOutput) {
        if self.workbench().sandbox.is_none() {
            return;
        }
        for Denied { kind, target, count, reason } in Denied::of(output) {
            self.trace_denied(kind);
            self.out.event(&Event::SandboxDenied {
                tool_call_id: Cow::Borrowed(&call.id),
                kind,
                target: target.as_deref().map(Cow::Borrowed),
                count,
                reason: reason.as_deref().map(Cow::Borrowed),
            });
            let (tool_call_id, tool) = (call.id.to_string(), call.name.to_string());
            self.audit(&AuditRecord::Denied(DeniedRecord { tool_call_id, tool, denied: kind, target, reason }));
        }
    }
}

fn is_same(before: Option<&Arc<Sandbox>>, now: Option<&Arc<Sandbox>>) -> bool {
    match (before, now) {
        (Some(before), Some(now)) => Arc::ptr_eq(before, now),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}
