//! The gate: what a tool call passes before it runs, and what sees its result, in the run's own task.
//!
//! Extensions decide first, one call after the other (`admit`).

use std::sync::Arc;

use pith_agent::link::Call;
use pith_agent::{BoxFuture, ToolCallHook, ToolOutput, Verdict};
use pith_ext::ExtensionHandle;
use pith_tools::image::Rules;
use serde_json::{Map, Value};

use crate::session::Session;
use crate::tools::images;

/// What the calls of one answer pass. A part that is `None` costs nothing.
struct Gate {
    extensions: Option<ExtensionHandle>,
    /// How images in results that extensions change are fitted to the model.
    images: Rules,
}

impl Session {
    /// The gate for the calls of the next answer; `None` if nothing would hold a call up.
    pub(crate) fn gate(&self) -> Option<Arc<dyn ToolCallHook>> {
        let extensions = self.extension_handle().cloned()?;
        Some(Arc::new(Gate { extensions: Some(extensions), images: self.workbench().image_rules() }))
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
