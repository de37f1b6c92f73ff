//! Sends the requests that write summaries: one at a time, with retries, in pieces if the text does not fit, stopped at
//! once when cancelled.

use std::sync::Arc;
use std::time::Duration;

use pith_agent::trace::{ChatParent, WatchedChat};
use pith_agent::{CallControl, ModelClient, now_ms};
use pith_ai::{is_overflow, safety_tokens};
use pith_protocol::{
    AssistantEvent, AssistantMessage, Block, CacheRetention, LlmCall, Message, Model, StopReason, ThinkingLevel, Usage,
    UserMessage,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::WindowBudget;
use super::pieces::pieces;
use super::prompts;
use super::shorten::shorten;
use crate::run::{Retry, RetryDecision, RetryPolicy};

/// Writes summaries with one model.
pub(crate) struct Summariser {
    pub client: Arc<dyn ModelClient>,
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    /// A piece leaves the reserve of this window free for the summary.
    pub budget: WindowBudget,
    pub retry: RetryPolicy,
    /// A routing id of its own, not the session's.
    pub session_id: Arc<str>,
    /// Progress for the session. Closed only when the session has ended.
    pub progress: mpsc::UnboundedSender<SummaryProgress>,
    pub cancel: CancellationToken,
    /// Holds requests while the session is paused.
    pub control: CallControl,
    pub usage: Usage,
    /// What its requests are part of, if somebody watches.
    pub trace: Option<Arc<dyn ChatParent>>,
}

/// Progress of a summary, for the session.
pub(crate) enum SummaryProgress {
    RetryScheduled { attempt: u32, delay: Duration, error: String },
    AttemptStart,
    RetryFinished,
}

/// Why there is no summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SummaryFailure {
    Cancelled,
    Failed(String),
}

/// How a text is summarised piece by piece.
pub(crate) struct Instructions {
    /// For the first piece.
    pub first: String,
    /// For pieces that continue an earlier summary.
    pub further: String,
}

/// Why one request gave no summary.
enum Refusal {
    TooLong(String),
    Final(SummaryFailure),
}

/// Pieces are not made smaller than this many bytes.
const LEAST_PIECE: usize = 2000;

impl Summariser {
    /// Summarises paragraphs, continuing an earlier summary if there is one.
    pub async fn fold(
        &mut self,
        paragraphs: Vec<String>,
        previous: Option<String>,
        instructions: &Instructions,
    ) -> Result<String, SummaryFailure> {
        let mut limit = self.piece_limit();
        // An earlier summary gets a share of the room, but not all of it.
        let mut summary = previous.map(|text| shorten(&text, limit as u64 / 8, &|_| None));
        let room = |summary: &Option<String>, limit: usize| {
            limit.saturating_sub(summary.as_ref().map_or(0, String::len)).max(LEAST_PIECE.min(limit))
        };
        let mut waiting = pieces(paragraphs, room(&summary, limit));
        waiting.reverse();
        while let Some(piece) = waiting.pop() {
            let wording = if summary.is_some() { &instructions.further } else { &instructions.first };
            let text = prompts::request(&piece, summary.as_deref(), wording);
            match self.ask(text).await {
                Ok(answer) => summary = Some(answer),
                Err(Refusal::Final(failure)) => return Err(failure),
                Err(Refusal::TooLong(why)) => {
                    // The size was only estimated: halve the pieces until the model accepts them.
                    limit /= 2;
                    if piece.len() <= LEAST_PIECE {
                        return Err(SummaryFailure::Failed(why));
                    }
                    let half = room(&summary, limit).min(piece.len() / 2 + 1);
                    waiting.extend(pieces(vec![piece], half).into_iter().rev());
                }
            }
        }
        Ok(summary.unwrap_or_default())
    }

    /// How many bytes of text fit one request besides everything else in it, the answer among it.
    fn piece_limit(&self) -> usize {
        let window = self.budget.window;
        if window == 0 {
            return usize::MAX;
        }
        const FIXED_TOKENS: u64 = 700;
        let free = window.saturating_sub(self.budget.reserve + FIXED_TOKENS + safety_tokens(window));
        // Three bytes a token instead of four: transcripts are denser than prose.
        usize::try_from(free * 3).unwrap_or(usize::MAX).max(LEAST_PIECE)
    }

    /// Sends one request, with retries as the settings say.
    async fn ask(&mut self, text: String) -> Result<String, Refusal> {
        let mut retry = Retry::default();
        loop {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {}
                () = self.control.until_resumed() => {}
            }
            let answer = self.answer(&text).await;
            if self.cancel.is_cancelled() || answer.stop_reason == StopReason::Aborted {
                if retry.end().is_some() {
                    self.tell(SummaryProgress::RetryFinished);
                }
                return Err(Refusal::Final(SummaryFailure::Cancelled));
            }
            self.usage.add(&answer.usage);
            match retry.after(Some(&answer), &self.retry) {
                RetryDecision::Wait { attempt, delay } => {
                    let error = answer.error_message.unwrap_or_default();
                    self.tell(SummaryProgress::RetryScheduled { attempt, delay, error });
                    tokio::select! {
                        () = tokio::time::sleep(delay) => {}
                        () = self.cancel.cancelled() => {
                            self.tell(SummaryProgress::RetryFinished);
                            return Err(Refusal::Final(SummaryFailure::Cancelled));
                        }
                    }
                    self.tell(SummaryProgress::AttemptStart);
                    continue;
                }
                RetryDecision::GiveUp { .. } => self.tell(SummaryProgress::RetryFinished),
                RetryDecision::Settle => {
                    if retry.end().is_some() {
                        self.tell(SummaryProgress::RetryFinished);
                    }
                }
            }
            return self.read_answer(&answer);
        }
    }

    fn read_answer(&self, answer: &AssistantMessage) -> Result<String, Refusal> {
        let failed = |why: &str| Err(Refusal::Final(SummaryFailure::Failed(why.to_owned())));
        let text: String = answer.content.iter().filter_map(Block::as_text).collect();
        match answer.stop_reason {
            StopReason::Error => {
                let why = answer.error_message.clone().unwrap_or_else(|| "the model gave no answer".to_owned());
                if is_overflow(answer, self.budget.window) {
                    return Err(Refusal::TooLong(why));
                }
                Err(Refusal::Final(SummaryFailure::Failed(why)))
            }
            StopReason::Length => failed("the summary was cut off by the output limit"),
            _ if answer.tool_calls().next().is_some() => failed("the model called a tool instead of writing a summary"),
            _ if text.trim().is_empty() => failed("the model wrote an empty summary"),
            _ => Ok(text.trim().to_owned()),
        }
    }

    async fn answer(&self, text: &str) -> AssistantMessage {
        let call = LlmCall {
            model: self.model.clone(),
            system_prompt: prompts::SYSTEM.into(),
            messages: vec![Arc::new(Message::User(UserMessage::new(text.to_owned(), Vec::new(), now_ms())))],
            tools: Arc::new([]),
            thinking: self.thinking,
            search_tool: None,
            // Only the model limits it: what it thinks counts too, and a summary that was cut off is none.
            max_tokens: None,
            session_id: Some(self.session_id.clone()),
            cache: CacheRetention::None,
            block_images: true,
            hooks: None,
        };
        let mut watched = WatchedChat::begin(self.trace.as_deref(), &call);
        let mut events = self.client.stream(call, self.cancel.clone());
        let mut answer = None;
        while let Some(event) = events.recv().await {
            watched.take(&event);
            if let AssistantEvent::End(message) = event {
                answer = Some(*message);
                break;
            }
        }
        let answer = answer.unwrap_or_else(|| AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some("The model stream ended without a result (internal error)".to_owned()),
            ..AssistantMessage::default()
        });
        watched.end(&answer);
        answer
    }

    fn tell(&self, progress: SummaryProgress) {
        // The receiver is gone only when the process is ending.
        let _ = self.progress.send(progress);
    }
}
