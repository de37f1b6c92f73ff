//! The conversation as the model sees it: the active branch with compaction and
//! context edits applied. Appends extend it; only a rewrite of earlier context
//! (compaction, edit of something older, another leaf) builds it again.
//!
//! Which entries are in it is decided at once, since that needs no more than the
//! tree. Their messages are read when someone asks for them: opening, renaming or
//! navigating a long session must not cost what talking in it costs.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};

use pith_protocol::{Content, Message};
use serde_json::Value;

use crate::backing::Lines;
use crate::message::{contributes, message_of, object, with_content};
use crate::sketch::Sketch;
use crate::tree::{EntryTree, Kind, Node, NodeIndex, Role};

/// The entries of the context and, once they were asked for, their messages.
#[derive(Clone, Default)]
pub(crate) struct Context {
    outline: Outline,
    /// Messages of entries, unedited, that need not be read: they were appended or
    /// read before. Of no use once all messages are there.
    held: HashMap<NodeIndex, Arc<Message>>,
    reading: OnceLock<Reading>,
}

/// The entries of the context, without their text.
#[derive(Clone, Default)]
struct Outline {
    sources: Vec<NodeIndex>,
    /// Messages at and after this position were added since the last rewrite.
    rewritten_to: usize,
    /// What edits put in the place of an entry's own content.
    replaced: HashMap<NodeIndex, Content>,
}

/// The messages of an outline.
#[derive(Clone, Default)]
struct Reading {
    messages: Vec<Arc<Message>>,
    /// The outline without the entries that could not be read, if there are any.
    remaining: Option<Outline>,
    /// Those entries, until they are reported.
    unreadable: Vec<NodeIndex>,
}

/// The entries of a branch that count, in the order the model sees them.
pub(crate) struct Selection {
    pub entries: Vec<NodeIndex>,
    /// Entries before this position are not newer than the latest compaction or edit.
    pub rewritten_to: usize,
}

/// What a `context_edit` asks for.
pub(crate) struct Edit {
    pub target: NodeIndex,
    /// `None` removes the target from the context.
    pub content: Option<Content>,
}

impl Context {
    /// Decides which entries make the context at a leaf. Messages already in `known` are not read again.
    pub fn build(tree: &EntryTree, leaf: Option<NodeIndex>, known: &Context) -> Self {
        let outline = Outline::of(tree, leaf);
        let originals: HashMap<_, _> = known.originals().collect();
        let held = |source: &NodeIndex| Some((*source, Arc::clone(originals.get(source)?)));
        let held =
            if originals.is_empty() { HashMap::new() } else { outline.sources.iter().filter_map(held).collect() };
        Context { outline, held, reading: OnceLock::new() }
    }

    /// Returns the entries of the context, oldest first.
    pub fn sources(&self) -> &[NodeIndex] {
        &self.outline().sources
    }

    /// Messages at and after this position were added since the last rewrite.
    pub fn rewritten_to(&self) -> usize {
        self.outline().rewritten_to
    }

    /// Returns the messages of the context, which the first call reads.
    pub fn messages(&self, tree: &EntryTree) -> &[Arc<Message>] {
        &self.reading.get_or_init(|| self.read(tree)).messages
    }

    /// Returns one of the messages, for those who do not need all of them.
    pub fn message(&self, position: usize, tree: &EntryTree) -> Option<Arc<Message>> {
        if let Some(reading) = self.reading.get() {
            return reading.messages.get(position).cloned();
        }
        self.read_one(*self.outline.sources.get(position)?, tree, &mut tree.lines()).ok()
    }

    /// Returns the entries that turned out to be unreadable since the last call.
    pub fn take_unreadable(&mut self) -> Vec<NodeIndex> {
        self.reading.get_mut().map(|reading| std::mem::take(&mut reading.unreadable)).unwrap_or_default()
    }

    pub fn push(&mut self, source: NodeIndex, message: Arc<Message>) {
        match self.apply_reading() {
            Some(reading) => reading.messages.push(message),
            None => _ = self.held.insert(source, message),
        }
        self.outline.sources.push(source);
    }

    /// Applies an edit that was just appended. `false`: the context has to be built again.
    pub fn edit(&mut self, edit: Edit) -> bool {
        self.apply_reading();
        let outline = &mut self.outline;
        // Edits nearly always concern one of the last messages.
        let Some(position) = outline.sources.iter().rposition(|&source| source == edit.target) else { return false };
        let messages = self.reading.get_mut().map(|reading| &mut reading.messages);
        match edit.content {
            None => {
                outline.sources.remove(position);
                messages.map(|messages| messages.remove(position));
            }
            Some(content) => {
                if let Some(messages) = messages {
                    messages[position] = Arc::new(with_content(&messages[position], content.clone()));
                }
                outline.replaced.insert(edit.target, content);
            }
        }
        outline.rewritten_to = outline.sources.len();
        true
    }

    /// Returns the message of an entry, if it is in the context, not edited and already read.
    pub fn original(&self, source: NodeIndex) -> Option<&Arc<Message>> {
        let Some(reading) = self.reading.get() else { return self.held.get(&source) };
        let position = self.sources().iter().position(|&at| at == source)?;
        reading.messages.get(position).filter(|_| !self.outline().replaced.contains_key(&source))
    }

    /// Maps the entries to another tree and drops those that it does not have.
    pub fn renumber(&mut self, renumbering: &HashMap<NodeIndex, NodeIndex>) {
        self.apply_reading();
        let moved = |source: &NodeIndex| renumbering.get(source).copied();
        let old = std::mem::take(self);
        if let Some(reading) = old.reading.into_inner() {
            let kept = old.outline.sources.iter().zip(reading.messages).filter(|(source, _)| moved(source).is_some());
            let messages = kept.map(|(_, message)| message).collect();
            self.reading = Reading { messages, ..reading }.into();
        }
        self.held = old.held.into_iter().filter_map(|(source, message)| Some((moved(&source)?, message))).collect();
        let Outline { sources, rewritten_to, replaced } = old.outline;
        let sources: Vec<_> = sources.iter().filter_map(moved).collect();
        let replaced = replaced.into_iter().filter_map(|(source, content)| Some((moved(&source)?, content))).collect();
        self.outline = Outline { rewritten_to: rewritten_to.min(sources.len()), sources, replaced };
    }

    fn outline(&self) -> &Outline {
        let remaining = self.reading.get().and_then(|reading| reading.remaining.as_ref());
        remaining.unwrap_or(&self.outline)
    }

    /// Drops the entries that turned out to be unreadable. Returns the messages if they have been read.
    fn apply_reading(&mut self) -> Option<&mut Reading> {
        let reading = self.reading.get_mut()?;
        if let Some(remaining) = reading.remaining.take() {
            self.outline = remaining;
        }
        self.held.clear();
        Some(reading)
    }

    fn read(&self, tree: &EntryTree) -> Reading {
        let Outline { sources, rewritten_to, replaced } = &self.outline;
        let mut lines = tree.lines();
        let mut reading = Reading { messages: Vec::with_capacity(sources.len()), ..Reading::default() };
        let mut remaining = Outline::default();
        for (position, &source) in sources.iter().enumerate() {
            let Ok(message) = self.read_one(source, tree, &mut lines) else {
                reading.unreadable.push(source);
                continue;
            };
            reading.messages.push(message);
            remaining.sources.push(source);
            remaining.rewritten_to += usize::from(position < *rewritten_to);
        }
        if !reading.unreadable.is_empty() {
            reading.remaining = Some(Outline { replaced: replaced.clone(), ..remaining });
        }
        reading
    }

    fn read_one(&self, source: NodeIndex, tree: &EntryTree, lines: &mut Lines<'_>) -> io::Result<Arc<Message>> {
        let message = match self.held.get(&source) {
            Some(message) => Arc::clone(message),
            None => Arc::new(read_message(tree.node(source), lines.get(source))?),
        };
        Ok(match self.outline.replaced.get(&source) {
            Some(content) => Arc::new(with_content(&message, content.clone())),
            None => message,
        })
    }

    /// Returns the messages that are already read and not edited.
    fn originals(&self) -> impl Iterator<Item = (NodeIndex, &Arc<Message>)> {
        let read = self.reading.get().map_or(&[][..], |reading| &reading.messages);
        let Outline { sources, replaced, .. } = self.outline();
        let read = sources.iter().copied().zip(read).filter(|(source, _)| !replaced.contains_key(source));
        let held = self.held.iter().map(|(source, message)| (*source, message));
        held.chain(read)
    }
}

impl Outline {
    fn of(tree: &EntryTree, leaf: Option<NodeIndex>) -> Self {
        let selection = Selection::of(tree, leaf);
        let mut edits = edits(tree, &selection.entries);
        let mut lines = tree.lines();
        let mut outline = Outline::default();
        for (position, &index) in selection.entries.iter().enumerate() {
            if position == selection.rewritten_to {
                outline.rewritten_to = outline.sources.len();
            }
            if !is_in_context(tree, index, &mut lines) {
                continue;
            }
            match edits.remove(&index) {
                None => outline.sources.push(index),
                Some(Edit { content: Some(content), .. }) => {
                    outline.sources.push(index);
                    outline.replaced.insert(index, content);
                }
                Some(Edit { content: None, .. }) => {}
            }
        }
        if selection.rewritten_to == selection.entries.len() {
            outline.rewritten_to = outline.sources.len();
        }
        outline
    }
}

/// Whether an entry stands in the conversation. Only summaries have to be read to know.
fn is_in_context(tree: &EntryTree, index: NodeIndex, lines: &mut Lines<'_>) -> bool {
    let node = tree.node(index);
    match node.kind {
        Kind::BranchSummary => {
            let message = lines.get(index).map(|line| message_of(node.kind, line, node.timestamp));
            !matches!(message, Ok(Ok(None)))
        }
        kind => contributes(kind),
    }
}

impl Selection {
    /// Selects the latest compaction, what it kept, and everything after it; without one, the whole path.
    pub fn of(tree: &EntryTree, leaf: Option<NodeIndex>) -> Self {
        let path = tree.path(leaf);
        let is = |kind: Kind| move |index: &NodeIndex| tree.node(*index).kind == kind;
        let (entries, n_kept) = match path.iter().rposition(is(Kind::Compaction)) {
            None => (path, 0),
            Some(at) => {
                let first = first_kept(tree, path[at]);
                let kept = path[..at].iter().position(|&index| Some(index) == first).unwrap_or(at);
                let mut entries = Vec::with_capacity(path.len() - kept);
                entries.push(path[at]);
                // Older summaries inside the kept range are part of the latest one.
                entries.extend(path[kept..at].iter().filter(|index| !is(Kind::Compaction)(index)));
                let n_kept = entries.len();
                entries.extend(&path[at + 1..]);
                (entries, n_kept)
            }
        };
        let n_edited = entries.iter().rposition(is(Kind::ContextEdit)).map_or(0, |at| at + 1);
        Selection { entries, rewritten_to: n_kept.max(n_edited) }
    }
}

impl Edit {
    /// Reads a `context_edit`; `None` if its target cannot be edited.
    pub fn read(tree: &EntryTree, line: &[u8]) -> Option<Self> {
        let mut object = object(line).ok()?;
        let target = tree.find(object.get("targetId")?.as_str()?)?;
        let content = match object.remove("replacement") {
            Some(Value::Object(mut replacement)) => Some(serde_json::from_value(replacement.remove("content")?).ok()?),
            _ => None,
        };
        is_editable(tree.node(target).kind).then_some(Edit { target, content })
    }
}

/// Whether a `context_edit` may name an entry of that kind.
pub(crate) fn is_editable(kind: Kind) -> bool {
    matches!(kind, Kind::Message(Role::User | Role::Assistant | Role::ToolResult) | Kind::CustomMessage)
}

/// Returns the edits of a selection; the last one per target counts.
pub(crate) fn edits(tree: &EntryTree, entries: &[NodeIndex]) -> HashMap<NodeIndex, Edit> {
    let mut lines = tree.lines();
    let mut edits = HashMap::new();
    for &index in entries.iter().filter(|&&index| tree.node(index).kind == Kind::ContextEdit) {
        if let Some(edit) = lines.get(index).ok().and_then(|line| Edit::read(tree, line)) {
            edits.insert(edit.target, edit);
        }
    }
    edits
}

/// Returns the entry a compaction kept from; `None` if it kept nothing.
fn first_kept(tree: &EntryTree, compaction: NodeIndex) -> Option<NodeIndex> {
    let mut lines = tree.lines();
    let line = lines.get(compaction).ok()?;
    let mut scratch = Vec::new();
    let sketch = Sketch::read(line, &mut scratch)?;
    tree.find(sketch.first_kept.as_deref()?)
}

/// Returns the message of an entry that stands in the conversation.
pub(crate) fn read_message(node: &Node, line: io::Result<&[u8]>) -> io::Result<Message> {
    // Long after the file was opened, another program may have written over it.
    let line =
        line.and_then(|line| is_line_of(line, &node.id).then_some(line).ok_or(io::ErrorKind::InvalidData.into()))?;
    let message = message_of(node.kind, line, node.timestamp)?;
    message.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn is_line_of(line: &[u8], id: &str) -> bool {
    let member = [b"\"id\":\"", id.as_bytes(), b"\""].concat();
    memchr::memmem::find(line, &member).is_some()
        || Sketch::read(line, &mut Vec::new()).is_some_and(|sketch| sketch.id.as_deref() == Some(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::append::{BranchSummaryEntry, CompactionEntry};
    use crate::store::SessionStore;
    use pith_protocol::UserMessage;

    fn prompt(text: &str) -> Arc<Message> {
        Arc::new(Message::User(UserMessage::new(text.to_owned(), vec![], 1)))
    }

    /// Whether the messages were read.
    fn is_read(store: &SessionStore) -> bool {
        store.context.reading.get().is_some()
    }

    #[test]
    fn messages_are_read_for_those_who_ask_for_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.jsonl");
        let mut store = SessionStore::create_at(&path, directory.path(), None);
        let ids: Vec<_> = ["one", "two", "three"].map(|text| store.append_message(&prompt(text))).into();
        drop(store);
        let mut store = SessionStore::resume(&path, directory.path()).unwrap();
        store.append_session_info("name");
        store.append_label(&ids[0], Some("mark")).unwrap();
        store.append_message(&prompt("four"));
        store.append_context_edit(&ids[1], None).unwrap();
        store.append_context_edit(&ids[2], Some(Content::Text("3".into()))).unwrap();
        store.move_leaf(Some(&ids[2])).unwrap();
        store.append_branch_summary(&BranchSummaryEntry { summary: "left".into(), ..Default::default() });
        store.append_compaction(&CompactionEntry { first_kept_entry_id: Some(ids[1].clone()), ..Default::default() });
        store.clone_branch().unwrap();
        assert_eq!((store.n_messages(), store.message_entries().len(), store.rewritten_to()), (4, 4, 4));
        assert_eq!(store.messages_of(|kind| kind == Kind::Compaction).len(), 1);
        assert_eq!(store.last_assistant_text(), None);
        assert_eq!(store.take_report(), []);
        assert!(!is_read(&store));
        assert_eq!(store.messages().len(), 4);
        assert!(is_read(&store));
    }

    #[test]
    fn a_line_is_known_by_its_id() {
        let check = |line: &str, is_it: bool| assert_eq!(is_line_of(line.as_bytes(), "a1"), is_it, "{line}");
        check(r#"{"type":"message","id":"a1","parentId":"a0"}"#, true);
        check(r#"{"type":"message","id" : "\u00611"}"#, true);
        check(r#"{"type":"message","id":"a2","parentId":"a1"}"#, false);
        check(r#"ssage","parentId":"a1"}"#, false);
    }
}
