//! A run of the agent loop, seen from the session: starting it, serving it, ending it.

mod end;
mod events;
mod late_failure;
mod link;
mod masking;
mod request;
mod retry;
mod start;

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use pith_agent::link::Call;
use pith_agent::{Queue, RunEvent};
use pith_ext::EventName;
use pith_protocol::{InterruptMode, LimitName, Message};
use pith_store::{EntryId, InputId};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info, info_span};

use crate::activity::{Stage, Work};
use crate::admission::Queued;
use crate::compaction::Compaction;
use crate::extensions::{Observer, Prompted};
use crate::jobs::{Job, JobEnd};
use crate::session::Session;
pub(crate) use late_failure::AcceptedPrompt;
pub(crate) use link::FromRun;
use link::SessionLink;
pub use retry::RetryPolicy;
pub(crate) use retry::{Retry, RetryDecision};
pub(crate) use start::{RunStart, StartedBy};

/// How many messages a run may be ahead of the session.
const BACKLOG: usize = 256;

/// The active run.
pub(crate) struct Run {
    pub cancel: CancellationToken,
    /// Closed when the run has ended.
    pub events: mpsc::Receiver<FromRun>,
    open: OpenEvents,
    /// The store's records of user messages that are not stored yet, in order.
    inputs: VecDeque<InputId>,
    /// The id chosen for the message that has begun.
    entry: Option<EntryId>,
    /// The limit that has stopped the run, for the calls that it ended.
    pub ended_by: Arc<OnceLock<LimitName>>,
    /// Whether MCP servers were told that work begins.
    pub has_begun_servers: bool,
    /// A compaction before the next turn, and the channel that lets the turn begin.
    pub compaction: Option<(Compaction, oneshot::Sender<()>)>,
}

impl Run {
    /// Whether a tool call has begun that has not ended.
    pub fn has_open_calls(&self) -> bool {
        !self.open.calls.is_empty()
    }

    /// Returns the calls of shell commands that have begun and not ended.
    pub fn open_commands(&self) -> Vec<Arc<Call>> {
        self.open.calls.iter().filter(|call| call.name == "bash").cloned().collect()
    }
}

/// Events that still need their counterpart if the run dies.
#[derive(Default)]
struct OpenEvents {
    is_started: bool,
    turn: bool,
    has_message: bool,
    calls: Vec<Arc<Call>>,
    messages: Vec<Arc<Message>>,
}

/// Enough of a session's id to tell it from others in a log: the end, because all begin with the time.
fn short(id: &str) -> &str {
    id.get(id.len().saturating_sub(8)..).unwrap_or(id)
}

/// Ignores that an answer found no receiver: the asker is gone.
fn ignore<T>(_sent: Result<(), T>) {}

impl Session {
    /// Starts a run. The caller has checked that there is a model and nothing runs.
    pub(crate) fn start_run(&mut self, work: Box<Work>, start: RunStart) {
        // Prompts are refused if this fails. Runs that extensions start go on; their entries wait until the other
        // process releases the file.
        let _ = self.store.lock();
        self.begin_checkpoints();
        let cancel = CancellationToken::new();
        let (to_session, events) = mpsc::channel(BACKLOG);
        let prompted = start.prompted.map(|by| Prompted {
            by,
            system_prompt: self.system_prompt_of(&work),
            options: self.system_prompt_options(),
        });
        let mut link = SessionLink {
            to_session,
            room: self.out.room(),
            cancel: cancel.clone(),
            images: self.workbench().image_rules(),
            n_turns: 0,
            observer: self
                .extension_handle()
                .map(|handle| Observer::new(handle.clone(), self.store.id().to_owned(), cancel.clone())),
            rules: self.rules.guard(),
            masking: self.masking(),
        };
        let token = cancel.clone();
        let (opening, inputs) = (start.opening, start.input.into_iter().collect());
        let span = info_span!(target: "pith::run", parent: None, "run", session = short(self.store.id()));
        info!(target: "pith::run", parent: &span, "starts");
        let run = async move {
            let opening = link.open(opening, prompted).await;
            pith_agent::run(opening, &mut link, &token).await;
            info!(target: "pith::run", is_aborted = token.is_cancelled(), "ends");
            JobEnd::Done
        };
        self.jobs.spawn(Job::Run, run.instrument(span));
        let run = Run {
            cancel,
            events,
            open: OpenEvents::default(),
            inputs,
            entry: None,
            ended_by: Arc::default(),
            has_begun_servers: false,
            compaction: None,
        };
        self.activity.enter(work, Stage::Running(run));
    }

    pub(crate) fn on_run(&mut self, message: FromRun) {
        // If an answer has no receiver, the run is ending.
        match message {
            FromRun::Event(event, taken) => self.on_run_event(event, taken),
            FromRun::Has(queue, answer) => ignore(answer.send(!self.is_closing && self.queues.has(queue))),
            FromRun::Take(queue, answer) => ignore(answer.send(self.take_queued(queue))),
            FromRun::Turn(answer) => self.answer_turn(answer),
            FromRun::BeforeTurn(go) => self.before_turn(go),
            FromRun::Prompted(start, answer) => {
                self.take_run_prompt(start);
                ignore(answer.send(()));
            }
            FromRun::StoppedBy(answer) => ignore(answer.send(self.stopped_by())),
            FromRun::RulesBroken(rules) => self.on_rules_broken(rules),
            FromRun::Boundary(boundary, answer) => {
                ignore(answer.send(self.apply_boundary(EventName::TurnEnd, boundary)));
            }
            FromRun::IsInterrupted(answer) => {
                let is_immediate = self.options.interrupt_mode == InterruptMode::Immediate;
                ignore(answer.send(is_immediate && self.queues.has(Queue::Steering)));
            }
        }
    }

    fn take_queued(&mut self, queue: Queue) -> Vec<Arc<Message>> {
        let attribution = self.options.attribution;
        let taken = self.queues.take(queue);
        if let Some(run) = self.activity.run_mut() {
            run.inputs.extend(taken.iter().filter_map(Queued::input));
        }
        taken.into_iter().map(|item| item.into_message(attribution)).collect()
    }
}

impl OpenEvents {
    fn note(&mut self, event: &RunEvent) {
        match event {
            RunEvent::AgentStart => self.is_started = true,
            RunEvent::TurnStart => self.turn = true,
            RunEvent::MessageStart(_) | RunEvent::AnswerStart(_) => self.has_message = true,
            RunEvent::MessageEnd(message) => {
                self.has_message = false;
                self.messages.push(message.clone());
            }
            RunEvent::ToolStart { call } => self.calls.push(call.clone()),
            RunEvent::ToolEnd { call, .. } => self.calls.retain(|open| open.id != call.id),
            RunEvent::TurnEnd { .. } => self.turn = false,
            RunEvent::Stream(_) | RunEvent::ToolUpdate { .. } | RunEvent::AgentEnd { .. } => {}
        }
    }
}
