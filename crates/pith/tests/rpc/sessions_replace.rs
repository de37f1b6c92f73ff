//! Replacing the session by another one: switching, forking, cloning.

use std::fs;
use std::path::Path;

use pith_testkit::{SessionFile, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, assert_order, of_type, texts};

fn file(scene: &mut Scene) -> String {
    scene.state()["sessionFile"].as_str().expect("a path").to_owned()
}

fn switch(path: &str) -> Value {
    json!({"type": "switch_session", "sessionPath": path})
}

fn prompts(scene: &mut Scene) -> Vec<String> {
    let user = |message: &Value| message["role"] == "user";
    scene.messages().iter().filter(|message| user(message)).map(|message| texts(&message["content"])).collect()
}

#[test]
fn switching_continues_an_earlier_session() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two"), Turn::text("three"), Turn::text("four")]);
    scene.command(json!({"type": "set_thinking_level", "level": "high"}));
    scene.run("first");
    scene.command(json!({"type": "set_session_name", "name": "old one"}));
    let old = scene.state();
    scene.command(json!({"type": "new_session"}));
    scene.command(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
    scene.command(json!({"type": "set_thinking_level", "level": "low"}));
    scene.run("second");
    let start = scene.frames().len();
    let path = old["sessionFile"].as_str().expect("a path").to_owned();
    assert_eq!(scene.data(switch(&path)), json!({"cancelled": false}));
    assert_eq!(scene.frames().len(), start + 1, "idle replacement emits no events");
    assert_like(
        &scene.state(),
        &json!({"sessionId": old["sessionId"], "sessionFile": path, "sessionName": "old one", "messageCount": 2,
            "model": {"id": "claude-mock"}, "thinkingLevel": "high"}),
    );
    scene.run("third");
    assert_eq!(prompts(&mut scene), ["first", "third"]);
    assert_eq!(SessionFile::read(Path::new(&path)).messages().len(), 4);
    // New sessions are stored in the directory of this one.
    scene.command(json!({"type": "new_session"}));
    assert_eq!(Path::new(&file(&mut scene)).parent(), Path::new(&path).parent());
    scene.finish();
}

#[test]
fn a_run_is_stopped_and_stored_before_the_switch() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("abcdef").chunk(2).hold_after(1), Turn::text("two")]);
    scene.run("first");
    let old = file(&mut scene);
    scene.command(json!({"type": "new_session"}));
    scene.prompt("second");
    let left = file(&mut scene);
    scene.wait_update("text_delta");
    // The prompt after the switch is for the session that was switched to.
    scene.send_all([
        json!({"id": "s", "type": "switch_session", "sessionPath": old}),
        json!({"id": "p", "type": "prompt", "message": "third"}),
    ]);
    scene.response("p");
    let frames = scene.frames();
    assert_order(
        &frames,
        &[
            json!({"type": "message_end", "message": {"stopReason": "aborted"}}),
            json!({"type": "agent_settled", "aborted": true}),
            json!({"type": "response", "id": "s", "data": {"cancelled": false}}),
            json!({"type": "response", "id": "p", "success": true}),
        ],
    );
    scene.wait(|frame| frame["type"] == "agent_settled" && frame["aborted"] == false);
    assert_eq!(prompts(&mut scene), ["first", "third"]);
    assert_like(
        SessionFile::read(Path::new(&left)).messages()[1],
        &json!({"stopReason": "aborted", "content": [{"text": "ab"}]}),
    );
    scene.finish();
}

#[test]
fn a_refused_switch_changes_nothing() {
    let mut scene = Scene::new([Turn::text("abcdef").chunk(2).hold_after(1)]);
    let work = scene.home.work();
    let header = |version: u64, cwd: &str| {
        json!({"type": "session", "version": version, "id": "x", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd})
            .to_string()
            + "\n"
    };
    scene.home.write_file("text.jsonl", "not a session\n");
    scene.home.write_file("binary.jsonl", [0u8, 159, 146, 150, 10, 0]);
    scene.home.write_file("newer.jsonl", header(9, work.to_str().expect("UTF-8")));
    scene.home.write_file("moved.jsonl", header(3, "/nowhere/at/all"));
    let path = |name: &str| work.join(name).display().to_string();
    scene.prompt("go");
    scene.wait_update("text_delta");
    let before = scene.state();
    let mut check = |name: &str, expected: &[&str]| {
        let error = scene.refusal(switch(&path(name)));
        for part in expected {
            assert!(error.contains(part), "{name}: {error}");
        }
        assert_eq!(scene.state(), before, "{name}");
    };
    check("missing.jsonl", &["Session file not found: ", "missing.jsonl"]);
    check("text.jsonl", &["Session file is not a valid pi session: ", "text.jsonl"]);
    check("binary.jsonl", &["Session file is not a valid pi session: "]);
    check("newer.jsonl", &["newer.jsonl", "version 9", "version 3", "--fork"]);
    check(
        "moved.jsonl",
        &[
            "Stored session working directory does not exist: /nowhere/at/all\nSession file: ",
            "\nCurrent working directory: ",
        ],
    );
    check("", &["Session file"]);
    assert_eq!(fs::read_to_string(path("text.jsonl")).expect("there"), "not a session\n");
    assert!(!Path::new(&path("missing.jsonl")).exists());
    // The run went on all the while.
    scene.server.release(0);
    scene.wait_type("agent_settled");
    assert_eq!(scene.data(json!({"type": "get_last_assistant_text"}))["text"], "abcdef");
    scene.finish();
}

#[test]
fn an_empty_file_becomes_a_session() {
    let mut scene = Scene::new([Turn::text("hi")]);
    scene.home.write_file("empty.jsonl", "");
    let path = scene.home.work().join("empty.jsonl");
    scene.command(switch("empty.jsonl"));
    assert_eq!(file(&mut scene), path.display().to_string());
    scene.run("go");
    let saved = SessionFile::read(&path);
    assert_eq!((saved.entries[0]["type"].as_str(), saved.messages().len()), (Some("session"), 2));
    scene.finish();
}

#[test]
fn switching_to_the_session_in_use_reloads_it() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two")]);
    scene.run("first");
    scene.command(json!({"type": "steer", "message": "forgotten"}));
    let (before, path) = (scene.messages(), file(&mut scene));
    assert_eq!(scene.data(switch(&path)), json!({"cancelled": false}));
    assert_eq!(scene.messages(), before);
    assert_eq!(scene.state()["pendingMessageCount"], 0);
    scene.run("second");
    assert_eq!(scene.home.sessions()[0].messages().len(), 4);
    scene.finish();
}

#[test]
fn a_session_of_another_directory_is_used_there() {
    let mut scene = Scene::new([Turn::call("bash", json!({"command": "pwd"})), Turn::text("done")]);
    let elsewhere = scene.home.tmp().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a directory");
    let header = json!({"type": "session", "version": 3, "id": "there", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": elsewhere});
    scene.home.write_file("s.jsonl", format!("{header}\n"));
    scene.command(switch("s.jsonl"));
    let frames = scene.run("where am I");
    let end = of_type(&frames, "tool_execution_end")[0];
    assert_eq!(texts(&end["result"]["content"]).trim(), elsewhere.display().to_string());
    let direct = scene.data(json!({"type": "bash", "command": "pwd"}));
    assert_eq!(direct["output"].as_str().map(str::trim), elsewhere.to_str());
    assert!(scene.server.wait_request(0).body["system"].to_string().contains("elsewhere"));
    scene.finish();
}

#[test]
fn a_missing_model_is_replaced_by_the_initial_one() {
    let mut scene = Scene::new([]);
    let cwd = scene.home.work();
    let lines = [
        json!({"type": "session", "version": 3, "id": "gone", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd}),
        json!({"type": "model_change", "id": "aaaa0001", "parentId": null, "timestamp": "2026-01-01T00:00:01.000Z", "provider": "nobody", "modelId": "none"}),
    ];
    scene.home.write_file("s.jsonl", lines.map(|line| line.to_string() + "\n").concat());
    scene.command(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
    scene.command(switch("s.jsonl"));
    assert_eq!(scene.state()["model"]["id"], "claude-mock", "what pith started with");
    scene.wait_stderr(|text| text.contains("Could not restore model nobody/none"));
    scene.finish();
}

#[test]
fn a_fork_begins_before_a_prompt() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two"), Turn::text("three"), Turn::text("four")]);
    scene.run("first");
    scene.run("second");
    let old = scene.state();
    let messages = scene.data(json!({"type": "get_fork_messages"}));
    let list = messages["messages"].as_array().expect("a list").clone();
    assert_eq!(
        list.iter().map(|message| message["text"].as_str()).collect::<Vec<_>>(),
        [Some("first"), Some("second")]
    );
    assert_eq!(scene.data(json!({"type": "get_branch_messages"})), messages);

    let forked = scene.data(json!({"type": "fork", "entryId": list[1]["entryId"]}));
    assert_eq!(forked, json!({"text": "second", "cancelled": false}));
    let new = scene.state();
    assert_ne!(new["sessionId"], old["sessionId"]);
    assert_eq!(new["messageCount"], 2);
    scene.run("second, otherwise");
    let copy = SessionFile::read(Path::new(new["sessionFile"].as_str().expect("a path")));
    assert_eq!(copy.entries[0]["parentSession"], old["sessionFile"]);
    assert_eq!(prompts(&mut scene), ["first", "second, otherwise"]);
    let original = SessionFile::read(Path::new(old["sessionFile"].as_str().expect("a path")));
    assert_eq!(original.messages().len(), 4, "the original is as it was");
    assert_eq!(copy.entries[3], original.entries[3], "entries keep their ids");

    // Before the first prompt there are only settings.
    let first = scene.data(json!({"type": "get_branch_messages"}))["messages"][0]["entryId"].clone();
    assert_eq!(scene.data(json!({"type": "branch", "entryId": first})), json!({"text": "first", "cancelled": false}));
    assert_eq!(scene.state()["messageCount"], 0);
    scene.run("anew");
    assert_eq!(prompts(&mut scene), ["anew"]);
    scene.finish();
}

#[test]
fn only_prompts_can_be_forked_at() {
    let mut scene = Scene::new([Turn::text("one")]);
    scene.run("first");
    let entries = scene.home.sessions().remove(0).entries;
    let answer = entries.last().expect("entries")["id"].clone();
    let before = scene.state();
    for id in [answer, json!("no-such-entry"), json!("")] {
        assert_eq!(scene.refusal(json!({"type": "fork", "entryId": id})), "Invalid entry ID for forking");
        assert_eq!(scene.refusal(json!({"type": "branch", "entryId": id})), "Invalid entry ID for branching");
    }
    assert_eq!(scene.state(), before);
    scene.finish();
}

#[test]
fn a_clone_has_the_whole_branch() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two")]);
    scene.run("first");
    let (old, before) = (scene.state(), scene.messages());
    assert_eq!(scene.data(json!({"type": "clone"})), json!({"cancelled": false}));
    assert_eq!(scene.messages(), before);
    let new = scene.state();
    assert_ne!(new["sessionId"], old["sessionId"]);
    scene.run("second");
    assert_eq!(SessionFile::read(Path::new(old["sessionFile"].as_str().expect("a path"))).messages().len(), 2);
    assert_eq!(SessionFile::read(Path::new(new["sessionFile"].as_str().expect("a path"))).messages().len(), 4);
    scene.finish();
}

#[test]
fn there_is_nothing_to_clone_without_content() {
    let mut scene = Scene::new([]);
    let error = scene.refusal(json!({"type": "clone"}));
    assert_eq!(
        error,
        "This session has not been saved yet. Wait for the first assistant response before cloning or forking it."
    );
    scene.finish();
}

#[test]
fn a_clone_ends_where_the_session_was_when_it_was_asked_for() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two and more").chunk(3).hold_after(1)]);
    scene.run("first");
    scene.prompt("second");
    scene.server.wait_held(1);
    assert_eq!(scene.data(json!({"type": "clone"})), json!({"cancelled": false}));
    let roles: Vec<_> = scene.messages().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "user"], "without the half answer");
    scene.finish();
}

#[test]
fn sessions_in_memory_are_forked_and_cloned_in_memory() {
    let mut scene = Scene::with(pith_testkit::Script::of([Turn::text("one")]), |builder| builder.arg("--no-session"));
    scene.run("first");
    scene.command(json!({"type": "clone"}));
    assert_eq!(scene.state().get("sessionFile"), None);
    let list = scene.data(json!({"type": "get_fork_messages"}));
    scene.command(json!({"type": "fork", "entryId": list["messages"][0]["entryId"]}));
    assert_eq!(scene.state()["messageCount"], 0);
    assert!(scene.home.sessions().is_empty());
    scene.finish();
}

#[test]
fn a_shell_command_is_recorded_in_the_session_it_was_asked_in() {
    let mut scene = Scene::new([Turn::text("one")]);
    scene.run("first");
    let left = file(&mut scene);
    scene.send(json!({"id": "b", "type": "bash", "command": "echo begun; sleep 600"}));
    scene.wait_type("bash_execution_update");
    scene.command(json!({"type": "new_session"}));
    // It was stopped and answered before the other session began.
    assert_eq!(scene.response("b")["data"]["cancelled"], true);
    assert!(scene.messages().is_empty());
    let text = fs::read_to_string(&left).expect("the session that was left");
    let frames = scene.finish();
    let position = |wanted: &str| frames.iter().position(|frame| frame["command"] == wanted).expect(wanted);
    assert!(position("bash") < position("new_session"));
    assert!(text.contains("bashExecution") && text.contains("sleep 600"), "{text}");
}

#[test]
fn two_switches_in_one_write_happen_in_order() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two")]);
    scene.run("first");
    let first = file(&mut scene);
    scene.command(json!({"type": "new_session"}));
    scene.run("second");
    let second = file(&mut scene);
    scene.send_all([
        json!({"id": "1", "type": "switch_session", "sessionPath": first}),
        json!({"id": "2", "type": "switch_session", "sessionPath": second}),
        json!({"id": "3", "type": "get_state"}),
    ]);
    assert_eq!(scene.response("3")["data"]["sessionFile"], second);
    assert_eq!(
        (scene.response("1")["success"].clone(), scene.response("2")["success"].clone()),
        (json!(true), json!(true))
    );
    scene.finish();
}
