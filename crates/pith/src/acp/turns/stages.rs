//! How a turn goes from stage to stage: it is sent, accepted or refused, settled, taken back, answered.

use std::rc::Rc;

use pith_acp::acp::Error;
use pith_acp::error;
use pith_acp::outcome::Outcome;
use pith_acp::prompt::PromptInput;
use pith_protocol::answers::Disposition;
use pith_protocol::commands::{Abort, ClearQueue, Prompt};
use pith_protocol::{CommandError, ErrorCode, StreamingBehavior};
use tokio::task::JoinError;

use super::{Activity, Event, Turns};
use crate::acp::conversation::{Conversation, of_command};
use crate::acp::outbox::lock;
use crate::acp::slash::SlashCommand;
use crate::acp::turn::{Asker, Owner, Sent, Stage, Turn, Waiting};

impl Turns {
    /// Sends the next input to the session, if nothing runs.
    pub(super) async fn begin_next(&mut self) {
        if self.current.is_some() || self.activity != Activity::Idle {
            return;
        }
        let Some(Waiting { input, asker }) = self.waiting.pop_front() else { return };
        let command = self.conversation.slash_command(input.first_text()).filter(|_| matches!(asker, Asker::Prompt(_)));
        if let Some(command) = command {
            return self.run(command, asker);
        }
        lock(&self.conversation.translator).set_commanded(input.first_text().starts_with('/'));
        let number = self.conversation.seat.tell(self.command_of(&input)).await;
        self.current = Some(Turn::new(asker, Stage::Sent(Sent { number, input })));
    }

    /// Sends an input that joins what runs. If that ends before the input arrives, it begins a turn.
    pub(super) async fn steer(&mut self, input: PromptInput, asker: Asker) {
        let command = Prompt { streaming_behavior: Some(StreamingBehavior::Steer), ..self.command_of(&input) };
        let number = self.conversation.seat.tell(command).await;
        self.steered.push((Sent { number, input }, Owner::new(asker)));
    }

    fn command_of(&self, input: &PromptInput) -> Prompt {
        let is_command = self.conversation.has_command(input.first_text());
        let message = if is_command { input.as_command() } else { input.text.clone() };
        let (images, traceparent) = (input.images.clone(), input.traceparent.clone());
        Prompt { images, traceparent, ..Prompt::from(message.as_str()) }
    }

    /// Carries out a slash command of pith's own in place of a turn of the model.
    fn run(&mut self, command: SlashCommand, asker: Asker) {
        self.current = Some(Turn::new(asker, Stage::Command));
        let conversation = self.conversation.clone();
        let panicked = |failure| error::internal(format!("Internal error: {failure}"));
        let ended = move |result: Result<(), JoinError>| Event::CommandEnded(result.map_err(panicked));
        self.watch(async move { command.run(&conversation).await }, ended);
    }

    pub(super) async fn command_ended(&mut self, result: Result<(), Error>) {
        match result {
            Ok(()) => self.end_turn(&Outcome::default()).await,
            Err(error) => self.fail_turn(&error).await,
        }
    }

    /// Called when the session has taken or refused an input.
    pub(super) async fn prompted(&mut self, number: u64, result: Result<Disposition, CommandError>) {
        if let Some(at) = self.steered.iter().position(|(sent, _)| sent.number == number) {
            let (sent, owner) = self.steered.remove(at);
            return self.steering_placed(sent.input, owner, result).await;
        }
        let Some(mut turn) = self.current.take_if(|turn| turn.is_of(number)) else { return };
        match result {
            Ok(Disposition::Started | Disposition::Queued) => {
                self.activity = Activity::Working;
                if turn.is_cancelled {
                    // The cancel came before there was anything to stop.
                    self.conversation.seat.tell(Abort {}).await;
                } else {
                    let owners = turn.owners.into_iter().filter_map(|owner| owner.into_asker().begun());
                    turn.owners = owners.map(Owner::new).collect();
                }
                self.current = Some(Turn { stage: Stage::Accepted, ..turn });
            }
            Ok(Disposition::Handled) => {
                self.current = Some(turn);
                self.end_turn(&Outcome::default()).await;
            }
            // The session is busy on its own account; the prompt follows.
            Err(refusal) if let Some(activity) = activity_of(&refusal).filter(|_| !turn.is_cancelled) => {
                self.activity = activity;
                self.wait_again(turn);
            }
            Err(refusal) => {
                self.current = Some(turn);
                self.fail_turn(&of_command(refusal)).await;
            }
        }
    }

    /// Puts a prompt that the session could not take now before the others.
    fn wait_again(&mut self, mut turn: Turn) {
        let (Stage::Sent(Sent { input, .. }), Some(owner)) = (turn.stage, turn.owners.pop()) else { return };
        self.waiting.push_front(Waiting { input, asker: owner.into_asker() });
    }

    /// Called when the session has taken or refused an input that was to join what runs.
    async fn steering_placed(&mut self, input: PromptInput, owner: Owner, result: Result<Disposition, CommandError>) {
        match result {
            Ok(Disposition::Started | Disposition::Queued) if owner.is_cancelled() => {
                self.activity = Activity::Working;
                self.conversation.seat.tell(ClearQueue {}).await;
                self.conversation.seat.tell(Abort {}).await;
                self.joined.push(owner);
            }
            Ok(placed @ (Disposition::Started | Disposition::Queued)) => {
                self.activity = Activity::Working;
                let asker = owner.into_asker();
                let waits = if placed == Disposition::Started { asker.begun() } else { asker.joined() };
                self.joined.extend(waits.map(Owner::new));
            }
            Ok(Disposition::Handled) => owner.ended(&Outcome::default()),
            Err(refusal) if let Some(activity) = activity_of(&refusal).filter(|_| !owner.is_cancelled()) => {
                self.activity = activity;
                self.waiting.push_back(Waiting { input, asker: owner.into_asker() });
            }
            Err(refusal) => owner.failed(&of_command(refusal)),
        }
    }

    /// Called when all work of the session has ended.
    pub(super) async fn settled(&mut self, outcome: Box<Outcome>) {
        self.activity = Activity::Idle;
        let joined = std::mem::take(&mut self.joined);
        match &mut self.current {
            Some(turn) if turn.is_accepted() => {
                turn.owners.extend(joined);
                if outcome.is_refusal() && !turn.is_cancelled {
                    turn.stage = Stage::TakenBack(outcome.clone());
                    return self.watch(take_back(self.conversation.clone(), outcome), |_| Event::TakenBack);
                }
                self.end_turn(&outcome).await;
            }
            Some(_) | None => {
                joined.into_iter().for_each(|owner| owner.ended(&outcome));
                self.begin_next().await;
            }
        }
    }

    /// Called when the conversation has moved back before the prompt of the current turn, which was refused.
    pub(super) async fn taken_back(&mut self) {
        if let Some(Turn { stage: Stage::TakenBack(outcome), .. }) = &self.current {
            let outcome = outcome.clone();
            self.end_turn(&outcome).await;
        }
    }

    async fn end_turn(&mut self, outcome: &Outcome) {
        let owners = self.current.take().into_iter().flat_map(|turn| turn.owners);
        owners.for_each(|owner| owner.ended(outcome));
        self.begin_next().await;
    }

    async fn fail_turn(&mut self, error: &Error) {
        let owners = self.current.take().into_iter().flat_map(|turn| turn.owners);
        owners.for_each(|owner| owner.failed(error));
        self.begin_next().await;
    }
}

/// Moves the conversation back before a prompt that the provider refused: the protocol says that it is no longer part of
/// it.
async fn take_back(conversation: Rc<Conversation>, outcome: Box<Outcome>) {
    let Some(entry) = outcome.prompt_entry() else { return };
    if let Err(error) = conversation.go_before(entry).await {
        conversation.channel.warn(&format!("a refused prompt stays in the conversation: {error}"));
    }
}

/// What the session does that refuses an input for now; `None` if it is refused for good.
fn activity_of(refusal: &CommandError) -> Option<Activity> {
    match refusal.code {
        ErrorCode::Busy => Some(Activity::Working),
        ErrorCode::Compacting => Some(Activity::Summarising),
        _ => None,
    }
}
