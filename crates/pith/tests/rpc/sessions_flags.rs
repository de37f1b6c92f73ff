//! Sessions selected on the command line.

use std::path::Path;
use std::time::Duration;

use pith_testkit::{Api, Host, Script, SessionFile, TempHome, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, builder, texts};

/// Starts pith, which must refuse to start; returns its message.
fn refused(home: &TempHome, arguments: &[&str]) -> String {
    let mut host = start(home, arguments);
    let (frames, code) = host.finish();
    assert_eq!((frames.len(), code), (0, 1), "{arguments:?}: {}", host.describe());
    host.wait_stderr(|text| text.ends_with('\n'))
}

fn start(home: &TempHome, arguments: &[&str]) -> Host {
    let agent = home.agent().display().to_string();
    builder().rpc(Api::Anthropic).home(home).env("PITH_AGENT_DIR", &agent).args(arguments).spawn()
}

/// A home with one finished session, and that session's state.
fn talked() -> (Scene, Value) {
    let mut scene = Scene::new([Turn::text("one"), Turn::text("two"), Turn::text("three")]);
    scene.run("first");
    let state = scene.state();
    assert_eq!(scene.host.finish().1, 0);
    (scene, state)
}

fn n_messages(host: &mut Host) -> Value {
    host.data(json!({"type": "get_state"}))["messageCount"].clone()
}

#[test]
fn the_newest_session_is_continued() {
    let (scene, old) = talked();
    let mut host = scene.again(&["-c"]);
    let state = host.data(json!({"type": "get_state"}));
    assert_like(&state, &json!({"sessionId": old["sessionId"], "sessionFile": old["sessionFile"], "messageCount": 2}));
    host.data(json!({"type": "prompt", "message": "second"}));
    host.wait_type("agent_settled");
    assert_eq!(host.finish().1, 0);
    let sessions = scene.home.sessions();
    assert_eq!(sessions.len(), 1);
    let kinds: Vec<_> = sessions[0].entries.iter().filter_map(|entry| entry["type"].as_str()).collect();
    assert_eq!(kinds, ["session", "model_change", "thinking_level_change", "message", "message", "message", "message"]);
}

#[test]
fn continue_without_a_session_creates_one() {
    let mut scene = Scene::with(pith_testkit::Script::new(), |builder| builder.arg("--continue"));
    assert_eq!(scene.state()["messageCount"], 0);
    // Sessions of another directory are not used, even if the directory names collide.
    let work = scene.home.work();
    let directory =
        scene.state()["sessionFile"].as_str().map(|path| Path::new(path).parent().expect("a directory").to_owned());
    let header = json!({"type": "session", "version": 3, "id": "foreign", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/tmp"});
    let file = directory.expect("a path").join("2026-01-01T00-00-00-000Z_foreign.jsonl");
    scene.home.write_file(file.to_str().expect("UTF-8"), format!("{header}\n"));
    assert_eq!(scene.host.finish().1, 0);
    let mut host = scene.again(&["--continue"]);
    assert_ne!(host.data(json!({"type": "get_state"}))["sessionId"], "foreign", "{}", work.display());
    host.finish();
}

#[test]
fn a_session_is_named_by_path_id_or_the_beginning_of_its_id() {
    let (scene, old) = talked();
    let (path, id) = (old["sessionFile"].as_str().expect("a path"), old["sessionId"].as_str().expect("an id"));
    for arguments in
        [["--session", path], ["--session", id], ["--session", &id[..8]], ["--session-id", id], ["--resume", id]]
    {
        let mut host = scene.again(&arguments);
        assert_eq!(host.data(json!({"type": "get_state"}))["sessionId"], id, "{arguments:?}");
        assert_eq!(n_messages(&mut host), 2);
        host.finish();
    }
    // A path that does not exist is where the session will be stored.
    let new = scene.home.work().join("new.jsonl");
    let mut host = scene.again(
        &["--session", "new.jsonl"]
            .map(|argument| if argument == "new.jsonl" { new.to_str().expect("UTF-8") } else { argument }),
    );
    host.data(json!({"type": "prompt", "message": "second"}));
    host.wait_type("agent_settled");
    host.finish();
    assert_eq!(SessionFile::read(&new).messages().len(), 2);
}

#[test]
fn a_session_can_be_given_an_id() {
    let scene = Scene::new([Turn::text("one")]);
    let mut host = scene.again(&["--session-id", "my.own-id_1"]);
    host.wait_stderr(|text| {
        text.contains("Warning: No project session found with id 'my.own-id_1'; creating a new session with that id.")
    });
    assert_eq!(host.data(json!({"type": "get_state"}))["sessionId"], "my.own-id_1");
    host.finish();
    let mut host = scene.again(&["--session-id", "unsaved", "--no-session"]);
    assert_like(&host.data(json!({"type": "get_state"})), &json!({"sessionId": "unsaved", "sessionFile": "[ABSENT]"}));
    host.finish();
    scene.finish();
}

#[test]
fn two_processes_with_one_new_id_are_one_session() {
    let scene = Scene::new([Turn::text("one"), Turn::text("two")]);
    let mut hosts = [scene.again(&["--session-id", "shared"]), scene.again(&["--session-id", "shared"])];
    for host in &mut hosts {
        assert_eq!(host.data(json!({"type": "get_state"}))["sessionId"], "shared");
    }
    for (host, text) in hosts.iter_mut().zip(["first", "second"]) {
        host.data(json!({"type": "prompt", "message": text}));
        host.wait_type("agent_settled");
        assert_eq!(n_messages(host), 2);
    }
    let [first, second] = hosts.each_mut().map(|host| host.data(json!({"type": "get_state"}))["sessionFile"].clone());
    assert_eq!(first, second);
    hosts.iter_mut().for_each(|host| assert_eq!(host.finish().1, 0));
    let sessions = scene.home.sessions();
    assert_eq!((sessions.len(), sessions[0].messages().len()), (1, 4), "both conversations are in one file");
    scene.finish();
}

#[test]
fn twenty_processes_that_begin_one_session_at_once_have_one_file() {
    const N_PROCESSES: usize = 20;
    // A process that finds the session in use when it starts ends with that; the others answer.
    let answer = |host: &mut Host| loop {
        let is_answer = |frame: &Value| frame["type"] == "response" && frame["id"] == "p";
        match host.find_within(0, Duration::from_millis(20), is_answer) {
            None if host.has_exited() => break None,
            None => {}
            answer => break answer,
        }
    };
    for round in 0..4 {
        let scene = Scene::with(Script::of((0..N_PROCESSES).map(|_| Turn::text("fine"))), |builder| builder);
        let mut hosts: Vec<_> = (0..N_PROCESSES).map(|_| scene.again(&["--session-id", "shared"])).collect();
        if round % 2 == 0 {
            // All have begun the session before the first of them saves it.
            hosts.iter_mut().for_each(|host| drop(host.data(json!({"type": "get_state"}))));
        }
        let prompt = |number: usize| json!({"id": "p", "type": "prompt", "message": format!("text {number}")});
        hosts.iter_mut().enumerate().for_each(|(number, host)| host.send(prompt(number)));
        let mut expected = Vec::new();
        for (number, host) in hosts.iter_mut().enumerate() {
            match answer(host) {
                Some(answer) if answer["success"] == true => {
                    host.wait_type("agent_settled");
                    expected.push(format!("text {number}"));
                }
                Some(answer) => assert_eq!(answer["code"], "session_in_use", "{answer}"),
                None => drop(host.wait_stderr(|text| text.contains("Session is in use"))),
            }
        }
        hosts.iter_mut().for_each(|host| drop(host.finish()));
        let sessions = scene.home.sessions();
        assert_eq!(sessions.len(), 1, "round {round}");
        let messages = sessions[0].messages();
        let prompts = messages.iter().filter(|message| message["role"] == "user");
        let mut found: Vec<String> = prompts.map(|message| texts(&message["content"])).collect();
        found.sort();
        expected.sort();
        assert!(!expected.is_empty());
        assert_eq!(found, expected, "round {round}: what was accepted is in the file");
        scene.finish();
    }
}

#[test]
fn a_fork_is_a_copy_for_this_directory() {
    let (scene, old) = talked();
    let (path, id) = (old["sessionFile"].as_str().expect("a path"), old["sessionId"].as_str().expect("an id"));
    let mut host = scene.again(&["--fork", path, "--session-id", "copy"]);
    let state = host.data(json!({"type": "get_state"}));
    assert_like(&state, &json!({"sessionId": "copy", "messageCount": 2}));
    host.finish();
    let copy = SessionFile::read(Path::new(state["sessionFile"].as_str().expect("a path")));
    assert_eq!(copy.entries[0]["parentSession"], path);
    assert_eq!(copy.entries[1..], SessionFile::read(Path::new(path)).entries[1..]);
    assert_eq!(
        refused(&scene.home, &["--fork", id, "--session-id", "copy"]),
        "Session already exists with id 'copy'\n"
    );
}

#[test]
fn a_session_of_another_project_is_not_taken_by_accident() {
    let (scene, old) = talked();
    let id = old["sessionId"].as_str().expect("an id");
    let elsewhere = scene.home.tmp().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let agent = scene.home.agent().display().to_string();
    let start = |arguments: &[&str]| {
        builder()
            .rpc(Api::Anthropic)
            .home(&scene.home)
            .env("PITH_AGENT_DIR", &agent)
            .directory(&elsewhere)
            .args(arguments)
            .spawn()
    };
    let mut host = start(&["--session", id]);
    assert_eq!(host.finish().1, 1);
    assert!(
        host.stderr().contains("Session found in different project: ") && host.stderr().contains("--fork"),
        "{}",
        host.stderr()
    );
    let mut host = start(&["--fork", id]);
    assert_eq!(n_messages(&mut host), 2);
    host.finish();
    // By its path it is opened, and works in its own directory.
    let mut host = start(&["--session", old["sessionFile"].as_str().expect("a path")]);
    let pwd = host.data(json!({"type": "bash", "command": "pwd"}));
    assert_eq!(pwd["output"].as_str().map(str::trim), scene.home.work().to_str());
    host.finish();
}

#[test]
fn refusals_name_what_is_wrong() {
    let scene = Scene::new([]);
    let home = &scene.home;
    let check =
        |arguments: &[&str], text: &str| assert_eq!(refused(home, arguments), format!("{text}\n"), "{arguments:?}");
    check(&["--session", "nope"], "No session found matching 'nope'");
    check(&["--fork", "nope"], "No session found matching 'nope'");
    check(
        &["--fork", "a", "--continue", "--no-session"],
        "Error: --fork cannot be combined with --continue, --no-session",
    );
    check(&["--session-id", "a", "--session", "b"], "Error: --session-id cannot be combined with --session");
    check(
        &["--session-id", "a b"],
        "Error: Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start and end with an alphanumeric character",
    );
    check(
        &["--resume"],
        "Error: --resume cannot show a list to choose from here: use --continue for the newest session of this directory, or --session <path|id>",
    );
    check(&["--name", " "], "Error: --name requires a non-empty value");
    home.write_file("text.jsonl", "hello\n");
    let path = home.work().join("text.jsonl").display().to_string();
    check(&["--session", &path], &format!("Error: Session file is not a valid pi session: {path}"));
    home.write_file("moved.jsonl", json!({"type": "session", "version": 3, "id": "x", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/no/where"}).to_string());
    let path = home.work().join("moved.jsonl").display().to_string();
    let cwd = home.work().display().to_string();
    check(
        &["--session", &path],
        &format!(
            "Stored session working directory does not exist: /no/where\nSession file: {path}\nCurrent working directory: {cwd}"
        ),
    );
    scene.finish();
}

#[test]
fn a_session_directory_can_hold_sessions_of_several_projects() {
    let mut scene = Scene::new([Turn::text("one")]);
    let own = scene.home.tmp().join("own");
    let flag = ["--session-dir", own.to_str().expect("UTF-8")];
    let mut host = scene.again(&flag);
    host.data(json!({"type": "prompt", "message": "first"}));
    host.wait_type("agent_settled");
    let state = host.data(json!({"type": "get_state"}));
    assert_eq!(Path::new(state["sessionFile"].as_str().expect("a path")).parent(), Some(&*own));
    host.finish();
    let mut host = scene.again(&[flag[0], flag[1], "--continue", "--name", "again"]);
    assert_like(
        &host.data(json!({"type": "get_state"})),
        &json!({"sessionId": state["sessionId"], "sessionName": "again"}),
    );
    host.finish();
    // A setting does the same.
    scene.home.write_settings(&json!({"sessionDir": own}));
    let mut host = scene.again(&["-c"]);
    assert_eq!(host.data(json!({"type": "get_state"}))["sessionId"], state["sessionId"]);
    host.finish();
    assert!(scene.home.sessions().is_empty());
    scene.run("x");
    scene.finish();
}

#[test]
fn model_and_level_are_those_of_the_session_unless_flags_say_otherwise() {
    let mut scene = Scene::new([Turn::text("one")]);
    scene.command(json!({"type": "set_thinking_level", "level": "high"}));
    scene.run("first");
    scene.host.finish();
    let agent = scene.home.agent().display().to_string();
    let plain = || builder().args(["--mode", "rpc", "-c"]).home(&scene.home).env("PITH_AGENT_DIR", &agent);
    let mut host = plain().spawn();
    assert_like(
        &host.data(json!({"type": "get_state"})),
        &json!({"model": {"id": "claude-mock"}, "thinkingLevel": "high"}),
    );
    host.finish();
    let mut host = plain().args(["--thinking", "low"]).spawn();
    assert_eq!(host.data(json!({"type": "get_state"}))["thinkingLevel"], "low");
    host.finish();
    let mut host = plain().spawn();
    assert_eq!(host.data(json!({"type": "get_state"}))["thinkingLevel"], "low", "a flag is recorded");
    assert_eq!(texts(&host.data(json!({"type": "get_messages"}))["messages"][0]["content"]), "first");
    host.finish();
}
