//! What holds in every exchange, whatever it is about: each command has its answer, each start its end.

use serde_json::Value;

/// Starts and their ends.
const PAIRS: [(&str, &str); 6] = [
    ("agent_start", "agent_end"),
    ("turn_start", "turn_end"),
    ("message_start", "message_end"),
    ("tool_execution_start", "tool_execution_end"),
    ("compaction_start", "compaction_end"),
    ("auto_compaction_start", "auto_compaction_end"),
];

/// Frames of hosts that are never answered.
const REPLIES: [&str; 3] = ["extension_ui_response", "host_tool_update", "host_tool_result"];

/// How many answers a command may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    One,
    /// A failure that shows late is a second answer.
    OneOrMore,
}

/// Says what is wrong with an exchange.
pub(crate) fn violation(sent: &[Value], frames: &[Value], answers: Answers, is_cut: bool) -> Option<String> {
    let stray = frames.iter().find(|frame| !frame["type"].is_string());
    if let Some(stray) = stray {
        return Some(format!("stdout has a line that is no frame: {stray}"));
    }
    sent.iter().find_map(|command| unanswered(command, frames, answers)).or_else(|| {
        let unbalanced = || PAIRS.iter().find_map(|(start, end)| unbalanced(frames, start, end));
        if is_cut { None } else { unbalanced() }
    })
}

fn unanswered(command: &Value, frames: &[Value], answers: Answers) -> Option<String> {
    let (id, kind) = (command.get("id")?, command["type"].as_str()?);
    if REPLIES.contains(&kind) {
        return None;
    }
    let is_answer = |frame: &&Value| {
        frame["type"] == "response" && (frame.get("id") == Some(id) || frame.get("requestId") == Some(id))
    };
    match (frames.iter().filter(is_answer).count(), answers) {
        (1, _) | (2.., Answers::OneOrMore) => None,
        (0, _) => Some(format!("{kind} with id {id} was not answered")),
        (count, _) => Some(format!("{kind} with id {id} was answered {count} times")),
    }
}

fn unbalanced(frames: &[Value], start: &str, end: &str) -> Option<String> {
    let count = |kind: &str| frames.iter().filter(|frame| frame["type"] == kind).count();
    let (starts, ends) = (count(start), count(end));
    (starts != ends).then(|| format!("{starts} {start}, but {ends} {end}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn exchanges_that_break_a_rule_are_found() {
        let check = |sent: &[Value], frames: &[Value], answers, expected: Option<&str>| {
            assert_eq!(violation(sent, frames, answers, false).as_deref(), expected);
        };
        let (ask, answer) = (json!({"id": 1, "type": "abort"}), json!({"id": 1, "type": "response"}));
        check(std::slice::from_ref(&ask), std::slice::from_ref(&answer), Answers::One, None);
        check(std::slice::from_ref(&ask), &[], Answers::One, Some("abort with id 1 was not answered"));
        let twice = [answer.clone(), answer];
        check(std::slice::from_ref(&ask), &twice, Answers::One, Some("abort with id 1 was answered 2 times"));
        check(&[ask], &twice, Answers::OneOrMore, None);
        let open = [json!({"type": "agent_start"})];
        check(&[], &open, Answers::One, Some("1 agent_start, but 0 agent_end"));
        assert_eq!(violation(&[], &open, Answers::One, true), None);
        check(&[], &[json!("hi")], Answers::One, Some("stdout has a line that is no frame: \"hi\""));
        check(&[json!({"id": 2, "type": "host_tool_result"})], &[], Answers::One, None);
    }
}
