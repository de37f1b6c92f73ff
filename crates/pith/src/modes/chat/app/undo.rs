//! Putting files back: which tool calls can be undone, and what has become of the files.

use serde_json::Value;

use super::App;
use super::answers::text;
use super::places::Place;
use crate::modes::chat::picker::Choice;

/// How many files of a call are named.
const NAMED: usize = 3;

impl App {
    pub(super) fn offer_checkpoints(&mut self, data: &Value, search: &str) {
        let one = |checkpoint: &Value| {
            let files: Vec<&str> =
                checkpoint["files"].as_array().into_iter().flatten().map(|file| text(file, "path")).collect();
            let more = files.len().saturating_sub(NAMED);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            Choice {
                label: format!("{} {}{more}", text(checkpoint, "tool"), files[..files.len().min(NAMED)].join(", ")),
                detail: text(checkpoint, "timestamp").to_owned(),
                value: Place::Checkpoint { id: text(checkpoint, "id").to_owned() },
            }
        };
        let choices: Vec<_> = data["checkpoints"].as_array().into_iter().flatten().map(one).collect();
        if let Some(choice) = search.parse::<usize>().ok().and_then(|number| choices.get(number.wrapping_sub(1))) {
            return self.go(choice.value.clone());
        }
        self.offer("Put files back to before", choices, search, "there is no such tool call to undo");
    }

    pub(super) fn show_restored(&mut self, data: &Value) {
        let restored: Vec<&str> = data["restored"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if restored.is_empty() {
            self.say("No file was put back.");
        } else {
            self.say(&format!("Put back: {}. /undo 1 takes this back.", restored.join(", ")));
        }
        for skipped in data["skipped"].as_array().into_iter().flatten() {
            self.say(&format!("! {} stays as it is: {}", text(skipped, "path"), text(skipped, "reason")));
        }
    }
}
