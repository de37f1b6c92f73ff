//! The steering and follow-up queues. Items are tracked by place, not by text.

use std::collections::VecDeque;
use std::sync::Arc;

use pith_agent::Queue;
use pith_protocol::answers;
use pith_protocol::{Event, ImageBlock, Message, QueueMode, UserMessage};

use crate::outbox::Outbox;

/// Messages waiting for a run.
pub(crate) struct Queues {
    steering: Line,
    follow_up: Line,
}

struct Line {
    items: VecDeque<Waiting>,
    mode: QueueMode,
}

/// A message that was accepted and not yet delivered.
pub(crate) struct Waiting {
    pub text: String,
    pub images: Vec<ImageBlock>,
}

impl Waiting {
    /// The message as it enters the history, stamped with the time of delivery.
    pub fn into_message(self, attribution: Option<&str>) -> Arc<Message> {
        let message = UserMessage::new(self.text, self.images, pith_agent::now_ms());
        Arc::new(Message::User(UserMessage { attribution: attribution.map(str::to_owned), ..message }))
    }
}

impl Queues {
    pub fn new(steering: QueueMode, follow_up: QueueMode) -> Self {
        let line = |mode| Line { items: VecDeque::new(), mode };
        Queues { steering: line(steering), follow_up: line(follow_up) }
    }

    pub fn push(&mut self, queue: Queue, item: Waiting, out: &mut dyn Outbox) {
        self.line(queue).items.push_back(item);
        self.announce(out);
    }

    /// Takes what the mode allows and announces the change, before the delivered messages are.
    pub fn take(&mut self, queue: Queue, out: &mut dyn Outbox) -> Vec<Waiting> {
        let line = self.line(queue);
        let n_taken = match line.mode {
            QueueMode::All => line.items.len(),
            QueueMode::OneAtATime => line.items.len().min(1),
        };
        let taken: Vec<_> = line.items.drain(..n_taken).collect();
        if !taken.is_empty() {
            self.announce(out);
        }
        taken
    }

    /// Empties both queues.
    pub fn clear(&mut self, out: &mut dyn Outbox) -> answers::Queues {
        let texts = |line: &mut Line| line.items.drain(..).map(|item| item.text).collect();
        let removed = answers::Queues { steering: texts(&mut self.steering), follow_up: texts(&mut self.follow_up) };
        self.announce(out);
        removed
    }

    /// Empties both queues without a word: the session they belonged to is gone.
    pub fn forget(&mut self) {
        self.steering.items.clear();
        self.follow_up.items.clear();
    }

    pub fn has(&self, queue: Queue) -> bool {
        match queue {
            Queue::Steering => !self.steering.items.is_empty(),
            Queue::FollowUp => !self.follow_up.items.is_empty(),
        }
    }

    pub fn len(&self) -> usize {
        self.steering.items.len() + self.follow_up.items.len()
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

    fn announce(&self, out: &mut dyn Outbox) {
        let texts = |line: &'_ Line| -> Vec<String> { line.items.iter().map(|item| item.text.clone()).collect() };
        let (steering, follow_up) = (texts(&self.steering), texts(&self.follow_up));
        let steering: Vec<&str> = steering.iter().map(String::as_str).collect();
        let follow_up: Vec<&str> = follow_up.iter().map(String::as_str).collect();
        out.event(&Event::QueueUpdate { steering: &steering, follow_up: &follow_up });
    }
}
