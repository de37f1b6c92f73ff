//! The rules that hold in every exchange, whatever was sent.

use serde_json::{Value, json};

/// What the frames so far say about the session.
#[derive(Default)]
struct Told {
    /// A prompt was accepted and has not settled.
    is_active: bool,
    is_compacting: bool,
    n_queued: usize,
    /// Retries that were announced and have not ended.
    n_attempts: u64,
    /// A run has announced that it will be retried.
    is_retry_due: bool,
}

/// Frames that belong to a run.
const OF_RUNS: [&str; 11] = [
    "agent_start",
    "agent_end",
    "agent_settled",
    "turn_start",
    "turn_end",
    "message_update",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "auto_retry_start",
    "host_tool_call",
];

/// Returns the rules that an exchange breaks, and where.
pub fn violations(frames: &[Value]) -> Vec<String> {
    let mut told = Told::default();
    let check = |(at, frame)| told.take(frame).map(|why| format!("{why}, at frame {at}"));
    let mut violations: Vec<String> = frames.iter().enumerate().filter_map(check).collect();
    if told.is_active {
        violations.push("an accepted prompt has not settled in the end".to_owned());
    }
    violations
}

impl Told {
    /// Takes a frame; returns what is wrong with it.
    fn take(&mut self, frame: &Value) -> Option<String> {
        let kind = frame["type"].as_str().unwrap_or_default();
        if !self.is_active && (OF_RUNS.contains(&kind) || is_of_run(frame)) {
            return Some(format!("{kind} in an idle session"));
        }
        match kind {
            "response" => return self.response(frame),
            "agent_settled" => return self.settled(),
            "agent_end" => self.is_retry_due = frame["willRetry"] == true,
            "auto_retry_start" => {
                self.n_attempts += 1;
                if !std::mem::take(&mut self.is_retry_due) {
                    return Some("auto_retry_start after a run that was not to be tried again".to_owned());
                }
                if frame["attempt"] != self.n_attempts {
                    return Some(format!("attempt {} comes as number {}", frame["attempt"], self.n_attempts));
                }
            }
            "auto_retry_end" => self.n_attempts = 0,
            "compaction_start" => self.is_compacting = true,
            "compaction_end" => self.is_compacting = false,
            "queue_update" => {
                let count = |name: &str| frame[name].as_array().map_or(0, Vec::len);
                self.n_queued = count("steering") + count("followUp");
            }
            _ => {}
        }
        None
    }

    fn settled(&mut self) -> Option<String> {
        self.is_active = false;
        if self.is_compacting {
            return Some("agent_settled before the compaction has ended".to_owned());
        }
        if std::mem::take(&mut self.is_retry_due) {
            return Some("a run was to be tried again, but it was not".to_owned());
        }
        (std::mem::take(&mut self.n_attempts) > 0).then(|| "agent_settled without an auto_retry_end".to_owned())
    }

    fn response(&mut self, response: &Value) -> Option<String> {
        let data = &response["data"];
        if data["disposition"] == "started" {
            let was_active = std::mem::replace(&mut self.is_active, true);
            return was_active.then(|| "a prompt was started while another one was active".to_owned());
        }
        if response["success"] != true {
            return None;
        }
        match response["command"].as_str().unwrap_or_default() {
            "abort" if self.is_active => Some("an abort was answered before the activity was over".to_owned()),
            "abort" if self.is_compacting => Some("an abort was answered before the compaction was over".to_owned()),
            "get_state" if data["isStreaming"] != self.is_active => {
                Some(format!("isStreaming is {}, but active is {}", data["isStreaming"], self.is_active))
            }
            "get_state" if self.is_compacting && data["isCompacting"] == false => {
                Some("isCompacting is false between compaction_start and compaction_end".to_owned())
            }
            "get_state" if data["pendingMessageCount"] != json!(self.n_queued) => {
                let shown = &data["pendingMessageCount"];
                Some(format!("pendingMessageCount is {shown}, but the last queue_update had {}", self.n_queued))
            }
            _ => None,
        }
    }
}

/// Whether a frame belongs to a run: user messages and answers do, other messages may come at any time.
fn is_of_run(frame: &Value) -> bool {
    let is_message = frame["type"] == "message_start" || frame["type"] == "message_end";
    is_message && matches!(frame["message"]["role"].as_str(), Some("user" | "assistant" | "toolResult"))
}

/// Checks the sessions an extension was told of: each must start once and end once.
pub fn unmatched(log: &[String]) -> Vec<String> {
    let mut is_open = false;
    let mut violations = Vec::new();
    for line in log {
        let starts = line.starts_with("start");
        if starts == is_open {
            violations.push(format!("the extension heard {line:?} out of turn"));
        }
        is_open = starts;
    }
    if is_open {
        violations.push("the extension was never told that its session is over".to_owned());
    }
    violations
}
