//! Tools the host offers (`set_host_tools`). The agent loop sees ordinary tools; the host carries out the calls, over
//! the wire.

mod pending;
mod result;

use std::sync::Arc;
use std::time::Duration;

use pith_agent::{BoxFuture, Tool, ToolContext, ToolOutput};
use pith_protocol::answers::HostToolNames;
use pith_protocol::commands::SetHostTools;
use pith_protocol::host::HostToolFrame;
use pith_protocol::host_tool::HostToolInput;
use pith_protocol::{Block, CommandError, ErrorCode, HostReply, ToolSpec};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{FromTool, ToolLink, images};
use crate::jobs::{Job, JobEnd};
use crate::log::log_line;
use crate::reply::Reply;
use crate::session::Session;
use pending::PendingCalls;
pub(crate) use pending::{DISCONNECTED, PendingCall};

/// Calls the host has not answered, and the channel from tools to the session.
pub(crate) struct HostTools {
    pub pending: PendingCalls,
    /// Cloned into the tools that ask the session.
    pub link: ToolLink,
    /// From those tools; open as long as the session.
    questions: mpsc::Receiver<FromTool>,
}

impl HostTools {
    pub fn new() -> Self {
        let (link, questions) = ToolLink::new();
        HostTools { pending: PendingCalls::default(), link, questions }
    }

    /// Waits for the next question of a tool. Cancel safe.
    pub async fn next(&mut self) -> Option<FromTool> {
        self.questions.recv().await
    }
}

/// A tool whose calls go to the host.
struct HostTool {
    spec: ToolSpec,
    label: String,
    link: ToolLink,
    /// How long the host may take; `None` sets no limit.
    timeout: Option<Duration>,
}

impl Tool for HostTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn label(&self) -> &str {
        &self.label
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move { self.call(arguments, context).await.unwrap_or_else(|gone| gone) })
    }
}

impl HostTool {
    async fn call(&self, arguments: Map<String, Value>, context: ToolContext) -> Result<ToolOutput, ToolOutput> {
        let name = &self.spec.name;
        let (answer, mut answered) = oneshot::channel();
        let id = self.link.fresh_id();
        let call = PendingCall { id: id.clone(), tool: name.clone(), update: context.update, answer };
        self.link.send(FromTool::Host { call, tool_call_id: context.call_id, arguments }).await?;
        let why = tokio::select! {
            biased;
            output = &mut answered => return output.map_err(|_| ToolOutput::error(DISCONNECTED)),
            () = context.cancel.cancelled() => format!("Host tool \"{name}\" was aborted"),
            () = expired(self.timeout) => {
                format!("Host tool \"{name}\" timed out after {} ms", self.timeout.unwrap_or_default().as_millis())
            }
        };
        // Waiting for this sends the cancellation before the end of the call.
        self.link.ask(|told| FromTool::Withdraw { id, told }).await;
        // The session may have ended the call at the same moment, with a better reason.
        Ok(answered.try_recv().unwrap_or_else(|_| ToolOutput::error(why)))
    }
}

async fn expired(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}

impl Session {
    /// Replaces the host's tools; a refusal leaves the old ones in place.
    pub(crate) fn set_host_tools(&mut self, call: SetHostTools, reply: Reply<SetHostTools>) {
        let answer = self.take_host_tools(call.tools).map(|tool_names| HostToolNames { tool_names });
        self.answer(reply, answer.map_err(|why| CommandError::new(ErrorCode::HostTool, why)));
    }

    fn take_host_tools(&mut self, definitions: Vec<HostToolInput>) -> Result<Vec<String>, String> {
        if let Some(taken) = definitions.iter().find(|definition| self.tools.is_taken(&definition.name)) {
            return Err(format!("RPC host tool \"{}\" conflicts with an existing tool", taken.name));
        }
        let names = definitions.iter().map(|definition| definition.name.clone()).collect();
        let tools = definitions.into_iter().map(|definition| {
            let is_hidden = definition.hidden;
            (self.host_tool(definition), !is_hidden)
        });
        let tools = tools.collect();
        self.tools.set_host(tools);
        self.assemble_prompt();
        Ok(names)
    }

    fn host_tool(&self, definition: HostToolInput) -> Arc<dyn Tool> {
        let label = definition.label.unwrap_or_else(|| definition.name.clone());
        let spec = ToolSpec {
            name: definition.name.into(),
            description: definition.description.into(),
            parameters: Arc::new(definition.parameters),
            prefer_strict: false,
        };
        let link = self.host_tools.link.clone();
        Arc::new(HostTool { spec, label, link, timeout: self.options.host_tool_timeout })
    }

    /// Serves a question of a tool.
    pub(crate) fn on_tool(&mut self, question: FromTool) {
        match question {
            FromTool::Host { call, .. } if self.is_closing => call.end(ToolOutput::error(DISCONNECTED)),
            FromTool::Host { call, tool_call_id, arguments } => {
                self.out.host_tool(&HostToolFrame::HostToolCall {
                    id: call.id.clone(),
                    tool_call_id: tool_call_id.to_string(),
                    tool_name: call.tool.to_string(),
                    arguments,
                });
                self.host_tools.pending.add(call);
            }
            FromTool::Withdraw { id, told } => {
                if self.host_tools.pending.take(&id).is_some() {
                    let fresh = self.host_tools.link.fresh_id();
                    self.out.host_tool(&HostToolFrame::HostToolCancel { id: fresh, target_id: id });
                }
                let _ = told.send(());
            }
            FromTool::Todos { arguments, answer } => {
                let _ = answer.send(self.write_todos(arguments));
            }
            FromTool::MayRepeat { call, answer } => self.check_repeats(&call, answer),
            FromTool::FindTools { arguments, answer } => self.search_tools(arguments, answer),
            FromTool::ToolUsed { name, noted } => {
                self.note_found(&[&name]);
                let _ = noted.send(());
            }
        }
    }

    /// Takes progress or the result of a call. Ids that are not pending are ignored: the call was cancelled, or never
    /// made.
    pub(crate) fn on_host_tool_reply(&mut self, reply: HostReply) {
        match reply {
            HostReply::ToolUpdate { id: Some(id), partial_result } => {
                let Some(call) = self.host_tools.pending.get(&id) else { return };
                match result::read(partial_result) {
                    Ok(mut output) => {
                        // Hosts expect details in every update, even empty ones.
                        output.details.get_or_insert_with(|| json!({}));
                        (call.update)(output);
                    }
                    Err(why) => log_line(&format!("ignored an update of host tool \"{}\": {why}", call.tool)),
                }
            }
            HostReply::ToolResult { id: Some(id), result, is_error } => {
                let Some(call) = self.host_tools.pending.take(&id) else { return };
                let output = match result::read(result) {
                    Ok(output) if is_error => result::failure(&output),
                    Ok(output) => output,
                    Err(why) => {
                        ToolOutput::error(format!("Host tool \"{}\" returned an invalid result: {why}", call.tool))
                    }
                };
                self.end_call(call, output);
            }
            HostReply::ToolUpdate { id: None, .. }
            | HostReply::ToolResult { id: None, .. }
            | HostReply::Ui { .. }
            | HostReply::Permission { .. } => {}
        }
    }

    /// Ends a call with its result. Images that a model would refuse are converted first, in the background.
    fn end_call(&mut self, call: PendingCall, output: ToolOutput) {
        let rules = self.workbench().image_rules();
        if !images::need_work(&output.content, rules) {
            return call.end(output);
        }
        self.jobs.spawn_blocking(Job::Background, move || {
            let (content, remarks) = images::fit(&output.content, rules);
            let content = content.into_iter().chain(remarks.into_iter().map(Block::text)).collect();
            call.end(ToolOutput { content, ..output });
            JobEnd::Done
        });
    }
}
