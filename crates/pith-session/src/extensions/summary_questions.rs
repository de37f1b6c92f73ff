//! `session_before_compact` and `session_before_tree`: extensions can refuse a compaction or a move, or write the
//! summary themselves.

use pith_protocol::answers::Navigated;
use pith_protocol::{CommandError, ErrorCode};
use std::sync::Arc;

use pith_ext::{EventName, ExtensionHandle};
use pith_protocol::commands::NavigateTree;
use pith_protocol::{CompactionReason, Message, Model, Usage};
use pith_store::EntryId;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::session_events::is_cancel;
use crate::admission::Step;
use crate::compaction::{Author, Kept, Material, Summary, SummaryFailure};
use crate::jobs::{Job, JobEnd};
use crate::reply::Reply;
use crate::session::Session;

/// What handlers are asked before a compaction.
pub(crate) struct CompactionQuestion {
    handle: ExtensionHandle,
    /// The event without its large parts, which are serialised later, in the task.
    event: Value,
    history: Vec<Arc<Message>>,
    turn_prefix: Vec<Arc<Message>>,
    /// The entries of the branch, as JSON.
    branch: String,
}

impl CompactionQuestion {
    /// Returns the summary of an extension; `None` if the model is to write it.
    pub async fn ask(self, cancel: &CancellationToken) -> Result<Option<Summary>, SummaryFailure> {
        let CompactionQuestion { handle, mut event, history, turn_prefix, branch } = self;
        event["preparation"]["messagesToSummarize"] = json!(history);
        event["preparation"]["turnPrefixMessages"] = json!(turn_prefix);
        event["branchEntries"] = serde_json::from_str(&branch).unwrap_or_default();
        let result = handle.session_before(EventName::SessionBeforeCompact, event, cancel).await;
        if cancel.is_cancelled() || is_cancel(result.as_ref()) {
            return Err(SummaryFailure::Cancelled);
        }
        let given = result.as_ref().and_then(|result| result.get("compaction")).filter(|given| !given.is_null());
        let summary = given.map(|given| read_summary(given, "compaction")).transpose();
        summary.map_err(|why| SummaryFailure::Failed(format!("session_before_compact: {why}")))
    }
}

impl Session {
    /// Makes the question about a compaction, if an extension listens for it.
    pub(crate) fn compaction_question(
        &self,
        model: &Model,
        kept: &Kept,
        material: &Material,
        reason: CompactionReason,
        will_retry: bool,
    ) -> Option<CompactionQuestion> {
        let handle = self.listeners(EventName::SessionBeforeCompact)?;
        let budget = self.window_budget(model);
        let mut event = json!({
            "preparation": {
                "firstKeptEntryId": &*kept.first_entry,
                "isSplitTurn": !material.turn_prefix.is_empty(),
                "tokensBefore": kept.tokens_before,
                "fileOps": material.files.operations(),
                "settings": {
                    "enabled": self.options.auto_compaction,
                    "reserveTokens": budget.reserve,
                    "keepRecentTokens": budget.keep,
                },
            },
            "reason": reason,
            "willRetry": will_retry,
        });
        if let Some(previous) = &material.previous {
            event["preparation"]["previousSummary"] = json!(previous);
        }
        if let Some(focus) = &material.focus {
            event["customInstructions"] = json!(focus);
        }
        Some(CompactionQuestion {
            handle,
            event,
            history: material.history.clone(),
            turn_prefix: material.turn_prefix.clone(),
            branch: self.store.tree().branch_json(self.store.leaf()),
        })
    }

    /// The `session_compact` event, and the extensions that listen for it.
    pub(crate) fn compaction_announcement(
        &self,
        entry: &str,
        author: &Author,
        reason: CompactionReason,
        will_retry: bool,
    ) -> Option<(ExtensionHandle, Value)> {
        let handle = self.listeners(EventName::SessionCompact)?;
        let event = json!({
            "compactionEntry": self.store.tree().entry(entry),
            "fromExtension": author.is_extension(),
            "reason": reason,
            "willRetry": will_retry,
        });
        Some((handle, event))
    }

    /// Raises `session_compact_failed`. Without an error the compaction was cancelled.
    pub(crate) fn announce_failed_compaction(&self, reason: CompactionReason, error: Option<&str>) {
        let Some(handle) = self.listeners(EventName::SessionCompactFailed) else { return };
        let mut event =
            json!({"reason": reason, "aborted": error.is_none(), "willRetry": false, "fromExtension": false});
        if let Some(error) = error {
            event["errorMessage"] = json!(error);
        }
        handle.announce(EventName::SessionCompactFailed, event);
    }

    /// Lets extensions refuse or change a move in the tree, then moves.
    pub(crate) fn ask_to_navigate(
        &mut self,
        handle: ExtensionHandle,
        mut call: NavigateTree,
        preparation: Value,
        reply: Reply<NavigateTree>,
    ) {
        let wants_summary = call.summarize.unwrap_or(false);
        self.begin_abortable_step(|aborted| async move {
            let event = json!({ "preparation": preparation });
            let result = handle.session_before(EventName::SessionBeforeTree, event, &aborted).await;
            let is_refused = aborted.is_cancelled() || is_cancel(result.as_ref());
            let summary = match result {
                Some(Value::Object(mut result)) => {
                    let summary = result.remove("summary").filter(|given| wants_summary && !given.is_null());
                    change_call(&mut call, &result);
                    summary.map(|given| read_summary(&given, "summary")).transpose()
                }
                _ => Ok(None),
            };
            Step::NavigationDecided { call, reply, is_refused, summary }
        });
    }

    /// Called when extensions have agreed to a move or refused it, and may have summarised the branch it leaves.
    pub(crate) fn on_navigation_decided(
        &mut self,
        call: NavigateTree,
        reply: Reply<NavigateTree>,
        is_refused: bool,
        summary: Result<Option<Summary>, String>,
    ) {
        match summary {
            _ if is_refused => self.answer(reply, Ok(Navigated::cancelled())),
            Ok(summary) => self.navigate_now(call, summary, reply),
            Err(why) => {
                self.answer(reply, Err(CommandError::new(ErrorCode::Extension, format!("session_before_tree: {why}"))))
            }
        }
    }

    /// Raises `session_tree`, then sends the answer.
    pub(crate) fn tell_of_move(
        &mut self,
        from: Option<EntryId>,
        author: Option<Author>,
        answer: Navigated,
        reply: Reply<NavigateTree>,
    ) {
        let Some(handle) = self.listeners(EventName::SessionTree) else { return self.answer(reply, Ok(answer)) };
        let mut event = json!({"newLeafId": self.store.leaf(), "oldLeafId": from.as_deref()});
        if let (Some(author), Some(entry)) = (author, &answer.summary_entry) {
            event["summaryEntry"] = json!(entry);
            event["fromExtension"] = json!(author.is_extension());
        }
        // While the summary was written, extensions may have been asked something else.
        if self.admission.has_step() {
            self.jobs.spawn(Job::Background, async move {
                handle.notify(EventName::SessionTree, event).await;
                JobEnd::MoveTold { answer, reply }
            });
        } else {
            self.begin_step(async move {
                handle.notify(EventName::SessionTree, event).await;
                Step::MoveTold { answer, reply }
            });
        }
    }
}

/// Applies the changes that handlers returned to a move.
fn change_call(call: &mut NavigateTree, result: &Map<String, Value>) {
    let text = |name: &str| result.get(name).and_then(Value::as_str).map(str::to_owned);
    if result.contains_key("customInstructions") {
        call.custom_instructions = text("customInstructions");
    }
    if let Some(replaces) = result.get("replaceInstructions").and_then(Value::as_bool) {
        call.replace_instructions = Some(replaces);
    }
    if result.contains_key("label") {
        call.label = text("label");
    }
}

/// Reads a summary that a handler returned: `{summary, firstKeptEntryId?, tokensBefore?, usage?, details?}`.
fn read_summary(given: &Value, name: &str) -> Result<Summary, String> {
    let part = |part: &str| given.get(part).filter(|value| !value.is_null());
    let text = part("summary").and_then(Value::as_str).ok_or_else(|| format!("{name}.summary must be a string"))?;
    let usage = part("usage").cloned().map(serde_json::from_value::<Usage>).transpose();
    Ok(Summary {
        text: text.to_owned(),
        details: part("details").cloned(),
        usage: usage.map_err(|error| format!("{name}.usage: {error}"))?.unwrap_or_default(),
        author: Author::Extension {
            first_kept: part("firstKeptEntryId").and_then(Value::as_str).map(EntryId::from),
            tokens_before: part("tokensBefore").and_then(Value::as_u64),
        },
    })
}
