//! `message_update` in both encodings, and hosts that read slowly.

use std::thread;
use std::time::Duration;

use pith_testkit::server::Outcome;
use pith_testkit::{Api, Block, Script, Turn, eventually};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, assert_order, of_type, position, texts};

/// One answer with every kind of block, in an order the format can represent.
fn mixed(api: Api) -> Turn {
    let mut blocks = vec![
        Block::thinking("First, think about é and 漢."),
        Block::text("Then say something \"quoted\"\nover two lines."),
        Block::call("bash", json!({"command": "echo a | cat # \u{1f600}", "timeout": 7})),
        Block::call("bash", json!({"command": "true"})),
    ];
    if matches!(api, Api::Anthropic | Api::Responses) {
        blocks.insert(3, Block::text("And more text."));
    }
    Turn::blocks(blocks).chunk(3)
}

/// The frames of the first assistant message, from its start to its end.
fn message_frames(frames: &[Value]) -> &[Value] {
    let start = position(frames, &json!({"type": "message_start", "message": {"role": "assistant"}}));
    let length = position(&frames[start..], &json!({"type": "message_end"}));
    &frames[start..=start + length]
}

/// What a block has contained so far, according to the deltas.
#[derive(Debug, Default)]
struct Told {
    text: String,
    is_closed: bool,
}

/// Follows the updates of one message, checking each against the previous ones.
fn replay(frames: &[Value], mut look: impl FnMut(&Value, &[Told])) -> Vec<Told> {
    let mut blocks: Vec<Told> = Vec::new();
    for frame in of_type(frames, "message_update") {
        let event = &frame["assistantMessageEvent"];
        let index = event["contentIndex"].as_u64().expect("an index") as usize;
        let kind = event["type"].as_str().expect("a type");
        let (_, step) = kind.split_once('_').expect("a step");
        match step {
            "start" => {
                assert_eq!(index, blocks.len(), "{kind} out of order");
                assert!(blocks.iter().all(|block| block.is_closed), "{kind} inside an open block");
                blocks.push(Told::default());
            }
            "delta" => {
                assert!(!blocks[index].is_closed, "{kind} after its end");
                blocks[index].text.push_str(event["delta"].as_str().expect("a delta is text"));
            }
            "end" => {
                assert!(!std::mem::replace(&mut blocks[index].is_closed, true), "{kind} twice");
                if kind == "toolcall_end" {
                    let arguments: Value = serde_json::from_str(&blocks[index].text).expect("whole arguments");
                    assert_eq!(event["toolCall"]["arguments"], arguments);
                } else {
                    assert_eq!(event["content"], blocks[index].text.as_str());
                }
            }
            other => panic!("no such step: {other}"),
        }
        if kind == "toolcall_start" {
            assert_like(event, &json!({"id": "[ANY]", "toolName": "bash"}));
        }
        assert_like(
            &frame["usage"],
            &json!({"input": "[ANY]", "output": "[ANY]", "totalTokens": "[ANY]", "cost": {"total": "[ANY]"}}),
        );
        look(frame, &blocks);
    }
    assert!(blocks.iter().all(|block| block.is_closed), "{blocks:?}");
    blocks
}

/// Compares the deltas of each block with the final message.
fn assert_adds_up(frames: &[Value], blocks: &[Told]) {
    let content = frames.last().expect("an end")["message"]["content"].as_array().expect("a list").clone();
    assert_eq!(content.len(), blocks.len());
    for (block, told) in content.iter().zip(blocks) {
        match block["type"].as_str().expect("a type") {
            "text" => assert_eq!(block["text"], told.text.as_str()),
            "thinking" => assert_eq!(block["thinking"], told.text.as_str()),
            "toolCall" => {
                let arguments: Value = serde_json::from_str(&told.text).expect("whole arguments");
                assert_eq!(block["arguments"], arguments);
            }
            other => panic!("no such block: {other}"),
        }
    }
}

/// Checks that only documented members are on the wire.
fn assert_no_scratch(content: &Value) {
    for block in content.as_array().expect("a list") {
        for name in block.as_object().expect("an object").keys() {
            let known = [
                "type",
                "text",
                "textSignature",
                "thinking",
                "thinkingSignature",
                "redacted",
                "id",
                "name",
                "arguments",
                "thoughtSignature",
            ];
            assert!(known.contains(&name.as_str()), "{name} in {block}");
        }
    }
}

#[test]
fn full_updates_hold_the_state_at_the_event() {
    for api in Api::ALL {
        let mut scene = Scene::speaking(api, [mixed(api), Turn::text("done")]);
        let frames = scene.run("go");
        let frames = message_frames(&frames);
        assert_like(&frames[0], &json!({"message": {"content": [], "stopReason": "stop"}}));
        let blocks = replay(frames, |frame, blocks| {
            let message = &frame["message"];
            assert_eq!(message, &frame["assistantMessageEvent"]["partial"]);
            assert_eq!(message["stopReason"], "stop");
            assert_no_scratch(&message["content"]);
            let content = message["content"].as_array().expect("a list");
            assert_eq!(content.len(), blocks.len(), "{}", frame["assistantMessageEvent"]["type"]);
            for (block, told) in content.iter().zip(blocks) {
                let shown = block.get("text").or(block.get("thinking"));
                // Partial arguments are parsed as far as possible; only their type is certain half way.
                shown.map_or_else(
                    || assert!(block["arguments"].is_object()),
                    |shown| assert_eq!(shown, told.text.as_str()),
                );
            }
        });
        assert_adds_up(frames, &blocks);
        scene.finish();
    }
}

#[test]
fn delta_updates_add_up_and_carry_no_snapshot() {
    let script = || Script::of([mixed(Api::Anthropic), Turn::text("done")]);
    let by_flag = Scene::with(script(), |builder| builder.args(["--stream-updates", "delta"]));
    let by_variable = Scene::with(script(), |builder| builder.env("PITH_STREAM_UPDATES", "delta"));
    let mut by_command = Scene::with(script(), |builder| builder);
    assert_eq!(by_command.command(json!({"type": "set_stream_updates", "mode": "delta"})).get("data"), None);
    for mut scene in [by_flag, by_variable, by_command] {
        let frames = scene.run("go");
        let frames = message_frames(&frames);
        let blocks = replay(frames, |frame, _| {
            assert_like(frame, &json!({"message": "[ABSENT]", "assistantMessageEvent": {"partial": "[ABSENT]"}}));
        });
        assert_adds_up(frames, &blocks);
        scene.finish();
    }
}

#[test]
fn the_encoding_changes_with_the_next_message() {
    let mut scene = Scene::new([Turn::text("abcdef").chunk(2).hold_after(1), Turn::text("second")]);
    scene.prompt("go");
    scene.wait_update("text_delta");
    scene.command(json!({"type": "set_stream_updates", "mode": "delta"}));
    scene.server.release(0);
    scene.wait_type("agent_settled");
    let frames = scene.frames();
    assert!(of_type(&frames, "message_update").iter().all(|frame| frame["message"].is_object()));
    let frames = scene.run("again");
    assert!(of_type(&frames, "message_update").iter().all(|frame| frame.get("message").is_none()));
    let error = scene.refusal(json!({"type": "set_stream_updates", "mode": "some"}));
    assert!(error.starts_with("Invalid field \"mode\" for command \"set_stream_updates\": expected one of"), "{error}");
    scene.finish();
}

#[test]
fn delta_output_is_linear_in_the_answer() {
    let bytes = |chars: usize| {
        let script = Script::of([Turn::blocks([Block::prose(chars)])]);
        let mut scene = Scene::with(script, |builder| builder.args(["--stream-updates", "delta"]));
        scene.run("go");
        let bytes = scene.n_bytes();
        scene.finish();
        bytes
    };
    let (small, large) = (bytes(8_000), bytes(80_000));
    assert!(large < small * 12, "8 KB gave {small} bytes, 80 KB {large}");
}

/// Plays an answer to a host that does not read for a while; memory stays bounded and nothing is lost.
fn stalled(mode: &str, chars: usize, chunk: usize, bound: u64) -> Scene {
    let script = Script::of([Turn::blocks([Block::prose(chars)]).chunk(chunk)]);
    let configure = |builder: pith_testkit::HostBuilder| {
        builder.args(["--no-session", "--stream-updates", mode]).timeout(Duration::from_secs(120))
    };
    let mut scene = Scene::with(script, configure);
    scene.state();
    let before = scene.memory();
    scene.send(json!({"id": "p", "type": "prompt", "message": "go"}));
    scene.wait_update("text_delta");
    scene.stop_reading();
    // The stall is the subject of the test; nothing is being waited for.
    thread::sleep(Duration::from_secs(2));
    let growth = scene.peak_memory().saturating_sub(before);
    assert!(growth < bound, "grew by {growth} bytes while nobody read");
    scene.resume_reading();
    scene.wait_type("agent_settled");
    let frames = scene.frames();
    let frames = message_frames(&frames);
    let blocks = replay(frames, |_, _| {});
    assert_adds_up(frames, &blocks);
    assert_eq!(texts(&frames.last().expect("an end")["message"]["content"]).len(), chars);
    scene
}

#[test]
fn a_host_that_stops_reading_during_ten_megabytes_loses_nothing() {
    let scene = stalled("delta", 10_000_000, 256, 96 << 20);
    assert_eq!(scene.server.wait_outcome(0), Outcome::Sent);
    scene.finish();
}

#[test]
fn full_updates_are_folded_for_a_host_that_stops_reading() {
    stalled("full", 100_000, 64, 64 << 20).finish();
}

#[test]
fn commands_take_effect_while_the_host_does_not_read() {
    // Held near its end, so that the answer is never complete.
    let answer = Turn::blocks([Block::prose(4_000_000)]).chunk(256).hold_after(15_000);
    let arguments = ["--no-session", "--stream-updates", "delta"];
    let mut scene = Scene::with(Script::of([answer]), |builder| builder.args(arguments));
    scene.send(json!({"id": "p", "type": "prompt", "message": "go"}));
    scene.wait_update("text_delta");
    scene.stop_reading();
    scene.send(json!({"id": "x", "type": "abort"}));
    assert_eq!(scene.server.wait_outcome(0), Outcome::ClientClosed);
    scene.resume_reading();
    scene.response("x");
    assert_order(
        &scene.finish(),
        &[json!({"type": "agent_settled", "aborted": true}), json!({"type": "response", "id": "x"})],
    );
}

#[test]
fn a_flood_of_commands_without_reading_is_answered_in_order() {
    let scene = Scene::with(Script::new(), |builder| builder.arg("--no-session"));
    scene.stop_reading();
    scene.send_all((0..5_000).map(|index| json!({"id": index, "type": "get_last_assistant_text"})));
    scene.resume_reading();
    let ids: Vec<_> = scene.finish().iter().filter_map(|frame| frame["id"].as_i64()).collect();
    assert_eq!(ids, (0..5_000).collect::<Vec<_>>());
}

/// Requests the state, with a name of a megabyte in it, without reading the answers.
fn unread_answers(n_asked: usize) -> (Scene, u64) {
    let mut scene = Scene::with(Script::new(), |builder| builder.arg("--no-session"));
    scene.command(json!({"type": "set_session_name", "name": "n".repeat(1 << 20)}));
    scene.state();
    let before = scene.memory();
    scene.stop_reading();
    scene.send_all((0..n_asked).map(|index| json!({"id": index, "type": "get_state"})));
    (scene, before)
}

#[test]
fn answers_to_a_host_that_sends_and_does_not_read_are_bounded() {
    const ASKED: usize = 200;
    let (mut scene, before) = unread_answers(ASKED);
    let growth = |scene: &Scene| scene.peak_memory().saturating_sub(before) >> 20;
    eventually("the answers have reached their bound", || growth(&scene) > 64);
    // The stall is the subject of the test; nothing is being waited for.
    thread::sleep(Duration::from_secs(2));
    assert!(growth(&scene) < 120, "grew by {} MiB while nobody read", growth(&scene));
    scene.resume_reading();
    scene.wait(|frame| frame["id"] == ASKED - 1);
    let frames = scene.finish();
    let ids: Vec<_> = frames.iter().filter_map(|frame| frame["id"].as_i64()).collect();
    assert_eq!(ids, (0..ASKED as i64).collect::<Vec<_>>());
}

#[test]
fn a_host_that_hangs_up_without_reading_is_not_waited_for() {
    let (mut scene, before) = unread_answers(200);
    eventually("the answers have reached their bound", || scene.peak_memory().saturating_sub(before) >> 20 > 64);
    scene.close_stdin();
    assert_eq!(scene.exit_code(), 0);
}
