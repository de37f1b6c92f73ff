//! Questions of MCP servers on their way to the session, whose host shows them.

use std::sync::Arc;

use pith_mcp::Ask;
use pith_protocol::host::UiAnswer;
use pith_session::FromMcp;
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
