//! Replacing the session by another one: new, opened, forked or cloned.
//!
//! The target is checked first, so that a refusal leaves everything as it is;
//! then extensions may object; then what runs is stopped and written down; then
//! the sessions change places.

use std::path::{Path, PathBuf};

use pith_protocol::Call;
use pith_protocol::answers::Cancelled;
use pith_protocol::commands::{Branch, CloneSession, Fork, NewSession, SwitchSession};
use pith_store::{Kind, Role, SessionStore, StoreError};
use serde_json::{Value, json};

use crate::activity::{JobEnd, Waiter};
use crate::compaction::Recovery;
use crate::extensions::Beginning;
use crate::reply::Reply;
use crate::session::Session;

/// A file read elsewhere, and who asked for it.
pub(crate) struct Opened {
    done: Done,
    result: Result<SessionStore, StoreError>,
}

/// What is to take the place of the session.
pub(crate) enum Target {
    New {
        parent: Option<String>,
        /// What an extension has written into it.
        drafts: Vec<Value>,
    },
    Opened(Box<SessionStore>),
    /// The file that is open already.
    Same,
    /// Everything before a prompt.
    Before(String),
    /// Everything up to an entry.
    UpTo(String),
    /// Everything up to what was the leaf when it was asked for.
    Whole(String),
}

/// How a replacement ended.
pub(crate) enum Replaced {
    /// An extension, or the host itself, did not want it.
    Cancelled,
    Done {
        /// The prompt a fork takes back.
        text: Option<String>,
    },
}

/// Gets the outcome, once. Whoever asked is answered even if it is dropped.
pub(crate) type Done = Box<dyn FnOnce(&mut Session, Result<Replaced, String>) + Send>;

/// A session that is ready to take over.
pub(crate) struct Successor {
    /// `None` for the file that is open already.
    pub store: Option<SessionStore>,
    pub beginning: Beginning,
    pub drafts: Vec<Value>,
    text: Option<String>,
}

impl Session {
    pub(crate) fn new_session(&mut self, call: NewSession, reply: Reply<NewSession>) {
        let target = Target::New { parent: call.parent_session, drafts: Vec::new() };
        self.replace(target, answers_cancelled(reply));
    }

    pub(crate) fn switch_session(&mut self, call: &SwitchSession, reply: Reply<SwitchSession>) {
        self.switch_to(&call.session_path, answers_cancelled(reply));
    }

    pub(crate) fn switch_to(&mut self, path: &str, done: Done) {
        let cwd = self.store.cwd().to_owned();
        let path = cwd.join(path);
        if self.is_current(&path) {
            return self.replace(Target::Same, done);
        }
        let task = self.jobs.spawn_blocking(move || {
            let result = SessionStore::resume(&path, &cwd);
            JobEnd::Opened(Box::new(Opened { done, result }))
        });
        self.opening = Some(task.id());
        self.hold_lane_for_replacement();
    }

    pub(crate) fn on_opened(&mut self, opened: Opened) {
        self.opening = None;
        match opened.result {
            Ok(store) => self.replace(Target::Opened(Box::new(store)), opened.done),
            Err(error) => self.end_replacement(opened.done, Err(error.to_string())),
        }
    }

    /// The reply went with the task, and is answered for that reason.
    pub(crate) fn on_opening_panic(&mut self) {
        self.opening = None;
        self.lane.release();
    }

    fn is_current(&self, path: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        self.store.path().is_some_and(|current| real(current).is_some_and(|current| real(path) == Some(current)))
    }

    pub(crate) fn fork(&mut self, call: Fork, reply: Reply<Fork>) {
        match self.is_forkable(&call.entry_id) {
            true => self.replace(Target::Before(call.entry_id), answers_text(reply)),
            false => self.answer(reply, Err(StoreError::NotForkable.to_string())),
        }
    }

    pub(crate) fn branch(&mut self, call: Branch, reply: Reply<Branch>) {
        match self.is_forkable(&call.entry_id) {
            true => self.replace(Target::Before(call.entry_id), answers_text(reply)),
            false => self.answer(reply, Err("Invalid entry ID for branching".to_owned())),
        }
    }

    pub(crate) fn is_forkable(&self, entry: &str) -> bool {
        self.store.tree().kind(entry) == Some(Kind::Message(Role::User))
    }

    pub(crate) fn clone_session(&mut self, reply: Reply<CloneSession>) {
        match self.store.leaf().map(str::to_owned) {
            Some(leaf) => self.replace(Target::Whole(leaf), answers_cancelled(reply)),
            None => self.answer(reply, Err(StoreError::NothingToClone.to_string())),
        }
    }

    /// Replaces the session once nobody objects and nothing runs.
    pub(crate) fn replace(&mut self, target: Target, done: Done) {
        match self.extensions.handle() {
            Some(_) => self.ask_to_replace(target, done),
            None => self.replace_when_settled(target, done),
        }
    }

    pub(crate) fn replace_when_settled(&mut self, target: Target, done: Done) {
        self.when_settled(Waiter::Replace(Box::new(move |session| session.replace_now(target, done))));
    }

    /// Nothing runs, and nobody objects.
    fn replace_now(&mut self, target: Target, done: Done) {
        match self.successor(target) {
            Ok(successor) => self.hand_over(successor, done),
            Err(error) => self.end_replacement(done, Err(error.to_string())),
        }
    }

    /// Makes the session that is to take over.
    fn successor(&self, target: Target) -> Result<Successor, StoreError> {
        let plain = |store, beginning| Successor { store, beginning, drafts: Vec::new(), text: None };
        Ok(match target {
            Target::New { parent, drafts } => {
                Successor { drafts, ..plain(Some(self.new_store(parent)), Beginning::New) }
            }
            Target::Opened(mut store) => {
                // Extensions may have taken their time to agree.
                store.refresh();
                plain(Some(*store), Beginning::Resume)
            }
            Target::Same => plain(None, Beginning::Resume),
            Target::Before(entry) => {
                let (store, text) = self.store.fork(&entry)?;
                Successor { text: Some(text), ..plain(Some(store), Beginning::Fork) }
            }
            Target::UpTo(entry) => plain(Some(self.store.fork_at(&entry)?), Beginning::Fork),
            Target::Whole(leaf) => plain(Some(self.store.clone_at(&leaf)?), Beginning::Fork),
        })
    }

    fn new_store(&self, parent_session: Option<String>) -> SessionStore {
        let cwd = self.store.cwd().to_owned();
        match self.store.path() {
            Some(path) => SessionStore::create(pith_store::NewSession {
                session_dir: path.parent().map_or_else(PathBuf::new, Path::to_owned),
                cwd,
                id: None,
                parent_session,
            }),
            None => SessionStore::in_memory(&cwd, None),
        }
    }

    /// The new session is in force; whoever asked for it hears that last.
    pub(crate) fn end_replacement(&mut self, done: Done, outcome: Result<Replaced, String>) {
        self.lane.release();
        done(self, outcome);
    }

    /// Puts another session in the place of this one. Nothing runs.
    pub(crate) fn adopt(&mut self, successor: Successor) {
        self.store.settle_leaf();
        match successor.store {
            Some(store) => {
                self.report_store();
                self.store = store;
            }
            // Only what was not written is forgotten.
            None => self.store.refresh(),
        }
        self.forget_unwritten();
        self.rest_soon();
        if self.workbench.base.cwd != self.store.cwd() {
            self.relocate();
        }
        self.restore_settings();
        self.append_drafts(successor.drafts);
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
        let (workbench, tools) = (self.relocation)(self.store.cwd(), &self.settings, None);
        let left = std::mem::replace(&mut self.workbench, workbench);
        self.tools.relocate(tools);
        // Another directory has other instructions, skills and project settings.
        self.read_again();
        self.jobs.spawn(async move {
            left.jobs.shutdown_all(pith_tools::process::SHUTDOWN_GRACE).await;
            JobEnd::Done
        });
    }
}

impl Successor {
    /// The directory it works in; `None` for the present one.
    pub fn cwd(&self) -> Option<&Path> {
        self.store.as_ref().map(SessionStore::cwd)
    }

    /// What whoever asked is told.
    pub fn outcome(&self) -> Replaced {
        Replaced::Done { text: self.text.clone() }
    }
}

fn answers_cancelled<C: Call<Answer = Cancelled>>(reply: Reply<C>) -> Done {
    Box::new(|session, outcome| {
        let answer = outcome.map(|outcome| Cancelled { cancelled: matches!(outcome, Replaced::Cancelled) });
        session.answer(reply, answer);
    })
}

fn answers_text<C: Call<Answer = Value>>(reply: Reply<C>) -> Done {
    Box::new(|session, outcome| {
        let answer = outcome.map(|outcome| match outcome {
            Replaced::Cancelled => json!({"cancelled": true}),
            Replaced::Done { text } => json!({"text": text, "cancelled": false}),
        });
        session.answer(reply, answer);
    })
}
