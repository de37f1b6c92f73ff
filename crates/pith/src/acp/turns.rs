//! The turns of one session: one at a time, other prompts wait, all are answered.
//!
//! The loop waits for its events, and for room in the session's inbox when it passes one on: a cancel is served as long
//! as the session reads.

mod stages;

use std::collections::VecDeque;
use std::rc::Rc;

use pith_acp::acp::Error;
use pith_acp::error;
use pith_acp::outcome::Outcome;
use pith_acp::updates::Notable;
use pith_protocol::commands::{Abort, AbortBash, ClearQueue};
use tokio::sync::mpsc;
use tokio::task::{JoinError, spawn_local};

use super::conversation::Conversation;
use super::dialogs::Dialogs;
use super::host_tools::HostTools;
use super::outbox::Notice;
use super::responder::Responder;
use super::turn::{Asker, CANCEL_LIMIT, Owner, Sent, Turn, TurnRequest, Waiting, not_running};

/// How many prompts may wait behind the one that runs.
const MAX_WAITING: usize = 32;

/// The turns of a session.
struct Turns {
    conversation: Rc<Conversation>,
    dialogs: Dialogs,
    host_tools: HostTools,
    /// To the loop itself, from what it has started.
    events: mpsc::UnboundedSender<Event>,
    current: Option<Turn>,
    waiting: VecDeque<Waiting>,
    /// Inputs that are to join what runs, and that the session has not placed yet.
    steered: Vec<(Sent, Owner)>,
    /// Prompts that have joined what runs, and are answered when it has settled.
    joined: Vec<Owner>,
    activity: Activity,
}

/// What the session does, for a prompt of the editor or on its own account.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Activity {
    Idle,
    Working,
    /// It writes a summary and takes no prompts.
    Summarising,
}

/// What can happen to the turns.
enum Event {
    Request(TurnRequest),
    Notice(Notice),
    /// A slash command of pith's own has ended.
    CommandEnded(Result<(), Error>),
    /// The conversation has moved back before a refused prompt, or could not.
    TakenBack,
    /// The time is over in which a cancel is to be answered.
    CancelLimit,
}

/// Serves the prompts of a session until it ends, then answers those that are left.
pub async fn serve(
    conversation: Rc<Conversation>,
    dialogs: Dialogs,
    host_tools: HostTools,
    mut requests: mpsc::UnboundedReceiver<TurnRequest>,
    mut notices: mpsc::UnboundedReceiver<Notice>,
) {
    let (events, mut own) = mpsc::unbounded_channel();
    let mut turns = Turns {
        conversation,
        dialogs,
        host_tools,
        events,
        current: None,
        waiting: VecDeque::new(),
        steered: Vec::new(),
        joined: Vec::new(),
        activity: Activity::Idle,
    };
    loop {
        let event = tokio::select! {
            biased;
            notice = notices.recv() => match notice {
                Some(notice) => Event::Notice(notice),
                None => break,
            },
            Some(event) = own.recv() => event,
            Some(request) = requests.recv() => Event::Request(request),
        };
        match event {
            Event::Notice(notice) => turns.notice(notice).await,
            Event::Request(request) => turns.request(request).await,
            Event::CommandEnded(result) => turns.command_ended(result).await,
            Event::TakenBack => turns.taken_back().await,
            Event::CancelLimit => turns.answer_overdue(),
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
                if let Some(responder) = self.with_room(responder) {
                    self.waiting.push_back(Waiting { input, asker: Asker::Prompt(responder) });
                    self.begin_next().await;
                }
            }
            TurnRequest::Steer(input, responder) => {
                let asker = Asker::Prompt(responder);
                if self.takes_steering() {
                    self.steer(input, asker).await;
                } else {
                    self.waiting.push_front(Waiting { input, asker });
                    self.begin_next().await;
                }
            }
            TurnRequest::Inject(input, responder) if self.takes_steering() => {
                self.steer(input, Asker::Steering(responder)).await;
            }
            TurnRequest::Inject(input, responder) => {
                if let Some(responder) = self.with_room(responder) {
                    self.waiting.push_back(Waiting { input, asker: Asker::Steering(responder) });
                    self.begin_next().await;
                }
            }
            TurnRequest::InjectIfRunning(input, responder) if self.takes_steering() => {
                self.steer(input, Asker::Steering(responder)).await;
            }
            TurnRequest::InjectIfRunning(_, responder) => not_running(responder),
            TurnRequest::Cancel => self.cancel().await,
            TurnRequest::Withdrawn => self.withdraw().await,
        }
    }

    /// Hands the request back if one more input may wait; otherwise refuses it.
    fn with_room(&self, responder: Responder) -> Option<Responder> {
        if self.waiting.len() < MAX_WAITING {
            return Some(responder);
        }
        responder.fail(&error::invalid_request(format!("{MAX_WAITING} prompts are waiting already")));
        None
    }

    /// Whether there is something that an input can join.
    fn takes_steering(&self) -> bool {
        match &self.current {
            Some(turn) => turn.takes_steering(),
            None => self.activity == Activity::Working,
        }
    }

    /// Starts something that tells the loop when it has ended, also if it panics.
    fn watch<T: 'static>(
        &self,
        work: impl Future<Output = T> + 'static,
        ended: impl FnOnce(Result<T, JoinError>) -> Event + 'static,
    ) {
        let (work, events) = (spawn_local(work), self.events.clone());
        spawn_local(async move {
            // The turns may have ended.
            let _ = events.send(ended(work.await));
        });
    }

    async fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Prompted { number, result } => self.prompted(number, result).await,
            Notice::Happened(Notable::Started) => self.activity = Activity::Working,
            Notice::Happened(Notable::Settled(outcome)) => self.settled(outcome).await,
            Notice::Happened(Notable::Compacted) => {
                if self.activity == Activity::Summarising {
                    self.activity = Activity::Idle;
                    self.begin_next().await;
                }
            }
            Notice::Happened(Notable::TodosCleared) => {
                let conversation = self.conversation.clone();
                spawn_local(async move { conversation.tell_plan().await });
            }
            Notice::Happened(Notable::CommandsChanged) => self.follow_commands(),
            Notice::Happened(Notable::Unshown(text)) => self.conversation.keep_unshown("notice_unshown", text),
            Notice::OptionsChanged => self.conversation.clone().follow_options(),
            Notice::Asked(request) => self.dialogs.take(request).await,
            Notice::PageDone { id } => self.conversation.page_done(&id),
            Notice::ServerChanged { name, state } => {
                self.conversation.server_changed(&name, &state);
                if state == "ready" {
                    // Its prompts are commands.
                    self.follow_commands();
                }
            }
            Notice::HostTool(frame) => self.host_tools.take(frame),
            Notice::Permission(frame) => self.dialogs.take_permission(*frame).await,
        }
    }

    /// Tells the editor the slash commands. The session lists them only when its extensions have started.
    fn follow_commands(&self) {
        let conversation = self.conversation.clone();
        spawn_local(async move { conversation.tell_commands().await });
    }

    /// Stops what runs; what waits is not begun.
    async fn cancel(&mut self) {
        self.waiting.drain(..).for_each(|waiting| waiting.asker.cancelled());
        self.current.iter_mut().for_each(Turn::cancel);
        self.joined.iter_mut().chain(self.steered.iter_mut().map(|(_, owner)| owner)).for_each(Owner::cancel);
        let seat = &self.conversation.seat;
        seat.tell(ClearQueue {}).await;
        seat.tell(Abort {}).await;
        seat.tell(AbortBash { target_id: None }).await;
        self.watch(tokio::time::sleep(CANCEL_LIMIT), |_| Event::CancelLimit);
    }

    /// Answers cancelled inputs that an extension still holds. The turn stays until the session says what became of it,
    /// so that others wait for it.
    fn answer_overdue(&mut self) {
        let mut overdue = Vec::new();
        if let Some(turn) = self.current.as_mut().filter(|turn| !turn.is_accepted()) {
            overdue.extend(turn.owners.extract_if(.., |owner| owner.is_overdue()));
        }
        let steered = self.steered.extract_if(.., |(_, owner)| owner.is_overdue());
        overdue.extend(steered.map(|(_, owner)| owner));
        overdue.into_iter().for_each(|owner| owner.ended(&Outcome::default()));
    }

    /// Answers waiting prompts that were withdrawn; if one has been sent to the session, everything stops.
    async fn withdraw(&mut self) {
        let sent = self.current.iter().flat_map(|turn| &turn.owners);
        let mut sent = sent.chain(&self.joined).chain(self.steered.iter().map(|(_, owner)| owner));
        if sent.any(|owner| owner.is_withdrawn() && !owner.is_cancelled()) {
            return self.cancel().await;
        }
        let waiting = std::mem::take(&mut self.waiting);
        for one in waiting {
            if one.asker.is_withdrawn() {
                one.asker.cancelled();
            } else {
                self.waiting.push_back(one);
            }
        }
    }

    /// Called when the session has ended.
    fn close(&mut self) {
        let mut owners = std::mem::take(&mut self.joined);
        owners.extend(self.steered.drain(..).map(|(_, owner)| owner));
        owners.extend(self.current.take().into_iter().flat_map(|turn| turn.owners));
        let waiting = self.waiting.drain(..).map(|waiting| waiting.asker);
        owners.into_iter().map(Owner::into_asker).chain(waiting).for_each(Asker::cancelled);
    }
}
