//! A sign-in to a server while a session uses it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{Server, Wanted};
use crate::state::State;

impl Server {
    /// Notes that a sign-in waits for the user, in the place of one that did before. Returns what is cancelled when
    /// nobody waits for it any more.
    pub fn begin_sign_in(&self) -> CancellationToken {
        let mut inner = self.inner();
        inner.sign_in.cancel();
        inner.sign_in = CancellationToken::new();
        inner.sign_in.clone()
    }

    /// Starts the server again after a sign-in, or says why there was none.
    pub async fn end_sign_in(self: &Arc<Self>, signed_in: Result<(), String>) {
        match signed_in {
            Ok(()) => {
                self.rest().await;
                // What comes of it is the state of the server.
                let _ = self.connect(Wanted::Asked).await;
            }
            Err(why) => {
                let mut inner = self.inner();
                if inner.state == State::NeedsAuth {
                    self.enter(&mut inner, State::NeedsAuth, Some(format!("the sign-in failed: {why}")));
                }
            }
        }
    }
}
