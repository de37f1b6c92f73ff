//! Steering and follow-ups: when they are delivered and how they are shown.

use pith_testkit::{Block, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, assert_order, kinds, of_type, texts};

/// A call that ends when the test creates the file `go`.
fn gated() -> Block {
    Block::call("bash", json!({"command": "echo waiting; until [ -e go ]; do sleep 0.01; done; echo went"}))
}

/// Starts a run that waits in a tool call, with enough answers after it.
fn in_a_tool() -> Scene {
    let answers = (1..=6).map(|number| Turn::text(format!("answer {number}")));
    let mut scene = Scene::new([Turn::blocks([gated()])].into_iter().chain(answers));
    scene.prompt("start");
    scene.wait_output("waiting");
    scene
}

/// User and assistant texts of a run after its tool result.
fn texts_after_tool(scene: &mut Scene) -> Vec<String> {
    scene.home.write_file("go", "");
    scene.wait_type("agent_settled");
    let messages = scene.messages();
    messages.iter().skip(3).map(|message| texts(&message["content"])).collect()
}

fn queue(scene: &mut Scene) {
    for (kind, message) in [("steer", "s1"), ("steer", "s2"), ("follow_up", "f1"), ("steer", "s3"), ("follow_up", "f2")]
    {
        let answer = scene.command(json!({"type": kind, "message": message}));
        assert_eq!(answer["data"]["disposition"], "queued");
    }
}

#[test]
fn one_at_a_time_gives_each_message_an_answer() {
    let mut scene = in_a_tool();
    queue(&mut scene);
    assert_like(&scene.state(), &json!({"pendingMessageCount": 5, "queuedMessageCount": 5, "isStreaming": true}));
    assert_eq!(
        texts_after_tool(&mut scene),
        ["s1", "answer 1", "s2", "answer 2", "s3", "answer 3", "f1", "answer 4", "f2", "answer 5"]
    );
    assert_like(&scene.state(), &json!({"pendingMessageCount": 0, "isStreaming": false}));
    let frames = scene.finish();
    assert_eq!(of_type(&frames, "agent_start").len(), 1);
    let end = of_type(&frames, "agent_end")[0];
    assert_eq!(end["messages"].as_array().map(Vec::len), Some(13));
}

#[test]
fn all_takes_the_whole_queue() {
    let mut scene = in_a_tool();
    scene.command(json!({"type": "set_steering_mode", "mode": "all"}));
    scene.command(json!({"type": "set_follow_up_mode", "mode": "all"}));
    assert_like(&scene.state(), &json!({"steeringMode": "all", "followUpMode": "all"}));
    queue(&mut scene);
    assert_eq!(texts_after_tool(&mut scene), ["s1", "s2", "s3", "answer 1", "f1", "f2", "answer 2"]);
    scene.finish();
}

#[test]
fn queue_updates_precede_what_they_announce() {
    let mut scene = in_a_tool();
    scene.send_all([
        json!({"id": "s1", "type": "steer", "message": "one"}),
        json!({"id": "s2", "type": "steer", "message": "two"}),
        json!({"id": "gs", "type": "get_state"}),
    ]);
    assert_eq!(scene.response("gs")["data"]["pendingMessageCount"], 2);
    texts_after_tool(&mut scene);
    let update = |steering: Value| json!({"type": "queue_update", "steering": steering, "followUp": []});
    let says = |text: &str| json!({"type": "message_start", "message": {"role": "user", "content": [{"text": text}]}});
    assert_order(
        &scene.finish(),
        &[
            update(json!(["one"])),
            json!({"type": "response", "id": "s1"}),
            update(json!(["one", "two"])),
            json!({"type": "response", "id": "s2"}),
            json!({"type": "response", "id": "gs"}),
            json!({"type": "tool_execution_end"}),
            json!({"type": "turn_end"}),
            json!({"type": "turn_start"}),
            update(json!(["two"])),
            says("one"),
            json!({"type": "turn_end"}),
            json!({"type": "turn_start"}),
            update(json!([])),
            says("two"),
            json!({"type": "agent_end"}),
        ],
    );
}

#[test]
fn steering_does_not_interrupt_a_running_tool() {
    let mut scene = in_a_tool();
    scene.command(json!({"type": "steer", "message": "change course"}));
    texts_after_tool(&mut scene);
    let frames = scene.finish();
    let end = of_type(&frames, "tool_execution_end")[0];
    assert_like(end, &json!({"isError": false, "result": {"content": [{"text": "waiting\nwent\n"}]}}));
}

#[test]
fn messages_queued_while_idle_wait_for_the_next_prompt() {
    let mut scene = Scene::new([Turn::text("answer 1"), Turn::text("answer 2")]);
    scene.command(json!({"type": "follow_up", "message": "later"}));
    scene.command(json!({"type": "steer", "message": "also this"}));
    assert_like(&scene.state(), &json!({"isStreaming": false, "pendingMessageCount": 2}));
    let frames = scene.run("prompt");
    let messages = scene.messages();
    let texts_after_tool: Vec<_> = messages.iter().map(|message| texts(&message["content"])).collect();
    assert_eq!(texts_after_tool, ["prompt", "also this", "answer 1", "later", "answer 2"]);
    // The steering message shares the first turn with the prompt.
    assert_eq!(of_type(&frames, "turn_start").len(), 2);
    assert_eq!(scene.server.requests().len(), 2);
    scene.finish();
}

#[test]
fn equal_texts_are_separate_messages() {
    let mut scene = in_a_tool();
    for _ in 0..3 {
        scene.command(json!({"type": "steer", "message": "same"}));
    }
    assert_eq!(texts_after_tool(&mut scene), ["same", "answer 1", "same", "answer 2", "same", "answer 3"]);
    let frames = scene.finish();
    let last = of_type(&frames, "queue_update").pop().expect("updates");
    assert_eq!(last["steering"], json!([]));
}

#[test]
fn an_image_only_message_leaves_the_queue() {
    let mut scene = in_a_tool();
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let image = json!({"type": "image", "data": pixel, "mimeType": "image/png"});
    scene.command(json!({"type": "steer", "message": "", "images": [image]}));
    texts_after_tool(&mut scene);
    assert_eq!(scene.state()["pendingMessageCount"], 0);
    scene.finish();
}

#[test]
fn clearing_returns_what_was_queued() {
    let mut scene = in_a_tool();
    queue(&mut scene);
    let start = scene.frames().len();
    let data = scene.data(json!({"type": "clear_queue"}));
    assert_eq!(data, json!({"steering": ["s1", "s2", "s3"], "followUp": ["f1", "f2"]}));
    let frames = scene.frames().split_off(start);
    assert_order(
        &frames,
        &[
            json!({"type": "queue_update", "steering": [], "followUp": []}),
            json!({"type": "response", "command": "clear_queue"}),
        ],
    );
    assert_eq!(texts_after_tool(&mut scene), ["answer 1"]);
    assert_eq!(scene.data(json!({"type": "clear_queue"})), json!({"steering": [], "followUp": []}));
    scene.finish();
}

#[test]
fn modes_are_of_the_session_and_not_saved() {
    let mut scene = Scene::new([]);
    assert_like(
        &scene.state(),
        &json!({"steeringMode": "one-at-a-time", "followUpMode": "one-at-a-time", "interruptMode": "wait"}),
    );
    for (command, key, mode) in [
        ("set_steering_mode", "steeringMode", "all"),
        ("set_follow_up_mode", "followUpMode", "all"),
        ("set_interrupt_mode", "interruptMode", "immediate"),
    ] {
        assert_eq!(scene.command(json!({"type": command, "mode": mode})).get("data"), None);
        assert_eq!(scene.state()[key], mode);
        let error = scene.refusal(json!({"type": command, "mode": "bogus"}));
        assert!(
            error.starts_with(&format!("Invalid field \"mode\" for command \"{command}\": expected one of")),
            "{error}"
        );
        assert_eq!(scene.state()[key], mode);
    }
    assert!(!scene.home.agent().join("settings.json").exists());
    scene.finish();
}

/// Runs a batch in which the gated call ends after a steering message came.
fn interrupted(calls: Vec<Block>) -> (Scene, Vec<Value>) {
    let mut scene = Scene::new([Turn::blocks(calls), Turn::text("on a new course")]);
    scene.command(json!({"type": "set_interrupt_mode", "mode": "immediate"}));
    scene.prompt("start");
    scene.wait_output("waiting");
    scene.command(json!({"type": "steer", "message": "change course"}));
    scene.home.write_file("go", "");
    scene.wait_type("agent_settled");
    let results = scene.tool_results();
    (scene, results)
}

#[test]
fn immediate_interruption_cancels_running_calls_with_their_output() {
    let slow = Block::call("bash", json!({"command": "echo began; sleep 1000"}));
    let (mut scene, results) = interrupted(vec![gated(), slow]);
    assert_like(&results[0], &json!({"isError": false, "content": [{"text": "waiting\nwent\n"}]}));
    // It ran: it is cancelled with its partial output, not reported as skipped.
    assert_eq!(results[1]["isError"], true);
    assert!(texts(&results[1]["content"]).ends_with("Command aborted"), "{}", results[1]);
    let messages = scene.messages();
    assert_eq!(texts(&messages[4]["content"]), "change course");
    assert_eq!(texts(&messages[5]["content"]), "on a new course");
    let frames = scene.finish();
    assert_eq!(of_type(&frames, "turn_end")[0]["toolResults"].as_array().map(Vec::len), Some(2));
    assert_like(of_type(&frames, "agent_settled")[0], &json!({"aborted": false}));
}

#[test]
fn immediate_interruption_skips_calls_that_have_not_begun() {
    let slow = || Block::call("bash", json!({"command": "sleep 1000"}));
    let mut calls = vec![gated()];
    calls.extend((0..7).map(|_| slow()));
    // Eight calls run at a time; the ninth waits.
    calls.push(Block::call("bash", json!({"command": "touch ninth"})));
    let (scene, results) = interrupted(calls);
    assert_eq!(results.len(), 9);
    let last = &results[8];
    assert_eq!(
        (last["isError"].clone(), texts(&last["content"])),
        (json!(true), "Skipped due to queued user message.".to_owned())
    );
    assert_eq!(scene.home.read_file("ninth"), None);
    let frames = scene.finish();
    let names = kinds(&frames);
    assert_eq!(names.iter().filter(|name| name.starts_with("tool_execution_start")).count(), 9);
}
