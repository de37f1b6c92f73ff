//! Entries as JSON for hosts and extensions, single, as lists and as a tree.
//!
//! Lines are handed on as they are, with three exceptions: characters that naive
//! line readers take for line ends are escaped, what is not Unicode is replaced,
//! and parents and times that were mended on reading are shown as they are used.

use std::ops::Range;
use std::sync::Arc;

use memchr::memchr2;
use pith_protocol::{Message, json};
use serde_json::{Map, Value};

use crate::backing::Lines;
use crate::context::Selection;
use crate::error::StoreError;
use crate::ids::EntryId;
use crate::lenient::mend;
use crate::line::Members;
use crate::message::{message_of, object, text_of};
use crate::store::SessionStore;
use crate::time;
use crate::tree::{EntryTree, Kind, NodeIndex};

/// An entry of the context, and what it contributes.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextEntry {
    pub id: EntryId,
    pub kind: Kind,
    /// As the model sees it; `None` for settings, labels and hidden messages.
    pub message: Option<Arc<Message>>,
}

impl SessionStore {
    /// Returns the entries behind [`SessionStore::messages`] and those between them, in the same order.
    pub fn context_entries(&self) -> Vec<ContextEntry> {
        let messages = self.messages();
        let mut messages = self.context.sources().iter().zip(messages).peekable();
        let entries = Selection::of(&self.tree, self.leaf).entries;
        let entry = |index: NodeIndex| {
            // Both lists have the same order, and only one of them has gaps.
            let message = messages.next_if(|(source, _)| **source == index).map(|(_, message)| Arc::clone(message));
            let node = self.tree.node(index);
            ContextEntry { id: Arc::clone(&node.id), kind: node.kind, message }
        };
        entries.into_iter().map(entry).collect()
    }

    /// Returns the data of the `custom` entries of a type on the current branch, oldest first.
    pub fn custom_data(&self, custom_type: &str) -> Vec<Value> {
        let mut lines = self.tree.lines();
        let path = self.tree.path(self.leaf);
        let custom = path.into_iter().filter(|index| self.tree.node(*index).kind == Kind::Custom);
        custom.filter_map(|index| custom_data_of(lines.get(index).ok()?, custom_type)).collect()
    }

    /// Returns the data of the last `custom` entry of a type on the current branch. Older ones are not read.
    pub fn last_custom_data(&self, custom_type: &str) -> Option<Value> {
        let mut lines = self.tree.lines();
        let path = self.tree.path(self.leaf);
        let mut custom = path.into_iter().rev().filter(|index| self.tree.node(*index).kind == Kind::Custom);
        custom.find_map(|index| custom_data_of(lines.get(index).ok()?, custom_type))
    }

    /// Returns the messages of the context that come from entries of some kinds, oldest first. Others are not read.
    pub fn messages_of(&self, is_wanted: impl Fn(Kind) -> bool) -> Vec<Arc<Message>> {
        let sources = self.context.sources().iter().enumerate();
        let wanted = sources.filter(|(_, source)| is_wanted(self.tree.node(**source).kind));
        wanted.filter_map(|(position, _)| self.context.message(position, &self.tree)).collect()
    }

    /// Returns the messages from the newest one that `is_first` on, if it is among the last ones.
    /// No others are read.
    pub fn messages_since(&self, is_first: impl Fn(&Message) -> bool) -> Option<Vec<Arc<Message>>> {
        // Beyond that, reading all of them at once is quicker.
        const N_LAST: usize = 64;
        let mut messages = Vec::new();
        for position in (0..self.n_messages()).rev().take(N_LAST) {
            let message = self.context.message(position, &self.tree)?;
            let is_found = is_first(&message);
            messages.push(message);
            if is_found {
                messages.reverse();
                return Some(messages);
            }
        }
        None
    }

    /// Returns what a tool gave back on this branch, newest first, seen by the model or not. Others are not read.
    pub fn results_of(&self, tool: &str) -> impl Iterator<Item = Message> {
        self.tree.results_of(tool, self.leaf).filter_map(|index| self.tree.message_at(index))
    }

    /// Returns the text of the last answer, trimmed; answers aborted before they began are passed over.
    pub fn last_assistant_text(&self) -> Option<String> {
        let positions = (0..self.n_messages()).rev();
        let mut messages = positions.filter_map(|position| self.context.message(position, &self.tree));
        let answer = messages.find(|message| match message.as_assistant() {
            Some(answer) => !(answer.stop_reason == pith_protocol::StopReason::Aborted && answer.content.is_empty()),
            None => false,
        });
        let text = text_of(&*answer?);
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

fn custom_data_of(line: &[u8], custom_type: &str) -> Option<Value> {
    let mut entry = object(line).ok()?;
    (entry.get("customType")?.as_str()? == custom_type).then(|| entry.remove("data")).flatten()
}

impl EntryTree {
    /// Returns an entry's members.
    pub fn entry(&self, id: &str) -> Option<Map<String, Value>> {
        let text = self.entry_json(id)?;
        object(text.as_bytes()).ok()
    }

    /// Returns the message an entry holds, as it was written.
    pub fn message(&self, id: &str) -> Option<Message> {
        self.message_at(self.find(id)?)
    }

    fn message_at(&self, index: NodeIndex) -> Option<Message> {
        let node = self.node(index);
        message_of(node.kind, self.lines().get(index).ok()?, node.timestamp).ok()?
    }

    /// Returns an entry as JSON.
    pub fn entry_json(&self, id: &str) -> Option<String> {
        let mut out = Vec::new();
        self.append_entry(&mut out, &mut self.lines(), self.find(id)?);
        Some(into_text(out))
    }

    /// Returns all entries after the given one as a JSON array, in file order and of every branch.
    pub fn entries_json(&self, since: Option<&str>) -> Result<String, StoreError> {
        Ok(self.list_json(self.after(since)?))
    }

    /// Returns the `custom` entries of a type after the given one as a JSON array, in file order and of every branch.
    pub fn custom_entries_json(&self, custom_type: &str, since: Option<&str>) -> Result<String, StoreError> {
        let mut lines = self.lines();
        let is_wanted = |index: &NodeIndex| {
            let entry = lines.get(*index).ok().and_then(|line| object(line).ok());
            entry.is_some_and(|entry| entry.get("customType").and_then(Value::as_str) == Some(custom_type))
        };
        let custom = self.after(since)?.filter(|index| self.node(*index).kind == Kind::Custom);
        let wanted: Vec<NodeIndex> = custom.filter(is_wanted).collect();
        Ok(self.list_json(wanted.into_iter()))
    }

    /// Returns the indexes of what follows an entry in the file.
    fn after(&self, since: Option<&str>) -> Result<Range<NodeIndex>, StoreError> {
        let start = match since {
            Some(id) => self.find(id).ok_or_else(|| StoreError::EntryNotFound(id.to_owned()))? + 1,
            None => 0,
        };
        Ok(start..self.indexes().end)
    }

    /// Returns the entries from a root to the given one as a JSON array.
    pub fn branch_json(&self, leaf: Option<&str>) -> String {
        self.list_json(self.path(leaf.and_then(|leaf| self.find(leaf))).into_iter())
    }

    /// Returns the ids of the entries from a root to the given one.
    pub fn branch(&self, leaf: Option<&str>) -> Vec<EntryId> {
        let path = self.path(leaf.and_then(|leaf| self.find(leaf)));
        path.into_iter().map(|index| Arc::clone(&self.node(index).id)).collect()
    }

    /// Returns all entries as a JSON array of `{entry, children, label?, labelTimestamp?}`, children by time.
    pub fn tree_json(&self) -> String {
        enum Step {
            Node(NodeIndex),
            Comma,
            Close(NodeIndex),
        }
        let mut children: Vec<Vec<NodeIndex>> = vec![Vec::new(); self.len()];
        let mut roots = Vec::new();
        for index in self.indexes() {
            match self.node(index).parent {
                Some(parent) => children[parent as usize].push(index),
                None => roots.push(index),
            }
        }
        let mut out = vec![b'['];
        let mut lines = self.lines();
        // Branches are as long as conversations: a stack of our own instead of recursion.
        let mut steps = Vec::new();
        let push = |steps: &mut Vec<Step>, mut nodes: Vec<NodeIndex>| {
            nodes.sort_by_key(|&index| self.node(index).timestamp);
            for (position, index) in nodes.into_iter().enumerate().rev() {
                steps.push(Step::Node(index));
                if position > 0 {
                    steps.push(Step::Comma);
                }
            }
        };
        push(&mut steps, roots);
        while let Some(step) = steps.pop() {
            match step {
                Step::Comma => out.push(b','),
                Step::Node(index) => {
                    out.extend_from_slice(b"{\"entry\":");
                    self.append_entry(&mut out, &mut lines, index);
                    out.extend_from_slice(b",\"children\":[");
                    steps.push(Step::Close(index));
                    push(&mut steps, std::mem::take(&mut children[index as usize]));
                }
                Step::Close(index) => {
                    out.push(b']');
                    self.append_label_members(&mut out, index);
                    out.push(b'}');
                }
            }
        }
        out.push(b']');
        into_text(out)
    }

    /// Returns all entries as a JSON array of `{id, parentId, entry, label?, labelTimestamp?}`, in file order. The
    /// nested form is as deep as the conversation is long, which many JSON readers refuse.
    pub fn flat_tree_json(&self) -> String {
        self.array_json(self.indexes(), |out, lines, index| {
            let node = self.node(index);
            out.extend_from_slice(b"{\"id\":");
            json::append(out, &*node.id);
            out.extend_from_slice(b",\"parentId\":");
            json::append(out, &node.parent.map(|parent| &*self.node(parent).id));
            out.extend_from_slice(b",\"entry\":");
            self.append_entry(out, lines, index);
            self.append_label_members(out, index);
            out.push(b'}');
        })
    }

    fn append_label_members(&self, out: &mut Vec<u8>, index: NodeIndex) {
        if let Some(label) = self.label(&self.node(index).id) {
            out.extend_from_slice(b",\"label\":");
            json::append(out, &label.text);
            out.extend_from_slice(b",\"labelTimestamp\":");
            json::append(out, &time::to_iso(label.timestamp));
        }
    }

    fn list_json(&self, entries: impl Iterator<Item = NodeIndex>) -> String {
        self.array_json(entries, |out, lines, index| self.append_entry(out, lines, index))
    }

    fn array_json<'t>(
        &'t self,
        entries: impl Iterator<Item = NodeIndex>,
        append: impl Fn(&mut Vec<u8>, &mut Lines<'t>, NodeIndex),
    ) -> String {
        let mut out = vec![b'['];
        let mut lines = self.lines();
        for (position, index) in entries.enumerate() {
            if position > 0 {
                out.push(b',');
            }
            append(&mut out, &mut lines, index);
        }
        out.push(b']');
        into_text(out)
    }

    fn append_entry(&self, out: &mut Vec<u8>, lines: &mut Lines<'_>, index: NodeIndex) {
        let node = self.node(index);
        let Ok(line) = lines.get(index) else {
            // The file was taken away under us; the place in the list must not shift.
            json::append(out, &serde_json::json!({"type": "unreadable", "id": &*node.id}));
            return;
        };
        let mended = mend(line);
        let line = mended.as_deref().unwrap_or(line);
        match node.mended.then(|| Members::of(line)) {
            Some(Ok(mut members)) => {
                members.set("parentId", &node.parent.map(|parent| &*self.node(parent).id));
                members.set("timestamp", &time::to_iso(node.timestamp));
                append_escaped(out, members.to_json().as_bytes());
            }
            _ => append_escaped(out, line),
        }
    }
}

/// Copies JSON; the separators can only be inside strings, where an escape means the same.
fn append_escaped(out: &mut Vec<u8>, json: &[u8]) {
    let mut rest = json;
    while let Some(at) = memchr2(0xC2, 0xE2, rest) {
        let (before, from) = rest.split_at(at);
        out.extend_from_slice(before);
        let (escape, len): (&[u8], _) = match from {
            [0xC2, 0x85, ..] => (b"\\u0085", 2),
            [0xE2, 0x80, 0xA8, ..] => (b"\\u2028", 3),
            [0xE2, 0x80, 0xA9, ..] => (b"\\u2029", 3),
            _ => (&from[..1], 1),
        };
        out.extend_from_slice(escape);
        rest = &from[len..];
    }
    out.extend_from_slice(rest);
}

fn into_text(out: Vec<u8>) -> String {
    String::from_utf8(out).expect("mended lines are UTF-8, and escaping keeps them so")
}
