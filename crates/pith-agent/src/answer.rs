//! One answer of the model, from request to final message.

use std::sync::Arc;
use std::time::Duration;

use pith_protocol::{AssistantEvent, AssistantMessage, Message, StopReason};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{debug, debug_span, trace};

use crate::link::{Link, RunEvent, Turn};
use crate::now_ms;
use crate::trace::WatchedChat;

/// How long a provider may take to notice a cancelled token before its answer is abandoned.
const ABORT_GRACE: Duration = Duration::from_secs(5);

/// Streams one answer. Whatever the provider does, exactly one message results, announced by one start and one end.
pub(crate) async fn answer(turn: &Turn, link: &mut impl Link, cancel: &CancellationToken) -> Arc<Message> {
    let mut is_open = false;
    let message = match &turn.call {
        Err(why) => failed(&turn.blank, why),
        Ok(_) if cancel.is_cancelled() => aborted(&turn.blank),
        Ok((client, call)) => {
            let span =
                debug_span!(target: "pith::model", "model", provider = %call.model.provider, id = %call.model.id);
            let mut watched = WatchedChat::begin(turn.trace.as_ref().map(|trace| &*trace.work as _), call);
            let mut events = span.in_scope(|| client.stream(call.clone(), cancel.clone()));
            let message = loop {
                let step = next(&mut events, cancel).await;
                if let StreamStep::Event(event) = &step {
                    watched.take(event);
                }
                match step {
                    StreamStep::Event(AssistantEvent::Start(start)) => {
                        is_open = true;
                        link.emit(RunEvent::AnswerStart(start)).await;
                    }
                    StreamStep::Event(AssistantEvent::End(message)) => break Arc::new(Message::Assistant(*message)),
                    StreamStep::Event(event) => {
                        trace!(target: "pith::model", parent: &span, kind = kind(&event), "event");
                        link.emit(RunEvent::Stream(event)).await;
                    }
                    StreamStep::Closed => {
                        break failed(&turn.blank, "The model stream ended without a result (internal error)");
                    }
                    StreamStep::Abandoned => break aborted(&turn.blank),
                }
            };
            span.in_scope(|| log_end(&message));
            message.as_assistant().into_iter().for_each(|answer| watched.end(answer));
            message
        }
    };
    if !is_open {
        link.emit(RunEvent::MessageStart(message.clone())).await;
    }
    link.conclude(message).await
}

fn log_end(message: &Message) {
    let Some(answer) = message.as_assistant() else { return };
    let usage = &answer.usage;
    match &answer.error_message {
        // What the host sees too, so without keys.
        Some(error) => debug!(target: "pith::model", stop_reason = ?answer.stop_reason, ?error, "failed"),
        None => {
            let (input, output, cached) = (usage.input, usage.output, usage.cache_read);
            debug!(target: "pith::model", stop_reason = ?answer.stop_reason, input, output, cached, "answered");
        }
    }
}

fn kind(event: &AssistantEvent) -> &'static str {
    match event {
        AssistantEvent::Start(_) => "start",
        AssistantEvent::Meta { .. } => "meta",
        AssistantEvent::TextStart { .. } => "text_start",
        AssistantEvent::TextDelta { .. } => "text_delta",
        AssistantEvent::TextEnd { .. } => "text_end",
        AssistantEvent::ThinkingStart { .. } => "thinking_start",
        AssistantEvent::ThinkingDelta { .. } => "thinking_delta",
        AssistantEvent::ThinkingEnd { .. } => "thinking_end",
        AssistantEvent::ToolCallStart { .. } => "toolcall_start",
        AssistantEvent::ToolCallDelta { .. } => "toolcall_delta",
        AssistantEvent::ToolCallEnd { .. } => "toolcall_end",
        AssistantEvent::End(_) => "end",
    }
}

#[allow(clippy::large_enum_variant, reason = "lives for one step of a loop")]
enum StreamStep {
    Event(AssistantEvent),
    Closed,
    Abandoned,
}

async fn next(events: &mut mpsc::Receiver<AssistantEvent>, cancel: &CancellationToken) -> StreamStep {
    let abandoned = async {
        cancel.cancelled().await;
        tokio::time::sleep(ABORT_GRACE).await;
    };
    tokio::select! {
        biased;
        event = events.recv() => event.map_or(StreamStep::Closed, StreamStep::Event),
        () = abandoned => StreamStep::Abandoned,
    }
}

/// An empty message that says the run was aborted.
pub(crate) fn aborted(blank: &AssistantMessage) -> Arc<Message> {
    ended(blank, StopReason::Aborted, "Request was aborted.")
}

/// An empty message that says what went wrong.
pub(crate) fn failed(blank: &AssistantMessage, why: &str) -> Arc<Message> {
    ended(blank, StopReason::Error, why)
}

fn ended(blank: &AssistantMessage, stop_reason: StopReason, why: &str) -> Arc<Message> {
    Arc::new(Message::Assistant(AssistantMessage {
        stop_reason,
        error_message: Some(why.to_owned()),
        timestamp: now_ms(),
        ..blank.clone()
    }))
}
