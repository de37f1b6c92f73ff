//! The conversation as the model sees it: the active branch with compaction and
//! context edits applied. Appends extend it; only a rewrite of earlier context
//! (compaction, edit of something older, another leaf) builds it anew.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use pith_protocol::{Content, Message};
use serde_json::Value;

use crate::message::{contributes, message_of, object, with_content};
use crate::sketch::Sketch;
use crate::tree::{EntryTree, Kind, Node, NodeIndex, Role};

/// The projected messages and where each comes from.
#[derive(Clone, Default)]
pub(crate) struct Context {
    pub messages: Vec<Arc<Message>>,
    pub sources: Vec<NodeIndex>,
    /// Messages at and after this position were added since the last rewrite.
    pub rewritten_to: usize,
    /// Sources whose message is not what their entry says.
    replaced: HashSet<NodeIndex>,
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
    /// `None` removes the target from view.
    pub content: Option<Content>,
}

impl Context {
    /// Builds the context of a leaf. Messages already in `known` are not read again.
    /// Entries whose line cannot be read any more are left out and listed in the second value.
    pub fn build(tree: &EntryTree, leaf: Option<NodeIndex>, known: &Context) -> (Self, Vec<NodeIndex>) {
        let Selection { entries, rewritten_to } = Selection::of(tree, leaf);
        let mut edits = edits(tree, &entries);
        let originals: HashMap<_, _> = known.originals().collect();
        let mut lines = tree.lines();
        let mut context = Context::default();
        let mut unreadable = Vec::new();
        for (position, &index) in entries.iter().enumerate() {
            if position == rewritten_to {
                context.rewritten_to = context.messages.len();
            }
            let node = tree.node(index);
            if !contributes(node.kind) {
                continue;
            }
            let message = match originals.get(&index) {
                Some(message) => Ok(Some(Arc::clone(message))),
                None => read_message(node, lines.get(index)),
            };
            match message {
                Ok(Some(message)) => context.push_edited(index, message, edits.remove(&index)),
                Ok(None) => {}
                Err(_) => unreadable.push(index),
            }
        }
        if rewritten_to == entries.len() {
            context.rewritten_to = context.messages.len();
        }
        (context, unreadable)
    }

    pub fn push(&mut self, source: NodeIndex, message: Arc<Message>) {
        self.messages.push(message);
        self.sources.push(source);
    }

    /// Applies an edit that was just appended. `false`: the context has to be built anew.
    pub fn edit(&mut self, edit: Edit) -> bool {
        // Edits nearly always concern one of the last messages.
        let Some(position) = self.sources.iter().rposition(|&source| source == edit.target) else { return false };
        match edit.content {
            None => {
                self.messages.remove(position);
                self.sources.remove(position);
            }
            Some(content) => {
                self.messages[position] = Arc::new(with_content(&self.messages[position], content));
                self.replaced.insert(edit.target);
            }
        }
        self.rewritten_to = self.messages.len();
        true
    }

    /// The message of an entry, if it is in view and not edited.
    pub fn original(&self, source: NodeIndex) -> Option<&Arc<Message>> {
        let position = self.sources.iter().position(|&at| at == source)?;
        self.messages.get(position).filter(|_| !self.replaced.contains(&source))
    }

    /// Follows the entries to another tree; messages of entries that are not there go.
    pub fn renumber(&mut self, renumbering: &HashMap<NodeIndex, NodeIndex>) {
        let old = std::mem::take(self);
        for (source, message) in old.sources.into_iter().zip(old.messages) {
            if let Some(&source) = renumbering.get(&source) {
                self.push(source, message);
            }
        }
        self.replaced = old.replaced.iter().filter_map(|source| renumbering.get(source).copied()).collect();
        self.rewritten_to = old.rewritten_to.min(self.messages.len());
    }

    fn push_edited(&mut self, source: NodeIndex, message: Arc<Message>, edit: Option<Edit>) {
        match edit {
            None => self.push(source, message),
            Some(Edit { content: Some(content), .. }) => {
                self.push(source, Arc::new(with_content(&message, content)));
                self.replaced.insert(source);
            }
            Some(Edit { content: None, .. }) => {}
        }
    }

    /// The messages that are what their entry says.
    fn originals(&self) -> impl Iterator<Item = (NodeIndex, &Arc<Message>)> {
        let pairs = self.sources.iter().copied().zip(&self.messages);
        pairs.filter(|(source, _)| !self.replaced.contains(source))
    }
}

impl Selection {
    /// The latest compaction, what it kept, and everything after it; without one, the whole path.
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

/// The edits of a selection; the last one per target counts.
fn edits(tree: &EntryTree, entries: &[NodeIndex]) -> HashMap<NodeIndex, Edit> {
    let mut lines = tree.lines();
    let mut edits = HashMap::new();
    for &index in entries.iter().filter(|&&index| tree.node(index).kind == Kind::ContextEdit) {
        if let Some(edit) = lines.get(index).ok().and_then(|line| Edit::read(tree, line)) {
            edits.insert(edit.target, edit);
        }
    }
    edits
}

/// The entry a compaction kept from; `None` if it kept nothing.
fn first_kept(tree: &EntryTree, compaction: NodeIndex) -> Option<NodeIndex> {
    let mut lines = tree.lines();
    let line = lines.get(compaction).ok()?;
    let mut scratch = Vec::new();
    let sketch = Sketch::read(line, &mut scratch)?;
    tree.find(sketch.first_kept.as_deref()?)
}

fn read_message(node: &Node, line: io::Result<&[u8]>) -> io::Result<Option<Arc<Message>>> {
    let message = message_of(node.kind, line?, node.timestamp)?;
    Ok(message.map(Arc::new))
}
