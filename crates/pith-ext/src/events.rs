//! The names of the events that extensions can listen for, and the set of those that are listened for.

use std::sync::atomic::{AtomicU64, Ordering};

/// Every event that can reach an extension.
macro_rules! events {
    ($($variant:ident => $name:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum EventName {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl EventName {
            /// All events, in the order of declaration.
            pub const ALL: &[EventName] = &[$(EventName::$variant,)*];

            /// Returns the name that extensions use.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(EventName::$variant => $name,)*
                }
            }
        }
    };
}

events! {
    ProjectTrust => "project_trust",
    SessionStart => "session_start",
    ResourcesDiscover => "resources_discover",
    SessionInfoChanged => "session_info_changed",
    SessionBeforeSwitch => "session_before_switch",
    SessionBeforeFork => "session_before_fork",
    SessionBeforeCompact => "session_before_compact",
    SessionCompact => "session_compact",
    SessionCompactFailed => "session_compact_failed",
    SessionBeforeTree => "session_before_tree",
    SessionTree => "session_tree",
    SessionShutdown => "session_shutdown",
    SessionSwitch => "session_switch",
    SessionFork => "session_fork",
    Input => "input",
    BeforeAgentStart => "before_agent_start",
    AgentStart => "agent_start",
    AgentEnd => "agent_end",
    AgentBeforeSettle => "agent_before_settle",
    AgentSettled => "agent_settled",
    TurnStart => "turn_start",
    TurnEnd => "turn_end",
    Context => "context",
    ContextWithSystem => "context_with_system",
    BeforeProviderHeaders => "before_provider_headers",
    BeforeProviderRequest => "before_provider_request",
    AfterProviderResponse => "after_provider_response",
    MessageStart => "message_start",
    MessageUpdate => "message_update",
    MessageEnd => "message_end",
    ToolExecutionStart => "tool_execution_start",
    ToolExecutionUpdate => "tool_execution_update",
    ToolExecutionEnd => "tool_execution_end",
    ToolCall => "tool_call",
    ToolResult => "tool_result",
    UserBash => "user_bash",
    ModelSelect => "model_select",
    ThinkingLevelSelect => "thinking_level_select",
    CacheWarmingDecision => "cache_warming_decision",
    UiPromptStart => "ui_prompt_start",
    UiPromptEnd => "ui_prompt_end",
}

/// A set of events that can be read while the engine changes it.
#[derive(Default)]
pub(crate) struct EventSet(AtomicU64);

impl EventSet {
    pub fn has(&self, event: EventName) -> bool {
        self.0.load(Ordering::Acquire) & (1 << event as u64) != 0
    }

    pub fn replace(&self, names: &[String]) {
        let known = EventName::ALL.iter().filter(|event| names.iter().any(|name| name == event.as_str()));
        let bits = known.fold(0, |bits, event| bits | 1 << *event as u64);
        self.0.store(bits, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_holds_what_is_listened_for_and_ignores_unknown_names() {
        assert!(EventName::ALL.len() <= 64);
        let set = EventSet::default();
        set.replace(&["tool_call".to_owned(), "made_up".to_owned()]);
        assert!(set.has(EventName::ToolCall));
        assert!(!set.has(EventName::Input));
        set.replace(&[]);
        assert!(!set.has(EventName::ToolCall));
    }
}
