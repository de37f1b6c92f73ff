//! `todo_write`: the tool with which the model updates the list.

use std::sync::Arc;

use pith_agent::{BoxFuture, Reach, Tool, ToolContext, ToolOutput};
use pith_protocol::ToolSpec;
use serde_json::{Map, Value, json};

use crate::tools::{FromTool, ToolLink};

/// The tool's name, in settings and session files.
pub(crate) const TODO_WRITE: &str = "todo_write";

/// The tool. The session owns the list and carries out every change.
pub(crate) struct TodoWrite {
    spec: ToolSpec,
    link: ToolLink,
}

impl TodoWrite {
    pub fn new(link: ToolLink) -> Self {
        let description = "Keep a todo list of phases and tasks for work with several steps. Operations apply in order. \
                           One task is in progress at a time; mark a task completed as soon as it is. The user may have \
                           put a list in place already: an empty ops array shows the list without changing it.";
        let spec = ToolSpec {
            name: TODO_WRITE.into(),
            description: description.into(),
            parameters: Arc::new(parameters()),
            prefer_strict: false,
        };
        TodoWrite { spec, link }
    }
}

fn parameters() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let status = json!({"type": "string", "enum": ["pending", "in_progress", "completed", "abandoned"]});
    let task = json!({
        "type": "object",
        "properties": {
            "content": text("What is to be done"), "status": status,
            "notes": text("Remarks"), "details": text("Further instructions"),
        },
        "required": ["content"],
    });
    let tasks = json!({"type": "array", "items": task});
    let phase = json!({"type": "object", "properties": {"name": text("Name of the phase"), "tasks": tasks}, "required": ["name"]});
    let op = json!({
        "type": "object",
        "properties": {
            "op": {"type": "string", "enum": ["replace", "add_phase", "add_task", "update", "remove_task"]},
            "phases": {"type": "array", "items": phase, "description": "replace: the whole new list"},
            "name": text("add_phase: name of the phase"),
            "tasks": tasks,
            "phase": text("add_task: id of the phase"),
            "id": text("update, remove_task: id of the task"),
            "content": text("add_task, update: what is to be done"),
            "status": status,
            "notes": text("add_task, update: remarks"),
            "details": text("add_task, update: further instructions"),
        },
        "required": ["op"],
    });
    json!({"type": "object", "properties": {"ops": {"type": "array", "items": op}}, "required": ["ops"]})
}

impl Tool for TodoWrite {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn label(&self) -> &str {
        "Todo Write"
    }

    fn snippet(&self) -> Option<&str> {
        Some("keep a list of phases and tasks")
    }

    /// Changes in one answer must be applied in order.
    fn is_sequential(&self) -> bool {
        true
    }

    fn reach(&self) -> Reach {
        Reach::Nothing
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, _context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move {
            let output = self.link.ask(|answer| FromTool::Todos { arguments, answer }).await;
            output.unwrap_or_else(|| ToolOutput::error("The session has ended"))
        })
    }
}
