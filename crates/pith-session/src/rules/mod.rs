//! Stream rules (`ttsr_triggered`): an answer that breaks a rule is stopped, the rule is added to the conversation, and
//! the model answers again.
//!
//! A rule is added once per conversation: from then on the model has read it.

mod guard;
mod patterns;
mod watch;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use pith_agent::{Opening, now_ms};
use pith_protocol::events::TriggeredRule;
use pith_protocol::{Block, Content, CustomMessage, Event, Message};
use pith_resources::StreamRule;
use pith_store::{Kind, Role};
use serde_json::{Map, Value, json};

use crate::session::Session;
pub(crate) use guard::RuleGuard;
pub use patterns::StreamRules;

const INJECTION: &str = "ttsr-injection";

/// The rules and their state in this conversation.
pub(crate) struct RuleBook {
    rules: Arc<StreamRules>,
    /// Whether each rule is in the conversation already.
    is_injected: Vec<bool>,
    /// The rules that stopped the answer being streamed.
    pending: Vec<usize>,
}

impl RuleBook {
    pub fn new(rules: StreamRules) -> Self {
        let is_injected = vec![false; rules.len()];
        RuleBook { rules: Arc::new(rules), is_injected, pending: Vec::new() }
    }

    /// Finds which rules are in a conversation.
    pub fn resume(&mut self, messages: &[Arc<Message>]) {
        self.is_injected.fill(false);
        self.pending.clear();
        for message in messages {
            let Message::Custom(CustomMessage { custom_type, details: Some(details), .. }) = &**message else {
                continue;
            };
            let names = details.get("rules").and_then(Value::as_array).filter(|_| custom_type == INJECTION);
            for rule in names.into_iter().flatten().filter_map(|name| self.rules.find(name.as_str()?)) {
                self.is_injected[rule] = true;
            }
        }
    }

    /// Creates the guard for a run; `None` if there are no rules.
    pub fn guard(&self) -> Option<RuleGuard> {
        self.rules.automaton().map(|_| RuleGuard::new(self.rules.clone(), self.is_injected.clone()))
    }

    /// Called when the host aborts: the stopped answer is not repeated.
    pub fn forget_pending(&mut self) {
        self.pending.clear();
    }

    /// Makes the message that adds the pending rules to the conversation.
    fn injection(&mut self) -> Option<CustomMessage> {
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return None;
        }
        let mut text = String::from(
            "Your answer was stopped because it goes against the following. Take it into account and answer again.\n",
        );
        let mut names = Vec::new();
        for rule in pending {
            self.is_injected[rule] = true;
            let rule = self.rules.get(rule);
            text.push_str(&format!(
                "\n<rule name=\"{}\" path=\"{}\">\n{}\n</rule>\n",
                rule.name,
                rule.path.display(),
                rule.content
            ));
            names.push(Value::from(rule.name.as_str()));
        }
        Some(CustomMessage {
            custom_type: INJECTION.to_owned(),
            content: Content::Blocks(vec![Block::text(text.trim_end())]),
            display: false,
            details: Some(json!({"rules": names})),
            timestamp: now_ms(),
            extra: Map::new(),
        })
    }
}

impl Session {
    /// Uses other rules from the next run on. Rules that are in the conversation already stay so.
    pub(crate) fn replace_rules(&mut self, rules: StreamRules) {
        if rules.len() == 0 && self.rules.rules.len() == 0 {
            return;
        }
        self.rules = RuleBook::new(rules);
        self.resume_rules();
    }

    /// Finds which rules are in the conversation. Reads only custom messages, so that a long session is not read
    /// earlier than needed.
    pub(crate) fn resume_rules(&mut self) {
        let is_custom = |kind| matches!(kind, Kind::CustomMessage | Kind::Message(Role::Custom));
        self.rules.resume(&self.store.messages_of(is_custom));
    }

    /// Called when a rule has stopped the answer.
    pub(crate) fn on_rules_broken(&mut self, rules: Vec<usize>) {
        let shown = rules.iter().map(|rule| triggered(self.rules.rules.get(*rule))).collect();
        self.out.event(&Event::TtsrTriggered { rules: shown });
        self.rules.pending = rules;
    }

    /// How to continue after a run that a rule stopped.
    pub(crate) fn rule_opening(&mut self) -> Option<Opening> {
        let message = self.rules.injection()?;
        self.omit_stopped_answer();
        Some(Opening::Prompts(vec![Arc::new(Message::Custom(message))]))
    }

    /// Hides the stopped answer and its tool results, so that the model does not take them for its own.
    fn omit_stopped_answer(&mut self) {
        let is_of_answer = |message: &&Arc<Message>| {
            matches!(***message, Message::ToolResult(_)) || message.as_assistant().is_some_and(|answer| answer.failed())
        };
        let n_omitted = self.store.messages().iter().rev().take_while(is_of_answer).count();
        let at = self.store.messages().len() - n_omitted;
        let targets: Vec<String> = self.store.message_entries().skip(at).map(str::to_owned).collect();
        for target in targets {
            // The entries were appended a moment ago, so they are on the branch.
            let _ = self.store.append_context_edit(&target, None);
        }
        self.report_store();
    }
}

fn triggered(rule: &StreamRule) -> TriggeredRule {
    TriggeredRule {
        name: rule.name.clone(),
        path: rule.path.to_string_lossy().into_owned(),
        content: rule.content.clone(),
        condition: rule.condition.clone(),
        scope: rule.scope.clone(),
    }
}
