//! Notices a model that makes the same call again and again, and asks the host whether that is to go on.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use pith_agent::ToolOutput;
use pith_agent::link::Call;
use pith_protocol::host::{UiAnswer, UiMethod, UiRequest};
use pith_protocol::{Event, LimitName, LimitUse};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::jobs::{Job, JobEnd};
use crate::session::Session;

/// How many calls are remembered: enough for any pattern that is looked for, at any limit somebody would set.
const REMEMBERED: usize = 512;
/// From how many calls on the host is told.
const SUSPICIOUS: usize = 3;
/// How long the host may take to answer; no answer ends the work.
const ANSWER_LIMIT: Duration = Duration::from_secs(300);

const CONTINUE: &str = "Continue";
const STOP: &str = "Stop";

/// The calls of the work, oldest first.
#[derive(Debug, Default)]
pub(super) struct Loops(VecDeque<Done>);

#[derive(Clone, Copy, Debug)]
struct Done {
    /// Tool and arguments.
    call: u64,
    result: u64,
    is_error: bool,
}

/// A question whether a repeated call is to be made, and whoever waits for the answer: `Err` is the output of the call.
pub(crate) struct RepeatAnswer {
    dialog: String,
    reached: LimitUse,
    tool: String,
    given: Option<UiAnswer>,
    answer: oneshot::Sender<Result<(), ToolOutput>>,
}

impl Loops {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Notes a call that has ended. Returns how often it was made with the same result, alone or in turn with another.
    fn note(&mut self, name: &str, arguments: &Map<String, Value>, output: &ToolOutput) -> usize {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        let result = digest(|hasher| {
            format!("{:?}", output.content).hash(hasher);
        });
        self.0.push_back(Done { call: identity(name, arguments), result, is_error: output.is_error });
        self.longest(self.0.len() - 1)
    }

    /// How often a call will have been made if it is made now.
    fn upcoming(&self, name: &str, arguments: &Map<String, Value>) -> usize {
        let call = identity(name, arguments);
        let before = [1, 2].map(|period| {
            let last = self.0.len().checked_sub(period).filter(|last| self.0[*last].call == call);
            last.map_or(0, |last| self.run(last, period))
        });
        1 + before[0].max(before[1])
    }

    fn longest(&self, last: usize) -> usize {
        self.run(last, 1).max(self.run(last, 2))
    }

    /// How many calls, each `period` before the next, end with this one and repeat each other. Those between them are the
    /// same as well.
    fn run(&self, last: usize, period: usize) -> usize {
        let mut n = 1;
        let mut at = last;
        while let Some(before) = at.checked_sub(period) {
            let (earlier, later) = (self.0[before], self.0[at]);
            let is_repeated = earlier.call == later.call && (later.is_error || earlier.result == later.result);
            let same_between = period == 1 || n == 1 || self.0[before + 1].call == self.0[at + 1].call;
            if !is_repeated || !same_between {
                break;
            }
            n += 1;
            at = before;
        }
        n
    }
}

fn identity(name: &str, arguments: &Map<String, Value>) -> u64 {
    digest(|hasher| {
        name.hash(hasher);
        hash_object(arguments, hasher);
    })
}

fn digest(feed: impl FnOnce(&mut DefaultHasher)) -> u64 {
    let mut hasher = DefaultHasher::new();
    feed(&mut hasher);
    hasher.finish()
}

/// The order of members does not matter.
fn hash_object(object: &Map<String, Value>, hasher: &mut DefaultHasher) {
    let mut members: Vec<_> = object.iter().collect();
    members.sort_by_key(|(name, _)| *name);
    for (name, value) in members {
        name.hash(hasher);
        match value {
            Value::Object(object) => hash_object(object, hasher),
            other => other.to_string().hash(hasher),
        }
    }
}

impl Session {
    /// Called when a call has ended. Tells the host of a model that seems to go round in circles.
    pub(crate) fn note_call(&mut self, call: &Call, output: &ToolOutput) {
        if self.governor.is_off() {
            return;
        }
        let count = self.governor.loops.note(&call.name, &call.arguments, output);
        if count == SUSPICIOUS {
            self.out.event(&Event::LoopSuspected { tool_name: (&call.name).into(), count: count as u32 });
        }
    }

    /// Called before a call starts, if repeated calls are limited. Asks the host if it is one too many; without a host to
    /// ask, the work ends.
    pub(crate) fn check_repeats(&mut self, call: &Call, answer: oneshot::Sender<Result<(), ToolOutput>>) {
        let count = self.governor.loops.upcoming(&call.name, &call.arguments);
        let max = self.governor.limits().max(LimitName::Repeats);
        let Some(max) = max.filter(|max| count as f64 >= max.0) else {
            // A call that no longer waits was stopped.
            let _ = answer.send(Ok(()));
            return;
        };
        let dialog = uuid::Uuid::new_v4().to_string();
        let reached = LimitUse { name: LimitName::Repeats, used: (count as u64).into(), max };
        let question = RepeatAnswer { dialog, reached, tool: call.name.clone(), given: None, answer };
        if !self.options.has_ui {
            return self.on_repeat_answered(question);
        }
        let title = format!("{} is called for the {count}th time with the same arguments and result", call.name);
        let timeout = u64::try_from(ANSWER_LIMIT.as_millis()).ok();
        let options = vec![CONTINUE.to_owned(), STOP.to_owned()];
        let (answered, given) = oneshot::channel();
        let request = UiRequest::new(question.dialog.clone(), UiMethod::Select { title, options, timeout });
        self.open_dialog(request, answered.into());
        self.jobs.spawn(Job::Background, async move {
            let given = tokio::time::timeout(ANSWER_LIMIT, given).await;
            let given = given.ok().and_then(Result::ok);
            JobEnd::RepeatAnswered(Box::new(RepeatAnswer { given, ..question }))
        });
    }

    /// Called when the host has answered, or could not be asked.
    pub(crate) fn on_repeat_answered(&mut self, question: RepeatAnswer) {
        let RepeatAnswer { dialog, reached, tool, given, answer } = question;
        self.withdraw_dialog(dialog);
        if matches!(&given, Some(UiAnswer::Value(choice)) if choice == CONTINUE) {
            self.governor.loops.clear();
            let _ = answer.send(Ok(()));
            return;
        }
        // An abort has cancelled the question.
        if !self.activity.is_stopping() {
            self.end_at_limit(reached);
        }
        let _ = answer.send(Err(ToolOutput::error(format!("{tool} ended: limits.{}", reached.name))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Notes calls, as `name:result`, and returns the last count.
    fn count(calls: &[&str]) -> usize {
        let mut loops = Loops::default();
        let mut last = 0;
        for call in calls {
            let (name, result) = call.split_once(':').expect("a name and a result");
            let output = if result == "!" { ToolOutput::error(result) } else { ToolOutput::text(result) };
            last = loops.note(name, &Map::new(), &output);
        }
        last
    }

    #[test]
    fn calls_repeat_each_other_if_they_fail_or_give_the_same() {
        assert_eq!(count(&["a:1", "a:1", "a:1"]), 3);
        assert_eq!(count(&["a:1", "a:2", "a:2"]), 2);
        assert_eq!(count(&["a:!", "a:!"]), 2);
        assert_eq!(count(&["a:1", "b:1", "a:1", "b:1", "a:1"]), 3);
        assert_eq!(count(&["a:1", "b:1", "a:1", "c:1", "a:1"]), 2);
        assert_eq!(count(&["a:1", "b:1", "b:1", "a:1"]), 1);
    }

    #[test]
    fn the_order_of_arguments_does_not_matter() {
        let object = |text: &str| serde_json::from_str(text).expect("an object");
        let same = identity("a", &object(r#"{"x":1,"y":{"p":1,"q":2}}"#));
        assert_eq!(same, identity("a", &object(r#"{"y":{"q":2,"p":1},"x":1}"#)));
        assert_ne!(same, identity("b", &object(r#"{"x":1,"y":{"p":1,"q":2}}"#)));
        let mut loops = Loops::default();
        let arguments = json!({"x": 1});
        let arguments = arguments.as_object().expect("an object");
        assert_eq!(loops.upcoming("a", arguments), 1);
        loops.note("a", arguments, &ToolOutput::text("1"));
        assert_eq!(loops.upcoming("a", arguments), 2);
    }
}
