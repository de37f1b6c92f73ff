//! The todo list between host and model, beyond what the `*todo*` transcripts show.

use pith_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, of_type, sent_texts, texts};

fn phases() -> Value {
    json!([{"name": "Work", "tasks": [{"content": "first"}, {"content": "second"}]}])
}

fn set(scene: &mut Scene) {
    scene.command(json!({"type": "set_todos", "phases": phases()}));
}

#[test]
fn the_model_reads_and_changes_the_list_of_the_host() {
    let done = json!({"ops": [{"op": "update", "id": "task-1", "status": "completed"}, {"op": "update", "id": "task-2", "status": "abandoned"}]});
    let mut scene =
        Scene::xcsh([Turn::call("todo_write", json!({"ops": []})), Turn::call("todo_write", done), Turn::text("done")]);
    set(&mut scene);
    let frames = scene.run("go");
    let results: Vec<_> =
        of_type(&frames, "tool_execution_end").iter().map(|end| texts(&end["result"]["content"])).collect();
    assert!(results[0].starts_with("Left to do (2):\n[ ] task-1 first (Work)"), "{}", results[0]);
    assert!(results[1].starts_with("Nothing is left to do."), "{}", results[1]);
    assert!(of_type(&frames, "todo_reminder").is_empty());
    assert_eq!(scene.state()["todoPhases"][0]["tasks"][0]["status"], "completed");
    scene.finish();
}

#[test]
fn an_operation_that_cannot_be_done_does_not_stop_the_others() {
    let ops = json!({"ops": [{"op": "remove_task", "id": "task-9"}, {"op": "add_phase", "name": "More", "tasks": [{"content": "third"}]}]});
    let nothing = json!({"ops": [{"op": "remove_task", "id": "task-9"}]});
    let mut scene = Scene::with(
        Script::of([Turn::call("todo_write", ops), Turn::call("todo_write", nothing), Turn::text("ok")]),
        |builder| builder.args(["--dialect", "xcsh", "--no-session"]),
    );
    let frames = scene.run("go");
    let ends = of_type(&frames, "tool_execution_end");
    assert!(texts(&ends[0]["result"]["content"]).starts_with("Not done: no such task: task-9\n"));
    assert_eq!((&ends[0]["isError"], &ends[1]["isError"]), (&json!(false), &json!(true)));
    assert_eq!(ends[0]["result"]["details"]["storage"], "memory");
    assert_eq!(
        scene.state()["todoPhases"][0]["tasks"],
        json!([{"id": "task-1", "content": "third", "status": "in_progress"}])
    );
    scene.finish();
}

#[test]
fn reminders_reach_the_model_and_are_counted_per_prompt() {
    let mut scene = Scene::xcsh((0..8).map(|n| Turn::text(format!("answer {n}"))));
    set(&mut scene);
    let attempts = |frames: &[Value]| {
        of_type(frames, "todo_reminder").iter().map(|event| event["attempt"].clone()).collect::<Vec<_>>()
    };
    let first = scene.run("go");
    assert_eq!(attempts(&first), [1, 2, 3]);
    assert_eq!(of_type(&first, "agent_settled").len(), 1, "reminders belong to the same activity");
    assert!(sent_texts(&scene.server.wait_request(1).body).contains("task-1 first"));
    assert_eq!(attempts(&scene.run("again")), [1, 2, 3]);
    scene.finish();
}

#[test]
fn an_abort_and_a_failure_are_not_followed_by_a_reminder() {
    let mut scene = Scene::xcsh([Turn::text("never ends").hold_after(0)]);
    set(&mut scene);
    scene.prompt("go");
    scene.wait_type("agent_start");
    scene.command(json!({"type": "abort"}));
    let frames = scene.finish();
    assert!(of_type(&frames, "todo_reminder").is_empty());
}

#[test]
fn lists_that_only_the_model_set_cause_no_reminders() {
    let ops = json!({"ops": [{"op": "add_phase", "name": "Mine", "tasks": [{"content": "x"}]}]});
    let mut scene = Scene::xcsh([Turn::call("todo_write", ops), Turn::text("done")]);
    let frames = scene.run("go");
    assert!(of_type(&frames, "todo_reminder").is_empty());
    assert_eq!(scene.state()["todoPhases"][0]["name"], "Mine");
    scene.finish();
}

#[test]
fn waiting_to_clear_does_not_keep_the_process_alive() {
    let mut scene = Scene::xcsh([]);
    scene.command(
        json!({"type": "set_todos", "phases": [{"name": "P", "tasks": [{"content": "x", "status": "completed"}]}]}),
    );
    // A minute would be left; `finish` does not wait that long.
    scene.finish();
}
