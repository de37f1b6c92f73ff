//! What a branch has used of a model, entry by entry.

use std::sync::Arc;

use pith_protocol::{Message, Usage};
use serde_json::Value;

use crate::ids::EntryId;
use crate::message::{message_of, object};
use crate::store::SessionStore;
use crate::tree::{Kind, NodeIndex, Role};

/// An entry that says what was used.
#[derive(Clone, Debug, PartialEq)]
pub enum Spent {
    /// An answer, or the result of a call.
    Message(Box<Message>),
    /// A summary, or a request outside of the conversation.
    Summary(Usage),
    /// The data of a `custom` entry of the type asked for.
    Record(Value),
}

/// What was used, and since when.
pub enum SpentSince {
    /// After the entry asked for.
    Entry(Vec<Spent>),
    /// On the whole branch: the entry asked for is not on it.
    Root(Vec<Spent>),
}

impl SessionStore {
    /// Returns what the branch has used since an entry, oldest first, with the records of a custom type. Nothing before
    /// that entry is read.
    pub fn spent_since(&self, entry: Option<&str>, record_type: &str) -> SpentSince {
        let known = entry.and_then(|id| self.tree.find(id));
        let mut path = Vec::new();
        for index in std::iter::successors(self.leaf, |&index| self.tree.node(index).parent) {
            if Some(index) == known {
                return SpentSince::Entry(self.spent(path, record_type));
            }
            path.push(index);
        }
        SpentSince::Root(self.spent(path, record_type))
    }

    /// Returns the id of the leaf.
    pub fn leaf_id(&self) -> Option<EntryId> {
        self.leaf.map(|leaf| Arc::clone(&self.tree.node(leaf).id))
    }

    /// Reads entries that are listed newest first.
    fn spent(&self, path: Vec<NodeIndex>, record_type: &str) -> Vec<Spent> {
        let mut lines = self.tree.lines();
        let mut read = |index: NodeIndex| {
            let node = self.tree.node(index);
            let line = match node.kind {
                Kind::Message(Role::Assistant | Role::ToolResult)
                | Kind::Compaction
                | Kind::BranchSummary
                | Kind::Usage
                | Kind::Custom => lines.get(index).ok()?,
                _ => return None,
            };
            match node.kind {
                Kind::Message(_) => Some(Spent::Message(Box::new(message_of(node.kind, line, node.timestamp).ok()??))),
                Kind::Custom => {
                    let mut entry = object(line).ok()?;
                    (entry.get("customType")?.as_str()? == record_type)
                        .then(|| entry.remove("data").map(Spent::Record))
                        .flatten()
                }
                _ => serde_json::from_value(object(line).ok()?.remove("usage")?).ok().map(Spent::Summary),
            }
        };
        path.into_iter().rev().filter_map(&mut read).collect()
    }
}
