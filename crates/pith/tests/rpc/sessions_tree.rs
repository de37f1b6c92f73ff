//! The entries of a session: lists, trees, labels, navigation, and lists of other sessions.

use pith_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::compaction::{SUMMARY, long};
use crate::support::{Scene, assert_like, sent_texts, texts};

fn entries(scene: &mut Scene) -> Vec<Value> {
    let data = scene.data(json!({"type": "get_entries"}));
    data["entries"].as_array().expect("a list").clone()
}

fn id_of(entries: &[Value], text: &str) -> Value {
    let found = entries.iter().find(|entry| texts(&entry["message"]["content"]) == text);
    found.unwrap_or_else(|| panic!("no message {text}"))["id"].clone()
}

#[test]
fn entries_are_listed_as_they_are_in_the_file() {
    let mut scene = Scene::new([Turn::text("one \u{2028} line"), Turn::text("two")]);
    scene.run("first");
    let all = entries(&mut scene);
    assert_eq!(all, scene.home.sessions()[0].entries[1..]);
    let last = all.last().expect("entries")["id"].clone();
    assert_eq!(scene.data(json!({"type": "get_entries"}))["leafId"], last);
    let line = scene.lines().pop().expect("lines");
    assert!(!String::from_utf8(line).expect("UTF-8").contains('\u{2028}'), "naive readers would split the line");

    scene.run("second");
    let since = scene.data(json!({"type": "get_entries", "since": last}));
    assert_eq!(since["entries"].as_array().map(Vec::len), Some(2));
    assert_eq!(scene.refusal(json!({"type": "get_entries", "since": "nope"})), "Entry not found: nope");
    assert_eq!(scene.data(json!({"type": "get_audit"})), json!({"entries": []}));
    assert_eq!(scene.refusal(json!({"type": "get_audit", "since": "nope"})), "Entry not found: nope");
    scene.finish();
}

#[test]
fn an_empty_session_has_only_settings() {
    let mut scene = Scene::new([]);
    let kinds: Vec<_> = entries(&mut scene).iter().map(|entry| entry["type"].clone()).collect();
    assert_eq!(kinds, ["model_change", "thinking_level_change"]);
    assert_eq!(scene.data(json!({"type": "get_fork_messages"})), json!({"messages": []}));
    scene.finish();
}

#[test]
fn branches_and_labels_show_in_the_tree() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two"), Turn::text("three")]);
    scene.run("first");
    scene.run("second");
    let all = entries(&mut scene);
    let second = id_of(&all, "second");
    assert_eq!(scene.command(json!({"type": "set_label", "entryId": second, "label": "  here "})).get("data"), None);
    let moved = scene.data(json!({"type": "navigate_tree", "targetId": second}));
    assert_eq!(moved, json!({"cancelled": false, "leafId": id_of(&all, "one"), "text": "second"}));
    assert_eq!(scene.messages().len(), 2);
    scene.run("second, otherwise");

    let tree = scene.data(json!({"type": "get_tree"}));
    assert_eq!(scene.data(json!({"type": "get_tree", "flat": false})), tree);
    let answer = &tree["tree"][0]["children"][0]["children"][0]["children"][0];
    assert_eq!(texts(&answer["entry"]["message"]["content"]), "one");
    let branches: Vec<_> = answer["children"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|node| texts(&node["entry"]["message"]["content"]))
        .collect();
    assert_eq!(branches, ["second", "second, otherwise"]);
    assert_like(&answer["children"][0], &json!({"label": "here", "labelTimestamp": "[TIME]"}));
    assert_eq!(answer["children"][1].get("label"), None);
    assert_eq!(tree["leafId"], id_of(&entries(&mut scene), "three"));
    // Every prompt of the file can be forked, on any branch.
    let prompts = scene.data(json!({"type": "get_fork_messages"}));
    assert_eq!(prompts["messages"].as_array().map(Vec::len), Some(3));

    scene.command(json!({"type": "set_label", "entryId": second}));
    let tree = scene.data(json!({"type": "get_tree"})).to_string();
    assert!(!tree.contains("labelTimestamp"));
    assert_eq!(scene.refusal(json!({"type": "set_label", "entryId": "nope", "label": "x"})), "Entry not found: nope");
    scene.finish();
}

#[test]
fn a_long_session_can_be_read_as_a_flat_list() {
    let mut scene = Scene::new([]);
    let header = json!({"type": "session", "version": 3, "id": "long", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": scene.home.work()});
    let entry = |n: usize| {
        let parent = n.checked_sub(1).map(|n| format!("e{n}"));
        json!({"type": "message", "id": format!("e{n}"), "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {"role": "user", "content": "q", "timestamp": 1}})
    };
    let lines: String = std::iter::once(header).chain((0..10_000).map(entry)).map(|line| format!("{line}\n")).collect();
    scene.home.write_file("s.jsonl", lines);
    scene.command(json!({"type": "switch_session", "sessionPath": "s.jsonl"}));
    scene.command(json!({"type": "set_label", "entryId": "e1", "label": "here"}));
    let flat = scene.data(json!({"type": "get_tree", "flat": true}));
    let nodes = flat["nodes"].as_array().expect("a list");
    let (model, label) = (&nodes[10_000], nodes.last().expect("nodes"));
    assert_eq!((&model["entry"]["type"], &flat["leafId"]), (&json!("thinking_level_change"), &label["id"]));
    assert_eq!(flat.get("tree"), None);
    assert_like(
        &nodes[1],
        &json!({"id": "e1", "parentId": "e0", "label": "here", "labelTimestamp": "[TIME]", "entry": {"id": "e1"}}),
    );
    assert!(nodes[1..10_000].iter().zip(nodes).all(|(node, before)| node["parentId"] == before["id"]));
    scene.finish();
}

#[test]
fn a_move_survives_the_end_of_the_process() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two"), Turn::text("three")]);
    scene.run("first");
    scene.run("second");
    let all = entries(&mut scene);
    scene.command(json!({"type": "navigate_tree", "targetId": id_of(&all, "one")}));
    assert_eq!(scene.host.finish().1, 0);
    let mut again = scene.again(&["--continue"]);
    let messages = again.data(json!({"type": "get_messages"}));
    assert_eq!(messages["messages"].as_array().map(Vec::len), Some(2));
    let last =
        again.data(json!({"type": "get_entries"}))["entries"].as_array().and_then(|entries| entries.last().cloned());
    assert_like(&last.expect("entries"), &json!({"type": "custom", "customType": "pith.leaf"}));
    again.finish();
}

#[test]
fn a_move_survives_kill_9() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two"), Turn::text("three")]);
    scene.run("first");
    scene.run("second");
    let all = entries(&mut scene);
    scene.command(json!({"type": "navigate_tree", "targetId": id_of(&all, "first")}));
    scene.command(json!({"type": "navigate_tree", "targetId": id_of(&all, "one")}));
    scene.kill();
    assert_eq!(scene.home.sessions()[0].entries[1..], all, "a move adds nothing to the file");
    let mut again = scene.again(&["--continue"]);
    let messages = again.data(json!({"type": "get_messages"}));
    assert_eq!(messages["messages"].as_array().map(Vec::len), Some(2));
    assert_eq!(again.data(json!({"type": "get_entries"})), json!({"entries": all, "leafId": id_of(&all, "one")}));
    again.data(json!({"type": "prompt", "message": "second, otherwise"}));
    again.wait_type("agent_settled");
    again.finish();
    let file = scene.home.sessions().remove(0);
    let next = file.entries.iter().find(|entry| texts(&entry["message"]["content"]) == "second, otherwise");
    assert_eq!(next.expect("the prompt")["parentId"], id_of(&all, "one"));
    let left = std::fs::read_dir(file.path.parent().expect("a directory")).expect("a directory").count();
    assert_eq!(left, 1, "nothing lies beside the session");
}

#[test]
fn moving_is_refused_while_the_model_works() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("abcd").hold_after(0)]);
    scene.run("first");
    let all = entries(&mut scene);
    let call = json!({"type": "navigate_tree", "targetId": id_of(&all, "first")});
    scene.prompt("second");
    scene.server.wait_held(1);
    assert_eq!(scene.refusal(call.clone()), "Cannot navigate the session tree while a run or compaction is active");
    scene.command(json!({"type": "abort"}));
    assert_eq!(scene.refusal(json!({"type": "navigate_tree", "targetId": "nope"})), "Entry not found: nope");
    assert_eq!(scene.data(call)["text"], "first");
    assert!(scene.messages().is_empty());
    scene.finish();
}

#[test]
fn navigating_to_the_leaf_changes_nothing() {
    let mut scene = Scene::new([Turn::text("one")]);
    scene.run("first");
    let all = entries(&mut scene);
    let leaf = id_of(&all, "one");
    let stayed = scene.data(json!({"type": "navigate_tree", "targetId": leaf, "summarize": true}));
    assert_eq!(stayed, json!({"cancelled": false, "leafId": leaf}));
    assert_eq!(entries(&mut scene), all);
    scene.finish();
}

#[test]
fn the_branch_that_is_left_can_be_summarised() {
    let script = Script::of([
        Turn::text("one"),
        Turn::call("write", json!({"path": "w.txt", "content": "x"})),
        Turn::text(long("two", 100)),
        Turn::text("three"),
    ]);
    let mut scene = Scene::with(script.route(SUMMARY, [Turn::text("it was tried")]), |builder| builder);
    scene.run("first");
    scene.run("second");
    let all = entries(&mut scene);
    let old_leaf = all.last().expect("entries")["id"].clone();
    let call = json!({"type": "navigate_tree", "targetId": id_of(&all, "second"), "summarize": true,
        "customInstructions": "mind the gap", "label": "came back"});
    let moved = scene.data(call);
    assert_like(
        &moved,
        &json!({"cancelled": false, "text": "second", "summaryEntry": {"type": "branch_summary",
        "fromId": old_leaf, "parentId": id_of(&all, "one"), "usage": {"totalTokens": 120},
        "details": {"readFiles": [], "modifiedFiles": ["w.txt"]}}}),
    );
    let summary = moved["summaryEntry"]["summary"].as_str().expect("a text");
    assert!(
        summary.contains("it was tried") && summary.ends_with("<modified-files>\nw.txt\n</modified-files>"),
        "{summary}"
    );
    let asked = sent_texts(&scene.server.wait_request(3).body);
    assert!(
        asked.contains("[User]: second")
            && asked.contains("mind the gap")
            && !asked.contains("[Tool result]")
            && !asked.contains("first")
    );
    let roles: Vec<_> = scene.messages().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "branchSummary"]);
    scene.run("second, otherwise");
    assert!(sent_texts(&scene.server.wait_request(4).body).contains("it was tried"));
    assert!(scene.data(json!({"type": "get_tree"})).to_string().contains("came back"));
    scene.finish();
}

#[test]
fn a_branch_without_messages_needs_no_model() {
    let mut scene = Scene::new([Turn::text("one")]);
    scene.run("first");
    let answer = id_of(&entries(&mut scene), "one");
    scene.command(json!({"type": "set_label", "entryId": answer, "label": "here"}));
    let moved = scene.data(json!({"type": "navigate_tree", "targetId": answer, "summarize": true}));
    assert_like(
        &moved["summaryEntry"],
        &json!({"summary": "No content to summarize", "parentId": answer, "usage": "[ABSENT]"}),
    );
    assert_eq!(scene.server.requests().len(), 1);
    scene.finish();
}

#[test]
fn a_branch_summary_can_be_aborted_or_fail() {
    let summaries = [Turn::text("slow").hold_after(0), Turn::status(400)];
    let mut scene =
        Scene::with(Script::of([Turn::text("one"), Turn::text("two")]).route(SUMMARY, summaries), |builder| builder);
    scene.run("first");
    scene.run("second");
    let all = entries(&mut scene);
    let call = |id: &str| json!({"id": id, "type": "navigate_tree", "targetId": id_of(&all, "one"), "summarize": true});
    scene.send(call("n"));
    scene.server.wait_held(2);
    assert_like(&scene.state(), &json!({"isCompacting": true, "isStreaming": false}));
    scene.command(json!({"type": "abort"}));
    assert_eq!(scene.response("n")["data"], json!({"cancelled": true}));
    scene.send(call("m"));
    assert_eq!(scene.response("m")["success"], false);
    assert_eq!(entries(&mut scene), all, "nothing was written");
    assert_eq!(scene.messages().len(), 4, "and nothing moved");
    scene.finish();
}

#[test]
fn sessions_of_the_directory_are_listed() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two")]);
    assert_eq!(scene.data(json!({"type": "list_sessions"})), json!({"sessions": []}));
    scene.run("first");
    scene.command(json!({"type": "set_session_name", "name": "named"}));
    let first = scene.state();
    scene.command(json!({"type": "new_session"}));
    scene.run("second");
    let elsewhere = scene.home.agent().join("sessions/--other--/s.jsonl");
    let header = json!({"type": "session", "version": 3, "id": "other", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/other"});
    scene.home.write_file(elsewhere.to_str().expect("UTF-8"), format!("{header}\n"));
    let listed = scene.data(json!({"type": "list_sessions"}));
    let sessions = listed["sessions"].as_array().expect("a list");
    assert_eq!(
        sessions.iter().map(|session| session["firstMessage"].as_str()).collect::<Vec<_>>(),
        [Some("second"), Some("first")]
    );
    assert_like(
        &sessions[1],
        &json!({"path": first["sessionFile"], "id": first["sessionId"], "name": "named", "messageCount": 2,
            "cwd": scene.home.work().display().to_string()}),
    );
    assert!(sessions[1]["created"].is_i64() && sessions[1]["modified"].is_i64());
    let all = scene.data(json!({"type": "list_sessions", "all": true}));
    assert_eq!(all["sessions"].as_array().map(Vec::len), Some(3));
    scene.finish();
}
