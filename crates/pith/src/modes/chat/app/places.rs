//! Where the user can go: other models, levels, sessions and entries of the tree, offered in a list.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::answers::{Expected, text};
use super::{App, Overlay};
use crate::modes::chat::picker::{Choice, Picker};
use crate::modes::tool_line::cut;

/// Something that can be chosen in a list.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    Model {
        provider: String,
        id: String,
    },
    Level(String),
    Session {
        path: String,
    },
    /// Goes on before a message, in a new session.
    Fork {
        entry_id: String,
    },
    /// Goes on after an entry, in this session.
    Entry {
        id: String,
    },
    /// Puts files back.
    Checkpoint {
        id: String,
    },
}

impl App {
    /// Goes to a place.
    pub(super) fn go(&mut self, place: Place) {
        match place {
            Place::Model { provider, id } => {
                let said = format!("Now {provider}/{id}.");
                self.send(json!({"type": "set_model", "provider": provider, "modelId": id}), Expected::Done(said));
            }
            Place::Level(level) => {
                let said = format!("Thinking: {level}.");
                self.send(json!({"type": "set_thinking_level", "level": level}), Expected::Done(said));
            }
            Place::Session { path } => {
                self.send(json!({"type": "switch_session", "sessionPath": path}), Expected::Switched);
            }
            Place::Fork { entry_id } => self.send(json!({"type": "fork", "entryId": entry_id}), Expected::Forked),
            Place::Checkpoint { id } => {
                self.send(json!({"type": "restore_checkpoint", "checkpointId": id}), Expected::Restored);
            }
            Place::Entry { id } => self.send(json!({"type": "navigate_tree", "targetId": id}), Expected::Navigated),
        }
    }

    /// Offers places; a single one that the search fits is gone to at once.
    pub(super) fn offer(&mut self, title: &str, mut choices: Vec<Choice<Place>>, search: &str, none: &str) {
        if !search.is_empty() {
            let exact =
                choices.iter().find(|choice| choice.label == search || choice.label.ends_with(&format!("/{search}")));
            if let Some(place) = exact.map(|choice| choice.value.clone()) {
                return self.go(place);
            }
            let words: Vec<String> = search.to_lowercase().split_whitespace().map(str::to_owned).collect();
            choices.retain(|choice| {
                let text = format!("{} {}", choice.label, choice.detail).to_lowercase();
                words.iter().all(|word| text.contains(word))
            });
            if let [only] = choices.as_slice() {
                return self.go(only.value.clone());
            }
        }
        if choices.is_empty() {
            return self.complain(none);
        }
        let current = choices.iter().position(|choice| self.is_current(&choice.value));
        let picker = Picker::new(title, choices, Some(current.unwrap_or(0)));
        if !self.setup.has_keys {
            picker.lines().iter().for_each(|line| self.say(line));
        }
        // A question that is open is answered first.
        if !matches!(self.overlay, Some(Overlay::Dialog(_) | Overlay::Approval(_))) {
            self.overlay = Some(Overlay::Picker(picker));
        }
    }

    /// Whether the session is at a place already. Enter at once goes nowhere else.
    fn is_current(&self, place: &Place) -> bool {
        match place {
            Place::Model { provider, id } => self.footer.model.as_ref() == Some(&format!("{provider}/{id}")),
            Place::Level(level) => *level == self.footer.level,
            Place::Session { .. } | Place::Fork { .. } | Place::Entry { .. } | Place::Checkpoint { .. } => false,
        }
    }

    pub(super) fn offer_models(&mut self, data: &Value, search: &str) {
        let one = |model: &Value| {
            let (provider, id) = (text(model, "provider").to_owned(), text(model, "id").to_owned());
            let name = text(model, "name");
            let is_current = self.footer.model.as_ref() == Some(&format!("{provider}/{id}"));
            let parts = [(name != id).then_some(name), is_current.then_some("now")];
            let detail = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
            Choice { label: format!("{provider}/{id}"), detail, value: Place::Model { provider, id } }
        };
        let models = data["models"].as_array().into_iter().flatten().map(one).collect();
        self.offer("Model", models, search, "no such model can be used now; /model lists those that can");
    }

    pub(super) fn offer_levels(&mut self, data: &Value, search: &str) {
        let one = |level: &str| {
            let detail = if level == self.footer.level { "now" } else { "" };
            Choice { label: level.to_owned(), detail: detail.to_owned(), value: Place::Level(level.to_owned()) }
        };
        let levels: Vec<_> =
            data["levels"].as_array().into_iter().flatten().filter_map(Value::as_str).map(one).collect();
        let known: Vec<&str> = levels.iter().map(|choice| choice.label.as_str()).collect();
        let none = format!("there is no such level; there are {}", known.join(", "));
        self.offer("Thinking", levels, search, &none);
    }

    pub(super) fn offer_sessions(&mut self, data: &Value, search: &str) {
        let mut sessions: Vec<&Value> = data["sessions"].as_array().into_iter().flatten().collect();
        sessions.retain(|session| session["id"].as_str() != self.footer.session_id());
        sessions.sort_by_key(|session| std::cmp::Reverse(session["modified"].as_i64()));
        let one = |session: &&Value| Choice {
            label: title(session),
            detail: format!("{}, {} messages", ago(session["modified"].as_i64().unwrap_or(0)), session["messageCount"]),
            value: Place::Session { path: text(session, "path").to_owned() },
        };
        let choices: Vec<_> = sessions.iter().map(one).collect();
        // A number or a path, as scripts and fingers know them.
        if let Some(choice) = search.parse::<usize>().ok().and_then(|number| choices.get(number.wrapping_sub(1))) {
            return self.go(choice.value.clone());
        }
        let path = self.setup.cwd.join(search);
        if !search.is_empty() && path.is_file() {
            return self.go(Place::Session { path: path.to_string_lossy().into_owned() });
        }
        self.offer("Session", choices, search, "no earlier session in this directory fits");
    }

    /// Says that there is a session to go on with.
    pub(super) fn mention_session(&mut self, data: &Value) {
        let sessions = data["sessions"].as_array().into_iter().flatten();
        let last = sessions
            .filter(|session| session["id"].as_str() != self.footer.session_id())
            .max_by_key(|session| session["modified"].as_i64());
        if let Some(last) = last {
            let when = ago(last["modified"].as_i64().unwrap_or(0));
            self.note(&format!("Last session here: \"{}\" ({when}). /resume continues it.", title(last)));
        }
    }

    pub(super) fn offer_forks(&mut self, data: &Value, search: &str) {
        let one = |message: &Value| Choice {
            label: cut(text(message, "text")),
            detail: String::new(),
            value: Place::Fork { entry_id: text(message, "entryId").to_owned() },
        };
        let mut choices: Vec<_> = data["messages"].as_array().into_iter().flatten().map(one).collect();
        choices.reverse();
        if let Some(choice) = search.parse::<usize>().ok().and_then(|number| choices.get(number.wrapping_sub(1))) {
            return self.go(choice.value.clone());
        }
        self.offer("Go back to before", choices, search, "there is no such message to go back to");
    }

    pub(super) fn offer_tree(&mut self, data: &Value, search: &str) {
        let nodes: Vec<&Value> = data["nodes"].as_array().into_iter().flatten().collect();
        let mut n_children: HashMap<&str, usize> = HashMap::new();
        nodes.iter().for_each(|node| *n_children.entry(text(node, "parentId")).or_default() += 1);
        // A branch is indented below the entry where it leaves the one before it.
        let mut depths: HashMap<&str, usize> = HashMap::new();
        let mut choices = Vec::new();
        for node in &nodes {
            let (id, parent) = (text(node, "id"), text(node, "parentId"));
            let above = depths.get(parent).copied().unwrap_or(0);
            let is_branch = !parent.is_empty() && n_children.get(parent).is_some_and(|n_children| *n_children > 1);
            let depth = above + usize::from(is_branch);
            depths.insert(id, depth);
            let Some(said) = entry_text(&node["entry"]) else { continue };
            let here = if data["leafId"] == id { " ← here" } else { "" };
            choices.push(Choice {
                label: format!("{}{said}", "  ".repeat(depth.min(10))),
                detail: format!("{}{here}", node["label"].as_str().unwrap_or_default()),
                value: Place::Entry { id: id.to_owned() },
            });
        }
        choices.reverse();
        self.offer("Tree", choices, search, "there is nothing to go to yet");
    }
}

/// What an entry of the tree is called; `None` for those nobody goes to.
fn entry_text(entry: &Value) -> Option<String> {
    let message = &entry["message"];
    let role = match (entry["type"].as_str()?, message["role"].as_str()) {
        ("message", Some("user")) => "›",
        ("message", Some("assistant")) => "•",
        ("compaction", _) => return Some("[summary]".to_owned()),
        ("branch_summary", _) => return Some("[summary of a branch]".to_owned()),
        _ => return None,
    };
    let content = &message["content"];
    let blocks = content.as_array().into_iter().flatten();
    let said =
        content.as_str().map_or_else(|| blocks.filter_map(|block| block["text"].as_str()).collect(), str::to_owned);
    let said = if said.trim().is_empty() { "(tool calls)".to_owned() } else { said };
    Some(format!("{role} {}", cut(said.trim())))
}

fn title(session: &Value) -> String {
    cut(session["name"].as_str().unwrap_or_else(|| text(session, "firstMessage")))
}

/// Formats an age, such as `2 h ago`.
fn ago(modified: i64) -> String {
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_millis(u64::try_from(modified).unwrap_or(0));
    let seconds = std::time::SystemTime::now().duration_since(then).unwrap_or_default().as_secs();
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
