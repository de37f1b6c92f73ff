//! Checks answers against the rules in the run's own task, where an answer can be cut off at the very delta that breaks
//! a rule: nothing the provider sends after it is shown.

use std::sync::Arc;

use pith_protocol::{
    AssistantEvent, AssistantMessage, Block, Message, PartialArguments, StopReason, TextBlock, ThinkingBlock, ToolCall,
};

use super::patterns::StreamRules;
use super::watch::Watch;

/// Watches the answers of one run.
pub(crate) struct RuleGuard {
    rules: Arc<StreamRules>,
    watch: Watch,
    /// Rules that are in the conversation already.
    is_injected: Vec<bool>,
    blocks: Vec<PartialBlock>,
    /// The rules that stopped the answer.
    broken: Vec<usize>,
}

/// A block of the answer, as far as it was received.
struct PartialBlock {
    block: Block,
    arguments: PartialArguments,
    is_open: bool,
}

impl RuleGuard {
    pub fn new(rules: Arc<StreamRules>, is_injected: Vec<bool>) -> Self {
        let (watch, blocks, broken) = Default::default();
        RuleGuard { rules, watch, is_injected, blocks, broken }
    }

    /// Called when an answer begins.
    pub fn begin_answer(&mut self) {
        self.watch.reset();
        self.blocks.clear();
        self.broken.clear();
    }

    /// Whether a rule has stopped the answer.
    pub fn has_stopped(&self) -> bool {
        !self.broken.is_empty()
    }

    /// Takes a piece of an answer; returns the rules it breaks.
    pub fn take(&mut self, event: &AssistantEvent) -> &[usize] {
        if self.broken.is_empty() {
            self.follow(event);
            let hits = self.watch.feed(&self.rules, event);
            self.broken = hits.into_iter().filter(|rule| !self.is_injected[*rule]).collect();
        }
        &self.broken
    }

    fn follow(&mut self, event: &AssistantEvent) {
        let begin = |block| PartialBlock { block, arguments: PartialArguments::new(), is_open: true };
        match event {
            AssistantEvent::TextStart { .. } => self.blocks.push(begin(Block::Text(TextBlock::default()))),
            AssistantEvent::ThinkingStart { .. } => self.blocks.push(begin(Block::Thinking(ThinkingBlock::default()))),
            AssistantEvent::ToolCallStart { id, name, .. } => {
                let call = ToolCall { id: id.clone(), name: name.clone(), ..ToolCall::default() };
                self.blocks.push(begin(Block::ToolCall(call)));
            }
            AssistantEvent::TextDelta { index, delta }
            | AssistantEvent::ThinkingDelta { index, delta }
            | AssistantEvent::ToolCallDelta { index, delta } => {
                if let Some(partial) = self.blocks.get_mut(*index) {
                    match &mut partial.block {
                        Block::Text(block) => block.text.push_str(delta),
                        Block::Thinking(block) => block.thinking.push_str(delta),
                        Block::ToolCall(_) => partial.arguments.push(delta),
                        Block::Image(_) | Block::Other(_) => {}
                    }
                }
            }
            AssistantEvent::TextEnd { index, content, signature } => {
                let block = TextBlock { text: content.clone(), text_signature: signature.clone() };
                self.end(*index, Block::Text(block));
            }
            AssistantEvent::ThinkingEnd { index, content, signature, redacted } => {
                let (thinking, thinking_signature) = (content.clone(), signature.clone());
                let redacted = redacted.then_some(true);
                self.end(*index, Block::Thinking(ThinkingBlock { thinking, thinking_signature, redacted }));
            }
            AssistantEvent::ToolCallEnd { index, call } => self.end(*index, Block::ToolCall(call.clone())),
            AssistantEvent::Start(_) | AssistantEvent::Meta { .. } | AssistantEvent::End(_) => {}
        }
    }

    fn end(&mut self, index: usize, block: Block) {
        if let Some(partial) = self.blocks.get_mut(index) {
            partial.block = block;
            partial.is_open = false;
        }
    }

    /// Ends the blocks that are still open, and returns the events that say so.
    pub fn close(&mut self) -> Vec<AssistantEvent> {
        let open = self.blocks.iter_mut().enumerate().filter(|(_, partial)| partial.is_open);
        let end = |(index, partial): (usize, &mut PartialBlock)| match &mut partial.block {
            Block::Text(block) => Some(AssistantEvent::TextEnd { index, content: block.text.clone(), signature: None }),
            Block::Thinking(block) => {
                let content = block.thinking.clone();
                Some(AssistantEvent::ThinkingEnd { index, content, signature: None, redacted: false })
            }
            Block::ToolCall(call) => {
                let mut snapshot = Vec::new();
                partial.arguments.append_snapshot(&mut snapshot);
                call.arguments = serde_json::from_slice(&snapshot).unwrap_or_default();
                call.arguments_truncated = partial.arguments.finish().is_err().then_some(true);
                Some(AssistantEvent::ToolCallEnd { index, call: call.clone() })
            }
            Block::Image(_) | Block::Other(_) => None,
        };
        let ends = open.filter_map(end).collect();
        self.blocks.iter_mut().for_each(|partial| partial.is_open = false);
        ends
    }

    /// Replaces a stopped answer by the part that was shown, whatever the provider has sent.
    pub fn conclude(&self, message: Arc<Message>) -> Arc<Message> {
        let Some(answer) = message.as_assistant().filter(|_| self.has_stopped()) else { return message };
        let names: Vec<&str> = self.broken.iter().map(|rule| self.rules.get(*rule).name.as_str()).collect();
        Arc::new(Message::Assistant(AssistantMessage {
            content: self.blocks.iter().map(|partial| partial.block.clone()).collect(),
            stop_reason: StopReason::Aborted,
            error_message: Some(format!("TTSR matched rule: {}", names.join(", "))),
            raw_stop_reason: None,
            error: None,
            ..answer.clone()
        }))
    }
}
