//! The run's side of the channel to the session. Extensions are called here, in the run's task, so that the session
//! never waits for them.

use std::sync::Arc;

use pith_agent::link::Limits;
use pith_agent::{Link, Opening, Queue, RunEvent, Toolset, Turn};
use pith_ext::{AgentStart, Boundary};
use pith_protocol::{AssistantEvent, AssistantMessage, Message, StopReason};
use pith_store::EntryId;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::extensions::{Observer, Prompted};
use crate::limits::limited;
use crate::outbox::Room;
use crate::rules::RuleGuard;
use crate::run::masking::Masking;
use crate::tools::images;

/// What a run sends to the session.
#[allow(clippy::large_enum_variant, reason = "the large one is the common one: a delta passes without a box")]
pub(crate) enum FromRun {
    /// An event. A `MessageEnd` also asks for the id of its entry, once it is stored.
    Event(RunEvent, Option<oneshot::Sender<EntryId>>),
    Has(Queue, oneshot::Sender<bool>),
    Take(Queue, oneshot::Sender<Vec<Arc<Message>>>),
    Turn(oneshot::Sender<Turn>),
    IsInterrupted(oneshot::Sender<bool>),
    /// A turn that is not the first is about to begin; it waits for the answer.
    BeforeTurn(oneshot::Sender<()>),
    /// The system prompt as extensions changed it.
    Prompted(AgentStart, oneshot::Sender<()>),
    /// Asks which limit has stopped the answer, if one has.
    StoppedBy(oneshot::Sender<Option<String>>),
    /// The answer breaks these rules and was stopped.
    RulesBroken(Vec<usize>),
    /// What extensions propose at the end of a turn; the answer says whether the run continues for it.
    Boundary(Boundary, oneshot::Sender<bool>),
}

/// The run's connection to the session.
pub(crate) struct SessionLink {
    /// Closed only when the session has ended.
    pub to_session: mpsc::Sender<FromRun>,
    pub room: Room,
    pub cancel: CancellationToken,
    pub images: pith_tools::image::Rules,
    pub n_turns: u32,
    /// The extensions, if there are any.
    pub observer: Option<Observer>,
    /// The stream rules, if there are any.
    pub rules: Option<RuleGuard>,
    pub masking: Masking,
}

impl SessionLink {
    /// Prepares the first messages of the run.
    pub async fn open(&mut self, opening: Opening, prompted: Option<Prompted>) -> Opening {
        let Opening::Prompts(mut prompts) = opening else { return opening };
        if let (Some(observer), Some(prompted)) = (&mut self.observer, prompted)
            && let Some(start) = observer.before_agent_start(prompted).await
        {
            prompts.extend(start.messages.iter().map(crate::extensions::custom_message));
            if start.system_prompt.is_some() || start.system_prompt_options.is_some() {
                self.ask(|answer| FromRun::Prompted(start, answer)).await;
            }
        }
        Opening::Prompts(images::normalise(prompts, self.images).await)
    }

    async fn ask<T>(&mut self, question: impl FnOnce(oneshot::Sender<T>) -> FromRun) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.to_session.send(question(answer)).await.ok()?;
        answered.await.ok()
    }

    /// Forwards a piece of an answer, and stops the answer if it breaks a rule. If the host has aborted already, rules
    /// are not checked.
    async fn stream(&mut self, event: AssistantEvent) {
        let broken = match &mut self.rules {
            Some(rules) if !self.cancel.is_cancelled() => rules.take(&event).to_vec(),
            _ => Vec::new(),
        };
        self.tell(RunEvent::Stream(event)).await;
        if broken.is_empty() {
            return;
        }
        let _ = self.to_session.send(FromRun::RulesBroken(broken)).await;
        self.cancel.cancel();
        let ends = self.rules.as_mut().map(RuleGuard::close).unwrap_or_default();
        for end in ends {
            self.tell(RunEvent::Stream(end)).await;
        }
    }

    /// Lets an answer that was cut off say which limit did it.
    async fn tell_limit(&mut self, message: Arc<Message>) -> Arc<Message> {
        let cut = message.as_assistant().filter(|answer| answer.stop_reason == StopReason::Aborted);
        let Some(answer) = cut else { return message };
        match self.ask(FromRun::StoppedBy).await.flatten() {
            Some(why) => limited(answer, why),
            None => message,
        }
    }

    async fn tell(&mut self, event: RunEvent) {
        let _ = self.to_session.send(FromRun::Event(event, None)).await;
    }
}

impl Link for SessionLink {
    async fn emit(&mut self, event: RunEvent) {
        let event = self.masking.event(event);
        match &event {
            RunEvent::TurnStart => {
                if self.n_turns > 0 {
                    self.ask(FromRun::BeforeTurn).await;
                }
                self.n_turns += 1;
            }
            RunEvent::AnswerStart(_) => {
                if let Some(rules) = &mut self.rules {
                    rules.begin_answer();
                }
            }
            // The rest of an answer that a rule stopped is not shown.
            RunEvent::Stream(_) if self.rules.as_ref().is_some_and(RuleGuard::has_stopped) => return,
            RunEvent::Stream(_) => {
                // A host that does not read suspends the run; an abort still gets through.
                tokio::select! {
                    () = self.room.wait() => {}
                    () = self.cancel.cancelled() => {}
                }
            }
            _ => {}
        }
        if let Some(observer) = &mut self.observer {
            observer.see(&event).await;
        }
        match event {
            RunEvent::Stream(event) => self.stream(event).await,
            event => self.tell(event).await,
        }
    }

    async fn conclude(&mut self, message: Arc<Message>) -> Arc<Message> {
        let message = self.masking.message(message);
        let message = self.tell_limit(message).await;
        let message = match &self.rules {
            Some(rules) => rules.conclude(message),
            None => message,
        };
        let message = match &mut self.observer {
            // Extensions may put something into it.
            Some(observer) => self.masking.message(observer.message_end(message).await),
            None => message,
        };
        let entry = self.ask(|written| FromRun::Event(RunEvent::MessageEnd(message.clone()), Some(written))).await;
        if let (Some(observer), Some(entry)) = (&mut self.observer, entry) {
            observer.note_entry(&message, entry);
        }
        message
    }

    async fn end_turn(&mut self, message: Arc<Message>, results: Vec<Arc<Message>>) -> bool {
        let proposal = match &mut self.observer {
            Some(observer) => observer.turn_end(&message, &results).await,
            None => None,
        };
        let is_continued = match proposal {
            Some(boundary) => self.ask(|answer| FromRun::Boundary(boundary, answer)).await.unwrap_or(false),
            None => false,
        };
        self.tell(RunEvent::TurnEnd { message, results }).await;
        is_continued
    }

    async fn has(&mut self, queue: Queue) -> bool {
        self.ask(|answer| FromRun::Has(queue, answer)).await.unwrap_or(false)
    }

    async fn take(&mut self, queue: Queue) -> Vec<Arc<Message>> {
        let taken = self.ask(|answer| FromRun::Take(queue, answer)).await.unwrap_or_default();
        images::normalise(taken, self.images).await
    }

    async fn turn(&mut self) -> Turn {
        let mut turn = self.ask(FromRun::Turn).await.unwrap_or_else(|| Turn {
            blank: AssistantMessage::default(),
            call: Err("The session has ended".to_owned()),
            tools: Arc::new(Toolset::new(Vec::new())),
            hook: None,
            limits: Limits::default(),
            trace: None,
        });
        if let (Some(observer), Ok((_, call))) = (&mut self.observer, &mut turn.call) {
            observer.context(call).await;
        }
        turn
    }

    async fn is_interrupted(&mut self) -> bool {
        self.ask(FromRun::IsInterrupted).await.unwrap_or(false)
    }
}
