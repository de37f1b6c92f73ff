//! What happens to a session when things go wrong: kill -9 at any moment, two processes, damaged files, full disks.
//!
//! `PITH_KILLS=200 cargo test -p pith --test rpc kill -- --nocapture` is the long form.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::Duration;

use pith_testkit::{Api, Host, Script, SessionFile, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, of_type, texts};

/// A repeatable random number generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn busy_script() -> Script {
    let call = |n: usize| Turn::call("bash", json!({"command": format!("echo {n}")})).chunk(8);
    let write =
        |n: usize| Turn::call("write", json!({"path": format!("f{n}.txt"), "content": "x".repeat(500)})).chunk(64);
    Script::of([
        call(1),
        write(1),
        call(2),
        Turn::text("some words to say").chunk(3),
        write(2),
        call(3),
        Turn::text("the end").chunk(2),
    ])
    .after(pith_testkit::server::After::Loop)
}

/// The messages that the host was told have ended, in order.
fn ended(frames: &[Value]) -> Vec<Value> {
    of_type(frames, "message_end").into_iter().map(|frame| frame["message"].clone()).collect()
}

#[test]
fn a_start_removes_what_killed_processes_have_left() {
    let mut scene = Scene::new([Turn::text("done")]);
    scene.run("go");
    let file = scene.state()["sessionFile"].as_str().expect("a file").to_owned();
    let sessions = Path::new(&file).parent().expect("a directory").to_owned();
    let work = scene.home.work();
    // No process has the first number: it is above the largest there can be.
    let leave = |process: u32| {
        let name = |marker: &str| format!("{marker}{process:08x}{:024x}", 7);
        let left = [
            sessions.join(name("x.jsonl.tmp-")),
            sessions.join(name("x.jsonl.leaf.tmp-")),
            work.join(name(".pith-export-")),
        ];
        left.iter().for_each(|path| std::fs::write(path, "half a file").expect("written"));
        left
    };
    let of_living = leave(std::process::id());
    for flags in [&[][..], &["--continue"], &["--session", &file], &["--session-id", "new"]] {
        let left = leave(u32::MAX);
        let mut host = scene.again(flags);
        host.data(json!({"type": "get_state"}));
        host.finish();
        assert_eq!(left.map(|path| path.exists()), [false; 3], "{flags:?}");
    }
    assert_eq!(of_living.map(|path| path.exists()), [true; 3]);
    scene.finish();
}

#[test]
fn a_kill_at_any_moment_loses_no_message_that_has_ended() {
    let n_kills = std::env::var("PITH_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let mut dice = Dice(n_kills);
    for round in 0..n_kills {
        let mut scene = Scene::with(busy_script(), |builder| builder);
        scene.prompt("work");
        scene.send(json!({"type": "follow_up", "message": "and more"}));
        // After a number of frames, and a little later: every place in the code is hit some time.
        let (n_frames, n_seen) = (dice.roll(60), Cell::new(0));
        scene.wait(|frame| {
            n_seen.set(n_seen.get() + 1);
            n_seen.get() > n_frames || frame["type"] == "agent_settled"
        });
        std::thread::sleep(Duration::from_micros(dice.roll(3000)));
        scene.kill();
        let told = ended(&scene.frames());
        let mut again = scene.again(&["--continue"]);
        let kept = again.data(json!({"type": "get_messages"}))["messages"].as_array().expect("a list").clone();
        assert!(kept.len() >= told.len(), "round {round}: {} of {} messages", kept.len(), told.len());
        assert_eq!(kept[..told.len()], told, "round {round}");
        let state = again.data(json!({"type": "get_state"}));
        assert_eq!(state.get("sessionWriteError"), None);
        // The session can be continued.
        if round % 5 == 0 {
            again.data(json!({"type": "prompt", "message": "go on"}));
            again.wait_type("agent_settled");
            let now = again.data(json!({"type": "get_messages"}))["messages"].as_array().expect("a list").clone();
            assert!(now.len() > kept.len() && now[..kept.len()] == kept, "round {round}");
        }
        again.finish();
    }
}

#[test]
fn a_session_that_runs_has_one_user() {
    let mut scene = Scene::new([Turn::text("one"), Turn::silent()]);
    scene.run("first");
    let path = scene.state()["sessionFile"].as_str().expect("a path").to_owned();
    let mut other = scene.again(&["--session", &path]);
    other.data(json!({"type": "get_state"}));
    scene.prompt("second");
    scene.server.wait_request(1);
    let pid = scene.pid();
    let text = format!("Session is in use by another process (pid {pid}): {path}");
    let mut second = scene.again(&["--session", &path]);
    assert_eq!(second.finish().1, 1);
    assert_eq!(second.stderr(), format!("Error: {text}\n"));
    let mut third = scene.again(&[]);
    assert_eq!(third.ask(json!({"type": "switch_session", "sessionPath": path}))["error"], text);
    // A process that has it open already may not run on it either.
    assert_eq!(other.ask(json!({"type": "prompt", "message": "mine"}))["error"], text);
    assert_eq!(other.ask(json!({"type": "compact"}))["error"], text);
    assert_eq!(other.data(json!({"type": "get_state"}))["isStreaming"], false);
    // A copy is always possible.
    let mut copy = scene.again(&["--fork", &path]);
    assert_eq!(copy.data(json!({"type": "get_state"}))["messageCount"], 3);
    copy.finish();
    scene.kill();
    assert_eq!(third.data(json!({"type": "switch_session", "sessionPath": path})), json!({"cancelled": false}));
    third.finish();
    scene.server.push(Turn::text("three"));
    other.data(json!({"type": "prompt", "message": "mine"}));
    other.wait_type("agent_settled");
    other.finish();
}

#[test]
fn a_session_is_handed_from_one_process_to_the_next() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two"), Turn::text("three"), Turn::text("four")]);
    scene.run("first");
    let path = scene.state()["sessionFile"].as_str().expect("a path").to_owned();
    // This is how a host reloads: the new process opens the session, and only then the old one ends.
    let mut next = scene.again(&[]);
    assert_eq!(next.data(json!({"type": "switch_session", "sessionPath": path})), json!({"cancelled": false}));
    next.data(json!({"type": "prompt", "message": "second"}));
    next.wait_type("agent_settled");
    // If the old one goes on instead, its turn is a branch, and so on.
    scene.run("third");
    next.data(json!({"type": "prompt", "message": "fourth"}));
    next.wait_type("agent_settled");
    let said = |messages: &Value| -> Vec<String> {
        messages["messages"].as_array().expect("a list").iter().map(|message| texts(&message["content"])).collect()
    };
    assert_eq!(said(&scene.data(json!({"type": "get_messages"}))), ["first", "one", "third", "three"]);
    let messages = next.data(json!({"type": "get_messages"}));
    assert_eq!(said(&messages), ["first", "one", "second", "two", "fourth", "four"]);
    assert_eq!(scene.host.finish().1, 0);
    let (frames, code) = next.finish();
    assert_eq!((of_type(&frames, "extension_error").len(), code), (0, 0));
    let file = scene.home.sessions().remove(0);
    assert_eq!(file.messages().len(), 8);
    let mut again = scene.again(&["--continue"]);
    assert_eq!(again.data(json!({"type": "get_messages"})), messages, "the last entry is where it goes on");
    again.finish();
}

#[test]
fn a_writer_that_does_not_lock_hides_nothing() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two")]);
    scene.run("first");
    let file = scene.home.sessions().remove(0);
    let leaf = file.entries.last().expect("entries")["id"].clone();
    let foreign = json!({"type": "message", "id": "f0f0f0f0", "parentId": leaf, "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": [{"type": "text", "text": "from elsewhere"}], "timestamp": 1}});
    let text = fs::read_to_string(&file.path).expect("the file") + &foreign.to_string() + "\n";
    fs::write(&file.path, text).expect("the file");
    scene.run("second");
    let after = SessionFile::read(&file.path);
    assert_eq!(after.messages().len(), 5);
    let second =
        after.entries.iter().find(|entry| texts(&entry["message"]["content"]) == "second").expect("the prompt");
    assert_eq!(second["parentId"], leaf, "both turns hang below the same entry");
    assert!(scene.data(json!({"type": "get_tree"})).to_string().contains("from elsewhere"));
    assert_eq!(scene.messages().len(), 4);
    scene.finish();
}

#[test]
fn damage_is_repaired_and_reported_once() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two"), Turn::text("three")]);
    scene.run("first");
    scene.run("second");
    scene.host.finish();
    let file = scene.home.sessions().remove(0);
    let text = fs::read_to_string(&file.path).expect("the file");
    let mut lines: Vec<&str> = text.lines().collect();
    lines[4] = "{\"broken";
    fs::write(&file.path, lines.join("\n") + "\n{\"type\":\"mess").expect("the file");
    let mut host = scene.again(&["--continue"]);
    let told = host.wait_type("extension_error");
    assert_like(&told, &json!({"extensionPath": "<session>", "event": "session_repair"}));
    let all = host.data(json!({"type": "get_messages"}));
    let said: Vec<_> =
        all["messages"].as_array().expect("a list").iter().map(|message| texts(&message["content"])).collect();
    assert_eq!(said, ["first", "second", "two"]);
    host.data(json!({"type": "prompt", "message": "third"}));
    host.wait_type("agent_settled");
    let (frames, _) = host.finish();
    assert_eq!(of_type(&frames, "extension_error").len(), 1);
    // The cut-off line is in a file beside the session, and no line is joined with another.
    let after = SessionFile::read(&file.path);
    assert_eq!(after.entries.iter().filter(|entry| entry.is_string()).count(), 1);
    let torn = fs::read_dir(file.path.parent().expect("a directory")).expect("a directory").flatten();
    assert!(torn.into_iter().any(|entry| entry.file_name().to_string_lossy().contains(".torn-")));
}

#[test]
fn an_unreadable_message_is_reported_when_it_is_read() {
    let mut scene = Scene::new([Turn::text("fine")]);
    let stamp = "2026-01-01T00:00:00.000Z";
    let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": stamp, "cwd": scene.home.work()});
    let entry = |id: &str, parent: Option<&str>, extra: &str| {
        let parent = json!(parent);
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"{stamp}","message":{{"role":"user","content":[{{"type":"text","text":"{id}"}}]{extra}}}}}"#
        )
    };
    // JSON, but with a number that no program can represent.
    let lines =
        [header.to_string(), entry("a", None, ""), entry("b", Some("a"), r#","x":1e999"#), entry("c", Some("b"), "")];
    scene.home.write_file("s.jsonl", lines.map(|line| line + "\n").concat());
    scene.data(json!({"type": "switch_session", "sessionPath": "s.jsonl"}));
    let said: Vec<_> = scene.messages().iter().map(|message| texts(&message["content"])).collect();
    assert_eq!(said, ["a", "c"]);
    let told = scene.host.wait_type("extension_error");
    assert_like(&told, &json!({"extensionPath": "<session>", "event": "session_repair"}));
    assert_eq!(scene.data(json!({"type": "get_state"}))["messageCount"], 2);
    scene.run("go on");
    let (frames, _) = scene.host.finish();
    assert_eq!(of_type(&frames, "extension_error").len(), 1);
}

#[test]
fn a_parent_cycle_does_not_hang() {
    let mut scene = Scene::new([Turn::text("fine")]);
    let entry = |id: &str, parent: &str| {
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {"role": "user", "content": id, "timestamp": 1}})
    };
    let header = json!({"type": "session", "version": 3, "id": "cycle", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": scene.home.work()});
    scene.home.write_file(
        "s.jsonl",
        [header, entry("aaaa", "bbbb"), entry("bbbb", "aaaa")].map(|line| line.to_string() + "\n").concat(),
    );
    scene.command(json!({"type": "switch_session", "sessionPath": "s.jsonl"}));
    assert_eq!(scene.state()["messageCount"], 2);
    scene.data(json!({"type": "get_tree"}));
    scene.run("go");
    scene.finish();
}

#[test]
fn a_directory_that_cannot_be_written_stops_nothing() {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two")]);
    // A file where the directory should be: refused even to root.
    let blocked = scene.home.tmp().join("blocked");
    fs::write(&blocked, "in the way").expect("a file");
    let mut host = scene.again(&["--session-dir", blocked.join("sessions").to_str().expect("UTF-8")]);
    host.data(json!({"type": "prompt", "message": "first"}));
    let told = host.wait_type("extension_error");
    assert_eq!(told["event"], "session_write");
    assert!(told["error"].as_str().is_some_and(|text| text.contains("blocked")), "{told}");
    host.wait_type("agent_settled");
    let state = host.data(json!({"type": "get_state"}));
    assert!(state["sessionWriteError"].is_string());
    assert_eq!(state["messageCount"], 2);
    // When the directory can be created, everything is written.
    fs::remove_file(&blocked).expect("ours");
    host.data(json!({"type": "prompt", "message": "second"}));
    host.wait_type("agent_settled");
    let state = host.data(json!({"type": "get_state"}));
    assert_eq!(state.get("sessionWriteError"), None);
    let (frames, _) = host.finish();
    assert_eq!(of_type(&frames, "extension_error").len(), 1);
    let file = SessionFile::read(state["sessionFile"].as_str().expect("a path").as_ref());
    assert_eq!(file.messages().len(), 4);
    scene.run("x");
    scene.finish();
}

/// Starts pith from a shell script that limits it first.
fn behind_shell(scene: &Scene, script: &str) -> Host {
    let agent = scene.home.agent().display().to_string();
    Host::builder("/bin/sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_pith")])
        .rpc(Api::Anthropic)
        .home(&scene.home)
        .env("PITH_AGENT_DIR", &agent)
        .spawn()
}

#[test]
fn a_full_disk_loses_only_what_did_not_fit() {
    let scene = Scene::new([]);
    let text = |n: usize| Turn::text(format!("{n} ").repeat(400));
    (0..6).for_each(|n| scene.server.push(text(n)));
    // No file may grow beyond 4 KiB: the write that reaches the limit is cut short, the next one fails.
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let mut host = behind_shell(&scene, limited);
    for n in 0..6 {
        host.data(json!({"type": "prompt", "message": format!("prompt {n}")}));
        host.wait_type("agent_settled");
    }
    let seen = host.data(json!({"type": "get_messages"}))["messages"].as_array().expect("a list").clone();
    assert_eq!(seen.len(), 12, "the session goes on in memory");
    assert!(host.data(json!({"type": "get_state"}))["sessionWriteError"].is_string());
    let (frames, _) = host.finish();
    let told = of_type(&frames, "extension_error");
    assert_eq!((told.len(), &told[0]["event"]), (1, &json!("session_write")));
    // What is in the file is complete, and the session can be continued.
    let mut again = scene.again(&["--continue"]);
    let kept = again.data(json!({"type": "get_messages"}))["messages"].as_array().expect("a list").clone();
    assert!(!kept.is_empty() && kept.len() < seen.len(), "{} of {}", kept.len(), seen.len());
    assert_eq!(kept, seen[..kept.len()]);
    again.data(json!({"type": "prompt", "message": "go on"}));
    again.wait_type("agent_settled");
    again.finish();
    let file = scene.home.sessions().remove(0);
    assert!(file.entries.iter().all(Value::is_object), "no line is torn or fused");
    scene.finish();
}

#[test]
fn the_file_size_limit_is_a_write_error_and_does_not_end_pith() {
    let scene = Scene::new([Turn::text("word ".repeat(2000)), Turn::text("two")]);
    // Beyond 4 KiB the kernel sends SIGXFSZ, which kills a program that does not handle it.
    let limited = "ulimit -f 8; exec \"$0\" \"$@\"";
    let mut host = behind_shell(&scene, limited);
    host.data(json!({"type": "prompt", "message": "first"}));
    let told = host.wait_type("extension_error");
    assert_like(&told, &json!({"extensionPath": "<session>", "event": "session_write"}));
    host.wait_type("agent_settled");
    host.data(json!({"type": "prompt", "message": "second"}));
    host.wait_type("agent_settled");
    assert!(host.data(json!({"type": "get_state"}))["sessionWriteError"].is_string());
    // Commands get the limit as they would without pith.
    let command = "head -c 100000 /dev/zero > big; echo \"status $?\"";
    let done = host.data(json!({"type": "bash", "command": command}));
    let output = done["output"].as_str().expect("a text");
    assert!(output.contains(&format!("status {}", 128 + 25)), "{output}");
    assert_eq!(host.finish().1, 0);
    scene.finish();
}

#[test]
fn reload_equals_what_the_host_saw() {
    let mut scene = Scene::with(busy_script(), |builder| builder);
    scene.run("work");
    scene.data(json!({"type": "bash", "command": "echo direct"}));
    scene.command(json!({"type": "set_session_name", "name": "kept"}));
    scene.run("more");
    let (messages, entries) = (scene.messages(), scene.data(json!({"type": "get_entries"})));
    let stats = scene.data(json!({"type": "get_session_stats"}));
    scene.host.finish();
    let mut again = scene.again(&["-c"]);
    assert_eq!(again.data(json!({"type": "get_messages"}))["messages"], json!(messages));
    assert_eq!(again.data(json!({"type": "get_entries"})), entries);
    assert_eq!(again.data(json!({"type": "get_session_stats"})), stats);
    assert_eq!(again.data(json!({"type": "get_state"}))["sessionName"], "kept");
    again.finish();
}
