//! The shape of a session before anything of it is written: which entries there
//! are, how they hang together, and a line of text about each.

use std::collections::{BTreeSet, HashMap, HashSet};

use pith_protocol::{AssistantMessage, Block, Content, Message};
use pith_store::{EntryOutline, EntryTree, Kind, Role, StoredEntry};
use serde_json::{Map, Value};

use crate::call::gist;
use crate::words::excerpt;

/// How long the line about an entry may be.
const EXCERPT: usize = 140;

/// Everything the page needs to know about all entries at once.
pub(crate) struct Outline<'t> {
    /// In file order.
    pub rows: Vec<Row<'t>>,
    /// Positions in the order a reader expects a tree, with their indentation.
    pub order: Vec<(usize, usize)>,
    /// Positions from the root to the leaf.
    pub branch: Vec<usize>,
    /// Whether there are entries on other branches.
    pub has_branches: bool,
    /// Models that answered, in order of first use.
    pub models: Vec<String>,
    /// Calls that are shown with their result, as position of the message and number of the call.
    answered: HashSet<(usize, usize)>,
}

/// One entry.
pub(crate) struct Row<'t> {
    pub entry: EntryOutline<'t>,
    pub group: Group,
    pub excerpt: String,
    pub is_on_branch: bool,
    /// The call a tool result answers: position of its message, number in it.
    pub answers: Option<(usize, usize)>,
}

/// What the navigator's filters tell apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Group {
    User,
    Assistant,
    /// An answer that only calls tools; the results speak for it.
    Calls,
    Tool,
    /// Other parts of the conversation: host commands, extensions, summaries.
    Other,
    /// Settings and bookkeeping.
    Setting,
}

/// The calls of one answer.
struct Calls(Vec<(String, String)>);

impl<'t> Outline<'t> {
    /// Looks at every entry once.
    pub fn read(tree: &'t EntryTree, leaf: Option<&str>) -> Self {
        let mut rows: Vec<Row<'t>> = Vec::with_capacity(tree.len());
        let mut calls = HashMap::new();
        let mut models = Vec::new();
        let mut results = Vec::new();
        let mut reader = tree.reader();
        for (position, entry) in tree.outline().enumerate() {
            let (group, text) = match reader.read(position) {
                Ok(stored) => {
                    let message = stored.message().ok().flatten();
                    match &message {
                        Some(Message::Assistant(message)) => {
                            add_model(&mut models, message);
                            calls.insert(position, Calls::of(message));
                        }
                        Some(Message::ToolResult(result)) => results.push((position, result.tool_call_id.clone())),
                        _ => {}
                    }
                    describe(&stored, message)
                }
                Err(_) => (Group::Other, "(unreadable)".to_owned()),
            };
            let excerpt = excerpt(&text, EXCERPT);
            rows.push(Row { entry, group, excerpt, is_on_branch: false, answers: None });
        }
        let branch = tree.path_to(leaf);
        for &position in &branch {
            rows[position].is_on_branch = true;
        }
        let order = reading_order(&rows);
        let has_branches = branch.len() < rows.len();
        let mut outline = Outline { rows, order, branch, has_branches, models, answered: HashSet::new() };
        outline.match_results(&calls, &results);
        outline
    }

    /// Whether a call needs no card of its own where its message is shown.
    pub fn is_answered(&self, position: usize, n_call: usize) -> bool {
        self.answered.contains(&(position, n_call))
    }

    /// Returns the first thing the user said, on the branch if possible.
    pub fn first_prompt(&self) -> Option<&str> {
        let is_prompt = |row: &&Row<'_>| row.group == Group::User && !row.excerpt.is_empty();
        let on_branch = self.branch.iter().map(|&position| &self.rows[position]).find(is_prompt);
        on_branch.or_else(|| self.rows.iter().find(is_prompt)).map(|row| &*row.excerpt)
    }

    /// Finds the call of each result in the nearest answer above it.
    fn match_results(&mut self, calls: &HashMap<usize, Calls>, results: &[(usize, String)]) {
        let mut nearest = vec![None; self.rows.len()];
        // Parents come first in this order, whatever the file says.
        for &(position, _) in &self.order {
            nearest[position] = self.rows[position].entry.parent.and_then(|parent| {
                let is_answer = self.rows[parent].entry.kind == Kind::Message(Role::Assistant);
                if is_answer { Some(parent) } else { nearest[parent] }
            });
        }
        for (position, call_id) in results {
            let Some(answer) = nearest[*position] else { continue };
            let Some(Calls(calls)) = calls.get(&answer) else { continue };
            let Some(n_call) = calls.iter().position(|(id, _)| id == call_id) else { continue };
            let is_visible = self.rows[*position].is_on_branch || !self.rows[answer].is_on_branch;
            if is_visible {
                self.answered.insert((answer, n_call));
            }
            let row = &mut self.rows[*position];
            row.answers = Some((answer, n_call));
            row.excerpt = excerpt(&format!("{} {}", row.excerpt, calls[n_call].1), EXCERPT);
        }
    }
}

impl Calls {
    fn of(message: &AssistantMessage) -> Self {
        Calls(message.tool_calls().map(|call| (call.id.clone(), gist(call))).collect())
    }
}

fn add_model(models: &mut Vec<String>, message: &AssistantMessage) {
    let name = format!("{}/{}", message.provider, message.model);
    if !message.model.is_empty() && !models.contains(&name) {
        models.push(name);
    }
}

/// Returns the group and the text of an entry.
fn describe(stored: &StoredEntry<'_>, message: Option<Message>) -> (Group, String) {
    match message {
        Some(Message::User(message)) => (Group::User, content_text(&message.content)),
        Some(Message::Assistant(message)) => describe_answer(&message),
        Some(Message::ToolResult(message)) => (Group::Tool, message.tool_name),
        Some(Message::BashExecution(message)) => (Group::Other, format!("$ {}", message.command)),
        Some(Message::Custom(message)) => {
            let group = if message.display { Group::Other } else { Group::Setting };
            (group, format!("{}: {}", message.custom_type, without_marks(&content_text(&message.content))))
        }
        Some(Message::CompactionSummary(message)) => {
            (Group::Other, format!("Compacted: {}", without_marks(&message.summary)))
        }
        Some(Message::BranchSummary(message)) => {
            (Group::Other, format!("Left a branch: {}", without_marks(&message.summary)))
        }
        Some(Message::Other(object)) => (Group::Setting, member(&object, "role")),
        None => (Group::Setting, describe_setting(stored)),
    }
}

fn describe_answer(message: &AssistantMessage) -> (Group, String) {
    let text: String = message.content.iter().filter_map(Block::as_text).collect();
    if !text.trim().is_empty() {
        return (Group::Assistant, without_marks(&text));
    }
    if let Some(error) = &message.error_message {
        return (Group::Assistant, format!("Error: {error}"));
    }
    let names: BTreeSet<_> = message.tool_calls().map(|call| &*call.name).collect();
    if !names.is_empty() {
        return (Group::Calls, Vec::from_iter(names).join(", "));
    }
    (Group::Assistant, if message.failed() { "(aborted)" } else { "(no text)" }.to_owned())
}

fn describe_setting(stored: &StoredEntry<'_>) -> String {
    let Ok(members) = stored.members() else { return "(unreadable)".to_owned() };
    let member = |name| member(&members, name);
    match stored.outline.kind {
        Kind::ModelChange => format!("Model {}/{}", member("provider"), member("modelId")),
        Kind::ThinkingLevelChange => format!("Thinking {}", member("thinkingLevel")),
        Kind::SessionInfo => format!("Name {}", member("name")),
        Kind::Label => format!("Label {}", member("label")),
        Kind::Custom => member("customType"),
        Kind::ContextEdit => "Context edit".to_owned(),
        Kind::Usage => "Usage".to_owned(),
        Kind::BranchSummary => "Left a branch".to_owned(),
        Kind::Message(Role::System) => "System prompt".to_owned(),
        Kind::Message(_) | Kind::Compaction | Kind::CustomMessage | Kind::Other => member("type"),
    }
}

fn content_text(content: &Content) -> String {
    let text = content.text();
    let has_image =
        matches!(content, Content::Blocks(blocks) if blocks.iter().any(|block| matches!(block, Block::Image(_))));
    if text.trim().is_empty() && has_image { "(image)".to_owned() } else { text }
}

/// Returns the beginning of Markdown without its most common marks.
fn without_marks(text: &str) -> String {
    let start = &text[..text.floor_char_boundary(8 * EXCERPT)];
    let words = start.split_whitespace().filter(|word| !word.trim_matches(['#', '>', '-', '*', '|']).is_empty());
    words.map(|word| word.replace("**", "").replace('`', "")).collect::<Vec<_>>().join(" ")
}

fn member(members: &Map<String, Value>, name: &str) -> String {
    members.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Orders the rows depth first, children by age, with their depth. Only a choice between branches adds to the depth.
fn reading_order(rows: &[Row<'_>]) -> Vec<(usize, usize)> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); rows.len()];
    let mut roots = Vec::new();
    for (position, row) in rows.iter().enumerate() {
        match row.entry.parent {
            Some(parent) => children[parent].push(position),
            None => roots.push(position),
        }
    }
    let mut order = Vec::with_capacity(rows.len());
    let mut waiting = Vec::new();
    let descend = |mut siblings: Vec<usize>, depth: usize, waiting: &mut Vec<(usize, usize)>| {
        siblings.sort_by_key(|&position| (rows[position].entry.timestamp, position));
        let depth = depth + usize::from(siblings.len() > 1);
        waiting.extend(siblings.into_iter().rev().map(|position| (position, depth)));
    };
    descend(roots, 0, &mut waiting);
    while let Some((position, depth)) = waiting.pop() {
        order.push((position, depth));
        descend(std::mem::take(&mut children[position]), depth, &mut waiting);
    }
    order
}
