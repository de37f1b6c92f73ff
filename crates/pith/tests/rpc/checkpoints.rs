//! Checkpoints as a host sees them: listing, restoring, moves and forks that take files along.

use pith_sandbox::Support;
use pith_testkit::{Block, Script, Turn, has};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, of_type, sent_texts};

fn write(path: &str, content: &str) -> Turn {
    Turn::blocks([Block::call("write", json!({"path": path, "content": content}))])
}

fn command(command: &str) -> Turn {
    Turn::blocks([Block::call("bash", json!({ "command": command }))])
}

fn checkpoints(scene: &mut Scene) -> Vec<Value> {
    let data = scene.data(json!({"type": "list_checkpoints"}));
    data["checkpoints"].as_array().expect("a list").clone()
}

fn restore(scene: &mut Scene, id: &Value) -> Value {
    scene.data(json!({"type": "restore_checkpoint", "checkpointId": id}))
}

fn read(scene: &Scene, name: &str) -> Option<String> {
    std::fs::read_to_string(scene.home.work().join(name)).ok()
}

#[test]
fn writes_are_listed_and_go_back_and_the_model_is_told() {
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "two", "newText": "three"}]});
    let turns = [
        write("a.txt", "two"),
        write("deep/new.txt", "new"),
        Turn::blocks([Block::call("edit", edit)]),
        Turn::text("done"),
        Turn::text("I see"),
    ];
    let mut scene = Scene::new(turns);
    scene.home.write_file("a.txt", "one");
    scene.run("go");
    let listed = checkpoints(&mut scene);
    let tools: Vec<_> = listed.iter().map(|checkpoint| checkpoint["tool"].clone()).collect();
    assert_eq!(tools, ["edit", "write", "write"], "newest first");
    let entries = scene.data(json!({"type": "get_entries"}));
    let is_call = |entry: &&Value| entry["id"] == listed[2]["entryId"];
    let entry = entries["entries"].as_array().expect("a list").iter().find(is_call).expect("the answer's entry");
    assert_eq!(entry["message"]["content"][0]["id"], listed[2]["toolCallId"]);
    let file = json!([{"path": "a.txt", "change": "modified", "bytes": 3}]);
    assert_like(&listed[2], &json!({"coverage": "full", "files": file}));
    assert_eq!(listed[1]["files"], json!([{"path": "deep/new.txt", "change": "created", "bytes": 3}]));
    let limited = scene.data(json!({"type": "list_checkpoints", "limit": 1}));
    assert_eq!(limited["checkpoints"], json!([listed[0]]));

    let first = listed[2]["id"].clone();
    let dry = scene.data(json!({"type": "restore_checkpoint", "checkpointId": first, "dryRun": true}));
    assert_eq!(dry, json!({"restored": ["a.txt", "deep/new.txt"], "skipped": []}));
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("three"), "nothing has changed");
    let restored = restore(&mut scene, &first);
    assert_eq!(restored["restored"], json!(["a.txt", "deep/new.txt"]));
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("one"));
    assert!(!scene.home.work().join("deep").exists());
    assert_eq!(checkpoints(&mut scene)[0]["id"], restored["undoId"]);
    let audit = scene.data(json!({"type": "get_audit"}));
    let record =
        json!({"kind": "restore", "restored": ["a.txt", "deep/new.txt"], "skipped": [], "undoId": restored["undoId"]});
    assert_eq!(audit["entries"][0]["data"], record);

    scene.run("and now?");
    let told = sent_texts(&scene.server.requests().last().expect("a request").body);
    assert!(
        told.contains("put these files back to an earlier state") && told.contains("a.txt, deep/new.txt"),
        "{told}"
    );
    // The id of the command may name the checkpoint.
    let undo = restored["undoId"].clone();
    scene.host.send(json!({"type": "restore_checkpoint", "id": undo}));
    let answer = scene.host.response(undo.as_str().expect("a text"));
    assert_eq!(answer["data"]["restored"], json!(["a.txt", "deep/new.txt"]));
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("three"));
    scene.finish();
}

#[test]
fn what_cannot_be_restored_is_said() {
    let mut scene =
        Scene::new([write("a.txt", "two"), command("until [ -e go ]; do sleep 0.01; done"), Turn::text("done")]);
    scene.home.write_file("a.txt", "one");
    scene.prompt("go");
    scene.wait_type("turn_end");
    let id = checkpoints(&mut scene)[0]["id"].clone();
    let busy = scene.refusal(json!({"type": "restore_checkpoint", "checkpointId": id}));
    assert_eq!(busy, "Cannot restore while the agent is running");
    scene.home.write_file("go", "");
    scene.wait_type("agent_settled");
    let unknown = scene.refusal(json!({"type": "restore_checkpoint", "checkpointId": "c1-1"}));
    assert_eq!(unknown, "No such checkpoint: c1-1");
    let wrong = scene.refusal(json!({"type": "restore_checkpoint", "checkpointId": id, "paths": "a.txt"}));
    assert_eq!(wrong, "Invalid field \"paths\" for command \"restore_checkpoint\": expected array, got string");
    let wrong = scene.refusal(json!({"type": "list_checkpoints", "limit": -1}));
    assert_eq!(wrong, "Invalid field \"limit\" for command \"list_checkpoints\": expected whole number, got number");
    scene.home.write_file("a.txt", "of a user");
    let skipped = json!([{"path": "a.txt", "reason": "changed since by someone else"}]);
    assert_eq!(restore(&mut scene, &id), json!({"restored": [], "skipped": skipped}));
    let forced = scene.data(json!({"type": "restore_checkpoint", "checkpointId": id, "force": true}));
    assert_eq!(forced["restored"], json!(["a.txt"]));
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("one"));
    scene.finish();
}

#[test]
fn two_edits_of_one_file_in_one_answer_have_a_state_between_them() {
    let edit = |old: &str, new: &str| {
        Block::call("edit", json!({"path": "a.txt", "edits": [{"oldText": old, "newText": new}]}))
    };
    let mut scene = Scene::new([Turn::blocks([edit("one", "two"), edit("two", "three")]), Turn::text("done")]);
    scene.home.write_file("a.txt", "one");
    scene.run("go");
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("three"));
    let second = checkpoints(&mut scene)[0]["id"].clone();
    restore(&mut scene, &second);
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("two"));
    scene.finish();
}

#[test]
fn commands_are_covered_where_the_user_wants_it() {
    let settings = json!({"checkpoints": {"mode": "workspace"}});
    let turns = [command("mv a.txt b.txt; echo x > c.txt; chmod 755 d.txt"), command("true"), Turn::text("done")];
    let mut scene = Scene::with_settings(turns, &settings);
    scene.home.write_file("a.txt", "one");
    scene.home.write_file("d.txt", "two");
    scene.run("go");
    let listed = checkpoints(&mut scene);
    assert_eq!(listed.len(), 1, "a command that changed nothing is not listed: {listed:?}");
    let mut files: Vec<_> = listed[0]["files"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|file| format!("{} {}", file["change"], file["path"]))
        .collect();
    files.sort();
    assert_eq!(
        files,
        ["\"created\" \"b.txt\"", "\"created\" \"c.txt\"", "\"deleted\" \"a.txt\"", "\"modified\" \"d.txt\""]
    );
    restore(&mut scene, &listed[0]["id"]);
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("one"));
    assert!(read(&scene, "b.txt").is_none() && read(&scene, "c.txt").is_none());
    let Scene { mut host, home, .. } = scene;
    host.finish();
    let stores: Vec<_> = std::fs::read_dir(home.agent().join("pith-checkpoints")).expect("a store").flatten().collect();
    let n_trees = std::fs::read_dir(stores[0].path().join("trees")).map_or(0, Iterator::count);
    assert_eq!(n_trees, 0, "a session that has ended leaves no tree");
}

#[test]
fn a_sandbox_holds_files_that_go_back() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let mut scene = Scene::with(Script::of([write("a.txt", "two"), Turn::text("done")]), |builder| {
        builder.args(["--sandbox", "workspace-write"])
    });
    scene.home.write_file("a.txt", "one");
    scene.run("go");
    let id = checkpoints(&mut scene)[0]["id"].clone();
    let mut confined = scene.again(&["--continue", "--sandbox", "read-only"]);
    let refused = confined.data(json!({"type": "restore_checkpoint", "checkpointId": id}));
    assert_eq!(refused["restored"], json!([]));
    let reason = refused["skipped"][0]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("Permission denied"), "{reason}");
    confined.finish();
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("two"));
    assert_eq!(restore(&mut scene, &id)["restored"], json!(["a.txt"]));
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("one"));
    scene.finish();
}

#[test]
fn nothing_is_kept_without_a_change_or_if_it_is_switched_off() {
    let mut scene = Scene::new([command("echo x > a.txt"), Turn::text("done")]);
    scene.run("go");
    assert!(checkpoints(&mut scene).is_empty());
    assert!(!scene.home.agent().join("pith-checkpoints").exists());
    scene.finish();
    let mut scene =
        Scene::with_settings([write("a.txt", "x"), Turn::text("done")], &json!({"checkpoints": {"mode": "off"}}));
    scene.run("go");
    assert!(checkpoints(&mut scene).is_empty());
    assert!(!scene.home.agent().join("pith-checkpoints").exists());
    scene.finish();
}

#[test]
fn a_store_that_cannot_be_written_is_told_once_and_stops_nothing() {
    let mut scene = Scene::new([write("a.txt", "x"), write("b.txt", "y"), Turn::text("done")]);
    scene.home.write_agent_file("pith-checkpoints", "a file where the directory should be");
    let frames = scene.run("go");
    assert_eq!(read(&scene, "b.txt").as_deref(), Some("y"));
    let problems = of_type(&frames, "extension_error");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0]["extensionPath"], "<checkpoints>");
    scene.finish();
}

#[test]
fn moves_and_forks_take_files_along_if_asked() {
    let turns = [
        write("a.txt", "two"),
        Turn::text("first done"),
        write("a.txt", "three"),
        Turn::text("second done"),
        write("a.txt", "four"),
        Turn::text("third done"),
    ];
    let mut scene = Scene::new(turns);
    scene.home.write_file("a.txt", "one");
    scene.run("first");
    scene.run("second");
    let prompts = scene.data(json!({"type": "get_fork_messages"}));
    let (first, second) = (prompts["messages"][0]["entryId"].clone(), prompts["messages"][1]["entryId"].clone());
    let moved = scene.data(json!({"type": "navigate_tree", "targetId": second}));
    assert!(moved.get("restored").is_none(), "{moved}");
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("three"), "files stay unless asked for");
    scene.run("otherwise");
    let prompts = scene.data(json!({"type": "get_fork_messages"}));
    let mut prompts = prompts["messages"].as_array().expect("a list").iter();
    let leaf = prompts.find(|prompt| prompt["text"] == "otherwise").expect("the prompt")["entryId"].clone();
    let moved = scene.data(json!({"type": "navigate_tree", "targetId": leaf, "restoreFiles": true}));
    assert_like(&moved, &json!({"text": "otherwise", "restored": ["a.txt"], "skipped": []}));
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("three"));
    let forked = scene.data(json!({"type": "fork", "entryId": first, "restoreFiles": true}));
    assert_like(&forked, &json!({"text": "first", "cancelled": false, "restored": ["a.txt"], "skipped": []}));
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("one"));
    let undo = checkpoints(&mut scene)[0]["id"].clone();
    restore(&mut scene, &undo);
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("three"));
    scene.finish();
}

#[test]
fn a_branch_takes_files_along_if_asked() {
    let mut scene =
        Scene::xcsh([write("a.txt", "two"), Turn::text("done"), write("a.txt", "three"), Turn::text("done")]);
    scene.home.write_file("a.txt", "one");
    scene.run("first");
    scene.run("second");
    let prompts = scene.data(json!({"type": "get_branch_messages"}));
    let (first, second) = (prompts["messages"][0]["entryId"].clone(), prompts["messages"][1]["entryId"].clone());
    // Another session, which has the first prompt and what it led to, but has made no call of its own.
    let branched = scene.data(json!({"type": "branch", "entryId": second}));
    assert!(branched.get("restored").is_none(), "{branched}");
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("three"), "files stay unless asked for");
    let branched = scene.data(json!({"type": "branch", "entryId": first, "restoreFiles": true}));
    assert_like(&branched, &json!({"text": "first", "restored": ["a.txt"], "skipped": []}));
    assert_eq!(read(&scene, "a.txt").as_deref(), Some("one"));
    scene.finish();
}
