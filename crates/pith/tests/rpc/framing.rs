//! Lines in and out: what counts as a record, and how bad ones are answered.

use std::time::{Duration, Instant};

use pith_testkit::{Script, TempHome, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, builder};

fn bare() -> Scene {
    Scene::with(Script::new(), |builder| builder.arg("--no-session"))
}

/// The answers to `input`; a later command shows that pith goes on.
#[track_caller]
fn answers(scene: &mut Scene, input: &[u8]) -> Vec<Value> {
    let start = scene.frames().len();
    scene.send_raw(input);
    scene.state();
    let mut frames = scene.frames().split_off(start);
    frames.pop();
    frames
}

fn parse_error(text: &str) -> Value {
    json!({"type": "response", "command": "parse", "success": false, "id": "[ABSENT]",
        "error": format!("Failed to parse command: {text}")})
}

fn state_answer(id: Value) -> Value {
    json!({"type": "response", "command": "get_state", "success": true, "id": id})
}

#[test]
fn every_kind_of_line_is_answered() {
    let deep = format!("{}1{}\n", "[".repeat(600), "]".repeat(600));
    let not_object = |kind: &str| vec![parse_error(&format!("expected a JSON object, got {kind}"))];
    let broken = || vec![parse_error("[ANY]")];
    let missing_type = |id: Value| {
        let mut answer = parse_error("missing string field \"type\"");
        answer["id"] = id;
        vec![answer]
    };
    let cases: Vec<(&[u8], Vec<Value>)> = vec![
        (b"{\"id\":\"a\",\"type\":\"get_state\"}\n", vec![state_answer(json!("a"))]),
        (b"{\"id\":\"a\",\"type\":\"get_state\"}\r\n", vec![state_answer(json!("a"))]),
        (b"  {\"id\":\"a\",\"type\":\"get_state\"} \t\n", vec![state_answer(json!("a"))]),
        (b"\xef\xbb\xbf{\"id\":\"a\",\"type\":\"get_state\"}\n", vec![state_answer(json!("a"))]),
        (b"\xef\xbb\xbf\r\n", vec![]),
        (b"\n", vec![]),
        (b"   \n", vec![]),
        (b"\t \t\n", vec![]),
        (b"\r\n\r\n", vec![]),
        (b"hello\n", broken()),
        (b"{\"type\":\n", broken()),
        (b"{\"type\":\"get_state\"} trailing\n", broken()),
        (b"{\"type\":\"get_state\",}\n", broken()),
        (b"[1]\n", not_object("array")),
        (b"42\n", not_object("number")),
        (b"\"x\"\n", not_object("string")),
        (b"true\n", not_object("boolean")),
        (b"null\n", not_object("null")),
        (b"{\"id\":\"i\"}\n", missing_type(json!("i"))),
        (b"{\"id\":7,\"type\":5}\n", missing_type(json!(7))),
        (b"{}\n", missing_type(json!("[ABSENT]"))),
        (
            b"{\"id\":\"u\",\"type\":\"no_such\"}\n",
            vec![json!({"id": "u", "type": "response", "success": false, "error": "Unknown command: no_such"})],
        ),
        (b"{\"type\":\"no_such\",\"id\":1,\"type\":\"get_state\",\"id\":2}\n", vec![state_answer(json!(2))]),
        (b"{\"id\":\"\xff\xfe\",\"type\":\"get_state\"}\n", vec![state_answer(json!("\u{fffd}\u{fffd}"))]),
        (b"{\"id\":\"a\",\"type\":\"get_state\",\"x\":\"a\0b\"}\n", broken()),
        (b"{\"id\":\"a\",\"type\":\"get_state\",\"x\":\"a\tb\"}\n", broken()),
        (deep.as_bytes(), vec![parse_error("JSON nested too deeply")]),
        (
            b"{\"id\":1,\"type\":\"get_state\"}\n{\"id\":2,\"type\":\"get_state\"}\n",
            vec![state_answer(json!(1)), state_answer(json!(2))],
        ),
    ];
    let mut scene = bare();
    for (input, wanted) in cases {
        let got = answers(&mut scene, input);
        let shown = String::from_utf8_lossy(&input[..input.len().min(80)]);
        assert_eq!(got.len(), wanted.len(), "{shown}: {got:#?}");
        got.iter().zip(&wanted).for_each(|(got, wanted)| assert_like(got, wanted));
    }
    scene.finish();
}

#[test]
fn null_line_survives() {
    let mut scene = bare();
    assert_like(&answers(&mut scene, b"null\n")[0], &parse_error("expected a JSON object, got null"));
    scene.finish();
}

#[test]
fn ids_are_echoed_whatever_they_are() {
    let mut scene = bare();
    let ids = [
        json!("text"),
        json!(""),
        json!("\u{1f600}\u{2028}\n\""),
        json!(0),
        json!(-7),
        json!(1.5),
        json!(12_345_678_901_234_567_890_u64),
        json!(null),
        json!(true),
        json!({"nested": [1, {"a": null}]}),
        json!([1, "two"]),
    ];
    for id in ids {
        for (kind, success) in [("get_state", true), ("no_such", false), ("set_session_name", false)] {
            let line = json!({"id": id, "type": kind}).to_string() + "\n";
            let answer = answers(&mut scene, line.as_bytes()).remove(0);
            assert_eq!((&answer["id"], answer.get("id").is_some()), (&id, true), "{answer}");
            assert_eq!(answer["success"], success, "{answer}");
        }
    }
    let answer = answers(&mut scene, b"{\"type\":\"get_state\"}\n").remove(0);
    assert_eq!(answer.get("id"), None);
    scene.finish();
}

#[test]
fn dialect_xcsh_moves_the_id_of_an_unknown_command() {
    let mut scene = Scene::xcsh([]);
    scene.wait_type("ready");
    let answer = answers(&mut scene, b"{\"id\":\"u\",\"type\":\"no_such\"}\n").remove(0);
    assert_like(&answer, &json!({"id": "[ABSENT]", "requestId": "u", "error": "Unknown command: no_such"}));
    scene.finish();
}

#[test]
fn a_record_may_come_in_any_pieces() {
    let scene = bare();
    let line = "{\"id\":\"é漢\",\"type\":\"get_state\"}\n";
    for byte in line.bytes() {
        scene.send_raw([byte]);
    }
    scene.response("é漢");
    scene.finish();
}

#[test]
fn one_byte_order_mark_is_skipped_before_any_line() {
    let mut scene = bare();
    for id in ["first", "second"] {
        scene.send_raw(format!("\u{feff}{{\"id\":\"{id}\",\"type\":\"get_state\"}}\n"));
        assert_eq!(scene.response(id)["success"], true);
    }
    let two = "\u{feff}\u{feff}{\"type\":\"get_state\"}\n";
    assert_like(&answers(&mut scene, two.as_bytes())[0], &parse_error("[ANY]"));
    scene.finish();
}

#[test]
fn the_last_record_needs_no_newline() {
    let mut scene = bare();
    scene.send_raw("{\"id\":\"last\",\"type\":\"get_state\"}");
    let (frames, code) = scene.host.finish();
    assert_eq!(code, 0);
    assert_like(&frames[0], &state_answer(json!("last")));
}

#[test]
fn text_is_repaired_not_refused() {
    let mut scene = Scene::new([]);
    for (name, wanted) in [
        (&b"a\xffb"[..], "a\u{fffd}b"),
        (b"a\\ud800b", "a\u{fffd}b"),
        (b"a\\ud83d\\ude00b", "a\u{1f600}b"),
        ("a\u{2028}b\u{85}c".as_bytes(), "a\u{2028}b\u{85}c"),
    ] {
        scene.send_raw([b"{\"id\":\"n\",\"type\":\"set_session_name\",\"name\":\"", name, b"\"}\n"].concat());
        assert_eq!(scene.wait_type("session_info_changed")["name"], wanted);
    }
    scene.finish();
}

#[test]
fn unicode_line_separators_arrive_escaped() {
    let text = "one\u{2028}two\u{2029}three\u{85}four";
    let mut scene = Scene::new([Turn::text(text)]);
    scene.run(text);
    assert_eq!(scene.data(json!({"type": "get_last_assistant_text"}))["text"], text);
    let output = scene.lines().concat();
    for separator in ["\u{2028}", "\u{2029}", "\u{85}"] {
        let raw = separator.as_bytes();
        assert!(!output.windows(raw.len()).any(|window| window == raw), "{separator:?} is on the wire unescaped");
    }
    scene.finish();
}

#[test]
fn a_line_over_the_limit_is_dropped_and_named() {
    let mut scene = Scene::with(Script::new(), |builder| builder.args(["--no-session", "--max-line-bytes", "1000"]));
    let long = format!("{{\"id\":\"long\",\"type\":\"get_state\",\"x\":\"{}\"}}\n", "y".repeat(100_000));
    let got = answers(&mut scene, long.as_bytes());
    assert_eq!(got.len(), 1, "{got:?}");
    assert_like(&got[0], &parse_error("line exceeds 1000 bytes"));
    scene.finish();
}

/// The time from writing a line of `megabytes` to its answer.
fn time_of_line(scene: &mut Scene, megabytes: usize) -> Duration {
    let id = format!("{megabytes}-{}", scene.frames().len());
    let line = format!("{{\"id\":\"{id}\",\"type\":\"get_state\",\"pad\":\"{}\"}}\n", "x".repeat(megabytes << 20));
    let start = Instant::now();
    scene.send_raw(line);
    assert_eq!(scene.response(&id)["success"], true);
    start.elapsed()
}

#[test]
fn a_hundred_megabyte_line_takes_linear_time() {
    let mut scene = bare();
    scene.state();
    let small = (0..3).map(|_| time_of_line(&mut scene, 10)).min().expect("three times");
    let large = time_of_line(&mut scene, 100);
    // Ten times the bytes; a buffer that is scanned again and again would take a hundred times as long.
    assert!(large < small * 35 + Duration::from_millis(200), "10 MB took {small:?}, 100 MB {large:?}");
    scene.finish();
}

#[test]
fn answers_to_immediate_commands_keep_the_order_of_the_lines() {
    let scene = bare();
    let mut lines = Vec::new();
    for index in 0..200 {
        lines.extend_from_slice(match index % 4 {
            0 => b"oops\n",
            1 => b"{\"type\":\"no_such\"}\n",
            2 => b"{\"type\":\"set_session_name\"}\n",
            _ => b"{\"type\":\"get_state\"}\n",
        });
    }
    scene.send_raw(lines);
    let frames = scene.finish();
    let commands: Vec<_> = frames.iter().map(|frame| frame["command"].as_str().unwrap_or("none")).collect();
    assert_eq!(commands.len(), 200);
    for answers in commands.chunks(4) {
        assert_eq!((answers[0], answers[2], answers[3]), ("parse", "set_session_name", "get_state"));
    }
}

#[test]
fn only_frames_reach_stdout() {
    let home = TempHome::new();
    // A broken models file causes a warning, but not on stdout.
    std::fs::write(home.agent().join("models.json"), "{ not json").expect("writable");
    let mut host = builder().args(["--mode", "rpc", "--no-such-flag", "stray words"]).home(&home).spawn();
    host.send(json!({"id": "s", "type": "get_state"}));
    let (frames, code) = host.finish();
    assert_eq!(code, 0, "{}", host.describe());
    assert!(frames.iter().all(Value::is_object), "{frames:?}");
    host.wait_stderr(|text| !text.is_empty());
}
