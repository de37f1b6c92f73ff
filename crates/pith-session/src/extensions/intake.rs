//! Prompts on their way past the extensions: slash commands, then `input` handlers.

use pith_agent::Queue;
use pith_ext::{EventName, InputVerdict};
use pith_protocol::answers::{Disposition, Placed};
use pith_protocol::commands::Prompt;
use pith_protocol::{Block, Call, ImageBlock, StreamingBehavior};

use super::GIVEN_UP;
use crate::intake::Wording;
use crate::queue::Waiting;
use crate::reply::Reply;
use crate::session::Session;

/// Who wrote a prompt, as `input` handlers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Host,
    Extension,
}

/// What became of a text that `input` handlers have seen.
pub(crate) enum Passed {
    /// It goes on, perhaps as another one.
    Through(Waiting),
    /// A handler has dealt with it.
    Handled,
    /// The host aborted before they had decided.
    GivenUp,
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Source::Host => "rpc",
            Source::Extension => "extension",
        }
    }
}

impl Session {
    /// Runs the slash command a text names. Gives everything back if there is none of that name.
    pub(crate) fn run_slash_command<C: Call<Answer = Placed>>(
        &mut self,
        text: &str,
        reply: Reply<C>,
    ) -> Option<Reply<C>> {
        let Some((name, args)) = self.extension_command(text) else { return Some(reply) };
        let Some(handle) = self.extensions.handle().cloned() else { return Some(reply) };
        let (name, args) = (name.to_owned(), args.to_owned());
        self.extensions.n_commands += 1;
        let handled = Ok(Placed { disposition: Disposition::Handled });
        // Where hosts are told of late failures they are not kept waiting either.
        let late = match self.options.tells_late_failures && reply.is_hosts() {
            true => {
                self.answer(reply, handled.clone());
                None
            }
            false => Some(reply),
        };
        self.job(async move {
            handle.run_command(&name, &args).await;
            move |session: &mut Session| {
                session.extensions.n_commands -= 1;
                if let Some(reply) = late {
                    session.answer(reply, handled);
                }
            }
        });
        None
    }

    /// The extension command a text names, and its arguments.
    pub(crate) fn extension_command<'a>(&self, text: &'a str) -> Option<(&'a str, &'a str)> {
        let text = text.strip_prefix('/')?;
        let (name, args) = text.split_once(' ').unwrap_or((text, ""));
        self.extensions.handle()?.registry().command(name).map(|_| (name, args))
    }

    /// Lets `input` handlers see a text, then goes on with what they made of it; at once if nobody listens.
    pub(crate) fn pass_input<T>(&mut self, item: Waiting, source: Source, behavior: Option<StreamingBehavior>, then: T)
    where
        T: FnOnce(&mut Session, Passed) + Send + 'static,
    {
        let Some(handle) = self.listeners(EventName::Input) else { return then(self, Passed::Through(item)) };
        let behavior = behavior.map(|behavior| match behavior {
            StreamingBehavior::Steer => "steer",
            StreamingBehavior::FollowUp => "followUp",
        });
        self.abortable_step(|give_up| async move {
            let images: Vec<Block> = item.images.iter().cloned().map(Block::Image).collect();
            let verdict = tokio::select! {
                biased;
                () = give_up.cancelled() => None,
                verdict = handle.input(&item.text, &images, source.as_str(), behavior) => Some(verdict),
            };
            let passed = match verdict {
                None => Passed::GivenUp,
                Some(InputVerdict::Handled) => Passed::Handled,
                Some(InputVerdict::Continue) => Passed::Through(item),
                Some(InputVerdict::Transform { text, images }) => {
                    Passed::Through(Waiting { text, images: images.map_or(item.images, pictures) })
                }
            };
            // An abort may have come while the verdict was on its way.
            move |session: &mut Session| match give_up.is_cancelled() {
                true => then(session, Passed::GivenUp),
                false => then(session, passed),
            }
        });
    }

    /// A message for a queue, past the `input` handlers.
    pub(crate) fn enqueue_input<C: Call<Answer = Placed>>(
        &mut self,
        queue: Queue,
        item: Waiting,
        source: Source,
        reply: Reply<C>,
    ) {
        if let Some((name, _)) = self.extension_command(&item.text) {
            let why = format!(
                "Extension command \"/{name}\" cannot be queued. Use prompt() or execute the command when not streaming."
            );
            return self.answer(reply, Err(why));
        }
        let behavior = match queue {
            Queue::Steering => StreamingBehavior::Steer,
            Queue::FollowUp => StreamingBehavior::FollowUp,
        };
        self.pass_input(item, source, Some(behavior), move |session, passed| match passed {
            Passed::Through(Waiting { text, images }) => {
                let item = Waiting { text: session.expand(text), images };
                session.enqueue(queue, item, reply);
            }
            Passed::Handled => session.answer(reply, Ok(Placed { disposition: Disposition::Handled })),
            Passed::GivenUp => session.answer(reply, Err(GIVEN_UP.to_owned())),
        });
    }

    /// A prompt, past everything extensions may do with it.
    pub(crate) fn prompt_input(&mut self, call: Prompt, reply: Reply<Prompt>) {
        let Some(reply) = self.run_slash_command(&call.message, reply) else { return };
        self.pass_prompt(call, Source::Host, Wording::Expanded, reply);
    }

    /// The same for a text that is no slash command.
    pub(super) fn pass_prompt(&mut self, call: Prompt, source: Source, wording: Wording, reply: Reply<Prompt>) {
        if self.is_compacting_only() {
            return self.answer(reply, Err(crate::intake::COMPACTING.to_owned()));
        }
        let behavior = call.streaming_behavior.filter(|_| self.is_streaming());
        let Prompt { message, images, streaming_behavior, locale } = call;
        let item = Waiting { text: message, images };
        self.pass_input(item, source, behavior, move |session, passed| match passed {
            Passed::Through(Waiting { text, images }) => {
                session.prompt(Prompt { message: text, images, streaming_behavior, locale }, wording, reply);
            }
            Passed::Handled => session.answer(reply, Ok(Placed { disposition: Disposition::Handled })),
            Passed::GivenUp => session.answer(reply, Err(GIVEN_UP.to_owned())),
        });
    }
}

pub(super) fn pictures(blocks: Vec<Block>) -> Vec<ImageBlock> {
    let image = |block| match block {
        Block::Image(image) => Some(image),
        _ => None,
    };
    blocks.into_iter().filter_map(image).collect()
}
