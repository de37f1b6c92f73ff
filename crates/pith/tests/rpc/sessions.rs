//! Session state over the wire and on disk.

use pith_testkit::server::TurnUsage;
use pith_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, assert_order, kinds, of_type, texts};

#[test]
fn a_new_session_has_a_complete_state() {
    let mut scene = Scene::new([]);
    let state = scene.state();
    assert_like(
        &state,
        &json!({"model": {"id": "claude-mock", "name": "Mock anthropic", "api": "anthropic-messages",
                "provider": "mock-anthropic", "baseUrl": scene.server.url(), "reasoning": true,
                "input": ["text", "image"], "contextWindow": 200_000, "maxTokens": 16_384,
                "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}},
            "thinkingLevel": "medium", "isStreaming": false, "isCompacting": false,
            "steeringMode": "one-at-a-time", "followUpMode": "one-at-a-time", "interruptMode": "wait",
            "sessionId": "[ID]", "sessionFile": "[ANY]", "sessionName": "[ABSENT]", "autoCompactionEnabled": true,
            "messageCount": 0, "pendingMessageCount": 0, "queuedMessageCount": 0, "todoPhases": [],
            "systemPrompt": "[ABSENT]", "dumpTools": "[ABSENT]"}),
    );
    assert!(!state.to_string().contains("mock-key"), "a credential is on the wire");
    let file = state["sessionFile"].as_str().expect("a path");
    let id = state["sessionId"].as_str().expect("an id");
    assert!(
        file.starts_with(scene.home.agent().to_str().expect("UTF-8")) && file.ends_with(&format!("_{id}.jsonl")),
        "{file}"
    );
    // A start without a prompt leaves no files.
    assert!(scene.home.sessions().is_empty());
    scene.finish();
}

#[test]
fn numbers_have_no_needless_fraction() {
    let mut scene = Scene::new([Turn::text("hi")]);
    scene.run("go");
    let output = String::from_utf8(scene.lines().concat()).expect("UTF-8");
    let zero = output.match_indices(".0").find(|(at, _)| {
        let next = output.as_bytes().get(at + 2);
        output.as_bytes()[at - 1].is_ascii_digit() && next.is_some_and(|byte| b",}]".contains(byte))
    });
    assert_eq!(zero, None);
    scene.finish();
}

#[test]
fn no_session_means_no_file() {
    let mut scene = Scene::with(Script::of([Turn::text("hi")]), |builder| builder.arg("--no-session"));
    assert_eq!(scene.state().get("sessionFile"), None);
    scene.run("go");
    assert_eq!(scene.data(json!({"type": "get_session_stats"})).get("sessionFile"), None);
    assert!(scene.home.sessions().is_empty());
    scene.finish();
}

#[test]
fn the_file_holds_the_conversation() {
    let mut scene = Scene::new([Turn::call("bash", json!({"command": "echo x"})), Turn::text("done")]);
    scene.run("go");
    let state = scene.state();
    let sessions = scene.home.sessions();
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].path.to_str(), state["sessionFile"].as_str());
    let entries = &sessions[0].entries;
    let cwd = scene.home.work().display().to_string();
    assert_like(
        &entries[0],
        &json!({"type": "session", "version": 3, "id": state["sessionId"], "cwd": cwd, "timestamp": "[TIME]"}),
    );
    let kinds: Vec<_> = entries.iter().filter_map(|entry| entry["type"].as_str()).collect();
    assert_eq!(kinds, ["session", "model_change", "thinking_level_change", "message", "message", "message", "message"]);
    // Each entry is the child of the previous one.
    for pair in entries[1..].windows(2) {
        assert_eq!(pair[1]["parentId"], pair[0]["id"]);
    }
    let on_disk: Vec<Value> = sessions[0].messages().into_iter().cloned().collect();
    assert_eq!(on_disk, scene.messages());
    scene.finish();
}

#[test]
fn messages_are_on_disk_before_their_message_end() {
    let mut scene = Scene::new([Turn::text("abcdef").chunk(2).hold_after(1)]);
    scene.prompt("go");
    let end = scene.wait(|frame| frame["type"] == "message_end");
    assert_eq!(scene.home.sessions()[0].messages(), [&end["message"]]);
    scene.server.wait_request(0);
    scene.server.release(0);
    let end = scene.wait(|frame| frame["type"] == "message_end" && frame["message"]["role"] == "assistant");
    assert_eq!(scene.home.sessions()[0].messages()[1], &end["message"]);
    scene.finish();
}

#[test]
fn a_prompt_is_on_disk_before_the_model_is_asked() {
    let mut scene = Scene::new([Turn::silent()]);
    scene.prompt("do not lose this");
    scene.server.wait_request(0);
    scene.kill();
    let sessions = scene.home.sessions();
    assert_eq!(sessions.len(), 1);
    let messages = sessions[0].messages();
    assert_like(messages[0], &json!({"role": "user", "content": [{"type": "text", "text": "do not lose this"}]}));
}

#[test]
fn names_are_announced_and_kept() {
    let mut scene = Scene::new([]);
    let start = scene.frames().len();
    assert_eq!(scene.command(json!({"type": "set_session_name", "name": "  my name \n"})).get("data"), None);
    assert_order(
        &scene.frames()[start..],
        &[
            json!({"type": "session_info_changed", "name": "my name"}),
            json!({"type": "response", "command": "set_session_name"}),
        ],
    );
    assert_eq!(scene.state()["sessionName"], "my name");
    for blank in ["", "   ", "\n"] {
        assert_eq!(scene.refusal(json!({"type": "set_session_name", "name": blank})), "Session name cannot be empty");
    }
    assert_eq!(scene.state()["sessionName"], "my name");
    let sessions = scene.home.sessions();
    let entry = sessions[0].entries.iter().find(|entry| entry["type"] == "session_info");
    assert_eq!(entry.expect("a name entry")["name"], "my name");
    scene.finish();
}

#[test]
fn a_new_session_starts_empty() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two")]);
    scene.run("first");
    scene.command(json!({"type": "set_session_name", "name": "old"}));
    scene.command(json!({"type": "steer", "message": "waiting"}));
    scene.command(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
    let old = scene.state();
    let start = scene.frames().len();
    assert_eq!(scene.data(json!({"type": "new_session"})), json!({"cancelled": false}));
    let frames = scene.frames().split_off(start);
    assert_eq!(kinds(&frames), ["queue_update", "response:new_session"], "what was queued is gone");
    assert_like(&frames[0], &json!({"steering": [], "followUp": []}));
    let new = scene.state();
    assert_ne!(new["sessionId"], old["sessionId"]);
    assert_ne!(new["sessionFile"], old["sessionFile"]);
    assert_like(
        &new,
        &json!({"messageCount": 0, "pendingMessageCount": 0, "sessionName": "[ABSENT]", "model": {"id": "gpt-mock"}}),
    );
    assert!(scene.messages().is_empty());
    scene.run("second");
    let request = scene.server.wait_request(1).body.to_string();
    assert!(request.contains("second") && !request.contains("first") && !request.contains("waiting"));
    assert_eq!(scene.home.sessions().len(), 2);
    scene.finish();
}

#[test]
fn a_new_session_records_its_parent() {
    let mut scene = Scene::new([Turn::text("hi")]);
    scene.command(json!({"type": "new_session", "parentSession": "/somewhere/else.jsonl"}));
    scene.run("go");
    assert_eq!(scene.home.sessions()[0].entries[0]["parentSession"], "/somewhere/else.jsonl");
    scene.finish();
}

#[test]
fn a_new_session_during_a_run_aborts_it_first() {
    let mut scene = Scene::new([Turn::text("abcdef").chunk(2).hold_after(1), Turn::text("fresh")]);
    scene.prompt("go");
    scene.wait_update("text_delta");
    scene.send(json!({"id": "n", "type": "new_session"}));
    assert_eq!(scene.response("n")["data"], json!({"cancelled": false}));
    let frames = scene.frames();
    assert_order(
        &frames,
        &[
            json!({"type": "message_end", "message": {"stopReason": "aborted"}}),
            json!({"type": "turn_end"}),
            json!({"type": "agent_end"}),
            json!({"type": "agent_settled", "aborted": true}),
            json!({"type": "response", "id": "n"}),
        ],
    );
    assert_eq!(frames.last().expect("frames")["id"], "n", "nothing of the old session follows");
    let old = &scene.home.sessions()[0];
    assert_like(old.messages()[1], &json!({"stopReason": "aborted", "content": [{"text": "ab"}]}));
    scene.run("again");
    assert_eq!(scene.messages().len(), 2);
    scene.finish();
}

#[test]
fn statistics_add_up() {
    let usage = |input, output| TurnUsage { input, output, cache_read: 10, cache_write: 0 };
    let mut scene = Scene::new([
        Turn::call("bash", json!({"command": "true"})).usage(usage(100, 5)),
        Turn::text("done").usage(usage(200, 7)),
    ]);
    let fresh = scene.data(json!({"type": "get_session_stats"}));
    assert_like(&fresh, &json!({"totalMessages": 0, "cost": 0, "tokens": {"total": 0}}));
    scene.run("go");
    let stats = scene.data(json!({"type": "get_session_stats"}));
    let state = scene.state();
    assert_like(
        &stats,
        &json!({"sessionId": state["sessionId"], "sessionFile": state["sessionFile"],
            "userMessages": 1, "assistantMessages": 2, "toolCalls": 1, "toolResults": 1, "totalMessages": 4,
            "tokens": {"input": 300, "output": 12, "cacheRead": 20, "cacheWrite": 0, "total": 332},
            "contextUsage": {"tokens": 217, "contextWindow": 200_000}}),
    );
    let cost = stats["cost"].as_f64().expect("a number");
    assert!((cost - 0.001086).abs() < 1e-9, "{cost}");
    scene.finish();
}

#[test]
fn the_last_text_skips_what_has_none() {
    let last = |scene: &mut Scene| scene.data(json!({"type": "get_last_assistant_text"}));
    let mut scene = Scene::new([Turn::text("  spoken \n"), Turn::silent()]);
    assert_eq!(last(&mut scene), json!({"text": null}));
    scene.run("go");
    assert_eq!(last(&mut scene), json!({"text": "spoken"}));
    scene.prompt("again");
    scene.server.wait_request(1);
    scene.command(json!({"type": "abort"}));
    assert_eq!(last(&mut scene), json!({"text": "spoken"}));
    scene.finish();
}

#[test]
fn agent_settled_is_sent_once_per_work() {
    let mut scene = Scene::new([Turn::text("1"), Turn::text("2"), Turn::text("3").hold_after(0)]);
    scene.command(json!({"type": "follow_up", "message": "and then"}));
    scene.run("first");
    scene.prompt("second");
    scene.command(json!({"type": "abort"}));
    let frames = scene.finish();
    let settled: Vec<_> = of_type(&frames, "agent_settled").iter().map(|frame| frame["aborted"].clone()).collect();
    assert_eq!(settled, [json!(false), json!(true)]);
    let ends = of_type(&frames, "agent_end");
    assert_eq!(texts(&ends[0]["messages"][3]["content"]), "2");
}
