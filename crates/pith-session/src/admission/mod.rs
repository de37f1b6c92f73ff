//! Decides which command is served now and which waits for extensions.
//!
//! While handlers decide about one command, commands whose order matters wait behind it, and all others are served at
//! once. Without extensions only commands that follow a replacement of the session ever wait here.

mod deferred;
mod input;
mod place;
mod queue;
mod step;

use crate::failure;
use pith_protocol::{CommandError, ErrorCode};
use std::collections::VecDeque;
use std::time::Duration;

use pith_ext::{EventName, ExtensionHandle, FromExtension};
use pith_protocol::{Command, Id, Response};
use tokio::time::Instant;
use tracing::debug;

use crate::extensions::Reload;
use crate::session::{Session, until};
pub(crate) use input::{ABORTED, COMPACTING, ExtensionCommand, Input, InputSource, InputTarget, SlashNames, pictures};
pub(crate) use queue::{Queued, Queues, UserInput};
use step::RunningStep;
pub(crate) use step::Step;

/// How long the first commands wait for extensions that start with the session.
const START_DELAY: Duration = Duration::from_millis(50);

/// What holds commands up, and the commands that wait.
#[derive(Default)]
pub(crate) struct Admission {
    /// The decision that extensions are making, if any.
    step: Option<RunningStep>,
    hold: Option<Hold>,
    waiting: VecDeque<Waiting>,
    /// Nothing is read before this moment, so that what extensions show when they start comes first.
    delayed_until: Option<Instant>,
}

/// Something that takes several steps. A replacement of the session is one as well, see [`crate::replace`].
pub(crate) enum Hold {
    /// The extensions of the first session are being loaded.
    Loading,
    /// Those extensions handle `session_start`.
    Starting,
    /// The extensions of this session are loaded again.
    Reloading(Reload),
}

/// Something that waits for its turn.
enum Waiting {
    Command(Id, Command),
    Request(FromExtension),
    /// Loading the extensions of a project that the host has trusted meanwhile.
    TrustedExtensions,
}

impl Admission {
    /// Makes commands whose order matters wait from now on.
    pub fn hold(&mut self, hold: Hold) {
        self.hold = Some(hold);
    }

    /// Called when the extensions of the first session are loaded: from now on they handle `session_start`.
    pub fn end_loading(&mut self) {
        if let Some(Hold::Loading) = self.hold {
            self.hold = Some(Hold::Starting);
        }
    }

    /// Ends the hold. The caller then admits what waits.
    pub fn release(&mut self) -> Option<Hold> {
        self.hold.take()
    }

    /// The reload under way, if any.
    pub fn reload_mut(&mut self) -> Option<&mut Reload> {
        match &mut self.hold {
            Some(Hold::Reloading(reload)) => Some(reload),
            Some(Hold::Loading | Hold::Starting) | None => None,
        }
    }

    /// Whether the first session's extensions have not yet handled `session_start`.
    pub fn is_starting(&self) -> bool {
        matches!(self.hold, Some(Hold::Loading | Hold::Starting))
    }

    /// Reads no input for a moment, so that what extensions show when they start comes first.
    pub fn delay_input(&mut self) {
        self.delayed_until = Some(Instant::now() + START_DELAY);
    }

    pub fn is_input_delayed(&self) -> bool {
        self.delayed_until.is_some()
    }

    /// Returns when that moment is over.
    pub async fn input_delay(&self) {
        until(self.delayed_until).await;
    }

    pub fn end_input_delay(&mut self) {
        self.delayed_until = None;
    }

    pub fn has_step(&self) -> bool {
        self.step.is_some()
    }

    /// Whether extensions are deciding about something the host can abort.
    pub fn is_abortable(&self) -> bool {
        self.step.as_ref().is_some_and(RunningStep::is_abortable)
    }

    pub fn is_anything_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// Whether a command changes what later ones mean. All others can be served at any time.
fn is_ordered(command: &Command) -> bool {
    is_input(command)
        || matches!(
            command,
            Command::NewSession(_)
                | Command::SwitchSession(_)
                | Command::Fork(_)
                | Command::Branch(_)
                | Command::CloneSession(_)
                | Command::NavigateTree(_)
                | Command::RestoreCheckpoint(_)
                | Command::Compact(_)
                | Command::Reload(_)
        )
}

/// Whether a command gives the model something to do.
fn is_input(command: &Command) -> bool {
    matches!(command, Command::Prompt(_) | Command::Steer(_) | Command::FollowUp(_) | Command::AbortAndPrompt(_))
}

/// Whether a command changes the session file, and so must not reach a session that is about to be replaced.
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

/// Whether the answer lists what extensions have registered, or which of them failed.
fn lists_extensions(command: &Command) -> bool {
    matches!(command, Command::GetCommands(_) | Command::GetAvailableModels(_) | Command::GetDiagnostics(_))
}

fn lists_commands(command: &Command) -> bool {
    matches!(command, Command::GetCommands(_))
}

impl Session {
    /// The handle to the extensions, if there are any. Code that gets `None` calls nothing under `extensions/`.
    pub(crate) fn extension_handle(&self) -> Option<&ExtensionHandle> {
        self.extensions.engine.as_ref().map(|engine| &engine.handle)
    }

    /// The handle to the extensions if one of them listens for an event. Ask before building its payload.
    pub(crate) fn listeners(&self, event: EventName) -> Option<ExtensionHandle> {
        self.extension_handle().filter(|handle| handle.listens(event)).cloned()
    }

    /// Whether lines are read. While the session is being replaced, later commands wait for the new one: unread, or in
    /// [`Admission`] if there are extensions, since those may ask the host something meanwhile.
    pub(crate) fn reads_input(&self) -> bool {
        !self.is_closing && (self.replacement.is_none() || self.extension_handle().is_some())
    }

    /// Whether commands whose order matters have to wait.
    pub(crate) fn is_held(&self) -> bool {
        let admission = &self.admission;
        admission.step.is_some()
            || admission.hold.is_some()
            || self.replacement.is_some()
            || self.activity.is_settling()
            || self.is_closing
    }

    /// Returns the command if it can be served now; keeps it otherwise.
    pub(crate) fn admit(&mut self, id: Id, command: Command) -> Option<(Id, Command)> {
        if matches!(command, Command::AbortAndPrompt(_)) {
            self.abandon_inputs();
        }
        let must_wait = self.is_held() || self.admission.is_anything_waiting();
        let is_told_first = matches!(command, Command::SetModel(_) | Command::CycleModel(_))
            && self.listeners(EventName::ModelSelect).is_some();
        let is_loading = matches!(self.admission.hold, Some(Hold::Loading));
        let waits = is_ordered(&command)
            || is_told_first
            || (is_loading || self.replacement.is_some()) && is_written_down(&command)
            || is_loading && lists_extensions(&command)
            // Extensions also register commands, and name templates and skills, when they hear of the session.
            || self.admission.is_starting() && !self.extensions.dialogs.is_any_open() && lists_commands(&command);
        if must_wait && waits {
            debug!(target: "pith::command", name = command.name(), "waits for others");
            self.admission.waiting.push_back(Waiting::Command(id, command));
            return None;
        }
        Some((id, command))
    }

    /// Serves what waited, until something has to wait again.
    pub(crate) fn admit_waiting(&mut self) {
        while !self.is_held() {
            match self.admission.waiting.pop_front() {
                Some(Waiting::Command(id, command)) => self.command(id, command),
                Some(Waiting::Request(request)) => self.serve_request(request),
                Some(Waiting::TrustedExtensions) => self.load_trusted(),
                None => break,
            }
        }
        self.check_fully_idle();
    }

    /// Called when an extension asks the user something. A host may list the commands before it answers, so a list that
    /// waits until extensions have started waits no longer.
    pub(crate) fn list_waiting_commands(&mut self) {
        let waiting = std::mem::take(&mut self.admission.waiting);
        for waiting in waiting {
            match waiting {
                Waiting::Command(id, command) if lists_commands(&command) => self.command(id, command),
                other => self.admission.waiting.push_back(other),
            }
        }
    }

    /// Makes a request of an extension wait for its turn.
    pub(crate) fn hold_request(&mut self, request: FromExtension) {
        self.admission.waiting.push_back(Waiting::Request(request));
    }

    /// Loads the extensions of a project that the host trusts now, in its turn.
    pub(crate) fn load_trusted_in_turn(&mut self) {
        self.admission.waiting.push_back(Waiting::TrustedExtensions);
        self.admit_waiting();
    }

    /// Drops the waiting requests of the previous session's extensions; their promises are rejected.
    pub(crate) fn drop_requests(&mut self) {
        self.admission.waiting.retain(|waiting| !matches!(waiting, Waiting::Request(_)));
    }

    /// Whether nothing runs and nothing waits.
    pub(crate) fn is_fully_idle(&self) -> bool {
        let is_free = !self.is_held() && !self.admission.is_anything_waiting();
        is_free && self.activity.is_idle() && self.after_settled.is_empty()
    }

    /// Called when the host aborts. Inputs that extensions are still deciding about are never started.
    pub(crate) fn abandon_inputs(&mut self) {
        if let Some(step) = &self.admission.step {
            step.abort();
        }
        let waiting = std::mem::take(&mut self.admission.waiting);
        for waiting in waiting {
            match waiting {
                Waiting::Command(id, command) if is_input(&command) => {
                    self.out.respond(&Response::failure(
                        id.raw(),
                        command.name(),
                        &CommandError::new(ErrorCode::Aborted, ABORTED),
                    ));
                }
                other => self.admission.waiting.push_back(other),
            }
        }
    }

    /// Called when the process ends. Refuses everything that waits. A session whose extensions have not handled
    /// `session_start` yet is still announced to them, so that they can be told of its end.
    pub(crate) fn close_admission(&mut self) {
        for waiting in std::mem::take(&mut self.admission.waiting) {
            if let Waiting::Command(id, command) = waiting {
                self.out.respond(&Response::failure(id.raw(), command.name(), &failure::closing()));
            }
        }
        self.admission.end_input_delay();
        if !self.session_start_pending() {
            self.drop_held();
        }
    }

    /// Drops whatever holds commands up; dropped replies are answered with an error.
    pub(crate) fn drop_held(&mut self) {
        self.admission.step = None;
        self.admission.hold = None;
        self.replacement = None;
    }

    /// Whether extensions have yet to handle the `session_start` of the first or the next session.
    pub(crate) fn session_start_pending(&self) -> bool {
        self.admission.is_starting() || self.replacement.as_ref().is_some_and(|replacement| replacement.is_arriving())
    }
}
