//! What a scenario is: a model, a program, steps and what must be seen.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::server::Turn;

/// One behaviour of the protocol.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    /// What holds for a program that passes.
    pub shows: String,
    /// `pi`, `xcsh` or both.
    #[serde(default = "both")]
    pub dialects: Vec<String>,
    /// Commands that `hello` must announce: what they do is an addition of pith, which others need not have. `hello`
    /// itself stands for an addition that has no command.
    #[serde(default)]
    pub needs: Vec<String>,
    /// What the model answers, in order.
    #[serde(default)]
    pub model: Vec<Turn>,
    /// Answers to requests whose newest message matches a regular expression.
    #[serde(default)]
    pub routes: BTreeMap<String, Turn>,
    /// The user's settings, beside the model.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// Files of the working directory; a path that starts with `agent/` is in the agent directory.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Whether the program ends before a run has: then not every start has its end.
    #[serde(default)]
    pub is_cut: bool,
    pub steps: Vec<Step>,
}

/// What is done or must be seen. Frames are compared as [`crate::matching`] says.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Sends a frame.
    Send(Value),
    /// Sends frames in one write.
    SendTogether(Vec<Value>),
    /// Writes a text as it is.
    Write(String),
    /// Waits for a frame behind the one that was expected before.
    Expect(Value),
    /// Waits for a frame, wherever it is.
    Somewhere(Value),
    /// Waits for the end of the work: nothing follows without a new command.
    Settled,
    /// Looks for frames in this order among all that have come.
    Order(Vec<Value>),
    /// Fails if such a frame has come.
    Absent(Value),
    /// Fails unless so many such frames have come.
    Count { frame: Value, is: usize },
    /// The text of all deltas so far.
    Deltas(String),
    /// Waits until the answer with that index, counted from 0, has begun and is held.
    Held(usize),
    /// Lets a held answer go on.
    Release(usize),
    /// Looks into what the model was asked.
    Request {
        index: usize,
        #[serde(default)]
        contains: Vec<String>,
        #[serde(default)]
        lacks: Vec<String>,
    },
    /// Looks for entries of a session file in this order.
    SessionFile { path: String, has: Vec<Value> },
    /// Closes stdin.
    Close,
}

fn both() -> Vec<String> {
    ["pi", "xcsh"].map(str::to_owned).to_vec()
}

/// The files of `scenarios/`, one per topic.
const FILES: &[(&str, &str)] = &[
    ("framing", include_str!("../scenarios/framing.json")),
    ("prompt", include_str!("../scenarios/prompt.json")),
    ("tools", include_str!("../scenarios/tools.json")),
    ("queue", include_str!("../scenarios/queue.json")),
    ("abort", include_str!("../scenarios/abort.json")),
    ("state", include_str!("../scenarios/state.json")),
    ("models", include_str!("../scenarios/models.json")),
    ("bash", include_str!("../scenarios/bash.json")),
    ("sessions", include_str!("../scenarios/sessions.json")),
    ("compaction", include_str!("../scenarios/compaction.json")),
    ("retry", include_str!("../scenarios/retry.json")),
    ("extensions", include_str!("../scenarios/extensions.json")),
    ("additions", include_str!("../scenarios/additions.json")),
];

/// Returns every scenario, by topic.
pub fn scenarios() -> Vec<Scenario> {
    let read = |(name, text): &(&str, &str)| {
        serde_json::from_str::<Vec<Scenario>>(text).unwrap_or_else(|error| panic!("scenarios/{name}.json: {error}"))
    };
    FILES.iter().flat_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read_and_every_name_is_used_once() {
        let names: Vec<_> = scenarios().into_iter().map(|scenario| scenario.name).collect();
        let mut unique = names.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
        assert_eq!(std::fs::read_dir(directory).expect("scenarios").count(), FILES.len());
    }

    #[test]
    fn a_misspelt_step_is_refused() {
        let read = |step: &str| serde_json::from_str::<Step>(step);
        assert!(read(r#"{"expect":{"type":"agent_end"}}"#).is_ok() && read(r#""settled""#).is_ok());
        assert!(read(r#"{"expct":{}}"#).is_err() && read(r#"{"request":{"index":0,"has":[]}}"#).is_err());
    }
}
