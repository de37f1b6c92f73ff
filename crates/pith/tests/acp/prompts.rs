//! Turns: how they end, how they are cancelled, and what happens to prompts while one runs.

use pith_testkit::{Fault, Turn, process, timeout};
use serde_json::json;

use crate::support::{Editor, text_of};

#[test]
fn a_prompt_is_answered_when_its_turn_is_over() {
    let mut editor = Editor::new([Turn::text("Hello there")]);
    let session = editor.new_session();
    let id = editor.send_prompt(&session, "hi");
    let result = editor.result(id);
    assert_eq!(result["stopReason"], "end_turn");
    assert_eq!(result["_meta"]["pith"]["turns"], 1, "{result}");
    assert!(result["usage"]["totalTokens"].as_u64().is_some_and(|total| total > 0), "{result}");
    let updates = editor.updates(&session);
    assert_eq!(text_of(&updates, "agent_message_chunk"), "Hello there");
    // The editor shows its own prompt itself.
    assert_eq!(text_of(&updates, "user_message_chunk"), "");
    let frames = editor.finish();
    let last_chunk =
        frames.iter().rposition(|frame| frame["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    assert!(last_chunk < frames.iter().position(|frame| frame["id"] == id && frame.get("result").is_some()));
}

#[test]
fn ends_of_turns_have_their_reasons() {
    let mut editor = Editor::new([
        Turn::text("cut").stop("length"),
        Turn::text("no").stop("refusal"),
        Turn::text("after the refusal"),
    ]);
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "long"), "max_tokens");
    assert_eq!(editor.prompt(&session, "forbidden words"), "refusal");
    assert_eq!(editor.prompt(&session, "fine"), "end_turn");
    // What was refused is no longer part of the conversation.
    let request = editor.server.requests().last().expect("a request").body.to_string();
    assert!(request.contains("long") && !request.contains("forbidden words"), "{request}");
    editor.finish();
}

#[test]
fn a_failed_turn_is_an_error_with_the_providers_words() {
    let body = json!({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}});
    let mut editor = Editor::new([Turn::failing(Fault::Http { status: 401, body, headers: serde_json::Map::new() })]);
    let session = editor.new_session();
    let id = editor.send_prompt(&session, "hi");
    let error = editor.answer(id)["error"].clone();
    assert_eq!(error["code"], -32000, "{error}");
    assert_eq!(error["data"]["status"], 401, "{error}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("invalid x-api-key")), "{error}");
    editor.finish();
}

#[test]
fn a_cancel_ends_the_command_that_runs() {
    let sleep = format!("sleep 4711.{}", std::process::id());
    let command = format!("echo started; {sleep}");
    let mut editor = Editor::new([Turn::call("bash", json!({"command": command})), Turn::text("fine")]);
    let session = editor.new_session();
    let id = editor.send_prompt(&session, "go");
    editor
        .wait_update(|update| update["sessionUpdate"] == "tool_call_update" && update.to_string().contains("started"));
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.result(id)["stopReason"], "cancelled");
    let updates = editor.updates(&session);
    let last = updates.iter().rfind(|update| update["toolCallId"].is_string()).expect("a call");
    assert_eq!(last["status"], "failed", "{last}");
    process::no_process_with(&sleep, timeout());
    // A cancel that comes too late does nothing to the next turn.
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.prompt(&session, "again"), "end_turn");
    editor.finish();
}

#[test]
fn a_second_prompt_waits_for_the_first() {
    let mut editor = Editor::new([Turn::text("one two").chunk(3).hold_after(1), Turn::text("three")]);
    let session = editor.new_session();
    let first = editor.send_prompt(&session, "first");
    editor.wait_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    let second = editor.send_prompt(&session, "second");
    // A request that is answered at once shows that the second prompt was taken, and waits.
    editor.ask("session/status", json!({"sessionId": session}));
    assert!(!editor.host.frames().iter().any(|frame| frame["id"] == second));
    editor.server.release(0);
    assert_eq!(editor.result(first)["stopReason"], "end_turn");
    assert_eq!(editor.result(second)["stopReason"], "end_turn");
    assert_eq!(text_of(&editor.updates(&session), "agent_message_chunk"), "one twothree");
    editor.finish();
}

#[test]
fn a_cancel_drops_the_prompts_that_wait() {
    let mut editor = Editor::new([Turn::text("one two").chunk(3).hold_after(1)]);
    let session = editor.new_session();
    let first = editor.send_prompt(&session, "first");
    editor.wait_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    let second = editor.send_prompt(&session, "second");
    let third = editor.send_prompt(&session, "third");
    editor.notify("$/cancel_request", json!({"requestId": third}));
    assert_eq!(editor.result(third)["stopReason"], "cancelled");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.result(first)["stopReason"], "cancelled");
    assert_eq!(editor.result(second)["stopReason"], "cancelled");
    assert_eq!(editor.server.requests().len(), 1);
    editor.finish();
}

#[test]
fn steering_joins_the_turn_that_runs() {
    let mut editor = Editor::new([Turn::text("one two").chunk(3).hold_after(1), Turn::text("steered")]);
    let session = editor.new_session();
    let steering = |text: &str| {
        json!({"sessionId": session, "prompt": [{"type": "text", "text": text}],
        "_meta": {"steering": {"idleBehavior": "promptRequired"}}})
    };
    let idle = editor.ask("_session/steering", steering("nobody listens"));
    assert_eq!(idle, json!({"outcome": "promptRequired", "reason": "noRunningTurn"}));
    let first = editor.send_prompt(&session, "first");
    editor.wait_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    assert_eq!(editor.ask("_session/steering", steering("listen")), json!({"outcome": "injected"}));
    editor.server.release(0);
    assert_eq!(editor.result(first)["stopReason"], "end_turn");
    assert_eq!(text_of(&editor.updates(&session), "agent_message_chunk"), "one twosteered");
    assert!(editor.server.requests().last().expect("a request").body.to_string().contains("listen"));
    editor.finish();
}

#[test]
fn the_end_of_input_cancels_what_runs() {
    let mut editor = Editor::new([Turn::text("one two").chunk(3).hold_after(1)]);
    let session = editor.new_session();
    let id = editor.send_prompt(&session, "go");
    editor.wait_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    let frames = editor.finish();
    let answer = frames.iter().find(|frame| frame["id"] == id).expect("an answer");
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
}

#[test]
fn every_kind_of_block_reaches_the_model() {
    let mut editor = Editor::new([Turn::text("seen")]);
    let session = editor.new_session();
    let uri = format!("file://{}/src/a.rs#L5:15", editor.home.work().display());
    let prompt = json!([
        {"type": "text", "text": "look at "},
        {"type": "resource_link", "name": "a.rs", "uri": uri},
        {"type": "resource", "resource": {"uri": "zed:///agent/untitled-buffer", "text": "let x;"}},
        {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}
    ]);
    editor.ask("session/prompt", json!({"sessionId": session, "prompt": prompt}));
    let body = editor.server.requests().last().expect("a request").body.to_string();
    assert!(body.contains("look at [@a.rs](src/a.rs#L5-15)"), "{body}");
    assert!(body.contains("let x;") && body.contains("image/png"), "{body}");
    let audio = json!([{"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}]);
    let refused = editor.refusal("session/prompt", json!({"sessionId": session, "prompt": audio}));
    assert_eq!(refused, (-32602, "This agent takes no audio".to_owned()));
    editor.finish();
}

#[test]
fn prompts_wait_up_to_a_bound_and_steering_ones_end_with_the_turn() {
    let mut editor = Editor::new([Turn::text("one two").chunk(3).hold_after(1), Turn::text("steered")]);
    let session = editor.new_session();
    let first = editor.send_prompt(&session, "first");
    editor.wait_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    let waiting: Vec<u64> = (0..32).map(|_| editor.send_prompt(&session, "later")).collect();
    let text = json!([{"type": "text", "text": "too much"}]);
    let refused = editor.refusal("session/prompt", json!({"sessionId": session, "prompt": text}));
    assert_eq!(refused, (-32600, "32 prompts are waiting already".to_owned()));
    let steering = json!({"sessionId": session, "prompt": [{"type": "text", "text": "listen"}],
        "_meta": {"pith": {"delivery": "steer"}}});
    let steered = editor.send("session/prompt", steering);
    for id in waiting {
        editor.notify("$/cancel_request", json!({"requestId": id}));
        assert_eq!(editor.result(id)["stopReason"], "cancelled");
    }
    // What names no request that is under way changes nothing.
    editor.notify("$/cancel_request", json!({"requestId": 4711}));
    editor.server.release(0);
    assert_eq!(editor.result(steered)["stopReason"], "end_turn");
    assert_eq!(editor.result(first)["stopReason"], "end_turn");
    assert!(editor.server.requests().last().expect("a request").body.to_string().contains("listen"));
    assert_eq!(editor.server.requests().len(), 2);
    editor.finish();
}

#[test]
fn steering_an_idle_session_begins_a_turn_that_nobody_owns() {
    let mut editor = Editor::new([Turn::text("unasked")]);
    let session = editor.new_session();
    let text = json!([{"type": "text", "text": "go"}]);
    let outcome = editor.ask("_session/steering", json!({"sessionId": session, "prompt": text}));
    assert_eq!(outcome, json!({"outcome": "startedNewTurn"}));
    editor.wait_update(|update| {
        update["sessionUpdate"] == "agent_message_chunk" && update["content"]["text"] == "unasked"
    });
    editor.finish();
}

#[test]
fn a_turn_ends_with_its_session_and_with_its_limit() {
    let call = || Turn::call("ls", json!({}));
    let turns = [call(), Turn::text("never"), Turn::text("one two").chunk(3).hold_after(1)];
    let mut editor = Editor::with(turns, json!({}), |builder| builder.args(["--max-turns", "1"]));
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "look"), "max_turn_requests");
    assert_eq!(editor.prompt(&session, "say never"), "end_turn");
    let id = editor.send_prompt(&session, "go");
    editor.wait_update(|update| update["content"]["text"] == "one");
    editor.ask("session/close", json!({"sessionId": session}));
    assert_eq!(editor.result(id)["stopReason"], "cancelled");
    editor.finish();
}

#[test]
fn a_prompt_has_its_place_in_the_trace_of_the_editor() {
    let shows = || Turn::call("bash", json!({"command": "echo place=$TRACEPARENT"}));
    let turns = [shows(), Turn::text("done"), shows(), Turn::text("done")];
    // Nobody listens there, which holds up nothing.
    let mut editor = Editor::with(turns, json!({}), |builder| {
        builder.env("PITH_OTEL", "1").env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    });
    let session = editor.new_session();
    let trace = "11111111111111111111111111111111";
    let mut place = |meta: serde_json::Value| {
        let text = json!([{"type": "text", "text": "go"}]);
        editor.ask("session/prompt", json!({"sessionId": session, "prompt": text, "_meta": meta}));
        editor.server.requests().last().expect("a request").body["messages"].to_string()
    };
    let within = place(json!({"traceparent": format!("00-{trace}-2222222222222222-01")}));
    assert!(within.contains(&format!("place=00-{trace}-")), "{within}");
    // What is no place is passed over, and the trace of one prompt is not that of the next.
    let without = place(json!({"traceparent": 5}));
    assert_eq!(without.matches("place=00-").count(), 2, "{without}");
    assert_eq!(without.matches(trace).count(), 1, "{without}");
    editor.finish();
}

#[test]
fn a_block_of_unknown_kind_is_named() {
    let mut editor = Editor::new([]);
    let session = editor.new_session();
    let prompt = json!([{"type": "text", "text": "see"}, {"type": "hologram", "data": "x"}]);
    let id = editor.send("session/prompt", json!({"sessionId": session, "prompt": prompt}));
    let error = editor.answer(id)["error"].clone();
    assert_eq!((&error["code"], &error["data"]["field"]), (&json!(-32602), &json!("prompt[1].type")), "{error}");
    assert!(error["message"].as_str().is_some_and(|message| message.contains("hologram")), "{error}");
    editor.finish();
}

#[test]
fn an_error_of_the_provider_is_told_with_what_is_known_of_it() {
    let body =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "too many stop sequences"}});
    let mut editor = Editor::new([Turn::failing(Fault::Http { status: 400, body, headers: serde_json::Map::new() })]);
    let session = editor.new_session();
    let id = editor.send_prompt(&session, "hi");
    let error = editor.answer(id)["error"].clone();
    assert_eq!(error["code"], -32603, "{error}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("too many stop sequences")), "{error}");
    let data = json!({"provider": "mock-anthropic", "model": "claude-mock", "status": 400, "retryable": false});
    assert_eq!(error["data"], data);
    editor.finish();
}

#[test]
fn what_is_steered_while_a_permission_is_open_follows_it() {
    let turns = [Turn::call("bash", json!({"command": "echo ran"})), Turn::text("steered")];
    let mut editor = Editor::new(turns);
    let session = editor.new_session();
    editor.ask("session/set_mode", json!({"sessionId": session, "modeId": "ask"}));
    let prompt = editor.send_prompt(&session, "go");
    let asked = editor.asked("session/request_permission");
    let text = json!([{"type": "text", "text": "listen"}]);
    let outcome = editor.ask("_session/steering", json!({"sessionId": session, "prompt": text}));
    assert_eq!(outcome, json!({"outcome": "injected"}));
    assert_eq!(editor.server.requests().len(), 1);
    editor.reply(&asked, json!({"outcome": {"outcome": "selected", "optionId": "once"}}));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    let messages = editor.server.requests()[1].body["messages"].to_string();
    assert!(messages.find("ran").is_some_and(|ran| messages.find("listen") > Some(ran)), "{messages}");
    editor.finish();
}
