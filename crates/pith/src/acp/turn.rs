//! A turn: what the editor has asked for, how far it has come, and what whoever asked is told.

use std::time::{Duration, Instant};

use pith_acp::acp::Error;
use pith_acp::outcome::{Outcome, TurnEnd};
use pith_acp::prompt::PromptInput;
use serde_json::json;

use super::responder::Responder;

/// How long a cancelled prompt may stay without an answer while an extension holds it: less than the second that editors
/// are promised.
pub const CANCEL_LIMIT: Duration = Duration::from_millis(900);

/// What the editor wants of the turns of a session.
pub enum TurnRequest {
    Prompt(PromptInput, Responder),
    /// Joins the turn that runs, and is answered with it; a prompt of its own if none does.
    Steer(PromptInput, Responder),
    /// Joins the turn that runs, and is answered at once; without one begins a turn that nobody owns.
    Inject(PromptInput, Responder),
    /// The same, but without a turn nothing begins.
    InjectIfRunning(PromptInput, Responder),
    Cancel,
    /// Some prompt was withdrawn with `$/cancel_request`.
    Withdrawn,
}

impl TurnRequest {
    /// Whoever waits for the answer.
    pub fn into_responder(self) -> Option<Responder> {
        match self {
            TurnRequest::Prompt(_, responder)
            | TurnRequest::Steer(_, responder)
            | TurnRequest::Inject(_, responder)
            | TurnRequest::InjectIfRunning(_, responder) => Some(responder),
            TurnRequest::Cancel | TurnRequest::Withdrawn => None,
        }
    }
}

/// Who has sent an input, and waits for an answer.
pub enum Asker {
    /// Answered when the turn is over.
    Prompt(Responder),
    /// Answered as soon as it is known what became of the input.
    Steering(Responder),
}

impl Asker {
    /// Whether the editor has withdrawn the request.
    pub fn is_withdrawn(&self) -> bool {
        let (Asker::Prompt(responder) | Asker::Steering(responder)) = self;
        responder.cancel.is_cancelled()
    }

    /// Called when the input has begun a turn. Returns whoever waits for the end of it.
    pub fn begun(self) -> Option<Asker> {
        self.placed("startedNewTurn")
    }

    /// Called when the input has joined what runs. Returns whoever waits for the end of that.
    pub fn joined(self) -> Option<Asker> {
        self.placed("injected")
    }

    fn placed(self, outcome: &str) -> Option<Asker> {
        match self {
            Asker::Prompt(_) => Some(self),
            Asker::Steering(responder) => {
                responder.succeed(&json!({ "outcome": outcome }));
                None
            }
        }
    }

    /// Called when the editor has cancelled the input before its turn.
    pub fn cancelled(self) {
        match self {
            Asker::Prompt(responder) => answer(responder, &Outcome::default(), true),
            Asker::Steering(responder) => not_running(responder),
        }
    }

    fn failed(self, error: &Error) {
        let (Asker::Prompt(responder) | Asker::Steering(responder)) = self;
        responder.fail(error);
    }
}

/// Answers a steering that no turn has taken.
pub fn not_running(responder: Responder) {
    responder.succeed(&json!({"outcome": "promptRequired", "reason": "noRunningTurn"}));
}

fn answer(responder: Responder, outcome: &Outcome, is_cancelled: bool) {
    match outcome.end(is_cancelled) {
        TurnEnd::Answered(response) => responder.succeed(&response),
        TurnEnd::Failed(error) => responder.fail(&error),
    }
}

/// An input that waits for its turn.
pub struct Waiting {
    pub input: PromptInput,
    pub asker: Asker,
}

/// Whoever is answered with a turn, and when the editor has cancelled it.
pub struct Owner {
    asker: Asker,
    cancelled: Option<Instant>,
}

impl Owner {
    pub fn new(asker: Asker) -> Self {
        Owner { asker, cancelled: None }
    }

    pub fn is_withdrawn(&self) -> bool {
        self.asker.is_withdrawn()
    }

    pub fn cancel(&mut self) {
        self.cancelled.get_or_insert_with(Instant::now);
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_some()
    }

    /// Whether the answer to its cancel cannot wait any longer.
    pub fn is_overdue(&self) -> bool {
        self.cancelled.is_some_and(|since| since.elapsed() >= CANCEL_LIMIT)
    }

    /// Called when the turn is over, or when an extension has taken the input.
    pub fn ended(self, outcome: &Outcome) {
        let is_cancelled = self.is_cancelled();
        match self.asker {
            Asker::Prompt(responder) => answer(responder, outcome, is_cancelled),
            Asker::Steering(responder) if is_cancelled => not_running(responder),
            steering @ Asker::Steering(_) => _ = steering.joined(),
        }
    }

    /// Called when the input was refused, or its command has failed.
    pub fn failed(self, error: &Error) {
        if self.is_cancelled() { self.asker.cancelled() } else { self.asker.failed(error) }
    }

    pub fn into_asker(self) -> Asker {
        self.asker
    }
}

/// An input that was sent to the session, which has not said yet whether it takes it.
pub struct Sent {
    /// The number of the command.
    pub number: u64,
    /// Kept because the session may be busy with something of its own.
    pub input: PromptInput,
}

/// The turn of an input that the editor has sent.
pub struct Turn {
    /// Those who are answered with it. Nobody, if it was steered or its cancel has been answered already.
    pub owners: Vec<Owner>,
    pub is_cancelled: bool,
    pub stage: Stage,
}

/// How far a turn has come.
pub enum Stage {
    Sent(Sent),
    /// The session works on it.
    Accepted,
    /// It is a slash command of pith's own, which runs.
    Command,
    /// The provider has refused it, and the conversation moves back before it.
    TakenBack(Box<Outcome>),
}

impl Turn {
    pub fn new(asker: Asker, stage: Stage) -> Self {
        Turn { owners: vec![Owner::new(asker)], is_cancelled: false, stage }
    }

    /// Whether an input can join it: it is, or is about to be, what the session works on.
    pub fn takes_steering(&self) -> bool {
        match self.stage {
            Stage::Sent(_) | Stage::Accepted => true,
            Stage::Command | Stage::TakenBack(_) => false,
        }
    }

    pub fn is_accepted(&self) -> bool {
        matches!(self.stage, Stage::Accepted)
    }

    /// Whether it is the turn of the prompt that was sent under this number.
    pub fn is_of(&self, number: u64) -> bool {
        matches!(&self.stage, Stage::Sent(sent) if sent.number == number)
    }

    pub fn cancel(&mut self) {
        self.is_cancelled = true;
        self.owners.iter_mut().for_each(Owner::cancel);
    }
}
