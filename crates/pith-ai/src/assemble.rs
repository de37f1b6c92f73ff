//! Puts an answer together: wire decoders say what arrived, the builder keeps
//! the message and emits the events every consumer relies on.
//!
//! Whatever a decoder does or a server leaves out, what comes out is in order:
//! one start, every block opened, filled and ended, one end with the whole
//! message. Nothing here knows an API.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use pith_protocol::{
    AssistantEvent, AssistantMessage, BadArguments, Block, Model, PartialArguments, StopReason, TextBlock,
    ThinkingBlock, ToolCall, Usage,
};
use serde_json::{Map, Value, json};

use crate::failure::Fault;
use crate::http::redact;
use crate::limits;

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
    secrets: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Streaming,
    Finished,
}

/// What ended a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// Nothing is missing, so arguments that are no JSON are no arguments.
    ByModel,
    /// The answer was aborted or has failed and none of its calls is run: arguments stay as the last snapshot
    /// showed them.
    BrokenOff,
}

#[derive(Debug)]
struct Progress {
    is_open: bool,
    /// Of tool calls.
    arguments: PartialArguments,
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
            secrets: Vec::new(),
        }
    }

    /// Hides texts that servers may echo, such as keys.
    pub fn hide(&mut self, secrets: Vec<String>) {
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
        usage.cost = self.model.price(&usage);
        if usage != self.message.usage {
            self.message.usage = usage;
            self.meta_changed();
        }
    }

    /// Multiplies the cost, for service tiers that are not priced in the catalogue.
    pub fn scale_cost(&mut self, factor: f64) {
        let cost = &mut self.message.usage.cost;
        for part in [&mut cost.input, &mut cost.output, &mut cost.cache_read, &mut cost.cache_write, &mut cost.total] {
            *part *= factor;
        }
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

    /// Opens a text block and returns its index.
    pub fn open_text(&mut self) -> usize {
        let index = self.open(Block::Text(TextBlock::default()));
        self.events.push_back(AssistantEvent::TextStart { index });
        index
    }

    /// Opens a thinking block and returns its index.
    pub fn open_thinking(&mut self) -> usize {
        let index = self.open(Block::Thinking(ThinkingBlock::default()));
        self.events.push_back(AssistantEvent::ThinkingStart { index });
        index
    }

    /// Opens a tool call and returns its index. Results are matched by id, so one that is missing or taken is
    /// replaced.
    pub fn open_call(&mut self, id: &str, name: &str) -> usize {
        let is_usable = !id.is_empty() && self.message.tool_calls().all(|call| call.id != id);
        let id = if is_usable { id.to_owned() } else { format!("call_{}", uuid::Uuid::new_v4().simple()) };
        let call = ToolCall { id: id.clone(), name: name.to_owned(), ..ToolCall::default() };
        let index = self.open(Block::ToolCall(call));
        self.events.push_back(AssistantEvent::ToolCallStart { index, id, name: name.to_owned() });
        index
    }

    fn open(&mut self, block: Block) -> usize {
        self.begin();
        self.message.content.push(block);
        self.progress.push(Progress { is_open: true, arguments: PartialArguments::new() });
        self.message.content.len() - 1
    }

    /// Appends to an open block. Text and thinking ignore empty pieces; a call reports them.
    pub fn push(&mut self, index: usize, delta: Cow<'_, str>) {
        let is_silent = delta.is_empty() && !matches!(self.message.content.get(index), Some(Block::ToolCall(_)));
        if !is_silent {
            self.push_even_empty(index, delta);
        }
    }

    /// Appends to an open block and reports the piece whatever is in it.
    pub fn push_even_empty(&mut self, index: usize, delta: Cow<'_, str>) {
        if !self.is_open(index) {
            return;
        }
        match &mut self.message.content[index] {
            Block::Text(block) => {
                block.text.push_str(&delta);
                self.events.push_back(AssistantEvent::TextDelta { index, delta: delta.into_owned() });
            }
            Block::Thinking(block) => {
                block.thinking.push_str(&delta);
                self.events.push_back(AssistantEvent::ThinkingDelta { index, delta: delta.into_owned() });
            }
            Block::ToolCall(_) => {
                self.progress[index].arguments.push(&delta);
                self.events.push_back(AssistantEvent::ToolCallDelta { index, delta: delta.into_owned() });
            }
            Block::Image(_) | Block::Other(_) => {}
        }
    }

    /// Appends what `whole` has beyond the pieces received, if it continues them.
    pub fn complete(&mut self, index: usize, whole: &str) {
        if let Some(tail) = whole.strip_prefix(self.received(index)).filter(|tail| !tail.is_empty()) {
            self.push(index, Cow::Borrowed(tail));
        }
    }

    /// Returns the text of a block so far; of a call its raw arguments.
    pub fn received(&self, index: usize) -> &str {
        match self.message.content.get(index) {
            Some(Block::Text(block)) => &block.text,
            Some(Block::Thinking(block)) => &block.thinking,
            Some(Block::ToolCall(_)) => self.progress[index].arguments.raw(),
            Some(Block::Image(_) | Block::Other(_)) | None => "",
        }
    }

    /// Whether more may be appended to a block.
    pub fn is_open(&self, index: usize) -> bool {
        self.progress.get(index).is_some_and(|progress| progress.is_open)
    }

    /// Whether the arguments of a call are a whole object already.
    pub fn has_whole_arguments(&self, index: usize) -> bool {
        let arguments = &self.progress[index].arguments;
        arguments.raw().trim_end().ends_with('}') && arguments.finish().is_ok()
    }

    /// Replaces the opaque data of a block; allowed after its end.
    pub fn set_signature(&mut self, index: usize, signature: String) {
        match self.message.content.get_mut(index) {
            Some(Block::Text(block)) => block.text_signature = Some(signature),
            Some(Block::Thinking(block)) => block.thinking_signature = Some(signature),
            Some(Block::ToolCall(call)) => call.thought_signature = Some(signature),
            Some(Block::Image(_) | Block::Other(_)) | None => {}
        }
    }

    /// Appends to the opaque data of a thinking block.
    pub fn push_signature(&mut self, index: usize, piece: &str) {
        if let Some(Block::Thinking(block)) = self.message.content.get_mut(index) {
            block.thinking_signature.get_or_insert_default().push_str(piece);
        }
    }

    /// Marks a thinking block whose text was withheld.
    pub fn set_redacted(&mut self, index: usize) {
        if let Some(Block::Thinking(block)) = self.message.content.get_mut(index) {
            block.redacted = Some(true);
        }
    }

    /// Ends a block; ending it twice does nothing.
    pub fn close(&mut self, index: usize) {
        self.end_block(index, Ended::ByModel);
    }

    fn end_block(&mut self, index: usize, ended: Ended) {
        if !self.is_open(index) {
            return;
        }
        self.progress[index].is_open = false;
        let event = match &mut self.message.content[index] {
            Block::Text(block) => {
                AssistantEvent::TextEnd { index, content: block.text.clone(), signature: block.text_signature.clone() }
            }
            Block::Thinking(block) => AssistantEvent::ThinkingEnd {
                index,
                content: block.thinking.clone(),
                signature: block.thinking_signature.clone(),
                redacted: block.redacted == Some(true),
            },
            Block::ToolCall(call) => {
                let arguments = std::mem::take(&mut self.progress[index].arguments);
                match arguments.finish() {
                    Ok(object) => call.arguments = object,
                    Err(error) => {
                        if ended == Ended::BrokenOff {
                            call.arguments = arguments.snapshot();
                        }
                        call.arguments_truncated = Some(true);
                        note_arguments(&mut self.message.diagnostics, &call.id, &error, arguments.raw());
                    }
                }
                AssistantEvent::ToolCallEnd { index, call: call.clone() }
            }
            Block::Image(_) | Block::Other(_) => return,
        };
        self.events.push_back(event);
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
        self.message.error_message = Some(redact(fault.text, &self.secrets));
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

/// Keeps the text of arguments that are no JSON object: `{"toolCalls": {<id>: {error, raw, kind?}}}`. `kind` is what
/// they are if they are JSON.
fn note_arguments(diagnostics: &mut Option<Value>, id: &str, error: &BadArguments, raw: &str) {
    let notes = diagnostics.get_or_insert_with(|| Value::Object(Map::new()));
    let note = &mut notes["toolCalls"][id];
    *note = json!({"error": error.to_string(), "raw": raw});
    if let BadArguments::NotAnObject(kind) = error {
        note["kind"] = json!(kind);
    }
}

/// Returns the time in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::{ErrorKind, ModelCost};

    fn builder() -> MessageBuilder {
        let cost = ModelCost { input: 3.0, output: 15.0, ..ModelCost::default() };
        let model = Model { id: "m".into(), api: "a".into(), provider: "p".into(), cost, ..Model::default() };
        MessageBuilder::new(Arc::new(model), 40)
    }

    /// The ways in which an answer ends before it is complete.
    const BREAK_OFF: [fn(&mut MessageBuilder); 2] =
        [MessageBuilder::abort, |builder| builder.fail(Fault::new(ErrorKind::Network, "gone"))];

    fn names(builder: &mut MessageBuilder) -> Vec<String> {
        let name = |event: AssistantEvent| format!("{event:?}").split([' ', '(']).next().unwrap_or_default().to_owned();
        std::iter::from_fn(|| builder.next_event()).map(name).collect()
    }

    fn end(builder: &mut MessageBuilder) -> AssistantMessage {
        match std::iter::from_fn(|| builder.next_event()).last() {
            Some(AssistantEvent::End(message)) => *message,
            other => panic!("not an end: {other:?}"),
        }
    }

    #[test]
    fn open_blocks_are_ended_when_the_answer_breaks_off() {
        for break_off in BREAK_OFF {
            let mut builder = builder();
            let text = builder.open_text();
            builder.push(text, "hi".into());
            let call = builder.open_call("c1", "bash");
            builder.push(call, r#"{"command":"ec"#.into());
            break_off(&mut builder);
            assert_eq!(
                names(&mut builder),
                ["Start", "TextStart", "TextDelta", "ToolCallStart", "ToolCallDelta", "TextEnd", "ToolCallEnd", "End"]
            );
        }
    }

    #[test]
    fn a_call_that_is_broken_off_keeps_the_arguments_shown_last() {
        for break_off in BREAK_OFF {
            let mut builder = builder();
            let call = builder.open_call("c1", "bash");
            builder.push(call, r#"{"command":"echo hello wor"#.into());
            break_off(&mut builder);
            let message = end(&mut builder);
            let call = message.tool_calls().next().expect("a call");
            assert_eq!(json!(call.arguments), json!({"command": "echo hello wor"}));
            assert_eq!(call.arguments_truncated, Some(true));
        }
    }

    #[test]
    fn broken_arguments_are_kept_as_text_only() {
        let mut builder = builder();
        let call = builder.open_call("c1", "bash");
        builder.push(call, r#"{"command":"echo hello wor"#.into());
        builder.finish(StopReason::ToolUse);
        let message = end(&mut builder);
        let call = message.tool_calls().next().expect("a call");
        assert_eq!((call.arguments.len(), call.arguments_truncated), (0, Some(true)));
        assert_eq!(
            message.diagnostics,
            Some(json!({"toolCalls": {"c1": {
                "error": "text ends inside a string at offset 26", "raw": "{\"command\":\"echo hello wor"}}}))
        );
    }

    #[test]
    fn calls_of_an_answer_cut_by_the_limit_are_marked() {
        let mut builder = builder();
        let call = builder.open_call("c1", "read");
        builder.push(call, r#"{"path":"a"}"#.into());
        builder.finish(StopReason::Length);
        let message = end(&mut builder);
        let call = message.tool_calls().next().expect("a call");
        assert_eq!((call.arguments["path"].as_str(), call.arguments_truncated), (Some("a"), Some(true)));
        assert_eq!(message.stop_reason, StopReason::Length);
    }

    #[test]
    fn a_plain_stop_with_calls_is_a_tool_stop() {
        let mut builder = builder();
        builder.open_call("c1", "ls");
        builder.finish(StopReason::Stop);
        assert_eq!(end(&mut builder).stop_reason, StopReason::ToolUse);
    }

    #[test]
    fn usage_is_priced_and_estimated_when_missing() {
        let mut reported = builder();
        reported.set_usage(Usage { input: 1_000_000, output: 10, ..Usage::default() });
        reported.finish(StopReason::Stop);
        let usage = end(&mut reported).usage;
        assert_eq!((usage.total_tokens, usage.cost.input, usage.estimated), (1_000_010, 3.0, None));

        let mut silent = builder();
        let text = silent.open_text();
        silent.push(text, "12345678".into());
        silent.finish(StopReason::Stop);
        let usage = end(&mut silent).usage;
        assert_eq!((usage.input, usage.output, usage.total_tokens, usage.estimated), (40, 2, 42, Some(true)));
        assert!(usage.cost.total > 0.0);

        let mut failed = builder();
        failed.abort();
        assert_eq!(end(&mut failed).usage, Usage::default());
    }

    #[test]
    fn a_failure_before_the_answer_has_no_start() {
        let mut builder = builder();
        builder.fail(Fault::new(ErrorKind::Auth, "401 no"));
        builder.finish(StopReason::Stop);
        assert_eq!(names(&mut builder), ["End"]);
    }

    #[test]
    fn the_answering_model_is_named_only_when_it_differs() {
        let mut builder = builder();
        builder.set_response_model("m");
        builder.begin();
        builder.set_response_model("m-2026");
        builder.set_response_model("m-2026");
        builder.set_response_id("r1");
        builder.set_response_id("r2");
        builder.finish(StopReason::Stop);
        assert_eq!(names(&mut builder), ["Start", "Meta", "Meta", "Meta", "End"]);
    }

    #[test]
    fn every_call_has_an_id_of_its_own() {
        let mut builder = builder();
        for id in ["a", "a", ""] {
            builder.open_call(id, "ls");
        }
        builder.finish(StopReason::ToolUse);
        let message = end(&mut builder);
        let ids: std::collections::HashSet<_> = message.tool_calls().map(|call| call.id.as_str()).collect();
        assert_eq!((ids.len(), ids.contains("a"), ids.contains("")), (3, true, false));
    }

    #[test]
    fn only_a_continuation_completes_a_block() {
        let mut builder = builder();
        let text = builder.open_text();
        builder.push(text, "ab".into());
        builder.complete(text, "abc");
        builder.complete(text, "xyz and more");
        assert_eq!(builder.received(text), "abc");
    }
}
