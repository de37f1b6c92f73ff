//! Entries that an extension writes into a new session before anything else happens in it.

use std::collections::HashMap;
use std::sync::Arc;

use pith_ext::ExtensionError;
use pith_protocol::{Message, ThinkingLevel};
use pith_store::{CompactionEntry, EntryId};
use serde_json::{Map, Value};

use crate::session::Session;

impl Session {
    /// Appends drafts in order. Invalid ones are reported and left out.
    pub(crate) fn append_drafts(&mut self, drafts: Vec<Value>) {
        // Drafts refer to each other by ids that the extension chose.
        let mut ids: HashMap<String, EntryId> = HashMap::new();
        for (at, draft) in drafts.into_iter().enumerate() {
            let Value::Object(draft) = draft else { continue };
            let own = draft.get("id").and_then(Value::as_str).map(str::to_owned);
            match (self.append_draft(draft, &ids), own) {
                (Ok(id), Some(own)) => drop(ids.insert(own, id)),
                (Ok(_), None) => {}
                (Err(why), _) => self.tell_extension_error(&ExtensionError {
                    path: "<runtime>".to_owned(),
                    event: "new_session".to_owned(),
                    error: format!("entry {at} of the new session: {why}"),
                    stack: None,
                }),
            }
        }
        self.report_store();
    }

    fn append_draft(&mut self, draft: Map<String, Value>, ids: &HashMap<String, EntryId>) -> Result<EntryId, String> {
        let text =
            |name: &str| draft.get(name).and_then(Value::as_str).ok_or_else(|| format!("{name} must be a string"));
        let known = |name: &str| {
            let id = text(name)?;
            ids.get(id).cloned().ok_or_else(|| format!("there is no entry {id}"))
        };
        Ok(match text("type")? {
            "message" => {
                let message = draft.get("message").cloned().unwrap_or_default();
                self.store.append_message(&Arc::new(read_message(message)?))
            }
            "custom_message" => {
                let mut message = draft.clone();
                message.insert("role".to_owned(), "custom".into());
                message.insert("timestamp".to_owned(), pith_agent::now_ms().into());
                for own in ["type", "id", "parentId"] {
                    message.remove(own);
                }
                self.store.append_message(&Arc::new(read_message(Value::Object(message))?))
            }
            "custom" => self.store.append_custom(text("customType")?, draft.get("data")),
            "thinking_level_change" => {
                let level = text("thinkingLevel")?;
                let level = ThinkingLevel::parse(level).ok_or_else(|| format!("\"{level}\" is no thinking level"))?;
                self.store.append_thinking_level(level)
            }
            "model_change" => self.store.append_model_change(text("provider")?, text("modelId")?),
            "session_info" => self.store.append_session_info(text("name")?),
            "label" => {
                let label = draft.get("label").and_then(Value::as_str);
                self.store.append_label(&known("targetId")?, label).map_err(|error| error.to_string())?
            }
            "compaction" => self.store.append_compaction(&CompactionEntry {
                summary: text("summary")?.to_owned(),
                first_kept_entry_id: Some(known("firstKeptEntryId")?),
                tokens_before: draft.get("tokensBefore").and_then(Value::as_u64).unwrap_or_default(),
                details: draft.get("details").filter(|details| !details.is_null()).cloned(),
                usage: None,
                from_hook: true,
            }),
            other => return Err(format!("unknown type \"{other}\"")),
        })
    }
}

fn read_message(message: Value) -> Result<Message, String> {
    serde_json::from_value(message).map_err(|error| format!("message: {error}"))
}
