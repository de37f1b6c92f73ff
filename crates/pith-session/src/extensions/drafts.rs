//! Entries that extensions propose at the end of a turn: checked, previewed, stored.

use std::sync::Arc;

use pith_agent::now_ms;
use pith_ai::as_model_sees;
use pith_protocol::{CompactionSummary, Content, CustomMessage, Message, Usage};
use pith_store::{CompactionEntry, EntryId, Kind, SessionStore, with_content};
use serde::Deserialize;
use serde_json::{Value, json};

/// A proposed entry, in the form the extension API defines.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Draft {
    Custom {
        custom_type: String,
        data: Option<Value>,
    },
    CustomMessage {
        custom_type: String,
        content: Content,
        #[serde(default)]
        display: bool,
        details: Option<Value>,
    },
    ContextEdit {
        target_id: String,
        replacement: Option<ReplacementContent>,
    },
    Compaction {
        summary: String,
        first_kept_entry_id: Option<EntryId>,
        details: Option<Value>,
        usage: Option<Usage>,
    },
}

/// The content that replaces a message; without it the message is hidden.
#[derive(Deserialize)]
pub(super) struct ReplacementContent {
    content: Content,
}

impl Draft {
    /// Reads all drafts, or returns the error of the first invalid one.
    pub fn read_all(entries: &[Value], store: &SessionStore) -> Result<Vec<Draft>, String> {
        let read = |(at, entry): (usize, &Value)| {
            let draft = Draft::deserialize(entry).map_err(|error| format!("entries[{at}]: {error}"))?;
            draft.check(store).map_err(|error| format!("entries[{at}]: {error}"))?;
            Ok(draft)
        };
        entries.iter().enumerate().map(read).collect()
    }

    fn check(&self, store: &SessionStore) -> Result<(), String> {
        match self {
            Draft::Custom { .. }
            | Draft::CustomMessage { .. }
            | Draft::Compaction { first_kept_entry_id: None, .. } => Ok(()),
            Draft::ContextEdit { target_id, .. } => store.check_edit(target_id).map_err(|error| error.to_string()),
            Draft::Compaction { first_kept_entry_id: Some(first), .. } => {
                if !store.tree().branch(store.leaf()).contains(first) {
                    return Err(format!("Entry not found: {first}"));
                }
                Ok(())
            }
        }
    }

    /// Appends the entry. The draft was checked a moment ago.
    pub fn store(self, store: &mut SessionStore, tokens_before: u64) -> EntryId {
        match self {
            Draft::Custom { custom_type, data } => store.append_custom(&custom_type, data.as_ref()),
            Draft::CustomMessage { custom_type, content, display, details } => {
                store.append_custom_message(custom(custom_type, content, display, details))
            }
            Draft::ContextEdit { target_id, replacement } => {
                let content = replacement.map(|replacement| replacement.content);
                store.append_context_edit(&target_id, content).expect("the draft was checked")
            }
            Draft::Compaction { summary, first_kept_entry_id, details, usage } => {
                let from_hook = true;
                let entry = CompactionEntry { summary, first_kept_entry_id, tokens_before, details, usage, from_hook };
                store.append_compaction(&entry)
            }
        }
    }
}

/// Makes a message from what an extension returned.
pub(crate) fn custom_message(value: &Value) -> Arc<Message> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let content = value.get("content").and_then(|content| Content::deserialize(content).ok());
    let display = value.get("display").and_then(Value::as_bool).unwrap_or(false);
    let details = value.get("details").filter(|details| !details.is_null()).cloned();
    let content = content.unwrap_or(Content::Blocks(Vec::new()));
    Arc::new(Message::Custom(custom(text("customType"), content, display, details)))
}

fn custom(custom_type: String, content: Content, display: bool, details: Option<Value>) -> CustomMessage {
    CustomMessage { custom_type, content, display, details, timestamp: now_ms(), ..CustomMessage::default() }
}

/// The context with drafts applied to it, in memory.
pub(super) struct Preview(Vec<Item>);

struct Item {
    source: EntrySource,
    is_compaction: bool,
    message: Option<Arc<Message>>,
}

enum EntrySource {
    Stored(EntryId),
    Draft(Value),
}

impl Preview {
    pub fn of(store: &SessionStore) -> Self {
        let item = |entry: pith_store::ContextEntry| Item {
            is_compaction: entry.kind == Kind::Compaction,
            source: EntrySource::Stored(entry.id),
            message: entry.message,
        };
        Preview(store.context_entries().into_iter().map(item).collect())
    }

    pub fn apply(&mut self, draft: Draft, shown: &Value) {
        let is_compaction = matches!(draft, Draft::Compaction { .. });
        let message = match draft {
            Draft::Custom { .. } => None,
            Draft::CustomMessage { custom_type, content, display, details } => {
                Some(Arc::new(Message::Custom(custom(custom_type, content, display, details))))
            }
            Draft::ContextEdit { target_id, replacement } => {
                self.edit(&target_id, replacement);
                None
            }
            Draft::Compaction { summary, first_kept_entry_id, .. } => {
                self.cut(first_kept_entry_id.as_deref());
                let summary = CompactionSummary { summary, tokens_before: 0, timestamp: now_ms() };
                Some(Arc::new(Message::CompactionSummary(summary)))
            }
        };
        let item = Item { source: EntrySource::Draft(shown.clone()), is_compaction, message };
        let at = if is_compaction { 0 } else { self.0.len() };
        self.0.insert(at, item);
    }

    fn edit(&mut self, target: &str, replacement: Option<ReplacementContent>) {
        let is_target = |item: &&mut Item| matches!(&item.source, EntrySource::Stored(id) if **id == *target);
        let Some(item) = self.0.iter_mut().find(is_target) else { return };
        item.message = match (item.message.take(), replacement) {
            (Some(message), Some(ReplacementContent { content })) => Some(Arc::new(with_content(&message, content))),
            _ => None,
        };
    }

    /// Removes what a new summary replaces.
    fn cut(&mut self, first_kept: Option<&str>) {
        let is_first = |item: &Item| matches!(&item.source, EntrySource::Stored(id) if Some(&**id) == first_kept);
        let at = self.0.iter().position(is_first).unwrap_or(self.0.len());
        self.0.drain(..at);
        self.0.retain(|item| !item.is_compaction);
    }

    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.0.iter().filter_map(|item| item.message.clone()).collect()
    }

    /// The entries as the extension API shows them: `{sourceEntry, messages}`.
    pub fn entries(&self, store: &SessionStore) -> Vec<Value> {
        let show = |item: &Item| {
            let source = match &item.source {
                EntrySource::Stored(id) => store.tree().entry(id).map_or(Value::Null, Value::Object),
                EntrySource::Draft(draft) => draft.clone(),
            };
            json!({ "sourceEntry": source, "messages": item.message.as_slice() })
        };
        self.0.iter().map(show).collect()
    }

    /// The messages as the model gets them.
    pub fn llm_messages(&self) -> Vec<Value> {
        self.messages().iter().filter_map(|message| as_model_sees(message)).collect()
    }
}
