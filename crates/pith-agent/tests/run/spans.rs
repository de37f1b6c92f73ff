//! What whoever watches is told of tool calls.

use std::time::Duration;

use super::*;
use pith_agent::link::Call;
use pith_agent::trace::{
    ChatParent, ChatSpan, CheckpointSpan, CompactionSpan, ToolEnd, ToolSpan, ToolStart, TraceContext, WorkSpan,
};
use pith_agent::{BoxFuture, Verdict};
use pith_protocol::audit::{PermissionBy, PermissionDecision};
use pith_protocol::{CompactionReason, SandboxProfile};

#[derive(Clone, Default)]
struct Watcher(Arc<Mutex<Vec<String>>>);

impl Watcher {
    fn note(&self, line: String) {
        self.0.lock().expect("lock").push(line);
    }
}

impl ChatParent for Watcher {
    fn chat(&self, _call: &LlmCall) -> Box<dyn ChatSpan> {
        Box::new(Unwatched)
    }
}

struct Unwatched;

impl ChatSpan for Unwatched {
    fn first_chunk(&mut self) {}

    fn end(self: Box<Self>, _answer: &AssistantMessage) {}
}

impl WorkSpan for Watcher {
    fn tool(&self, start: ToolStart<'_>) -> Box<dyn ToolSpan> {
        Box::new(WatchedCall { id: start.call.id.clone(), watcher: self.clone() })
    }

    fn compaction(&self, _reason: CompactionReason) -> Arc<dyn CompactionSpan> {
        unreachable!("nothing is compacted")
    }

    fn checkpoint(&self) -> Box<dyn CheckpointSpan> {
        unreachable!("nothing is recorded")
    }

    fn limit_reached(&self, _limit: &str) {}

    fn denied(&self, _what: &str) {}

    fn end(&self, _was_aborted: bool, _answer: Option<&AssistantMessage>) {}
}

struct WatchedCall {
    id: Arc<str>,
    watcher: Watcher,
}

impl ToolSpan for WatchedCall {
    fn context(&self) -> Arc<TraceContext> {
        Arc::new(TraceContext { traceparent: String::new(), tracestate: String::new() })
    }

    fn decided(&mut self, decision: PermissionDecision, by: PermissionBy, _wait: Duration) {
        self.watcher.note(format!("{} {} {}", self.id, decision.as_str(), by.as_str()));
    }

    fn end(self: Box<Self>, end: ToolEnd, _output: &ToolOutput) {
        self.watcher.note(format!("{} {end:?}", self.id));
    }
}

/// Decides about calls by the names of their tools.
struct Deciding;

impl ToolCallHook for Deciding {
    fn admit<'a>(
        &'a self,
        call: &'a Call,
        _tool: &'a dyn Tool,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Verdict> {
        let refuse = |by| Verdict::Refuse { output: ToolOutput::error("no"), by };
        let verdict = match call.name.as_str() {
            "open" => Verdict::Run { arguments, by: None },
            "ruled" => Verdict::Run { arguments, by: Some(PermissionBy::Rule) },
            "asked" => Verdict::Later(Box::pin(async { Verdict::Run { arguments, by: Some(PermissionBy::User) } })),
            "denied" => Verdict::Later(Box::pin(async move { refuse(PermissionBy::User) })),
            _ => refuse(PermissionBy::Extension),
        };
        Box::pin(async { verdict })
    }

    fn amends(&self) -> bool {
        false
    }

    fn amend<'a>(
        &'a self,
        _call: &'a Call,
        _input: Map<String, Value>,
        _output: &'a ToolOutput,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        Box::pin(async { None })
    }
}

#[test]
fn whoever_watches_hears_what_was_decided_about_a_call_and_by_whom() {
    let names = ["open", "ruled", "asked", "denied", "blocked"];
    let tools = names.map(|name| tool(name, |_, _| async { ToolOutput::text("ran") })).into();
    let answers = vec![calls(&names.map(|name| (name, name))), calls(&[("none", "missing")]), text()];
    let watcher = Watcher::default();
    let trace = Some(TurnTrace { work: Arc::new(watcher.clone()), sandbox: SandboxProfile::Off });
    let recorder = Recorder { hook: Some(Arc::new(Deciding)), trace, ..recorder(answers, tools) };
    go(recorder, &CancellationToken::new());
    let told = watcher.0.lock().expect("lock").clone();
    let of = |id: &str| -> Vec<String> {
        told.iter().filter_map(|line| line.strip_prefix(id)?.strip_prefix(' ')).map(str::to_owned).collect()
    };
    assert_eq!(of("open"), ["Ran"]);
    assert_eq!(of("ruled"), ["allow rule", "Ran"]);
    assert_eq!(of("asked"), ["allow user", "Ran"]);
    assert_eq!(of("denied"), ["deny user", "Refused"]);
    assert_eq!(of("blocked"), ["deny extension", "Refused"]);
    assert_eq!(of("none"), ["Unfit"]);
}
