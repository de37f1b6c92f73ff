//! Limits of a whole session: the work ends once, says so, and goes on when the limit is raised. The clock stands still
//! while anything can run.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests wait and share as the session may not")]

mod support;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pith_agent::ToolOutput;
use pith_config::settings::Limits;
use serde_json::{Value, json};
use support::{Builder, Harness, Script, Turn};

const MINUTE: Duration = Duration::from_secs(60);

fn limited(script: impl Into<Script>, limits: Value) -> Builder {
    Harness::builder(script).settings(move |settings| settings.limits = Limits::read(&limits)).tool("echo", echo)
}

async fn echo(_: serde_json::Map<String, Value>, _: pith_agent::ToolContext) -> ToolOutput {
    ToolOutput::text("hi")
}

fn call() -> Turn {
    Turn::call("echo", json!({})).usage(300, 50)
}

/// The last answer.
fn last(host: &Harness) -> Value {
    let answer = json!({"type": "message_end", "message": {"role": "assistant"}});
    let last = host.frames().into_iter().rfind(|frame| support::is_like(frame, &answer));
    last.expect("an answer")["message"].clone()
}

/// What was used of a limit.
async fn used(host: &mut Harness, name: &str) -> Value {
    let state = host.state().await;
    let limits = state["limits"].as_array().expect("limits").clone();
    limits.iter().find(|limit| limit["name"] == name).expect("the limit")["used"].clone()
}

/// Fails unless the work ended once, with this limit.
#[track_caller]
fn assert_ended(host: &Harness, name: &str) {
    let last = last(host);
    assert_eq!((&last["stopReason"], &last["error"]["kind"]), (&json!("error"), &json!("limit")), "{last}");
    assert!(last["errorMessage"].as_str().expect("a text").contains(&format!("(limits.{name})")), "{last}");
    assert_eq!(host.count(json!({"type": "limit_reached", "limit": name, "phase": "hard"})), 1);
    assert_eq!(host.count(json!({"type": "agent_settled", "aborted": false, "limit": {"name": name}})), 1);
}

async fn audited(host: &mut Harness) -> Vec<Value> {
    let audit = host.data(json!({"type": "get_audit"})).await;
    audit["entries"].as_array().expect("entries").iter().map(|entry| entry["data"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn work_ends_at_the_limit_of_tokens_and_goes_on_when_it_is_raised() {
    let mut host = limited([call(), call(), Turn::text("done")], json!({"tokens": 700})).open();
    host.run("go").await;
    assert_ended(&host, "tokens");
    assert_eq!(host.model.calls().len(), 2);
    assert_eq!(
        last(&host)["errorMessage"],
        "Limit reached: 700 tokens in this session (limits.tokens). Raise it with set_limits or start a new session."
    );
    assert_eq!(audited(&mut host).await, [json!({"kind": "limit", "limit": "tokens", "used": 700, "max": 700})]);
    let refused = host.refusal(json!({"type": "prompt", "message": "more"})).await;
    assert_eq!(refused, last(&host)["errorMessage"]);
    let set = host.data(json!({"type": "set_limits", "limits": {"tokens": 5000}})).await;
    assert_eq!(set["limits"], json!([{"name": "tokens", "used": 700, "max": 5000}]));
    host.run("more").await;
    assert_eq!((last(&host)["stopReason"].as_str(), host.model.calls().len()), (Some("stop"), 3));
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_without_limits_says_nothing_of_them() {
    let mut host = Harness::builder([call(), call(), call(), call(), Turn::text("done")]).tool("echo", echo).open();
    host.run("go").await;
    let state = host.state().await;
    assert!(state.get("limits").is_none() && state.get("isPaused").is_none(), "{state}");
    for kind in ["limit_reached", "loop_suspected", "paused", "resumed"] {
        assert_eq!(host.count(json!({ "type": kind })), 0, "{kind}");
    }
    let settled = host.frames().into_iter().rfind(|frame| frame["type"] == "agent_settled");
    assert_eq!(settled, Some(json!({"type": "agent_settled", "aborted": false})));
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn hosts_are_told_once_that_a_limit_is_near() {
    let limits = json!({"turns": 10, "softPercent": 20});
    let mut host = limited([call(), call(), Turn::text("done")], limits).open();
    host.run("go").await;
    let near = json!({"type": "limit_reached", "limit": "turns", "used": 2, "max": 10, "phase": "soft"});
    assert_eq!((host.count(near), host.count(json!({"type": "limit_reached"}))), (1, 1));
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_passes_the_limit_of_output_is_cut() {
    let long = "word ".repeat(400);
    let mut host = limited([Turn::text(&long).and_hang()], json!({"outputTokens": 100})).open();
    host.run("go").await;
    assert_ended(&host, "outputTokens");
    let refused = host.refusal(json!({"type": "prompt", "message": "more"})).await;
    assert!(refused.contains("100 output tokens in this session"), "{refused}");
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_cannot_be_read_refuses_prompts() {
    let mut host = limited([Turn::text("never")], json!({"tokens": -5})).open();
    let refused = host.refusal(json!({"type": "prompt", "message": "go"})).await;
    assert_eq!(refused, "limits.tokens: expected a whole number above 0");
    let refused = host.refusal(json!({"type": "set_limits", "limits": {"turns": 1.5}})).await;
    assert_eq!(refused, "limits.turns: expected a whole number above 0");
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn counters_come_from_the_branch() {
    let script = [call(), Turn::text("one").usage(10, 5), Turn::text("two").usage(10, 5)];
    let mut host = limited(script, json!({"turns": 100, "tokens": 100_000})).saved().open();
    host.run("go").await;
    let (turns, tokens) = (used(&mut host, "turns").await, used(&mut host, "tokens").await);
    assert_eq!((&turns, &tokens), (&json!(2), &json!(365)));
    let first = host.state().await["sessionFile"].clone();
    host.run("again").await;
    assert_eq!(used(&mut host, "turns").await, 3);
    let messages = host.data(json!({"type": "get_fork_messages"})).await;
    let again = messages["messages"][1]["entryId"].clone();
    host.data(json!({"type": "fork", "entryId": again})).await;
    assert_eq!((used(&mut host, "turns").await, used(&mut host, "tokens").await), (turns, tokens));
    host.data(json!({"type": "new_session"})).await;
    assert_eq!(used(&mut host, "turns").await, 0);
    host.data(json!({"type": "switch_session", "sessionPath": first})).await;
    assert_eq!(used(&mut host, "turns").await, 3);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn time_counts_across_prompts_and_stands_still_in_pauses() {
    let script = [Turn::gated("one"), Turn::gated("two"), Turn::text("never")];
    let mut host = limited(script, json!({"wallSeconds": 60})).open();
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait_calls(1).await;
    host.pass(MINUTE / 2).await;
    host.data(json!({"type": "pause"})).await;
    host.pass(10 * MINUTE).await;
    assert_eq!(host.state().await["isPaused"], true);
    host.data(json!({"type": "resume"})).await;
    host.model.release();
    host.wait_type("agent_settled").await;
    host.pass(10 * MINUTE).await;
    host.send(json!({"type": "prompt", "message": "go on"}));
    host.wait_calls(2).await;
    host.wait_type("agent_settled").await;
    assert_ended(&host, "wallSeconds");
    assert_eq!(host.model.calls().len(), 2);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_wait_before_a_retry_counts_and_a_summary_too() {
    let mut host = limited([Turn::overloaded("503"), Turn::text("never")], json!({"wallSeconds": 1})).open();
    host.run("go").await;
    assert_ended(&host, "wallSeconds");
    assert_eq!(host.model.calls().len(), 1);
    host.finish().await;

    let long = "word ".repeat(2000);
    let script = Script::of([Turn::text(&long), call().usage(7000, 10), Turn::text("never")]);
    let mut host = limited(script.summaries([Turn::hang()]), json!({"wallSeconds": 60})).window(8000).open();
    host.run(&long).await;
    host.run("and now?").await;
    assert_eq!(host.count(json!({"type": "compaction_end", "aborted": true})), 1);
    assert_ended(&host, "wallSeconds");
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn tokens_of_a_summary_count_and_end_the_work() {
    let long = "word ".repeat(2000);
    let script = Script::of([Turn::text(&long), call().usage(7000, 10), Turn::text("never")]);
    let summaries = script.summaries([Turn::text("summary").usage(9000, 100)]);
    let mut host = limited(summaries, json!({"tokens": 16_000})).window(8000).open();
    host.run(&long).await;
    host.run("and now?").await;
    assert_eq!(host.count(json!({"type": "compaction_end", "aborted": false})), 1);
    assert_ended(&host, "tokens");
    let refused = host.refusal(json!({"type": "compact"})).await;
    assert!(refused.starts_with("Limit reached: 16000 tokens"), "{refused}");
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_audit_is_listed_from_an_entry_on() {
    let mut host = limited([call(), call(), call()], json!({"turns": 1})).open();
    host.run("go").await;
    let all = host.data(json!({"type": "get_audit"})).await["entries"].clone();
    host.data(json!({"type": "set_limits", "limits": {"turns": 2}})).await;
    host.run("go on").await;
    let later = host.data(json!({"type": "get_audit", "since": all[0]["id"]})).await["entries"].clone();
    assert_eq!((all.as_array().map(Vec::len), later.as_array().map(Vec::len)), (Some(1), Some(1)));
    assert_eq!((&all[0]["data"]["max"], &later[0]["data"]["max"]), (&json!(1), &json!(2)));
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn time_for_tools_ends_calls_that_say_so() {
    let wait = |_, context: pith_agent::ToolContext| async move {
        context.cancel.cancelled().await;
        ToolOutput::error("stopped")
    };
    let script = [Turn::call("wait", json!({})), Turn::text("never")];
    let mut host = limited(script, json!({"toolSeconds": 5})).tool("wait", wait).open();
    host.run("go").await;
    assert_ended(&host, "toolSeconds");
    let end = host.frames().into_iter().find(|frame| frame["type"] == "tool_execution_end").expect("an end");
    assert_eq!(end["result"]["content"][0]["text"], "stopped\n\nwait ended: limits.toolSeconds");
    host.finish().await;

    let script = [Turn::call("wait", json!({})), Turn::text("done")];
    let mut host = limited(script, json!({"toolCallSeconds": 5})).tool("wait", wait).open();
    host.run("go").await;
    assert_eq!(last(&host)["stopReason"], "stop", "only the call ended");
    assert_eq!(host.count(json!({"type": "limit_reached", "limit": "toolCallSeconds", "phase": "hard"})), 1);
    let audited = audited(&mut host).await;
    assert_eq!(audited[0]["limit"], "toolCallSeconds");
    assert!(audited[0]["toolCallId"].is_string(), "{audited:?}");
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_cost_that_cannot_be_watched_is_told_and_refused_if_strict() {
    const UNPRICED: &str = "limits.costUsd cannot be watched: no price for one";
    // The models here have a price for what they read only.
    let unpriced = |limits: Value| limited([Turn::text("one").usage(0, 50), Turn::text("two")], limits).open();
    let mut host = unpriced(json!({"costUsd": 5}));
    host.run("go").await;
    let found = host.data(json!({"type": "get_diagnostics"})).await;
    let messages: Vec<_> = found["diagnostics"].as_array().expect("a list").iter().map(|one| &one["message"]).collect();
    assert_eq!(messages, [UNPRICED]);
    host.run("go on").await;
    host.finish().await;
    let mut host = unpriced(json!({"costUsd": 5, "strict": true}));
    host.run("go").await;
    assert_eq!(host.refusal(json!({"type": "prompt", "message": "go on"})).await, UNPRICED);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_queued_waits_until_the_limit_is_raised() {
    let mut host = limited([call().and_gate(), Turn::text("two"), Turn::text("three")], json!({"turns": 1})).open();
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait_calls(1).await;
    host.data(json!({"type": "follow_up", "message": "later"})).await;
    host.model.release();
    host.wait_type("agent_settled").await;
    assert_ended(&host, "turns");
    assert_eq!(host.state().await["queuedMessageCount"], 1);
    host.data(json!({"type": "set_limits", "limits": {"turns": null}})).await;
    assert!(host.state().await.get("limits").is_none());
    host.run("now").await;
    assert_eq!(host.state().await["queuedMessageCount"], 0);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_repeated_too_often_is_asked_about() {
    let script = || Script::answering(|_| Turn::call("echo", json!({"x": 1})));
    let mut host = limited(script(), json!({"repeats": 4})).open();
    host.send(json!({"type": "prompt", "message": "go"}));
    let question = host.wait(json!({"type": "extension_ui_request", "method": "select"})).await;
    assert_eq!(question["options"], json!(["Continue", "Stop"]));
    assert_eq!(host.count(json!({"type": "loop_suspected", "toolName": "echo", "count": 3})), 1);
    assert_eq!(host.model.calls().len(), 4);
    host.answer(&question, json!({"value": "Continue"}));
    let question = host.wait(json!({"type": "extension_ui_request", "method": "select"})).await;
    host.answer(&question, json!({"value": "Stop"}));
    host.wait_type("agent_settled").await;
    assert_ended(&host, "repeats");
    host.finish().await;

    let mut host = limited(script(), json!({"repeats": 4})).options(|options| options.has_ui = false).open();
    host.run("go").await;
    assert_ended(&host, "repeats");
    assert_eq!(host.model.calls().len(), 4);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_while_asking_is_an_abort() {
    let script = Script::answering(|_| Turn::call("echo", json!({"x": 1})));
    let mut host = limited(script, json!({"repeats": 2})).open();
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait(json!({"type": "extension_ui_request", "method": "select"})).await;
    host.ask(json!({"type": "abort"})).await;
    assert_eq!(host.count(json!({"type": "agent_settled", "aborted": true})), 1);
    assert_eq!(host.count(json!({"type": "limit_reached"})), 0);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn time_stands_still_while_the_host_is_asked() {
    let script = Script::answering(|_| Turn::call("echo", json!({"x": 1})));
    let mut host = limited(script, json!({"repeats": 2, "wallSeconds": 10, "toolSeconds": 10})).open();
    host.send(json!({"type": "prompt", "message": "go"}));
    let question = host.wait(json!({"type": "extension_ui_request", "method": "select"})).await;
    host.pass(MINUTE).await;
    assert_eq!(host.count(json!({"type": "limit_reached"})), 0);
    host.answer(&question, json!({"value": "Stop"}));
    host.wait_type("agent_settled").await;
    assert_ended(&host, "repeats");
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_requests_and_calls() {
    let mut host = limited([call().and_gate(), Turn::text("done")], json!({})).open();
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait_calls(1).await;
    host.data(json!({"type": "pause"})).await;
    host.wait(json!({"type": "paused", "frozen": false})).await;
    host.model.release();
    host.wait_type("tool_execution_start").await;
    host.pass(MINUTE).await;
    assert_eq!(host.count(json!({"type": "tool_execution_end"})), 0);
    host.data(json!({"type": "resume"})).await;
    host.wait_type("agent_settled").await;
    assert_eq!(host.model.calls().len(), 2);

    host.data(json!({"type": "pause"})).await;
    host.data(json!({"type": "prompt", "message": "more"})).await;
    host.pass(MINUTE).await;
    assert_eq!(host.model.calls().len(), 2, "nothing is asked");
    host.ask(json!({"type": "abort"})).await;
    assert_eq!(host.count(json!({"type": "agent_settled", "aborted": true})), 1);
    assert_eq!(host.state().await["isPaused"], true);
    host.data(json!({"type": "resume"})).await;
    host.finish().await;
}

/// A session with a tool that writes a file of so many megabytes into its directory.
fn growing(script: impl Into<Script>, limits: Value) -> (Harness, Arc<OnceLock<PathBuf>>) {
    let directory = Arc::new(OnceLock::new());
    let known = Arc::clone(&directory);
    let grow = move |arguments: serde_json::Map<String, Value>, _| {
        let megabytes = arguments["megabytes"].as_u64().expect("a number") as usize;
        let path: &PathBuf = known.get().expect("the session is open");
        std::fs::write(path.join("grown"), vec![7; megabytes << 20]).expect("written");
        async { ToolOutput::text("grown") }
    };
    let host = limited(script, limits).tool("grow", grow).saved().open();
    directory.set(host.directory().to_owned()).expect("set once");
    (host, directory)
}

fn grow(megabytes: u64) -> Turn {
    Turn::call("grow", json!({ "megabytes": megabytes }))
}

#[tokio::test(start_paused = true)]
async fn work_ends_when_the_project_has_grown_too_much_and_goes_on_when_it_has_shrunk() {
    let script = [grow(2), grow(5), Turn::text("never yet"), Turn::text("done")];
    let (mut host, directory) = growing(script, json!({"diskMb": 4, "softPercent": 40}));
    host.run("go").await;
    assert_ended(&host, "diskMb");
    assert_eq!(host.model.calls().len(), 2);
    assert_eq!(host.count(json!({"type": "limit_reached", "limit": "diskMb", "phase": "soft"})), 1);
    let grown = used(&mut host, "diskMb").await.as_f64().expect("a number");
    assert!((5.0..6.0).contains(&grown), "{grown}");
    let refused = host.refusal(json!({"type": "prompt", "message": "more"})).await;
    assert_eq!(
        refused,
        "Limit reached: 4 MB that the project has grown by in this session (limits.diskMb). Raise it with set_limits \
         or start a new session."
    );
    std::fs::remove_file(directory.get().expect("known").join("grown")).expect("removed");
    // The refusal of a prompt has the project measured for the next one.
    while host.ask(json!({"type": "prompt", "message": "more"})).await["success"] == false {}
    host.wait_type("agent_settled").await;
    assert_eq!(last(&host)["stopReason"], "stop");
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn growth_is_known_from_the_session_file_and_counts_from_the_beginning() {
    let (mut host, _) = growing([grow(2), Turn::text("one"), Turn::text("two")], json!({"diskMb": 100}));
    host.run("go").await;
    let grown = used(&mut host, "diskMb").await;
    assert!(grown.as_f64().expect("a number") >= 2.0, "{grown}");
    let first = host.state().await["sessionFile"].clone();
    host.data(json!({"type": "new_session"})).await;
    host.run("another").await;
    assert!(used(&mut host, "diskMb").await.as_f64().expect("a number") < 1.0);
    host.data(json!({"type": "switch_session", "sessionPath": first})).await;
    assert!(used(&mut host, "diskMb").await.as_f64().expect("a number") >= 2.0);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_project_that_cannot_be_measured_is_told_and_refused_if_strict() {
    let unmeasured = |limits: Value| {
        let host = limited([Turn::text("one"), Turn::text("two")], limits).open();
        std::fs::remove_dir_all(host.directory()).expect("removed");
        host
    };
    let mut host = unmeasured(json!({"diskMb": 4}));
    host.run("go").await;
    let found = host.data(json!({"type": "get_diagnostics"})).await;
    let text = found["diagnostics"].to_string();
    assert!(text.contains("limits.diskMb cannot be watched: the project cannot be measured: No such file"), "{text}");
    host.finish().await;
    let mut host = unmeasured(json!({"diskMb": 4, "strict": true}));
    host.run("go").await;
    assert_eq!(host.model.calls().len(), 0);
    assert!(last(&host)["errorMessage"].as_str().expect("a text").contains("limits.diskMb cannot be watched"));
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_stopped_while_the_project_is_measured_ends() {
    let (mut host, _) = growing([Turn::text("never")], json!({"diskMb": 4}));
    host.send(json!({"type": "prompt", "message": "go"}));
    host.ask(json!({"type": "abort"})).await;
    host.wait_type("agent_settled").await;
    host.finish().await;
}
