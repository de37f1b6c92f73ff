//! The gate: what a tool call passes before it runs, and what sees its result, in the run's own task.
//!
//! Rules and extensions decide first, one call after the other (`admit`): rules that forbid, then extensions, then rules
//! again if the arguments are others. A call that somebody is asked about waits while others run. What happens when a
//! call is about to start (`before_start`) has a file of its own for each step.

mod checkpoint;
mod permission;
mod repeats;

use std::sync::Arc;

use pith_agent::link::Call;
use pith_agent::trace::WorkSpan;
use pith_agent::{BoxFuture, Tool, ToolCallHook, ToolOutput, Verdict};
use pith_checkpoints::Recorder;
use pith_ext::ExtensionHandle;
use pith_protocol::LimitName;
use pith_protocol::audit::PermissionBy;
use pith_tools::image::Rules;
use serde_json::{Map, Value};

use crate::session::Session;
use crate::tools::{ToolLink, images};
use permission::{Judged, Judging};

/// What the calls of one answer pass. A part that is `None` costs nothing.
struct Gate {
    /// Set if not every call may run.
    permissions: Option<Judging>,
    extensions: Option<ExtensionHandle>,
    /// Set if calls are covered that may change any file.
    checkpoints: Option<Arc<Recorder>>,
    /// Set if repeated calls are limited.
    repeats: Option<ToolLink>,
    /// How images in results that extensions change are fitted to the model.
    images: Rules,
    /// Set if somebody watches.
    trace: Option<Arc<dyn WorkSpan>>,
}

impl Session {
    /// The gate for the calls of the next answer; `None` if nothing would hold a call up.
    pub(crate) fn gate(&mut self) -> Option<Arc<dyn ToolCallHook>> {
        let judge = self.judge();
        let to_session = self.permissions.to_session();
        let is_needed = !judge.policy.is_open() || self.workbench().allows_unsandboxed();
        let permissions = is_needed.then_some(Judging { judge, to_session });
        let extensions = self.extension_handle().cloned();
        let checkpoints = self.workbench().checkpoints.clone().filter(|recorder| recorder.covers_commands());
        let limits_repeats = self.governor.limits().max(LimitName::Repeats).is_some();
        let repeats = limits_repeats.then(|| self.host_tools.link.clone());
        if permissions.is_none() && extensions.is_none() && checkpoints.is_none() && repeats.is_none() {
            return None;
        }
        Some(Arc::new(Gate {
            permissions,
            extensions,
            checkpoints,
            repeats,
            images: self.workbench().image_rules(),
            trace: self.work_trace().cloned(),
        }))
    }
}

impl ToolCallHook for Gate {
    fn admit<'a>(
        &'a self,
        call: &'a Call,
        tool: &'a dyn Tool,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            match (&self.permissions, &self.extensions) {
                (None, None) => Verdict::Run { arguments, by: None },
                (None, Some(extensions)) => extensions.admit(call, tool, arguments).await,
                (Some(judging), None) => admitted(judging, judging.judge(call, tool, &arguments), arguments),
                (Some(judging), Some(extensions)) => admit_by_both(judging, extensions, call, tool, arguments).await,
            }
        })
    }

    fn before_start<'a>(
        &'a self,
        call: &'a Call,
        tool: &'a dyn Tool,
        _arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<(), ToolOutput>> {
        Box::pin(async move {
            if let Some(link) = &self.repeats {
                repeats::before(link, call).await?;
            }
            if let Some(recorder) = &self.checkpoints {
                checkpoint::before(recorder, call, tool, self.trace.as_deref()).await;
            }
            Ok(())
        })
    }

    fn amends(&self) -> bool {
        self.extensions.as_ref().is_some_and(ExtensionHandle::amends)
    }

    fn amend<'a>(
        &'a self,
        call: &'a Call,
        input: Map<String, Value>,
        output: &'a ToolOutput,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        Box::pin(async move {
            let amended = self.extensions.as_ref()?.amend(call, input, output).await?;
            Some(images::fit_output(amended, self.images).await)
        })
    }
}

/// Lets extensions decide about a call that no rule forbids. They can refuse it, not grant it.
async fn admit_by_both(
    judging: &Judging,
    extensions: &ExtensionHandle,
    call: &Call,
    tool: &dyn Tool,
    arguments: Map<String, Value>,
) -> Verdict {
    let mut judged = judging.judge(call, tool, &arguments);
    if let Judged::Held(held) = &judged
        && held.judgement.verdict == pith_permissions::Verdict::Deny
    {
        // The rules of now may allow it; then it goes on as if they always had.
        match judging.hold(held.clone()).await {
            Verdict::Run { by, .. } => judged = Judged::Allowed(by.unwrap_or(PermissionBy::Rule)),
            refused => return refused,
        }
    }
    match extensions.admit(call, tool, arguments.clone()).await {
        Verdict::Run { arguments: changed, .. } => {
            if changed != arguments {
                judged = judging.judge(call, tool, &changed);
            }
            admitted(judging, judged, changed)
        }
        refused => {
            judging.note_blocked(call);
            refused
        }
    }
}

fn admitted(judging: &Judging, judged: Judged, arguments: Map<String, Value>) -> Verdict {
    match judged {
        Judged::Allowed(by) => Verdict::Run { arguments, by: Some(by) },
        Judged::Held(held) => Verdict::Later(judging.hold(held)),
    }
}
