//! New sessions from the entries of others.
//!
//! Entries are copied as the bytes they are, with the same ids. Only what must
//! change in the new file does: parents of entries whose parent stays behind, and
//! parents that were mended when the source was read.

use std::fs::Metadata;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use crate::backing::{Backing, Lines, Place};
use crate::branch::BranchSettings;
use crate::context::Context;
use crate::error::StoreError;
use crate::files::{self, Replacement};
use crate::ids::new_entry_id;
use crate::intake::Tail;
use crate::journal::Journal;
use crate::line::{Line, Members};
use crate::load::in_file_io;
use crate::message::{message_of, text_of};
use crate::position::{Noted, Position};
use crate::reconcile::Renumbering;
use crate::sketch::Sketch;
use crate::store::{NewSession, SessionStore};
use crate::time;
use crate::tree::{EntryTree, Inserted, Kind, NodeIndex, Role};

/// A prompt the session can be forked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkMessage {
    pub entry_id: Arc<str>,
    pub text: String,
}

impl SessionStore {
    /// Creates a session with everything before a user message, and returns that message's text too.
    pub fn fork(&self, entry_id: &str) -> Result<(Self, String), StoreError> {
        let index = self.tree.find(entry_id).ok_or(StoreError::NotForkable)?;
        let text = user_text(&self.tree, &mut self.tree.lines(), index).ok_or(StoreError::NotForkable)?;
        let path = self.tree.path(self.tree.node(index).parent);
        Ok((self.copy_branch(&path)?, text))
    }

    /// Creates a session with everything up to an entry.
    pub fn fork_at(&self, entry_id: &str) -> Result<Self, StoreError> {
        let index = self.tree.find(entry_id).ok_or(StoreError::NotForkable)?;
        self.copy_branch(&self.tree.path(Some(index)))
    }

    /// Creates a session with everything up to the leaf.
    pub fn clone_branch(&self) -> Result<Self, StoreError> {
        self.clone_path(self.leaf)
    }

    /// Creates a session with everything up to an entry that was the leaf before.
    pub fn clone_at(&self, entry_id: &str) -> Result<Self, StoreError> {
        self.clone_path(self.tree.find(entry_id))
    }

    fn clone_path(&self, leaf: Option<NodeIndex>) -> Result<Self, StoreError> {
        let path = self.tree.path(leaf);
        if path.is_empty() {
            return Err(StoreError::NothingToClone);
        }
        if !path.iter().any(|&index| self.tree.node(index).kind.is_content()) {
            return Err(StoreError::NotSaved);
        }
        self.copy_branch(&path)
    }

    /// Creates a session in another directory with all entries of a file, which may be in use or newer.
    pub fn fork_file(source: &Path, options: NewSession) -> Result<Self, StoreError> {
        let (tree, report) = EntryTree::open(source)?;
        let source = std::path::absolute(source).unwrap_or_else(|_| source.to_owned());
        let parent_session = Some(options.parent_session.unwrap_or_else(|| source.to_string_lossy().into_owned()));
        let mut store = SessionStore::create(NewSession { parent_session, ..options });
        let _claimed = store.take_claim()?;
        if store.existing_file().is_some() {
            return Err(StoreError::IdTaken(store.id().to_owned()));
        }
        let mut copying = Copying::start(store, &tree, tree.indexes())?;
        let mut lines = tree.lines();
        for index in tree.indexes() {
            let line = lines.get(index).map_err(in_file_io(&source))?;
            let parent = tree.node(index).parent;
            copying.entry(&tree, index, parent, line, &|_| None)?;
        }
        copying.attach_late_parents(&tree);
        let (mut store, _) = copying.finish()?;
        store.reports.extend(report);
        store.load_context(Default::default());
        if let Noted::At(leaf) = Position::find(&std::fs::canonicalize(&source).unwrap_or(source), &tree) {
            // Entries keep their ids, so it is there.
            _ = store.move_leaf(leaf.map(|leaf| &*tree.node(leaf).id));
        }
        Ok(store)
    }

    /// Returns all prompts of the file with text, whatever their branch.
    pub fn fork_messages(&self) -> Vec<ForkMessage> {
        self.tree.fork_messages()
    }

    /// Copies a branch without its labels, then sets the labels of what was copied again.
    fn copy_branch(&self, path: &[NodeIndex]) -> Result<Self, StoreError> {
        let tree = &self.tree;
        let is_label = |index: NodeIndex| tree.node(index).kind == Kind::Label;
        let kept: Vec<_> = path.iter().copied().filter(|&index| !is_label(index)).collect();
        // A compaction that keeps from a label on keeps from the entry after it.
        let instead = |index: NodeIndex| {
            let at = path.iter().position(|&on_path| on_path == index).filter(|_| is_label(index))?;
            path[at..].iter().copied().find(|&index| !is_label(index))
        };
        let mut copying = Copying::start(self.successor(), tree, kept.iter().copied())?;
        let mut lines = tree.lines();
        let mut previous = None;
        for &index in &kept {
            let line = lines.get(index).map_err(in_file_io(self.path().unwrap_or(Path::new(""))))?;
            copying.entry(tree, index, previous, line, &instead)?;
            previous = Some(index);
        }
        copying.labels(tree, &kept)?;
        let (mut store, renumbering) = copying.finish()?;
        // The messages are the same; sharing them saves reading them again.
        let mut known = self.context.clone();
        known.renumber(&renumbering);
        store.context = Context::build(&store.tree, store.leaf, &known);
        Ok(store)
    }

    /// Creates a session of the same kind next to this one.
    fn successor(&self) -> SessionStore {
        let Some(path) = self.path() else { return SessionStore::in_memory(&self.cwd, None) };
        let parent_session = self.is_saved().then(|| path.to_string_lossy().into_owned());
        let session_dir = path.parent().unwrap_or(Path::new("")).to_owned();
        SessionStore::create(NewSession { cwd: self.cwd.clone(), session_dir, id: None, parent_session })
    }
}

impl EntryTree {
    /// Returns all prompts of the file with text, whatever their branch.
    pub fn fork_messages(&self) -> Vec<ForkMessage> {
        let mut lines = self.lines();
        let users = self.indexes().filter(|&index| self.node(index).kind == Kind::Message(Role::User));
        let messages = users.filter_map(|index| {
            let text = user_text(self, &mut lines, index).filter(|text| !text.is_empty())?;
            Some(ForkMessage { entry_id: Arc::clone(&self.node(index).id), text })
        });
        messages.collect()
    }
}

fn user_text(tree: &EntryTree, lines: &mut Lines<'_>, index: NodeIndex) -> Option<String> {
    let node = tree.node(index);
    if node.kind != Kind::Message(Role::User) {
        return None;
    }
    let message = message_of(node.kind, lines.get(index).ok()?, node.timestamp).ok()??;
    Some(text_of(&message))
}

/// A session being filled. Its file appears complete or not at all.
struct Copying {
    store: SessionStore,
    /// `None`: there is nothing worth a file.
    file: Option<NewFile>,
    renumbering: Renumbering,
}

struct NewFile {
    out: BufWriter<Replacement>,
    len: u64,
}

impl Copying {
    fn start(
        store: SessionStore,
        source: &EntryTree,
        mut entries: impl Iterator<Item = NodeIndex>,
    ) -> Result<Self, StoreError> {
        let has_content = entries.any(|index| source.node(index).kind.is_content());
        let file = match store.path().filter(|_| has_content) {
            Some(path) => Some(NewFile::start(path, &store.tree).map_err(in_file_io(path))?),
            None => None,
        };
        Ok(Copying { store, file, renumbering: Renumbering::new() })
    }

    /// Adds an entry of the source below another one that was added before.
    fn entry(
        &mut self,
        source: &EntryTree,
        index: NodeIndex,
        parent: Option<NodeIndex>,
        line: &[u8],
        instead: &dyn Fn(NodeIndex) -> Option<NodeIndex>,
    ) -> Result<(), StoreError> {
        let node = source.node(index);
        let mut scratch = Vec::new();
        let kept = match node.kind {
            Kind::Compaction => {
                let sketch = Sketch::read(line, &mut scratch);
                sketch.and_then(|sketch| instead(source.find(sketch.first_kept.as_deref()?)?))
            }
            _ => None,
        };
        let is_same = !node.mended && parent == node.parent && kept.is_none();
        let mut scratch = Vec::new();
        let added = match Members::read(line, &mut scratch).filter(|_| !is_same) {
            None => self.line([line, b"\n"].concat())?,
            Some(mut members) => {
                members.set("parentId", &parent.map(|parent| &*source.node(parent).id));
                members.set("timestamp", &time::to_iso(node.timestamp));
                if let Some(kept) = kept {
                    members.set("firstKeptEntryId", &*source.node(kept).id);
                }
                self.line(members.to_line())?
            }
        };
        self.renumbering.extend(added.map(|added| (index, added)));
        Ok(())
    }

    /// Attaches entries whose parent came after them.
    fn attach_late_parents(&mut self, source: &EntryTree) {
        for (&from, &to) in &self.renumbering {
            let parent = source.node(from).parent.and_then(|parent| self.renumbering.get(&parent).copied());
            self.store.tree.nodes[to as usize].parent = parent;
        }
    }

    /// Sets the labels of copied entries again, with the times they were set first.
    fn labels(&mut self, source: &EntryTree, kept: &[NodeIndex]) -> Result<(), StoreError> {
        let labelled = kept.iter().filter_map(|&index| Some((index, source.label(&source.node(index).id)?)));
        let mut labelled: Vec<_> = labelled.collect();
        labelled.sort_by_key(|(_, label)| label.timestamp);
        for (index, label) in labelled {
            let tree = &self.store.tree;
            let id = new_entry_id(|id| tree.contains(id) || source.contains(id));
            let line = Line::entry("label", &id, tree.end().map(|end| &**end), label.timestamp);
            let line = line.member("targetId", &*source.node(index).id).member("label", &label.text);
            self.line(line.finish())?;
        }
        Ok(())
    }

    fn line(&mut self, line: Vec<u8>) -> Result<Option<NodeIndex>, StoreError> {
        let mut scratch = Vec::new();
        let Some(sketch) = Sketch::read(&line, &mut scratch) else { return Ok(None) };
        let Inserted::New(index, _) = self.store.tree.insert(&sketch, Place::Memory(Vec::new())) else {
            return Ok(None);
        };
        let path = self.store.path().unwrap_or(Path::new("")).to_owned();
        self.store.tree.nodes[index as usize].place = match &mut self.file {
            Some(file) => file.write(&line).map_err(in_file_io(&path))?,
            None => Place::Memory(line),
        };
        Ok(Some(index))
    }

    fn finish(self) -> Result<(SessionStore, Renumbering), StoreError> {
        let Copying { mut store, file, renumbering } = self;
        store.leaf = store.tree.end;
        match (file, &mut store.journal) {
            (Some(file), Some(journal)) => {
                let path = journal.path.clone();
                let (file, metadata) = file.finish().map_err(in_file_io(&path))?;
                store.tree.backing = Backing::File(Arc::clone(&file));
                *journal = Journal::opened(path, file, &metadata, Tail::Clean);
                store.claim = None;
            }
            (None, Some(journal)) => store.tree.indexes().for_each(|index| journal.add(index)),
            (_, None) => {}
        }
        store.settings = BranchSettings::of(&store.tree, store.leaf);
        Ok((store, renumbering))
    }
}

impl NewFile {
    fn start(path: &Path, tree: &EntryTree) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            pith_config::create_private_directory(directory)?;
            files::remove_stale_replacements(directory);
        }
        let mut file = NewFile { out: BufWriter::new(Replacement::start(path)?), len: 0 };
        file.write(&[&tree.header.line[..], b"\n"].concat())?;
        Ok(file)
    }

    fn write(&mut self, line: &[u8]) -> io::Result<Place> {
        self.out.write_all(line)?;
        let place = Place::Stored { offset: self.len, len: u32::try_from(line.len() - 1).map_err(io::Error::other)? };
        self.len += line.len() as u64;
        Ok(place)
    }

    fn finish(self) -> io::Result<(Arc<std::fs::File>, Metadata)> {
        let file = self.out.into_inner().map_err(|error| error.into_error())?.finish()?;
        let metadata = file.metadata()?;
        Ok((Arc::new(file), metadata))
    }
}
