//! Tools of the editor: calls of the model become requests.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use pith_protocol::host::HostToolFrame;
use pith_protocol::{HostReply, Inbound};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::conversation::Conversation;
use super::requests::Answered;

/// The calls of a session that the editor has not answered. Dropped with it, which withdraws them.
pub struct HostTools {
    conversation: Rc<Conversation>,
    /// Tasks that wait for results, by the id of the call.
    open: Rc<RefCell<HashMap<String, AbortHandle>>>,
}

impl HostTools {
    pub fn new(conversation: Rc<Conversation>) -> Self {
        HostTools { conversation, open: Rc::default() }
    }

    /// Takes a frame of the session: calls the tool, or withdraws a call.
    pub fn take(&self, frame: HostToolFrame) {
        match frame {
            HostToolFrame::HostToolCall { id, tool_call_id, tool_name, arguments } => {
                let session = &self.conversation.seat.id;
                let params = json!({
                    "sessionId": session, "toolCallId": tool_call_id, "toolName": tool_name, "arguments": arguments,
                });
                self.call(id, params);
            }
            HostToolFrame::HostToolCancel { target_id, .. } => {
                if let Some(task) = self.open.borrow_mut().remove(&target_id) {
                    task.abort();
                }
            }
        }
    }

    fn call(&self, id: String, params: Value) {
        let (conversation, open) = (self.conversation.clone(), self.open.clone());
        let key = id.clone();
        let task = tokio::task::spawn_local(async move {
            let answered = conversation.requests.ask("_pith/host_tool_call", &params).await;
            open.borrow_mut().remove(&id);
            conversation.seat.send(Inbound::Reply(result(id, answered))).await;
        });
        self.open.borrow_mut().insert(key, task.abort_handle());
    }
}

impl Drop for HostTools {
    fn drop(&mut self) {
        self.open.borrow_mut().drain().for_each(|(_, task)| task.abort());
    }
}

/// The result of a call: `{content, details?, isError?}` as in rpc mode. An error says why the call failed.
fn result(id: String, answered: Answered) -> HostReply {
    match answered {
        Ok(result) => {
            let is_error = result.get("isError") == Some(&Value::Bool(true));
            HostReply::ToolResult { id: Some(id), result: Some(result), is_error }
        }
        Err(error) => {
            let why = error.get("message").and_then(Value::as_str).unwrap_or("The editor did not run the tool");
            let result = json!({"content": [{"type": "text", "text": why}]});
            HostReply::ToolResult { id: Some(id), result: Some(result), is_error: true }
        }
    }
}
