//! The message being streamed, kept as encoded bytes.
//!
//! A cumulative `message_update` repeats the whole message twice. Escaping each
//! delta once and appending it to its block makes such a frame a memory copy,
//! whatever the length of the answer.

use crate::json::{append, append_escaped};
use crate::{AssistantEvent, AssistantMessage, PartialArguments, StreamUpdates, ToolCall, Usage};

/// A partial assistant message and the frames that report its growth.
#[derive(Debug)]
pub struct LiveMessage {
    mode: StreamUpdates,
    /// The message without content; source of `tail`.
    meta: AssistantMessage,
    blocks: Vec<Block>,
    /// Everything after the content array.
    tail: Vec<u8>,
    usage: Vec<u8>,
}

/// One block: encoded up to where the next delta goes.
#[derive(Debug)]
struct Block {
    kind: Kind,
    /// Bytes before the growing part, e.g. `{"type":"text","text":"`.
    head: Vec<u8>,
    /// The growing part, escaped. Empty for tool calls, whose part is in `arguments`.
    body: Vec<u8>,
    arguments: PartialArguments,
    /// Bytes after the growing part.
    close: Vec<u8>,
}

/// What a delta belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Thinking,
    ToolCall,
}

/// A delta, as needed to merge it with the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    pub kind: Kind,
    pub index: usize,
    /// JSON-escaped, so two deltas merge by appending.
    pub escaped: Vec<u8>,
}

impl LiveMessage {
    /// Starts with the metadata the provider opened with.
    pub fn new(mode: StreamUpdates, start: &AssistantMessage) -> Self {
        let meta = AssistantMessage { content: Vec::new(), ..start.clone() };
        let mut live = LiveMessage { mode, meta, blocks: Vec::new(), tail: Vec::new(), usage: Vec::new() };
        live.encode_meta();
        live
    }

    /// Takes an event into the message. Returns the delta if it is one.
    pub fn fold(&mut self, event: &AssistantEvent) -> Option<Delta> {
        match event {
            AssistantEvent::Meta { usage, response_id, response_model } => {
                self.update_meta(usage, response_id, response_model)
            }
            AssistantEvent::TextStart { index } => {
                self.open(*index, Kind::Text, br#"{"type":"text","text":""#.to_vec())
            }
            AssistantEvent::ThinkingStart { index } => {
                self.open(*index, Kind::Thinking, br#"{"type":"thinking","thinking":""#.to_vec());
            }
            AssistantEvent::ToolCallStart { index, id, name } => self.open_call(*index, id, name),
            AssistantEvent::TextDelta { index, delta } => return self.grow(Kind::Text, *index, delta),
            AssistantEvent::ThinkingDelta { index, delta } => return self.grow(Kind::Thinking, *index, delta),
            AssistantEvent::ToolCallDelta { index, delta } => return self.grow(Kind::ToolCall, *index, delta),
            AssistantEvent::TextEnd { index, signature, .. } => {
                self.seal(*index, &[("textSignature", signature.as_deref())], false);
            }
            AssistantEvent::ThinkingEnd { index, signature, redacted, .. } => {
                self.seal(*index, &[("thinkingSignature", signature.as_deref())], *redacted);
            }
            AssistantEvent::ToolCallEnd { index, call } => self.seal_call(*index, call),
            AssistantEvent::Start(_) | AssistantEvent::End(_) => {}
        }
        None
    }

    /// Appends the `message_update` frame (without newline) of a delta just folded, or of several merged ones.
    pub fn append_delta_frame(&self, delta: &Delta, out: &mut Vec<u8>) {
        let name = match delta.kind {
            Kind::Text => "text_delta",
            Kind::Thinking => "thinking_delta",
            Kind::ToolCall => "toolcall_delta",
        };
        self.append_frame(out, name, delta.index, |out| {
            out.extend_from_slice(b",\"delta\":\"");
            out.extend_from_slice(&delta.escaped);
            out.push(b'"');
        });
    }

    /// Appends the `message_update` frame (without newline) of a start or end event just folded.
    pub fn append_event_frame(&self, event: &AssistantEvent, out: &mut Vec<u8>) {
        match event {
            AssistantEvent::TextStart { index } => self.append_frame(out, "text_start", *index, |_| {}),
            AssistantEvent::ThinkingStart { index } => self.append_frame(out, "thinking_start", *index, |_| {}),
            AssistantEvent::ToolCallStart { index, id, name } => {
                self.append_frame(out, "toolcall_start", *index, |out| {
                    append_member(out, "id", id);
                    append_member(out, "toolName", name);
                });
            }
            AssistantEvent::TextEnd { index, content, .. } => {
                self.append_frame(out, "text_end", *index, |out| append_member(out, "content", content));
            }
            AssistantEvent::ThinkingEnd { index, content, .. } => {
                self.append_frame(out, "thinking_end", *index, |out| append_member(out, "content", content));
            }
            AssistantEvent::ToolCallEnd { index, .. } => self.append_frame(out, "toolcall_end", *index, |out| {
                out.extend_from_slice(b",\"toolCall\":");
                if let Some(block) = self.blocks.get(*index) {
                    block.append(out);
                }
            }),
            AssistantEvent::Start(_)
            | AssistantEvent::Meta { .. }
            | AssistantEvent::TextDelta { .. }
            | AssistantEvent::ThinkingDelta { .. }
            | AssistantEvent::ToolCallDelta { .. }
            | AssistantEvent::End(_) => {}
        }
    }

    fn append_frame(&self, out: &mut Vec<u8>, name: &str, index: usize, extra: impl FnOnce(&mut Vec<u8>)) {
        let is_full = self.mode == StreamUpdates::Full;
        out.extend_from_slice(b"{\"type\":\"message_update\",");
        if !is_full {
            self.append_usage(out);
            out.push(b',');
        }
        out.extend_from_slice(b"\"assistantMessageEvent\":{\"type\":\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\",\"contentIndex\":");
        append(out, &index);
        extra(out);
        if is_full {
            out.extend_from_slice(b",\"partial\":");
            let start = out.len();
            self.append_snapshot(out);
            let end = out.len();
            out.extend_from_slice(b"},\"message\":");
            out.extend_from_within(start..end);
            out.push(b',');
            self.append_usage(out);
            out.push(b'}');
        } else {
            out.extend_from_slice(b"}}");
        }
    }

    fn append_usage(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"usage\":");
        out.extend_from_slice(&self.usage);
    }

    fn append_snapshot(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"role\":\"assistant\",\"content\":[");
        for (position, block) in self.blocks.iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            block.append(out);
        }
        out.extend_from_slice(&self.tail);
    }

    fn open(&mut self, index: usize, kind: Kind, head: Vec<u8>) {
        debug_assert_eq!(index, self.blocks.len(), "blocks open in order");
        let close = if kind == Kind::ToolCall { b"}".to_vec() } else { b"\"}".to_vec() };
        self.blocks.push(Block { kind, head, body: Vec::new(), arguments: PartialArguments::new(), close });
    }

    fn open_call(&mut self, index: usize, id: &str, name: &str) {
        let mut head = br#"{"type":"toolCall""#.to_vec();
        append_member(&mut head, "id", id);
        append_member(&mut head, "name", name);
        head.extend_from_slice(b",\"arguments\":");
        self.open(index, Kind::ToolCall, head);
    }

    fn grow(&mut self, kind: Kind, index: usize, delta: &str) -> Option<Delta> {
        let block = self.blocks.get_mut(index)?;
        let mut escaped = Vec::with_capacity(delta.len() + 8);
        append_escaped(&mut escaped, delta);
        match block.kind {
            Kind::ToolCall if self.mode == StreamUpdates::Full => block.arguments.push(delta),
            Kind::ToolCall => {} // nobody will see a snapshot
            Kind::Text | Kind::Thinking if self.mode == StreamUpdates::Full => block.body.extend_from_slice(&escaped),
            Kind::Text | Kind::Thinking => {}
        }
        Some(Delta { kind, index, escaped })
    }

    fn seal(&mut self, index: usize, members: &[(&str, Option<&str>)], redacted: bool) {
        let Some(block) = self.blocks.get_mut(index) else { return };
        block.close = b"\"".to_vec();
        for (name, value) in members {
            if let Some(value) = value {
                append_member(&mut block.close, name, value);
            }
        }
        if redacted {
            block.close.extend_from_slice(b",\"redacted\":true");
        }
        block.close.push(b'}');
    }

    fn seal_call(&mut self, index: usize, call: &ToolCall) {
        let Some(block) = self.blocks.get_mut(index) else { return };
        block.head.clear();
        append(&mut block.head, &crate::Block::ToolCall(call.clone()));
        // Complete now: nothing grows and nothing closes.
        block.kind = Kind::Text;
        block.close.clear();
        block.arguments = PartialArguments::new();
    }

    fn update_meta(&mut self, usage: &Usage, response_id: &Option<String>, response_model: &Option<String>) {
        self.meta.usage.clone_from(usage);
        if response_id.is_some() {
            self.meta.response_id.clone_from(response_id);
        }
        if response_model.is_some() {
            self.meta.response_model.clone_from(response_model);
        }
        self.encode_meta();
    }

    fn encode_meta(&mut self) {
        self.usage.clear();
        append(&mut self.usage, &self.meta.usage);
        self.tail.clear();
        append(&mut self.tail, &self.meta);
        // The encoder writes `{"role":"assistant","content":[],…`; what follows `[` is our tail.
        let open = self.tail.iter().position(|byte| *byte == b'[').expect("content is an array");
        self.tail.drain(..=open);
    }
}

impl Block {
    fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        match self.kind {
            Kind::ToolCall => self.arguments.append_snapshot(out),
            Kind::Text | Kind::Thinking => out.extend_from_slice(&self.body),
        }
        out.extend_from_slice(&self.close);
    }
}

fn append_member(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":\"");
    append_escaped(out, value);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, StopReason};
    use serde_json::{Value, json};

    fn start() -> AssistantMessage {
        AssistantMessage {
            api: "a".into(),
            provider: "p".into(),
            model: "m".into(),
            timestamp: 5,
            ..Default::default()
        }
    }

    fn script() -> Vec<AssistantEvent> {
        let call = ToolCall { id: "c1".into(), name: "read".into(), ..Default::default() };
        vec![
            AssistantEvent::ThinkingStart { index: 0 },
            AssistantEvent::ThinkingDelta { index: 0, delta: "hm \"".into() },
            AssistantEvent::ThinkingEnd {
                index: 0,
                content: "hm \"".into(),
                signature: Some("s".into()),
                redacted: false,
            },
            AssistantEvent::TextStart { index: 1 },
            AssistantEvent::TextDelta { index: 1, delta: "He\u{2028}".into() },
            AssistantEvent::Meta {
                usage: Usage { input: 3, ..Default::default() },
                response_id: Some("r".into()),
                response_model: None,
            },
            AssistantEvent::TextDelta { index: 1, delta: "llo".into() },
            AssistantEvent::TextEnd { index: 1, content: "He\u{2028}llo".into(), signature: None },
            AssistantEvent::ToolCallStart { index: 2, id: "c1".into(), name: "read".into() },
            AssistantEvent::ToolCallDelta { index: 2, delta: "{\"path\": \"a".into() },
            AssistantEvent::ToolCallEnd { index: 2, call },
        ]
    }

    fn frames(mode: StreamUpdates) -> Vec<Value> {
        let mut live = LiveMessage::new(mode, &start());
        let mut out = Vec::new();
        for event in script() {
            let mut frame = Vec::new();
            match live.fold(&event) {
                Some(delta) => live.append_delta_frame(&delta, &mut frame),
                None => live.append_event_frame(&event, &mut frame),
            }
            if !frame.is_empty() {
                out.push(serde_json::from_slice(&frame).expect("frames are JSON"));
            }
        }
        out
    }

    #[test]
    fn full_frames_hold_the_state_at_the_event() {
        let frames = frames(StreamUpdates::Full);
        assert_eq!(frames.len(), 10);
        for frame in &frames {
            assert_eq!(frame["message"], frame["assistantMessageEvent"]["partial"]);
            let message: Message = serde_json::from_value(frame["message"].clone()).expect("a message");
            assert_eq!(message.as_assistant().expect("assistant").stop_reason, StopReason::Stop);
        }
        assert_eq!(frames[1]["message"]["content"], json!([{"type":"thinking","thinking":"hm \""}]));
        assert_eq!(frames[4]["message"]["content"][1], json!({"type":"text","text":"He\u{2028}"}));
        assert_eq!(frames[5]["message"]["responseId"], "r");
        assert_eq!(frames[5]["usage"]["input"], 3);
        assert_eq!(frames[5]["message"]["content"][0]["thinkingSignature"], "s");
        assert_eq!(frames[8]["message"]["content"][2]["arguments"], json!({"path":"a"}));
        assert_eq!(
            frames[9]["assistantMessageEvent"]["toolCall"],
            json!({"type":"toolCall","id":"c1","name":"read","arguments":{}})
        );
    }

    #[test]
    fn delta_frames_carry_usage_and_no_snapshot() {
        let frames = frames(StreamUpdates::Delta);
        assert!(frames.iter().all(|frame| frame.get("message").is_none() && frame["usage"]["cost"]["total"] == 0));
        assert_eq!(
            frames[7]["assistantMessageEvent"],
            json!({"type":"toolcall_start","contentIndex":2,"id":"c1","toolName":"read"})
        );
        assert_eq!(frames[6]["assistantMessageEvent"]["content"], "He\u{2028}llo");
    }
}
