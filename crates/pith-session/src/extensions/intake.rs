//! Prompts on their way past the extensions: slash commands, then `input` handlers.

use pith_agent::Queue;
use pith_ext::{EventName, InputVerdict};
use pith_protocol::answers::{Disposition, Placed};
use pith_protocol::commands::Prompt;
use pith_protocol::{Block, Call, ImageBlock, StreamingBehavior};

use crate::queue::Waiting;
use crate::reply::Reply;
use crate::session::Session;

/// Who wrote a prompt, as `input` handlers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Host,
    #[expect(dead_code, reason = "to be connected")]
    Extension,
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
    /// `None` means that a handler has dealt with it.
    pub(crate) fn pass_input<T>(&mut self, item: Waiting, source: Source, behavior: Option<StreamingBehavior>, then: T)
    where
        T: FnOnce(&mut Session, Option<Waiting>) + Send + 'static,
    {
        let Some(handle) = self.listeners(EventName::Input) else { return then(self, Some(item)) };
        let behavior = behavior.map(|behavior| match behavior {
            StreamingBehavior::Steer => "steer",
            StreamingBehavior::FollowUp => "followUp",
        });
        self.step(async move {
            let images: Vec<Block> = item.images.iter().cloned().map(Block::Image).collect();
            let verdict = handle.input(&item.text, &images, source.as_str(), behavior).await;
            move |session: &mut Session| match verdict {
                InputVerdict::Continue => then(session, Some(item)),
                InputVerdict::Handled => then(session, None),
                InputVerdict::Transform { text, images } => {
                    let images = images.map_or(item.images, pictures);
                    then(session, Some(Waiting { text, images }));
                }
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
        self.pass_input(item, source, Some(behavior), move |session, item| match item {
            Some(item) => session.enqueue(queue, item.text, item.images, reply),
            None => session.answer(reply, Ok(Placed { disposition: Disposition::Handled })),
        });
    }

    /// A prompt, past everything extensions may do with it.
    pub(crate) fn prompt_input(&mut self, call: Prompt, reply: Reply<Prompt>) {
        let Some(reply) = self.run_slash_command(&call.message, reply) else { return };
        if self.is_compacting_only() {
            return self.answer(reply, Err(crate::intake::COMPACTING.to_owned()));
        }
        let behavior = call.streaming_behavior.filter(|_| self.is_streaming());
        let Prompt { message, images, streaming_behavior, locale, .. } = call;
        let item = Waiting { text: message, images };
        self.pass_input(item, Source::Host, behavior, move |session, item| match item {
            Some(Waiting { text, images }) => {
                session.prompt(Prompt { message: text, images, streaming_behavior, locale }, reply);
            }
            None => session.answer(reply, Ok(Placed { disposition: Disposition::Handled })),
        });
    }
}

fn pictures(blocks: Vec<Block>) -> Vec<ImageBlock> {
    let image = |block| match block {
        Block::Image(image) => Some(image),
        _ => None,
    };
    blocks.into_iter().filter_map(image).collect()
}
