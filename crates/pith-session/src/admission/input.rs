//! Commands that give the model something to do, or stop it.

use crate::failure;
use pith_protocol::{CommandError, ErrorCode};
use std::sync::Arc;

use pith_agent::{Opening, Queue, now_ms};
use pith_ext::{EventName, ExtensionHandle, InputVerdict};
use pith_protocol::answers::{Disposition, PromptDisposition};
use pith_protocol::commands::{Abort, AbortAndPrompt, ClearQueue, Prompt};
use pith_protocol::{Block, ImageBlock, Message, StreamingBehavior, UserMessage};
use pith_store::InputKind;
use tracing::debug;

use super::place::{Busy, Placement, place};
use super::queue::UserInput;
use super::step::Step;
use crate::activity::{AfterSettled, Work};
use crate::mcp::{McpInput, refused};
use crate::reply::{InputReply, Reply};
use crate::run::{RunStart, StartedBy};
use crate::session::Session;

/// The answer to a prompt during a requested compaction or branch summary.
pub(crate) const COMPACTING: &str =
    "Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry.";

/// The answer to an input that was aborted while extensions handled it.
pub(crate) const ABORTED: &str = "Aborted before the prompt was started";

/// A text on its way to the model.
pub(crate) struct Input {
    pub content: UserInput,
    pub source: InputSource,
    pub slash_names: SlashNames,
    pub target: InputTarget,
}

/// A slash command of an extension, with its arguments.
pub(crate) struct ExtensionCommand {
    pub handle: ExtensionHandle,
    pub name: String,
    pub args: String,
}

/// What an input is for, and who gets the answer.
pub(crate) enum InputTarget {
    /// Starts a run, or joins a queue as its `streamingBehavior` says.
    Prompt {
        behavior: Option<StreamingBehavior>,
        locale: Option<String>,
        traceparent: Option<String>,
        reply: Reply<Prompt>,
    },
    Queue {
        queue: Queue,
        reply: InputReply,
    },
    /// Starts a run once everything has stopped.
    AfterAbort(Reply<AbortAndPrompt>),
}

/// What a prompt says beside its text.
struct PromptWish {
    behavior: Option<StreamingBehavior>,
    locale: Option<String>,
    traceparent: Option<String>,
    slash_names: SlashNames,
}

/// Who wrote an input, as `input` handlers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputSource {
    Host,
    Extension,
}

/// Whether `/name` in a text is replaced by the skill or template of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlashNames {
    Expanded,
    Literal,
}

impl Input {
    fn of_host(content: UserInput, target: InputTarget) -> Self {
        Input { content, source: InputSource::Host, slash_names: SlashNames::Expanded, target }
    }
}

impl InputTarget {
    fn into_reply(self) -> InputReply {
        match self {
            InputTarget::Prompt { reply, .. } => InputReply::Prompt(reply),
            InputTarget::Queue { reply, .. } => reply,
            InputTarget::AfterAbort(reply) => InputReply::AbortAndPrompt(reply),
        }
    }
}

impl Session {
    pub(crate) fn prompt(&mut self, call: Prompt, reply: Reply<Prompt>) {
        match self.extension_command(&call.message) {
            Some(command) => self.run_extension_command(command, InputReply::Prompt(reply)),
            None => self.submit_prompt(call, InputSource::Host, SlashNames::Expanded, reply),
        }
    }

    /// The slash command of an extension that a text calls, if it does.
    pub(crate) fn extension_command(&self, text: &str) -> Option<ExtensionCommand> {
        let handle = self.extension_handle()?;
        let text = text.strip_prefix('/')?;
        let (name, args) = text.split_once(' ').unwrap_or((text, ""));
        handle.registry().command(name)?;
        Some(ExtensionCommand { handle: handle.clone(), name: name.to_owned(), args: args.to_owned() })
    }

    /// Takes a prompt that is no slash command of an extension.
    pub(crate) fn submit_prompt(
        &mut self,
        call: Prompt,
        source: InputSource,
        slash_names: SlashNames,
        reply: Reply<Prompt>,
    ) {
        if self.is_only_summarising() {
            return self.answer(reply, Err(CommandError::new(ErrorCode::Compacting, COMPACTING)));
        }
        let Prompt { message: text, images, streaming_behavior: behavior, locale, traceparent } = call;
        let target = InputTarget::Prompt { behavior, locale, traceparent, reply };
        self.submit(Input { content: UserInput { text, images }, source, slash_names, target });
    }

    /// Takes a message for a queue.
    pub(crate) fn submit_queued(&mut self, queue: Queue, content: UserInput, reply: InputReply) {
        if let Some(ExtensionCommand { name, .. }) = self.extension_command(&content.text) {
            let why = format!(
                "Extension command \"/{name}\" cannot be queued. Use prompt() or execute the command when not streaming."
            );
            return reply.send(&mut *self.out, Err(CommandError::new(ErrorCode::NotQueueable, why)));
        }
        self.submit(Input::of_host(content, InputTarget::Queue { queue, reply }));
    }

    pub(crate) fn abort_and_prompt(&mut self, call: AbortAndPrompt, reply: Reply<AbortAndPrompt>) {
        if let Some(command) = self.extension_command(&call.message) {
            return self.run_extension_command(command, InputReply::AbortAndPrompt(reply));
        }
        if self.activity.is_busy() {
            self.stop_activity();
        }
        let content = UserInput { text: call.message, images: call.images };
        self.submit(Input::of_host(content, InputTarget::AfterAbort(reply)));
    }

    /// Stops everything the host has started. Answered once it has stopped.
    pub(crate) fn abort(&mut self, reply: Reply<Abort>) {
        self.abandon_inputs();
        self.abort_dialogs();
        self.when_settled(AfterSettled::Abort(reply));
    }

    /// Whether a requested compaction or branch summary runs, and nothing else.
    pub(crate) fn is_only_summarising(&self) -> bool {
        self.activity.is_busy() && !self.activity.is_working()
    }

    /// Passes an input to `input` handlers, then continues with their result; at once if there are none.
    fn submit(&mut self, input: Input) {
        match self.listeners(EventName::Input) {
            Some(handle) => self.show_to_input_handlers(handle, input),
            None => self.take_input(input),
        }
    }

    /// Called when `input` handlers have returned. There is no verdict if the host has aborted the input.
    pub(super) fn on_input_seen(&mut self, input: Input, verdict: Option<InputVerdict>) {
        let Input { content, source, slash_names, target } = input;
        let content = match verdict {
            None => {
                return target.into_reply().send(&mut *self.out, Err(CommandError::new(ErrorCode::Aborted, ABORTED)));
            }
            Some(InputVerdict::Handled) => {
                return self.answer_handled(target.into_reply());
            }
            Some(InputVerdict::Continue) => content,
            Some(InputVerdict::Transform { text, images }) => {
                UserInput { text, images: images.map_or(content.images, pictures) }
            }
        };
        self.take_input(Input { content, source, slash_names, target });
    }

    /// Lets MCP servers add what an input names, then starts or queues it; at once if it names nothing of them.
    fn take_input(&mut self, input: Input) {
        let expanding = match input.slash_names {
            SlashNames::Expanded => self.expand_by_servers(&input.content.text),
            SlashNames::Literal => None,
        };
        match expanding {
            Some(expanding) => self.begin_abortable_step(|aborted| async move {
                let expanded = tokio::select! {
                    biased;
                    () = aborted.cancelled() => None,
                    expanded = expanding => Some(expanded),
                };
                Step::InputExpanded { input, expanded }
            }),
            None => self.place_input(input),
        }
    }

    /// Called when MCP servers have answered. Nothing has come if the host has aborted the input.
    pub(super) fn on_input_expanded(&mut self, input: Input, expanded: Option<Result<McpInput, String>>) {
        let Input { mut content, source, target, .. } = input;
        let refusal = match expanded {
            Some(Ok(McpInput { text, images })) => {
                content.text = text;
                content.images.extend(images);
                return self.place_input(Input { content, source, slash_names: SlashNames::Literal, target });
            }
            Some(Err(why)) => refused(why),
            None => CommandError::new(ErrorCode::Aborted, ABORTED),
        };
        target.into_reply().send(&mut *self.out, Err(refusal));
    }

    /// Starts or queues an input.
    fn place_input(&mut self, input: Input) {
        let Input { content: UserInput { text, images }, slash_names, target, .. } = input;
        match target {
            InputTarget::Prompt { behavior, locale, traceparent, reply } => {
                let wish = PromptWish { behavior, locale, traceparent, slash_names };
                self.place_prompt(UserInput { text, images }, wish, reply);
            }
            InputTarget::Queue { queue, reply } => {
                let text = self.expand_if(slash_names, text);
                self.enqueue(queue, UserInput { text, images }, reply);
            }
            InputTarget::AfterAbort(reply) => {
                let text = self.expand_if(slash_names, text);
                self.when_settled(AfterSettled::Prompt(reply, UserInput { text, images }));
            }
        }
    }

    fn expand_if(&mut self, slash_names: SlashNames, text: String) -> String {
        match slash_names {
            SlashNames::Expanded => self.expand(text),
            SlashNames::Literal => text,
        }
    }

    fn place_prompt(&mut self, content: UserInput, wish: PromptWish, reply: Reply<Prompt>) {
        let PromptWish { behavior, locale, traceparent, slash_names } = wish;
        if self.is_only_summarising() {
            return self.answer(reply, Err(CommandError::new(ErrorCode::Compacting, COMPACTING)));
        }
        if let Some(Err(problem)) = locale.map(|locale| self.take_locale(&locale, "prompt")) {
            return self.answer(reply, Err(problem));
        }
        let placed = place(self.activity.is_busy(), behavior);
        debug!(target: "pith::command", ?placed, "prompt");
        let placement = match placed {
            Ok(placement) => placement,
            Err(Busy) => return self.answer(reply, Err(CommandError::new(ErrorCode::Busy, self.options.busy_text))),
        };
        if placement == Placement::Start {
            self.reload_stale_files();
        }
        let text = self.expand_if(slash_names, content.text);
        let (content, reply) = (UserInput { text, ..content }, InputReply::Prompt(reply));
        match placement {
            Placement::Start => self.start_prompt(content, traceparent.as_deref(), reply),
            Placement::Queue(queue) => self.enqueue(queue, content, reply),
        }
    }

    /// Answers, then starts the work: the answer precedes every event of the run. Nothing else runs.
    pub(crate) fn start_prompt(&mut self, input: UserInput, traceparent: Option<&str>, reply: InputReply) {
        if self.is_closing {
            return reply.send(&mut *self.out, Err(failure::closing()));
        }
        if let Err(problem) = self.check_limits() {
            self.measure_again();
            return reply.send(&mut *self.out, Err(problem));
        }
        if let Err(problem) = self.models.usable() {
            return reply.send(&mut *self.out, Err(problem));
        }
        if let Err(error) = self.store.lock() {
            return reply.send(&mut *self.out, Err(error.into()));
        }
        self.flush_deferred();
        self.record_level_of_branch();
        self.record_tools();
        let accepted = self.accepted_prompt(&reply);
        self.todos.begin_prompt();
        // An acknowledged prompt must survive a crash; its message is written only when the run has begun.
        let id = self.store.accept_input(InputKind::Prompt, &input.text, &input.images);
        self.report_store();
        reply.send(&mut *self.out, Ok(PromptDisposition { disposition: Disposition::Started }));
        let is_shown = self.listeners(EventName::BeforeAgentStart).is_some();
        let prompted = is_shown.then(|| StartedBy::Prompt(input.clone()));
        let message = UserMessage::new(input.text, input.images, now_ms());
        let message = UserMessage { attribution: self.options.attribution.map(str::to_owned), ..message };
        let mut prompts = vec![Arc::new(Message::User(message))];
        prompts.extend(self.queues.deferred.take_for_prompt());
        let start = RunStart { opening: Opening::Prompts(prompts), prompted, input: Some(id) };
        self.begin_allowance();
        let work = self.begin_work(Work { accepted, ..Work::default() }, traceparent);
        self.compact_or_start(work, start);
    }

    fn enqueue(&mut self, queue: Queue, input: UserInput, reply: InputReply) {
        let kind = match queue {
            Queue::Steering => InputKind::Steer,
            Queue::FollowUp => InputKind::FollowUp,
        };
        // An acknowledged input must survive a crash.
        let id = self.store.accept_input(kind, &input.text, &input.images);
        self.report_store();
        self.queues.push(queue, input, id, &mut *self.out);
        reply.send(&mut *self.out, Ok(PromptDisposition { disposition: Disposition::Queued }));
    }
}

impl Session {
    /// Queues what an earlier process had accepted but not delivered when it died. It goes to the model with the next
    /// prompt.
    pub(crate) fn resume_inputs(&mut self) {
        for left in self.store.take_orphaned_inputs() {
            let queue = match left.kind {
                InputKind::Steer => Queue::Steering,
                InputKind::Prompt | InputKind::FollowUp => Queue::FollowUp,
            };
            self.queues.push(queue, UserInput { text: left.text, images: left.images }, left.id, &mut *self.out);
        }
    }

    pub(crate) fn clear_queue(&mut self, reply: Reply<ClearQueue>) {
        let (removed, inputs) = self.queues.clear(&mut *self.out);
        inputs.into_iter().for_each(|input| self.store.input_done(input));
        self.answer(reply, Ok(removed));
    }
}

/// The images among the blocks.
pub(crate) fn pictures(blocks: Vec<Block>) -> Vec<ImageBlock> {
    let image = |block| match block {
        Block::Image(image) => Some(image),
        _ => None,
    };
    blocks.into_iter().filter_map(image).collect()
}
