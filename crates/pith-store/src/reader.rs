//! Reading entries back one by one, for those who show a session to people.

use std::io;

use pith_protocol::Message;
use serde_json::{Map, Value};

use crate::backing::Lines;
use crate::ids::EntryId;
use crate::message::{message_of, object};
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
    use crate::load::load_bytes;

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
}
