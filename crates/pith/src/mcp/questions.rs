//! Questions of MCP servers on their way to the session: its host shows those to the user, its model answers others.

use std::sync::Arc;

use pith_mcp::{Ask, Sample, SampleRequest};
use pith_protocol::host::UiAnswer;
use pith_session::{FromMcp, McpSample};
use tokio::sync::{mpsc, oneshot};

/// Returns what servers ask with.
pub fn ask(to_session: mpsc::UnboundedSender<FromMcp>) -> Ask {
    Arc::new(move |dialog| {
        let id = uuid::Uuid::new_v4().to_string();
        let (answer, answered) = oneshot::channel();
        let withdrawal = Withdrawal { id: Some(id.clone()), to_session: to_session.clone() };
        // If the session has ended, the answer is dropped and counts as cancelled.
        let _ = to_session.send(FromMcp::Question { id, dialog, answer });
        Box::pin(async move {
            let mut withdrawal = withdrawal;
            let answer = answered.await.unwrap_or(UiAnswer::Cancelled);
            withdrawal.id = None;
            answer
        })
    })
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
