//! The steering and follow-up queues. Items are tracked by place, not by text.

use std::collections::VecDeque;
use std::sync::Arc;

use pith_agent::Queue;
use pith_protocol::answers;
use pith_protocol::{CustomMessage, Event, ImageBlock, Message, QueueMode, UserMessage};
use pith_store::InputId;

use super::deferred::DeferredMessages;
use crate::outbox::Outbox;

/// Messages waiting for a run.
pub(crate) struct Queues {
    steering: Line,
    follow_up: Line,
    pub deferred: DeferredMessages,
}

struct Line {
    items: VecDeque<Queued>,
    /// Texts taken by the run whose messages have not begun yet; hosts still see them as queued.
    leaving: VecDeque<String>,
    mode: QueueMode,
}

/// A user's message that was accepted and not yet delivered.
#[derive(Clone, Debug)]
pub(crate) struct UserInput {
    pub text: String,
    pub images: Vec<ImageBlock>,
}

/// One place in a queue.
pub(crate) enum Queued {
    /// Recorded by the store until it is an entry.
    User(UserInput, InputId),
    /// Placed by an extension. Hosts are not shown it as queued.
    Custom(CustomMessage),
}

impl Queued {
    /// The message as it enters the history; a user's is stamped with the time of delivery.
    pub fn into_message(self, attribution: Option<&str>) -> Arc<Message> {
        match self {
            Queued::User(UserInput { text, images }, _) => {
                let message = UserMessage::new(text, images, pith_agent::now_ms());
                Arc::new(Message::User(UserMessage { attribution: attribution.map(str::to_owned), ..message }))
            }
            Queued::Custom(message) => Arc::new(Message::Custom(message)),
        }
    }

    /// The store's name for it, if it is a user's.
    pub fn input(&self) -> Option<InputId> {
        match self {
            Queued::User(_, id) => Some(*id),
            Queued::Custom(_) => None,
        }
    }

    /// What hosts see of it.
    fn text(&self) -> Option<&String> {
        match self {
            Queued::User(input, _) => Some(&input.text),
            Queued::Custom(_) => None,
        }
    }
}

impl Line {
    fn texts(&self) -> impl Iterator<Item = &String> {
        self.leaving.iter().chain(self.items.iter().filter_map(Queued::text))
    }
}

impl Queues {
    pub fn new(steering: QueueMode, follow_up: QueueMode) -> Self {
        let line = |mode| Line { items: VecDeque::new(), leaving: VecDeque::new(), mode };
        Queues { steering: line(steering), follow_up: line(follow_up), deferred: DeferredMessages::default() }
    }

    pub fn push(&mut self, queue: Queue, input: UserInput, id: InputId, out: &mut dyn Outbox) {
        self.line(queue).items.push_back(Queued::User(input, id));
        self.announce(out);
    }

    /// Adds a message of an extension, without a word to hosts.
    pub fn push_custom(&mut self, queue: Queue, message: CustomMessage) {
        self.line(queue).items.push_back(Queued::Custom(message));
    }

    /// Takes what the mode allows. Hosts are told message by message, see [`Queues::delivered`].
    pub fn take(&mut self, queue: Queue) -> Vec<Queued> {
        let line = self.line(queue);
        let n_taken = match line.mode {
            QueueMode::All => line.items.len(),
            QueueMode::OneAtATime => line.items.len().min(1),
        };
        let taken: Vec<_> = line.items.drain(..n_taken).collect();
        line.leaving.extend(taken.iter().filter_map(Queued::text).cloned());
        taken
    }

    /// A user message begins: if it was queued, it has left the queue now.
    pub fn delivered(&mut self, out: &mut dyn Outbox) {
        let left = self.steering.leaving.pop_front().or_else(|| self.follow_up.leaving.pop_front());
        if left.is_some() {
            self.announce(out);
        }
    }

    /// Empties both queues. Returns the texts and the inputs that are not delivered any more.
    pub fn clear(&mut self, out: &mut dyn Outbox) -> (answers::Queues, Vec<InputId>) {
        let inputs = self.items().filter_map(Queued::input).collect();
        let texts = |line: &mut Line| line.items.drain(..).filter_map(|item| item.text().cloned()).collect();
        let removed = answers::Queues { steering: texts(&mut self.steering), follow_up: texts(&mut self.follow_up) };
        self.announce(out);
        (removed, inputs)
    }

    /// Empties both queues because the session they belonged to is gone; hosts that saw something queued are told.
    /// Returns the inputs that are not delivered any more.
    pub fn forget(&mut self, out: &mut dyn Outbox) -> Vec<InputId> {
        let n_shown = self.len();
        let inputs = self.items().filter_map(Queued::input).collect();
        for line in [&mut self.steering, &mut self.follow_up] {
            line.items.clear();
            line.leaving.clear();
        }
        if n_shown > 0 {
            self.announce(out);
        }
        inputs
    }

    pub fn has(&self, queue: Queue) -> bool {
        match queue {
            Queue::Steering => !self.steering.items.is_empty(),
            Queue::FollowUp => !self.follow_up.items.is_empty(),
        }
    }

    /// How many messages hosts see as queued.
    pub fn len(&self) -> usize {
        [&self.steering, &self.follow_up].into_iter().map(|line| line.texts().count()).sum()
    }

    /// What waits, steering first.
    pub fn items(&self) -> impl Iterator<Item = &Queued> {
        self.steering.items.iter().chain(&self.follow_up.items)
    }

    pub fn mode(&self, queue: Queue) -> QueueMode {
        match queue {
            Queue::Steering => self.steering.mode,
            Queue::FollowUp => self.follow_up.mode,
        }
    }

    pub fn set_mode(&mut self, queue: Queue, mode: QueueMode) {
        self.line(queue).mode = mode;
    }

    fn line(&mut self, queue: Queue) -> &mut Line {
        match queue {
            Queue::Steering => &mut self.steering,
            Queue::FollowUp => &mut self.follow_up,
        }
    }

    fn announce<'a>(&'a self, out: &mut dyn Outbox) {
        let texts = |line: &'a Line| -> Vec<&'a str> { line.texts().map(String::as_str).collect() };
        let (steering, follow_up) = (texts(&self.steering), texts(&self.follow_up));
        out.event(&Event::QueueUpdate { steering: &steering, follow_up: &follow_up });
    }
}
