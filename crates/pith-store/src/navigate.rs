//! Moving within the tree of a session.

use std::path::Path;
use std::sync::Arc;

use pith_protocol::Message;

use crate::branch::BranchSettings;
use crate::context::edits;
use crate::error::StoreError;
use crate::ids::EntryId;
use crate::message::{text_of, with_content};
use crate::position::{Noted, Position};
use crate::store::SessionStore;
use crate::tree::{Kind, NodeIndex, Role};

/// The `customType` of the entry that makes a navigation survive a restart.
const LEAF_MARK: &str = "pith.leaf";

/// Where navigating to an entry leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub leaf: Option<EntryId>,
    /// The prompt that would be written again, for editing.
    pub text: Option<String>,
}

/// A move of the leaf that no append has followed.
pub(crate) struct Move {
    /// The last entry of the file when it was made.
    end: Option<EntryId>,
}

impl SessionStore {
    /// Returns where navigating to an entry leads: a prompt is taken back, anything else becomes the leaf.
    pub fn destination(&self, target: &str) -> Result<Destination, StoreError> {
        let index = self.existing(target)?;
        let node = self.tree.node(index);
        match node.kind {
            Kind::Message(Role::User | Role::Custom) | Kind::CustomMessage => Ok(Destination {
                leaf: node.parent.map(|parent| Arc::clone(&self.tree.node(parent).id)),
                text: Some(self.tree.message(target).map(|message| text_of(&message)).unwrap_or_default()),
            }),
            _ => Ok(Destination { leaf: Some(Arc::clone(&node.id)), text: None }),
        }
    }

    /// Continues from another entry, or from before all entries. The session file stays as it is; a note beside it
    /// makes the position survive a process that is killed.
    pub fn move_leaf(&mut self, leaf: Option<&str>) -> Result<(), StoreError> {
        self.refresh();
        let leaf = leaf.map(|id| self.existing(id)).transpose()?;
        if leaf == self.leaf {
            return Ok(());
        }
        self.leaf = leaf;
        self.moved = Some(Move { end: self.tree.end().cloned() });
        self.settings = BranchSettings::of(&self.tree, leaf);
        self.rebuild_context();
        self.note_position();
        Ok(())
    }

    fn note_position(&mut self) {
        if self.leaf == self.tree.end {
            return self.forget_position();
        }
        let Some(journal) = self.journal.as_ref().filter(|journal| journal.is_created()) else { return };
        match Position::note(&journal.target, &self.tree, self.leaf) {
            Ok(()) => self.has_note = true,
            // An entry does the same, and stays.
            Err(_) => _ = self.append_custom(LEAF_MARK, None),
        }
    }

    /// Removes the note of a position that the entries now show.
    pub(crate) fn forget_position(&mut self) {
        if let Some(journal) = self.journal.as_ref().filter(|_| self.has_note) {
            Position::forget(&journal.target);
            self.has_note = false;
        }
    }

    /// Goes to the position a process noted before it was killed. For files that were just read.
    pub(crate) fn restore_position(&mut self, session: &Path) {
        match Position::find(session, &self.tree) {
            Noted::Nothing => {}
            Noted::Stale => self.has_note = true,
            Noted::At(leaf) => {
                self.has_note = true;
                self.leaf = leaf;
                self.moved = Some(Move { end: self.tree.end().cloned() });
                self.settings = BranchSettings::of(&self.tree, leaf);
            }
        }
    }

    /// Returns the entries that would be left by moving to another leaf, oldest first: everything
    /// from the current leaf up to where the two branches meet.
    pub fn left_behind(&self, leaf: Option<&str>) -> Result<Vec<EntryId>, StoreError> {
        Ok(self.path_left(leaf)?.iter().map(|&index| Arc::clone(&self.tree.node(index).id)).collect())
    }

    /// Returns the messages of the entries that would be left, as a request would have had them: with the edits of that
    /// branch, so without answers that were retried.
    pub fn messages_left_behind(&self, leaf: Option<&str>) -> Result<Vec<Arc<Message>>, StoreError> {
        let left = self.path_left(leaf)?;
        let mut edits = edits(&self.tree, &left);
        let message = |index: &NodeIndex| {
            let message = self.tree.message(&self.tree.node(*index).id)?;
            Some(Arc::new(match edits.remove(index) {
                None => message,
                Some(edit) => with_content(&message, edit.content?),
            }))
        };
        Ok(left.iter().filter_map(message).collect())
    }

    fn path_left(&self, leaf: Option<&str>) -> Result<Vec<NodeIndex>, StoreError> {
        let leaf = leaf.map(|id| self.existing(id)).transpose()?;
        let (mut from, to) = (self.tree.path(self.leaf), self.tree.path(leaf));
        let n_common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        Ok(from.split_off(n_common))
    }

    /// Makes a navigation durable for other programs too: they continue files at their last
    /// entry, so one is appended below the leaf. For use before the session is closed; does
    /// nothing if the last entry is the leaf anyway, if there is no file, or if another process
    /// has gone on with the session since the navigation.
    pub fn save_leaf(&mut self) -> Option<EntryId> {
        if !self.is_saved() {
            return None;
        }
        self.refresh();
        let is_latest = self.moved.as_ref().is_some_and(|moved| moved.end.as_ref() == self.tree.end());
        if !is_latest || self.leaf == self.tree.end {
            return None;
        }
        Some(self.append_custom(LEAF_MARK, None))
    }

    fn existing(&self, id: &str) -> Result<NodeIndex, StoreError> {
        self.tree.find(id).ok_or_else(|| StoreError::EntryNotFound(id.to_owned()))
    }
}
