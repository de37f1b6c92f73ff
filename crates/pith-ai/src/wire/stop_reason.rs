//! Words for the end of an answer that an API does not have, but its servers do.

use pith_protocol::StopReason;
use serde_json::json;

use crate::assemble::MessageBuilder;

/// Words of other APIs and of model runtimes.
const KNOWN: [(StopReason, &[&str]); 3] = [
    (
        StopReason::Stop,
        &["stop", "end", "eos", "eos_token", "end_turn", "stop_sequence", "stop_token", "completed", "done"],
    ),
    (
        StopReason::Length,
        &["length", "max_tokens", "max_length", "max_output_tokens", "max_new_tokens", "model_length"],
    ),
    (StopReason::ToolUse, &["tool_calls", "tool_call", "tool_use", "function_call", "function_calls"]),
];

/// Parts of words that say that an answer was withheld or went wrong.
const BAD: [&str; 20] = [
    "filter",
    "safety",
    "block",
    "policy",
    "refus",
    "sensitive",
    "recitation",
    "prohibited",
    "spii",
    "language",
    "error",
    "fail",
    "abort",
    "cancel",
    "timeout",
    "malformed",
    "unexpected",
    "insufficient",
    "exceeded",
    "other",
];

/// Ends an answer whose server gave a reason that its API does not have. False if the answer cannot be taken as
/// complete: the reason is a bad one, or nothing has come that is worth keeping.
pub(super) fn finish_unknown(word: &str, message: &mut MessageBuilder) -> bool {
    let word = word.to_ascii_lowercase();
    let known = KNOWN.iter().find(|(_, words)| words.contains(&word.as_str())).map(|(reason, _)| *reason);
    let reason = match known {
        Some(reason) => reason,
        None if BAD.iter().any(|bad| word.contains(bad)) || !message.is_complete() => return false,
        None => StopReason::Stop,
    };
    let taken_as = match reason {
        StopReason::Length => "length",
        StopReason::ToolUse => "toolUse",
        _ => "stop",
    };
    message.note("stopReason", json!({"unknown": word, "takenAs": taken_as}));
    message.finish(reason);
    true
}
