//! Start, end, and what is left behind.

use pith_testkit::process::{no_process_after_a_second, no_process_with, wait_for};
use pith_testkit::{Script, Signal, TempHome, Turn, timeout};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, builder, endless_command};

/// The ways in which a host can end pith, and the exit code it then gets.
const ENDINGS: [(&str, Option<Signal>, i32); 4] = [
    ("end of stdin", None, 0),
    ("SIGTERM", Some(Signal::TERM), 143),
    ("SIGHUP", Some(Signal::HUP), 129),
    ("SIGINT", Some(Signal::INT), 130),
];

fn end(scene: &mut Scene, signal: Option<Signal>) -> i32 {
    match signal {
        Some(signal) => scene.signal(signal),
        None => scene.close_stdin(),
    }
    scene.exit_code()
}

#[test]
fn exit_codes_while_idle() {
    for (how, signal, code) in ENDINGS {
        let mut scene = Scene::new([]);
        scene.state();
        assert_eq!(end(&mut scene, signal), code, "{how}");
        no_process_with(scene.marker(), timeout());
    }
}

#[test]
fn exit_codes_during_a_tool_and_no_orphan() {
    for (how, signal, code) in ENDINGS {
        let endless = endless_command();
        let command = format!("setsid {endless} & echo began; {endless}");
        let mut scene = Scene::new([Turn::call("bash", json!({"command": command}))]);
        scene.prompt("go");
        scene.wait_output("began");
        assert_eq!(end(&mut scene, signal), code, "{how}");
        no_process_with(&endless, timeout());
        no_process_with(scene.marker(), timeout());
        // Messages that were announced as finished are on disk, complete.
        let sessions = scene.home.sessions();
        assert_eq!(sessions.len(), 1, "{how}");
        assert!(sessions[0].entries.iter().all(Value::is_object), "{how}: {:?}", sessions[0].entries);
        let messages = sessions[0].messages();
        assert_like(messages[0], &json!({"role": "user"}));
        assert_like(messages[1], &json!({"role": "assistant", "stopReason": "toolUse"}));
    }
}

#[test]
fn exit_codes_while_the_model_answers() {
    for (how, signal, code) in ENDINGS {
        let mut scene = Scene::new([Turn::text("abcdef").chunk(2).hold_after(1)]);
        scene.prompt("go");
        scene.wait_update("text_delta");
        assert_eq!(end(&mut scene, signal), code, "{how}");
        scene.server.wait_outcome(0);
        let sessions = scene.home.sessions();
        assert_like(sessions[0].messages()[0], &json!({"role": "user", "content": [{"text": "go"}]}));
    }
}

#[test]
fn exit_codes_during_a_shell_command_of_the_host() {
    for (how, signal, code) in ENDINGS {
        let endless = endless_command();
        let mut scene = Scene::new([]);
        scene.send(json!({"id": "b", "type": "bash", "command": endless}));
        wait_for(&endless, timeout());
        assert_eq!(end(&mut scene, signal), code, "{how}");
        no_process_with(&endless, timeout());
    }
}

#[test]
fn children_do_not_outlive_a_killed_pith() {
    let endless = endless_command();
    let command = format!("setsid {endless} & (trap '' TERM; {endless}) & echo began; {endless}");
    let mut scene = Scene::new([Turn::call("bash", json!({"command": command}))]);
    scene.prompt("go");
    scene.wait_output("began");
    scene.kill();
    // The supervisors are gone as well.
    no_process_after_a_second(scene.marker());
    no_process_after_a_second(&endless);
}

#[test]
fn children_of_a_shell_command_do_not_outlive_a_killed_pith() {
    let endless = endless_command();
    let scene = Scene::new([]);
    scene.send(json!({"type": "bash", "command": format!("setsid {endless} & {endless}")}));
    wait_for(&endless, timeout());
    scene.kill();
    no_process_after_a_second(&endless);
}

#[test]
fn background_jobs_end_with_the_session() {
    for output in ["", ">/dev/null 2>&1"] {
        let endless = endless_command();
        let command = format!("{endless} {output} & echo started");
        let mut scene = Scene::new([Turn::call("bash", json!({"command": command})), Turn::text("ok")]);
        scene.run("go");
        assert!(!pith_testkit::process::with_marker(&endless).is_empty(), "a job may outlive its call");
        scene.close_stdin();
        assert_eq!(scene.exit_code(), 0);
        no_process_with(&endless, timeout());
    }
}

#[test]
fn end_of_input_answers_everything_received() {
    let mut scene = Scene::new([]);
    scene.send_all((0..300).map(|index| json!({"id": index, "type": "get_state"})));
    let (frames, code) = scene.host.finish();
    assert_eq!(code, 0);
    let ids: Vec<_> = frames.iter().filter_map(|frame| frame["id"].as_i64()).collect();
    assert_eq!(ids, (0..300).collect::<Vec<_>>());
}

#[test]
fn end_of_input_answers_slow_commands_too() {
    let mut scene = Scene::new([Turn::text("x").hold_after(0)]);
    scene.send_all([
        json!({"id": "b", "type": "bash", "command": "sleep 1000"}),
        json!({"id": "p", "type": "prompt", "message": "go"}),
        json!({"id": "a", "type": "abort"}),
    ]);
    let (frames, code) = scene.host.finish();
    assert_eq!(code, 0);
    for id in ["b", "p", "a"] {
        let answers = frames.iter().filter(|frame| frame["type"] == "response" && frame["id"] == id).count();
        assert_eq!(answers, 1, "{id}: {frames:#?}");
    }
}

#[test]
fn closing_stdout_ends_pith() {
    let endless = endless_command();
    let mut scene = Scene::new([]);
    scene.state();
    scene.send(json!({"id": "b", "type": "bash", "command": endless}));
    wait_for(&endless, timeout());
    scene.hang_up(json!({"type": "get_state"}));
    scene.send(json!({"type": "get_state"}));
    assert_eq!(scene.exit_code(), 1);
    no_process_with(&endless, timeout());
    scene.wait_stderr(|text| !text.is_empty());
}

#[test]
fn commands_sent_before_start_up_are_answered_in_order() {
    let scene = Scene::new([]);
    scene.send_all((0..50).map(|index| json!({"id": index, "type": "get_state"})));
    let ids: Vec<_> = scene.finish().iter().filter_map(|frame| frame["id"].as_i64()).collect();
    assert_eq!(ids, (0..50).collect::<Vec<_>>());
}

#[test]
fn dialect_xcsh_sends_ready_first() {
    for (arguments, variable) in [(&["--dialect", "xcsh"][..], None), (&[][..], Some(("PITH_DIALECT", "xcsh")))] {
        let scene = Scene::with(Script::new(), |builder| {
            let builder = builder.args(arguments);
            match variable {
                Some((name, value)) => builder.env(name, value),
                None => builder,
            }
        });
        scene.send(json!({"type": "get_state"}));
        let frames = scene.finish();
        assert_like(&frames[0], &json!({"type": "ready", "version": "[ANY]", "server": "pith"}));
        assert_eq!(frames.len(), 2);
    }
}

#[test]
fn dialect_pi_sends_no_ready() {
    let scene = Scene::new([]);
    assert!(scene.finish().is_empty());
}

#[test]
fn start_up_failures_are_printed_to_stderr() {
    let cases: [(&[&str], &str); 3] = [
        (&["--mode", "rpc", "@notes.txt"], "Error: @file arguments are not supported in RPC mode"),
        (&["--mode", "nonsense"], "nonsense"),
        (&["--mode", "rpc", "--dialect", "klingon"], "klingon"),
    ];
    for (arguments, text) in cases {
        let mut host = builder().args(arguments).home(&TempHome::new()).spawn();
        let (frames, code) = host.finish();
        assert_eq!((frames.len(), code), (0, 1), "{arguments:?}: {}", host.describe());
        host.wait_stderr(|words| words.contains(text));
    }
}

#[test]
fn stray_words_and_unknown_flags_are_warned_about() {
    for arguments in [&["hello"][..], &["--flag-of-another-version", "value"]] {
        let mut scene = Scene::with(Script::new(), |builder| builder.args(arguments));
        scene.state();
        scene.wait_stderr(|text| text.starts_with("Warning: "));
        assert!(scene.messages().is_empty());
        scene.finish();
    }
}
