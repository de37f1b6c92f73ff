//! The frame queue and the thread that empties it.
//!
//! Frames of all producers pass through one ordered buffer. Above its bound,
//! deltas of one block merge and tool progress keeps only the newest; when that
//! does not help the run is suspended until the host has caught up.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use pith_protocol::live::{Delta, LiveMessage};
use pith_session::Room;

/// Bytes of frames kept for a host that does not read.
pub const LIMIT: usize = 8 << 20;
/// Most bytes handed to one write.
const PIECE: usize = 1 << 20;

/// Producer side and writer side of the queue.
#[derive(Default)]
pub struct FrameQueue {
    state: Mutex<State>,
    /// Wakes the writer.
    filled: Condvar,
    room: Room,
}

#[derive(Default)]
struct State {
    /// Encoded lines in wire order.
    pending: Vec<u8>,
    /// Bytes the writer has taken and not yet written.
    in_flight: usize,
    /// What may still be merged with its successor; comes after `pending`.
    tail: Tail,
    /// The answer being streamed; merged deltas show its newest state.
    live: Option<LiveMessage>,
    is_closed: bool,
    is_broken: bool,
}

#[derive(Default)]
enum Tail {
    #[default]
    None,
    Delta(Delta),
    ToolUpdate {
        call: String,
        line: Vec<u8>,
    },
}

impl FrameQueue {
    /// Starts the writer. `on_broken` is called once when the host has closed its end.
    pub fn start(
        sink: impl Write + Send + 'static,
        on_broken: impl FnOnce() + Send + 'static,
    ) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let queue = Arc::new(FrameQueue::default());
        let shared = queue.clone();
        let writer = std::thread::Builder::new().name("stdout".to_owned()).spawn(move || {
            if shared.write_all(sink).is_err() {
                on_broken();
            }
        })?;
        Ok((queue, writer))
    }

    /// Tells runs when to wait.
    pub fn room(&self) -> Room {
        self.room.clone()
    }

    /// Queues one line; `encode` must not write the newline.
    pub fn push(&self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        state.settle_tail();
        state.append(encode);
        self.publish(&state);
    }

    /// Queues tool progress; a newer report of the same call replaces one not yet sent.
    pub fn push_tool_update(&self, call: &str, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        if state.is_full() {
            if !matches!(&state.tail, Tail::ToolUpdate { call: held, .. } if held == call) {
                state.settle_tail();
            }
            let mut line = Vec::new();
            encode(&mut line);
            state.tail = Tail::ToolUpdate { call: call.to_owned(), line };
        } else {
            state.settle_tail();
            state.append(encode);
        }
        self.publish(&state);
    }

    /// Opens the answer whose growth `push_stream` reports.
    pub fn open_answer(&self, live: LiveMessage, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        state.settle_tail();
        state.live = Some(live);
        state.append(encode);
        self.publish(&state);
    }

    /// Queues a piece of the open answer.
    pub fn push_stream(&self, event: &pith_protocol::AssistantEvent) {
        let mut state = self.lock();
        // What is held back shows the answer as it was before this event, unless the event only adds to it.
        if !state.merges(event) {
            state.settle_tail();
        }
        let Some(mut live) = state.live.take() else { return };
        let delta = live.fold(event);
        match delta {
            Some(delta) if state.is_full() || state.holds_delta() => state.merge(delta),
            Some(delta) => state.append(|out| live.append_delta_frame(&delta, out)),
            None => state.append(|out| live.append_event_frame(event, out)),
        }
        state.live = Some(live);
        if !state.is_full() {
            state.settle_tail();
        }
        self.publish(&state);
    }

    /// Ends the stream: the writer sends what is left and stops.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_one();
    }

    fn publish(&self, state: &MutexGuard<'_, State>) {
        if state.must_wait() && !state.is_broken {
            self.room.close();
        }
        self.filled.notify_one();
    }

    fn write_all(&self, mut sink: impl Write) -> io::Result<()> {
        while let Some(batch) = self.take() {
            for piece in batch.chunks(PIECE) {
                if let Err(error) = sink.write_all(piece) {
                    self.give_up();
                    return Err(error);
                }
                let mut state = self.lock();
                state.in_flight -= piece.len();
                if !state.must_wait() {
                    self.room.open();
                }
            }
        }
        sink.flush()
    }

    /// The next batch of whole lines; `None` when closed and empty.
    fn take(&self) -> Option<Vec<u8>> {
        let mut state = self.lock();
        loop {
            if state.pending.is_empty() {
                state.settle_tail();
            }
            if !state.pending.is_empty() {
                let batch = std::mem::take(&mut state.pending);
                state.in_flight = batch.len();
                return Some(batch);
            }
            if state.is_closed {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nobody reads any more: frames are dropped and nobody waits.
    fn give_up(&self) {
        let mut state = self.lock();
        *state = State { is_closed: true, is_broken: true, ..State::default() };
        self.room.open();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn append(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        if self.is_broken {
            return;
        }
        let before = self.pending.len();
        encode(&mut self.pending);
        if self.pending.len() > before {
            self.pending.push(b'\n');
        }
    }

    fn is_full(&self) -> bool {
        self.pending.len() + self.in_flight > LIMIT
    }

    /// Full, and not even merging keeps the queue from growing.
    fn must_wait(&self) -> bool {
        match &self.tail {
            Tail::Delta(delta) => delta.escaped.len() > LIMIT,
            Tail::None | Tail::ToolUpdate { .. } => self.is_full(),
        }
    }

    fn merges(&self, event: &pith_protocol::AssistantEvent) -> bool {
        use pith_protocol::AssistantEvent::{TextDelta, ThinkingDelta, ToolCallDelta};
        use pith_protocol::live::Kind;
        let Tail::Delta(held) = &self.tail else { return false };
        match event {
            TextDelta { index, .. } => held.kind == Kind::Text && held.index == *index,
            ThinkingDelta { index, .. } => held.kind == Kind::Thinking && held.index == *index,
            ToolCallDelta { index, .. } => held.kind == Kind::ToolCall && held.index == *index,
            _ => false,
        }
    }

    fn holds_delta(&self) -> bool {
        matches!(self.tail, Tail::Delta(_))
    }

    fn merge(&mut self, delta: Delta) {
        match &mut self.tail {
            Tail::Delta(held) => held.escaped.extend_from_slice(&delta.escaped),
            other => *other = Tail::Delta(delta),
        }
    }

    /// Turns what could still be merged into a line.
    fn settle_tail(&mut self) {
        match std::mem::take(&mut self.tail) {
            Tail::None => {}
            Tail::ToolUpdate { line, .. } => self.append(|out| out.extend_from_slice(&line)),
            Tail::Delta(delta) => {
                if let Some(live) = self.live.take() {
                    self.append(|out| live.append_delta_frame(&delta, out));
                    self.live = Some(live);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::{AssistantEvent, AssistantMessage, StreamUpdates};
    use std::sync::mpsc;

    /// Writes only as fast as it is allowed to.
    struct Slow {
        tickets: mpsc::Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.tickets.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.written.lock().expect("lock").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn deltas(mode: StreamUpdates, n_deltas: usize) -> (usize, String, String) {
        let (ticket, tickets) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let (queue, writer) = FrameQueue::start(Slow { tickets, written: written.clone() }, || {}).expect("threads");
        let start = AssistantMessage::default();
        queue.open_answer(LiveMessage::new(mode, &start), |out| out.extend_from_slice(b"{}"));
        queue.push_stream(&AssistantEvent::TextStart { index: 0 });
        let mut whole = String::new();
        for number in 0..n_deltas {
            let delta = format!("{number} ").repeat(500);
            whole.push_str(&delta);
            queue.push_stream(&AssistantEvent::TextDelta { index: 0, delta });
            if number % 7 == 0 {
                let _ = ticket.send(()); // the host reads a little now and then
            }
        }
        queue.push_stream(&AssistantEvent::TextEnd { index: 0, content: whole.clone(), signature: None });
        queue.close();
        for _ in 0..10_000 {
            let _ = ticket.send(());
        }
        writer.join().expect("the writer ends");
        let written = String::from_utf8(written.lock().expect("lock").clone()).expect("UTF-8");
        let mut told = String::new();
        for line in written.lines() {
            let frame: serde_json::Value = serde_json::from_str(line).expect("whole frames");
            let event = &frame["assistantMessageEvent"];
            if let Some(delta) = event["delta"].as_str() {
                told.push_str(delta);
                if mode == StreamUpdates::Full {
                    assert_eq!(frame["message"]["content"][0]["text"], told.as_str(), "the state at the event");
                }
            }
        }
        (written.lines().count(), told, whole)
    }

    #[test]
    fn merged_deltas_lose_nothing_and_keep_their_order() {
        for mode in [StreamUpdates::Full, StreamUpdates::Delta] {
            let (n_frames, told, whole) = deltas(mode, 300);
            assert!(told == whole, "{mode:?}");
            assert!(mode == StreamUpdates::Delta || n_frames < 300, "{n_frames} frames");
        }
    }
}
