//! The host's functions while they run: tool calls and dialogs, each a task of its own.

use std::collections::HashMap;
use std::future::Future;

use pith_protocol::HostReply;
use pith_protocol::host::{HostToolFrame, UiAnswer, UiMethod, UiRequest};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinSet};

use crate::host::{Dialog, HostTool, ToolContext, ToolOutput};

/// Starts the host's functions and collects what they answer.
pub(crate) struct Handlers {
    dialog: Option<Dialog>,
    tools: Vec<HostTool>,
    tasks: JoinSet<HostReply>,
    /// What each task answers, by the id pith knows it by.
    running: HashMap<String, Running>,
}

struct Running {
    task: AbortHandle,
    /// What is answered if the function panics.
    failed: HostReply,
}

impl Handlers {
    pub(crate) fn new(dialog: Option<Dialog>, tools: Vec<HostTool>) -> Self {
        Handlers { dialog, tools, tasks: JoinSet::new(), running: HashMap::new() }
    }

    /// Starts or withdraws a call.
    pub(crate) fn host_tool(&mut self, frame: HostToolFrame, outgoing: &mpsc::UnboundedSender<Vec<u8>>) {
        match frame {
            HostToolFrame::HostToolCall { id, tool_call_id, tool_name, arguments } => {
                let context = ToolContext { tool_call_id, id, outgoing: outgoing.downgrade() };
                self.call(&tool_name, arguments, context);
            }
            HostToolFrame::HostToolCancel { target_id, .. } => self.withdraw(&target_id),
        }
    }

    fn call(&mut self, name: &str, arguments: Map<String, Value>, context: ToolContext) {
        let id = context.id.clone();
        let failed = tool_result(id.clone(), Err(format!("host tool {name} panicked")));
        let Some(tool) = self.tools.iter().find(|tool| tool.name() == name) else {
            let missing = tool_result(id.clone(), Err(format!("there is no host tool {name}")));
            return self.start(id, failed, async { missing });
        };
        let call = tool.call.clone();
        // The function itself runs in the task too, so that a panic before its first await ends only this call.
        self.start(id.clone(), failed, async move { tool_result(id, call(arguments, context).await) });
    }

    /// Starts or withdraws a dialog; what only shows something needs no answer.
    pub(crate) fn ui_request(&mut self, request: UiRequest) {
        match &request.method {
            UiMethod::Select { .. }
            | UiMethod::Confirm { .. }
            | UiMethod::Input { .. }
            | UiMethod::Editor { .. }
            | UiMethod::Form { .. } => {
                let id = request.id.clone();
                let reply = |id: &String, answer| HostReply::Ui { id: Some(id.clone()), answer };
                let failed = reply(&id, UiAnswer::Cancelled);
                let dialog = self.dialog.clone();
                self.start(id.clone(), failed, async move {
                    match dialog {
                        Some(dialog) => reply(&id, dialog(request).await),
                        None => reply(&id, UiAnswer::Cancelled),
                    }
                });
            }
            UiMethod::Cancel { target_id } => self.withdraw(target_id),
            UiMethod::Notify { .. }
            | UiMethod::SetStatus { .. }
            | UiMethod::SetWidget { .. }
            | UiMethod::SetTitle { .. }
            | UiMethod::SetEditorText { .. } => {}
        }
    }

    fn start(&mut self, id: String, failed: HostReply, answer: impl Future<Output = HostReply> + Send + 'static) {
        let task = self.tasks.spawn(answer);
        self.running.insert(id, Running { task, failed });
    }

    /// Drops the function; nothing is answered.
    fn withdraw(&mut self, id: &str) {
        if let Some(running) = self.running.remove(id) {
            running.task.abort();
        }
    }

    /// Returns the next answer; waits for ever while nothing runs.
    pub(crate) async fn next(&mut self) -> HostReply {
        loop {
            let (task, answer) = match self.tasks.join_next_with_id().await {
                Some(Ok((task, answer))) => (task, Some(answer)),
                Some(Err(error)) => (error.id(), None),
                None => std::future::pending().await,
            };
            // What was withdrawn is not there any more.
            if let Some(failed) = self.finish(task) {
                return answer.unwrap_or(failed);
            }
        }
    }

    fn finish(&mut self, task: Id) -> Option<HostReply> {
        let id = self.running.iter().find(|(_, running)| running.task.id() == task).map(|(id, _)| id.clone())?;
        self.running.remove(&id).map(|running| running.failed)
    }
}

fn tool_result(id: String, result: Result<ToolOutput, String>) -> HostReply {
    let is_error = result.is_err();
    let output = result.unwrap_or_else(ToolOutput::from);
    HostReply::ToolResult { id: Some(id), result: Some(output.into_result()), is_error }
}
