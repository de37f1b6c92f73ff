//! The frame queue and the thread that empties it.
//!
//! Frames of all producers pass through one ordered buffer. Above its limit, deltas of one block or message are merged
//! and only the newest progress and output of each tool call is kept; if that does not help the run is suspended until
//! the host has caught up.

mod backpressure;
mod reports;
mod tail;

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use pith_protocol::live::{Delta, LiveMessage};
use pith_session::Room;

use crate::debug;
pub use backpressure::Backpressure;
use reports::Reports;
use tail::{Chunk, Tail};

/// How many bytes of frames are kept for a host that does not read.
pub const LIMIT: usize = 8 << 20;
/// Above this many bytes no more commands are read, because their answers cannot be dropped. A host may send commands
/// with this much to answer before it reads anything.
pub const READ_LIMIT: usize = 64 << 20;
/// The most bytes passed to one write, so that a slow reader is noticed as reading. As much as a pipe holds.
const MAX_WRITE: usize = 64 << 10;

/// The queue, for producers and the writer.
#[derive(Default)]
pub struct FrameQueue {
    state: Mutex<State>,
    /// Wakes the writer.
    filled: Condvar,
    /// Wakes the reader thread, if it waits.
    changed: Condvar,
    room: Room,
}

#[derive(Default)]
struct State {
    /// Encoded lines in wire order.
    pending: Vec<u8>,
    /// Bytes the writer has taken and not yet written.
    in_flight: usize,
    /// Bytes written so far.
    written: u64,
    /// Text that may still be merged with what follows; comes after `pending`.
    tail: Option<Tail>,
    /// What tool calls reported while the queue was full. Queued when `pending` has been taken, or right before the end
    /// of their call.
    reports: Reports,
    /// The answer being streamed; merged deltas show its newest state.
    live: Option<LiveMessage>,
    is_reader_waiting: bool,
    is_closed: bool,
    is_broken: bool,
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

    /// Returns the signal that tells runs when to wait.
    pub fn room(&self) -> Room {
        self.room.clone()
    }

    /// Queues one line; `encode` must not write the newline.
    pub fn push(&self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        state.queue_tail();
        state.append(encode);
        self.publish(&state);
    }

    /// Queues tool progress; a newer report of the same call replaces one that was not sent yet.
    pub fn push_tool_update(&self, call: &str, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        state.queue_tail();
        if state.is_full() {
            let mut line = Vec::new();
            encode(&mut line);
            state.reports.hold_progress(call, line);
        } else {
            state.reports.take_progress(call);
            state.append(encode);
        }
        self.publish(&state);
    }

    /// Queues the end of a tool call, after the progress of that call that was held back.
    pub fn push_tool_end(&self, call: &str, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        state.queue_tail();
        if let Some(line) = state.reports.take_progress(call) {
            state.append_report(&line);
        }
        state.append(encode);
        self.publish(&state);
    }

    /// Queues what a command has printed. While the queue is full, only the newest of it is kept: a command does not
    /// wait for the host as an answer does.
    pub fn push_output(&self, call: &str, text: &str, encode: impl Fn(&str, &mut Vec<u8>) + Send + 'static) {
        let mut state = self.lock();
        if state.is_full() {
            state.reports.hold_output(call, text, encode);
        } else {
            state.queue_tail();
            if let Some(line) = state.reports.take_output(call) {
                state.append_report(&line);
            }
            state.append(|out| encode(text, out));
        }
        self.publish(&state);
    }

    /// Called before the end of a call is queued: forgets progress that was held back, because the end says more, and
    /// queues output that was held back, because the end does not repeat it.
    pub fn end_progress(&self, call: &str) {
        let mut state = self.lock();
        state.reports.take_progress(call);
        if let Some(line) = state.reports.take_output(call) {
            state.append_report(&line);
        }
        self.publish(&state);
    }

    /// Queues text; while the queue is full, text of the same key that follows is added to the same frame.
    pub fn push_chunk(
        &self,
        key: impl FnOnce() -> String,
        text: &str,
        encode: impl Fn(&str, &mut Vec<u8>) + Send + 'static,
    ) {
        let mut state = self.lock();
        if state.is_full() || state.tail.is_some() {
            state.merge_chunk(key(), text, encode);
        } else {
            state.append(|out| encode(text, out));
        }
        if !state.is_full() {
            state.queue_tail();
        }
        self.publish(&state);
    }

    /// Starts the answer whose pieces `push_stream` queues.
    pub fn open_answer(&self, live: LiveMessage, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        state.queue_tail();
        state.live = Some(live);
        state.append(encode);
        self.publish(&state);
    }

    /// Queues a piece of the current answer.
    pub fn push_stream(&self, event: &pith_protocol::AssistantEvent) {
        let mut state = self.lock();
        // A held back delta shows the answer as it was before this event, so it is queued first unless the event
        // extends it.
        if !state.merges(event) {
            state.queue_tail();
        }
        let Some(mut live) = state.live.take() else { return };
        let delta = live.fold(event);
        match delta {
            Some(delta) if state.is_full() || state.tail.is_some() => state.merge(delta),
            Some(delta) => state.append(|out| live.append_delta_frame(&delta, out)),
            None => state.append(|out| live.append_event_frame(event, out)),
        }
        state.live = Some(live);
        if !state.is_full() {
            state.queue_tail();
        }
        self.publish(&state);
    }

    /// Returns what the reader needs of the queue.
    pub fn backpressure(self: &Arc<Self>) -> Backpressure {
        Backpressure::new(Arc::clone(self))
    }

    /// Ends the stream: the writer sends what is left and stops.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        self.filled.notify_one();
        self.wake_reader(&state);
    }

    fn publish(&self, state: &MutexGuard<'_, State>) {
        if state.must_wait() && !state.is_broken {
            self.room.close();
        }
        self.filled.notify_one();
        self.wake_reader(state);
    }

    fn write_all(&self, mut sink: impl Write) -> io::Result<()> {
        while let Some(batch) = self.take() {
            debug::lines_out(&batch);
            for piece in batch.chunks(MAX_WRITE) {
                if let Err(error) = sink.write_all(piece) {
                    self.give_up();
                    return Err(error);
                }
                let mut state = self.lock();
                state.in_flight -= piece.len();
                state.written += piece.len() as u64;
                if !state.must_wait() {
                    self.room.open();
                }
                self.wake_reader(&state);
            }
        }
        sink.flush()
    }

    /// The next batch of whole lines; `None` when closed and empty.
    fn take(&self) -> Option<Vec<u8>> {
        let mut state = self.lock();
        loop {
            if state.pending.is_empty() {
                state.queue_tail();
                for line in state.reports.take_all() {
                    state.append_report(&line);
                }
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

    /// Called when the host no longer reads: drops all frames and wakes everything that waits.
    fn give_up(&self) {
        let mut state = self.lock();
        let is_reader_waiting = state.is_reader_waiting;
        *state = State { is_closed: true, is_broken: true, is_reader_waiting, ..State::default() };
        self.room.open();
        self.wake_reader(&state);
    }

    fn wake_reader(&self, state: &MutexGuard<'_, State>) {
        if state.is_reader_waiting {
            self.changed.notify_one();
        }
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

    /// Bytes the host has not read.
    fn unread(&self) -> usize {
        self.pending.len() + self.in_flight
    }

    fn is_full(&self) -> bool {
        self.unread() > LIMIT
    }

    fn must_be_read(&self, is_backlogged: impl Fn() -> bool) -> bool {
        self.unread() > READ_LIMIT || (self.is_full() && is_backlogged())
    }

    /// Whether the queue is full and not even merging keeps it from growing.
    fn must_wait(&self) -> bool {
        match &self.tail {
            Some(tail) => tail.len() > LIMIT,
            None => self.is_full(),
        }
    }

    fn merges(&self, event: &pith_protocol::AssistantEvent) -> bool {
        use pith_protocol::AssistantEvent::{TextDelta, ThinkingDelta, ToolCallDelta};
        use pith_protocol::live::Kind;
        let Some(Tail::Delta(held)) = &self.tail else { return false };
        match event {
            TextDelta { index, .. } => held.kind == Kind::Text && held.index == *index,
            ThinkingDelta { index, .. } => held.kind == Kind::Thinking && held.index == *index,
            ToolCallDelta { index, .. } => held.kind == Kind::ToolCall && held.index == *index,
            _ => false,
        }
    }

    fn merge(&mut self, delta: Delta) {
        if let Some(Tail::Delta(held)) = &mut self.tail {
            held.escaped.extend_from_slice(&delta.escaped);
        } else {
            self.tail = Some(Tail::Delta(delta));
        }
    }

    fn merge_chunk(&mut self, key: String, text: &str, encode: impl Fn(&str, &mut Vec<u8>) + Send + 'static) {
        match &mut self.tail {
            Some(Tail::Chunk(held)) if held.key == key => held.text.push_str(text),
            // Two that take turns, as sessions that stream at once, would never merge and never wait.
            Some(_) => {
                self.queue_tail();
                self.append(|out| encode(text, out));
            }
            None => self.tail = Some(Tail::Chunk(Chunk { key, text: text.to_owned(), encode: Box::new(encode) })),
        }
    }

    /// Queues the text that could still be merged.
    fn queue_tail(&mut self) {
        match self.tail.take() {
            None => {}
            Some(Tail::Chunk(chunk)) => self.append(|out| (chunk.encode)(&chunk.text, out)),
            Some(Tail::Delta(delta)) => {
                if let Some(live) = self.live.take() {
                    self.append(|out| live.append_delta_frame(&delta, out));
                    self.live = Some(live);
                }
            }
        }
    }

    /// Queues a report that was held back.
    fn append_report(&mut self, line: &[u8]) {
        self.queue_tail();
        self.append(|out| out.extend_from_slice(line));
    }
}

#[cfg(test)]
mod tests;
