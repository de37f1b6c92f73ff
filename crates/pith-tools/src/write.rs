//! The `write` tool.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use pith_agent::{Tool, ToolContext, ToolOutput};
use pith_protocol::ToolSpec;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::arguments::Arguments;
use crate::os_error;
use crate::replace::replace;
use crate::seen::{MAX_COMPARED, digest, remark};
use crate::tool::{Outcome, check_aborted, output, run_to_completion, spec};
use crate::workbench::Workbench;

/// Creates and overwrites files for the model.
pub struct Write {
    spec: ToolSpec,
    workbench: Arc<Workbench>,
}

impl Write {
    /// Creates the tool of one session.
    pub fn new(workbench: Arc<Workbench>) -> Self {
        Write { spec: spec("write", DESCRIPTION, parameters()), workbench }
    }
}

fn write(workbench: &Workbench, shown_path: &str, path: &Path, content: &str, cancel: &CancellationToken) -> Outcome {
    check_aborted(cancel)?;
    workbench.confinement.admit(path, "open")?;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|error| os_error::on_path(&error, "mkdir", parent))?;
    }
    let changed = path.metadata().is_ok_and(|metadata| {
        let contents = || if metadata.len() <= MAX_COMPARED { digest(&std::fs::read(path).ok()?) } else { None };
        metadata.is_file() && workbench.seen.has_changed(path, &metadata, contents)
    });
    check_aborted(cancel)?;
    let metadata = replace(path, content.as_bytes(), &workbench.confinement)?;
    workbench.seen.remember(path, &metadata, digest(content.as_bytes()));
    let remark = if changed { remark(shown_path) } else { String::new() };
    Ok(ToolOutput::text(format!("Successfully wrote to {shown_path}{remark}")))
}

impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn snippet(&self) -> Option<&str> {
        Some("Create or overwrite files")
    }

    fn rules(&self) -> Vec<&str> {
        vec!["Use write only for new files or complete rewrites"]
    }

    fn run(
        self: Arc<Self>,
        arguments: Map<String, Value>,
        context: ToolContext,
    ) -> Pin<Box<dyn Future<Output = ToolOutput> + Send>> {
        let arguments = Arguments(arguments);
        // Queued before the first await, so that calls on one file keep their order.
        let target = arguments.text("path").map(|shown_path| {
            let path = self.workbench.base.resolve(shown_path);
            let place = self.workbench.mutations.enter(&path);
            (shown_path.to_owned(), path, place)
        });
        Box::pin(async move {
            let outcome = async {
                let (shown_path, path, place) = target?;
                let content = arguments.text("content")?.to_owned();
                let turn = place.turn(&context.cancel).await?;
                run_to_completion(move || {
                    let outcome = write(&self.workbench, &shown_path, &path, &content, &context.cancel);
                    drop(turn);
                    outcome
                })
                .await
            };
            output(outcome.await)
        })
    }
}

const DESCRIPTION: &str = "Write a file: creates it, or replaces all of its contents. Missing parent directories are \
    created.";

fn parameters() -> Value {
    json!({
        "type": "object",
        "required": ["path", "content"],
        "properties": {
            "path": {"type": "string", "description": "Path of the file, relative or absolute"},
            "content": {"type": "string", "description": "The complete new contents"},
        },
    })
}
