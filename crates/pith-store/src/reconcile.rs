//! Carrying on when the session file is no longer the one pith was writing.
//!
//! Files get deleted, restored, or rewritten by editors and sync programs while a
//! session is open. Whatever is at the path now is read; entries pith knows and
//! the file lacks are written to it again.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::backing::{Backing, Lines, Place};
use crate::error::StoreError;
use crate::files;
use crate::journal::Journal;
use crate::line::Line;
use crate::load::{Loaded, load, open_for_reading, read_header};
use crate::report::{ReportKind, StoreReport};
use crate::sketch::Sketch;
use crate::store::SessionStore;
use crate::tree::{EntryTree, Header, Inserted, Kind, NodeIndex};

/// Where the entries of one tree are in another.
pub(crate) type Renumbering = HashMap<NodeIndex, NodeIndex>;

struct CopiedEntries {
    renumbering: Renumbering,
    /// Entries the file lacks.
    unsaved: Vec<NodeIndex>,
    n_lost: usize,
}

impl SessionStore {
    /// Moves the session over to the file that is at its path now, or to a new one.
    pub(crate) fn reconcile(&mut self) -> io::Result<()> {
        let Some(path) = self.path().map(Path::to_owned) else { return Ok(()) };
        let present = self.present_file(&path, |header| header.id == self.id())?;
        let planned = || (EntryTree::new(self.tree.header.clone(), Backing::None), Journal::planned(path.clone()));
        self.switch_to(present.unwrap_or_else(planned), |n_unsaved, n_lost| {
            let lost = if n_lost == 0 { String::new() } else { format!("; {n_lost} could not be recovered") };
            let path = path.display();
            format!("session file {path}: another program removed or replaced it; {n_unsaved} entries are written again{lost}")
        });
        Ok(())
    }

    /// Continues with another tree and file, and adds the entries that they lack. The message tells how many entries
    /// that are, and how many are lost.
    pub(crate) fn switch_to(
        &mut self,
        (mut tree, journal): (EntryTree, Journal),
        message: impl FnOnce(usize, usize) -> String,
    ) {
        let CopiedEntries { renumbering, unsaved, n_lost } = self.copy_missing(&mut tree);
        let message = message(unsaved.len(), n_lost);
        self.reports.push(StoreReport { kind: ReportKind::Repair, message });
        if let Some(old) = &mut self.journal {
            old.continue_as(journal, unsaved);
        }
        self.report_unreadable();
        let branch = std::iter::successors(self.leaf, |&at| self.tree.node(at).parent);
        self.leaf = branch.into_iter().find_map(|at| renumbering.get(&at).copied());
        self.tree = tree;
        self.context.renumber(&renumbering);
    }

    /// Returns what is at the path now; `None` for nothing or an empty file.
    pub(crate) fn present_file(
        &self,
        path: &Path,
        is_ours: impl Fn(&Header) -> bool,
    ) -> io::Result<Option<(EntryTree, Journal)>> {
        let (file, metadata) = match open_for_reading(path) {
            Ok((_, metadata)) if metadata.len() == 0 => return Ok(None),
            Err(StoreError::NotFound(_)) => return Ok(None),
            Ok(_) => {
                let file = files::open_append(path)?;
                let metadata = file.metadata()?;
                (Arc::new(file), metadata)
            }
            Err(error) => return Err(io::Error::other(error)),
        };
        let header = read_header(path, &file, metadata.len()).map_err(io::Error::other)?;
        if !is_ours(&header) {
            return Err(io::Error::other(format!("another session ({}) is there now", header.id)));
        }
        let Loaded { tree, tail, .. } = load(path, &file, metadata.len(), header).map_err(io::Error::other)?;
        Ok(Some((tree, Journal::opened(path.to_owned(), file, &metadata, tail))))
    }

    /// Adds the entries another tree lacks to it.
    fn copy_missing(&self, tree: &mut EntryTree) -> CopiedEntries {
        let mut lines = self.tree.lines();
        let mut over = CopiedEntries { renumbering: HashMap::new(), unsaved: Vec::new(), n_lost: 0 };
        for index in self.tree.indexes() {
            let node = self.tree.node(index);
            let found = tree.find(&node.id).or_else(|| {
                let line = self.recover_line(&mut lines, index)?;
                let ancestors = std::iter::successors(node.parent, |&at| self.tree.node(at).parent);
                let parent = ancestors.into_iter().find_map(|at| over.renumbering.get(&at).copied());
                let added = add(tree, line, parent)?;
                over.unsaved.push(added);
                Some(added)
            });
            match found {
                Some(found) => _ = over.renumbering.insert(index, found),
                None => over.n_lost += 1,
            }
        }
        over
    }

    /// Returns the line of an entry, from the old file if it can still be read there. A message of
    /// the context can be written again even if not.
    fn recover_line(&self, lines: &mut Lines<'_>, index: NodeIndex) -> Option<Vec<u8>> {
        let node = self.tree.node(index);
        if let Ok(line) = lines.get(index)
            && Sketch::read(line, &mut Vec::new()).is_some_and(|sketch| sketch.id.as_deref() == Some(&*node.id))
        {
            return Some([line, b"\n"].concat());
        }
        let Kind::Message(_) = node.kind else { return None };
        let message = self.context.original(index)?;
        let parent = node.parent.map(|parent| &*self.tree.node(parent).id);
        Some(Line::entry("message", &node.id, parent, node.timestamp).member("message", &**message).finish())
    }
}

fn add(tree: &mut EntryTree, line: Vec<u8>, parent: Option<NodeIndex>) -> Option<NodeIndex> {
    let mut scratch = Vec::new();
    let sketch = Sketch::read(&line, &mut scratch)?;
    let Inserted::New(index, _) = tree.insert(&sketch, Place::Memory(Vec::new())) else { return None };
    if tree.node(index).parent != parent {
        tree.reattach(index, parent);
    }
    tree.nodes[index as usize].place = Place::Memory(line);
    Some(index)
}
