//! The gate: what a tool call passes before it runs, and what sees its result, in the run's own task.
//!
//! Extensions decide first, one call after the other (`admit`). What happens when a call is about to start (`permit`)
//! has a file of its own for each step.

mod checkpoint;
mod repeats;

use std::sync::Arc;

use pith_agent::link::Call;
use pith_agent::trace::WorkSpan;
use pith_agent::{BoxFuture, Tool, ToolCallHook, ToolOutput, Verdict};
use pith_checkpoints::Recorder;
use pith_ext::ExtensionHandle;
use pith_protocol::LimitName;
use pith_tools::image::Rules;
use serde_json::{Map, Value};

use crate::session::Session;
use crate::tools::{ToolLink, images};

/// What the calls of one answer pass. A part that is `None` costs nothing.
struct Gate {
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
    pub(crate) fn gate(&self) -> Option<Arc<dyn ToolCallHook>> {
        let extensions = self.extension_handle().cloned();
        let checkpoints = self.workbench().checkpoints.clone().filter(|recorder| recorder.covers_commands());
        let limits_repeats = self.governor.limits().max(LimitName::Repeats).is_some();
        let repeats = limits_repeats.then(|| self.host_tools.link.clone());
        if extensions.is_none() && checkpoints.is_none() && repeats.is_none() {
            return None;
        }
        Some(Arc::new(Gate {
            extensions,
            checkpoints,
            repeats,
            images: self.workbench().image_rules(),
            trace: self.work_trace().cloned(),
        }))
    }
}

impl ToolCallHook for Gate {
    fn admit<'a>(&'a self, call: &'a Call, arguments: Map<String, Value>) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            match &self.extensions {
                Some(extensions) => extensions.admit(call, arguments).await,
                None => Verdict::Run(arguments),
            }
        })
    }

    fn permit<'a>(
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
