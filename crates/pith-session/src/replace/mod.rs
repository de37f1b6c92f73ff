//! Replacing the session by another one: new, opened, forked or cloned.
//!
//! The target is checked first, so that a refusal leaves everything as it is; then extensions may object; then what
//! runs is stopped and written down; then the sessions change places, with the extensions of each:
//!
//! ```text
//! Opening ─► Asking ─► Stopping ─► Leaving ─► StoppingAgain ─► Arriving ─► answered
//! (switch)  (extensions)          └────────── with extensions ─────────┘
//! ```

mod install;
mod reply;

use std::path::{Path, PathBuf};

use pith_ext::ExtensionSource;
use pith_protocol::commands::{Branch, CloneSession, Fork, NewSession, SwitchSession};
use pith_store::{Kind, Role, SessionStore, StoreError};
use serde_json::Value;

use crate::activity::AfterSettled;
use crate::extensions::Beginning;
use crate::jobs::{Job, JobEnd};
use crate::reply::Reply;
use crate::session::{CLOSING, Session};
pub(crate) use reply::{Replaced, ReplacementReply};

/// A replacement under way.
pub(crate) struct Replacement {
    reply: ReplacementReply,
    stage: Stage,
}

/// How far it is.
enum Stage {
    /// The file to switch to is being read.
    Opening,
    /// Extensions may object.
    Asking(Target),
    /// What runs is being stopped.
    Stopping(Target),
    /// The extensions of the session that is left say good-bye.
    Leaving(Arrival),
    /// What they started on their way out is being stopped.
    StoppingAgain(Arrival),
    /// The extensions of the next session are loaded, then told of it.
    Arriving(Arrival),
}

/// A file read elsewhere.
pub(crate) struct OpenedFile {
    pub result: Result<SessionStore, StoreError>,
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

/// A session that is ready to take the place of this one.
pub(crate) struct Successor {
    /// `None` for the file that is open already.
    store: Option<SessionStore>,
    beginning: Beginning,
    drafts: Vec<Value>,
    /// The prompt a fork takes back.
    text: Option<String>,
}

/// A successor and the extensions that come with it.
pub(crate) struct Arrival {
    /// `None` once it is in place.
    successor: Option<Successor>,
    cwd: PathBuf,
    pub sources: Vec<ExtensionSource>,
    pub beginning: Beginning,
    /// The file of the session before.
    pub previous: Option<String>,
    outcome: Replaced,
}

impl Replacement {
    /// Whether the next session is on its way to its extensions.
    pub fn is_arriving(&self) -> bool {
        matches!(self.stage, Stage::Arriving(_))
    }

    /// The session on its way, if it is.
    pub fn arrival(&self) -> Option<&Arrival> {
        match &self.stage {
            Stage::Arriving(arrival) => Some(arrival),
            _ => None,
        }
    }
}

impl Session {
    pub(crate) fn new_session(&mut self, call: NewSession, reply: Reply<NewSession>) {
        let target = Target::New { parent: call.parent_session, drafts: Vec::new() };
        self.replace(target, ReplacementReply::New(reply));
    }

    pub(crate) fn switch_session(&mut self, call: &SwitchSession, reply: Reply<SwitchSession>) {
        self.switch_to(&call.session_path, ReplacementReply::Switch(reply));
    }

    pub(crate) fn fork(&mut self, call: Fork, reply: Reply<Fork>) {
        if self.is_forkable(&call.entry_id) {
            self.replace(Target::Before(call.entry_id), ReplacementReply::Fork(reply));
        } else {
            self.answer(reply, Err(StoreError::NotForkable.to_string()));
        }
    }

    pub(crate) fn branch(&mut self, call: Branch, reply: Reply<Branch>) {
        if self.is_forkable(&call.entry_id) {
            self.replace(Target::Before(call.entry_id), ReplacementReply::Branch(reply));
        } else {
            self.answer(reply, Err("Invalid entry ID for branching".to_owned()));
        }
    }

    pub(crate) fn clone_session(&mut self, reply: Reply<CloneSession>) {
        match self.store.leaf().map(str::to_owned) {
            Some(leaf) => self.replace(Target::Whole(leaf), ReplacementReply::Clone(reply)),
            None => self.answer(reply, Err(StoreError::NothingToClone.to_string())),
        }
    }

    pub(crate) fn is_forkable(&self, entry: &str) -> bool {
        self.store.tree().kind(entry) == Some(Kind::Message(Role::User))
    }

    /// Reads another session file, elsewhere, and replaces the session by it.
    pub(crate) fn switch_to(&mut self, path: &str, reply: ReplacementReply) {
        let cwd = self.store.cwd().to_owned();
        let path = cwd.join(path);
        if self.is_current(&path) {
            return self.replace(Target::Same, reply);
        }
        self.replacement = Some(Replacement { reply, stage: Stage::Opening });
        self.jobs.spawn_blocking(Job::Opening, move || {
            JobEnd::Opened(Box::new(OpenedFile { result: SessionStore::resume(&path, &cwd) }))
        });
    }

    fn is_current(&self, path: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        self.store.path().is_some_and(|current| real(current).is_some_and(|current| real(path) == Some(current)))
    }

    pub(crate) fn on_opened(&mut self, opened: OpenedFile) {
        let Some(Replacement { reply, .. }) = self.replacement.take() else { return };
        match opened.result {
            Ok(store) => self.replace(Target::Opened(Box::new(store)), reply),
            Err(error) => self.end_replacement(reply, Err(error.to_string())),
        }
    }

    /// Replaces the session once nobody objects and nothing runs. The run goes on while extensions are asked.
    pub(crate) fn replace(&mut self, target: Target, reply: ReplacementReply) {
        if self.is_closing {
            return self.end_replacement(reply, Err(CLOSING.to_owned()));
        }
        let (event, question) = self.replacement_question(&target);
        let Some(handle) = self.listeners(event) else { return self.stop_to_replace(target, reply) };
        self.replacement = Some(Replacement { reply, stage: Stage::Asking(target) });
        self.ask_replacement_handlers(handle, event, question);
    }

    /// Called when extensions had the chance to object.
    pub(crate) fn on_replacement_judged(&mut self, is_refused: bool) {
        let Some(Replacement { reply, stage: Stage::Asking(target) }) = self.replacement.take() else { return };
        if is_refused {
            self.end_replacement(reply, Ok(Replaced::Cancelled));
        } else {
            self.stop_to_replace(target, reply);
        }
    }

    fn stop_to_replace(&mut self, target: Target, reply: ReplacementReply) {
        self.replacement = Some(Replacement { reply, stage: Stage::Stopping(target) });
        self.when_settled(AfterSettled::Replace);
    }

    /// Goes on with the replacement; nothing runs any more.
    pub(crate) fn replace_now(&mut self) {
        match self.replacement.take() {
            Some(Replacement { reply, stage: Stage::Stopping(target) }) => match self.successor(target) {
                Ok(successor) => self.hand_over(successor, reply),
                Err(error) => self.end_replacement(reply, Err(error.to_string())),
            },
            Some(Replacement { reply, stage: Stage::StoppingAgain(arrival) }) => self.arrive(arrival, reply),
            other => self.replacement = other,
        }
    }

    /// Makes the session that takes the place of this one.
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

    /// Lets the sessions change places: at once without extensions, after their good-bye otherwise. Nothing runs.
    fn hand_over(&mut self, successor: Successor, reply: ReplacementReply) {
        let cwd = successor.store.as_ref().map_or(self.store.cwd(), SessionStore::cwd).to_owned();
        let sources = if cwd == self.workbench().base.cwd {
            self.extensions.sources().to_vec()
        } else {
            (self.extensions.find)(&cwd)
        };
        let outcome = Replaced::Done { text: successor.text.clone() };
        let leaving = self.extension_handle().cloned();
        if leaving.is_none() && sources.is_empty() {
            self.install(successor);
            return self.end_replacement(reply, Ok(outcome));
        }
        if self.is_closing {
            // Extensions are about to hear of the end, and of nothing after it.
            return self.end_replacement(reply, Err(CLOSING.to_owned()));
        }
        let target = successor.store.as_ref().map_or(self.store.path(), SessionStore::path);
        let target = target.map(|path| path.to_string_lossy().into_owned());
        let (beginning, previous) = (successor.beginning, self.session_file());
        let arrival = Arrival { successor: Some(successor), cwd, sources, beginning, previous, outcome };
        match leaving {
            Some(handle) => {
                self.replacement = Some(Replacement { reply, stage: Stage::Leaving(arrival) });
                self.say_goodbye(handle, beginning, target);
            }
            None => self.arrive(arrival, reply),
        }
    }

    /// Called when the extensions of the session that is left have said good-bye.
    pub(crate) fn on_left(&mut self) {
        let Some(Replacement { reply, stage: Stage::Leaving(arrival) }) = self.replacement.take() else { return };
        self.replacement = Some(Replacement { reply, stage: Stage::StoppingAgain(arrival) });
        // A handler may have started something on its way out.
        self.when_settled(AfterSettled::Replace);
    }

    /// Loads the extensions of the next session; puts it in place at once if it has none.
    fn arrive(&mut self, arrival: Arrival, reply: ReplacementReply) {
        self.drop_requests();
        if arrival.sources.is_empty() {
            self.stop_extensions();
            if let Some(successor) = arrival.successor {
                self.install(successor);
            }
            return self.end_replacement(reply, Ok(arrival.outcome));
        }
        self.load_extensions(&arrival.cwd, arrival.sources.clone(), pith_ext::Loading::Again);
        self.replacement = Some(Replacement { reply, stage: Stage::Arriving(arrival) });
    }

    /// Puts the arriving session in place, if it is not yet. Extensions of its own may look at it from now on.
    pub(crate) fn install_successor(&mut self) {
        let Some(Replacement { stage: Stage::Arriving(arrival), .. }) = &mut self.replacement else { return };
        if let Some(successor) = arrival.successor.take() {
            self.install(successor);
        }
    }

    /// Called when the extensions of the next session know it.
    pub(crate) fn on_arrived(&mut self) {
        let Some(Replacement { reply, stage: Stage::Arriving(arrival) }) = self.replacement.take() else { return };
        self.end_replacement(reply, Ok(arrival.outcome));
    }

    /// Ends a replacement that a bug has stopped; a session that was arriving is put in place all the same.
    pub(crate) fn fail_replacement(&mut self) {
        self.install_successor();
        if let Some(Replacement { reply, .. }) = self.replacement.take() {
            self.end_replacement(reply, Err("Internal error: the session was not replaced".to_owned()));
        }
    }

    /// Answers whoever asked for a replacement; later commands go on after that.
    fn end_replacement(&mut self, reply: ReplacementReply, outcome: Result<Replaced, String>) {
        reply.send(&mut *self.out, outcome);
        self.admit_waiting();
    }
}
