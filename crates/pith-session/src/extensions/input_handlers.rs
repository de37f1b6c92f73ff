//! Inputs that extensions handle: their slash commands, and `input` events.

use pith_ext::ExtensionHandle;
use pith_protocol::answers::{Disposition, PromptDisposition};
use pith_protocol::{Block, StreamingBehavior};
use pith_protocol::{CommandError, ErrorCode};

use crate::admission::{ExtensionCommand, Input, InputSource, InputTarget, Step};
use crate::jobs::{Job, JobEnd};
use crate::reply::InputReply;
use crate::session::Session;

/// The answer to a prompt whose slash command was aborted while a dialog of it was open.
const COMMAND_ABORTED: &str = "Aborted while the extension command waited for an answer";

/// Slash commands that have not ended, and the replies that wait for them.
#[derive(Default)]
pub(crate) struct RunningCommands {
    running: Vec<(u64, Option<InputReply>)>,
    next_key: u64,
}

impl RunningCommands {
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    fn add(&mut self, reply: Option<InputReply>) -> u64 {
        self.next_key += 1;
        self.running.push((self.next_key, reply));
        self.next_key
    }

    fn remove(&mut self, key: u64) -> Option<InputReply> {
        let at = self.running.iter().position(|(running, _)| *running == key)?;
        self.running.remove(at).1
    }
}

impl Session {
    /// Runs a slash command; the reply is answered when it has ended.
    pub(crate) fn run_extension_command(&mut self, command: ExtensionCommand, reply: InputReply) {
        let ExtensionCommand { handle, name, args } = command;
        // Hosts that are told of late failures get their answer at once.
        let is_answered = self.options.tells_late_failures && reply.command().is_some();
        let reply = if is_answered {
            reply.send(&mut *self.out, Ok(PromptDisposition { disposition: Disposition::Handled }));
            None
        } else {
            Some(reply)
        };
        let key = self.extensions.commands.add(reply);
        self.jobs.spawn(Job::ExtensionCommand(key), async move {
            handle.run_command(&name, &args).await;
            JobEnd::CommandRan(key)
        });
    }

    /// Called when a slash command has ended, however it ended.
    pub(crate) fn on_command_ran(&mut self, key: u64) {
        match self.extensions.commands.remove(key) {
            Some(reply) => self.answer_handled(reply),
            None => self.settle_handled(),
        }
        self.check_fully_idle();
    }

    /// Called when the host aborts while slash commands wait for dialogs. Their prompts fail; the commands go on.
    pub(super) fn fail_waiting_commands(&mut self) {
        for (_, reply) in &mut self.extensions.commands.running {
            if let Some(reply) = reply.take() {
                reply.send(&mut *self.out, Err(CommandError::new(ErrorCode::Aborted, COMMAND_ABORTED)));
            }
        }
    }

    /// Passes an input to `input` handlers; later inputs wait.
    pub(crate) fn show_to_input_handlers(&mut self, handle: ExtensionHandle, input: Input) {
        let behavior = match &input.target {
            InputTarget::Prompt { behavior, .. } => behavior.filter(|_| self.activity.is_working()),
            InputTarget::Queue { queue: pith_agent::Queue::Steering, .. } => Some(StreamingBehavior::Steer),
            InputTarget::Queue { queue: pith_agent::Queue::FollowUp, .. } => Some(StreamingBehavior::FollowUp),
            InputTarget::AfterAbort(_) => None,
        };
        let behavior = behavior.map(|behavior| match behavior {
            StreamingBehavior::Steer => "steer",
            StreamingBehavior::FollowUp => "followUp",
        });
        let source = match input.source {
            InputSource::Host => "rpc",
            InputSource::Extension => "extension",
        };
        self.begin_abortable_step(|aborted| async move {
            let images: Vec<Block> = input.content.images.iter().cloned().map(Block::Image).collect();
            let verdict = tokio::select! {
                biased;
                () = aborted.cancelled() => None,
                verdict = handle.input(&input.content.text, &images, source, behavior) => Some(verdict),
            };
            Step::InputSeen { input, verdict }
        });
    }
}
