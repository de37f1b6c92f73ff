//! Replacing the session by another one: new, opened, forked or cloned.
//!
//! The target is checked first, so that a refusal leaves everything as it is;
//! then what runs is stopped and written down; then the sessions change places.

use std::path::{Path, PathBuf};

use pith_protocol::Call;
use pith_protocol::answers::Cancelled;
use pith_protocol::commands::{Branch, CloneSession, Fork, NewSession, SwitchSession};
use pith_store::{Kind, Role, SessionStore, StoreError};
use serde_json::{Value, json};

use crate::activity::{JobEnd, Waiter};
use crate::compaction::Recovery;
use crate::reply::Reply;
use crate::session::Session;

/// A file read elsewhere, and who asked for it.
pub(crate) struct Opened {
    reply: Reply<SwitchSession>,
    result: Result<SessionStore, StoreError>,
}

impl Session {
    pub(crate) fn switch_session(&mut self, call: &SwitchSession, reply: Reply<SwitchSession>) {
        let cwd = self.store.cwd().to_owned();
        let path = cwd.join(&call.session_path);
        if self.is_current(&path) {
            return self.when_settled(Waiter::Reload(reply));
        }
        let task = self.jobs.spawn_blocking(move || {
            let result = SessionStore::resume(&path, &cwd);
            JobEnd::Opened(Box::new(Opened { reply, result }))
        });
        self.opening = Some(task.id());
    }

    pub(crate) fn on_opened(&mut self, opened: Opened) {
        self.opening = None;
        match opened.result {
            Ok(store) => self.when_settled(Waiter::Switch(opened.reply, Box::new(store))),
            Err(error) => self.answer(opened.reply, Err(error.to_string())),
        }
    }

    fn is_current(&self, path: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        self.store.path().is_some_and(|current| real(current).is_some_and(|current| real(path) == Some(current)))
    }

    pub(crate) fn fork(&mut self, call: Fork, reply: Reply<Fork>) {
        match self.is_forkable(&call.entry_id) {
            true => self.when_settled(Waiter::Fork(reply, call.entry_id)),
            false => self.answer(reply, Err(StoreError::NotForkable.to_string())),
        }
    }

    pub(crate) fn branch(&mut self, call: Branch, reply: Reply<Branch>) {
        match self.is_forkable(&call.entry_id) {
            true => self.when_settled(Waiter::Branch(reply, call.entry_id)),
            false => self.answer(reply, Err("Invalid entry ID for branching".to_owned())),
        }
    }

    fn is_forkable(&self, entry: &str) -> bool {
        self.store.tree().kind(entry) == Some(Kind::Message(Role::User))
    }

    pub(crate) fn clone_session(&mut self, reply: Reply<CloneSession>) {
        match self.store.leaf() {
            Some(_) => self.when_settled(Waiter::Clone(reply)),
            None => self.answer(reply, Err(StoreError::NothingToClone.to_string())),
        }
    }

    pub(crate) fn start_new(&mut self, parent_session: Option<String>, reply: Reply<NewSession>) {
        let cwd = self.store.cwd().to_owned();
        let store = match self.store.path() {
            Some(path) => SessionStore::create(pith_store::NewSession {
                session_dir: path.parent().map_or_else(PathBuf::new, Path::to_owned),
                cwd,
                id: None,
                parent_session,
            }),
            None => SessionStore::in_memory(&cwd, None),
        };
        self.adopt(store);
        self.answer(reply, Ok(Cancelled { cancelled: false }));
    }

    pub(crate) fn start_opened(&mut self, store: SessionStore, reply: Reply<SwitchSession>) {
        self.adopt(store);
        self.answer(reply, Ok(Cancelled { cancelled: false }));
    }

    /// The file that is open already: only what was not written is forgotten.
    pub(crate) fn reopen(&mut self, reply: Reply<SwitchSession>) {
        self.store.settle_leaf();
        self.store.refresh();
        self.forget_unwritten();
        self.restore_settings();
        self.answer(reply, Ok(Cancelled { cancelled: false }));
    }

    pub(crate) fn start_fork<C: Call<Answer = Value>>(&mut self, entry: &str, reply: Reply<C>) {
        let answer = self.store.fork(entry).map(|(store, text)| {
            self.adopt(store);
            json!({"text": text, "cancelled": false})
        });
        self.answer(reply, answer.map_err(|error| error.to_string()));
    }

    pub(crate) fn start_clone(&mut self, reply: Reply<CloneSession>) {
        let answer = self.store.clone_branch().map(|store| {
            self.adopt(store);
            Cancelled { cancelled: false }
        });
        self.answer(reply, answer.map_err(|error| error.to_string()));
    }

    /// Puts another session in the place of this one. Nothing runs.
    fn adopt(&mut self, store: SessionStore) {
        self.store.settle_leaf();
        self.report_store();
        self.store = store;
        self.forget_unwritten();
        if self.workbench.base.cwd != self.store.cwd() {
            self.relocate();
        }
        self.restore_settings();
    }

    fn forget_unwritten(&mut self) {
        self.queues.forget();
        self.shell.forget_deferred();
        self.extensions.errands.forget();
        self.recovery = Recovery::default();
    }

    /// Model and level of the session, as far as they can be used here.
    fn restore_settings(&mut self) {
        if let Some(warning) = self.models.restore(self.store.settings()) {
            crate::state::log_line(&format!("Warning: {warning}"));
        }
        self.begin();
        self.report_store();
    }

    /// Moves the tools to the session's working directory; what they left running elsewhere ends.
    fn relocate(&mut self) {
        let (workbench, tools) = (self.relocation)(self.store.cwd());
        self.tools.relocate(tools);
        // Another directory has other instructions, skills and project settings.
        self.read_again();
        let left = std::mem::replace(&mut self.workbench, workbench);
        self.jobs.spawn(async move {
            left.jobs.shutdown_all(pith_tools::process::SHUTDOWN_GRACE).await;
            JobEnd::Done
        });
    }
}
