//! The entries pith writes.

use std::sync::Arc;

use pith_protocol::{Content, CustomMessage, Message, ThinkingLevel, Usage};
use serde_json::Value;

use crate::backing::Place;
use crate::context::{Context, Edit, is_editable};
use crate::error::StoreError;
use crate::ids::{EntryId, new_entry_id};
use crate::intake::MAX_LINE;
use crate::line::Line;
use crate::message::message_of;
use crate::report::{ReportKind, StoreReport};
use crate::sketch::Sketch;
use crate::store::SessionStore;
use crate::time;
use crate::tree::{Inserted, Kind, NodeIndex, clean_name};

/// The result of a compaction, to be stored.
#[derive(Clone, Debug, Default)]
pub struct CompactionEntry {
    pub summary: String,
    /// The oldest entry that stays in the context; `None` keeps nothing.
    pub first_kept_entry_id: Option<EntryId>,
    pub tokens_before: u64,
    pub details: Option<Value>,
    pub usage: Option<Usage>,
    /// An extension made it.
    pub from_hook: bool,
}

/// The summary of a branch that is being left, to be stored below the new leaf.
#[derive(Clone, Debug, Default)]
pub struct BranchSummaryEntry {
    /// The leaf that was left; `None` for the position before all entries.
    pub from_id: Option<EntryId>,
    pub summary: String,
    pub details: Option<Value>,
    pub usage: Option<Usage>,
    /// An extension made it.
    pub from_hook: bool,
}

impl SessionStore {
    /// Appends a message. Custom messages become `custom_message` entries.
    pub fn append_message(&mut self, message: &Arc<Message>) -> EntryId {
        self.append_message_as(None, message)
    }

    /// Appends a message whose entry was named before, see [`SessionStore::new_entry_id`].
    pub fn append_message_as(&mut self, id: Option<EntryId>, message: &Arc<Message>) -> EntryId {
        let index = self.add_message(id, message);
        self.finish(index)
    }

    /// Returns the id of an entry that will be appended later: a message is told by it while it grows.
    pub fn new_entry_id(&self) -> EntryId {
        new_entry_id(|id| self.tree.contains(id))
    }

    /// Adds a message in memory; the caller finishes it.
    pub(crate) fn add_message(&mut self, id: Option<EntryId>, message: &Arc<Message>) -> NodeIndex {
        let index = match &**message {
            // Its time is the entry's time in the file, so both must be the same here.
            Message::Custom(custom) => self.append_as(id, "custom_message", custom.timestamp, |line, _| {
                line.member("customType", &custom.custom_type)
                    .member("content", &custom.content)
                    .member("display", &custom.display)
                    .optional("details", &custom.details)
            }),
            _ => self.append_as(id, "message", time::now(), |line, _| line.member("message", &**message)),
        };
        self.context.push(index, Arc::clone(message));
        index
    }

    /// Appends a message placed by an extension.
    pub fn append_custom_message(&mut self, message: CustomMessage) -> EntryId {
        self.append_message(&Arc::new(Message::Custom(message)))
    }

    /// Notes the model used from here on.
    pub fn append_model_change(&mut self, provider: &str, model_id: &str) -> EntryId {
        self.append_silent("model_change", |line| line.member("provider", provider).member("modelId", model_id))
    }

    /// Notes the thinking level used from here on.
    pub fn append_thinking_level(&mut self, level: ThinkingLevel) -> EntryId {
        self.append_silent("thinking_level_change", |line| line.member("thinkingLevel", &level))
    }

    /// Names the session. Line breaks become blanks; an empty name removes the name.
    pub fn append_session_info(&mut self, name: &str) -> EntryId {
        let name = clean_name(name).unwrap_or_default();
        self.append_silent("session_info", |line| line.member("name", &name))
    }

    /// Puts a bookmark on an entry, or removes it.
    pub fn append_label(&mut self, target: &str, label: Option<&str>) -> Result<EntryId, StoreError> {
        if !self.tree.contains(target) {
            return Err(StoreError::EntryNotFound(target.to_owned()));
        }
        Ok(self.append_silent("label", |line| line.member("targetId", target).optional("label", &label)))
    }

    /// Stores an extension's data, which the model does not see.
    pub fn append_custom(&mut self, custom_type: &str, data: Option<&Value>) -> EntryId {
        self.append_silent("custom", |line| line.member("customType", custom_type).optional("data", &data))
    }

    /// Replaces everything before the kept entries by a summary.
    pub fn append_compaction(&mut self, compaction: &CompactionEntry) -> EntryId {
        let index = self.append("compaction", time::now(), |line, own_id| {
            line.member("summary", &compaction.summary)
                .member("firstKeptEntryId", compaction.first_kept_entry_id.as_deref().unwrap_or(own_id))
                .member("tokensBefore", &compaction.tokens_before)
                .optional("details", &compaction.details)
                .optional("usage", &compaction.usage)
                .member("fromHook", &compaction.from_hook)
        });
        self.rebuild_context();
        self.finish(index)
    }

    /// Stores what happened on the branch that was left.
    pub fn append_branch_summary(&mut self, summary: &BranchSummaryEntry) -> EntryId {
        let index = self.append("branch_summary", time::now(), |line, _| {
            line.member("fromId", summary.from_id.as_deref().unwrap_or("root"))
                .member("summary", &summary.summary)
                .optional("details", &summary.details)
                .optional("usage", &summary.usage)
                .member("fromHook", &summary.from_hook)
        });
        let node = self.tree.node(index);
        let line = self.tree.lines().get(index).map(<[u8]>::to_vec).unwrap_or_default();
        if let Ok(Some(message)) = message_of(node.kind, &line, node.timestamp) {
            self.context.push(index, Arc::new(message));
        }
        self.finish(index)
    }

    /// Whether [`SessionStore::append_context_edit`] would accept a target.
    pub fn check_edit(&self, target: &str) -> Result<(), StoreError> {
        self.editable(target).map(|_| ())
    }

    fn editable(&self, target: &str) -> Result<NodeIndex, StoreError> {
        let index = self.tree.find(target).ok_or_else(|| StoreError::EntryNotFound(target.to_owned()))?;
        if !is_editable(self.tree.node(index).kind) || !self.is_on_branch(index) {
            return Err(StoreError::NotEditable(target.to_owned()));
        }
        Ok(index)
    }

    /// Changes how the model sees an earlier message; `None` hides it. History keeps the original.
    pub fn append_context_edit(&mut self, target: &str, content: Option<Content>) -> Result<EntryId, StoreError> {
        let index = self.editable(target)?;
        let replacement = content.as_ref().map(|content| serde_json::json!({ "content": content }));
        let entry = self.append("context_edit", time::now(), |line, _| {
            line.member("targetId", target).member("replacement", &replacement)
        });
        if !self.context.edit(Edit { target: index, content }) {
            self.rebuild_context();
        }
        Ok(self.finish(entry))
    }

    /// Builds the conversation of the current leaf again.
    pub(crate) fn rebuild_context(&mut self) {
        self.report_unreadable();
        self.context = Context::build(&self.tree, self.leaf, &self.context);
    }

    fn append_silent(&mut self, kind: &str, payload: impl FnOnce(Line) -> Line) -> EntryId {
        let index = self.append(kind, time::now(), |line, _| payload(line));
        self.finish(index)
    }

    /// Adds an entry below the leaf, in memory. The payload gets the entry's own id.
    fn append(&mut self, kind: &str, timestamp: i64, payload: impl FnOnce(Line, &str) -> Line) -> NodeIndex {
        self.append_as(None, kind, timestamp, payload)
    }

    /// Like [`Self::append`], with an id that was chosen before, unless another process has taken it since.
    fn append_as(
        &mut self,
        id: Option<EntryId>,
        kind: &str,
        timestamp: i64,
        payload: impl FnOnce(Line, &str) -> Line,
    ) -> NodeIndex {
        if let Some(journal) = &mut self.journal {
            journal.begin_append();
        }
        self.refresh();
        let id = id.filter(|id| !self.tree.contains(id)).unwrap_or_else(|| self.new_entry_id());
        let line = payload(Line::entry(kind, &id, self.leaf(), timestamp), &id).finish();
        let mut scratch = Vec::new();
        let sketch = Sketch::read(&line, &mut scratch).expect("lines we build are JSON objects");
        let Inserted::New(index, None) = self.tree.insert(&sketch, Place::Memory(Vec::new())) else {
            unreachable!("the id is new and the parent is the leaf")
        };
        self.settings.observe(Kind::of(&sketch), &sketch);
        self.tree.nodes[index as usize].place = Place::Memory(line);
        self.leaf = Some(index);
        self.moved = None;
        index
    }

    /// Writes the entry that was just added.
    pub(crate) fn finish(&mut self, index: NodeIndex) -> EntryId {
        // Its index may be another one afterwards, in the file of another process.
        let id = Arc::clone(&self.tree.node(index).id);
        let is_too_long = matches!(&self.tree.node(index).place, Place::Memory(line) if line.len() as u64 > MAX_LINE);
        match &mut self.journal {
            // One such line would make the whole file unreadable.
            Some(_) if is_too_long => self.report_unsaved(index),
            Some(journal) => journal.add(index),
            None => {}
        }
        self.save();
        if self.write_error().is_none() {
            self.forget_position();
            self.finish_inputs();
        }
        if let Some(journal) = &mut self.journal {
            journal.end_append();
        }
        id
    }

    fn report_unsaved(&mut self, index: NodeIndex) {
        let id = &self.tree.node(index).id;
        let message = format!("entry {id} is longer than 64 MiB and is not saved");
        self.reports.push(StoreReport { kind: ReportKind::Write, message });
    }

    fn is_on_branch(&self, index: NodeIndex) -> bool {
        std::iter::successors(self.leaf, |&at| self.tree.node(at).parent).any(|at| at == index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::{AssistantMessage, UserMessage};

    /// A file with so many prompts, opened.
    fn session_of(directory: &std::path::Path, n_entries: usize) -> SessionStore {
        let path = directory.join(format!("{n_entries}.jsonl"));
        let mut text = Line::start("session").member("version", &3).member("id", "s").finish();
        let mut parent = None;
        for n in 0..n_entries {
            let id = format!("e{n}");
            let message = serde_json::json!({"role": "user", "content": "q", "timestamp": 1});
            text.extend(Line::entry("message", &id, parent.as_deref(), 1).member("message", &message).finish());
            parent = Some(id);
        }
        std::fs::write(&path, text).unwrap();
        SessionStore::resume(&path, directory).unwrap()
    }

    #[test]
    fn an_append_costs_the_same_however_long_the_session_is() {
        let directory = tempfile::tempdir().unwrap();
        let visits_of_turn = |n_entries: usize| {
            let mut store = session_of(directory.path(), n_entries);
            assert_eq!(store.messages().len(), n_entries);
            let before = store.tree.n_visits.get();
            store.append_message(&Arc::new(Message::User(UserMessage::new("q".into(), vec![], 1))));
            let answer = Arc::new(Message::Assistant(AssistantMessage::default()));
            let id = store.append_message(&answer);
            store.append_context_edit(&id, None).unwrap();
            store.append_message(&answer);
            store.append_custom("x", None);
            assert_eq!((store.write_error(), store.messages().len()), (None, n_entries + 2));
            store.tree.n_visits.get() - before
        };
        assert_eq!(visits_of_turn(100_000), visits_of_turn(10));
    }

    #[test]
    fn an_entry_beyond_the_limit_stays_out_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = session_of(directory.path(), 1);
        let huge = "x".repeat(MAX_LINE as usize);
        store.append_message(&Arc::new(Message::User(UserMessage::new(huge, vec![], 1))));
        store.append_message(&Arc::new(Message::User(UserMessage::new("after".into(), vec![], 1))));
        assert_eq!((store.messages().len(), store.take_report().len()), (3, 1));
        let path = store.path().unwrap().to_owned();
        drop(store);
        assert_eq!(SessionStore::resume(&path, directory.path()).unwrap().messages().len(), 2);
    }
}
