//! Puts an answer together: wire decoders say what arrived, the builder keeps
//! the message and emits the events every consumer relies on.
//!
//! Whatever a decoder does or a server leaves out, what comes out is in order:
//! one start, every block opened, filled and ended, one end with the whole
//! message. Nothing here knows an API.

mod blocks;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use pith_protocol::{AssistantEvent, AssistantMessage, Block, Model, StopReason, Usage};
use pith_secrets::Secrets;
use serde_json::{Map, Value};

use crate::failure::Fault;
use crate::limits;

use blocks::{Ended, Progress};

/// What an aborted answer says.
pub const ABORTED: &str = "Request was aborted.";

/// The answer under construction.
#[derive(Debug)]
pub struct MessageBuilder {
    model: Arc<Model>,
    message: AssistantMessage,
    /// One per block of the message.
    progress: Vec<Progress>,
    /// Emitted and not yet taken by the driver.
    events: VecDeque<AssistantEvent>,
    phase: Phase,
    has_usage: bool,
    /// Tokens of the request as we count them, for servers that report none.
    input_estimate: u64,
    /// Never shown in an error text.
    secrets: Arc<Secrets>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Streaming,
    Finished,
}

impl MessageBuilder {
    /// Makes an empty answer of `model` to a request of about `input_estimate` tokens.
    pub fn new(model: Arc<Model>, input_estimate: u64) -> Self {
        let message = AssistantMessage {
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            timestamp: now_ms(),
            ..AssistantMessage::default()
        };
        MessageBuilder {
            model,
            message,
            progress: Vec::new(),
            events: VecDeque::new(),
            phase: Phase::Waiting,
            has_usage: false,
            input_estimate,
            secrets: Arc::default(),
        }
    }

    /// Hides texts that servers may echo, such as keys.
    pub fn hide(&mut self, secrets: Arc<Secrets>) {
        self.secrets = secrets;
    }

    /// Returns the oldest event not taken yet.
    pub fn next_event(&mut self) -> Option<AssistantEvent> {
        self.events.pop_front()
    }

    /// Whether events wait to be taken.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether the end has been emitted; everything later is ignored.
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Returns the model that answers.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the message so far.
    pub fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// Called when the provider begins to answer.
    pub fn begin(&mut self) {
        if self.phase == Phase::Waiting {
            self.phase = Phase::Streaming;
            self.events.push_back(AssistantEvent::Start(Box::new(self.message.clone())));
        }
    }

    /// Sets the provider's id of the answer; the first one counts.
    pub fn set_response_id(&mut self, id: &str) {
        if self.message.response_id.is_none() && !id.is_empty() {
            self.message.response_id = Some(id.to_owned());
            self.meta_changed();
        }
    }

    /// Sets the model that really answered; kept only when it is not the one asked for.
    pub fn set_response_model(&mut self, model: &str) {
        let current = self.message.response_model.as_deref().unwrap_or(&self.model.id);
        if !model.is_empty() && model != current {
            self.message.response_model = (model != self.model.id).then(|| model.to_owned());
            self.meta_changed();
        }
    }

    /// Sets the provider's own word for why it stopped.
    pub fn set_raw_stop_reason(&mut self, reason: &str) {
        self.message.raw_stop_reason = Some(reason.to_owned());
    }

    /// Sets the counts known now; `totalTokens` and cost are worked out here.
    pub fn set_usage(&mut self, mut usage: Usage) {
        if usage.total_tokens == 0 {
            usage.total_tokens = usage.input + usage.output + usage.cache_read + usage.cache_write;
        }
        self.has_usage |= usage.total_tokens > 0;
        usage.cost = self.stand_in().as_ref().unwrap_or(&self.model).price(&usage);
        if usage != self.message.usage {
            self.message.usage = usage;
            self.meta_changed();
        }
    }

    /// Returns the model that answered for the one that was asked, where its entry has the prices of that one.
    fn stand_in(&self) -> Option<Model> {
        let id = self.message.response_model.as_deref()?;
        let known = self.model.compat.as_ref()?.get("allowedFallbackModels")?.as_array()?;
        let cost = known.iter().find(|known| known["model"] == id)?.get("cost")?;
        Some(Model { cost: serde_json::from_value(cost.clone()).ok()?, ..(*self.model).clone() })
    }

    /// Multiplies the cost, for service tiers that are not priced in the catalogue.
    pub fn scale_cost(&mut self, factor: f64) {
        let cost = &mut self.message.usage.cost;
        for part in [&mut cost.input, &mut cost.output, &mut cost.cache_read, &mut cost.cache_write, &mut cost.total] {
            *part *= factor;
        }
        self.meta_changed();
    }

    /// Sets what the provider has billed for the answer, which counts more than what the catalogue says.
    pub fn set_billed(&mut self, total: f64) {
        let cost = &mut self.message.usage.cost;
        (cost.total, cost.total_from_provider) = (total, Some(true));
        self.meta_changed();
    }

    fn meta_changed(&mut self) {
        if self.phase == Phase::Streaming {
            self.events.push_back(AssistantEvent::Meta {
                usage: self.message.usage.clone(),
                response_id: self.message.response_id.clone(),
                response_model: self.message.response_model.clone(),
            });
        }
    }

    /// Whether what came so far makes an answer: something was said, and every call has whole arguments.
    pub fn is_complete(&self) -> bool {
        let is_said = |block: &Block| match block {
            Block::Text(block) => !block.text.trim().is_empty(),
            Block::ToolCall(_) => true,
            Block::Thinking(_) | Block::Image(_) | Block::Other(_) => false,
        };
        let is_cut = |(index, block): (usize, &Block)| match block {
            Block::ToolCall(call) if self.is_open(index) => {
                call.arguments_truncated == Some(true) || !self.has_whole_arguments(index)
            }
            Block::ToolCall(call) => call.arguments_truncated == Some(true),
            _ => false,
        };
        self.message.content.iter().any(is_said) && !self.message.content.iter().enumerate().any(is_cut)
    }

    /// Tells the host about something that happened on the way, in the `diagnostics` of the message.
    pub fn note(&mut self, key: &str, value: Value) {
        self.message.diagnostics.get_or_insert_with(|| Value::Object(Map::new()))[key] = value;
    }

    /// Called when the answer is complete. A plain stop with tool calls becomes a tool stop.
    pub fn finish(&mut self, reason: StopReason) {
        if self.is_finished() {
            return;
        }
        self.begin();
        self.close_all(Ended::ByModel);
        let has_calls = self.message.tool_calls().next().is_some();
        self.message.stop_reason = if reason == StopReason::Stop && has_calls { StopReason::ToolUse } else { reason };
        if reason == StopReason::Length {
            // The limit may have cut any of them; none is to be run.
            for block in &mut self.message.content {
                if let Block::ToolCall(call) = block {
                    call.arguments_truncated = Some(true);
                }
            }
        }
        if !self.has_usage {
            self.estimate_usage();
        }
        self.end();
    }

    /// Called when the answer has failed. Keeps what was received.
    pub fn fail(&mut self, fault: Fault) {
        if self.is_finished() {
            return;
        }
        self.close_all(Ended::BrokenOff);
        self.message.stop_reason = StopReason::Error;
        self.message.error_message = Some(self.secrets.redact(&fault.text).into_owned());
        self.message.error = Some(fault.failure);
        self.end();
    }

    /// Called when the caller does not want the rest.
    pub fn abort(&mut self) {
        if self.is_finished() {
            return;
        }
        self.close_all(Ended::BrokenOff);
        self.message.stop_reason = StopReason::Aborted;
        self.message.error_message = Some(ABORTED.to_owned());
        self.end();
    }

    fn close_all(&mut self, ended: Ended) {
        (0..self.progress.len()).for_each(|index| self.end_block(index, ended));
    }

    fn estimate_usage(&mut self) {
        let output = limits::assistant_tokens(&self.message);
        let input = self.input_estimate;
        self.set_usage(Usage { input, output, estimated: Some(true), ..Usage::default() });
    }

    fn end(&mut self) {
        self.phase = Phase::Finished;
        self.events.push_back(AssistantEvent::End(Box::new(std::mem::take(&mut self.message))));
    }
}

/// Returns the time in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as i64)
}

#[cfg(test)]
mod tests;
