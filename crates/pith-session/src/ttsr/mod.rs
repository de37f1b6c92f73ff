//! Stream rules (`ttsr_triggered`): an answer that goes against a rule is
//! stopped, the rule enters the conversation, and the model answers again.
//!
//! A rule speaks once per conversation: from then on the model has read it.

mod rules;
mod watch;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use pith_agent::{Opening, now_ms};
use pith_protocol::{AssistantEvent, Block, Content, CustomMessage, Event, Message};
use serde_json::{Map, Value, json};

use crate::activity::Activity;
use crate::session::Session;
pub use rules::StreamRules;
use watch::Watch;

const INJECTION: &str = "ttsr-injection";

/// The rules and what they have done so far.
pub(crate) struct Ttsr {
    rules: StreamRules,
    watch: Watch,
    /// Whether the conversation has the rule already.
    is_told: Vec<bool>,
    /// Rules that stopped the answer being streamed.
    pending: Vec<usize>,
}

impl Ttsr {
    pub fn new(rules: StreamRules) -> Self {
        let is_told = vec![false; rules.len()];
        Ttsr { rules, watch: Watch::default(), is_told, pending: Vec::new() }
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

    /// A new answer begins.
    pub fn begin_answer(&mut self) {
        self.watch.reset();
    }

    /// The host stopped the answer first.
    pub fn forget_pending(&mut self) {
        self.pending.clear();
    }

    /// The rules that stop the answer with this event; none once it was stopped.
    fn take_event(&mut self, event: &AssistantEvent) -> &[usize] {
        if !self.pending.is_empty() {
            return &[];
        }
        let hits = self.watch.feed(&self.rules, event);
        self.pending = hits.into_iter().filter(|rule| !self.is_told[*rule]).collect();
        &self.pending
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
    /// Holds a piece of an answer against the rules, and stops the answer on a match.
    pub(crate) fn watch_stream(&mut self, event: &AssistantEvent) {
        let hits = self.ttsr.take_event(event).to_vec();
        if hits.is_empty() {
            return;
        }
        let rules: Vec<_> = hits.iter().map(|rule| self.ttsr.rules.get(*rule)).collect();
        let rules = serde_json::to_value(rules).expect("rules always serialize");
        self.out.event(&Event::TtsrTriggered { rules: &rules });
        if let Activity::Running(run) = &self.activity {
            run.cancel.cancel();
        }
    }

    /// What to go on with after a run that a rule stopped.
    pub(crate) fn rule_opening(&mut self) -> Option<Opening> {
        let message = self.ttsr.injection()?;
        self.omit_stopped_answer();
        Some(Opening::Prompts(vec![Arc::new(Message::Custom(message))]))
    }

    /// The model must not take the stopped answer for its own word, even if it
    /// was quicker to finish than we were to stop it.
    fn omit_stopped_answer(&mut self) {
        let said_something =
            |message: &Arc<Message>| message.as_assistant().is_some_and(|answer| !answer.content.is_empty());
        let Some(at) = self.store.messages().iter().rposition(said_something) else { return };
        let target = self.store.message_entries().nth(at).map(str::to_owned);
        if let Some(target) = target {
            // The entry was appended a moment ago, so it is on the branch.
            let _ = self.store.append_context_edit(&target, None);
            self.report_store();
        }
    }
}
