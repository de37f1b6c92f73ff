//! Replaces the session by another one: new, opened, forked or cloned.
//!
//! The target is checked first, so that a refusal leaves everything as it is. Then extensions may refuse, then
//! everything that runs is stopped and stored, then the next session and its extensions take the place of this one:
//!
//! ```text
//! Opening ─► Asking ─► Stopping ─► Leaving ─► StoppingAgain ─► Arriving ─► answered
//! (switch)  (extensions)          └────────── with extensions ─────────┘
//! ```

mod install;
mod reply;

use crate::failure;
use pith_protocol::{CommandError, ErrorCode};
use std::path::{Path, PathBuf};

use pith_config::Diagnostic as Finding;
use pith_ext::ExtensionSource;
use pith_protocol::answers::Restored;
use pith_protocol::commands::{Branch, CloneSession, Fork, NewSession, SwitchSession};
use pith_store::{Kind, Role, SessionStore, StoreError};
use serde_json::Value;
use tracing::debug;

use crate::activity::AfterSettled;
use crate::admission::Step;
use crate::checkpoints::Since;
use crate::extensions::StartReason;
use crate::jobs::{Job, JobEnd};
use crate::log::log_line;
use crate::reply::Reply;
use crate::session::Session;
pub(crate) use reply::{ReplacementOutcome, ReplacementReply};

/// A replacement under way.
pub(crate) struct Replacement {
    reply: ReplacementReply,
    stage: Stage,
}

/// Where the replacement stands.
enum Stage {
    /// The file to switch to is being read.
    Opening,
    /// Extensions may refuse.
    Asking(Target),
    /// Everything that runs is being stopped.
    Stopping(Target),
    /// The extensions of the session that is left handle `session_shutdown`.
    Leaving(Arrival),
    /// Whatever those handlers started is being stopped.
    StoppingAgain(Arrival),
    /// The extensions of the next session are loaded, then handle `session_start`.
    Arriving(Arrival),
}

/// A session file that was read in the background.
pub(crate) struct OpenedFile {
    pub result: Result<SessionStore, StoreError>,
}

/// What is to replace the session.
pub(crate) enum Target {
    New {
        parent: Option<String>,
        /// Entries that an extension wrote for it.
        drafts: Vec<Value>,
    },
    Opened(Box<SessionStore>),
    /// The file that is open already.
    Same,
    /// A fork with everything before a prompt.
    Before(String),
    /// A fork with everything up to an entry.
    UpTo(String),
    /// A clone up to the entry that was the leaf when the command arrived.
    Whole(String),
}

/// The session that is about to replace this one.
pub(crate) struct Successor {
    /// `None` for the file that is open already.
    store: Option<SessionStore>,
    start_reason: StartReason,
    drafts: Vec<Value>,
    /// The text of the prompt that a fork leaves out.
    text: Option<String>,
}

/// A successor and the extensions it comes with.
pub(crate) struct Arrival {
    /// `None` once it is in place.
    successor: Option<Successor>,
    cwd: PathBuf,
    pub sources: Vec<ExtensionSource>,
    pub start_reason: StartReason,
    /// The file of the previous session.
    pub previous: Option<String>,
    outcome: ReplacementOutcome,
}

impl Target {
    /// For logs.
    fn word(&self) -> &'static str {
        match self {
            Target::New { .. } => "a new session",
            Target::Opened(_) => "a session file",
            Target::Same => "the same file",
            Target::Before(_) | Target::UpTo(_) => "a fork",
            Target::Whole(_) => "a clone",
        }
    }
}

impl Replacement {
    /// Whether the extensions of the next session are being loaded or told of it.
    pub fn is_arriving(&self) -> bool {
        matches!(self.stage, Stage::Arriving(_))
    }

    /// The next session, if its extensions are being loaded or told of it.
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
            let undone = self.undone_by_fork(&call.entry_id, call.restore_files);
            self.replace(Target::Before(call.entry_id), ReplacementReply::Fork(reply, undone));
        } else {
            self.answer(reply, Err(StoreError::NotForkable.into()));
        }
    }

    pub(crate) fn branch(&mut self, call: Branch, reply: Reply<Branch>) {
        if self.is_forkable(&call.entry_id) {
            let undone = self.undone_by_fork(&call.entry_id, call.restore_files);
            self.replace(Target::Before(call.entry_id), ReplacementReply::Branch(reply, undone));
        } else {
            self.answer(reply, Err(CommandError::new(ErrorCode::EntryNotFound, "Invalid entry ID for branching")));
        }
    }

    pub(crate) fn clone_session(&mut self, reply: Reply<CloneSession>) {
        match self.store.leaf().map(str::to_owned) {
            Some(leaf) => self.replace(Target::Whole(leaf), ReplacementReply::Clone(reply)),
            None => self.answer(reply, Err(StoreError::NothingToClone.into())),
        }
    }

    /// The calls that a fork leaves out, if the files they changed are to go back.
    fn undone_by_fork(&self, entry: &str, restore_files: Option<bool>) -> Option<Since> {
        let leaf = self.store.destination(entry).ok().filter(|_| restore_files == Some(true))?.leaf;
        let entries = self.store.left_behind(leaf.as_deref()).ok()?;
        Some(Since::Entries { session: self.store.id().to_owned(), entries })
    }

    pub(crate) fn is_forkable(&self, entry: &str) -> bool {
        self.store.tree().kind(entry) == Some(Kind::Message(Role::User))
    }

    /// Reads another session file in the background, then replaces the session by it.
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
            Err(error) => self.end_replacement(reply, Err(error.into())),
        }
    }

    /// Replaces the session once extensions agree and nothing runs. Runs go on while extensions are asked.
    pub(crate) fn replace(&mut self, target: Target, reply: ReplacementReply) {
        if self.is_closing {
            return self.end_replacement(reply, Err(failure::closing()));
        }
        if !self.options.is_replaceable {
            let problem = format!("{} cannot take the place of this session", target.word());
            log_line(&problem);
            self.project.note(Finding::without_path("session_kept", problem));
            return self.end_replacement(reply, Ok(ReplacementOutcome::Cancelled));
        }
        debug!(target: "pith::session", by = target.word(), "replacement: extensions may object");
        let (event, question) = self.replacement_question(&target);
        let Some(handle) = self.listeners(event) else { return self.stop_to_replace(target, reply) };
        self.replacement = Some(Replacement { reply, stage: Stage::Asking(target) });
        self.ask_replacement_handlers(handle, event, question);
    }

    /// Called when extensions have agreed or refused.
    pub(crate) fn on_replacement_decided(&mut self, is_refused: bool) {
        let Some(Replacement { reply, stage: Stage::Asking(target) }) = self.replacement.take() else { return };
        if is_refused {
            self.end_replacement(reply, Ok(ReplacementOutcome::Cancelled));
        } else {
            self.stop_to_replace(target, reply);
        }
    }

    fn stop_to_replace(&mut self, target: Target, reply: ReplacementReply) {
        debug!(target: "pith::session", by = target.word(), "replacement: what runs is stopped");
        self.replacement = Some(Replacement { reply, stage: Stage::Stopping(target) });
        self.when_settled(AfterSettled::Replace);
    }

    /// Continues the replacement; nothing runs any more.
    pub(crate) fn replace_now(&mut self) {
        match self.replacement.take() {
            Some(Replacement { reply, stage: Stage::Stopping(target) }) => match self.successor(target) {
                Ok(successor) => self.hand_over(successor, reply),
                Err(error) => self.end_replacement(reply, Err(error.into())),
            },
            Some(Replacement { reply, stage: Stage::StoppingAgain(arrival) }) => self.load_successor(arrival, reply),
            other => self.replacement = other,
        }
    }

    /// Makes the session that replaces this one.
    fn successor(&self, target: Target) -> Result<Successor, StoreError> {
        let plain = |store, start_reason| Successor { store, start_reason, drafts: Vec::new(), text: None };
        Ok(match target {
            Target::New { parent, drafts } => {
                Successor { drafts, ..plain(Some(self.new_store(parent)), StartReason::New) }
            }
            Target::Opened(mut store) => {
                // Other processes may have written to the file while extensions decided.
                store.refresh();
                plain(Some(*store), StartReason::Resume)
            }
            Target::Same => plain(None, StartReason::Resume),
            Target::Before(entry) => {
                let (store, text) = self.store.fork(&entry)?;
                Successor { text: Some(text), ..plain(Some(store), StartReason::Fork) }
            }
            Target::UpTo(entry) => plain(Some(self.store.fork_at(&entry)?), StartReason::Fork),
            Target::Whole(leaf) => plain(Some(self.store.clone_at(&leaf)?), StartReason::Fork),
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

    /// Replaces the session: at once without extensions, otherwise after they have handled `session_shutdown`. Nothing
    /// runs.
    fn hand_over(&mut self, successor: Successor, reply: ReplacementReply) {
        let cwd = successor.store.as_ref().map_or(self.store.cwd(), SessionStore::cwd).to_owned();
        let sources = if cwd == self.workbench().base.cwd {
            self.extensions.sources().to_vec()
        } else {
            (self.extensions.find)(&cwd)
        };
        let outcome = ReplacementOutcome::Done { text: successor.text.clone(), files: None };
        let leaving = self.extension_handle().cloned();
        if leaving.is_none() && sources.is_empty() {
            self.install(successor);
            return self.end_replacement(reply, Ok(outcome));
        }
        if self.is_closing {
            // Extensions are about to be told of the end of the process; nothing may follow that.
            return self.end_replacement(reply, Err(failure::closing()));
        }
        let target = successor.store.as_ref().map_or(self.store.path(), SessionStore::path);
        let target = target.map(|path| path.to_string_lossy().into_owned());
        let (start_reason, previous) = (successor.start_reason, self.session_file());
        let arrival = Arrival { successor: Some(successor), cwd, sources, start_reason, previous, outcome };
        match leaving {
            Some(handle) => {
                self.replacement = Some(Replacement { reply, stage: Stage::Leaving(arrival) });
                self.announce_shutdown(handle, start_reason, target);
            }
            None => self.load_successor(arrival, reply),
        }
    }

    /// Called when the extensions of the session that is left have handled `session_shutdown`.
    pub(crate) fn after_shutdown(&mut self) {
        let Some(Replacement { reply, stage: Stage::Leaving(arrival) }) = self.replacement.take() else { return };
        self.replacement = Some(Replacement { reply, stage: Stage::StoppingAgain(arrival) });
        // A handler may have started something.
        self.when_settled(AfterSettled::Replace);
    }

    /// Loads the extensions of the next session; puts it in place at once if it has none.
    fn load_successor(&mut self, arrival: Arrival, reply: ReplacementReply) {
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

    /// Puts the next session in place, if it is not yet. Called before anything its extensions ask is answered.
    pub(crate) fn install_successor(&mut self) {
        let Some(Replacement { stage: Stage::Arriving(arrival), .. }) = &mut self.replacement else { return };
        if let Some(successor) = arrival.successor.take() {
            self.install(successor);
        }
    }

    /// Called when the extensions of the next session have handled `session_start`.
    pub(crate) fn finish_replacement(&mut self) {
        let Some(Replacement { reply, stage: Stage::Arriving(arrival) }) = self.replacement.take() else { return };
        self.end_replacement(reply, Ok(arrival.outcome));
    }

    /// Ends a replacement whose task panicked. A session whose extensions were being loaded is put in place
    /// nevertheless.
    pub(crate) fn fail_replacement(&mut self) {
        self.install_successor();
        if let Some(Replacement { reply, .. }) = self.replacement.take() {
            self.end_replacement(reply, Err(failure::internal("Internal error: the session was not replaced")));
        }
    }

    /// Answers the command, after files have gone back if they are to, then serves later ones.
    fn end_replacement(&mut self, mut reply: ReplacementReply, outcome: Result<ReplacementOutcome, CommandError>) {
        debug!(target: "pith::session", is_ok = outcome.is_ok(), id = self.store.id(), "replacement: ended");
        if let Ok(ReplacementOutcome::Done { text, .. }) = &outcome
            && let Some(since) = reply.take_undone()
        {
            let (text, work) = (text.clone(), self.put_back(since));
            return self.begin_step(async move { Step::ForkRestored { reply, text, outcome: work.await } });
        }
        reply.send(&mut *self.out, outcome);
        self.admit_waiting();
    }

    pub(crate) fn on_fork_restored(
        &mut self,
        reply: ReplacementReply,
        text: Option<String>,
        outcome: Result<Restored, CommandError>,
    ) {
        let files = Some(self.take_restored(outcome));
        reply.send(&mut *self.out, Ok(ReplacementOutcome::Done { text, files }));
    }
}
