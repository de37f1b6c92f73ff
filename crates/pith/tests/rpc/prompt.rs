//! Prompts: what is accepted, what a run looks like, what the model is sent.

use base64::Engine;
use pith_testkit::server::TurnUsage;
use pith_testkit::{Api, Block, TempHome, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, assert_closed, assert_like, assert_order, builder, kinds, of_type, position, texts};

const BUSY: &str =
    "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.";

/// An image of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn a_plain_answer_frame_by_frame() {
    let answer = Turn::blocks([Block::thinking("Let me think."), Block::text("Hello world")]).chunk(7);
    let mut scene = Scene::new([answer]);
    let frames = scene.run("S:think");
    assert_eq!(
        kinds(&frames),
        [
            "response:prompt",
            "agent_start",
            "turn_start",
            "message_start:user",
            "message_end:user",
            "message_start:assistant",
            "message_update:thinking_start",
            "message_update:thinking_delta",
            "message_update:thinking_end",
            "message_update:text_start",
            "message_update:text_delta",
            "message_update:text_end",
            "message_end:assistant",
            "turn_end",
            "agent_end",
            "agent_settled",
        ]
    );
    let user = json!({"role": "user", "content": [{"type": "text", "text": "S:think"}], "timestamp": "[TIME]"});
    let assistant = json!({"role": "assistant", "api": "anthropic-messages", "provider": "mock-anthropic",
        "model": "claude-mock", "stopReason": "stop", "timestamp": "[TIME]", "errorMessage": "[ABSENT]",
        "content": [{"type": "thinking", "thinking": "Let me think."}, {"type": "text", "text": "Hello world"}]});
    assert_like(&frames[3], &json!({"message": user}));
    assert_eq!(frames[3]["message"], frames[4]["message"]);
    assert_like(&frames[5], &json!({"message": {"content": [], "stopReason": "stop"}}));
    let end = &frames[position(&frames, &json!({"type": "turn_end"}))];
    assert_like(end, &json!({"message": assistant, "toolResults": []}));
    let end = &frames[position(&frames, &json!({"type": "agent_end"}))];
    assert_like(end, &json!({"messages": [user, assistant], "willRetry": false}));
    assert_like(frames.last().expect("frames"), &json!({"type": "agent_settled", "aborted": false}));
    scene.finish();
}

#[test]
fn usage_and_cost_are_reported() {
    let usage = TurnUsage { input: 100, output: 7, cache_read: 50, cache_write: 0 };
    let mut scene = Scene::new([Turn::text("hi").usage(usage)]);
    let frames = scene.run("go");
    let end = &frames[position(&frames, &json!({"type": "message_end", "message": {"role": "assistant"}}))];
    assert_like(
        &end["message"]["usage"],
        &json!({"input": 100, "output": 7, "cacheRead": 50, "cacheWrite": 0, "totalTokens": 157}),
    );
    let total = end["message"]["usage"]["cost"]["total"].as_f64().expect("a number");
    assert!((total - 0.00042).abs() < 1e-9, "{total}");
    scene.finish();
}

#[test]
fn every_wire_format_runs_a_tool_and_answers() {
    for api in Api::ALL {
        let turns = [Turn::call("bash", json!({"command": "echo from-tool"})), Turn::text("the end")];
        let mut scene = Scene::speaking(api, turns);
        let frames = scene.run("use the tool");
        assert_closed(&frames);
        let results = of_type(&frames, "tool_execution_end");
        assert_eq!(results.len(), 1, "{api:?}");
        assert_like(results[0], &json!({"isError": false, "result": {"content": [{"text": "from-tool\n"}]}}));
        let messages = scene.messages();
        let stops: Vec<_> = messages.iter().filter_map(|message| message["stopReason"].as_str()).collect();
        assert_eq!(stops, ["toolUse", "stop"], "{api:?}");
        assert_eq!(texts(&messages[3]["content"]), "the end");
        let second = scene.server.wait_request(1);
        assert_eq!(second.api, Some(api));
        assert!(second.body.to_string().contains("from-tool"), "{}", second.body);
        scene.finish();
    }
}

#[test]
fn the_answer_to_a_prompt_comes_before_its_run() {
    let mut scene = Scene::new([Turn::text("hi")]);
    let frames = scene.run("go");
    let response = json!({"type": "response", "command": "prompt", "data": {"disposition": "started"}});
    assert_order(&frames, &[response, json!({"type": "agent_start"})]);
    scene.finish();
}

#[test]
fn two_prompts_in_one_write_are_one_run_and_one_refusal() {
    let mut scene = Scene::new([Turn::text("first answer"), Turn::text("never asked for")]);
    scene.send_all([
        json!({"id": "a", "type": "prompt", "message": "one"}),
        json!({"id": "b", "type": "prompt", "message": "two"}),
    ]);
    assert_eq!(scene.response("a")["success"], true);
    assert_like(&scene.response("b"), &json!({"success": false, "command": "prompt", "error": BUSY}));
    scene.wait_type("agent_settled");
    assert_eq!(scene.messages().len(), 2);
    assert_eq!(scene.server.requests().len(), 1);
    let frames = scene.finish();
    for kind in ["agent_start", "agent_end", "agent_settled"] {
        assert_eq!(of_type(&frames, kind).len(), 1, "{kind}");
    }
}

#[test]
fn dialect_xcsh_has_its_own_busy_text() {
    let mut scene = Scene::xcsh([Turn::text("x").hold_after(0)]);
    scene.prompt("one");
    let text = "Agent is already processing. Use steer() or followUp() to queue messages, or wait for completion.";
    assert_eq!(scene.refusal(json!({"type": "prompt", "message": "two"})), text);
    scene.server.release(0);
    scene.wait_type("agent_settled");
    scene.finish();
}

#[test]
fn no_acknowledged_prompt_is_lost() {
    let mut scene = Scene::new([Turn::text("1"), Turn::text("2"), Turn::text("3"), Turn::text("4")]);
    scene.send_all([
        json!({"id": "a", "type": "prompt", "message": "text-A"}),
        json!({"id": "b", "type": "prompt", "message": "text-B", "streamingBehavior": "steer"}),
        json!({"id": "c", "type": "steer", "message": "text-C"}),
        json!({"id": "d", "type": "prompt", "message": "text-D", "streamingBehavior": "followUp"}),
    ]);
    let dispositions = ["a", "b", "c", "d"].map(|id| scene.response(id)["data"]["disposition"].clone());
    assert_eq!(dispositions, ["started", "queued", "queued", "queued"]);
    scene.wait_type("agent_settled");
    let last = scene.server.requests().pop().expect("requests");
    for text in ["text-A", "text-B", "text-C", "text-D"] {
        assert!(last.body.to_string().contains(text), "{text} never reached the model");
    }
    assert_eq!(of_type(&scene.finish(), "agent_settled").len(), 1);
}

#[test]
fn streaming_behavior_means_nothing_while_idle() {
    let mut scene = Scene::new([Turn::text("hi")]);
    let command = json!({"type": "prompt", "message": "go", "streamingBehavior": "followUp"});
    assert_eq!(scene.data(command)["disposition"], "started");
    scene.wait_type("agent_settled");
    scene.finish();
}

#[test]
fn fields_are_checked_before_anything_happens() {
    let mut scene = Scene::new([]);
    let image = |data: &str| json!({"type": "prompt", "message": "m", "images": [{"type": "image", "mimeType": "image/png", "data": data}]});
    let checks = [
        (json!({"type": "prompt"}), "Missing required field \"message\" for command \"prompt\""),
        (json!({"type": "prompt", "message": null}), "Missing required field \"message\" for command \"prompt\""),
        (
            json!({"type": "prompt", "message": 5}),
            "Invalid field \"message\" for command \"prompt\": expected string, got number",
        ),
        (
            json!({"type": "steer", "message": []}),
            "Invalid field \"message\" for command \"steer\": expected string, got array",
        ),
        (json!({"type": "follow_up"}), "Missing required field \"message\" for command \"follow_up\""),
        (
            json!({"type": "prompt", "message": "m", "streamingBehavior": "later"}),
            "Invalid field \"streamingBehavior\" for command \"prompt\": expected one of \"steer\", \"followUp\", got \"later\"",
        ),
        (
            json!({"type": "prompt", "message": "m", "images": {}}),
            "Invalid field \"images\" for command \"prompt\": expected array, got object",
        ),
        (
            json!({"type": "prompt", "message": "m", "images": [{"type": "image", "data": PIXEL, "mimeType": null}]}),
            "Invalid field \"images[0].mimeType\" for command \"prompt\": expected string, got null",
        ),
        (image("no base64!"), "Invalid field \"images[0].data\" for command \"prompt\": not valid base64"),
        (image(""), "Invalid field \"images[0].data\" for command \"prompt\": not valid base64"),
        (
            json!({"type": "set_steering_mode", "mode": "bogus"}),
            "Invalid field \"mode\" for command \"set_steering_mode\": expected one of \"all\", \"one-at-a-time\", got \"bogus\"",
        ),
        (json!({"type": "set_interrupt_mode"}), "Missing required field \"mode\" for command \"set_interrupt_mode\""),
        (json!({"type": "bash"}), "Missing required field \"command\" for command \"bash\""),
    ];
    for (command, error) in checks {
        assert_eq!(scene.refusal(command.clone()), error, "{command}");
    }
    let state = scene.state();
    assert_like(&state, &json!({"isStreaming": false, "messageCount": 0, "pendingMessageCount": 0}));
    assert!(scene.server.requests().is_empty());
    scene.finish();
}

#[test]
fn images_follow_the_text() {
    let mut scene = Scene::new([Turn::text("a pixel")]);
    let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
    scene.command(json!({"type": "prompt", "message": "what is it", "images": [image]}));
    scene.wait_type("agent_settled");
    let message = &scene.messages()[0];
    assert_like(
        message,
        &json!({"content": [{"type": "text", "text": "what is it"}, {"type": "image", "mimeType": "image/png"}]}),
    );
    let data = message["content"][1]["data"].as_str().expect("data");
    base64::engine::general_purpose::STANDARD.decode(data).expect("base64");
    let request = scene.server.wait_request(0).body.to_string();
    assert!(request.contains(data), "the picture did not reach the model");
    scene.finish();
}

#[test]
fn an_empty_message_is_a_message() {
    let mut scene = Scene::new([Turn::text("hm")]);
    scene.run("");
    assert_eq!(scene.messages()[0]["content"], json!([{"type": "text", "text": ""}]));
    scene.finish();
}

#[test]
fn without_a_model_pith_starts_and_says_what_to_do() {
    let home = TempHome::new();
    let mut host = builder().args(["--mode", "rpc"]).home(&home).spawn();
    let state = host.data(json!({"type": "get_state"}));
    assert_like(&state, &json!({"model": null, "thinkingLevel": "off"}));
    let answer = host.ask(json!({"type": "prompt", "message": "hi"}));
    let error = answer["error"].as_str().expect("refused");
    assert!(error.starts_with("No model selected.\n\n"), "{error}");
    assert!(error.ends_with("\n\nThen select a model with set_model."), "{error}");
    assert_eq!(host.finish().1, 0);
}

#[cfg(unix)]
#[test]
fn without_a_model_hosts_of_pi_get_an_unknown_one() {
    let home = TempHome::new();
    let pi = home.agent().join("pi");
    std::fs::create_dir_all(home.agent()).expect("created");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pith"), &pi).expect("a link");
    let mut host = builder().program(&pi).args(["--mode", "rpc"]).home(&home).spawn();
    // What pi 1.5.2 sends.
    let model = json!({
        "id": "unknown", "name": "unknown", "api": "unknown", "provider": "unknown", "baseUrl": "",
        "reasoning": false, "input": [], "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": 0, "maxTokens": 0,
    });
    assert_eq!(host.data(json!({"type": "get_state"}))["model"], model);
    let answer = host.ask(json!({"type": "prompt", "message": "hi"}));
    assert!(answer["error"].as_str().expect("refused").starts_with("No model selected."), "{answer}");
    assert_eq!(host.finish().1, 0);
}

#[test]
fn a_refused_request_is_an_event_not_a_failed_command() {
    for status in [400, 401, 404] {
        let mut scene = Scene::new([Turn::status(status), Turn::text("better")]);
        let frames = scene.run("go");
        let failed = json!({"role": "assistant", "content": [], "stopReason": "error", "usage": {"totalTokens": 0}});
        assert_order(
            &frames,
            &[
                json!({"type": "message_start", "message": failed}),
                json!({"type": "message_end", "message": failed}),
                json!({"type": "turn_end", "message": failed, "toolResults": []}),
                json!({"type": "agent_end", "willRetry": false}),
                json!({"type": "agent_settled", "aborted": false}),
            ],
        );
        let end = &frames[position(&frames, &json!({"type": "message_end", "message": {"role": "assistant"}}))];
        let error = end["message"]["errorMessage"].as_str().expect("an error");
        assert!(error.starts_with(&status.to_string()), "{error}");
        // The failed answer is never sent to a model, and the next prompt works.
        scene.run("again");
        let request = scene.server.wait_request(1).body;
        let roles: Vec<_> =
            request["messages"].as_array().expect("a list").iter().map(|message| &message["role"]).collect();
        assert!(roles.iter().all(|role| *role == "user"), "{roles:?}");
        scene.finish();
    }
}

#[test]
fn every_known_command_is_answered_under_its_name() {
    let commands: [Value; 12] = [
        json!({"type": "cycle_model"}),
        json!({"type": "compact"}),
        json!({"type": "abort_retry"}),
        json!({"type": "get_commands"}),
        json!({"type": "get_entries"}),
        json!({"type": "get_tree"}),
        json!({"type": "get_fork_messages"}),
        json!({"type": "get_branch_messages"}),
        json!({"type": "set_locale", "locale": "de"}),
        json!({"type": "get_integrations"}),
        json!({"type": "set_auto_compaction", "enabled": true}),
        json!({"type": "export_html"}),
    ];
    let mut scene = Scene::new([]);
    for command in commands {
        let answer = scene.ask(command.clone());
        assert_eq!(answer["command"], command["type"]);
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(!error.starts_with("Unknown command"), "{answer}");
        if error.starts_with("not available yet") {
            assert_eq!(error, format!("not available yet: {}", command["type"].as_str().expect("a name")));
        }
    }
    scene.finish();
}

#[test]
fn each_request_extends_the_one_before() {
    let call = Turn::call("bash", json!({"command": "echo one"}));
    let mut scene = Scene::speaking(Api::Completions, [call, Turn::text("two"), Turn::text("three")]);
    scene.run("first");
    scene.run("second");
    let requests = scene.server.requests();
    let messages: Vec<_> =
        requests.iter().map(|request| request.body["messages"].as_array().expect("a list").clone()).collect();
    assert_eq!(messages.len(), 3);
    for pair in messages.windows(2) {
        assert!(pair[1].len() > pair[0].len() && pair[1].starts_with(&pair[0]), "{pair:#?}");
    }
    scene.finish();
}
