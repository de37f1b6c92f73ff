//! Opening, listing, copying, closing and deleting sessions; several of them at once.

use pith_testkit::{ModelServer, Script, Turn, eventually, process};
use serde_json::{Value, json};

use crate::support::{Editor, text_of};

#[test]
fn initialize_says_what_there_is() {
    let mut editor = Editor::new([]);
    let greeting = editor.ask("initialize", json!({"protocolVersion": 99}));
    assert_eq!(greeting["protocolVersion"], 1);
    assert_eq!(greeting["agentInfo"]["name"], "pith");
    assert_eq!(greeting["agentCapabilities"]["loadSession"], true);
    assert_eq!(greeting["agentCapabilities"]["promptCapabilities"]["image"], true);
    for capability in ["list", "resume", "close", "delete", "fork", "title", "status"] {
        assert!(
            greeting["agentCapabilities"]["sessionCapabilities"][capability].is_object(),
            "{capability}: {greeting}"
        );
    }
    // A second introduction is answered and changes nothing.
    let switches = json!({"session": {"configOptions": {"boolean": {}}}});
    let again = editor.ask("initialize", json!({"protocolVersion": 1, "clientCapabilities": switches}));
    assert_eq!(again, greeting);
    let cwd = editor.home.work();
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": []}));
    assert!(!opened["configOptions"].to_string().contains("auto_compact"), "{opened}");
    editor.finish();
}

#[test]
fn two_sessions_work_at_once_in_two_directories() {
    let turns = [Turn::text("aaaa").chunk(1).hold_after(1), Turn::text("bbbb").chunk(1).hold_after(1)];
    let mut editor = Editor::new(turns);
    editor.home.write_file("other/AGENTS.md", "You are in the other directory.");
    let other = editor.home.work().join("other");
    let first = editor.new_session();
    let second = editor.ask("session/new", json!({"cwd": other, "mcpServers": []}));
    let second = second["sessionId"].as_str().expect("an id").to_owned();
    let one = editor.send_prompt(&first, "one");
    editor.wait_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    let two = editor.send_prompt(&second, "two");
    editor.wait_update(|update| update["content"]["text"] == "b");
    editor.server.release(0);
    editor.server.release(1);
    assert_eq!(editor.result(one)["stopReason"], "end_turn");
    assert_eq!(editor.result(two)["stopReason"], "end_turn");
    assert_eq!(text_of(&editor.updates(&first), "agent_message_chunk"), "aaaa");
    assert_eq!(text_of(&editor.updates(&second), "agent_message_chunk"), "bbbb");
    let requests = editor.server.requests();
    assert!(!requests[0].body.to_string().contains("the other directory"));
    assert!(requests[1].body.to_string().contains("the other directory"));
    editor.finish();
}

#[test]
fn sessions_are_listed_named_copied_and_deleted() {
    let mut editor = Editor::new([Turn::text("one"), Turn::text("two")]);
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "remember me"), "end_turn");
    let cwd = editor.home.work();
    let listed = editor.ask("session/list", json!({"cwd": cwd}));
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str(), "{listed}");
    assert_eq!(listed["sessions"][0]["title"], "remember me");
    assert_eq!(listed["sessions"][0]["cwd"], json!(cwd));
    assert_eq!(listed["sessions"][0]["_meta"]["pith"], json!({"messageCount": 2}));
    assert!(listed["sessions"][0]["updatedAt"].as_str().is_some_and(|time| time.ends_with('Z')), "{listed}");
    assert_eq!(editor.ask("session/status", json!({"sessionId": session})), json!({"status": "open"}));
    let named = editor.ask("session/set_title", json!({"sessionId": session, "title": " Memory "}));
    assert_eq!(named["title"], "Memory");
    let copy = editor.ask("session/fork", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
    let copy = copy["sessionId"].as_str().expect("an id").to_owned();
    assert_ne!(copy, session);
    assert_eq!(editor.prompt(&copy, "and me"), "end_turn");
    assert!(editor.server.requests().last().expect("a request").body.to_string().contains("remember me"));
    let listed = editor.ask("session/list", json!({"cwd": cwd}));
    let of_copy = listed["sessions"].as_array().expect("a list").iter().find(|info| info["sessionId"] == copy.as_str());
    assert_eq!(of_copy.expect("it is listed")["_meta"]["pith"]["parentSessionId"], session.as_str());
    editor.ask("session/close", json!({"sessionId": session}));
    assert_eq!(editor.ask("session/status", json!({"sessionId": session})), json!({"status": "saved"}));
    let renamed = editor.ask("session/set_title", json!({"sessionId": session, "title": "Old memory"}));
    assert_eq!(renamed["title"], "Old memory");
    let titles: Vec<Value> = editor.ask("session/list", json!({}))["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|session| session["title"].clone())
        .collect();
    assert!(titles.contains(&json!("Old memory")) && titles.len() == 2, "{titles:?}");
    for id in [&session, &copy, &session] {
        editor.ask("session/delete", json!({"sessionId": id}));
    }
    assert_eq!(editor.ask("session/list", json!({}))["sessions"], json!([]));
    assert_eq!(editor.home.sessions().len(), 0);
    let gone = editor.refusal("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
    assert_eq!(gone, (-32002, format!("Session not found: {session}")));
    editor.finish();
}

#[test]
fn a_long_list_comes_in_pages() {
    let mut editor = Editor::new([]);
    let directory = editor.home.agent().join("sessions/--x--");
    std::fs::create_dir_all(&directory).expect("a directory");
    let cwd = editor.home.work();
    for n in 0..60 {
        let header = json!({"type": "session", "version": 3, "id": format!("s{n:02}"),
            "timestamp": format!("2026-11-15T06:{n:02}:00.000Z"), "cwd": cwd});
        let message = json!({"type": "message", "id": "a", "parentId": null,
            "timestamp": format!("2026-11-15T06:{n:02}:01.000Z"),
            "message": {"role": "user", "content": format!("prompt {n}"), "timestamp": 1_763_000_000_000_i64 + n}});
        let path = directory.join(format!("2026_s{n:02}.jsonl"));
        std::fs::write(path, format!("{header}\n{message}\n")).expect("a file");
    }
    let first = editor.ask("session/list", json!({}));
    assert_eq!(first["sessions"].as_array().map(Vec::len), Some(50));
    assert_eq!(first["sessions"][0]["sessionId"], "s59");
    let second = editor.ask("session/list", json!({"cursor": first["nextCursor"]}));
    assert_eq!(second["sessions"].as_array().map(Vec::len), Some(10));
    assert_eq!(second["sessions"][9]["sessionId"], "s00");
    assert!(second.get("nextCursor").is_none_or(Value::is_null));
    assert_eq!(editor.refusal("session/list", json!({"cursor": "?"})).0, -32602);
    editor.finish();
}

#[test]
fn a_resumed_session_goes_on_without_being_shown_again() {
    let mut editor = Editor::new([Turn::text("one"), Turn::text("two")]);
    let session = editor.new_session();
    editor.prompt(&session, "remember me");
    editor.ask("session/close", json!({"sessionId": session}));
    let before = editor.updates(&session).len();
    let cwd = editor.home.work();
    editor.ask("session/resume", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
    assert_eq!(text_of(&editor.updates(&session)[before..], "user_message_chunk"), "");
    assert_eq!(editor.prompt(&session, "what did I say?"), "end_turn");
    assert!(editor.server.requests().last().expect("a request").body.to_string().contains("remember me"));
    editor.finish();
}

#[test]
fn a_session_that_another_program_wrote_is_loaded() {
    let mut editor = Editor::new([]);
    let cwd = editor.home.work();
    let lines = [
        json!({"type": "session", "version": 3, "id": "01a1ddfa-f8d7-76a9-a3c8-c75ac8adcc1e", "timestamp": "2026-11-15T06:52:54.872Z", "cwd": cwd}),
        json!({"type": "message", "id": "a1", "parentId": null, "timestamp": "2026-11-15T06:52:55.000Z", "message": {"role": "user", "content": "one", "timestamp": 1}}),
        json!({"type": "message", "id": "b2", "parentId": "a1", "timestamp": "2026-11-15T06:52:56.000Z", "message": {"role": "assistant", "content": [{"type": "text", "text": "two"}, {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "sleep 9"}}], "api": "x", "provider": "x", "model": "x", "usage": {}, "stopReason": "aborted", "timestamp": 2}}),
        json!({"type": "message", "id": "c3", "parentId": "b2", "timestamp": "2026-11-15T06:52:57.000Z", "message": {"role": "bashExecution", "command": "ls", "output": "a.txt\n", "exitCode": 0, "cancelled": false, "truncated": false, "timestamp": 3}}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    editor.home.write_agent_file("sessions/--x--/2026_01a1ddfa-f8d7-76a9-a3c8-c75ac8adcc1e.jsonl", text);
    let id = "01a1ddfa-f8d7-76a9-a3c8-c75ac8adcc1e";
    editor.ask("session/load", json!({"sessionId": id, "cwd": cwd, "mcpServers": []}));
    let updates = editor.updates(id);
    assert_eq!((updates[0]["messageId"].as_str(), updates[0]["content"]["text"].as_str()), (Some("a1"), Some("one")));
    assert_eq!(text_of(&updates, "agent_message_chunk"), "two");
    let calls: Vec<_> = updates.iter().filter(|update| update["sessionUpdate"] == "tool_call").collect();
    assert_eq!((calls[0]["status"].as_str(), calls[1]["status"].as_str()), (Some("failed"), Some("completed")));
    assert_eq!(calls[1]["title"], "ls");
    // A session belongs to its directory.
    let other = editor.home.work().join("sub");
    std::fs::create_dir_all(&other).expect("a directory");
    editor.ask("session/close", json!({"sessionId": id}));
    let (code, message) = editor.refusal("session/load", json!({"sessionId": id, "cwd": other, "mcpServers": []}));
    assert!(code == -32602 && message.contains(&*other.display().to_string()), "{code} {message}");
    editor.finish();
}

#[test]
fn an_opening_that_is_withdrawn_is_given_up() {
    let mut editor = Editor::new([Turn::text("hello")]);
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "hi"), "end_turn");
    editor.ask("session/close", json!({"sessionId": session}));
    let hangs = "export default (pi) => pi.on('session_start', () => new Promise(() => {}));";
    editor.home.write_agent_file("extensions/hangs.ts", hangs);
    let cwd = editor.home.work();
    for method in ["session/new", "session/load", "session/resume", "session/fork"] {
        let id = editor.send(method, json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
        editor.notify("$/cancel_request", json!({"requestId": id}));
        assert_eq!(editor.answer(id)["error"]["code"], -32800, "{method}");
        assert_eq!(editor.ask("session/status", json!({"sessionId": session}))["status"], "saved", "{method}");
    }
    // Nothing holds the session.
    std::fs::remove_file(editor.home.agent().join("extensions/hangs.ts")).expect("it can be removed");
    editor.ask("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
    editor.finish();
}

#[test]
fn nothing_is_left_of_closed_sessions() {
    const N_SESSIONS: usize = 200;
    let mut editor = Editor::with([], json!({}), |builder| builder.env("PITH_DUMPABLE", "1"));
    let pid = editor.host.pid();
    let count = |what: &str| std::fs::read_dir(format!("/proc/{pid}/{what}")).map_or(0, Iterator::count);
    // Several at once, so that everything that is shared has been made.
    let warm: Vec<String> = (0..10).map(|_| editor.new_session()).collect();
    for session in warm {
        editor.ask("session/close", json!({"sessionId": session}));
    }
    let (descriptors, threads, memory) = (count("fd"), count("task"), editor.host.memory());
    for _ in 0..N_SESSIONS {
        let session = editor.new_session();
        editor.ask("session/close", json!({"sessionId": session}));
        assert_eq!(editor.refusal("session/close", json!({"sessionId": session})).0, -32002);
    }
    eventually("descriptors are closed", || count("fd") <= descriptors);
    eventually("threads have ended", || count("task") <= threads);
    // An open session takes hundreds of kilobytes; what stays of a closed one is what the allocator keeps, and more of
    // it where many threads were at work.
    let grown = editor.host.memory().saturating_sub(memory);
    assert!(grown < (N_SESSIONS as u64) * 100 * 1024, "{grown} bytes are left of {N_SESSIONS} sessions");
    let left = process::with_marker(editor.host.marker());
    assert!(left.iter().all(|process| process.pid == pid), "{left:?}");
    editor.finish();
}

/// Writes a session that has many long answers.
fn write_long_session(editor: &Editor, id: &str, n_answers: usize) {
    let cwd = editor.home.work();
    let mut text =
        json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-11-15T06:52:54.872Z", "cwd": cwd})
            .to_string();
    let mut parent = Value::Null;
    for n in 0..n_answers {
        let name = json!(format!("{n:08x}"));
        let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "words ".repeat(5000)}], "api": "x",
            "provider": "x", "model": "x", "usage": {}, "stopReason": "stop", "timestamp": 2});
        let line = json!({"type": "message", "id": name, "parentId": parent, "timestamp": "2026-11-15T06:52:56.000Z", "message": answer});
        text.push_str(&format!("\n{line}"));
        parent = name;
    }
    editor.home.write_agent_file(&format!("sessions/--x--/2026_{id}.jsonl"), text + "\n");
}

#[test]
fn a_replay_waits_for_its_reader_and_can_be_cancelled() {
    const N_ANSWERS: usize = 600;
    let mut editor = Editor::new([]);
    let id = "01a1ddfa-f8d7-76a9-a3c8-c75ac8adcc1e";
    // More than is kept for an editor that does not read.
    write_long_session(&editor, id, N_ANSWERS);
    let load = json!({"sessionId": id, "cwd": editor.home.work(), "mcpServers": []});
    editor.host.stop_reading();
    let withdrawn = editor.send("session/load", load.clone());
    editor.notify("$/cancel_request", json!({"requestId": withdrawn}));
    editor.host.resume_reading();
    assert_eq!(editor.answer(withdrawn)["error"]["code"], -32800);
    let n_told = editor.updates(id).len();
    assert!(n_told < N_ANSWERS, "{n_told}");
    assert_eq!(editor.ask("session/status", json!({"sessionId": id}))["status"], "saved");
    editor.ask("session/load", load);
    let all = &editor.updates(id)[n_told..];
    assert_eq!(all.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk").count(), N_ANSWERS);
    editor.finish();
}

#[test]
fn a_long_session_is_shown_without_being_kept() {
    const N_ANSWERS: usize = 1500;
    let mut editor = Editor::new([]);
    let id = "01a1ddfa-f8d7-76a9-a3c8-c75ac8adcc1e";
    write_long_session(&editor, id, N_ANSWERS);
    let file = editor.home.agent().join(format!("sessions/--x--/2026_{id}.jsonl"));
    let size = file.metadata().expect("it was written").len();
    editor.new_session();
    let before = editor.host.peak_memory();
    editor.ask("session/load", json!({"sessionId": id, "cwd": editor.home.work(), "mcpServers": []}));
    let updates = editor.updates(id);
    assert_eq!(updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk").count(), N_ANSWERS);
    // What waits for a slow reader is limited to a part of this file.
    let grown = editor.host.peak_memory() - before;
    assert!(grown < size, "{grown} bytes for a file of {size}");
    editor.finish();
}

#[test]
fn what_cannot_be_opened_is_refused_with_the_reason() {
    let mut editor = Editor::new([]);
    let (cwd, known) = (editor.home.work(), "01a1ddfa-f8d7-76a9-a3c8-c75ac8adcc1e");
    write_long_session(&editor, known, 1);
    editor.home.write_file("file.txt", "x");
    let mut check = |method: &str, params: Value, code: i64, why: &str| {
        let (found, message) = editor.refusal(method, params.clone());
        assert!(found == code && message.contains(why), "{method} {params}: {found} {message}");
    };
    let new = |cwd: Value| json!({"cwd": cwd, "mcpServers": []});
    check("session/new", new(json!("sub")), -32602, "cwd must be an absolute path: sub");
    check("session/new", new(json!(cwd.join("nowhere"))), -32602, "nowhere");
    check("session/new", new(json!(cwd.join("file.txt"))), -32602, "cwd is not a directory: ");
    let more = json!({"cwd": cwd, "mcpServers": [], "additionalDirectories": [cwd, "sub"]});
    check("session/new", more, -32602, "additionalDirectories[1] must be an absolute path: sub");
    let picture = json!({"mode": "append", "content": [{"type": "image", "mimeType": "image/png", "data": ""}]});
    let drawn = json!({"cwd": cwd, "mcpServers": [], "systemPrompt": picture});
    check("session/new", drawn, -32602, "The system prompt can only have text");
    let own = |own: Value| json!({"cwd": cwd, "mcpServers": [], "_meta": {"pith": own}});
    check("session/new", own(json!({"thinkingLevel": "deep"})), -32602, "Unknown thinking level: deep");
    check("session/new", own(json!({"tools": "read"})), -32602, "_meta.pith.tools must be a list of names");
    check("session/set_title", json!({"sessionId": known, "title": " \n"}), -32602, "The title is empty");
    check("session/status", json!({"sessionId": "../x"}), -32002, "Session not found: ../x");
    check("session/fork", json!({"sessionId": "nobody", "cwd": cwd, "mcpServers": []}), -32002, "Session not found");
    // Of a later version.
    let header =
        json!({"type": "session", "version": 99, "id": "s99", "timestamp": "2026-11-15T06:52:54.872Z", "cwd": cwd});
    let path = "sessions/--x--/2026_s99.jsonl";
    editor.home.write_agent_file(path, format!("{header}\n"));
    let (code, message) = editor.refusal("session/load", json!({"sessionId": "s99", "cwd": cwd, "mcpServers": []}));
    assert!(code == -32603 && message.contains("format version 99"), "{code} {message}");
    // An open session belongs to its directory, too.
    editor.ask("session/load", json!({"sessionId": known, "cwd": cwd, "mcpServers": []}));
    std::fs::create_dir_all(cwd.join("sub")).expect("a directory");
    for method in ["session/load", "session/resume"] {
        let elsewhere = json!({"sessionId": known, "cwd": cwd.join("sub"), "mcpServers": []});
        let (code, message) = editor.refusal(method, elsewhere);
        let expected = format!("The session belongs to {}, not to {}", cwd.display(), cwd.join("sub").display());
        assert_eq!((code, message), (-32602, expected));
    }
    editor.finish();
}

#[test]
fn a_session_that_another_process_works_in_is_not_opened() {
    let mut first = Editor::new([Turn::text("one two").chunk(3).hold_after(1)]);
    let session = first.new_session();
    first.send_prompt(&session, "go");
    first.wait_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    let mut second = Editor::start(ModelServer::start(Script::new()), first.home.clone(), |builder| builder);
    second.ask("initialize", json!({"protocolVersion": 1}));
    let load = json!({"sessionId": session, "cwd": first.home.work(), "mcpServers": []});
    let expected = format!("Session is in use by process {}", first.host.pid());
    assert_eq!(second.refusal("session/load", load.clone()), (-32603, expected));
    first.notify("session/cancel", json!({"sessionId": session}));
    first.ask("session/close", json!({"sessionId": session}));
    second.ask("session/load", load);
    second.finish();
    first.finish();
}
