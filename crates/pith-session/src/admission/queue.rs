//! The steering and follow-up queues. Items are identified by position, not by text.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use pith_agent::Queue;
use pith_protocol::answers;
use pith_protocol::{CustomMessage, Event, ImageBlock, Message, QueueMode, UserMessage};
use pith_store::InputId;

use super::deferred::DeferredMessages;
use crate::outbox::Outbox;

/// The messages that wait for a run.
pub(crate) struct Queues {
    steering: MessageQueue,
    follow_up: MessageQueue,
    pub deferred: DeferredMessages,
}

struct MessageQueue {
    items: VecDeque<Queued>,
    /// Texts the run has taken whose messages have not begun yet; hosts still see them as queued.
    leaving: VecDeque<String>,
    mode: QueueMode,
}

/// A user's message that was accepted and not yet delivered.
#[derive(Clone, Debug)]
pub(crate) struct UserInput {
    pub text: String,
    pub images: Vec<ImageBlock>,
}

/// One item of a queue.
pub(crate) enum Queued {
    /// A user's input; the store keeps a record of it until it is an entry.
    User(UserInput, InputId),
    /// A message of an extension. Hosts do not see it as queued.
    Custom(CustomMessage),
}

impl Queued {
    /// Makes the message that enters the history; a user's gets the time of delivery.
    pub fn into_message(self, attribution: Option<&str>) -> Arc<Message> {
        match self {
            Queued::User(UserInput { text, images }, _) => {
                let message = UserMessage::new(text, images, pith_agent::now_ms());
                Arc::new(Message::User(UserMessage { attribution: attribution.map(str::to_owned), ..message }))
            }
            Queued::Custom(message) => Arc::new(Message::Custom(message)),
        }
    }

    /// The store's id of a user's input.
    pub fn input(&self) -> Option<InputId> {
        match self {
            Queued::User(_, id) => Some(*id),
            Queued::Custom(_) => None,
        }
    }

    /// The text hosts see as queued.
    fn text(&self) -> Option<&String> {
        match self {
            Queued::User(input, _) => Some(&input.text),
            Queued::Custom(_) => None,
        }
    }
}

impl MessageQueue {
    fn texts(&self) -> impl Iterator<Item = &String> {
        self.leaving.iter().chain(self.items.iter().filter_map(Queued::text))
    }
}

impl Queues {
    pub fn new(steering: QueueMode, follow_up: QueueMode) -> Self {
        let queued = |mode| MessageQueue { items: VecDeque::new(), leaving: VecDeque::new(), mode };
        Queues { steering: queued(steering), follow_up: queued(follow_up), deferred: DeferredMessages::default() }
    }

    pub fn push(&mut self, queue: Queue, input: UserInput, id: InputId, out: &mut dyn Outbox) {
        self.queue_mut(queue).items.push_back(Queued::User(input, id));
        self.announce(out);
    }

    /// Queues a message of an extension; hosts are not told.
    pub fn push_custom(&mut self, queue: Queue, message: CustomMessage) {
        self.queue_mut(queue).items.push_back(Queued::Custom(message));
    }

    /// Takes as many items as the mode allows. Hosts are told message by message, see [`Queues::delivered`].
    pub fn take(&mut self, queue: Queue) -> Vec<Queued> {
        let queued = self.queue_mut(queue);
        let n_taken = match queued.mode {
            QueueMode::All => queued.items.len(),
            QueueMode::OneAtATime => queued.items.len().min(1),
        };
        let taken: Vec<_> = queued.items.drain(..n_taken).collect();
        queued.leaving.extend(taken.iter().filter_map(Queued::text).cloned());
        taken
    }

    /// Called when a user message begins. If it was queued, it leaves the queue now.
    pub fn delivered(&mut self, out: &mut dyn Outbox) {
        let left = self.steering.leaving.pop_front().or_else(|| self.follow_up.leaving.pop_front());
        if left.is_some() {
            self.announce(out);
        }
    }

    /// Empties both queues. Returns the texts, and the inputs that will not be delivered.
    pub fn clear(&mut self, out: &mut dyn Outbox) -> (answers::Queues, Vec<InputId>) {
        let inputs = self.items().filter_map(Queued::input).collect();
        let texts =
            |queued: &mut MessageQueue| queued.items.drain(..).filter_map(|item| item.text().cloned()).collect();
        let removed = answers::Queues { steering: texts(&mut self.steering), follow_up: texts(&mut self.follow_up) };
        self.announce(out);
        (removed, inputs)
    }

    /// Empties both queues because the session is being replaced; hosts are told if they saw something queued. Returns
    /// the inputs that will not be delivered.
    pub fn forget(&mut self, out: &mut dyn Outbox) -> Vec<InputId> {
        let n_shown = self.len();
        let inputs = self.items().filter_map(Queued::input).collect();
        for queued in [&mut self.steering, &mut self.follow_up] {
            queued.items.clear();
            queued.leaving.clear();
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
        [&self.steering, &self.follow_up].into_iter().map(|queued| queued.texts().count()).sum()
    }

    /// The queued items, steering first.
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
        self.queue_mut(queue).mode = mode;
    }

    fn queue_mut(&mut self, queue: Queue) -> &mut MessageQueue {
        match queue {
            Queue::Steering => &mut self.steering,
            Queue::FollowUp => &mut self.follow_up,
        }
    }

    fn announce<'a>(&'a self, out: &mut dyn Outbox) {
        let texts = |queued: &'a MessageQueue| queued.texts().map(|text| Cow::Borrowed(text.as_str())).collect();
        out.event(&Event::QueueUpdate { steering: texts(&self.steering), follow_up: texts(&self.follow_up) });
    }
}
