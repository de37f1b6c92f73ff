//! The two dialects of hosts, as data. Nothing below this crate knows of them.
//!
//! Each field is a row of the table in `docs/dialects.md`, which names the transcript that proves it.

use pith_config::Layout;
use pith_protocol::host::UiMethod;
use pith_protocol::{CompactionReason, Event, ThinkingLevel};

/// What a family of hosts expects.
#[derive(Debug)]
pub struct Dialect {
    pub name: &'static str,
    /// Where the user's files are.
    pub layout: Layout,
    /// Whether a `ready` frame opens the stream.
    pub has_greeting: bool,
    /// Whether an unknown command's id is returned as `id`; otherwise as `requestId` only.
    pub echoes_unknown_id: bool,
    /// Whether a second response with the same id follows if an accepted prompt turns out to be impossible.
    pub tells_late_failures: bool,
    /// The answer to a prompt while the agent is busy.
    pub busy_text: &'static str,
    /// Who user messages are attributed to.
    pub attribution: Option<&'static str>,
    /// Whether `get_state` includes the system prompt and the tools.
    pub state_has_prompt: bool,
    /// Whether `get_session_stats` has `premiumRequests`.
    pub counts_premium_requests: bool,
    /// The strongest thinking level hosts know.
    pub highest_level: ThinkingLevel,
    /// Whether compaction is reported as `auto_compaction_*`, and only when automatic.
    pub renames_compaction: bool,
    /// Whether hosts get the events that only pi has.
    pub has_side_events: bool,
    /// Events that never reach hosts of this dialect; see [`Dialect::show`].
    pub hidden_events: &'static [&'static str],
    /// Whether `setTitle` requests reach the host without `PI_RPC_EMIT_TITLE`.
    pub shows_titles: bool,
    /// Whether the host is told when a dialog is withdrawn.
    pub cancels_dialogs: bool,
    /// Whether tool calls of an aborted answer get a result.
    pub reports_aborted_calls: bool,
    /// Whether the model has `todo_write` from the start, and is reminded of open todos that the host set.
    pub keeps_todos: bool,
    /// Whether rules in `rules/*.md` watch the model's answers.
    pub has_stream_rules: bool,
}

pub static PI: Dialect = Dialect {
    name: "pi",
    layout: Layout::Pi,
    has_greeting: false,
    echoes_unknown_id: true,
    tells_late_failures: false,
    busy_text: "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.",
    attribution: None,
    state_has_prompt: false,
    counts_premium_requests: false,
    highest_level: ThinkingLevel::Max,
    renames_compaction: false,
    has_side_events: true,
    hidden_events: Event::HIDDEN_FROM_PI,
    shows_titles: true,
    cancels_dialogs: false,
    reports_aborted_calls: false,
    keeps_todos: false,
    has_stream_rules: false,
};

pub static XCSH: Dialect = Dialect {
    name: "xcsh",
    layout: Layout::Xcsh,
    has_greeting: true,
    echoes_unknown_id: false,
    tells_late_failures: true,
    busy_text: "Agent is already processing. Use steer() or followUp() to queue messages, or wait for completion.",
    attribution: Some("user"),
    state_has_prompt: true,
    counts_premium_requests: true,
    highest_level: ThinkingLevel::Xhigh,
    renames_compaction: true,
    has_side_events: false,
    hidden_events: Event::HIDDEN_FROM_XCSH,
    shows_titles: false,
    cancels_dialogs: true,
    reports_aborted_calls: true,
    keeps_todos: true,
    has_stream_rules: true,
};

/// What the host asks for beyond its dialect.
#[derive(Clone, Copy, Debug, Default)]
pub struct UiOptions {
    /// `PI_RPC_EMIT_TITLE`.
    pub titles: bool,
    /// `--ui-cancel`.
    pub cancels: bool,
}

/// An event as a dialect shows it.
pub enum Shown<'a> {
    AsIs,
    Renamed(Box<Event<'a>>),
    Hidden,
}

impl Dialect {
    /// Returns the dialect of a name given by flag or variable.
    pub fn named(name: &str) -> Option<&'static Dialect> {
        [&PI, &XCSH].into_iter().find(|dialect| dialect.name == name)
    }

    /// Returns whether a request of an extension reaches the host.
    pub fn shows_request(&self, method: &UiMethod, ui_options: UiOptions) -> bool {
        match method {
            UiMethod::SetTitle { .. } => self.shows_titles || ui_options.titles,
            UiMethod::Cancel { .. } => self.cancels_dialogs || ui_options.cancels,
            _ => true,
        }
    }

    /// Returns how an event is shown.
    pub fn show<'a>(&self, event: &Event<'a>) -> Shown<'a> {
        match event {
            Event::CompactionStart { reason } if self.renames_compaction => match reason {
                CompactionReason::Manual => Shown::Hidden,
                reason => Shown::Renamed(Box::new(Event::AutoCompactionStart {
                    reason: *reason,
                    action: "context-full".into(),
                })),
            },
            Event::CompactionEnd { reason, result, aborted, will_retry, error_message } if self.renames_compaction => {
                match reason {
                    CompactionReason::Manual => Shown::Hidden,
                    CompactionReason::Threshold | CompactionReason::Overflow => {
                        Shown::Renamed(Box::new(Event::AutoCompactionEnd {
                            action: "context-full".into(),
                            result: result.clone(),
                            aborted: *aborted,
                            will_retry: *will_retry,
                            error_message: error_message.clone(),
                        }))
                    }
                }
            }
            Event::EntryAppended { .. }
            | Event::BashExecutionUpdate { .. }
            | Event::SummarizationRetryScheduled { .. }
            | Event::SummarizationRetryAttemptStart { .. }
            | Event::SummarizationRetryFinished
                if !self.has_side_events =>
            {
                Shown::Hidden
            }
            _ => Shown::AsIs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shows(dialect: &Dialect, method: UiMethod, titles: bool, cancels: bool) -> bool {
        dialect.shows_request(&method, UiOptions { titles, cancels })
    }

    #[test]
    fn titles_reach_xcsh_hosts_only_on_request() {
        let title = || UiMethod::SetTitle { title: "t".to_owned() };
        assert!(
            shows(&PI, title(), false, false)
                && !shows(&XCSH, title(), false, true)
                && shows(&XCSH, title(), true, false)
        );
    }

    #[test]
    fn withdrawn_dialogs_are_told_to_xcsh_hosts_and_on_request() {
        let cancel = || UiMethod::Cancel { target_id: "d".to_owned() };
        assert!(
            !shows(&PI, cancel(), true, false)
                && shows(&PI, cancel(), false, true)
                && shows(&XCSH, cancel(), false, false)
        );
        let notify = UiMethod::Notify { message: "m".to_owned(), notify_type: None };
        assert!(shows(&PI, notify.clone(), false, false) && shows(&XCSH, notify, false, false));
    }
}
