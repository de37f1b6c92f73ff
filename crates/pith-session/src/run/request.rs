//! Assembles the request for the next answer from the current state.

use std::sync::Arc;

use pith_agent::link::Limits;
use pith_agent::{Turn, now_ms};
use pith_ai::NO_MODEL;
use pith_protocol::{AssistantMessage, ErrorKind, LlmCall, Model};

use crate::activity::Work;
use crate::extensions::request_hooks;
use crate::session::Session;
use crate::tools::TOOL_SEARCH;

impl Session {
    pub(crate) fn next_turn(&mut self) -> Turn {
        let model = self.models.current().cloned();
        let mut blank = self.blank_answer();
        let call = match (model, self.end_work_at_limit()) {
            (_, Some(limit)) => {
                blank.error = Some(pith_ai::failure(ErrorKind::Limit));
                Err(limit)
            }
            (None, None) => Err(NO_MODEL.to_owned()),
            (Some(model), None) => Ok((self.models.client().clone(), self.request(model))),
        };
        let limits = Limits {
            reports_aborted_calls: self.options.reports_aborted_calls,
            call_time: self.governor.call_time(),
            control: self.call_control(),
            ..Limits::default()
        };
        Turn { blank, call, tools: self.tools.active().clone(), hook: self.gate(), limits, trace: self.turn_trace() }
    }

    /// An answer of the current model without content.
    pub(super) fn blank_answer(&self) -> AssistantMessage {
        self.models.current().map_or_else(AssistantMessage::default, |model| AssistantMessage {
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            timestamp: now_ms(),
            ..AssistantMessage::default()
        })
    }

    fn request(&self, model: Arc<Model>) -> LlmCall {
        LlmCall {
            thinking: self.models.level(),
            model,
            system_prompt: self.system_prompt(),
            messages: self.store.messages().to_vec(),
            tools: self.tools.active().specs().clone(),
            search_tool: self.tools.has_deferred().then(|| TOOL_SEARCH.into()),
            max_tokens: None,
            session_id: Some(self.store.id().into()),
            cache: self.options.cache,
            block_images: self.options.block_images,
            hooks: self.extension_handle().and_then(request_hooks),
        }
    }

    /// The system prompt of the next request.
    pub(crate) fn system_prompt(&self) -> Arc<str> {
        match self.activity.work() {
            Some(work) => self.system_prompt_of(work),
            None => self.project.prompt().clone(),
        }
    }

    /// The system prompt for work that is between two stages.
    pub(crate) fn system_prompt_of(&self, work: &Work) -> Arc<str> {
        match &work.prompt {
            Some(changed) => self.changed_prompt(changed),
            None => self.project.prompt().clone(),
        }
    }
}
