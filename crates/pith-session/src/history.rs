//! The conversation as it is stored, for those in this process who show it.

use pith_store::StoredBranch;
use tokio::sync::{mpsc, oneshot};

use crate::session::Session;

/// Somebody who wants the conversation.
pub(crate) type Asker = oneshot::Sender<StoredBranch>;

/// Asks a session for its conversation. Unlike the answer of a command, which is one text, this is read bit by bit.
///
/// Sends to the task of the session; closed when that task has ended.
pub struct History(mpsc::UnboundedSender<Asker>);

impl History {
    /// Returns the branch as it is now; `None` if the session has ended.
    pub async fn branch(&self) -> Option<StoredBranch> {
        let (asker, branch) = oneshot::channel();
        self.0.send(asker).ok()?;
        branch.await.ok()
    }
}

/// Those who wait for the conversation.
pub(crate) struct HistoryAskers {
    /// Copied for everybody who may ask. Kept here, so that the channel never closes while the session lives.
    sender: mpsc::UnboundedSender<Asker>,
    /// Read by the task of the session; those who ask after its end hear that there is nobody.
    receiver: mpsc::UnboundedReceiver<Asker>,
}

impl HistoryAskers {
    pub fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        HistoryAskers { sender, receiver }
    }

    pub async fn next(&mut self) -> Option<Asker> {
        self.receiver.recv().await
    }
}

impl Session {
    /// Returns what asks this session for its conversation.
    pub fn history(&self) -> History {
        History(self.history.sender.clone())
    }

    pub(crate) fn tell_history(&mut self, asker: Asker) {
        // Whoever asked may have gone.
        let _ = asker.send(self.store.stored_branch());
        self.out.conversation_read();
    }
}
