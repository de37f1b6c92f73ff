//! Commands that bring the model something to do, or stop it.

use std::sync::Arc;

use pith_agent::{Opening, Queue, now_ms};
use pith_protocol::answers::{Disposition, Placed};
use pith_protocol::commands::{Abort, AbortAndPrompt, Prompt};
use pith_protocol::{Call, Message, UserMessage};

use crate::activity::Waiter;
use crate::extensions::{CLOSING, GIVEN_UP, Passed, Source};
use crate::prompt::{Busy, Placement, place};
use crate::queue::Waiting;
use crate::reply::Reply;
use crate::session::Session;

pub(crate) const COMPACTING: &str =
    "Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry.";

/// Whether `/name` in a text stands for a skill or a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wording {
    Expanded,
    Literal,
}

impl Session {
    pub(crate) fn prompt(&mut self, call: Prompt, wording: Wording, reply: Reply<Prompt>) {
        if self.is_compacting_only() {
            return self.answer(reply, Err(COMPACTING.to_owned()));
        }
        if let Some(Err(problem)) = call.locale.as_ref().map(|locale| self.take_locale(locale, "prompt")) {
            return self.answer(reply, Err(problem));
        }
        match place(self.activity.is_busy(), call.streaming_behavior) {
            Ok(Placement::Start) => {
                self.freshen();
                let item = Waiting { text: self.worded(call.message, wording), images: call.images };
                self.start_prompt(item, reply);
            }
            Ok(Placement::Queue(queue)) => {
                let item = Waiting { text: self.worded(call.message, wording), images: call.images };
                self.enqueue(queue, item, reply);
            }
            Err(Busy) => self.answer(reply, Err(self.options.busy_text.to_owned())),
        }
    }

    /// A summary is being written that no run waits for.
    pub(crate) fn is_compacting_only(&self) -> bool {
        self.activity.is_busy() && !self.is_streaming()
    }

    /// Answers, then starts: the answer precedes every event of the run.
    fn start_prompt<C: Call<Answer = Placed>>(&mut self, item: Waiting, reply: Reply<C>) {
        if self.is_closing {
            return self.answer(reply, Err(CLOSING.to_owned()));
        }
        if let Err(problem) = self.models.usable() {
            return self.answer(reply, Err(problem));
        }
        self.flush_deferred();
        self.accept(&reply);
        self.todos.begin_prompt();
        self.answer(reply, Ok(Placed { disposition: Disposition::Started }));
        self.note_prompted(&item);
        let message = UserMessage::new(item.text, item.images, now_ms());
        let message = UserMessage { attribution: self.options.attribution.map(str::to_owned), ..message };
        let mut prompts = vec![Arc::new(Message::User(message))];
        prompts.extend(self.extensions.errands.for_next_turn());
        let opening = Opening::Prompts(prompts);
        if let Some(opening) = self.compact_before_prompt(opening) {
            self.start_run(opening);
        }
    }

    pub(crate) fn enqueue<C: Call<Answer = Placed>>(&mut self, queue: Queue, item: Waiting, reply: Reply<C>) {
        self.queues.push(queue, item, &mut *self.out);
        self.answer(reply, Ok(Placed { disposition: Disposition::Queued }));
    }

    fn worded(&mut self, text: String, wording: Wording) -> String {
        match wording {
            Wording::Expanded => self.expand(text),
            Wording::Literal => text,
        }
    }

    pub(crate) fn abort(&mut self, reply: Reply<Abort>) {
        self.give_up_prompts();
        self.when_settled(Waiter::Abort(reply));
    }

    pub(crate) fn abort_and_prompt(&mut self, call: AbortAndPrompt, reply: Reply<AbortAndPrompt>) {
        let Some(reply) = self.run_slash_command(&call.message, reply) else { return };
        if self.activity.is_busy() {
            self.cancel_run();
        }
        let item = Waiting { text: call.message, images: call.images };
        self.pass_input(item, Source::Host, None, move |session, passed| match passed {
            Passed::Through(Waiting { text, images }) => {
                let item = Waiting { text: session.expand(text), images };
                session.when_settled(Waiter::Prompt(reply, item));
            }
            Passed::Handled => session.answer(reply, Ok(Placed { disposition: Disposition::Handled })),
            Passed::GivenUp => session.answer(reply, Err(GIVEN_UP.to_owned())),
        });
    }

    /// Stops the run and serves the waiter when it has stopped; at once if nothing runs.
    pub(crate) fn when_settled(&mut self, waiter: Waiter) {
        self.waiters.push(waiter);
        if self.activity.is_busy() {
            self.cancel_run();
        } else {
            self.serve_waiters();
        }
    }

    /// Carries out what waited, in order. A waiter that starts a run leaves the
    /// rest waiting for that run, which they stop in turn.
    pub(crate) fn serve_waiters(&mut self) {
        while !self.waiters.is_empty() {
            if self.activity.is_busy() {
                return self.cancel_run();
            }
            if self.waiters[0].replaces_session() && self.shell.is_running() {
                // Their records belong to the session that is being left.
                return self.shell.abort_all();
            }
            match self.waiters.remove(0) {
                Waiter::Abort(reply) => self.answer(reply, Ok(())),
                Waiter::Prompt(reply, item) => self.start_prompt(item, reply),
                Waiter::Replace(go) => go(self),
                Waiter::Compact(reply, focus) => self.compact_now(focus, reply),
            }
        }
    }
}
