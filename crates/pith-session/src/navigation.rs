//! Reading the session's entry tree, moving in it, and listing other sessions.

use pith_ext::EventName;
use pith_protocol::answers::{ForkMessage, ForkMessages, ListedSession, Navigated, Restored, Sessions};
use pith_protocol::commands::{GetEntries, GetTree, ListSessions, NavigateTree, SetLabel};
use pith_protocol::{CommandError, Entry, ErrorCode};
use pith_store::{
    BranchSummaryEntry, Destination, EntryId, ForkMessage as StoredPrompt, Kind, SessionSummary, StoreError,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::admission::Step;
use crate::checkpoints::Since;
use crate::compaction::{Author, BranchMaterial, FileLists, Summary, SummaryFailure, SummaryTask};
use crate::jobs::{Job, JobEnd};
use crate::reply::Reply;
use crate::session::Session;

const BUSY: &str = "Cannot navigate the session tree while a run or compaction is active";

/// A move that waits for the summary of the branch it leaves.
pub(crate) struct Navigation {
    reply: Reply<NavigateTree>,
    /// The new leaf.
    leaf: Option<EntryId>,
    /// The text of the user message that was navigated to; the host may edit and send it again.
    text: Option<String>,
    target: String,
    label: Option<String>,
    /// The entries whose calls are undone, if files are to go back.
    undone: Option<Vec<EntryId>>,
}

/// A move that has happened and waits for files that go back.
pub(crate) struct Moved {
    from_id: Option<EntryId>,
    has_moved: bool,
    author: Option<Author>,
    answer: Navigated,
    reply: Reply<NavigateTree>,
}

impl Session {
    pub(crate) fn get_entries(&mut self, call: &GetEntries, reply: Reply<GetEntries>) {
        let entries = self.store.tree().entries_json(call.since.as_deref()).map_err(CommandError::from);
        let answer = entries.map(|entries| format!("{{\"entries\":{entries},\"leafId\":{}}}", self.leaf_json()));
        reply.send_json(&mut *self.out, answer);
    }

    pub(crate) fn get_tree(&mut self, call: &GetTree, reply: Reply<GetTree>) {
        let tree = self.store.tree();
        let (name, tree) =
            if call.flat == Some(true) { ("nodes", tree.flat_tree_json()) } else { ("tree", tree.tree_json()) };
        let answer = format!("{{\"{name}\":{tree},\"leafId\":{}}}", self.leaf_json());
        reply.send_json(&mut *self.out, Ok(answer));
    }

    fn leaf_json(&self) -> String {
        pith_protocol::json::to_string(&self.store.leaf())
    }

    pub(crate) fn fork_messages(&self) -> ForkMessages {
        let message =
            |message: StoredPrompt| ForkMessage { entry_id: message.entry_id.to_string(), text: message.text };
        ForkMessages { messages: self.store.fork_messages().into_iter().map(message).collect() }
    }

    pub(crate) fn set_label(&mut self, call: &SetLabel, reply: Reply<SetLabel>) {
        let label = call.label.as_deref().map(str::trim).filter(|label| !label.is_empty());
        let result = self.store.append_label(&call.entry_id, label);
        self.report_store();
        self.answer(reply, result.map(|_| ()).map_err(CommandError::from));
    }

    /// Lists sessions in a background task: reading a thousand files takes a while.
    pub(crate) fn list_sessions(&mut self, call: &ListSessions, reply: Reply<ListSessions>) {
        let (places, cwd) = (self.places.clone(), self.store.cwd().to_owned());
        // Lists the directory where the next session would be created.
        let directory = self.store.path().and_then(|path| path.parent()).map_or(places.dir, |path| path.to_owned());
        let all = call.all.unwrap_or(false);
        self.jobs.spawn_blocking(Job::Background, move || {
            let sessions =
                if all { pith_store::list_all(&places.root) } else { pith_store::list(&directory, Some(&cwd)) };
            JobEnd::Listed { reply, sessions }
        });
    }

    pub(crate) fn on_listed(&mut self, reply: Reply<ListSessions>, sessions: Vec<SessionSummary>) {
        let shown = |session: SessionSummary| ListedSession {
            path: session.path.to_string_lossy().into_owned(),
            id: session.id,
            cwd: session.cwd,
            name: session.name,
            parent_session_path: session.parent_session_path,
            created: session.created,
            modified: session.modified,
            message_count: session.message_count,
            first_message: session.first_message,
        };
        self.answer(reply, Ok(Sessions { sessions: sessions.into_iter().map(shown).collect() }));
    }

    pub(crate) fn navigate_tree(&mut self, call: NavigateTree, reply: Reply<NavigateTree>) {
        if self.activity.is_busy() {
            return self.answer(reply, Err(CommandError::new(ErrorCode::Busy, BUSY)));
        }
        let destination = match self.destination(&call.target_id) {
            Ok(destination) => destination,
            Err(error) => return self.answer(reply, Err(error.into())),
        };
        let is_move = self.store.leaf() != Some(&call.target_id);
        match self.listeners(EventName::SessionBeforeTree).filter(|_| is_move) {
            Some(handle) => {
                let preparation = self.preparation(&call, destination.leaf.as_deref());
                self.ask_to_navigate(handle, call, preparation, reply);
            }
            None => self.navigate_now(call, None, reply),
        }
    }

    /// The `preparation` that `session_before_tree` handlers get.
    fn preparation(&self, call: &NavigateTree, leaf: Option<&str>) -> Value {
        let tree = self.store.tree();
        let left = self.store.left_behind(leaf).unwrap_or_default();
        let ancestor = left.first().map_or(self.store.leaf(), |oldest| tree.parent(oldest).map(|id| &**id));
        let mut preparation = json!({
            "targetId": call.target_id,
            "oldLeafId": self.store.leaf(),
            "commonAncestorId": ancestor,
            "entriesToSummarize": left.iter().filter_map(|id| tree.entry(id)).collect::<Vec<_>>(),
            "userWantsSummary": call.summarize.unwrap_or(false),
        });
        if let Some(instructions) = &call.custom_instructions {
            preparation["customInstructions"] = json!(instructions);
        }
        if let Some(replaces) = call.replace_instructions {
            preparation["replaceInstructions"] = json!(replaces);
        }
        if let Some(label) = &call.label {
            preparation["label"] = json!(label);
        }
        preparation
    }

    /// Where a move leads. Moving to the current leaf changes nothing.
    fn destination(&self, target: &str) -> Result<Destination, StoreError> {
        let destination = self.store.destination(target)?;
        if self.store.leaf() == Some(target) {
            return Ok(Destination { leaf: Some(target.into()), text: None });
        }
        Ok(destination)
    }

    /// Moves, with the summary an extension has written or one that the model writes now.
    pub(crate) fn navigate_now(&mut self, call: NavigateTree, given: Option<Summary>, reply: Reply<NavigateTree>) {
        if self.activity.is_busy() {
            return self.answer(reply, Err(CommandError::new(ErrorCode::Busy, BUSY)));
        }
        if let Err(why) = self.navigate(call, given, reply) {
            let (why, reply) = *why;
            self.answer(reply, Err(why));
        }
    }

    fn navigate(
        &mut self,
        call: NavigateTree,
        given: Option<Summary>,
        reply: Reply<NavigateTree>,
    ) -> Result<(), Box<(CommandError, Reply<NavigateTree>)>> {
        let destination = match self.destination(&call.target_id) {
            Ok(destination) => destination,
            Err(error) => return Err(Box::new((error.into(), reply))),
        };
        let left = self.store.left_behind(destination.leaf.as_deref()).unwrap_or_default();
        let navigation = Navigation {
            reply,
            leaf: destination.leaf,
            text: destination.text,
            target: call.target_id,
            label: call.label,
            undone: (call.restore_files == Some(true)).then(|| left.clone()),
        };
        if given.is_some() || !call.summarize.unwrap_or(false) || left.is_empty() {
            self.finish_move(navigation, given);
            return Ok(());
        }
        let model = match self.models.usable() {
            Ok(model) => model.clone(),
            Err(why) => return Err(Box::new((why, navigation.reply))),
        };
        let messages = self.store.messages_left_behind(navigation.leaf.as_deref()).unwrap_or_default();
        let material = BranchMaterial::new(
            &messages,
            self.files_of_summaries(&left),
            self.models.window(&model),
            self.settings.branch_summary.reserve_tokens,
            call.custom_instructions.as_deref(),
            call.replace_instructions.unwrap_or(false),
        );
        if let Err(error) = self.store.lock() {
            return Err(Box::new((error.into(), navigation.reply)));
        }
        let cancel = CancellationToken::new();
        self.write_summary(model, cancel.clone(), SummaryTask::Branch(material), self.summary_trace());
        self.activity.begin_navigation(cancel, navigation);
        Ok(())
    }

    /// The files named in branch summaries among the entries.
    fn files_of_summaries(&self, entries: &[EntryId]) -> FileLists {
        let tree = self.store.tree();
        let summaries =
            entries.iter().filter(|id| tree.kind(id) == Some(Kind::BranchSummary)).filter_map(|id| tree.entry(id));
        let own = summaries.filter(|entry| entry.get("fromHook") != Some(&Value::Bool(true)));
        own.fold(FileLists::default(), |lists, entry| lists.and(FileLists::from_details(entry.get("details"))))
    }

    pub(crate) fn finish_navigation(&mut self, navigation: Navigation, result: Result<Summary, SummaryFailure>) {
        self.store.unlock();
        match result {
            Ok(summary) => self.finish_move(navigation, Some(summary)),
            Err(SummaryFailure::Cancelled) => self.answer(navigation.reply, Ok(Navigated::cancelled())),
            Err(SummaryFailure::Failed(why)) => {
                self.answer(navigation.reply, Err(CommandError::new(ErrorCode::SummaryFailed, why)));
            }
        }
        self.flush_deferred();
        self.after_activity();
    }

    /// Moves the leaf and appends the summary there.
    fn finish_move(&mut self, navigation: Navigation, summary: Option<Summary>) {
        let Navigation { reply, leaf, text, target, label, undone } = navigation;
        let from_id = self.store.leaf().map(EntryId::from);
        if let Err(error) = self.store.move_leaf(leaf.as_deref()) {
            return self.answer(reply, Err(error.into()));
        }
        let author = summary.as_ref().map(|summary| summary.author.clone());
        let has_moved = from_id.as_deref() != leaf.as_deref();
        let summary = summary.map(|summary| {
            let usage = (summary.usage != Default::default()).then_some(summary.usage);
            let entry = BranchSummaryEntry {
                from_id: from_id.clone(),
                summary: summary.text,
                details: summary.details,
                usage,
                from_hook: summary.author.is_extension(),
            };
            self.store.append_branch_summary(&entry)
        });
        if let Some(label) = label.as_deref().map(str::trim).filter(|label| !label.is_empty()) {
            // Both exist: one was just written, the other was navigated to.
            let _ = self.store.append_label(summary.as_deref().unwrap_or(&target), Some(label));
        }
        if has_moved && self.store.leaf().is_some() {
            self.restore_tools();
            self.assemble_prompt();
        }
        self.report_store();
        let answer = Navigated {
            cancelled: false,
            leaf_id: Some(self.store.leaf().map(str::to_owned)),
            text,
            summary_entry: summary.and_then(|id| self.store.tree().entry(&id)).map(Entry::from_object),
            restored: None,
            skipped: None,
        };
        let moved = Moved { from_id, has_moved, author, answer, reply };
        match undone {
            Some(entries) => self.put_back_after_move(entries, moved),
            None => self.end_move(moved),
        }
    }

    fn put_back_after_move(&mut self, entries: Vec<EntryId>, moved: Moved) {
        let work = self.put_back(Since::Entries { session: self.store.id().to_owned(), entries });
        let moved = Box::new(moved);
        self.begin_step(async move { Step::MoveRestored { moved, outcome: work.await } });
    }

    pub(crate) fn on_move_restored(&mut self, mut moved: Moved, outcome: Result<Restored, CommandError>) {
        let Restored { restored, skipped, .. } = self.take_restored(outcome);
        (moved.answer.restored, moved.answer.skipped) = (Some(restored), Some(skipped));
        self.end_move(moved);
    }

    /// Tells extensions of a move, then answers.
    fn end_move(&mut self, moved: Moved) {
        let Moved { from_id, has_moved, author, answer, reply } = moved;
        if has_moved {
            self.tell_of_move(from_id, author, answer, reply);
        } else {
            self.answer(reply, Ok(answer));
        }
    }
}
