//! Several sessions in one process: opens them, carries commands to them and answers back, and closes them.
//!
//! Knows no protocol: whoever serves clients gives each session an outbox, and gets a [`Seat`] to talk to it.
//! Everything here runs on one thread, within a `LocalSet`, because sessions do.

mod answers;
mod outbox;
mod seat;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pith_session::{Outbox, Session, SessionExit, SessionParts};
use pith_tools::process::SHUTDOWN_GRACE;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::open::{self, OpenRequest, OpenedSession, Shared};
use crate::rpc::release_memory;
use crate::sessions::SessionName;
use answers::Answers;
use outbox::SeatOutbox;
pub use seat::Seat;

/// How many commands may wait for a session.
const BACKLOG: usize = 64;

/// The sessions of this process.
#[derive(Default)]
pub struct Hub {
    shared: Shared,
    seats: RefCell<HashMap<String, Rc<Seat>>>,
    /// How many sessions are working.
    n_working: Arc<AtomicUsize>,
}

impl Hub {
    /// Called at the end of the process, when no session is left.
    pub fn end(&self) {
        self.shared.end();
    }

    /// Opens a session and serves it until it is closed. `outbox` makes the place its frames go to.
    pub async fn open<O: Outbox + 'static>(
        self: &Rc<Self>,
        request: OpenRequest,
        outbox: impl FnOnce(&OpenedSession) -> O,
    ) -> anyhow::Result<Rc<Seat>> {
        let opened = open::open(&self.shared, request).await?;
        let SessionName { id, file } = opened.session_name();
        anyhow::ensure!(!self.seats.borrow().contains_key(&id), "Session {id} is open already");
        opened.discover();
        let answers = Arc::new(Answers::default());
        let (inbox, lines) = mpsc::channel(BACKLOG);
        let out = SeatOutbox::new(outbox(&opened), answers.clone(), self.n_working.clone());
        let (cwd, named_models) = (opened.cwd().to_owned(), opened.named_models());
        let n_working = self.n_working.clone();
        // Memory is given back for the process, so only when none of its sessions works.
        let on_rest = move || {
            if n_working.load(Ordering::Relaxed) == 0 {
                release_memory();
            }
        };
        let parts = SessionParts { on_rest: Box::new(on_rest), ..opened.into_parts(Box::new(out)) };
        let (settings, workbench) = (parts.files.settings.clone(), parts.workbench.clone());
        let session = Session::new(parts);
        let ended = CancellationToken::new();
        let seat = Rc::new(Seat {
            id: id.clone(),
            cwd,
            settings,
            workbench,
            named_models,
            inbox,
            history: session.history(),
            answers,
            stop: CancellationToken::new(),
            ended: ended.clone(),
            is_unwanted: Rc::default(),
        });
        self.seats.borrow_mut().insert(id.clone(), seat.clone());
        let is_unwanted = seat.is_unwanted.clone();
        let place = Place { hub: self.clone(), id, _ended: ended.drop_guard() };
        let stop = seat.stop.clone();
        tokio::task::spawn_local(async move {
            // Gives the place up however this task ends.
            let place = place;
            let SessionExit { workbench, .. } = pith_session::with_name(&place.id, session.serve(lines, stop)).await;
            workbench.jobs.shutdown_all(SHUTDOWN_GRACE).await;
            if let Some(file) = file.filter(|_| is_unwanted.get()) {
                // What cannot be removed is listed, and can be deleted by its user.
                let _ = pith_store::remove(Path::new(&file));
            }
        });
        Ok(seat)
    }

    /// Waits for the end of a session that is being closed, so that it can be opened again.
    pub async fn wait_for_end(&self, id: &str) {
        let seat = self.seats.borrow().get(id).cloned();
        if let Some(seat) = seat.filter(|seat| seat.is_closing()) {
            seat.ended().await;
        }
    }

    /// Closes every session, also those that are opened meanwhile, and returns when nothing of them is left.
    pub async fn close_all(&self) {
        loop {
            let seats: Vec<_> = self.seats.borrow().values().cloned().collect();
            if seats.is_empty() {
                return;
            }
            seats.iter().for_each(|seat| seat.begin_to_close());
            for seat in seats {
                seat.ended().await;
            }
        }
    }
}

/// The entry of an open session. Dropped when its task ends, also by a panic.
struct Place {
    hub: Rc<Hub>,
    id: String,
    /// Tells those who wait for the end.
    _ended: DropGuard,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hub.seats.borrow_mut().remove(&self.id);
    }
}
