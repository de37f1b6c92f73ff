//! The `write` tool.

use std::sync::Arc;

use pith_agent::{BoxFuture, Effect, Reach, Tool, ToolContext, ToolOutput};
use pith_protocol::ToolSpec;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::arguments::Arguments;
use crate::mutation::{Target, change_file, change_of, put};
use crate::os_error;
use crate::seen::{MAX_COMPARED, digest, remark};
use crate::tool::{Outcome, check_aborted, spec};
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

fn write(workbench: &Workbench, target: &Target, content: &str, cancel: &CancellationToken) -> Outcome {
    let Target { shown_path, path } = target;
    check_aborted(cancel)?;
    workbench.confinement.admit_change(path, "open")?;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|error| os_error::on_path(&error, "mkdir", parent))?;
    }
    let changed = path.metadata().is_ok_and(|metadata| {
        let contents = || if metadata.len() <= MAX_COMPARED { digest(&std::fs::read(path).ok()?) } else { None };
        metadata.is_file() && workbench.seen.has_changed(path, &metadata, contents)
    });
    check_aborted(cancel)?;
    let mut remark = if changed { remark(shown_path) } else { String::new() };
    remark += &put(workbench, target, content.as_bytes(), cancel)?;
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

    fn reach(&self) -> Reach {
        Reach::OneFile
    }

    fn effect(&self, arguments: &Map<String, Value>) -> Effect {
        change_of(&self.workbench, arguments)
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        let content = |arguments: &Arguments| arguments.text("content").map(str::to_owned);
        change_file(
            "write",
            self.workbench.clone(),
            arguments,
            context,
            content,
            |workbench, target, content, cancel| write(workbench, target, content, cancel),
        )
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
