//! One answer of the model, from request to final message.

use std::sync::Arc;
use std::time::Duration;

use pith_protocol::{AssistantEvent, AssistantMessage, Message, StopReason};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::link::{Link, RunEvent, Turn};
use crate::now_ms;

/// How long a provider may take to notice a cancelled token before it is left behind.
const ABORT_GRACE: Duration = Duration::from_secs(5);

/// Streams one answer. Whatever the provider does, exactly one message comes
/// out, announced by one start and one end.
pub(crate) async fn answer(turn: &Turn, link: &mut impl Link, cancel: &CancellationToken) -> Arc<Message> {
    let mut is_open = false;
    let message = match &turn.call {
        Err(why) => failed(&turn.blank, why),
        Ok(_) if cancel.is_cancelled() => aborted(&turn.blank),
        Ok((client, call)) => {
            let mut events = client.stream(call.clone(), cancel.clone());
            loop {
                match next(&mut events, cancel).await {
                    Next::Event(AssistantEvent::Start(start)) => {
                        is_open = true;
                        link.emit(RunEvent::AnswerStart(start)).await;
                    }
                    Next::Event(AssistantEvent::End(message)) => break Arc::new(Message::Assistant(*message)),
                    Next::Event(event) => link.emit(RunEvent::Stream(event)).await,
                    Next::Closed => {
                        break failed(&turn.blank, "The model stream ended without a result (internal error)");
                    }
                    Next::Abandoned => break aborted(&turn.blank),
                }
            }
        }
    };
    if !is_open {
        link.emit(RunEvent::MessageStart(message.clone())).await;
    }
    link.conclude(message).await
}

#[allow(clippy::large_enum_variant, reason = "lives for one step of a loop")]
enum Next {
    Event(AssistantEvent),
    Closed,
    Abandoned,
}

async fn next(events: &mut mpsc::Receiver<AssistantEvent>, cancel: &CancellationToken) -> Next {
    let abandoned = async {
        cancel.cancelled().await;
        tokio::time::sleep(ABORT_GRACE).await;
    };
    tokio::select! {
        biased;
        event = events.recv() => event.map_or(Next::Closed, Next::Event),
        () = abandoned => Next::Abandoned,
    }
}

/// An empty message saying that the run was stopped.
pub(crate) fn aborted(blank: &AssistantMessage) -> Arc<Message> {
    ended(blank, StopReason::Aborted, "Request was aborted.")
}

/// An empty message saying what went wrong.
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
