//! Moving within the tree of a session.

use std::sync::Arc;

use crate::branch::BranchSettings;
use crate::error::StoreError;
use crate::ids::EntryId;
use crate::message::text_of;
use crate::store::SessionStore;
use crate::tree::{Kind, NodeIndex, Role};

/// The `customType` of the entry that makes a navigation survive a restart.
const LEAF_MARK: &str = "pith.leaf";

/// Where navigating to an entry leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub leaf: Option<EntryId>,
    /// The prompt that would be written anew, for editing.
    pub text: Option<String>,
}

impl SessionStore {
    /// Where navigating to an entry leads: a prompt is taken back, anything else becomes the leaf.
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

    /// Continues from another entry, or from before all entries. Nothing is written.
    pub fn move_leaf(&mut self, leaf: Option<&str>) -> Result<(), StoreError> {
        let leaf = leaf.map(|id| self.existing(id)).transpose()?;
        if leaf == self.leaf {
            return Ok(());
        }
        self.leaf = leaf;
        self.is_moved = true;
        self.settings = BranchSettings::of(&self.tree, leaf);
        self.rebuild_context();
        Ok(())
    }

    /// The entries that would be left by moving to another leaf, oldest first: everything
    /// from the current leaf up to where the two branches meet.
    pub fn left_behind(&self, leaf: Option<&str>) -> Result<Vec<EntryId>, StoreError> {
        let leaf = leaf.map(|id| self.existing(id)).transpose()?;
        let (from, to) = (self.tree.path(self.leaf), self.tree.path(leaf));
        let n_common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        Ok(from[n_common..].iter().map(|&index| Arc::clone(&self.tree.node(index).id)).collect())
    }

    /// Makes a navigation durable: files are continued at their last entry, so one is
    /// appended below the leaf. For use before the session is closed; does nothing
    /// if the last entry is the leaf anyway, or if there is no file.
    pub fn settle_leaf(&mut self) -> Option<EntryId> {
        if !self.is_moved || !self.is_saved() || self.leaf == self.tree.end {
            return None;
        }
        Some(self.append_custom(LEAF_MARK, None))
    }

    fn existing(&self, id: &str) -> Result<NodeIndex, StoreError> {
        self.tree.find(id).ok_or_else(|| StoreError::EntryNotFound(id.to_owned()))
    }
}
