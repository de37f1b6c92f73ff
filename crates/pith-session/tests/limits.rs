//! Limits of the user: work that reaches one ends, says so, and can be continued. The clock stands still while anything
//! can run.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests wait and share as the session may not")]

mod support;

use std::time::Duration;

use pith_agent::ToolOutput;
use pith_session::{LimitScope, WorkLimits};
use serde_json::{Value, json};
use support::{Builder, Harness, Script, Turn};

const MINUTE: Duration = Duration::from_secs(60);

fn limited(script: impl Into<Script>, limits: WorkLimits) -> Builder {
    Harness::builder(script).options(move |options| options.limits = limits)
}

fn time(time: Duration) -> WorkLimits {
    WorkLimits { time: Some(time), ..WorkLimits::default() }
}

/// The last answer.
fn last(host: &Harness) -> Value {
    let answer = json!({"type": "message_end", "message": {"role": "assistant"}});
    let last = host.frames().into_iter().rfind(|frame| support::is_like(frame, &answer));
    last.expect("an answer")["message"].clone()
}

/// Fails unless the work ended with a limit and was not aborted.
#[track_caller]
fn assert_limited(host: &Harness, text: &str) {
    let last = last(host);
    assert_eq!((&last["stopReason"], &last["error"]["kind"]), (&json!("error"), &json!("limit")), "{last}");
    assert_eq!(last["errorMessage"], text);
    assert_eq!(host.count(json!({"type": "agent_settled", "aborted": false})), 1);
}

const TIME_IS_UP: &str = "The run was stopped: it reached the time limit of 60s (--timeout).";

#[tokio::test(start_paused = true)]
async fn an_answer_that_takes_too_long_is_stopped_and_keeps_what_there_is_of_it() {
    let script = [Turn::text("half of").and_hang(), Turn::text("the rest")];
    let mut host = limited(script, time(MINUTE)).open();
    host.run("go").await;
    assert_limited(&host, TIME_IS_UP);
    assert_eq!(last(&host)["content"][0]["text"], "half of");
    host.run("go on").await;
    assert_eq!((last(&host)["stopReason"].as_str(), host.model.calls().len()), (Some("stop"), 2));
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_stopped() {
    let mut host = limited([Turn::call("wait", json!({})), Turn::text("never")], time(MINUTE))
        .tool("wait", |_, context| async move {
            context.cancel.cancelled().await;
            ToolOutput::error("stopped")
        })
        .open();
    host.run("go").await;
    assert_limited(&host, TIME_IS_UP);
    assert_eq!(host.count(json!({"type": "tool_execution_end", "isError": true})), 1);
    assert_eq!(host.model.calls().len(), 1);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_wait_before_a_retry_counts() {
    let mut host = limited([Turn::overloaded("503"), Turn::text("never")], time(Duration::from_secs(1))).open();
    host.run("go").await;
    assert_limited(&host, "The run was stopped: it reached the time limit of 1s (--timeout).");
    assert_eq!(host.count(json!({"type": "auto_retry_end", "success": false})), 1);
    assert_eq!(host.model.calls().len(), 1);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_compaction_between_turns_counts() {
    let long = "word ".repeat(2000);
    let script = Script::of([Turn::text(&long), Turn::call("echo", json!({})).usage(7000, 10), Turn::text("never")]);
    let mut host = limited(script.summaries([Turn::hang()]), time(MINUTE))
        .window(8000)
        .tool("echo", |_, _| async { ToolOutput::text("hi") })
        .open();
    host.run(&long).await;
    host.run("and now?").await;
    assert_eq!(host.count(json!({"type": "compaction_end", "aborted": true})), 1);
    let last = last(&host);
    assert_eq!((&last["errorMessage"], &last["error"]["kind"]), (&json!(TIME_IS_UP), &json!("limit")));
    assert_eq!(host.count(json!({"type": "agent_settled", "aborted": false})), 2);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn work_that_is_done_in_time_is_not_touched() {
    let mut host = limited([Turn::gated("done")], time(MINUTE)).open();
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait_calls(1).await;
    host.pass(MINUTE - Duration::from_secs(1)).await;
    host.model.release();
    host.wait_type("agent_settled").await;
    assert_eq!(last(&host)["stopReason"], "stop");
    host.pass(MINUTE).await;
    assert_eq!(host.state().await["isStreaming"], false);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_before_the_deadline_is_an_abort() {
    let mut host = limited([Turn::hang()], time(MINUTE)).open();
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait_calls(1).await;
    host.ask(json!({"type": "abort"})).await;
    assert_eq!(last(&host)["stopReason"], "aborted");
    assert_eq!(host.count(json!({"type": "agent_settled", "aborted": true})), 1);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn no_answer_is_asked_for_once_the_money_is_spent() {
    let call = || Turn::call("nothing", json!({})).usage(300, 0);
    let limits = WorkLimits { cost: Some(0.5), ..WorkLimits::default() };
    let mut host =
        limited([call(), call(), call()], limits).tool("nothing", |_, _| async { ToolOutput::text("nothing") }).open();
    host.run("go").await;
    assert_limited(&host, "The run was stopped: it has cost $0.6000, and the limit is $0.5 (--max-cost).");
    assert_eq!(host.model.calls().len(), 2);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_ends_the_work_may_pass_the_limit() {
    let limits = WorkLimits { cost: Some(0.5), turns: Some(1), ..WorkLimits::default() };
    let mut host = limited([Turn::text("done").usage(2000, 0)], limits).open();
    host.run("go").await;
    assert_eq!(last(&host)["stopReason"], "stop");
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn each_prompt_has_its_allowance_unless_they_share_one() {
    for (scope, n_calls) in [(LimitScope::Prompt, 2), (LimitScope::Session, 1)] {
        let limits = WorkLimits { turns: Some(1), scope, ..WorkLimits::default() };
        let mut host = limited([Turn::text("one"), Turn::text("two")], limits).open();
        host.run("first").await;
        host.run("second").await;
        assert_eq!(host.model.calls().len(), n_calls, "{scope:?}");
        host.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_extension_that_always_continues_cannot_pass_a_limit() {
    let eager = "export default (pi) => pi.on('agent_before_settle', () => ({
        continue: true,
        entries: [{ type: 'custom_message', customType: 'more', content: 'more', display: true }],
    }));";
    let limits = WorkLimits { turns: Some(2), ..WorkLimits::default() };
    let script = Script::answering(|_| Turn::text("more"));
    let mut host = limited(script, limits).extension("eager.ts", eager).start().await;
    host.run("go").await;
    assert_eq!(host.model.calls().len(), 2);
    assert_eq!(last(&host)["error"]["kind"], "limit");
    host.finish().await;
}
