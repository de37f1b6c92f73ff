//! The prompts of one session: one at a time, the others wait, all are answered.

use std::collections::VecDeque;
use std::rc::Rc;

use pith_acp::acp::Error;
use pith_acp::error;
use pith_acp::outcome::{Outcome, TurnEnd};
use pith_acp::prompt::PromptInput;
use pith_acp::updates::Notable;
use pith_protocol::answers::Disposition;
use pith_protocol::commands::{Abort, AbortBash, ClearQueue, Prompt, Steer};
use pith_protocol::{CommandError, ErrorCode};
use tokio::sync::mpsc;

use super::conversation::{Conversation, of_command};
use super::dialogs::Dialogs;
use super::host_tools::HostTools;
use super::outbox::{Notice, lock};
use super::responder::Responder;
use super::slash::SlashCommand;

/// How many prompts may wait behind the one that runs.
const MAX_WAITING: usize = 32;

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

/// The turns of a session.
struct Turns {
    conversation: Rc<Conversation>,
    dialogs: Dialogs,
    host_tools: HostTools,
    /// Told when a slash command of pith's own has ended.
    commands: mpsc::UnboundedSender<Result<(), Error>>,
    current: Option<Turn>,
    waiting: VecDeque<(PromptInput, Responder)>,
    /// The session works, for a prompt of the editor or on its own account.
    is_working: bool,
}

/// The turn of a prompt.
struct Turn {
    responder: Responder,
    /// Kept until the session accepts it: it may be busy with something of its own.
    input: PromptInput,
    /// Answered together with the turn.
    steered: Vec<Responder>,
    is_accepted: bool,
    is_cancelled: bool,
}

/// What can happen to the turns.
enum Event {
    Request(TurnRequest),
    Notice(Notice),
    /// A slash command of pith's own has ended.
    CommandEnded(Result<(), Error>),
}

/// Serves the prompts of a session until it ends, then answers those that are left.
pub async fn serve(
    conversation: Rc<Conversation>,
    dialogs: Dialogs,
    host_tools: HostTools,
    mut requests: mpsc::UnboundedReceiver<TurnRequest>,
    mut notices: mpsc::UnboundedReceiver<Notice>,
) {
    let (commands, mut ended) = mpsc::unbounded_channel();
    let mut turns = Turns {
        conversation,
        dialogs,
        host_tools,
        commands,
        current: None,
        waiting: VecDeque::new(),
        is_working: false,
    };
    loop {
        let event = tokio::select! {
            biased;
            notice = notices.recv() => match notice {
                Some(notice) => Event::Notice(notice),
                None => break,
            },
            Some(result) = ended.recv() => Event::CommandEnded(result),
            Some(request) = requests.recv() => Event::Request(request),
        };
        match event {
            Event::Notice(notice) => turns.notice(notice).await,
            Event::Request(request) => turns.request(request).await,
            Event::CommandEnded(result) => turns.command_ended(result).await,
        }
    }
    turns.close();
    // Requests that were on their way when the session ended.
    requests.close();
    while let Some(request) = requests.recv().await {
        if let Some(responder) = request.into_responder() {
            responder.fail(&error::no_session(&turns.conversation.seat.id));
        }
    }
}

impl Turns {
    async fn request(&mut self, request: TurnRequest) {
        match request {
            TurnRequest::Prompt(input, responder) => {
                if self.waiting.len() >= MAX_WAITING {
                    return responder
                        .fail(&error::invalid_request(format!("{MAX_WAITING} prompts are waiting already")));
                }
                self.waiting.push_back((input, responder));
                self.begin_next().await;
            }
            TurnRequest::Steer(input, responder) => match &mut self.current {
                Some(turn) if turn.is_accepted => {
                    turn.steered.push(responder);
                    self.steer(input).await;
                }
                _ => {
                    self.waiting.push_front((input, responder));
                    self.begin_next().await;
                }
            },
            TurnRequest::InjectIfRunning(_, responder) if !self.is_working => {
                let outcome = serde_json::json!({"outcome": "promptRequired", "reason": "noRunningTurn"});
                responder.succeed(&outcome);
            }
            TurnRequest::Inject(input, responder) | TurnRequest::InjectIfRunning(input, responder) => {
                self.inject(input, responder).await;
            }
            TurnRequest::Cancel => self.cancel().await,
            TurnRequest::Withdrawn => self.withdraw().await,
        }
    }

    /// Steers the turn that runs; without one, begins a turn that nobody owns.
    async fn inject(&mut self, input: PromptInput, responder: Responder) {
        let outcome = if self.is_working {
            self.steer(input).await;
            "injected"
        } else {
            self.conversation.seat.tell(command_of(&input)).await;
            "startedNewTurn"
        };
        responder.succeed(&serde_json::json!({ "outcome": outcome }));
    }

    async fn steer(&self, input: PromptInput) {
        self.conversation.seat.tell(Steer { message: input.text, images: input.images }).await;
    }

    /// Sends the next prompt to the session, if nothing runs.
    async fn begin_next(&mut self) {
        if self.current.is_some() || self.is_working {
            return;
        }
        let Some((input, responder)) = self.waiting.pop_front() else { return };
        if let Some(command) = self.conversation.slash_command(&input.text) {
            return self.run(command, input, responder);
        }
        let command = command_of(&input);
        let turn = Turn { responder, input, steered: Vec::new(), is_accepted: false, is_cancelled: false };
        lock(&self.conversation.translator).set_commanded(turn.input.text.starts_with('/'));
        self.current = Some(turn);
        self.conversation.seat.tell(command).await;
    }

    /// Carries out a slash command of pith's own in place of a turn of the model.
    fn run(&mut self, command: SlashCommand, input: PromptInput, responder: Responder) {
        self.current = Some(Turn { responder, input, steered: Vec::new(), is_accepted: false, is_cancelled: false });
        let (conversation, commands) = (self.conversation.clone(), self.commands.clone());
        let work = tokio::task::spawn_local(async move { command.run(&conversation).await });
        tokio::task::spawn_local(async move {
            let panicked = |failure| error::internal(format!("Internal error: {failure}"));
            // The turns may have ended.
            let _ = commands.send(work.await.map_err(panicked));
        });
    }

    async fn command_ended(&mut self, result: Result<(), Error>) {
        let is_cancelled = self.current.as_ref().is_some_and(|turn| turn.is_cancelled);
        match result {
            Err(error) if !is_cancelled => {
                if let Some(turn) = self.current.take() {
                    turn.responder.fail(&error);
                }
                self.begin_next().await;
            }
            Ok(()) | Err(_) => self.end_turn(&Outcome::default()).await,
        }
    }

    async fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Prompted(result) => self.prompted(result).await,
            Notice::Happened(Notable::Started) => self.is_working = true,
            Notice::Happened(Notable::Settled(outcome)) => self.settled(&outcome).await,
            Notice::Happened(Notable::Compacted) => {
                if self.current.is_none() {
                    // A prompt may wait for it; if the session works all the same, it is refused once more.
                    self.is_working = false;
                    self.begin_next().await;
                }
            }
            Notice::Happened(Notable::TodosCleared) => self.conversation.tell_plan().await,
            Notice::Happened(Notable::CommandsChanged) => self.conversation.tell_commands().await,
            Notice::Happened(Notable::Unshown(text)) => self.conversation.keep_unshown("notice_unshown", text),
            Notice::OptionsChanged => self.conversation.clone().follow_options(),
            Notice::Asked(request) => self.dialogs.take(request).await,
            Notice::PageDone { id } => self.conversation.page_done(&id),
            Notice::ServerChanged { name, state } => {
                self.conversation.server_changed(&name, &state);
                if state == "ready" {
                    // Its prompts are commands.
                    self.conversation.tell_commands().await;
                }
            }
            Notice::HostTool(frame) => self.host_tools.take(frame),
            Notice::Permission(frame) => self.dialogs.take_permission(*frame),
        }
    }

    /// Called when the session has taken or refused the prompt of the current turn.
    async fn prompted(&mut self, result: Result<Disposition, CommandError>) {
        let Some(turn) = &mut self.current else { return };
        match result {
            Ok(Disposition::Started | Disposition::Queued) => {
                turn.is_accepted = true;
                self.is_working = true;
                if turn.is_cancelled {
                    // The cancel came before there was anything to stop.
                    self.conversation.seat.tell(Abort {}).await;
                }
            }
            Ok(Disposition::Handled) => self.end_turn(&Outcome::default()).await,
            // The session works on its own account; the prompt follows.
            Err(refusal) if matches!(refusal.code, ErrorCode::Busy | ErrorCode::Compacting) && !turn.is_cancelled => {
                self.is_working = true;
                let turn = self.current.take().expect("it was there");
                self.waiting.push_front((turn.input, turn.responder));
            }
            Err(refusal) => {
                let turn = self.current.take().expect("it was there");
                if turn.is_cancelled {
                    answer(turn.responder, &Outcome::default(), true);
                } else {
                    turn.responder.fail(&of_command(refusal));
                }
                self.begin_next().await;
            }
        }
    }

    /// Called when all work of the session has ended.
    async fn settled(&mut self, outcome: &Outcome) {
        self.is_working = false;
        if self.current.as_ref().is_some_and(|turn| turn.is_accepted) {
            self.end_turn(outcome).await;
        } else {
            self.begin_next().await;
        }
    }

    async fn end_turn(&mut self, outcome: &Outcome) {
        let Some(turn) = self.current.take() else { return };
        if outcome.is_refusal() && !turn.is_cancelled {
            self.take_back(outcome).await;
        }
        for responder in turn.steered.into_iter().chain([turn.responder]) {
            answer(responder, outcome, turn.is_cancelled);
        }
        self.begin_next().await;
    }

    /// Moves the conversation back before a prompt that the provider refused: the protocol says that it is no longer
    /// part of it.
    async fn take_back(&self, outcome: &Outcome) {
        let Some(entry) = outcome.prompt_entry() else { return };
        if let Err(error) = self.conversation.go_before(entry).await {
            self.conversation.channel.warn(&format!("a refused prompt stays in the conversation: {error}"));
        }
    }

    /// Stops what runs; what waits is not begun.
    async fn cancel(&mut self) {
        for (_, responder) in std::mem::take(&mut self.waiting) {
            answer(responder, &Outcome::default(), true);
        }
        if let Some(turn) = &mut self.current {
            turn.is_cancelled = true;
        }
        let seat = &self.conversation.seat;
        seat.tell(ClearQueue {}).await;
        seat.tell(Abort {}).await;
        seat.tell(AbortBash { target_id: None }).await;
    }

    /// Answers waiting prompts that were withdrawn; if it is the one that runs, everything stops.
    async fn withdraw(&mut self) {
        if self.current.as_ref().is_some_and(|turn| turn.responder.cancel.is_cancelled()) {
            return self.cancel().await;
        }
        let waiting = std::mem::take(&mut self.waiting);
        for (input, responder) in waiting {
            if responder.cancel.is_cancelled() {
                answer(responder, &Outcome::default(), true);
            } else {
                self.waiting.push_back((input, responder));
            }
        }
    }

    /// Called when the session has ended.
    fn close(&mut self) {
        let current = self.current.take();
        let steered = current.into_iter().flat_map(|turn| turn.steered.into_iter().chain([turn.responder]));
        let waiting = std::mem::take(&mut self.waiting).into_iter().map(|(_, responder)| responder);
        for responder in steered.chain(waiting) {
            answer(responder, &Outcome::default(), true);
        }
    }
}

fn command_of(input: &PromptInput) -> Prompt {
    let PromptInput { text, images, traceparent } = input;
    Prompt { images: images.clone(), traceparent: traceparent.clone(), ..Prompt::from(text.as_str()) }
}

fn answer(responder: Responder, outcome: &Outcome, is_cancelled: bool) {
    match outcome.end(is_cancelled) {
        TurnEnd::Answered(response) => responder.succeed(&response),
        TurnEnd::Failed(error) => responder.fail(&error),
    }
}
