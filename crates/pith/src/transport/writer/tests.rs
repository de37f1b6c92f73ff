//! The queue with a sink that is read slowly, or not at all.

use super::*;
use pith_protocol::{AssistantEvent, AssistantMessage, StreamUpdates};
use std::sync::mpsc;

/// Writes only when it gets a ticket.
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

/// A line about a call, as long as the progress of a busy command.
fn about(call: usize, step: &str) -> impl FnOnce(&mut Vec<u8>) {
    let text = "x".repeat(16 << 10);
    move |out| out.extend_from_slice(format!(r#"{{"call":{call},"step":"{step}","text":"{text}"}}"#).as_bytes())
}

#[test]
fn progress_of_any_number_of_calls_does_not_pile_up() {
    const CALLS: usize = 8;
    const REPORTS: usize = 2_000;
    let (ticket, tickets) = mpsc::channel();
    let written = Arc::new(Mutex::new(Vec::new()));
    let (queue, writer) = FrameQueue::start(Slow { tickets, written: written.clone() }, || {}).expect("threads");
    for call in 0..CALLS {
        queue.push(about(call, "start"));
    }
    for number in 0..REPORTS {
        for call in 0..CALLS {
            queue.push_tool_update(&call.to_string(), about(call, &number.to_string()));
        }
        // Answers to commands come between the reports.
        queue.push(|out| out.extend_from_slice(br#"{"call":null}"#));
    }
    for call in 0..CALLS {
        queue.push_tool_end(&call.to_string(), about(call, "end"));
    }
    queue.close();
    for _ in 0..10_000 {
        let _ = ticket.send(());
    }
    writer.join().expect("the writer ends");
    let written = String::from_utf8(written.lock().expect("lock").clone()).expect("UTF-8");
    assert!(written.len() < LIMIT + (1 << 20), "{} bytes were kept", written.len());
    let frames: Vec<serde_json::Value> =
        written.lines().map(|line| serde_json::from_str(line).expect("whole frames")).collect();
    for call in 0..CALLS {
        let steps: Vec<_> =
            frames.iter().filter(|frame| frame["call"] == call).filter_map(|frame| frame["step"].as_str()).collect();
        let numbers: Vec<usize> = steps.iter().filter_map(|step| step.parse().ok()).collect();
        assert_eq!((steps.first(), steps.last()), (Some(&"start"), Some(&"end")));
        assert_eq!(numbers.len(), steps.len() - 2, "{steps:?}");
        assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.last() == Some(&(REPORTS - 1)), "{numbers:?}");
    }
}

/// A queue with more unread answers than a host may have, and the sender that lets one piece of them pass.
fn overfull() -> (Arc<FrameQueue>, JoinHandle<()>, mpsc::Sender<()>) {
    let (ticket, tickets) = mpsc::channel();
    let (queue, writer) = FrameQueue::start(Slow { tickets, written: Arc::default() }, || {}).expect("threads");
    queue.push(|out| out.resize(READ_LIMIT + MAX_WRITE, b'x'));
    (queue, writer, ticket)
}

#[test]
fn no_more_commands_are_taken_before_the_host_has_read() {
    let (queue, _writer, ticket) = overfull();
    let reader = {
        let queue = queue.clone();
        std::thread::spawn(move || {
            let is_wanted = queue.backpressure().wait(|| false, || false);
            (is_wanted, queue.lock().unread())
        })
    };
    for _ in 0..2 {
        ticket.send(()).expect("the writer waits for it");
    }
    let (is_wanted, unread) = reader.join().expect("no panic");
    assert!(is_wanted && unread <= READ_LIMIT, "{unread} bytes are unread");
}

#[test]
fn commands_with_large_answers_are_taken_one_at_a_time() {
    let (queue, _writer, ticket) = overfull();
    for _ in 0..2 {
        ticket.send(()).expect("the writer waits for it");
    }
    // Checked until the session has taken the earlier commands.
    let n_looks = std::cell::Cell::new(0);
    let is_backlogged = || n_looks.replace(n_looks.get() + 1) < 3;
    assert!(queue.backpressure().wait(is_backlogged, || false));
    assert_eq!(n_looks.get(), 4);
}

#[test]
fn a_stream_that_has_ended_takes_no_commands() {
    let (queue, _writer, _ticket) = overfull();
    let reader = {
        let queue = queue.clone();
        std::thread::spawn(move || queue.backpressure().wait(|| false, || false))
    };
    queue.close();
    assert!(!reader.join().expect("no panic"));
}

#[test]
fn a_host_that_is_gone_is_not_waited_for() {
    let (queue, writer, ticket) = overfull();
    assert!(!queue.backpressure().wait(|| false, || true), "nobody writes and nobody reads");
    drop(ticket);
    writer.join().expect("the writer ends");
    assert!(queue.backpressure().wait(|| false, || false), "the answers have been dropped");
}

/// A queue above its limit, and what the host reads of it once it has closed and the host reads on.
fn full() -> (Arc<FrameQueue>, impl FnOnce() -> Vec<String>) {
    let (ticket, tickets) = mpsc::channel();
    let written = Arc::new(Mutex::new(Vec::new()));
    let (queue, writer) = FrameQueue::start(Slow { tickets, written: written.clone() }, || {}).expect("threads");
    queue.push(|out| out.resize(LIMIT, b'x'));
    let closing = queue.clone();
    let read = move || {
        closing.close();
        for _ in 0..10_000 {
            let _ = ticket.send(());
        }
        writer.join().expect("the writer ends");
        let written = String::from_utf8(written.lock().expect("lock").clone()).expect("UTF-8");
        written.lines().skip(1).map(str::to_owned).collect()
    };
    (queue, read)
}

fn chunk(queue: &FrameQueue, key: &'static str, text: &str) {
    queue.push_chunk(
        || key.to_owned(),
        text,
        move |text, out| out.extend_from_slice(format!("{key}:{text}").as_bytes()),
    );
}

fn has_room(queue: &FrameQueue) -> bool {
    let room = queue.room();
    let waiting = std::pin::pin!(room.wait());
    waiting.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready()
}

#[test]
fn chunks_of_one_message_become_one_frame() {
    let (queue, read) = full();
    for number in 0..500 {
        chunk(&queue, "a", &format!("{number} "));
    }
    queue.push(|out| out.extend_from_slice(b"other"));
    chunk(&queue, "a", "last");
    let whole: String = (0..500).map(|number| format!("{number} ")).collect();
    assert_eq!(read(), [format!("a:{whole}"), "other".to_owned(), "a:last".to_owned()]);
}

#[test]
fn chunks_that_cannot_be_merged_suspend_their_runs() {
    let (queue, read) = full();
    queue.room().open();
    chunk(&queue, "a", "1");
    chunk(&queue, "a", "2");
    assert!(has_room(&queue), "merging keeps the queue from growing");
    chunk(&queue, "b", "3");
    assert!(!has_room(&queue));
    chunk(&queue, "a", "4");
    assert_eq!(read(), ["a:12", "b:3", "a:4"]);
}
