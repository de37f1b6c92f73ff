//! Abort: at any moment, everything that began ends, once, and pith is idle.

use pith_testkit::process::no_process_with;
use pith_testkit::server::Outcome;
use pith_testkit::{Block, Fault, Turn, timeout};
use serde_json::{Value, json};

use crate::support::{Scene, assert_closed, assert_like, assert_order, endless_command, of_type, position, texts};

fn settled() -> Value {
    json!({"type": "agent_settled", "aborted": true})
}

/// Aborts, checks what every abort must do, and returns the frames since the prompt.
#[track_caller]
fn abort(scene: &mut Scene) -> Vec<Value> {
    let response = scene.command(json!({"type": "abort"}));
    let frames = scene.frames();
    assert_closed(&frames);
    let start = frames.iter().rposition(|frame| frame["command"] == "prompt").expect("a prompt was sent");
    let frames = frames[start..].to_vec();
    assert_eq!(of_type(&frames, "agent_settled").len(), 1, "{frames:#?}");
    let answer = json!({"type": "response", "command": "abort", "id": response["id"]});
    assert_order(&frames, &[json!({"type": "agent_end", "willRetry": false}), settled(), answer]);
    assert_like(&scene.state(), &json!({"isStreaming": false, "isCompacting": false}));
    frames
}

/// Checks that another run can follow, and that pith ends well.
#[track_caller]
fn goes_on(mut scene: Scene) {
    scene.server.push(Turn::text("alive"));
    let frames = scene.run("still there?");
    assert_like(frames.last().expect("frames"), &json!({"type": "agent_settled", "aborted": false}));
    assert_eq!(scene.data(json!({"type": "get_last_assistant_text"}))["text"], "alive");
    scene.finish();
}

#[test]
fn abort_while_the_model_answers_ends_the_run() {
    let words = "one two three four five six";
    let thinks = || Turn::blocks([Block::thinking(words), Block::text("x")]).chunk(4);
    let calls = || {
        Turn::blocks([Block::text("so"), Block::call("bash", json!({"command": "touch evidence; sleep 1"}))]).chunk(4)
    };
    // The answer, how far it gets, and the update that shows it got there.
    let cases = [
        ("before the first byte", Turn::silent(), None),
        ("in the text", Turn::text(words).chunk(4).hold_after(3), Some("text_delta")),
        ("in the reasoning", thinks().hold_after(2), Some("thinking_delta")),
        ("in the arguments of a call", calls().hold_after(3), Some("toolcall_delta")),
        (
            "when the model has fallen silent",
            Turn::text(words).chunk(4).fault(Fault::Hang { after: 2, seconds: 600.0 }),
            Some("text_delta"),
        ),
    ];
    for (moment, turn, update) in cases {
        let mut scene = Scene::new([turn]);
        scene.prompt("go");
        scene.server.wait_request(0);
        if let Some(kind) = update {
            scene.wait_update(kind);
        }
        let frames = abort(&mut scene);
        assert_eq!(scene.server.wait_outcome(0), Outcome::ClientClosed, "{moment}: the request goes on");
        let end =
            &frames[position(&frames, &json!({"type": "message_end", "message": {"role": "assistant"}}))]["message"];
        assert_eq!(end["stopReason"], "aborted", "{moment}");
        let reason = end["errorMessage"].as_str().unwrap_or_default();
        assert!(reason.starts_with("Request was aborted"), "{moment}: {reason}");
        assert!(of_type(&frames, "tool_execution_start").is_empty(), "{moment}");
        assert_eq!(scene.home.read_file("evidence"), None, "{moment}");
        assert_like(of_type(&frames, "turn_end")[0], &json!({"toolResults": [], "message": {"stopReason": "aborted"}}));
        // What was received stays in the history, but is never sent again.
        assert_eq!(scene.messages()[1]["content"], end["content"], "{moment}");
        goes_on(scene);
    }
}

#[test]
fn an_aborted_answer_keeps_what_was_received_and_closes_its_blocks() {
    let mut scene = Scene::new([Turn::text("abcdefgh").chunk(2).hold_after(2)]);
    scene.prompt("go");
    scene.wait(|frame| frame["assistantMessageEvent"]["delta"] == "cd");
    let frames = abort(&mut scene);
    assert_order(
        &frames,
        &[
            json!({"type": "message_update", "assistantMessageEvent": {"type": "text_end", "content": "abcd"}}),
            json!({"type": "message_end", "message": {"content": [{"type": "text", "text": "abcd"}]}}),
        ],
    );
    scene.server.push(Turn::text("ok"));
    scene.run("again");
    let request = scene.server.wait_request(1).body;
    let messages = request["messages"].as_array().expect("a list");
    // The model is told what the user saw of the answer.
    assert!(messages[1]["content"].to_string().contains("abcd"), "{request}");
    scene.finish();
}

#[test]
fn prompt_and_abort_in_one_write_abort_that_prompt() {
    let mut scene = Scene::new([]);
    scene.send_all([json!({"id": "p", "type": "prompt", "message": "go"}), json!({"id": "x", "type": "abort"})]);
    assert_eq!(scene.response("p")["data"]["disposition"], "started");
    assert_eq!(scene.response("x")["success"], true);
    assert_order(&scene.frames(), &[settled(), json!({"type": "response", "id": "x"})]);
    let messages = scene.messages();
    assert_eq!(messages.last().expect("messages")["stopReason"], "aborted");
    goes_on(scene);
}

#[test]
fn abort_while_idle_does_nothing() {
    let mut scene = Scene::new([]);
    scene.command(json!({"type": "abort"}));
    let frames = scene.finish();
    assert_eq!(frames.len(), 1, "{frames:#?}");
}

#[test]
fn several_aborts_are_all_answered() {
    let mut scene = Scene::new([Turn::text("x").hold_after(0)]);
    scene.prompt("go");
    scene.server.wait_request(0);
    scene.send_all((0..3).map(|index| json!({"id": format!("x{index}"), "type": "abort"})));
    for index in 0..3 {
        assert_eq!(scene.response(&format!("x{index}"))["success"], true);
    }
    goes_on(scene);
}

/// Starts one call that never ends and one that would follow it.
fn in_an_endless_tool() -> (Scene, String) {
    let endless = endless_command();
    let command = format!("echo began; {endless}");
    let mut scene = Scene::new([Turn::call("bash", json!({"command": command}))]);
    scene.prompt("go");
    scene.wait_output("began");
    (scene, endless)
}

#[test]
fn abort_during_a_tool_ends_the_run() {
    let (mut scene, endless) = in_an_endless_tool();
    let frames = abort(&mut scene);
    no_process_with(&endless, timeout());
    let result = json!({"role": "toolResult", "isError": true, "content": [{"text": "began\n\n\nCommand aborted"}]});
    let closing = json!({"role": "assistant", "content": [], "stopReason": "aborted", "usage": {"totalTokens": 0}});
    assert_order(
        &frames,
        &[
            json!({"type": "tool_execution_end", "isError": true}),
            json!({"type": "message_start", "message": result}),
            json!({"type": "message_end", "message": result}),
            json!({"type": "turn_end", "message": {"stopReason": "toolUse"}, "toolResults": [result]}),
            json!({"type": "turn_start"}),
            json!({"type": "message_start", "message": closing}),
            json!({"type": "message_end", "message": closing}),
            json!({"type": "turn_end", "message": closing, "toolResults": []}),
            json!({"type": "agent_end"}),
        ],
    );
    assert_eq!(scene.server.requests().len(), 1);
    goes_on(scene);
}

#[test]
fn abort_leaves_the_queues_alone() {
    let (mut scene, _) = in_an_endless_tool();
    scene.command(json!({"type": "steer", "message": "after all"}));
    abort(&mut scene);
    assert_eq!(scene.state()["pendingMessageCount"], 1);
    assert_eq!(scene.messages().last().expect("messages")["stopReason"], "aborted");
    assert_eq!(scene.server.requests().len(), 1);
    scene.server.push(Turn::text("both seen"));
    scene.run("now");
    let request = scene.server.wait_request(1).body.to_string();
    assert!(request.contains("after all") && request.contains("now"));
    scene.finish();
}

#[test]
fn calls_that_have_not_begun_never_begin() {
    let endless = endless_command();
    let mut calls: Vec<_> =
        (0..8).map(|_| Block::call("bash", json!({"command": format!("echo began; {endless}")}))).collect();
    calls.push(Block::call("bash", json!({"command": "touch ninth"})));
    let mut scene = Scene::new([Turn::blocks(calls)]);
    scene.prompt("go");
    scene.wait_output("began");
    abort(&mut scene);
    no_process_with(&endless, timeout());
    let messages = scene.messages();
    let results: Vec<_> = messages.iter().filter(|message| message["role"] == "toolResult").collect();
    assert_eq!(results.len(), 9);
    assert_eq!(texts(&results[8]["content"]), "Operation aborted");
    assert_eq!(scene.home.read_file("ninth"), None);
    goes_on(scene);
}

#[test]
fn a_detached_child_does_not_survive_an_abort() {
    ends_with_an_abort(|endless| {
        format!("setsid {endless} & (nohup {endless} >/dev/null 2>&1 &) ; echo began; {endless}")
    });
}

#[test]
fn a_command_that_ignores_signals_is_killed() {
    ends_with_an_abort(|endless| format!("trap '' TERM INT HUP; echo began; while :; do {endless}; done"));
}

/// Aborts a command that has printed `began`; nothing of it may be left.
#[track_caller]
fn ends_with_an_abort(command: impl Fn(&str) -> String) {
    let endless = endless_command();
    let mut scene = Scene::new([Turn::call("bash", json!({"command": command(&endless)}))]);
    scene.prompt("go");
    scene.wait_output("began");
    abort(&mut scene);
    no_process_with(&endless, timeout());
    goes_on(scene);
}

#[test]
fn steering_during_a_retry_delay_is_sent_with_the_next_request() {
    let settings = json!({"retry": {"enabled": true, "maxRetries": 1, "baseDelayMs": 1500}});
    let mut scene = Scene::with_settings([Turn::overloaded(), Turn::text("done")], &settings);
    scene.prompt("go");
    scene.wait_type("auto_retry_start");
    scene.command(json!({"type": "steer", "message": "be quick"}));
    scene.wait_type("agent_settled");
    let sent = crate::support::sent_texts(&scene.server.wait_request(1).body);
    assert!(sent.contains("go") && sent.contains("be quick"), "{sent}");
    assert_eq!(scene.server.requests().len(), 2);
    scene.finish();
}

#[test]
fn abort_during_a_retry_delay_ends_the_run() {
    let settings =
        json!({"retry": {"enabled": true, "maxRetries": 3, "baseDelayMs": 600_000, "maxAgentDelayMs": 600_000}});
    let mut scene = Scene::with_settings([Turn::overloaded()], &settings);
    scene.prompt("go");
    scene.wait_type("auto_retry_start");
    assert_eq!(scene.state()["isStreaming"], true);
    scene.command(json!({"type": "abort"}));
    assert_order(
        &scene.frames(),
        &[
            json!({"type": "agent_end", "willRetry": true}),
            json!({"type": "auto_retry_start", "attempt": 1}),
            json!({"type": "auto_retry_end", "success": false, "finalError": "Retry cancelled"}),
            settled(),
            json!({"type": "response", "command": "abort"}),
        ],
    );
    goes_on(scene);
}

#[test]
fn abort_and_prompt_replaces_the_run() {
    let mut scene = Scene::new([Turn::text("old").hold_after(0), Turn::text("new")]);
    scene.prompt("first");
    scene.server.wait_request(0);
    scene.send(json!({"id": "ap", "type": "abort_and_prompt", "message": "second"}));
    assert_like(&scene.response("ap"), &json!({"success": true, "data": {"disposition": "started"}}));
    scene.wait_type("agent_settled");
    scene.wait(|frame| frame["type"] == "agent_settled" && frame["aborted"] == false);
    let start = json!({"type": "agent_start"});
    let frames = scene.frames();
    assert_order(
        &frames,
        &[
            json!({"type": "message_end", "message": {"stopReason": "aborted"}}),
            json!({"type": "turn_end"}),
            json!({"type": "agent_end"}),
            json!({"type": "response", "command": "abort_and_prompt"}),
            start,
            json!({"type": "message_end", "message": {"content": [{"text": "new"}]}}),
        ],
    );
    assert_eq!(scene.server.requests().len(), 2);
    scene.finish();
}

#[test]
fn abort_and_prompt_while_idle_is_a_prompt() {
    let mut scene = Scene::new([Turn::text("hi")]);
    assert_eq!(scene.data(json!({"type": "abort_and_prompt", "message": "go"}))["disposition"], "started");
    scene.wait_type("agent_settled");
    assert_eq!(scene.messages().len(), 2);
    scene.finish();
}
