//! Tools and `tool_call` handlers of extensions that misbehave: the model is told, the run goes on.

use std::time::{Duration, Instant};

use pith_testkit::Turn;
use serde_json::{Value, json};

use crate::stage::{NEIGHBOUR, Stage};
use crate::support::texts;

/// Bodies of `execute`, whether the result is an error, and what the model reads.
const RESULTS: &[(&str, bool, &str)] = &[
    ("throw new Error('no way')", true, "no way"),
    ("await null; throw 'text'", true, "text"),
    ("return undefined", true, "did not return a result object"),
    ("return null", true, "did not return a result object"),
    ("return 'just text'", true, "did not return a result object"),
    ("return []", false, ""),
    ("return {}", false, ""),
    ("return { content: 'a string' }", false, "a string"),
    ("return { content: 7 }", true, "content that is not an array"),
    ("return { content: [5] }", true, "content[0]"),
    ("return { content: [{ type: 'text' }] }", true, ""),
    ("return { content: [{ type: 'text', text: 'a' }, { type: 'video' }] }", true, "content[1]"),
    ("return { content: [{ type: 'image', data: 5 }] }", true, "content[0]"),
    ("const details = {}; details.self = details; return { content: [], details }", true, "cannot be sent as JSON"),
    ("return { content: [], details: 10n }", true, "cannot be sent as JSON"),
    ("return { content: [], details: { toJSON() { throw new Error('hidden') } } }", true, ""),
    ("return new Proxy({}, { get() { throw new Error('proxy') } })", true, ""),
    (
        "update('nonsense'); update({ content: 5 }); update(); return { content: [{ type: 'text', text: 'fine' }] }",
        false,
        "fine",
    ),
    (
        "setTimeout(() => update({ content: [{ type: 'text', text: 'late' }] }), 1); return { content: [{ type: 'text', text: 'early' }] }",
        false,
        "early",
    ),
    ("for (;;) {}", true, "interrupted"),
    ("new Uint8Array(1 << 30)", true, "memory"),
    ("const f = () => f() + 1; f()", true, "stack"),
];

fn tool(cases: &[&str]) -> String {
    let cases: String =
        cases.iter().enumerate().map(|(index, body)| format!("case {index}: {{ {body} }} break;")).collect();
    format!(
        "export default (pi) => pi.registerTool({{
            name: 'odd', label: 'Odd', description: 'odd', parameters: {{ type: 'object', properties: {{ which: {{ type: 'number' }} }} }},
            async execute(id, params, signal, update, ctx) {{ switch (params.which) {{ {cases} }} }},
        }});"
    )
}

fn gate(body: &str) -> String {
    format!("export default (pi) => pi.on('tool_call', async (event, ctx) => {{ {body} }});")
}

/// Whether a value is content as the protocol allows it.
fn is_content(value: &Value) -> bool {
    let is_block = |block: &Value| match block["type"].as_str() {
        Some("text") => block["text"].is_string(),
        Some("image") => block["data"].is_string() && block["mimeType"].is_string(),
        _ => false,
    };
    value.as_array().is_some_and(|blocks| blocks.iter().all(is_block))
}

#[test]
fn results_of_any_shape_reach_the_model_as_text_it_can_read() {
    let bodies: Vec<&str> = RESULTS.iter().map(|(body, ..)| *body).collect();
    let turns = (0..RESULTS.len()).flat_map(|which| [Turn::call("odd", json!({"which": which})), Turn::text("next")]);
    let mut stage = Stage::new(&[("odd.ts", &tool(&bodies)), NEIGHBOUR], turns);
    for (body, is_error, expected) in RESULTS {
        let start = stage.run("go");
        let end = stage.watch(start, body, |frame| frame["type"] == "tool_execution_end");
        assert_eq!(end["isError"], *is_error, "{body}: {end}");
        assert!(is_content(&end["result"]["content"]), "{body}: {end}");
        assert!(texts(&end["result"]["content"]).contains(expected), "{body}: {end}");
        for frame in &stage.host.frames()[start..] {
            let is_update = frame["type"] == "tool_execution_update";
            assert!(!is_update || is_content(&frame["partialResult"]["content"]), "{body}: {frame}");
        }
    }
    // Three interruptions in a row would disable it; one does not.
    stage.assert_alive();
    let n_requests = stage.server.requests().len();
    assert_eq!(n_requests, 2 * RESULTS.len(), "the model heard every result");
    stage.finish("tool results");
}

#[test]
fn a_tool_that_never_ends_can_be_aborted() {
    for body in [
        "await new Promise(() => {})",
        "signal.addEventListener('abort', () => { for (;;) {} }); await new Promise(() => {})",
    ] {
        let mut stage = Stage::new(&[("odd.ts", &tool(&[body])), NEIGHBOUR], [Turn::call("odd", json!({"which": 0}))]);
        stage.prompt("go");
        stage.watch(0, "the tool", |frame| frame["type"] == "tool_execution_start");
        let began = Instant::now();
        assert_eq!(stage.ask(json!({"type": "abort"}))["success"], true);
        assert!(began.elapsed() < Duration::from_secs(60), "{body}: {:?}", began.elapsed());
        let end = stage.watch(0, "the end", |frame| frame["type"] == "tool_execution_end");
        assert_eq!(end["isError"], true, "{body}: {end}");
        stage.watch(0, "the end of the run", |frame| frame["type"] == "agent_settled");
        stage.assert_alive();
        stage.finish(body);
    }
}

#[test]
fn any_failure_of_a_gate_blocks_the_call() {
    for (body, expected) in [
        ("throw new Error('closed')", "closed"),
        ("for (;;) {}", "was interrupted"),
        ("await new Promise(() => {})", "did not finish"),
        ("const f = () => f() + 1; f();", "stack"),
        ("new Uint8Array(1 << 30)", "memory"),
        ("event.input = undefined", "arguments"),
        ("event.input = { toJSON() { for (;;) {} } }", "was interrupted"),
        ("return { block: true }", ""),
        ("return { block: true, reason: 'because' }", "because"),
        ("return { block: true, reason: 5 }", ""),
    ] {
        let turns = [Turn::call("bash", json!({"command": "echo ran > ran.txt"})), Turn::text("done")];
        let mut stage = Stage::new(&[("gate.ts", &gate(body)), NEIGHBOUR], turns);
        let start = stage.run("go");
        let end = stage.watch(start, "the end of the tool", |frame| frame["type"] == "tool_execution_end");
        assert_eq!(end["isError"], true, "{body}: {end}");
        assert!(texts(&end["result"]["content"]).contains(expected), "{body}: {end}");
        assert_eq!(stage.home.read_file("ran.txt"), None, "{body}");
        let last = stage.server.requests().last().map(|request| request.body.to_string()).unwrap_or_default();
        assert!(last.contains("tool_result"), "{body}: the model was told");
        stage.assert_alive();
        stage.finish(&format!("gate: {body}"));
    }
}

#[test]
fn results_that_are_no_verdict_let_the_call_through() {
    for body in ["return 5", "return 'yes'", "return {}", "return { block: false }", "return null", "return []"] {
        let turns = [Turn::call("bash", json!({"command": "echo ran > ran.txt"})), Turn::text("done")];
        let mut stage = Stage::new(&[("gate.ts", &gate(body))], turns);
        stage.run("go");
        assert_eq!(stage.home.read_file("ran.txt").as_deref(), Some("ran\n"), "{body}");
        stage.finish(&format!("gate: {body}"));
    }
}

#[test]
fn results_changed_to_invalid_values_are_kept() {
    for body in [
        "throw new Error('no')",
        "return 5",
        "return { content: 7 }",
        "return { content: [{ type: 'video' }] }",
        "return { details: 10n }",
        "await new Promise(() => {})",
    ] {
        let text = format!("export default (pi) => pi.on('tool_result', async (event) => {{ {body} }});");
        let turns = [Turn::call("bash", json!({"command": "echo original"})), Turn::text("done")];
        let mut stage = Stage::new(&[("bad.ts", &text), NEIGHBOUR], turns);
        let start = stage.run("go");
        let end = stage.watch(start, "the end of the tool", |frame| frame["type"] == "tool_execution_end");
        assert!(is_content(&end["result"]["content"]), "{body}: {end}");
        assert!(texts(&end["result"]["content"]).contains("original"), "{body}: {end}");
        stage.assert_alive();
        stage.finish(&format!("tool_result: {body}"));
    }
}

/// Handlers around a run that return unusable values, or never return.
#[test]
fn every_event_of_a_run_survives_a_bad_handler() {
    let events = [
        "before_agent_start",
        "agent_start",
        "turn_start",
        "context",
        "before_provider_request",
        "after_provider_response",
        "message_start",
        "message_update",
        "message_end",
        "tool_execution_start",
        "tool_call",
        "tool_result",
        "tool_execution_end",
        "turn_end",
        "agent_end",
        "agent_before_settle",
        "agent_settled",
    ];
    for body in [
        "throw new Error('no');",
        "return 5;",
        "return { messages: 5, systemPrompt: {}, message: 'x', content: 3, payload: 7 };",
    ] {
        let handlers: String = events
            .iter()
            .filter(|event| **event != "tool_call" || !body.starts_with("throw"))
            .map(|event| format!("pi.on('{event}', async (event, ctx) => {{ {body} }});"))
            .collect();
        let text = format!("export default (pi) => {{ {handlers} }};");
        let turns = [Turn::call("bash", json!({"command": "echo ran > ran.txt"})), Turn::text("done")];
        let mut stage = Stage::new(&[("bad.ts", &text), NEIGHBOUR], turns);
        stage.run("go");
        assert_eq!(stage.home.read_file("ran.txt").as_deref(), Some("ran\n"), "{body}");
        let messages = stage.ask(json!({"type": "get_messages"}));
        let roles: Vec<_> =
            messages["data"]["messages"].as_array().expect("a list").iter().map(|one| one["role"].clone()).collect();
        assert_eq!(roles, ["user", "assistant", "toolResult", "assistant"], "{body}: {messages}");
        stage.assert_alive();
        stage.finish(&format!("all events: {body}"));
    }
}
