//! Shell commands of the host.

use pith_testkit::process::no_process_with;
use pith_testkit::{Script, Turn, eventually, timeout};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, assert_order, endless_command, of_type, position, sent_texts};

fn bash(scene: &mut Scene, command: &str) -> Value {
    scene.data(json!({"type": "bash", "command": command}))
}

/// Starts a command that runs until it is stopped, and waits until it runs.
fn start(scene: &mut Scene, id: &str, endless: &str) {
    scene.send(json!({"id": id, "type": "bash", "command": format!("echo began-{id}; {endless}")}));
    let began = format!("began-{id}\n");
    scene.wait(|frame| frame["type"] == "bash_execution_update" && frame["delta"] == began.as_str());
}

#[test]
fn bash_returns_output_and_exit_code() {
    let mut scene = Scene::new([]);
    let checks = [
        ("echo hi", "hi\n", 0),
        ("echo hi; echo err >&2; exit 4", "hi\nerr\n", 4),
        ("true", "", 0),
        ("kill -9 $$", "", 137),
        ("no-such-command-here 2>/dev/null", "", 127),
        ("cat", "", 0),
        (r"printf '\033[31mred\033[0m\r\nx\000y\377z\n'", "red\nxy\u{fffd}z\n", 0),
        (r"printf 'a\tb\007c'", "a\tbc", 0),
    ];
    for (command, output, code) in checks {
        let result = bash(&mut scene, command);
        let wanted = json!({"output": output, "exitCode": code, "cancelled": false, "truncated": false, "fullOutputPath": "[ABSENT]"});
        assert_like(&result, &wanted);
    }
    scene.finish();
}

#[test]
fn it_runs_in_the_work_directory() {
    let mut scene = Scene::new([]);
    let work = scene.home.work().canonicalize().expect("exists");
    assert_eq!(bash(&mut scene, "pwd -P")["output"], format!("{}\n", work.display()));
    scene.finish();
}

#[test]
fn long_output_keeps_its_tail_and_a_file() {
    let mut scene = Scene::new([]);
    let result = bash(&mut scene, "seq 1 5000");
    assert_like(&result, &json!({"truncated": true, "exitCode": 0}));
    let output = result["output"].as_str().expect("text");
    assert!(output.starts_with("3001\n") && output.trim_end().ends_with("\n5000"), "{output}");
    let path = result["fullOutputPath"].as_str().expect("a path");
    let full = std::fs::read_to_string(path).expect("complete when the answer arrives");
    assert_eq!(full.lines().count(), 5000);
    let result = bash(&mut scene, "head -c 200000 /dev/zero | tr '\\0' x");
    assert_eq!(result["truncated"], true);
    assert!(result["output"].as_str().expect("text").len() <= 51_200);
    scene.finish();
}

#[test]
fn output_is_shown_as_it_comes() {
    let mut scene = Scene::new([]);
    scene.send(
        json!({"id": "b", "type": "bash", "command": "echo one; until [ -e go ]; do sleep 0.01; done; echo two"}),
    );
    assert_eq!(scene.wait_type("bash_execution_update")["delta"], "one\n");
    scene.home.write_file("go", "");
    assert_eq!(scene.response("b")["data"]["output"], "one\ntwo\n");
    let frames = scene.finish();
    let updates = of_type(&frames, "bash_execution_update");
    assert!(updates.iter().all(|update| update["id"] == "b"));
    let shown: String = updates.iter().filter_map(|update| update["delta"].as_str()).collect();
    assert_eq!(shown, "one\ntwo\n");
    assert_eq!(frames.last().expect("frames")["command"], "bash");
}

#[test]
fn commands_run_beside_each_other_and_beside_everything_else() {
    let mut scene = Scene::new([]);
    let endless = endless_command();
    start(&mut scene, "a", &endless);
    start(&mut scene, "b", &endless);
    assert_eq!(bash(&mut scene, "echo third")["output"], "third\n");
    scene.state();
    let frames = scene.frames();
    scene.command(json!({"type": "abort_bash"}));
    for id in ["a", "b"] {
        let wanted =
            json!({"output": format!("began-{id}\n"), "cancelled": true, "truncated": false, "exitCode": "[ABSENT]"});
        assert_like(&scene.response(id), &json!({"success": true, "data": wanted}));
    }
    no_process_with(&endless, timeout());
    let later = scene.finish().split_off(frames.len());
    let order = |pattern: Value| position(&later, &pattern);
    let stopped = order(json!({"type": "response", "command": "abort_bash"}));
    assert!(stopped < order(json!({"type": "response", "id": "a"})));
    assert!(stopped < order(json!({"type": "response", "id": "b"})));
}

#[test]
fn one_command_can_be_stopped_alone() {
    let mut scene = Scene::new([]);
    let (first, second) = (endless_command(), endless_command());
    start(&mut scene, "a", &first);
    start(&mut scene, "b", &second);
    scene.command(json!({"type": "abort_bash", "targetId": "a"}));
    assert_eq!(scene.response("a")["data"]["cancelled"], true);
    no_process_with(&first, timeout());
    assert!(!pith_testkit::process::with_marker(&second).is_empty());
    scene.command(json!({"type": "abort_bash"}));
    assert_eq!(scene.response("b")["data"]["cancelled"], true);
    scene.finish();
}

#[test]
fn stopping_nothing_succeeds() {
    let mut scene = Scene::new([]);
    scene.command(json!({"type": "abort_bash"}));
    scene.finish();
}

#[test]
fn a_detached_child_is_stopped_too() {
    let mut scene = Scene::new([]);
    let endless = endless_command();
    start(&mut scene, "a", &format!("setsid {endless} & {endless}"));
    scene.command(json!({"type": "abort_bash"}));
    scene.response("a");
    no_process_with(&endless, timeout());
    scene.finish();
}

#[test]
fn abort_does_not_stop_them() {
    let mut scene = Scene::new([Turn::text("x").hold_after(0)]);
    let endless = endless_command();
    start(&mut scene, "a", &endless);
    scene.prompt("go");
    scene.command(json!({"type": "abort"}));
    assert!(!pith_testkit::process::with_marker(&endless).is_empty());
    scene.command(json!({"type": "abort_bash"}));
    assert_eq!(scene.response("a")["data"]["cancelled"], true);
    scene.finish();
}

#[test]
fn the_next_prompt_tells_the_model() {
    let mut scene = Scene::new([Turn::text("I see")]);
    bash(&mut scene, "echo visible; exit 2");
    bash(&mut scene, "true");
    scene.command(json!({"type": "bash", "command": "echo private", "excludeFromContext": true}));
    let messages = scene.messages();
    let bash_message = json!({"role": "bashExecution", "command": "echo visible; exit 2", "output": "visible\n",
        "exitCode": 2, "cancelled": false, "truncated": false, "timestamp": "[TIME]"});
    assert_like(&messages[0], &bash_message);
    assert_eq!(messages[2]["excludeFromContext"], true);
    let frames = scene.run("what happened");
    assert!(of_type(&frames, "message_start").iter().all(|frame| frame["message"]["role"] != "bashExecution"));
    let request = scene.server.wait_request(0).body;
    let sent = sent_texts(&request);
    assert!(sent.contains("Ran `echo visible; exit 2`\n```\nvisible\n\n```\n\nCommand exited with code 2"), "{sent}");
    assert!(sent.contains("Ran `true`\n(no output)"), "{sent}");
    assert!(!sent.contains("private"), "{sent}");
    scene.finish();
}

#[test]
fn results_during_a_run_are_recorded_after_it() {
    let mut scene = Scene::new([Turn::text("x").hold_after(0)]);
    scene.prompt("go");
    scene.server.wait_request(0);
    bash(&mut scene, "echo meanwhile");
    assert!(scene.messages().iter().all(|message| message["role"] != "bashExecution"));
    scene.server.release(0);
    scene.wait_type("agent_settled");
    let messages = scene.messages();
    let roles: Vec<_> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "bashExecution"]);
    scene.finish();
}

#[test]
fn updates_come_before_the_answer() {
    let mut scene = Scene::new([]);
    scene.command(json!({"type": "bash", "command": "echo only"}));
    assert_order(
        &scene.finish(),
        &[json!({"type": "bash_execution_update", "delta": "only\n"}), json!({"type": "response", "command": "bash"})],
    );
}

#[test]
fn commands_that_have_ended_hold_no_descriptors() {
    let mut scene = Scene::with(Script::new(), |builder| builder.env("PITH_DUMPABLE", "1"));
    let descriptors = format!("/proc/{}/fd", scene.pid());
    let n_open = || std::fs::read_dir(&descriptors).expect("pith runs").count();
    // What the first command sets up for all of them stays.
    bash(&mut scene, "true");
    let before = n_open();
    for id in ["a", "b", "c", "d", "e"] {
        let wait = "until [ -e go ]; do sleep 0.01; done";
        scene.send(json!({"id": id, "type": "bash", "command": format!("echo began; {wait}")}));
        scene.wait(|frame| frame["type"] == "bash_execution_update");
    }
    assert!(n_open() > before, "one and more for each command");
    bash(&mut scene, "touch go");
    for id in ["a", "b", "c", "d", "e"] {
        scene.response(id);
    }
    eventually("all descriptors are closed", || n_open() <= before);
    // A process left in the background keeps its channel to the supervisor, but no longer than it lives.
    bash(&mut scene, "until [ -e end ]; do sleep 0.01; done > /dev/null 2>&1 &");
    bash(&mut scene, "touch end");
    eventually("all descriptors are closed", || n_open() <= before);
    scene.finish();
}
