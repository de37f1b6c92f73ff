//! The agent loop.

use std::sync::Arc;

use pith_protocol::Message;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::answer::{aborted, answer};
use crate::batch::{Batch, Repeats};
use crate::link::{Link, Queue, RunEvent};

/// What a turn begins with.
#[derive(Clone, Debug)]
pub enum Opening {
    /// New messages, then steering messages that were queued while idle.
    Prompts(Vec<Arc<Message>>),
    /// Queued steering messages, if any.
    Steering,
    FollowUps,
    /// No new messages: the history itself asks for an answer.
    Continue,
}

/// Runs until the model has nothing left to do, something fails, or `cancel` fires.
///
/// Every start it reports is followed by the matching end, on all paths.
pub async fn run(mut opening: Opening, link: &mut impl Link, cancel: &CancellationToken) {
    link.emit(RunEvent::AgentStart).await;
    let mut messages = Vec::new();
    let mut repeats = Repeats::default();
    loop {
        // A turn is one model answer and the tool calls it asked for.
        debug!(target: "pith::run", "turn");
        link.emit(RunEvent::TurnStart).await;
        open_turn(opening, link, cancel, &mut messages).await;
        let turn = link.turn().await;
        let message = answer(&turn, link, cancel).await;
        messages.push(message.clone());
        let answer = message.as_assistant().expect("answers are assistant messages");
        if answer.failed() {
            let results = Batch::refuse(&turn, answer, link).await;
            messages.extend(results.iter().cloned());
            link.end_turn(message, results).await;
            break;
        }
        let batch = Batch::run(&turn, answer, link, cancel, &mut repeats).await;
        messages.extend(batch.results.iter().cloned());
        let has_unread = batch.has_unread();
        let is_continued = link.end_turn(message, batch.results).await;
        if cancel.is_cancelled() {
            if has_unread {
                messages.push(close_history(&turn.blank, link).await);
            }
            break;
        }
        opening = if has_unread || link.has(Queue::Steering).await {
            Opening::Steering
        } else if link.has(Queue::FollowUp).await {
            // The model would stop here; a queued follow-up continues the run.
            Opening::FollowUps
        } else if is_continued {
            Opening::Continue
        } else {
            break;
        };
    }
    link.emit(RunEvent::AgentEnd { messages }).await;
}

/// Adds the messages a turn opens with. An aborted run leaves the queues as they are.
async fn open_turn(
    opening: Opening,
    link: &mut impl Link,
    cancel: &CancellationToken,
    messages: &mut Vec<Arc<Message>>,
) {
    let (prompts, queue) = match opening {
        Opening::Prompts(prompts) => (prompts, Queue::Steering),
        Opening::Steering | Opening::Continue => (Vec::new(), Queue::Steering),
        Opening::FollowUps => (Vec::new(), Queue::FollowUp),
    };
    add_messages(prompts, link, messages).await;
    if !cancel.is_cancelled() {
        let queued = link.take(queue).await;
        add_messages(queued, link, messages).await;
    }
}

async fn add_messages(new: Vec<Arc<Message>>, link: &mut impl Link, messages: &mut Vec<Arc<Message>>) {
    for message in new {
        link.emit(RunEvent::MessageStart(message.clone())).await;
        messages.push(link.conclude(message).await);
    }
}

/// Closes the history after an abort during tool calls: it must not end in results without an answer, so an empty
/// aborted answer follows, without calling the model.
async fn close_history(blank: &pith_protocol::AssistantMessage, link: &mut impl Link) -> Arc<Message> {
    link.emit(RunEvent::TurnStart).await;
    let message = aborted(blank);
    link.emit(RunEvent::MessageStart(message.clone())).await;
    let message = link.conclude(message).await;
    link.end_turn(message.clone(), Vec::new()).await;
    message
}
