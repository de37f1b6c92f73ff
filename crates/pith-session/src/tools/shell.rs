//! Shell commands of the host (`bash`). They run beside everything else; their records are appended when no run is
//! active.

use crate::failure;
use pith_protocol::{CommandError, ErrorCode};
use std::borrow::Cow;
use std::sync::Arc;

use pith_agent::now_ms;
use pith_ext::EventName;
use pith_protocol::answers::BashResult;
use pith_protocol::commands::{AbortBash, Bash};
use pith_protocol::{BashExecution, Event, Id, Message};
use pith_tools::shell::UserBash;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::extensions::HostCommand;
use crate::jobs::{Job, JobEnd};
use crate::outbox::Room;
use crate::reply::Reply;
use crate::session::Session;

/// What a shell command sends to the session.
pub(crate) enum FromShell {
    Output { key: u64, delta: String },
    Done { key: u64, result: Result<UserBash, String> },
}

/// The running commands, and the records of finished ones that are not appended yet.
pub(crate) struct Shell {
    /// Cloned into each command.
    to_session: mpsc::Sender<FromShell>,
    /// From the commands; open as long as the session.
    events: mpsc::Receiver<FromShell>,
    running: Vec<Running>,
    next_key: u64,
    deferred: Vec<Arc<Message>>,
}

struct Running {
    key: u64,
    cancel: CancellationToken,
    id: Id,
    reply: Reply<Bash>,
    call: Bash,
    /// The session in which it was started; another one may be open when it ends.
    session_id: String,
}

impl Shell {
    pub fn new() -> Self {
        let (to_session, events) = mpsc::channel(16);
        Shell { to_session, events, running: Vec::new(), next_key: 0, deferred: Vec::new() }
    }

    /// Waits for the next message of a command. Cancel safe.
    pub async fn next(&mut self) -> Option<FromShell> {
        self.events.recv().await
    }

    pub fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    pub fn abort_all(&self) {
        self.running.iter().for_each(|command| command.cancel.cancel());
    }

    pub fn forget_deferred(&mut self) {
        self.deferred.clear();
    }

    fn take(&mut self, key: u64) -> Option<Running> {
        let at = self.running.iter().position(|command| command.key == key)?;
        Some(self.running.remove(at))
    }
}

impl Session {
    pub(crate) fn bash(&mut self, call: Bash, reply: Reply<Bash>) {
        if self.is_closing {
            return self.answer(reply, Err(failure::closing()));
        }
        self.shell.next_key += 1;
        let key = self.shell.next_key;
        let cancel = CancellationToken::new();
        let work = {
            let (workbench, command, cancel) = (self.workbench().clone(), call.command.clone(), cancel.clone());
            let (extensions, is_excluded) =
                (self.listeners(EventName::UserBash), call.exclude_from_context == Some(true));
            let (to_session, room) = (self.shell.to_session.clone(), self.out.room());
            async move {
                let (output, deltas) = mpsc::channel(1);
                let stop = cancel.clone();
                // The future owns the sender, so that forwarding ends with the command.
                let run = async move {
                    let take = |delta: &str| output.try_send(delta.to_owned()).is_ok();
                    let (workbench, command, cancel) = (&*workbench, &*command, &stop);
                    let command = HostCommand { workbench, command, is_excluded, cancel, extensions };
                    let mut result = command.run(take).await;
                    let unsent = result.as_mut().map(|done| std::mem::take(&mut done.unsent)).unwrap_or_default();
                    if !unsent.is_empty() {
                        let _ = output.send(unsent).await;
                    }
                    result
                };
                let (result, ()) = tokio::join!(run, forward(key, deltas, to_session.clone(), room, &cancel));
                let _ = to_session.send(FromShell::Done { key, result }).await;
                JobEnd::Done
            }
        };
        self.jobs.spawn(Job::Shell(key), work);
        self.shell.running.push(Running {
            key,
            cancel,
            id: reply.id(),
            reply,
            call,
            session_id: self.store.id().to_owned(),
        });
    }

    /// Cancels one command, or all of them. Answered before those commands are.
    pub(crate) fn abort_bash(&mut self, call: AbortBash, reply: Reply<AbortBash>) {
        let target = call.target_id;
        for command in &self.shell.running {
            let is_meant = target.as_ref().is_none_or(|target| {
                command.id.raw().and_then(|raw| serde_json::from_str::<serde_json::Value>(raw.get()).ok()).as_ref()
                    == Some(target)
            });
            if is_meant {
                command.cancel.cancel();
            }
        }
        self.answer(reply, Ok(()));
    }

    pub(crate) fn on_shell(&mut self, message: FromShell) {
        match message {
            FromShell::Output { key, delta } => {
                if let Some(command) = self.shell.running.iter().find(|command| command.key == key) {
                    self.out.event(&Event::BashExecutionUpdate {
                        id: command.id.raw().map(Cow::Borrowed),
                        delta: delta.into(),
                    });
                }
            }
            FromShell::Done { key, result } => {
                if let Some(command) = self.shell.take(key) {
                    self.on_command_end(command, result);
                }
            }
        }
    }

    fn on_command_end(&mut self, command: Running, result: Result<UserBash, String>) {
        let answer = result.map(|done| {
            if command.session_id == self.store.id() {
                self.record(execution(&command.call, &done));
            }
            BashResult {
                output: done.output,
                exit_code: done.exit_code,
                cancelled: done.cancelled,
                truncated: done.truncated,
                full_output_path: done.full_output_path.map(|path| path.to_string_lossy().into_owned()),
                total_lines: done.total_lines as u64,
                total_bytes: done.total_bytes as u64,
                output_lines: done.output_lines as u64,
                output_bytes: done.output_bytes as u64,
            }
        });
        self.answer(command.reply, answer.map_err(|why| CommandError::new(ErrorCode::Shell, why)));
        self.after_command();
    }

    /// Continues a replacement of the session that may have waited for the command.
    fn after_command(&mut self) {
        if self.activity.is_idle() && !self.shell.is_running() {
            self.serve_after_settled();
        }
    }

    /// Appends the record now, or after the run: the model must not see it in the middle of a turn.
    fn record(&mut self, execution: BashExecution) {
        self.shell.deferred.push(Arc::new(Message::BashExecution(execution)));
        if self.activity.takes_messages() {
            self.flush_deferred();
        }
    }

    pub(crate) fn flush_deferred(&mut self) {
        for message in std::mem::take(&mut self.shell.deferred) {
            self.store.append_message(&message);
        }
        self.report_store();
        self.append_deferred_messages();
    }

    pub(crate) fn on_shell_panic(&mut self, key: u64) {
        if let Some(command) = self.shell.take(key) {
            self.answer(command.reply, Err(failure::internal("Internal error: the command ended unexpectedly")));
            self.after_command();
        }
    }

    /// Tells the workbench which session variables the model's commands get, and whether the model accepts images.
    pub(crate) fn update_call_options(&self) {
        let model = self.models.current();
        let mut session = vec![("PI_SESSION_ID".to_owned(), self.store.id().to_owned())];
        session
            .extend(self.store.path().map(|path| ("PI_SESSION_FILE".to_owned(), path.to_string_lossy().into_owned())));
        if let Some(model) = model {
            session.push(("PI_PROVIDER".to_owned(), model.provider.clone()));
            session.push(("PI_MODEL".to_owned(), model.id.clone()));
        }
        session.push(("PI_REASONING_LEVEL".to_owned(), self.models.level().as_str().to_owned()));
        self.workbench().update_call_options(|call_options| {
            call_options.env.session = session;
            call_options.limits = self.governor.command_limits();
            call_options.model_sees_images = model.is_none_or(|model| model.sees_images());
        });
    }
}

fn execution(call: &Bash, done: &UserBash) -> BashExecution {
    BashExecution {
        command: call.command.clone(),
        output: done.output.clone(),
        exit_code: done.exit_code,
        cancelled: done.cancelled,
        truncated: done.truncated,
        full_output_path: done.full_output_path.as_ref().map(|path| path.to_string_lossy().into_owned()),
        exclude_from_context: call.exclude_from_context,
        timestamp: now_ms(),
        extra: serde_json::Map::new(),
    }
}

/// Forwards output as fast as the host reads it; the command waits meanwhile.
async fn forward(
    key: u64,
    mut deltas: mpsc::Receiver<String>,
    to_session: mpsc::Sender<FromShell>,
    room: Room,
    cancel: &CancellationToken,
) {
    while let Some(delta) = deltas.recv().await {
        tokio::select! {
            () = room.wait() => {}
            () = cancel.cancelled() => {}
        }
        if to_session.send(FromShell::Output { key, delta }).await.is_err() {
            return;
        }
    }
}
