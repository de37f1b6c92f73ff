//! Requests of MCP servers to the session's model. What they cost is counted with the tool call during which they came.

use std::sync::Arc;

use pith_agent::trace::WatchedChat;
use pith_protocol::{AssistantEvent, AssistantMessage, CacheRetention, LlmCall, Message, ThinkingLevel};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::jobs::{Job, JobEnd};
use crate::session::Session;

/// How many requests all servers together have for each prompt.
const MAX_SAMPLES: u32 = 10;

/// What a server asks the model.
#[derive(Clone, Debug, PartialEq)]
pub struct McpSample {
    pub system_prompt: String,
    pub messages: Vec<Arc<Message>>,
    pub max_tokens: u64,
}

/// Gets the answer of the model, or why it was not asked.
type SampleAnswer = oneshot::Sender<Result<AssistantMessage, String>>;

impl Session {
    /// Called when a prompt begins.
    pub(crate) fn begin_samples(&mut self) {
        self.mcp.n_samples = 0;
    }

    /// Asks the model for a server. An abort of the run ends the request, and so does a server that no longer waits.
    pub(crate) fn sample(&mut self, request: McpSample, mut answer: SampleAnswer) {
        let call = match self.sample_call(request) {
            Ok(call) => call,
            // A server that no longer waits needs no answer.
            Err(why) => return drop(answer.send(Err(why))),
        };
        self.mcp.n_samples += 1;
        let cancel = self.activity.run().map_or_else(CancellationToken::new, |run| run.cancel.child_token());
        let mut watched = WatchedChat::begin(self.chat_parent().as_deref(), &call);
        let mut events = self.models.client().stream(call, cancel.clone());
        self.jobs.spawn(Job::Background, async move {
            let ended = async {
                while let Some(event) = events.recv().await {
                    watched.take(&event);
                    if let AssistantEvent::End(message) = event {
                        return Ok(*message);
                    }
                }
                Err("the model gave no answer".to_owned())
            };
            let answered = tokio::select! {
                biased;
                () = answer.closed() => None,
                ended = ended => Some(ended),
            };
            match answered {
                Some(answered) => drop(answer.send(answered)),
                None => cancel.cancel(),
            }
            JobEnd::Done
        });
    }

    fn sample_call(&self, request: McpSample) -> Result<LlmCall, String> {
        if self.is_closing {
            return Err("the session is ending".to_owned());
        }
        // What it costs is counted with the call during which a server asks.
        if self.activity.run().is_none() {
            return Err("servers may ask the model only while it works on a prompt".to_owned());
        }
        if self.mcp.n_samples >= MAX_SAMPLES {
            return Err(format!("servers may ask the model {MAX_SAMPLES} times for each prompt"));
        }
        if let Some(limit) = self.limit_reached() {
            return Err(limit);
        }
        let model = self.models.usable().map_err(|error| error.to_string())?;
        let max_tokens =
            if model.max_tokens == 0 { request.max_tokens } else { request.max_tokens.min(model.max_tokens) };
        Ok(LlmCall {
            model: model.clone(),
            system_prompt: request.system_prompt.into(),
            messages: request.messages,
            tools: Arc::new([]),
            thinking: model.clamp_thinking(ThinkingLevel::Off),
            search_tool: None,
            max_tokens: Some(max_tokens),
            // The provider is told nothing that links the request to the session.
            session_id: None,
            cache: CacheRetention::None,
            block_images: self.options.block_images,
            hooks: None,
        })
    }
}
