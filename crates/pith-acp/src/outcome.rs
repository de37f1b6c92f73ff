//! How a turn ended, as the answer of `session/prompt` tells it.

use agent_client_protocol_schema::v1::{self as acp, PromptResponse};
use pith_protocol::{AssistantMessage, ErrorKind, StopReason, Usage};
use serde_json::json;

use crate::client::meta;
use crate::error::{auth_required, internal};

/// Words of providers for an answer they withheld.
const REFUSALS: [&str; 6] = ["refusal", "content_filter", "safety", "prohibited_content", "blocklist", "spii"];

/// What is gathered of a turn while it runs.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The last answer, without its content.
    last: Option<AssistantMessage>,
    usage: Usage,
    n_answers: u32,
    /// The entry of the first prompt.
    prompt_entry: Option<String>,
}

/// The end of a turn.
#[derive(Debug)]
pub enum TurnEnd {
    Answered(Box<PromptResponse>),
    Failed(acp::Error),
}

impl Outcome {
    /// Takes the next answer of the model.
    pub fn note(&mut self, answer: &AssistantMessage) {
        self.usage.add(&answer.usage);
        self.n_answers += 1;
        let extra = serde_json::Map::new();
        self.last = Some(AssistantMessage { content: Vec::new(), extra, ..answer.clone() });
    }

    /// Takes the entry of a prompt; the first one begins the turn.
    pub fn note_prompt(&mut self, entry: Option<String>) {
        self.prompt_entry = self.prompt_entry.take().or(entry);
    }

    /// The entry of the prompt that began the turn.
    pub fn prompt_entry(&self) -> Option<&str> {
        self.prompt_entry.as_deref()
    }

    /// Whether the provider withheld the last answer.
    pub fn is_refusal(&self) -> bool {
        let word = self.last.as_ref().and_then(|last| last.raw_stop_reason.as_deref());
        word.is_some_and(|word| REFUSALS.contains(&word.to_ascii_lowercase().as_str()))
    }

    /// Concludes the turn. A cancelled one is `cancelled`, whatever else went wrong.
    pub fn end(&self, is_cancelled: bool) -> TurnEnd {
        let Some(last) = &self.last else {
            let reason = if is_cancelled { acp::StopReason::Cancelled } else { acp::StopReason::EndTurn };
            return self.answered(reason);
        };
        let limit = last.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Limit);
        match last.stop_reason {
            _ if is_cancelled => self.answered(acp::StopReason::Cancelled),
            _ if limit => self.answered(acp::StopReason::MaxTurnRequests),
            _ if self.is_refusal() => self.answered(acp::StopReason::Refusal),
            StopReason::Stop | StopReason::ToolUse => self.answered(acp::StopReason::EndTurn),
            StopReason::Length => self.answered(acp::StopReason::MaxTokens),
            StopReason::Aborted => self.answered(acp::StopReason::Cancelled),
            StopReason::Error => TurnEnd::Failed(failure(last)),
        }
    }

    fn answered(&self, reason: acp::StopReason) -> TurnEnd {
        let Usage { input, output, cache_read, cache_write, reasoning, .. } = self.usage;
        let total = input + output + cache_read + cache_write;
        let usage = acp::Usage::new(total, input, output)
            .thought_tokens(reasoning)
            .cached_read_tokens(cache_read)
            .cached_write_tokens(cache_write);
        let own = json!({"pith": {"usage": self.usage, "cost": self.usage.cost.total, "turns": self.n_answers}});
        TurnEnd::Answered(Box::new(PromptResponse::new(reason).usage(usage).meta(meta(own))))
    }
}

fn failure(last: &AssistantMessage) -> acp::Error {
    let text = last.error_message.clone().unwrap_or_else(|| "The model has failed".to_owned());
    let kind = last.error.as_ref().map(|error| error.kind);
    let is_retryable =
        matches!(kind, Some(ErrorKind::RateLimit | ErrorKind::Overloaded | ErrorKind::Network | ErrorKind::Timeout));
    let mut data = json!({"provider": last.provider, "model": last.model, "retryable": is_retryable});
    if let Some(status) = last.error.as_ref().and_then(|error| error.status) {
        data["status"] = status.into();
    }
    let error = if kind == Some(ErrorKind::Auth) { auth_required(text) } else { internal(text) };
    error.data(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::Failure;

    fn ended(answer: AssistantMessage, is_cancelled: bool) -> String {
        let mut outcome = Outcome::default();
        outcome.note(&answer);
        match outcome.end(is_cancelled) {
            TurnEnd::Answered(response) => format!("{:?}", response.stop_reason),
            TurnEnd::Failed(error) => i32::from(error.code).to_string(),
        }
    }

    #[test]
    fn every_end_has_its_reason() {
        let answer = |stop_reason| AssistantMessage { stop_reason, ..AssistantMessage::default() };
        let failed = |kind| AssistantMessage {
            error: Some(Failure { kind, status: None, retry_after_ms: None, request_id: None, should_retry: None }),
            ..answer(StopReason::Error)
        };
        let refused = AssistantMessage { raw_stop_reason: Some("refusal".into()), ..answer(StopReason::Error) };
        assert_eq!(ended(answer(StopReason::Stop), false), "EndTurn");
        assert_eq!(ended(answer(StopReason::Length), false), "MaxTokens");
        assert_eq!(ended(answer(StopReason::Aborted), false), "Cancelled");
        assert_eq!(ended(failed(ErrorKind::Limit), false), "MaxTurnRequests");
        assert_eq!(ended(refused, false), "Refusal");
        assert_eq!(ended(failed(ErrorKind::Network), false), "-32603");
        assert_eq!(ended(failed(ErrorKind::Auth), false), "-32000");
        assert_eq!(ended(failed(ErrorKind::Auth), true), "Cancelled");
        assert!(matches!(Outcome::default().end(false), TurnEnd::Answered(_)));
    }
}
