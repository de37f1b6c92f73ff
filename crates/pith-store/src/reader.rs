//! Reading entries back one by one, for those who show a session to people.

use std::io;

use pith_protocol::Message;
use serde_json::{Map, Value};

use crate::backing::{Backing, Lines};
use crate::context::read_message;
use crate::ids::EntryId;
use crate::message::{contributes, message_of, object};
use crate::store::SessionStore;
use crate::tree::{EntryTree, Kind, Node, NodeIndex};

/// Reads the entries of a tree by position; cheap for many of them in file order.
pub struct EntryReader<'t> {
    tree: &'t EntryTree,
    lines: Lines<'t>,
}

/// What the tree knows of an entry without reading it.
#[derive(Clone, Copy)]
pub struct EntryOutline<'t> {
    pub id: &'t EntryId,
    pub kind: Kind,
    /// Unix milliseconds.
    pub timestamp: i64,
    /// The parent's position in file order.
    pub parent: Option<usize>,
}

/// One entry with its content.
pub struct StoredEntry<'a> {
    pub outline: EntryOutline<'a>,
    /// The line without newline, as the file has it.
    pub line: &'a [u8],
}

/// The messages from the first entry to the leaf as they were at one moment. They stay in the file until someone reads
/// them, while the session goes on.
pub struct StoredBranch {
    nodes: Vec<Node>,
    backing: Backing,
}

impl SessionStore {
    /// Returns the branch of the leaf, also what a summary has replaced for the model.
    pub fn stored_branch(&self) -> StoredBranch {
        let path = self.tree.path(self.leaf).into_iter().map(|index| self.tree.node(index));
        let nodes = path.filter(|node| contributes(node.kind)).cloned().collect();
        StoredBranch { nodes, backing: self.tree.backing.clone() }
    }
}

impl StoredBranch {
    /// Reads one message after the other, oldest first, each with the id of its entry. What cannot be read is left out.
    pub fn messages(&self) -> impl Iterator<Item = (&EntryId, Message)> {
        let mut lines = Lines::new(&self.nodes, &self.backing);
        (0..).zip(&self.nodes).filter_map(move |(index, node)| {
            let message = read_message(node, lines.get(index)).ok()?;
            Some((&node.id, message))
        })
    }
}

impl EntryTree {
    /// Returns a reader over all entries.
    pub fn reader(&self) -> EntryReader<'_> {
        EntryReader { tree: self, lines: self.lines() }
    }

    /// Returns all entries in file order.
    pub fn outline(&self) -> impl ExactSizeIterator<Item = EntryOutline<'_>> {
        self.nodes.iter().map(Node::outline)
    }

    /// Returns the positions of the entries from a root down to the given one.
    pub fn path_to(&self, id: Option<&str>) -> Vec<usize> {
        let leaf = id.and_then(|id| self.find(id));
        self.path(leaf).into_iter().map(|index| index as usize).collect()
    }
}

impl EntryReader<'_> {
    /// Returns the entry at a position below [`EntryTree::len`].
    pub fn read(&mut self, position: usize) -> io::Result<StoredEntry<'_>> {
        let index = NodeIndex::try_from(position).map_err(|_| io::ErrorKind::InvalidInput)?;
        let node = self.tree.nodes.get(position).ok_or(io::ErrorKind::InvalidInput)?;
        let line = self.lines.get(index)?;
        Ok(StoredEntry { outline: node.outline(), line })
    }
}

impl Node {
    fn outline(&self) -> EntryOutline<'_> {
        let parent = self.parent.map(|parent| parent as usize);
        EntryOutline { id: &self.id, kind: self.kind, timestamp: self.timestamp, parent }
    }
}

impl StoredEntry<'_> {
    /// Returns the message the entry contributes to the conversation, `None` if its kind contributes none.
    pub fn message(&self) -> io::Result<Option<Message>> {
        Ok(message_of(self.outline.kind, self.line, self.outline.timestamp)?)
    }

    /// Returns all members of the line.
    pub fn members(&self) -> io::Result<Map<String, Value>> {
        Ok(object(self.line)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::append::CompactionEntry;
    use crate::load::load_bytes;
    use pith_protocol::UserMessage;

    #[test]
    fn entries_are_read_by_position_and_branches_by_id() {
        let file = concat!(
            r#"{"type":"session","version":3,"id":"s","timestamp":"2026-11-15T06:52:54.872Z","cwd":"/"}"#,
            "\n",
            r#"{"type":"message","id":"a","parentId":null,"timestamp":"2026-11-15T06:52:55.000Z","message":{"role":"user","content":"one"}}"#,
            "\n",
            r#"{"type":"custom","id":"b","parentId":"a","timestamp":"2026-11-15T06:52:56.000Z","customType":"x"}"#,
            "\n",
            r#"{"type":"message","id":"c","parentId":"a","timestamp":"2026-11-15T06:52:57.000Z","message":{"role":"user","content":"two"}}"#,
            "\n",
        );
        let Ok(loaded) = load_bytes(file.as_bytes().into()) else { panic!("the file loads") };
        let tree = loaded.tree;
        let parents: Vec<_> = tree.outline().map(|entry| (&**entry.id, entry.parent)).collect();
        assert_eq!(parents, [("a", None), ("b", Some(0)), ("c", Some(0))]);
        assert_eq!(
            (tree.path_to(Some("c")), tree.path_to(None), tree.path_to(Some("?"))),
            (vec![0, 2], vec![], vec![])
        );
        let mut reader = tree.reader();
        let entry = reader.read(2).unwrap();
        let Some(Message::User(message)) = entry.message().unwrap() else { panic!("a prompt") };
        assert_eq!((&**entry.outline.id, message.content.text()), ("c", "two".to_owned()));
        assert!(reader.read(1).unwrap().message().unwrap().is_none());
        assert_eq!(reader.read(1).unwrap().members().unwrap()["customType"], "x");
        assert!(reader.read(3).is_err());
    }

    #[test]
    fn a_branch_is_read_as_it_was_while_the_session_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.jsonl");
        let prompt = |text: &str| std::sync::Arc::new(Message::User(UserMessage::new(text.to_owned(), vec![], 1)));
        let shown = |branch: &StoredBranch| -> Vec<(EntryId, String)> {
            let text = |message| match message {
                Message::User(message) => message.content.text(),
                Message::CompactionSummary(compaction) => compaction.summary,
                other => panic!("{other:?}"),
            };
            branch.messages().map(|(id, message)| (id.clone(), text(message))).collect()
        };
        let mut store = SessionStore::create_at(&path, directory.path(), None);
        let first = store.append_message(&prompt("one"));
        store.append_message(&prompt("left"));
        store.move_leaf(Some(&first)).unwrap();
        store.append_label(&first, Some("mark")).unwrap();
        let summary = store.append_compaction(&CompactionEntry { summary: "S".into(), ..Default::default() });
        let branch = store.stored_branch();
        store.append_message(&prompt("two"));
        assert_eq!(shown(&branch), [(first, "one".to_owned()), (summary, "S".to_owned())]);
        drop(store);
        // What another program writes over it is no longer there to be shown.
        let mut store = SessionStore::resume(&path, directory.path()).unwrap();
        store.append_message(&prompt("three"));
        let branch = store.stored_branch();
        let lines = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, lines.replace("\"one\"", "\"1ne\"").replace("\"two\"", r#""tw\""#)).unwrap();
        assert_eq!(shown(&branch).iter().map(|(_, text)| &**text).collect::<Vec<_>>(), ["1ne", "S", "three"]);
    }
}
