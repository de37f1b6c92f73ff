//! Profiles: what they hold, who chooses them, who changes them.

use std::path::PathBuf;
use std::time::Instant;

use pith_sandbox::Support;
use pith_testkit::{Host, TempHome, Turn, has, timeout};
use serde_json::{Value, json};

use super::super::support::{Output, finish, model, run, run_with, scene, start_in};
use super::{events, outside, result_of, state};

#[test]
fn a_command_reaches_its_directory_and_nothing_beside_it() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let command = |home: &TempHome| format!("echo in > inside.txt; echo out > {}", outside(home).display());
    let (home, server) = scene([]);
    server.push(Turn::call("bash", json!({"command": command(&home)})));
    server.push(Turn::text("done"));
    let events = events(&home, &["--sandbox", "workspace-write"]);
    let text = result_of(&events);
    let refusals = ["Permission denied", "Read-only file system", "No such file or directory"];
    let is_refused = refusals.iter().any(|refusal| text.contains(refusal));
    assert!(is_refused && text.contains("[Sandbox workspace-write: writing is limited to"), "{text}");
    assert!(home.work().join("inside.txt").exists() && !outside(&home).exists());
    // The model was told before it tried.
    let prompt = server.requests()[0].body["system"].to_string();
    assert!(prompt.contains("Sandbox workspace-write: writing is limited to"), "{prompt}");
    // The same command without a sandbox does both, or the test would show nothing.
    server.push(Turn::call("bash", json!({"command": command(&home)})));
    server.push(Turn::text("done"));
    self::events(&home, &["--no-sandbox"]);
    assert!(outside(&home).exists());
}

#[test]
fn file_tools_are_held_by_the_same_policy() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let (home, server) = scene([]);
    let call = |path: PathBuf| Turn::call("write", json!({"path": path, "content": "x"}));
    for (path, refusal) in [
        (outside(&home), "EACCES: not allowed by the sandbox (workspace-write)"),
        (home.work().join(".git/hooks/pre-commit"), "EACCES: protected path"),
    ] {
        server.push(call(path.clone()));
        server.push(Turn::text("done"));
        let events = events(&home, &["--sandbox", "workspace-write"]);
        assert!(result_of(&events).contains(refusal), "{}", result_of(&events));
        let denied = events.iter().find(|event| event["type"] == "sandbox_denied").expect("the host is told");
        let kind = if refusal.contains("protected") { "protected" } else { "file" };
        assert_eq!((&denied["kind"], &denied["target"]), (&json!(kind), &json!(path)), "{denied}");
        let audited = events.iter().any(|event| event["entry"]["data"]["denied"] == kind);
        assert!(audited, "{events:#?}");
        assert!(!path.exists(), "{}", path.display());
    }
}

#[test]
fn programs_of_extensions_are_confined_too() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let (home, _server) = scene([Turn::text("done")]);
    let touch = format!("touch {}", outside(&home).display());
    home.write_agent_file(
        "extensions/run.ts",
        format!(
            "export default (pi) => pi.on('agent_start', async () => {{
               const ran = await pi.exec('sh', ['-c', 'echo in > inside.txt; {touch}']);
               if (ran.code === 0) throw new Error('it reached the outside');
             }});"
        ),
    );
    events(&home, &["--sandbox", "workspace-write"]);
    assert!(home.work().join("inside.txt").exists() && !outside(&home).exists());
}

#[test]
fn mcp_servers_are_confined_too() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let (home, _server) = scene([Turn::text("done"), Turn::text("done")]);
    let script = format!("echo in > inside.txt; echo out > {}", outside(&home).display());
    let servers = json!({"mcpServers": {"writer": {"command": "sh", "args": ["-c", script]}}});
    home.write_agent_file("mcp.json", servers.to_string());
    events(&home, &["--sandbox", "workspace-write"]);
    assert!(home.work().join("inside.txt").exists() && !outside(&home).exists());
    // The same server without a sandbox does both, or the test would show nothing.
    events(&home, &["--no-sandbox"]);
    assert!(outside(&home).exists());
}

#[test]
fn the_host_is_told_what_is_enforced() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let home = scene([]).0;
    assert_eq!(state(&home, &[]), Value::Null);
    let read_only = state(&home, &["--sandbox", "read-only"]);
    assert_eq!(read_only["enforced"], true);
    assert_eq!([&read_only["profile"], &read_only["network"], &read_only["fileTools"]], ["read-only", "off", "kernel"]);
    // A project can ask for more, trusted or not, and for nothing less.
    home.write_settings(&json!({"sandbox": {"profile": "workspace-write"}}));
    home.write_file(".pi/settings.json", r#"{"sandbox": {"profile": "off", "network": {"mode": "on"}}}"#);
    let state_of = |home: &TempHome| (state(home, &[])["profile"].clone(), state(home, &[])["network"].clone());
    assert_eq!(state_of(&home), (json!("workspace-write"), json!("off")));
    home.write_file(".pi/settings.json", r#"{"sandbox": {"profile": "read-only"}}"#);
    assert_eq!(state_of(&home), (json!("read-only"), json!("off")));
    let by_variable = finish(start_in(&home, ["sandbox", "check"], &[("PITH_SANDBOX", "nonsense")]));
    assert_eq!(by_variable.code, 0);
}

#[test]
fn what_a_project_would_loosen_is_told_once() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let home = scene([]).0;
    home.write_settings(&json!({"sandbox": {"profile": "workspace-write"}}));
    home.write_file(".pi/settings.json", r#"{"sandbox": {"network": {"mode": "on"}}}"#);
    let arguments = [&model()[..], &["--mode", "rpc", "--no-session"]].concat();
    let output = run_with(&home, arguments, b"{\"type\":\"get_state\"}\n");
    let told = output.stderr.matches("the project's sandbox.network.mode is ignored").count();
    assert_eq!(told, 1, "{}", output.stderr);
    let arguments = [&model()[..], &["--mode", "rpc", "--no-session"]].concat();
    let mut host = Host::builder(env!("CARGO_BIN_EXE_pith")).home(&home).args(arguments).spawn();
    let mut codes = || {
        let found = host.data(json!({"type": "get_diagnostics"}))["diagnostics"].clone();
        let codes = found.as_array().expect("a list").iter().map(|found| found["code"].clone());
        codes.filter(|code| code == "sandbox_project_loosens").count()
    };
    assert_eq!(codes(), 1);
    home.write_file(".pi/settings.json", r#"{"sandbox": {"network": {"mode": "on"}, "caches": true}}"#);
    host.data(json!({"type": "reload"}));
    let found = host.data(json!({"type": "get_diagnostics"}))["diagnostics"].to_string();
    assert!(found.contains("the project's sandbox.caches is ignored"), "{found}");
}

#[test]
fn a_file_that_the_model_writes_does_not_open_the_sandbox() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let (home, server) = scene([]);
    // Where the kernel holds protected paths the command below would not be stopped.
    home.write_settings(&json!({"sandbox": {"namespaces": "never"}}));
    let loose = json!({"profile": "off", "filesystem": {"allowWrite": ["/"]}, "network": {"mode": "on"}}).to_string();
    let command = format!("mkdir -p .pi; echo '{loose}' > .pi/sandbox.json; sleep 1000");
    server.push(Turn::call("write", json!({"path": ".pi/sandbox.json", "content": loose})));
    server.push(Turn::call("bash", json!({"command": command})));
    server.push(Turn::text("done"));
    let arguments = [&model()[..], &["--mode", "rpc", "--no-session", "--sandbox", "workspace-write"]].concat();
    let mut host = Host::builder(env!("CARGO_BIN_EXE_pith")).home(&home).args(arguments).spawn();
    let before = host.data(json!({"type": "get_state"}))["sandbox"].clone();
    host.send(json!({"type": "prompt", "message": "go"}));
    for kind in ["protected", "protected"] {
        assert_eq!(host.wait_type("sandbox_denied")["kind"], kind);
    }
    host.wait_type("agent_settled");
    assert!(!home.work().join(".pi/sandbox.json").exists(), "it was put back");
    // As if the moment before it was put back had been enough. While something of the killed command is still ending,
    // the file is put back once more.
    let deadline = Instant::now() + timeout();
    let mut is_found = false;
    while !is_found {
        assert!(Instant::now() < deadline, "the file is not reported");
        home.write_file(".pi/sandbox.json", &loose);
        host.data(json!({"type": "reload"}));
        assert_eq!(host.data(json!({"type": "get_state"}))["sandbox"], before);
        let found = host.data(json!({"type": "get_diagnostics"}))["diagnostics"].to_string();
        is_found = found.contains("sandbox_project_loosens");
    }
}

fn refusal(host: &mut Host, command: Value) -> String {
    let answer = host.ask(command);
    assert_eq!((&answer["success"], &answer["code"]), (&json!(false), &json!("sandbox_refused")), "{answer}");
    answer["error"].as_str().expect("a text").to_owned()
}

#[test]
fn a_host_tightens_a_running_session_and_loosens_it_only_if_it_may() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let write =
        |home: &TempHome, name: &str| Turn::call("write", json!({"path": home.work().join(name), "content": "x"}));
    let (home, server) = scene([]);
    let start = |more: &[&str]| {
        let arguments = [&model()[..], &["--mode", "rpc", "--no-session"], more].concat();
        Host::builder(env!("CARGO_BIN_EXE_pith")).home(&home).args(arguments).spawn()
    };
    let mut host = start(&[]);
    assert_eq!(host.data(json!({"type": "get_state"}))["sandbox"], Value::Null);
    let tightened = host.data(json!({"type": "set_sandbox", "profile": "read-only"}));
    assert_eq!((&tightened["profile"], &tightened["enforced"]), (&json!("read-only"), &json!(true)));
    server.push(write(&home, "refused"));
    server.push(Turn::text("done"));
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait(|frame| frame["type"] == "agent_settled");
    assert!(!home.work().join("refused").exists());
    let prompt = server.requests().last().expect("a request").body["system"].to_string();
    assert!(prompt.contains("Sandbox read-only"), "{prompt}");
    for (looser, key) in [
        (json!({"profile": "off"}), "sandbox.profile"),
        (json!({"profile": "workspace-write"}), "sandbox.profile"),
        (json!({"network": {"mode": "on"}}), "sandbox.network.mode"),
        (json!({"filesystem": {"allowWrite": ["/"]}}), "sandbox.filesystem.allowWrite"),
    ] {
        let mut command = looser.clone();
        command["type"] = json!("set_sandbox");
        let why = refusal(&mut host, command);
        assert_eq!(why, format!("{key}: loosening the sandbox needs --sandbox-may-loosen when pith starts"));
    }
    let mistake = refusal(&mut host, json!({"type": "set_sandbox", "network": {"mode": "some"}}));
    assert!(mistake.contains("unknown variant `some`"), "{mistake}");
    // What the host has asked for outlives a reload.
    host.data(json!({"type": "reload"}));
    assert_eq!(host.data(json!({"type": "get_state"}))["sandbox"]["profile"], "read-only");
    drop(host);

    let mut host = start(&["--sandbox", "read-only", "--sandbox-may-loosen"]);
    host.send(json!({"id": "b", "type": "bash", "command": "echo up; sleep 1000"}));
    host.wait(|frame| frame["type"] == "bash_execution_update");
    let loosened = host.data(json!({"type": "set_sandbox", "profile": "workspace-write"}));
    assert_eq!(
        (&loosened["profile"], &loosened["staleCommands"]),
        (&json!("workspace-write"), &json!(["echo up; sleep 1000"]))
    );
    let off = host.data(json!({"type": "set_sandbox", "profile": "off"}));
    assert_eq!((&off["profile"], &off["enforced"]), (&json!("off"), &json!(false)));
    host.data(json!({"type": "abort_bash"}));
}

#[test]
fn a_command_leaves_the_sandbox_only_with_the_users_leave() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let (home, server) = scene([]);
    let call = || {
        let command = format!("echo out >> {}", outside(&home).display());
        server
            .push(Turn::call("bash", json!({"command": command, "unsandboxed": true, "reason": "the file is there"})));
        server.push(Turn::text("done"));
    };
    // Without the setting the argument means nothing; a project cannot set it.
    home.write_file(".pi/settings.json", json!({"sandbox": {"allowUnsandboxedCommands": true}}).to_string());
    call();
    events(&home, &["--sandbox", "workspace-write", "--approve", "--yolo"]);
    assert!(!outside(&home).exists());
    home.write_settings(&json!({"sandbox": {"profile": "workspace-write", "allowUnsandboxedCommands": true}}));
    // Nobody is there to ask.
    call();
    let refused = events(&home, &["--yolo"]);
    assert!(result_of(&refused).contains("Nobody could be asked"), "{}", result_of(&refused));
    assert!(!outside(&home).exists());
    let arguments = [&model()[..], &["--mode", "rpc", "--no-session", "--yolo"]].concat();
    let mut host = Host::builder(env!("CARGO_BIN_EXE_pith")).home(&home).args(arguments).spawn();
    for (answer, lines) in [("Deny", 0), ("Allow once", 1), ("Allow once", 2)] {
        call();
        host.send(json!({"type": "prompt", "message": "go"}));
        let asked = host.wait(|frame| frame["type"] == "extension_ui_request");
        let title = asked["title"].as_str().expect("a title");
        assert!(
            title.starts_with("Allow bash outside the sandbox?") && title.ends_with("Reason: the file is there"),
            "{title}"
        );
        assert_eq!(asked["options"], json!(["Allow once", "Deny", "Deny and stop"]));
        host.send(json!({"type": "extension_ui_response", "id": asked["id"], "value": answer}));
        host.wait(|frame| frame["type"] == "agent_settled");
        assert_eq!(std::fs::read_to_string(outside(&home)).unwrap_or_default().lines().count(), lines);
    }
}

#[test]
fn commands_of_the_host_are_confined_if_the_user_wants_it() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let home = scene([]).0;
    for is_confined in [false, true] {
        home.write_settings(&json!({"sandbox": {"profile": "workspace-write", "hostCommands": is_confined}}));
        let arguments = [&model()[..], &["--mode", "rpc", "--no-session"]].concat();
        let mut host = Host::builder(env!("CARGO_BIN_EXE_pith")).home(&home).args(arguments).spawn();
        let told = host.data(json!({"type": "get_state"}))["sandbox"]["unconfined"].clone();
        assert_eq!(told.to_string().contains("commands of the host"), !is_confined, "{told}");
        let command = format!("echo out > {}", outside(&home).display());
        let result = host.data(json!({"type": "bash", "command": command}));
        assert_eq!((result["exitCode"] == 0, outside(&home).exists()), (!is_confined, !is_confined), "{result}");
        let _ = std::fs::remove_file(outside(&home));
    }
}

#[test]
fn a_file_written_for_the_extension_of_pi_counts_below_the_settings() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let home = scene([]).0;
    home.write_agent_file("extensions/sandbox.json", r#"{"enabled": true, "network": {"mode": "on"}}"#);
    let told = |home: &TempHome| [state(home, &[])["profile"].clone(), state(home, &[])["network"].clone()];
    assert_eq!(told(&home), ["workspace-write", "on"]);
    home.write_settings(&json!({"sandbox": {"profile": "read-only"}}));
    assert_eq!(told(&home), ["read-only", "on"]);
    home.write_settings(&json!({"sandbox": {"enabled": false}}));
    assert_eq!(told(&home), [Value::Null, Value::Null]);
}

#[test]
fn a_sandbox_that_is_lost_is_reported_as_what_was_asked_for() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let home = scene([]).0;
    home.write_settings(&json!({"sandbox": {"profile": "workspace-write"}}));
    let arguments = [&model()[..], &["--mode", "rpc", "--no-session"]].concat();
    let mut host = Host::builder(env!("CARGO_BIN_EXE_pith")).home(&home).args(arguments).spawn();
    assert_eq!(host.data(json!({"type": "get_state"}))["sandbox"]["enforced"], true);
    let mut state_after = |sandbox: Value| {
        home.write_settings(&json!({ "sandbox": sandbox }));
        host.data(json!({"type": "reload"}));
        host.data(json!({"type": "get_state"}))["sandbox"].clone()
    };
    let domains = json!({"profile": "read-only", "namespaces": "never", "network": {"mode": "domains"}});
    let lost = state_after(domains);
    assert_eq!((&lost["profile"], &lost["enforced"]), (&json!("read-only"), &json!(false)));
    assert!(lost["error"].as_str().is_some_and(|why| why.contains("needs network namespaces")), "{lost}");
    let unreadable = state_after(json!({"profile": 7}));
    assert_eq!((&unreadable["profile"], &unreadable["enforced"]), (&json!("unknown"), &json!(false)));
    assert_eq!(state_after(json!({"profile": "read-only"}))["enforced"], true);
}

#[test]
fn a_mistake_ends_the_start_before_any_frame() {
    let home = scene([]).0;
    let refused = |output: Output, text: &str| {
        assert_eq!((output.code, &*output.stdout), (1, ""), "{}", output.stderr);
        assert!(output.stderr.contains(text), "{}", output.stderr);
    };
    let serve = |variables: &[(&str, &str)], arguments: &[&str]| {
        finish(start_in(&home, [&model()[..], &["--mode", "rpc", "--no-session"], arguments].concat(), variables))
    };
    refused(
        serve(&[], &["--sandbox", "loose"]),
        "--sandbox: expected off, custom, workspace-write, read-only, not \"loose\"",
    );
    refused(serve(&[("PITH_SANDBOX", "loose")], &[]), "PITH_SANDBOX: expected off");
    home.write_settings(&json!({"sandbox": {"profile": "workspace-writ"}}));
    refused(serve(&[], &[]), "settings.json: sandbox: unknown variant `workspace-writ`");
    let domains = json!({"profile": "read-only", "namespaces": "never", "network": {"mode": "domains"}});
    home.write_settings(&json!({ "sandbox": domains }));
    refused(
        serve(&[], &[]),
        "\"domains\" needs network namespaces, which sandbox.namespaces does not allow; use \"off\"",
    );
    let broad = json!({"profile": "read-only", "network": {"allowedDomains": ["*.com"]}});
    home.write_settings(&json!({ "sandbox": broad }));
    refused(serve(&[], &[]), "sandbox.network.allowedDomains: \"*.com\" is too broad");
    std::fs::write(home.agent().join("settings.json"), "{\"sandbox\": {\"profile\": \"read-only\"").expect("written");
    refused(serve(&[], &[]), "settings.json: EOF");
    // A broken file that says nothing about a sandbox is what it was: a warning.
    std::fs::write(home.agent().join("settings.json"), "{\"defaultModel\": ").expect("written");
    assert_eq!(serve(&[], &[]).code, 0);
}

#[test]
fn a_command_can_be_tried_alone() {
    let home = TempHome::new();
    let check = run(&home, ["sandbox", "check"]);
    assert!(check.stdout.starts_with("Landlock: "), "{}", check.stdout);
    assert_eq!(check.code == 0, has(Support::check_this_kernel()));
    if !has(Support::check_this_kernel()) {
        return;
    }
    let sandbox = |arguments: &[&str]| run(&home, [&["sandbox", "run"], arguments].concat());
    assert_eq!(sandbox(&["--", "sh", "-c", "echo here > here.txt; exit 7"]).code, 7);
    assert!(home.work().join("here.txt").exists());
    assert_ne!(sandbox(&["--profile", "read-only", "--", "touch", "there.txt"]).code, 0);
    assert!(!home.work().join("there.txt").exists());
    // Settings apply here as in a session.
    home.write_settings(&json!({"sandbox": {"filesystem": {"denyRead": ["here.txt"]}}}));
    assert_ne!(sandbox(&["--", "cat", "here.txt"]).code, 0);
    sandbox(&["--profile", "off", "--", "true"])
        .refused("Error: --profile off would confine nothing; run the command itself\n");
}

#[test]
fn links_out_of_a_project_are_not_read_for_the_model() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let (home, server) = scene([]);
    let key = home.agent().join("../../.netrc");
    std::fs::write(&key, "KEY of somebody").expect("written");
    let beside = home.work().with_file_name("beside.md");
    std::fs::write(&beside, "KEY beside").expect("written");
    std::fs::create_dir_all(home.work().join(".pi/skills/one")).expect("made");
    std::fs::create_dir_all(home.work().join(".pi/prompts")).expect("made");
    std::fs::write(home.work().join("kept.md"), "kept instructions").expect("written");
    for (link, target) in [
        ("AGENTS.md", &key),
        (".pi/APPEND_SYSTEM.md", &beside),
        (".pi/skills/one/SKILL.md", &beside),
        (".pi/prompts/one.md", &key),
        ("CLAUDE.md", &PathBuf::from("kept.md")),
    ] {
        std::os::unix::fs::symlink(target, home.work().join(link)).expect("linked");
    }
    let told = |arguments: &[&str]| {
        server.push(Turn::text("done"));
        let before = server.requests().len();
        events(&home, &[&["--approve"], arguments].concat());
        server.requests()[before].body["system"].to_string()
    };
    let free = told(&["--no-sandbox"]);
    assert!(free.contains("KEY of somebody") && free.contains("KEY beside"), "{free}");
    let confined = told(&["--sandbox", "workspace-write"]);
    assert!(!confined.contains("KEY"), "{confined}");
    assert!(confined.contains("kept instructions"), "links in the project are followed: {confined}");
    let arguments = [&model()[..], &["--mode", "rpc", "--no-session", "--approve", "--sandbox", "read-only"]].concat();
    let output = run_with(&home, arguments, b"{\"type\":\"get_diagnostics\"}\n");
    for link in ["AGENTS.md", "APPEND_SYSTEM.md", "SKILL.md", "one.md"] {
        let path = format!("{link}\",\"code\"");
        assert!(
            output.stdout.contains(&path) && output.stdout.contains("in a sandbox links are not followed"),
            "{link}: {}",
            output.stdout
        );
    }
}
