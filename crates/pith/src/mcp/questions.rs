//! Questions of MCP servers on their way to the session: its host shows those to the user, its model answers others.

use std::sync::Arc;

use pith_agent::BoxFuture;
use pith_mcp::{Sample, SampleRequest};
use pith_protocol::host::{UiAnswer, UiMethod, UiRequest};
use pith_session::{FromMcp, McpSample};
use tokio::sync::{mpsc, oneshot};

use super::User;

/// Returns whom servers ask.
pub fn user(user: User, to_session: mpsc::UnboundedSender<FromMcp>) -> Option<Arc<dyn pith_mcp::User>> {
    let sees_forms = match user {
        User::Absent => return None,
        User::Dialogs => false,
        User::Forms => true,
    };
    Some(Arc::new(SessionUser { sees_forms, to_session }))
}

/// The user of the session's host.
struct SessionUser {
    sees_forms: bool,
    /// If the session has ended, nobody receives what is sent.
    to_session: mpsc::UnboundedSender<FromMcp>,
}

impl pith_mcp::User for SessionUser {
    fn ask(&self, dialog: UiMethod, call: Option<&str>) -> BoxFuture<'static, UiAnswer> {
        let id = uuid::Uuid::new_v4().to_string();
        let (answer, answered) = oneshot::channel();
        let withdrawal = Withdrawal { id: Some(id.clone()), to_session: self.to_session.clone() };
        let request = UiRequest { id, method: dialog, tool_call_id: call.map(str::to_owned) };
        let _ = self.to_session.send(FromMcp::Question { request, answer });
        Box::pin(async move {
            let mut withdrawal = withdrawal;
            let answer = answered.await.unwrap_or(UiAnswer::Cancelled);
            withdrawal.id = None;
            answer
        })
    }

    fn sees_forms(&self) -> bool {
        self.sees_forms
    }

    fn page_done(&self, id: &str) {
        let _ = self.to_session.send(FromMcp::PageDone { id: id.to_owned() });
    }
}

/// Returns what servers ask the model with. A question that is dropped closes its channel, which ends the request.
pub fn sample(to_session: mpsc::UnboundedSender<FromMcp>) -> Sample {
    Arc::new(move |request| {
        let (answer, answered) = oneshot::channel();
        let SampleRequest { system_prompt, messages, max_tokens } = request;
        let request = McpSample { system_prompt, messages, max_tokens };
        // If the session has ended, the answer is dropped.
        let _ = to_session.send(FromMcp::Sample { request, answer });
        Box::pin(async move { answered.await.unwrap_or_else(|_| Err("the session has ended".to_owned())) })
    })
}

/// Takes a question back that nobody waits for any more.
struct Withdrawal {
    /// `None` once it is answered.
    id: Option<String>,
    to_session: mpsc::UnboundedSender<FromMcp>,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            let _ = self.to_session.send(FromMcp::Withdrawn { id });
        }
    }
}
