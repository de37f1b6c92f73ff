//! Replacements, moves and compactions that extensions request, and the events with which they may refuse those of the
//! host.

use std::path::Path;
use std::sync::atomic::Ordering;

use pith_ext::outgoing::{self, Answer, ForkPosition};
use pith_ext::{EventName, ExtensionHandle};
use pith_protocol::commands::{Compact, NavigateTree};
use pith_store::StoreError;
use serde_json::{Value, json};

use super::StartReason;
use crate::admission::Step;
use crate::replace::{ReplacementReply, Target};
use crate::reply::Reply;
use crate::session::Session;

impl Session {
    pub(super) fn fork_for_extension(&mut self, entry: String, at: ForkPosition, answer: Answer<outgoing::Replaced>) {
        let is_possible = match at {
            ForkPosition::Before => self.is_forkable(&entry),
            ForkPosition::At => self.store.tree().contains(&entry),
        };
        if !is_possible {
            return answer.fail(StoreError::NotForkable.to_string());
        }
        let target = match at {
            ForkPosition::Before => Target::Before(entry),
            ForkPosition::At => Target::UpTo(entry),
        };
        self.replace(target, ReplacementReply::Extension(answer));
    }

    pub(super) fn navigate_for_extension(
        &mut self,
        navigation: outgoing::Navigation,
        answer: Answer<outgoing::Replaced>,
    ) {
        let outgoing::Navigation { target_id, summarize, custom_instructions, replace_instructions, label } =
            navigation;
        let call = NavigateTree {
            target_id,
            summarize: Some(summarize),
            custom_instructions,
            replace_instructions: Some(replace_instructions),
            label,
            restore_files: None,
        };
        let reply = Reply::<NavigateTree>::to_extension(|moved| match moved {
            Ok(moved) => answer.send(outgoing::Replaced { cancelled: moved.cancelled }),
            Err(why) => answer.fail(why),
        });
        self.navigate_tree(call, reply);
    }

    pub(super) fn compact_for_extension(&mut self, custom_instructions: Option<String>, answer: Answer<Value>) {
        let reply = Reply::<Compact>::to_extension(|result| match result {
            Ok(result) => answer.send(json!(result)),
            Err(why) => answer.fail(why),
        });
        self.compact(Compact { custom_instructions }, reply);
    }

    /// Lets extensions refuse a replacement.
    pub(crate) fn ask_replacement_handlers(&mut self, handle: ExtensionHandle, event: EventName, question: Value) {
        self.begin_abortable_step(|aborted| async move {
            let is_refused = tokio::select! {
                biased;
                () = aborted.cancelled() => true,
                result = handle.session_before(event, question, &aborted) => is_cancel(result.as_ref()),
            };
            Step::ReplacementDecided { is_refused }
        });
    }

    /// Raises `session_shutdown` and invalidates the extensions' contexts, before others are loaded or none.
    pub(crate) fn announce_shutdown(
        &mut self,
        handle: ExtensionHandle,
        start_reason: StartReason,
        target: Option<String>,
    ) {
        let saw_session_start = self.extensions.saw_session_start.clone();
        self.begin_step(async move {
            saw_session_start.store(false, Ordering::Relaxed);
            handle.session_shutdown(start_reason.as_str(), target.as_deref()).await;
            handle.invalidate().await;
            Step::ShutdownHandled
        });
    }

    /// Called when extensions have handled `session_shutdown`, because the session is replaced or reloaded.
    pub(crate) fn on_shutdown_handled(&mut self) {
        if self.replacement.is_some() {
            self.after_shutdown();
        } else {
            self.reload_after_shutdown();
        }
    }

    /// The event and payload with which extensions are asked about a replacement.
    pub(crate) fn replacement_question(&self, target: &Target) -> (EventName, Value) {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let switch = |reason, path: Option<String>| {
            let mut question = json!({"reason": reason});
            if let Some(path) = path {
                question["targetSessionFile"] = path.into();
            }
            (EventName::SessionBeforeSwitch, question)
        };
        let fork =
            |entry: &str, position| (EventName::SessionBeforeFork, json!({"entryId": entry, "position": position}));
        match target {
            Target::New { .. } => switch("new", None),
            Target::Opened(store) => switch("resume", store.path().map(shown)),
            Target::Same => switch("resume", self.store.path().map(shown)),
            Target::Before(entry) => fork(entry, "before"),
            Target::UpTo(entry) => fork(entry, "at"),
            Target::Whole(leaf) => fork(leaf, "at"),
        }
    }
}

/// Whether a handler refused.
pub(super) fn is_cancel(result: Option<&Value>) -> bool {
    result.and_then(|result| result.get("cancel")) == Some(&Value::Bool(true))
}
