//! Answers put together in order, whatever comes.

use super::*;
use pith_protocol::{ErrorKind, ModelCost};
use serde_json::json;

fn builder() -> MessageBuilder {
    let cost = ModelCost { input: 3.0, output: 15.0, ..ModelCost::default() };
    let model = Model { id: "m".into(), api: "a".into(), provider: "p".into(), cost, ..Model::default() };
    MessageBuilder::new(Arc::new(model), 40)
}

/// The ways in which an answer ends before it is complete.
const BREAK_OFF: [fn(&mut MessageBuilder); 2] =
    [MessageBuilder::abort, |builder| builder.fail(Fault::new(ErrorKind::Network, "gone"))];

fn names(builder: &mut MessageBuilder) -> Vec<String> {
    let name = |event: AssistantEvent| format!("{event:?}").split([' ', '(']).next().unwrap_or_default().to_owned();
    std::iter::from_fn(|| builder.next_event()).map(name).collect()
}

fn end(builder: &mut MessageBuilder) -> AssistantMessage {
    match std::iter::from_fn(|| builder.next_event()).last() {
        Some(AssistantEvent::End(message)) => *message,
        other => panic!("not an end: {other:?}"),
    }
}

#[test]
fn open_blocks_are_ended_when_the_answer_breaks_off() {
    for break_off in BREAK_OFF {
        let mut builder = builder();
        let text = builder.open_text();
        builder.push(text, "hi".into());
        let call = builder.open_call("c1", "bash");
        builder.push(call, r#"{"command":"ec"#.into());
        break_off(&mut builder);
        assert_eq!(
            names(&mut builder),
            ["Start", "TextStart", "TextDelta", "ToolCallStart", "ToolCallDelta", "TextEnd", "ToolCallEnd", "End"]
        );
    }
}

#[test]
fn a_call_that_is_broken_off_keeps_the_arguments_shown_last() {
    for break_off in BREAK_OFF {
        let mut builder = builder();
        let call = builder.open_call("c1", "bash");
        builder.push(call, r#"{"command":"echo hello wor"#.into());
        break_off(&mut builder);
        let message = end(&mut builder);
        let call = message.tool_calls().next().expect("a call");
        assert_eq!(json!(call.arguments), json!({"command": "echo hello wor"}));
        assert_eq!(call.arguments_truncated, Some(true));
    }
}

#[test]
fn broken_arguments_are_kept_as_text_only() {
    let mut builder = builder();
    let call = builder.open_call("c1", "bash");
    builder.push(call, r#"{"command":"echo hello wor"#.into());
    builder.finish(StopReason::ToolUse);
    let message = end(&mut builder);
    let call = message.tool_calls().next().expect("a call");
    assert_eq!((call.arguments.len(), call.arguments_truncated), (0, Some(true)));
    assert_eq!(
        message.diagnostics,
        Some(json!({"toolCalls": {"c1": {
            "error": "text ends inside a string at offset 26", "raw": "{\"command\":\"echo hello wor"}}}))
    );
}

#[test]
fn calls_of_an_answer_cut_by_the_limit_are_marked() {
    let mut builder = builder();
    let call = builder.open_call("c1", "read");
    builder.push(call, r#"{"path":"a"}"#.into());
    builder.finish(StopReason::Length);
    let message = end(&mut builder);
    let call = message.tool_calls().next().expect("a call");
    assert_eq!((call.arguments["path"].as_str(), call.arguments_truncated), (Some("a"), Some(true)));
    assert_eq!(message.stop_reason, StopReason::Length);
}

#[test]
fn a_plain_stop_with_calls_is_a_tool_stop() {
    let mut builder = builder();
    builder.open_call("c1", "ls");
    builder.finish(StopReason::Stop);
    assert_eq!(end(&mut builder).stop_reason, StopReason::ToolUse);
}

#[test]
fn usage_is_priced_and_estimated_when_missing() {
    let mut reported = builder();
    reported.set_usage(Usage { input: 1_000_000, output: 10, ..Usage::default() });
    reported.finish(StopReason::Stop);
    let usage = end(&mut reported).usage;
    assert_eq!((usage.total_tokens, usage.cost.input, usage.estimated), (1_000_010, 3.0, None));

    let mut silent = builder();
    let text = silent.open_text();
    silent.push(text, "12345678".into());
    silent.finish(StopReason::Stop);
    let usage = end(&mut silent).usage;
    assert_eq!((usage.input, usage.output, usage.total_tokens, usage.estimated), (40, 2, 42, Some(true)));
    assert!(usage.cost.total > 0.0);

    let mut failed = builder();
    failed.abort();
    assert_eq!(end(&mut failed).usage, Usage::default());
}

#[test]
fn a_failure_before_the_answer_has_no_start() {
    let mut builder = builder();
    builder.fail(Fault::new(ErrorKind::Auth, "401 no"));
    builder.finish(StopReason::Stop);
    assert_eq!(names(&mut builder), ["End"]);
}

#[test]
fn the_answering_model_is_named_only_when_it_differs() {
    let mut builder = builder();
    builder.set_response_model("m");
    builder.begin();
    builder.set_response_model("m-2026");
    builder.set_response_model("m-2026");
    builder.set_response_id("r1");
    builder.set_response_id("r2");
    builder.finish(StopReason::Stop);
    assert_eq!(names(&mut builder), ["Start", "Meta", "Meta", "Meta", "End"]);
}

#[test]
fn every_call_has_an_id_of_its_own() {
    let mut builder = builder();
    for id in ["a", "a", ""] {
        builder.open_call(id, "ls");
    }
    builder.finish(StopReason::ToolUse);
    let message = end(&mut builder);
    let ids: std::collections::HashSet<_> = message.tool_calls().map(|call| call.id.as_str()).collect();
    assert_eq!((ids.len(), ids.contains("a"), ids.contains("")), (3, true, false));
}

#[test]
fn only_a_continuation_completes_a_block() {
    let mut builder = builder();
    let text = builder.open_text();
    builder.push(text, "ab".into());
    builder.complete(text, "abc");
    builder.complete(text, "xyz and more");
    assert_eq!(builder.received(text), "abc");
}
