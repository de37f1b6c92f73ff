//! Hides secrets in what a run reports: in error texts always, in results of tools if the user wants that.

use std::borrow::Cow;
use std::sync::Arc;

use pith_agent::{RunEvent, ToolOutput};
use pith_protocol::{AssistantEvent, AssistantMessage, Block, Message};
use pith_secrets::Secrets;
use serde_json::Value;

use crate::session::Session;

/// What is hidden in the events of one run, before extensions, host, model and file see them.
pub(crate) struct Masking {
    errors: Arc<Secrets>,
    /// Set if results of tools are masked too.
    results: Option<Arc<Secrets>>,
}

impl Session {
    pub(crate) fn masking(&self) -> Masking {
        Masking { errors: self.models.registry().secrets(), results: self.workbench().secrets.clone() }
    }
}

impl Masking {
    pub fn event(&self, event: RunEvent) -> RunEvent {
        match event {
            RunEvent::Stream(AssistantEvent::End(mut answer)) => {
                self.mask_error(&mut answer);
                RunEvent::Stream(AssistantEvent::End(answer))
            }
            RunEvent::ToolUpdate { call, output } => RunEvent::ToolUpdate { call, output: self.output(output) },
            RunEvent::ToolEnd { call, output } => RunEvent::ToolEnd { call, output: self.output(output) },
            RunEvent::MessageStart(message) => RunEvent::MessageStart(self.message(message)),
            event => event,
        }
    }

    /// Returns a message as it is shown, stored and sent to the model.
    pub fn message(&self, mut message: Arc<Message>) -> Arc<Message> {
        match (&*message, &self.results) {
            (Message::Assistant(answer), _) if answer.error_message.is_some() => {
                if let Message::Assistant(answer) = Arc::make_mut(&mut message) {
                    self.mask_error(answer);
                }
            }
            (Message::ToolResult(_), Some(secrets)) => {
                if let Message::ToolResult(result) = Arc::make_mut(&mut message) {
                    mask_blocks(secrets, &mut result.content);
                    result.details.iter_mut().for_each(|details| mask_value(secrets, details));
                }
            }
            _ => {}
        }
        message
    }

    fn output(&self, mut output: ToolOutput) -> ToolOutput {
        if let Some(secrets) = &self.results {
            mask_blocks(secrets, &mut output.content);
            output.details.iter_mut().for_each(|details| mask_value(secrets, details));
        }
        output
    }

    fn mask_error(&self, answer: &mut AssistantMessage) {
        answer.error_message.iter_mut().for_each(|text| mask(&self.errors, text));
    }
}

fn mask_blocks(secrets: &Secrets, blocks: &mut [Block]) {
    for block in blocks {
        match block {
            Block::Text(block) => mask(secrets, &mut block.text),
            Block::Thinking(block) => mask(secrets, &mut block.thinking),
            Block::Other(members) => members.values_mut().for_each(|member| mask_value(secrets, member)),
            // Pixels hold no text that could be found.
            Block::Image(_) | Block::ToolCall(_) => {}
        }
    }
}

fn mask_value(secrets: &Secrets, value: &mut Value) {
    match value {
        Value::String(text) => mask(secrets, text),
        Value::Array(items) => items.iter_mut().for_each(|item| mask_value(secrets, item)),
        Value::Object(members) => members.values_mut().for_each(|member| mask_value(secrets, member)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn mask(secrets: &Secrets, text: &mut String) {
    if let Cow::Owned(masked) = secrets.redact(text) {
        *text = masked;
    }
}
