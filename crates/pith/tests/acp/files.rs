//! Files through the editor: buffers that are newer than the disk.

use pith_testkit::{Block, Turn};
use serde_json::{Value, json};

use crate::support::Editor;

fn editor(capabilities: Value, turns: impl IntoIterator<Item = Turn>) -> Editor {
    Editor::with(turns, json!({ "fs": capabilities }), |builder| builder)
}

fn both() -> Value {
    json!({"readTextFile": true, "writeTextFile": true})
}

fn read(path: &str) -> Turn {
    Turn::call("read", json!({ "path": path }))
}

fn edit(path: &str, old: &str, new: &str) -> Turn {
    Turn::call("edit", json!({"path": path, "edits": [{"oldText": old, "newText": new}]}))
}

impl Editor {
    /// Waits for a request about a file of the work directory and answers it; returns its parameters.
    fn serve(&mut self, method: &str, path: &str, answer: Value) -> Value {
        let asked = self.host.wait(|frame| frame["method"] == method);
        assert_eq!(asked["params"]["path"], json!(self.home.work().join(path)));
        let (member, answer) = if answer.get("code").is_some() { ("error", answer) } else { ("result", answer) };
        self.host.send(json!({"jsonrpc": "2.0", "id": asked["id"], member: answer}));
        asked["params"].clone()
    }

    /// What the model was told about its last call.
    fn told(&self) -> String {
        self.server.requests().last().expect("a request").body["messages"].to_string()
    }

    fn n_asked(&self) -> usize {
        let asks = |frame: &&Value| frame["method"].as_str().is_some_and(|method| method.starts_with("fs/"));
        self.host.frames().iter().filter(asks).count()
    }
}

#[test]
fn read_sees_what_is_not_saved() {
    let turns = [read("a.txt"), Turn::text("one"), read("new.txt"), Turn::text("two")];
    let mut editor = editor(both(), turns);
    editor.home.write_file("a.txt", "on disk\n");
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "read");
    let params = editor.serve("fs/read_text_file", "a.txt", json!({"content": "in the buffer\n"}));
    assert_eq!((&params["sessionId"], params.get("line")), (&json!(session), None));
    editor.result(prompt);
    assert!(editor.told().contains("in the buffer") && !editor.told().contains("on disk"));
    // A file that was never saved is a file, too.
    let prompt = editor.send_prompt(&session, "read the new one");
    editor.serve("fs/read_text_file", "new.txt", json!({"content": "only here\n"}));
    editor.result(prompt);
    assert!(editor.told().contains("only here"));
    editor.finish();
}

#[test]
fn an_editor_that_does_not_tell_leaves_the_disk() {
    let answers = [
        json!({"code": -32603, "message": "no such buffer"}),
        json!({"content": 5}),
        json!(null),
        json!({"text": "x"}),
    ];
    for answer in answers {
        let mut editor = editor(both(), [read("a.txt"), Turn::text("one"), read("none.txt"), Turn::text("two")]);
        editor.home.write_file("a.txt", "on disk\n");
        let session = editor.new_session();
        let prompt = editor.send_prompt(&session, "read");
        editor.serve("fs/read_text_file", "a.txt", answer.clone());
        editor.result(prompt);
        assert!(editor.told().contains("on disk"), "{answer}");
        let prompt = editor.send_prompt(&session, "read");
        editor.serve("fs/read_text_file", "none.txt", answer.clone());
        editor.result(prompt);
        assert!(editor.told().contains("ENOENT"), "{answer}: {}", editor.told());
        editor.finish();
    }
}

#[test]
fn edits_change_the_buffer() {
    let mut editor = editor(both(), [edit("a.txt", "two", "2"), Turn::text("done")]);
    editor.home.write_file("a.txt", "one\n");
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "edit");
    editor.serve("fs/read_text_file", "a.txt", json!({"content": "one\ntwo\n"}));
    let params = editor.serve("fs/write_text_file", "a.txt", json!({}));
    assert_eq!(params["content"], "one\n2\n");
    editor.result(prompt);
    // The editor has not saved it, which the model must know.
    assert_eq!(editor.home.read_file("a.txt").as_deref(), Some("one\n"));
    assert!(editor.told().contains("has not saved it"), "{}", editor.told());
    editor.finish();
}

#[test]
fn two_sessions_that_edit_one_file_keep_each_others_changes() {
    let edits = json!([{"oldText": "two", "newText": "2"}]);
    let edit_and_read = Turn::blocks([
        Block::call("edit", json!({"path": "a.txt", "edits": edits})),
        Block::call("read", json!({"path": "b.txt"})),
    ]);
    let mut editor = editor(both(), [edit("a.txt", "one", "1"), edit_and_read, Turn::text("done"), Turn::text("done")]);
    editor.home.write_file("a.txt", "one\ntwo\n");
    editor.home.write_file("b.txt", "");
    let (first, second) = (editor.new_session(), editor.new_session());
    let one = editor.send_prompt(&first, "edit");
    let reading = editor.asked("fs/read_text_file");
    let two = editor.send_prompt(&second, "edit, too");
    // The call after it is done, so the second edit has begun, too; it must not see the file as it is now.
    editor.serve("fs/read_text_file", "b.txt", json!({"content": "of the second"}));
    editor.wait_update(|update| update["status"] == "completed" && update.to_string().contains("of the second"));
    assert_eq!(editor.n_asked(), 2, "{}", editor.host.describe());
    editor.reply(&reading, json!({"content": "one\ntwo\n"}));
    let params = editor.serve("fs/write_text_file", "a.txt", json!({}));
    assert_eq!(params["content"], "1\ntwo\n");
    let params = editor.serve("fs/read_text_file", "a.txt", json!({"content": "1\ntwo\n"}));
    assert_eq!(params["sessionId"], second.as_str());
    let params = editor.serve("fs/write_text_file", "a.txt", json!({}));
    assert_eq!(params["content"], "1\n2\n");
    editor.result(one);
    editor.result(two);
    editor.finish();
}

#[test]
fn a_file_that_was_never_saved_can_be_edited() {
    let turns = || [edit("new.txt", "two", "2"), Turn::text("done")];
    let mut editor_of_both = editor(both(), turns());
    let session = editor_of_both.new_session();
    let prompt = editor_of_both.send_prompt(&session, "edit");
    editor_of_both.serve("fs/read_text_file", "new.txt", json!({"content": "one\ntwo\n"}));
    let params = editor_of_both.serve("fs/write_text_file", "new.txt", json!({}));
    assert_eq!(params["content"], "one\n2\n");
    editor_of_both.result(prompt);
    assert!(editor_of_both.told().contains("has not saved it"), "{}", editor_of_both.told());
    editor_of_both.finish();
    // Who only tells its buffers has none that could be changed.
    let mut reader = editor(json!({"readTextFile": true}), turns());
    let session = reader.new_session();
    assert_eq!(reader.prompt(&session, "edit"), "end_turn");
    assert!(reader.told().contains("ENOENT"), "{}", reader.told());
    assert_eq!(reader.n_asked(), 0);
    reader.finish();
}

#[test]
fn a_saved_write_needs_no_remark() {
    let turns = [Turn::call("write", json!({"path": "deep/b.txt", "content": "text\n"})), Turn::text("done")];
    let mut editor = editor(both(), turns);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "write");
    let asked = editor.host.wait(|frame| frame["method"] == "fs/write_text_file");
    assert_eq!(asked["params"]["content"], "text\n");
    // Editors normalise; that is no difference.
    editor.home.write_file("deep/b.txt", "text\r\n");
    editor.host.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": null}));
    editor.result(prompt);
    assert!(editor.told().contains("Successfully wrote to deep/b.txt\""), "{}", editor.told());
    editor.finish();
}

#[test]
fn line_endings_of_the_disk_are_kept() {
    let mut editor = editor(both(), [edit("a.txt", "two", "2"), Turn::text("done")]);
    editor.home.write_file("a.txt", "\u{feff}one\r\ntwo\r\n");
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "edit");
    editor.serve("fs/read_text_file", "a.txt", json!({"content": "one\ntwo\n"}));
    let params = editor.serve("fs/write_text_file", "a.txt", json!({}));
    assert_eq!(params["content"], "\u{feff}one\r\n2\r\n");
    editor.result(prompt);
    editor.finish();
}

#[test]
fn a_write_that_fails_is_not_repeated_on_the_disk() {
    let mut editor = editor(both(), [edit("a.txt", "one", "1"), Turn::text("done")]);
    editor.home.write_file("a.txt", "one\n");
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "edit");
    editor.serve("fs/read_text_file", "a.txt", json!({"content": "one\n"}));
    editor.serve("fs/write_text_file", "a.txt", json!({"code": -32603, "message": "the buffer is read-only"}));
    editor.result(prompt);
    assert!(editor.told().contains("The editor did not write a.txt: the buffer is read-only"), "{}", editor.told());
    assert_eq!(editor.home.read_file("a.txt").as_deref(), Some("one\n"));
    editor.finish();
}

#[test]
fn unsaved_changes_that_cannot_be_kept_are_not_overwritten() {
    let mut editor = editor(json!({"readTextFile": true}), [edit("a.txt", "one", "1"), Turn::text("done")]);
    editor.home.write_file("a.txt", "one\n");
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "edit");
    editor.serve("fs/read_text_file", "a.txt", json!({"content": "one\nmore\n"}));
    editor.result(prompt);
    assert!(editor.told().contains("a.txt has unsaved changes in the editor"), "{}", editor.told());
    assert_eq!(editor.home.read_file("a.txt").as_deref(), Some("one\n"));
    editor.finish();
}

#[test]
fn the_editor_is_asked_only_about_text_of_its_project() {
    let outside = tempfile::tempdir().expect("a directory");
    let path = outside.path().join("a.txt");
    std::fs::write(&path, "far away\n").expect("written");
    let far = path.to_str().expect("UTF-8");
    let turns = [read(far), edit(far, "far", "near"), read("binary"), read("latin.txt"), Turn::text("done")];
    let mut editor = editor(both(), turns);
    editor.home.write_file("binary", [0u8, 1, 2, 3]);
    editor.home.write_file("latin.txt", b"caf\xe9\n");
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    assert_eq!(editor.n_asked(), 0);
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "near away\n");
    editor.finish();
}

#[test]
fn a_setting_keeps_the_editor_out() {
    let mut editor = editor(both(), [read("a.txt"), Turn::text("done")]);
    editor.home.write_file("a.txt", "on disk\n");
    editor.home.write_settings(&json!({"acp": {"clientFs": false}}));
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    assert!(editor.told().contains("on disk") && editor.n_asked() == 0);
    editor.finish();
}

#[test]
fn a_cancel_withdraws_what_the_editor_does_not_answer() {
    for (turn, method) in [
        (read("a.txt"), "fs/read_text_file"),
        (Turn::call("write", json!({"path": "a.txt", "content": "x"})), "fs/write_text_file"),
    ] {
        let mut editor = editor(both(), [turn]);
        editor.home.write_file("a.txt", "one\n");
        let session = editor.new_session();
        let prompt = editor.send_prompt(&session, "go");
        let asked = editor.host.wait(|frame| frame["method"] == method);
        editor.notify("session/cancel", json!({"sessionId": session}));
        editor.host.wait(|frame| frame["method"] == "$/cancel_request" && frame["params"]["requestId"] == asked["id"]);
        assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
        assert_eq!(editor.home.read_file("a.txt").as_deref(), Some("one\n"));
        editor.finish();
    }
}

#[test]
fn of_a_large_file_only_the_shown_lines_are_asked_for() {
    let numbered: String = (1..=200_000).map(|number| format!("line {number} on the disk\n")).collect();
    assert!(numbered.len() > 2 << 20 && numbered.len() < 10 << 20);
    // Editors end such a text with a newline or not, and cut lines off or tell them in other endings.
    for content in
        ["line 1000 in the buffer\r\nline 1001 on the disk", "line 1000 in the buffer\nline 1001 on the disk\n"]
    {
        let turn = || Turn::call("read", json!({"path": "large.txt", "offset": 1000, "limit": 2}));
        let mut editor = editor(both(), [turn(), Turn::text("one"), turn(), Turn::text("two")]);
        editor.home.write_file("large.txt", &numbered);
        let session = editor.new_session();
        let prompt = editor.send_prompt(&session, "read");
        let params = editor.serve("fs/read_text_file", "large.txt", json!({ "content": content }));
        assert_eq!((&params["line"], &params["limit"]), (&json!(1000), &json!(2)));
        editor.result(prompt);
        let told = editor.told();
        assert!(told.contains("line 1000 in the buffer") && told.contains("line 1001 on the disk"), "{told}");
        assert!(!told.contains("line 1000 on the disk") && !told.contains("line 1002"), "{told}");
        // What is the same in other line endings is read from the disk.
        let prompt = editor.send_prompt(&session, "read again");
        let same = "line 1000 on the disk\r\nline 1001 on the disk\r\n";
        editor.serve("fs/read_text_file", "large.txt", json!({ "content": same }));
        editor.result(prompt);
        assert!(editor.told().contains("line 1000 on the disk"));
        editor.finish();
    }
}

#[test]
fn huge_files_are_read_from_the_disk() {
    let mut editor = editor(both(), [read("huge.txt"), Turn::text("one")]);
    editor.home.write_file("huge.txt", "a line of it\n".repeat(900_000));
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "read"), "end_turn");
    assert!(editor.told().contains("a line of it") && editor.n_asked() == 0);
    editor.finish();
}
