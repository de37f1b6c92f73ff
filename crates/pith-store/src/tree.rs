//! All entries of a session as a tree.
//!
//! An entry is its line. The tree remembers for each one who its parent is, what
//! kind it is and where the line lies; content is read back when someone asks.

use std::collections::HashMap;
use std::io;

use crate::backing::{Backing, Lines, Place};
use crate::ids::EntryId;
use crate::sketch::{Parent, Sketch};
use crate::tally::Tally;

/// Position of an entry in the tree, in file order.
pub(crate) type NodeIndex = u32;

/// Stands for the name of a tool, in the order they were met.
type ToolIndex = u32;

/// The entries of one session, whatever their branch.
pub struct EntryTree {
    pub(crate) header: Header,
    pub(crate) nodes: Vec<Node>,
    by_id: HashMap<EntryId, NodeIndex>,
    labels: HashMap<EntryId, Label>,
    tools: HashMap<Box<str>, ToolIndex>,
    name: Option<String>,
    tally: Tally,
    /// The last entry of the file, which is where a session continues.
    pub(crate) end: Option<NodeIndex>,
    pub(crate) backing: Backing,
    /// How many nodes were looked at, so that tests can tell constant from linear work.
    #[cfg(test)]
    pub(crate) n_visits: std::cell::Cell<u64>,
}

/// The first line of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    pub id: String,
    pub version: u32,
    /// Unix milliseconds.
    pub created: i64,
    /// Empty if the file does not say.
    pub cwd: String,
    pub parent_session: Option<String>,
    /// The line as it is in the file, without newline.
    pub line: Vec<u8>,
}

/// A bookmark on an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub text: String,
    /// Unix milliseconds of the `label` entry.
    pub timestamp: i64,
}

#[derive(Clone)]
pub(crate) struct Node {
    pub id: EntryId,
    pub parent: Option<NodeIndex>,
    /// Unix milliseconds.
    pub timestamp: i64,
    pub kind: Kind,
    /// The tool a result is of.
    tool: Option<ToolIndex>,
    /// Parent or timestamp differ from what the line says.
    pub mended: bool,
    pub place: Place,
}

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Message(Role),
    ModelChange,
    ThinkingLevelChange,
    SessionInfo,
    Label,
    Compaction,
    BranchSummary,
    Custom,
    CustomMessage,
    ContextEdit,
    Usage,
    /// A type this version does not know; kept verbatim.
    Other,
}

/// The role of a `message` entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    User,
    Assistant,
    ToolResult,
    BashExecution,
    Custom,
    System,
    Other,
}

/// What became of a line offered to the tree.
pub(crate) enum Inserted {
    /// A new entry; `Some` carries the name of a parent the tree does not have (yet).
    New(NodeIndex, Option<Box<str>>),
    /// The id is known: either the same line again, or the place of a line held in memory.
    Known,
    /// The id was known with other content, which this line replaces.
    Replaced(NodeIndex, Option<Box<str>>),
    /// No usable id.
    Nameless,
}

impl EntryTree {
    pub(crate) fn new(header: Header, backing: Backing) -> Self {
        EntryTree {
            header,
            nodes: Vec::new(),
            by_id: HashMap::new(),
            labels: HashMap::new(),
            tools: HashMap::new(),
            name: None,
            tally: Tally::default(),
            end: None,
            backing,
            #[cfg(test)]
            n_visits: Default::default(),
        }
    }

    /// Returns the header, the first line of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the session's name; the last one given in the file counts, on whatever branch.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Totals over all entries.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no entry at all.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the last entry of the file, which is where a session continues.
    pub fn end(&self) -> Option<&EntryId> {
        self.end.map(|end| &self.node(end).id)
    }

    /// Whether an entry of that id exists.
    pub fn contains(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    /// Returns the kind of an entry.
    pub fn kind(&self, id: &str) -> Option<Kind> {
        self.find(id).map(|index| self.node(index).kind)
    }

    /// Returns the parent of an entry; `None` also for roots.
    pub fn parent(&self, id: &str) -> Option<&EntryId> {
        let parent = self.node(self.find(id)?).parent?;
        Some(&self.node(parent).id)
    }

    /// Returns the bookmark on an entry.
    pub fn label(&self, id: &str) -> Option<&Label> {
        self.labels.get(id)
    }

    /// Returns the entry's line without newline, as the file has it.
    pub fn line(&self, id: &str) -> Option<io::Result<Vec<u8>>> {
        let index = self.find(id)?;
        Some(self.lines().get(index).map(<[u8]>::to_vec))
    }

    pub(crate) fn find(&self, id: &str) -> Option<NodeIndex> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn node(&self, index: NodeIndex) -> &Node {
        #[cfg(test)]
        self.n_visits.set(self.n_visits.get() + 1);
        &self.nodes[index as usize]
    }

    pub(crate) fn indexes(&self) -> std::ops::Range<NodeIndex> {
        0..self.next_index()
    }

    pub(crate) fn lines(&self) -> Lines<'_> {
        Lines::new(&self.nodes, &self.backing)
    }

    /// Entries from a root down to `leaf`.
    pub(crate) fn path(&self, leaf: Option<NodeIndex>) -> Vec<NodeIndex> {
        let mut path: Vec<_> = std::iter::successors(leaf, |&index| self.node(index).parent).collect();
        path.reverse();
        path
    }

    /// Returns the results of a tool on the way from `leaf` to its root, newest first.
    pub(crate) fn results_of(&self, tool: &str, leaf: Option<NodeIndex>) -> impl Iterator<Item = NodeIndex> {
        let tool = self.tools.get(tool).copied();
        let branch = std::iter::successors(leaf.filter(|_| tool.is_some()), |&index| self.node(index).parent);
        branch.filter(move |&index| self.node(index).tool == tool)
    }

    /// Adds the entry a line describes. Its parent is settled by the caller if it is not known yet.
    pub(crate) fn insert(&mut self, sketch: &Sketch<'_>, place: Place) -> Inserted {
        let Some(id) = sketch.id.as_deref() else { return Inserted::Nameless };
        let known = self.find(id);
        if let Some(index) = known
            && self.holds_same(index, &place)
        {
            // A line written by us and found again on the disk needs no copy in memory any more.
            self.nodes[index as usize].place = place;
            return Inserted::Known;
        }
        let previous = self.nodes.last().map_or(self.header.created, |node| node.timestamp);
        let kind = Kind::of(sketch);
        let tool = self.tool_of(kind, sketch);
        let (parent, missing) = self.parent_of(sketch, id);
        let timestamp = sketch.timestamp.unwrap_or(previous);
        let mended = sketch.timestamp.is_none();
        let node = Node { id: id.into(), parent, timestamp, kind, tool, mended, place };
        self.observe(kind, sketch, timestamp);
        self.end = Some(known.unwrap_or_else(|| self.next_index()));
        match known {
            Some(index) => {
                self.forget(index);
                self.nodes[index as usize] = Node { id: self.node(index).id.clone(), ..node };
                Inserted::Replaced(index, missing)
            }
            None => {
                let index = self.next_index();
                self.by_id.insert(node.id.clone(), index);
                self.nodes.push(node);
                Inserted::New(index, missing)
            }
        }
    }

    /// Attaches an entry elsewhere than its line says.
    pub(crate) fn reattach(&mut self, index: NodeIndex, parent: Option<NodeIndex>) {
        let node = &mut self.nodes[index as usize];
        node.parent = parent;
        node.mended = true;
    }

    fn next_index(&self) -> NodeIndex {
        NodeIndex::try_from(self.nodes.len()).expect("a file of 2 GiB has fewer than 2^32 lines")
    }

    fn tool_of(&mut self, kind: Kind, sketch: &Sketch<'_>) -> Option<ToolIndex> {
        let name = sketch.message.tool_name.as_deref().filter(|_| kind == Kind::Message(Role::ToolResult))?;
        if let Some(&tool) = self.tools.get(name) {
            return Some(tool);
        }
        let tool = ToolIndex::try_from(self.tools.len()).expect("there are no more tools than entries");
        self.tools.insert(name.into(), tool);
        Some(tool)
    }

    fn parent_of(&self, sketch: &Sketch<'_>, id: &str) -> (Option<NodeIndex>, Option<Box<str>>) {
        match &sketch.parent {
            // An entry that is its own parent is a root.
            Parent::Id(parent) if parent != id => match self.find(parent) {
                Some(index) => (Some(index), None),
                None => (None, Some((**parent).into())),
            },
            Parent::Id(_) | Parent::Root => (None, None),
            // The first entry cannot have one.
            Parent::Unknown if self.nodes.is_empty() => (None, None),
            Parent::Unknown => (None, Some("unknown".into())),
        }
    }

    /// Whether the line at `place` is the one the tree already has.
    fn holds_same(&self, index: NodeIndex, place: &Place) -> bool {
        if self.node(index).place.len() != place.len() {
            return false;
        }
        let Ok(known) = self.lines().get(index).map(<[u8]>::to_vec) else { return false };
        self.lines().at(place).is_ok_and(|line| line == known)
    }

    /// Takes in what an entry says about the session as a whole.
    fn observe(&mut self, kind: Kind, sketch: &Sketch<'_>, timestamp: i64) {
        self.tally.add(kind, sketch);
        match kind {
            Kind::SessionInfo => self.name = sketch.name.as_deref().and_then(clean_name),
            Kind::Label => {
                let Some(target) = sketch.target.as_deref() else { return };
                match sketch.label.as_deref() {
                    Some(text) if !text.is_empty() => {
                        self.labels.insert(target.into(), Label { text: text.to_owned(), timestamp });
                    }
                    _ => {
                        self.labels.remove(target);
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes back the numbers of an entry that is about to be replaced.
    fn forget(&mut self, index: NodeIndex) {
        let kind = self.node(index).kind;
        let Ok(line) = self.lines().get(index).map(<[u8]>::to_vec) else { return };
        if let Some(sketch) = Sketch::read(&line, &mut Vec::new()) {
            self.tally.remove(kind, &sketch);
        }
    }
}

/// Returns a session name on one line, without blanks around it; `None` if nothing is left.
pub(crate) fn clean_name(name: &str) -> Option<String> {
    let lines: Vec<_> = name.split(['\r', '\n']).filter(|line| !line.is_empty()).collect();
    let name = lines.join(" ");
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

impl Kind {
    pub(crate) fn of(sketch: &Sketch<'_>) -> Self {
        match sketch.kind.as_deref() {
            Some("message") => match sketch.message.role.as_deref() {
                Some(role) => Kind::Message(Role::of(role)),
                None => Kind::Other,
            },
            Some("model_change") => Kind::ModelChange,
            Some("thinking_level_change") => Kind::ThinkingLevelChange,
            Some("session_info") => Kind::SessionInfo,
            Some("label") => Kind::Label,
            Some("compaction") => Kind::Compaction,
            Some("branch_summary") => Kind::BranchSummary,
            Some("custom") => Kind::Custom,
            Some("custom_message") => Kind::CustomMessage,
            Some("context_edit") => Kind::ContextEdit,
            Some("usage") => Kind::Usage,
            _ => Kind::Other,
        }
    }

    /// Whether the entry is worth a file. Settings alone are not, so a start without a prompt leaves no file.
    pub(crate) fn is_content(self) -> bool {
        !matches!(self, Kind::ModelChange | Kind::ThinkingLevelChange)
    }
}

impl Role {
    fn of(role: &str) -> Self {
        match role {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "toolResult" => Role::ToolResult,
            "bashExecution" => Role::BashExecution,
            "custom" => Role::Custom,
            "system" => Role::System,
            _ => Role::Other,
        }
    }
}
