//! Stream rules (`ttsr_triggered`): an answer that goes against a rule is
//! stopped, the rule enters the conversation, and the model answers again.
//!
//! A rule speaks once per conversation: from then on the model has read it.

mod guard;
mod patterns;
mod watch;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use pith_agent::{Opening, now_ms};
use pith_protocol::{Block, Content, CustomMessage, Event, Message};
use pith_store::{Kind, Role};
use serde_json::{Map, Value, json};

use crate::session::Session;
pub(crate) use guard::RuleGuard;
pub use patterns::StreamRules;

const INJECTION: &str = "ttsr-injection";

/// The rules and what they have done so far.
pub(crate) struct RuleBook {
    rules: Arc<StreamRules>,
    /// Whether the conversation has the rule already.
    is_told: Vec<bool>,
    /// Rules that stopped the answer being streamed.
    pending: Vec<usize>,
}

impl RuleBook {
    pub fn new(rules: StreamRules) -> Self {
        let is_told = vec![false; rules.len()];
        RuleBook { rules: Arc::new(rules), is_told, pending: Vec::new() }
    }

    /// Looks up which rules a conversation has.
    pub fn resume(&mut self, messages: &[Arc<Message>]) {
        self.is_told.fill(false);
        self.pending.clear();
        for message in messages {
            let Message::Custom(CustomMessage { custom_type, details: Some(details), .. }) = &**message else {
                continue;
            };
            let names = details.get("rules").and_then(Value::as_array).filter(|_| custom_type == INJECTION);
            for rule in names.into_iter().flatten().filter_map(|name| self.rules.find(name.as_str()?)) {
                self.is_told[rule] = true;
            }
        }
    }

    /// Watches the answers of a run, where there is something to watch for.
    pub fn guard(&self) -> Option<RuleGuard> {
        self.rules.automaton().map(|_| RuleGuard::new(self.rules.clone(), self.is_told.clone()))
    }

    /// The host stopped the answer first.
    pub fn forget_pending(&mut self) {
        self.pending.clear();
    }

    /// The message that tells the pending rules.
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
            self.is_told[rule] = true;
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
    /// Watches for other rules from the next run on; those the conversation has already stay known.
    pub(crate) fn replace_rules(&mut self, rules: StreamRules) {
        if rules.len() == 0 && self.rules.rules.len() == 0 {
            return;
        }
        self.rules = RuleBook::new(rules);
        self.resume_rules();
    }

    /// Looks up which rules the conversation has. Only custom messages matter; the rest of a long session is not read
    /// before it is needed.
    pub(crate) fn resume_rules(&mut self) {
        let is_custom = |kind| matches!(kind, Kind::CustomMessage | Kind::Message(Role::Custom));
        self.rules.resume(&self.store.messages_of(is_custom));
    }

    /// A rule has stopped the answer.
    pub(crate) fn on_rules_broken(&mut self, rules: Vec<usize>) {
        let shown: Vec<_> = rules.iter().map(|rule| self.rules.rules.get(*rule)).collect();
        let shown = serde_json::to_value(shown).expect("rules always serialize");
        self.out.event(&Event::TtsrTriggered { rules: &shown });
        self.rules.pending = rules;
    }

    /// What to go on with after a run that a rule stopped.
    pub(crate) fn rule_opening(&mut self) -> Option<Opening> {
        let message = self.rules.injection()?;
        self.omit_stopped_answer();
        Some(Opening::Prompts(vec![Arc::new(Message::Custom(message))]))
    }

    /// The model must not take the stopped answer for its own word, nor what became of its calls.
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
