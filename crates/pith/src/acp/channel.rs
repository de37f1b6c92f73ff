//! The way from one session to its editor.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pith_acp::acp::{SessionId, SessionNotification, SessionUpdate};
use pith_acp::piece::Piece;
use pith_acp::underway::Underway;
use pith_acp::wire::append_notification;
use pith_session::{Room, short_name};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::dialogs::is_card;
use crate::transport::output::WaitingOutput;
use crate::transport::writer::FrameQueue;
use crate::warn;

/// How long the state of a running tool call is shown before a newer one takes its place.
const PACE: Duration = Duration::from_millis(100);

/// The state of a running tool call that the editor shows.
struct Shown {
    until: Instant,
    /// A newer state, which is sent when it is time.
    newer: Option<SessionUpdate>,
}

/// What waits for the session to be named, or shown.
enum Held {
    Update(Box<SessionUpdate>),
    /// The newest state of a running tool call, by its id.
    Progress(String, Box<SessionUpdate>),
    /// The newest output in the terminal of a tool call, by its id.
    Output(String, WaitingOutput),
    Own(&'static str, Value),
}

/// Holds updates of a session back until it is dropped.
pub struct Hold(Arc<Channel>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Sends updates about one session.
pub struct Channel {
    id: SessionId,
    queue: Arc<FrameQueue>,
    /// Updates that wait for the answer that names the session, because editors drop those of sessions they do not
    /// know, or for the end of a replay.
    held: Mutex<Option<Vec<Held>>>,
    /// Fired when they no longer wait.
    released: CancellationToken,
    /// Running tool calls by their ids.
    shown: Mutex<HashMap<String, Shown>>,
    replay: Mutex<ReplayStart>,
}

/// The moment from which on a replay does not show what happens.
#[derive(Default)]
enum ReplayStart {
    #[default]
    Past,
    /// The stored conversation was asked for.
    Expected,
    /// It was read while this was under way.
    Read(Underway),
}

impl Channel {
    /// Creates a channel that holds its updates back until [`Channel::release`].
    pub fn held(id: &str, queue: Arc<FrameQueue>) -> Self {
        Channel {
            id: SessionId::new(id),
            queue,
            held: Mutex::new(Some(Vec::new())),
            released: CancellationToken::new(),
            shown: Mutex::default(),
            replay: Mutex::default(),
        }
    }

    /// Holds back what happens in a session that the editor knows, while it is shown once more.
    pub fn hold(self: &Arc<Self>) -> Hold {
        self.lock().get_or_insert_default();
        Hold(Arc::clone(self))
    }

    /// Called before the stored conversation is asked for, to show it.
    pub fn expect_replay(&self) {
        *self.lock_replay() = ReplayStart::Expected;
    }

    /// Called when the stored conversation was read. If it is to be shown, keeps what is `underway`, and forgets what was
    /// held back: the one or the other has it.
    pub fn conversation_read(&self, underway: impl FnOnce() -> Underway) {
        let mut replay = self.lock_replay();
        if !matches!(*replay, ReplayStart::Expected) {
            return;
        }
        let underway = underway();
        // Output that waits is sent before the replay shows it again.
        underway.calls().for_each(|call| self.queue.end_progress(&self.key(call)));
        if let Some(held) = &mut *self.lock() {
            held.retain(|held| !held.is_replayed());
        }
        *replay = ReplayStart::Read(underway);
    }

    /// Takes what was under way when the stored conversation was read.
    pub fn take_underway(&self) -> Underway {
        match std::mem::take(&mut *self.lock_replay()) {
            ReplayStart::Read(underway) => underway,
            ReplayStart::Past | ReplayStart::Expected => Underway::default(),
        }
    }

    /// Sends an update, in its turn.
    pub fn update(&self, update: SessionUpdate) {
        match &mut *self.lock() {
            Some(held) => held.push(Held::Update(Box::new(update))),
            None => self.send(update),
        }
    }

    /// Sends text in its turn. For a client that has fallen behind, text of one message or terminal becomes one update.
    pub fn text(&self, piece: Piece, text: &str) {
        if let Some(held) = &mut *self.lock() {
            return hold_text(held, &piece, text);
        }
        let (id, key) = (self.id.clone(), piece.clone());
        let encode = move |text: &str, out: &mut Vec<u8>| {
            let notification = SessionNotification::new(id.clone(), piece.update(text));
            append_notification(out, "session/update", &notification);
        };
        match &key {
            Piece::Terminal(call) => self.queue.push_output(&self.key(call), text, encode),
            Piece::Message(_) | Piece::Thought(_) => {
                self.queue.push_chunk(|| format!("{} {}", self.id, key.key()), text, encode);
            }
        }
    }

    /// Sends a notification of pith's own, in its turn; `params` is an object.
    pub fn own(&self, method: &'static str, mut params: Value) {
        params["sessionId"] = self.id.0.as_ref().into();
        match &mut *self.lock() {
            Some(held) => held.push(Held::Own(method, params)),
            None => self.notify(method, &params),
        }
    }

    /// Tells the user on stderr, which all sessions share.
    pub fn warn(&self, text: &str) {
        warn(&format!("pith {}: {text}", short_name(&self.id.0)));
    }

    /// Sends an update at once: part of what the editor waits for.
    pub fn send(&self, update: SessionUpdate) {
        self.queue.push(|out| self.encode(out, update));
    }

    /// Adds an update to those that [`Channel::send_all`] sends.
    pub fn append(&self, frames: &mut Vec<u8>, update: SessionUpdate) {
        if !frames.is_empty() {
            frames.push(b'\n');
        }
        self.encode(frames, update);
    }

    /// Sends updates at once, all together, and leaves none.
    pub fn send_all(&self, frames: &mut Vec<u8>) {
        // Taken here, because a queue whose reader has gone encodes nothing.
        let frames = std::mem::take(frames);
        self.queue.push(|out| out.extend_from_slice(&frames));
    }

    fn encode(&self, out: &mut Vec<u8>, update: SessionUpdate) {
        append_notification(out, "session/update", &SessionNotification::new(self.id.clone(), update));
    }

    fn notify(&self, method: &str, params: &impl Serialize) {
        self.queue.push(|out| append_notification(out, method, params));
    }

    /// Sends the state of a tool call, ten times a second at most: a newer one takes the place of one that waits.
    pub fn progress(self: &Arc<Self>, call: &str, update: SessionUpdate) {
        if let Some(held) = &mut *self.lock() {
            held.retain(|held| !held.is_progress_of(call));
            return held.push(Held::Progress(call.to_owned(), Box::new(update)));
        }
        let (mut calls, now) = (self.lock_shown(), Instant::now());
        let shown = calls.entry(call.to_owned()).or_insert(Shown { until: now, newer: None });
        if now < shown.until {
            let is_first = shown.newer.replace(update).is_none();
            if is_first {
                tokio::spawn(Arc::clone(self).send_newer(call.to_owned(), shown.until));
            }
            return;
        }
        shown.until = now + PACE;
        drop(calls);
        self.send_progress(call, update);
    }

    /// Called before the end of a call is sent: a state that waits is not sent any more.
    pub fn progress_ended(&self, call: &str) {
        if let Some(held) = &mut *self.lock() {
            held.retain(|held| !held.is_progress_of(call));
        }
        self.lock_shown().remove(call);
        self.queue.end_progress(&self.key(call));
    }

    /// Sends the state that waits, when it is time and the call has not ended.
    async fn send_newer(self: Arc<Self>, call: String, at: Instant) {
        tokio::time::sleep_until(at).await;
        let mut calls = self.lock_shown();
        let Some(shown) = calls.get_mut(&call) else { return };
        if let Some(update) = shown.newer.take() {
            shown.until = Instant::now() + PACE;
            self.send_progress(&call, update);
        }
    }

    fn send_progress(&self, call: &str, update: SessionUpdate) {
        self.queue.push_tool_update(&self.key(call), |out| self.encode(out, update));
    }

    /// Names a call so that no other session's is called the same.
    fn key(&self, call: &str) -> String {
        format!("{}/{call}", self.id)
    }

    /// Called after the session was named: sends what was held back, and from now on everything at once.
    pub fn release(&self) {
        let held = self.lock().take();
        for held in held.into_iter().flatten() {
            match held {
                Held::Update(update) | Held::Progress(_, update) => self.send(*update),
                Held::Output(call, text) => self.send(Piece::Terminal(call).update(&text.into_text())),
                Held::Own(method, params) => self.notify(method, &params),
            }
        }
        self.released.cancel();
    }

    /// Whether the editor knows the session.
    pub fn is_released(&self) -> bool {
        self.released.is_cancelled()
    }

    /// Waits until the editor knows the session.
    pub async fn released(&self) {
        self.released.cancelled().await;
    }

    /// The signal that tells runs to wait while the editor has fallen behind.
    pub fn room(&self) -> Room {
        self.queue.room()
    }

    fn lock_replay(&self) -> MutexGuard<'_, ReplayStart> {
        self.replay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_shown(&self) -> MutexGuard<'_, HashMap<String, Shown>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Held>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Whether a replay shows it.
    fn is_replayed(&self) -> bool {
        match self {
            Held::Update(update) => match &**update {
                SessionUpdate::UserMessageChunk(chunk)
                | SessionUpdate::AgentMessageChunk(chunk)
                | SessionUpdate::AgentThoughtChunk(chunk) => chunk.message_id.is_some(),
                SessionUpdate::ToolCall(call) => !is_card(&call.tool_call_id),
                SessionUpdate::ToolCallUpdate(update) => !is_card(&update.tool_call_id),
                SessionUpdate::UsageUpdate(_) | SessionUpdate::SessionInfoUpdate(_) => true,
                _ => false,
            },
            Held::Progress(..) | Held::Output(..) => true,
            Held::Own(..) => false,
        }
    }

    fn is_progress_of(&self, id: &str) -> bool {
        matches!(self, Held::Progress(call, _) if call == id)
    }
}

/// Holds text back. Output of a command is added to what is held of it already, since the start of its call is there
/// before it and its end is not there yet.
fn hold_text(held: &mut Vec<Held>, piece: &Piece, text: &str) {
    let Piece::Terminal(id) = piece else { return held.push(Held::Update(Box::new(piece.update(text)))) };
    let known = held.iter_mut().find_map(|held| match held {
        Held::Output(call, output) if call == id => Some(output),
        _ => None,
    });
    match known {
        Some(output) => output.add(text),
        None => {
            let mut output = WaitingOutput::default();
            output.add(text);
            held.push(Held::Output(id.clone(), output));
        }
    }
}

#[cfg(test)]
mod tests {
    use pith_acp::acp::{ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields};

    use super::*;
    use crate::acp::tests::Frames;
    use crate::transport::writer::LIMIT;

    fn state(title: &str) -> SessionUpdate {
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new("c", ToolCallUpdateFields::new().title(title.to_owned())))
    }

    #[test]
    fn what_happens_while_a_session_is_shown_follows() {
        let frames = Frames::default();
        let (queue, writer) = frames.queue();
        let channel = Arc::new(Channel::held("s", queue.clone()));
        channel.update(state("2"));
        channel.send(state("1"));
        channel.release();
        let hold = channel.hold();
        channel.update(state("4"));
        channel.send(state("3"));
        drop(hold);
        channel.update(state("5"));
        let told = frames.written(&queue, writer);
        let titles: Vec<_> = told.iter().map(|frame| frame["params"]["update"]["title"].as_str()).collect();
        assert_eq!(titles, ["1", "2", "3", "4", "5"].map(Some));
    }

    #[tokio::test]
    async fn an_editor_that_does_not_read_gets_less_and_the_same_in_the_end() {
        let frames = Frames::default();
        let (queue, writer) = frames.queue();
        let channels = ["s", "t"].map(|id| Arc::new(Channel::held(id, queue.clone())));
        channels.iter().for_each(|channel| channel.release());
        let stalled = frames.stall();
        queue.push(|out| append_notification(out, "large", &"x".repeat(LIMIT)));
        let answer = || Piece::Message(Some("m".into()));
        for number in 0..50 {
            channels[0].text(answer(), &number.to_string());
        }
        channels[0].text(Piece::Terminal("c".to_owned()), "out");
        channels[0].progress("c", state("a state that is over"));
        channels[0].progress_ended("c");
        channels[0].update(state("the end"));
        channels[1].text(answer(), "of another session");
        drop(stalled);
        let told = frames.written(&queue, writer);
        let texts: Vec<_> = told[1..]
            .iter()
            .map(|frame| {
                let update = &frame["params"]["update"];
                let data = &update["_meta"]["terminal_output"]["data"];
                [&update["content"]["text"], &update["title"], data].into_iter().find_map(Value::as_str)
            })
            .collect();
        let answer: String = (0..50).map(|number| number.to_string()).collect();
        assert_eq!(texts, [answer.as_str(), "out", "the end", "of another session"].map(Some));
    }

    #[test]
    fn updates_for_an_editor_that_has_gone_do_not_accumulate() {
        /// A pipe that nobody reads.
        struct Broken;
        impl std::io::Write for Broken {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (queue, writer) = FrameQueue::start(Broken, || {}).expect("a thread");
        let channel = Channel::held("s", queue);
        channel.send(state("noticed"));
        writer.join().expect("the writer ends");
        let mut frames = Vec::new();
        channel.append(&mut frames, state("lost"));
        channel.send_all(&mut frames);
        assert!(frames.is_empty());
    }

    #[tokio::test]
    async fn output_of_commands_does_not_accumulate_for_an_editor_that_does_not_read() {
        let frames = Frames::default();
        let (queue, writer) = frames.queue();
        let channel = Arc::new(Channel::held("s", queue.clone()));
        let commands = ["a", "b", "c"];
        // Each prints 20 MB: some while the session is shown, the rest to an editor that has stopped reading.
        let print = |n_lines: usize| {
            for number in 0..n_lines {
                for command in commands {
                    let line = format!("{number} of {command} {}\n", "x".repeat(1000));
                    channel.text(Piece::Terminal(command.to_owned()), &line);
                }
            }
        };
        print(10_000);
        channel.progress("a", state("older"));
        channel.progress("a", state("newer"));
        channel.release();
        let stalled = frames.stall();
        queue.push(|out| append_notification(out, "large", &"x".repeat(LIMIT)));
        print(10_000);
        for command in commands {
            channel.text(Piece::Terminal(command.to_owned()), &format!("last of {command}"));
            channel.progress_ended(command);
        }
        drop(stalled);
        let told = frames.written(&queue, writer);
        assert!(told.iter().any(|frame| frame["params"]["update"]["title"] == "newer"));
        assert!(!told.iter().any(|frame| frame["params"]["update"]["title"] == "older"));
        for command in commands {
            let output = |frame: &Value| {
                let output = &frame["params"]["update"]["_meta"]["terminal_output"];
                output["data"].as_str().filter(|_| output["terminal_id"] == command).map(str::to_owned)
            };
            let outputs: Vec<_> = told.iter().filter_map(output).collect();
            let shown: usize = outputs.iter().map(String::len).sum();
            assert!(shown < 2 << 20, "{command}: {shown}");
            assert_eq!(outputs.iter().filter(|output| output.starts_with("\n[…]\n")).count(), 2, "{command}");
            assert!(outputs.last().is_some_and(|output| output.ends_with(&format!("last of {command}"))), "{command}");
        }
    }

    #[tokio::test]
    async fn a_running_call_is_shown_ten_times_a_second_and_not_after_its_end() {
        let frames = Frames::default();
        let (queue, writer) = frames.queue();
        let channel = Arc::new(Channel::held("s", queue.clone()));
        channel.release();
        let start = Instant::now();
        for n in 0..500 {
            channel.progress("c", state(&format!("{n}")));
        }
        // The newest state is sent although no other follows.
        frames.wait(|told| told["params"]["update"]["title"] == "499").await;
        let n_allowed = start.elapsed().as_millis() / PACE.as_millis() + 1;
        channel.progress("c", state("shown or waiting"));
        channel.progress("c", state("dropped"));
        channel.progress_ended("c");
        let end = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
        channel.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new("c", end)));
        tokio::time::sleep(PACE).await;
        let mut told = frames.written(&queue, writer);
        assert_eq!(told.pop().expect("the end")["params"]["update"]["status"], "completed");
        let of_first = told.iter().filter(|frame| frame["params"]["update"]["title"] != "shown or waiting");
        assert!(of_first.count() as u128 <= n_allowed, "{told:?}");
    }
}
