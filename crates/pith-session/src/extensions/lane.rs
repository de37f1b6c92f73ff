//! Waiting for extensions without overtaking: while handlers decide about one
//! command, the commands whose order matters wait behind it, and all others
//! are served as ever.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use pith_ext::{EventName, FromExtension};
use pith_protocol::{Command, Id, Response};
use tokio::task::{AbortHandle, Id as TaskId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::activity::{JobEnd, Then};
use crate::session::{Session, until};

/// How long all lines wait for extensions that begin with the session.
const START: Duration = Duration::from_millis(50);

/// The answer to a prompt that was aborted while extensions looked at it.
pub(crate) const GIVEN_UP: &str = "Aborted before the prompt was started";

/// The step extensions are busy with, and what waits for its end.
#[derive(Default)]
pub(crate) struct Lane {
    step: Option<AbortHandle>,
    /// Something that takes several steps is under way.
    taken: Option<Passage>,
    /// Ends the step early, if the host can give it up.
    give_up: Option<CancellationToken>,
    waiting: VecDeque<Held>,
    /// Extensions are being told that the activity is over: what they send meanwhile comes after that.
    is_closed: bool,
    /// Until then nothing is read, so that what extensions show when they start comes first.
    quiet_until: Option<Instant>,
}

/// What has the lane for more than one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// Another session takes the place of this one.
    Replacement,
    /// The same session gets other extensions.
    Reload,
    /// The extensions of the first session are not there yet.
    Start,
}

/// Something that waits for the step before it.
enum Held {
    Line(Id, Command),
    Request(FromExtension),
    Then(Then),
}

impl Lane {
    pub fn is_busy(&self) -> bool {
        self.step.is_some() || self.taken.is_some() || self.is_closed
    }

    /// Keeps the lane until [`Lane::release`], whatever is waited for meanwhile.
    pub fn take(&mut self, passage: Passage) {
        self.taken = Some(passage);
    }

    /// Lets the next one go; the session does that at its next event.
    pub fn release(&mut self) {
        self.taken = None;
    }

    /// Whether something holds the lane beyond its present step.
    pub fn is_taken(&self) -> bool {
        self.taken.is_some()
    }

    /// Lets everything whose order matters wait.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Lets it go on; the session sees to it.
    pub fn open(&mut self) {
        self.is_closed = false;
    }

    /// Lets the first step go before everything else, for a moment.
    pub fn hush(&mut self) {
        self.quiet_until = Some(Instant::now() + START);
    }

    pub fn is_quiet(&self) -> bool {
        self.quiet_until.is_some()
    }

    /// Returns when that moment is over.
    pub async fn quiet(&self) {
        until(self.quiet_until).await;
    }

    pub fn end_quiet(&mut self) {
        self.quiet_until = None;
    }

    /// Whether a task that ended badly was the step.
    pub fn is_step(&self, task: TaskId) -> bool {
        self.step.as_ref().is_some_and(|step| step.id() == task)
    }
}

/// Commands that change what the next one means; the rest can be served at any time.
fn is_ordered(command: &Command) -> bool {
    matches!(
        command,
        Command::Prompt(_)
            | Command::Steer(_)
            | Command::FollowUp(_)
            | Command::AbortAndPrompt(_)
            | Command::NewSession(_)
            | Command::SwitchSession(_)
            | Command::Fork(_)
            | Command::Branch(_)
            | Command::CloneSession(_)
            | Command::NavigateTree(_)
            | Command::Compact(_)
            | Command::Reload(_)
    )
}

/// Commands that leave a trace in the session, and so must not reach the one that is about to go.
fn is_written_down(command: &Command) -> bool {
    matches!(
        command,
        Command::SetModel(_)
            | Command::CycleModel(_)
            | Command::SetThinkingLevel(_)
            | Command::CycleThinkingLevel(_)
            | Command::SetSessionName(_)
            | Command::SetLabel(_)
            | Command::SetTodos(_)
            | Command::Bash(_)
    )
}

/// Commands whose answers tell what extensions have registered.
fn lists_extensions(command: &Command) -> bool {
    matches!(command, Command::GetCommands(_) | Command::GetAvailableModels(_))
}

/// Commands that bring the model something to do.
fn is_prompt(command: &Command) -> bool {
    matches!(command, Command::Prompt(_) | Command::Steer(_) | Command::FollowUp(_) | Command::AbortAndPrompt(_))
}

impl Session {
    /// Waits for extensions, then goes on. One step at a time; the caller has seen that none is under way.
    pub(crate) fn step<F, T>(&mut self, work: F)
    where
        F: Future<Output = T> + Send + 'static,
        T: FnOnce(&mut Session) + Send + 'static,
    {
        let task = self.jobs.spawn(async move {
            let then = work.await;
            JobEnd::Then(Box::new(move |session: &mut Session| session.end_step(Some(Box::new(then)))))
        });
        self.lane.step = Some(task);
    }

    /// The same for what a host can give up, like a prompt on its way to the model: the token fires when
    /// the host aborts, and the work has to end then.
    pub(crate) fn abortable_step<F, T>(&mut self, work: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = T> + Send + 'static,
        T: FnOnce(&mut Session) + Send + 'static,
    {
        let give_up = CancellationToken::new();
        self.step(work(give_up.clone()));
        self.lane.give_up = Some(give_up);
    }

    /// Waits for something beside the lane, then goes on.
    pub(crate) fn job<F, T>(&mut self, work: F)
    where
        F: Future<Output = T> + Send + 'static,
        T: FnOnce(&mut Session) + Send + 'static,
    {
        self.jobs.spawn(async move {
            let then = work.await;
            JobEnd::Then(Box::new(then))
        });
    }

    /// Goes on after a step, with whatever waited for it.
    pub(crate) fn end_step(&mut self, then: Option<Then>) {
        self.lane.step = None;
        self.lane.give_up = None;
        self.lane.end_quiet();
        if let Some(then) = then {
            then(self);
        }
        while self.is_lane_free() {
            match self.lane.waiting.pop_front() {
                Some(Held::Line(id, command)) => self.command(id, command),
                Some(Held::Request(request)) => self.on_extension(request),
                Some(Held::Then(then)) => then(self),
                None => return,
            }
        }
    }

    /// What the step was to go on with is lost; whoever waited for it is told by then.
    pub(crate) fn on_step_panic(&mut self) {
        self.lane.release();
        self.take_over();
        self.end_step(None);
    }

    fn is_lane_free(&self) -> bool {
        !self.lane.is_busy() && self.takes_lines()
    }

    /// Carries out what waited, if nothing is in its way any more.
    pub(crate) fn advance_lane(&mut self) {
        if !self.lane.waiting.is_empty() && self.is_lane_free() {
            self.end_step(None);
        }
    }

    /// Gives a command back unless it has to wait for extensions.
    pub(crate) fn admit(&mut self, id: Id, command: Command) -> Option<(Id, Command)> {
        if matches!(command, Command::AbortAndPrompt(_)) {
            self.give_up_prompts();
        }
        let must_wait = self.lane.is_busy() || !self.lane.waiting.is_empty();
        let is_awaited = matches!(command, Command::SetModel(_) | Command::CycleModel(_))
            && self.listeners(EventName::ModelSelect).is_some();
        let is_held = is_ordered(&command)
            || is_awaited
            || match self.lane.taken {
                Some(Passage::Replacement) => is_written_down(&command),
                Some(Passage::Start) => is_written_down(&command) || lists_extensions(&command),
                Some(Passage::Reload) | None => false,
            };
        if must_wait && is_held {
            self.lane.waiting.push_back(Held::Line(id, command));
            return None;
        }
        Some((id, command))
    }

    /// Whether what an extension wants to start has to wait, see [`Session::hold`].
    pub(crate) fn must_hold(&self) -> bool {
        self.lane.is_busy() || !self.takes_lines()
    }

    /// Nothing runs and nothing is on its way.
    pub(crate) fn is_still(&self) -> bool {
        let is_free = !self.lane.is_busy() && self.lane.waiting.is_empty();
        is_free && !self.activity.is_busy() && self.waiters.is_empty() && self.opening.is_none()
    }

    /// The host aborts: what extensions have not let through yet is never started.
    pub(crate) fn give_up_prompts(&mut self) {
        if let Some(give_up) = &self.lane.give_up {
            give_up.cancel();
        }
        self.abandon_prompts(GIVEN_UP);
    }

    /// Lets a request of an extension wait for the step before it.
    pub(crate) fn hold(&mut self, request: FromExtension) {
        self.lane.waiting.push_back(Held::Request(request));
    }

    /// Does something that may need the lane: now, or in its turn.
    pub(crate) fn in_turn(&mut self, then: impl FnOnce(&mut Session) + Send + 'static) {
        match self.is_lane_free() && self.lane.waiting.is_empty() {
            true => then(self),
            false => self.lane.waiting.push_back(Held::Then(Box::new(then))),
        }
    }

    /// What extensions of the session before still wanted of it comes too late; they are told so.
    pub(crate) fn drop_requests(&mut self) {
        self.lane.waiting.retain(|held| !matches!(held, Held::Request(_)));
    }

    /// Prompts that extensions have not let through yet are given up.
    pub(crate) fn abandon_prompts(&mut self, why: &str) {
        let waiting = std::mem::take(&mut self.lane.waiting);
        for held in waiting {
            match held {
                Held::Line(id, command) if self.is_closing || is_prompt(&command) => {
                    self.out.respond(&Response::failure(id.raw(), command.name(), why));
                }
                Held::Request(_) | Held::Then(_) if self.is_closing => {}
                other => self.lane.waiting.push_back(other),
            }
        }
    }

    /// The process ends: nothing waits for extensions any more.
    pub(crate) fn close_lane(&mut self) {
        self.abandon_prompts(super::CLOSING);
        if let Some(step) = self.lane.step.take() {
            step.abort();
        }
        self.lane.release();
        self.lane.end_quiet();
    }
}
