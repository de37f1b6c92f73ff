//! Decides what a compaction of the live session keeps, summarises and shortens.

use pith_protocol::{Message, Model};
use pith_store::{EntryId, Kind};
use serde_json::Value;

use super::context::estimate;
use super::cut::find as find_cut;
use super::material::{request_text, split_previous};
use super::shorten::{shorten, shorten_tail};
use super::{FileLists, Material};
use crate::session::Session;

/// What a compaction keeps.
#[derive(Clone)]
pub(crate) struct Kept {
    pub first_entry: EntryId,
    pub tokens_before: u64,
}

impl Session {
    /// Finds where the conversation is cut and what is to be summarised; `None` if nothing is.
    pub(crate) fn plan(&self, model: &Model, focus: Option<String>) -> Option<(Kept, Material)> {
        let budget = self.window_budget(model);
        let messages = self.store.messages();
        // Besides what is kept, the window holds the system prompt, the tools and the summary.
        let taken = self.context().fixed_tokens() + budget.reserve;
        let most = budget.threshold().map_or(u64::MAX, |threshold| threshold.saturating_sub(taken));
        let cut = find_cut(messages, budget.keep, most)?;
        let (previous, carried) = match messages.first().map(|message| &**message) {
            Some(Message::CompactionSummary(summary)) => {
                let (text, request) = split_previous(&summary.summary);
                (Some(text), request)
            }
            _ => (None, None),
        };
        let newest = messages.iter().rposition(|message| matches!(**message, Message::User(_)));
        let request = match newest.map(|at| (at, &*messages[at])) {
            Some((at, Message::User(user))) if at < cut.first_kept => Some(request_text(&user.content)),
            Some(_) => None,
            None => carried,
        };
        let request = request.map(|text| match budget.threshold() {
            Some(threshold) => shorten(&text, threshold / 2, &|text| self.workbench().output_dir.keep(text).ok()),
            None => text,
        });
        let (history, turn_prefix) = (&messages[cut.history.clone()], &messages[cut.turn_prefix.clone()]);
        let mut files = self.earlier_files();
        files.add(history);
        files.add(turn_prefix);
        let material =
            Material { previous, history: history.to_vec(), turn_prefix: turn_prefix.to_vec(), request, files, focus };
        Some((
            Kept { first_entry: self.first_entry(cut.first_kept)?, tokens_before: self.context().tokens() },
            material,
        ))
    }

    /// The entry of a message, or the first of the settings and labels right before it.
    fn first_entry(&self, message: usize) -> Option<EntryId> {
        let entries = self.store.context_entries();
        let with_message = entries.iter().enumerate().filter(|(_, entry)| entry.message.is_some());
        let (mut at, _) = with_message.into_iter().nth(message)?;
        while at > 0 && entries[at - 1].message.is_none() && entries[at - 1].kind != Kind::Compaction {
            at -= 1;
        }
        Some(entries[at].id.clone())
    }

    /// The file lists of the latest compaction, unless an extension made it.
    fn earlier_files(&self) -> FileLists {
        let compaction =
            self.store.message_entries().next().filter(|id| self.store.tree().kind(id) == Some(Kind::Compaction));
        let entry = compaction.and_then(|id| self.store.tree().entry(id));
        let entry = entry.filter(|entry| entry.get("fromHook") != Some(&Value::Bool(true)));
        FileLists::from_details(entry.as_ref().and_then(|entry| entry.get("details")))
    }

    /// Hides the last answer and its tool results from the model; the session file keeps them.
    pub(crate) fn omit_failed(&mut self) {
        let messages = self.store.messages();
        let Some(last) = messages.iter().rposition(|message| message.as_assistant().is_some()) else { return };
        let is_its = |message: &Message| matches!(message, Message::Assistant(_) | Message::ToolResult(_));
        let entries = self.store.message_entries().zip(messages).skip(last).filter(|(_, message)| is_its(message));
        let targets: Vec<String> = entries.map(|(entry, _)| entry.to_owned()).collect();
        for target in targets {
            // The entry is in the context, so it is on the branch.
            let _ = self.store.append_context_edit(&target, None);
        }
        self.report_store();
    }

    /// Cuts the middle out of messages that are too large for the window; `false` if that changes nothing.
    pub(crate) fn shorten_messages(&mut self, model: &Model, n_fixed: usize) -> bool {
        let budget = self.window_budget(model);
        let Some(threshold) = budget.threshold() else { return false };
        let context = self.context();
        let room = threshold.saturating_sub(context.fixed_tokens() + estimate(&context.messages[..n_fixed]));
        let keep = |text: &str| self.workbench().output_dir.keep(text).ok();
        let shortened = shorten_tail(&context.messages[n_fixed..], room, &keep).unwrap_or_default();
        let edits: Vec<_> = shortened
            .into_iter()
            .filter_map(|shortening| {
                Some((self.store.message_entries().nth(n_fixed + shortening.at)?.to_owned(), shortening.content))
            })
            .collect();
        let n_edits = edits.len();
        for (target, content) in edits {
            let _ = self.store.append_context_edit(&target, Some(content));
        }
        self.report_store();
        n_edits > 0
    }
}
