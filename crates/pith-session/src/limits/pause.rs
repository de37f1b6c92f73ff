//! Pauses: nothing is asked of the model and no call starts until the host resumes, and limits of time stand still. What
//! runs goes on, unless commands are frozen.

use pith_agent::Turn;
use pith_protocol::Event;
use pith_protocol::commands::{Pause, Resume};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::reply::Reply;
use crate::session::Session;

/// A pause of the session.
pub(super) struct Paused {
    since: Instant,
    /// Whether the commands that ran were stopped.
    is_frozen: bool,
    /// A run that waits for its next request.
    turn: Option<oneshot::Sender<Turn>>,
}

impl Session {
    pub(crate) fn is_paused(&self) -> bool {
        self.governor.paused.is_some()
    }

    pub(crate) fn pause(&mut self, call: &Pause, reply: Reply<Pause>) {
        let freezes = call.freeze == Some(true);
        let was_paused = self.is_paused();
        let paused =
            self.governor.paused.get_or_insert_with(|| Paused { since: Instant::now(), is_frozen: false, turn: None });
        let is_new = !was_paused || freezes && !paused.is_frozen;
        paused.is_frozen |= freezes;
        let frozen = paused.is_frozen;
        self.governor.hold.send_modify(|hold| (hold.is_paused, hold.is_time_held) = (true, true));
        if freezes {
            self.workbench().jobs.freeze();
        }
        self.answer(reply, Ok(()));
        if is_new {
            self.out.event(&Event::Paused { frozen });
        }
    }

    /// Called when there are other commands than before: those of another directory.
    pub(crate) fn freeze_if_paused(&self) {
        if self.governor.paused.as_ref().is_some_and(|paused| paused.is_frozen) {
            self.workbench().jobs.freeze();
        }
    }

    pub(crate) fn resume(&mut self, reply: Reply<Resume>) {
        let Some(paused) = self.governor.paused.take() else { return self.answer(reply, Ok(())) };
        if paused.is_frozen {
            self.workbench().jobs.thaw();
        }
        self.governor.prompt.postpone(paused.since.elapsed());
        self.governor.hold.send_modify(|hold| (hold.is_paused, hold.is_time_held) = (false, false));
        self.answer(reply, Ok(()));
        self.out.event(&Event::Resumed);
        if let Some(turn) = paused.turn {
            self.on_servers_ready(turn);
        }
    }

    /// Keeps a run waiting for its next request while the session is paused; returns the channel if it is not.
    pub(crate) fn hold_turn(&mut self, turn: oneshot::Sender<Turn>) -> Option<oneshot::Sender<Turn>> {
        let is_stopping = self.activity.is_stopping();
        match &mut self.governor.paused {
            Some(paused) if !is_stopping => {
                paused.turn = Some(turn);
                None
            }
            _ => Some(turn),
        }
    }

    /// Called when the run is stopped: one that waits for its next request ends.
    pub(crate) fn release_turn(&mut self) {
        if let Some(turn) = self.governor.paused.as_mut().and_then(|paused| paused.turn.take()) {
            self.on_servers_ready(turn);
        }
    }
}
