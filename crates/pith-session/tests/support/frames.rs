//! Everything a session has sent, in order, and ways to search it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pith_protocol::Inbound;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

/// Counts what happens in a test, so that waiting ends when there is something new to look at.
#[derive(Clone)]
pub struct Activity(Arc<watch::Sender<u64>>);

impl Default for Activity {
    fn default() -> Self {
        Activity(Arc::new(watch::Sender::new(0)))
    }
}

impl Activity {
    /// Called when something happened.
    pub fn note(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// Returns how often something happened so far.
    pub fn count(&self) -> u64 {
        *self.0.borrow()
    }

    /// Returns once more has happened than `seen`.
    pub async fn beyond(&self, seen: u64) {
        // The sender lives beside the receiver, so it is open.
        let _ = self.0.subscribe().wait_for(|count| *count > seen).await;
    }
}

/// The recorded frames. Clones share them.
#[derive(Clone, Default)]
pub struct Frames {
    state: Arc<Mutex<Recorded>>,
    pub activity: Activity,
}

#[derive(Default)]
struct Recorded {
    frames: Vec<Value>,
    reactions: Vec<Reaction>,
}

/// A line that is sent at the very moment a frame is recorded, before the session does anything else.
struct Reaction {
    id: String,
    pattern: Value,
    line: Inbound,
    inbox: mpsc::Sender<Inbound>,
}

impl Frames {
    /// Records a frame.
    pub fn push(&self, frame: Value) {
        let mut state = self.state();
        let due = state.reactions.iter().position(|reaction| is_like(&frame, &reaction.pattern));
        if let Some(Reaction { line, inbox, .. }) = due.map(|at| state.reactions.remove(at)) {
            // A session that is ending reads no more lines.
            let _ = inbox.try_send(line);
        }
        state.frames.push(frame);
        drop(state);
        self.activity.note();
    }

    /// Sends `line` as soon as a frame like `pattern` is recorded, once.
    pub fn react(&self, id: String, pattern: Value, line: Inbound, inbox: mpsc::Sender<Inbound>) {
        self.state().reactions.push(Reaction { id, pattern, line, inbox });
    }

    /// Returns whether a line still waits for its frame.
    pub fn is_unsent(&self, id: &Value) -> bool {
        self.state().reactions.iter().any(|reaction| *id == reaction.id.as_str())
    }

    /// Forgets the lines that still wait for their frames.
    pub fn forget_unsent(&self) {
        self.state().reactions.clear();
    }

    /// Returns all frames so far.
    pub fn all(&self) -> Vec<Value> {
        self.state().frames.clone()
    }

    pub fn len(&self) -> usize {
        self.state().frames.len()
    }

    /// Returns the first frame from `start` on that is like `pattern`, and its index.
    pub fn find(&self, start: usize, pattern: &Value) -> Option<(usize, Value)> {
        let state = self.state();
        let rest = state.frames.iter().enumerate().skip(start);
        rest.into_iter().find(|(_, frame)| is_like(frame, pattern)).map(|(at, frame)| (at, frame.clone()))
    }

    /// Returns how many frames are like `pattern`.
    pub fn count(&self, pattern: &Value) -> usize {
        self.state().frames.iter().filter(|frame| is_like(frame, pattern)).count()
    }

    fn state(&self) -> MutexGuard<'_, Recorded> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether `value` contains everything in `pattern`; it may contain more members and items.
pub fn is_like(value: &Value, pattern: &Value) -> bool {
    match (value, pattern) {
        (Value::Object(value), Value::Object(pattern)) => {
            pattern.iter().all(|(name, wanted)| value.get(name).is_some_and(|member| is_like(member, wanted)))
        }
        (Value::Array(value), Value::Array(pattern)) => {
            value.len() == pattern.len() && value.iter().zip(pattern).all(|(item, wanted)| is_like(item, wanted))
        }
        (value, pattern) => value == pattern,
    }
}

/// Describes a frame in one short line: its type and what distinguishes it from others of that type.
pub fn short(frame: &Value) -> String {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let kind = text(&frame["type"]).unwrap_or_default();
    let message = &frame["message"];
    let details: Vec<&Value> = match kind.as_str() {
        "response" => vec![&frame["command"], &frame["id"], &frame["error"], &frame["data"]],
        "message_start" | "message_end" => {
            vec![&message["role"], &message["stopReason"], &message["errorMessage"], &message["content"]]
        }
        "message_update" => vec![&frame["assistantMessageEvent"]],
        "turn_end" | "agent_end" => vec![&frame["willRetry"]],
        "extension_ui_request" => vec![&frame["method"], &frame["title"], &frame["message"], &frame["targetId"]],
        "tool_execution_start" => vec![&frame["toolCallId"], &frame["toolName"], &frame["args"]],
        "tool_execution_update" => vec![&frame["toolCallId"], &frame["partialResult"]["content"]],
        "tool_execution_end" => vec![&frame["toolCallId"], &frame["result"]["content"]],
        _ => return cut(&frame.to_string()),
    };
    let details = details.into_iter().filter_map(text).collect::<Vec<_>>().join(" ");
    cut(&format!("{kind} {details}"))
}

fn cut(text: &str) -> String {
    const LONGEST: usize = 150;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Describes frames, one line each; repeated updates of one thing are counted instead of shown.
pub fn describe(frames: &[Value]) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut n_updates = 0;
    for (at, frame) in frames.iter().enumerate() {
        let is_update = |frame: &Value| frame["type"].as_str().is_some_and(|kind| kind.ends_with("_update"));
        let follows_update = is_update(frame) && at > 0 && frames[at - 1]["type"] == frame["type"];
        n_updates = if follows_update { n_updates + 1 } else { 0 };
        match n_updates {
            0..3 => lines.push(format!("{at:5}  {}", short(frame))),
            3 => lines.push("       …".to_owned()),
            _ => {}
        }
    }
    lines.join("\n")
}

/// Describes what is wrong with the nesting of starts and ends; `None` if everything that started ended, once and in
/// order.
pub fn nesting_problem(frames: &[Value]) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        let kind = frame["type"].as_str().unwrap_or_default();
        let Some((name, edge)) = kind.rsplit_once('_') else { continue };
        let name = format!("{name} {}", frame["toolCallId"].as_str().unwrap_or_default());
        match edge {
            // Ended once for all attempts: by `summarization_retry_finished`, and by `auto_retry_end`.
            "start" if kind == "summarization_retry_attempt_start" => {}
            "start" if kind == "auto_retry_start" && open.contains(&name) => {}
            "start" if open.contains(&name) => return Some(format!("{kind} opened twice, at frame {at}")),
            "start" => open.push(name),
            "end" => {
                let Some(start) = open.iter().rposition(|other| *other == name) else {
                    return Some(format!("{kind} without a start, at frame {at}"));
                };
                // Calls of a batch end in any order, and attempts span runs; all else nests.
                let may_cross = |other: &String| other.starts_with("tool_execution") || other.starts_with("auto_retry");
                let crossed = open[start + 1..].iter().find(|other| !may_cross(other));
                if let Some(crossed) = crossed.filter(|_| kind != "auto_retry_end") {
                    return Some(format!("{kind} around {crossed}, at frame {at}"));
                }
                open.remove(start);
            }
            _ => {}
        }
    }
    (!open.is_empty()).then(|| format!("never closed: {open:?}"))
}
