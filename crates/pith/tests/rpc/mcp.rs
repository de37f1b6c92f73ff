//! MCP servers in a session: configured by files and by the host, called by the model, ended with it.

mod approval;
mod extensions;
mod sign_in;
mod trust;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pith_testkit::{Block, ModelServer, Script, TempHome, Turn, shell_server};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Scene, texts};

fn entry(server: &Path) -> Value {
    json!({"command": "sh", "args": [server]})
}

fn file(servers: Value) -> String {
    json!({"mcpServers": servers}).to_string()
}

/// The names of the tools the model was offered with its n-th request that are of servers.
fn offered(scene: &Scene, request: usize) -> Vec<String> {
    let body = scene.server.wait_request(request).body;
    let tools = body["tools"].as_array().expect("tools are a list");
    let names = tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned());
    names.filter(|name| name.starts_with("mcp__")).collect()
}

pub fn log(server: &Path, what: &str) -> String {
    std::fs::read_to_string(format!("{}.{what}", server.display())).unwrap_or_default()
}

/// Ends the session and waits until none of the processes that a server has noted is alive.
fn finish(scene: Scene, server: &Path) {
    let pids = log(server, "pids");
    assert!(!pids.is_empty(), "the server has run");
    scene.finish();
    wait_gone(&pids);
}

fn wait_gone(pids: &str) {
    let is_alive = |pid: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !status.is_empty() && !status.contains(") Z ")
    };
    wait_for(|| !pids.lines().any(is_alive), pids);
}

fn wait_for(is_so: impl Fn() -> bool, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::yield_now();
    }
}

fn home_with(servers: impl FnOnce(&Path) -> Value) -> (ModelServer, TempHome, PathBuf) {
    home_answering([Turn::call("mcp__shell__greet", json!({"who": "you"})), Turn::text("done")], servers)
}

pub fn home_answering(
    turns: impl IntoIterator<Item = Turn>,
    servers: impl FnOnce(&Path) -> Value,
) -> (ModelServer, TempHome, PathBuf) {
    let model = ModelServer::start(Script::of(turns));
    let home = TempHome::for_server(&model);
    let server = shell_server(&home.agent());
    home.write_agent_file("mcp.json", file(servers(&server)));
    (model, home, server)
}

#[test]
fn the_model_calls_a_tool_of_a_configured_server() {
    let (model, home, server) = home_with(|server| json!({"shell": entry(server)}));
    let mut scene = Scene::in_home(model, home, |builder| builder);
    // Nothing is read or started before the first prompt.
    assert_eq!(scene.state().get("mcpServers"), None);
    assert_eq!(log(&server, "pids"), "");
    scene.run("go");
    assert_eq!(offered(&scene, 0), ["mcp__shell__greet", "mcp__shell__visit", "mcp__shell__wait"]);
    let result = scene.tool_results().remove(0);
    assert_eq!(texts(&result["content"]), "Hello from the server");
    assert_eq!((&result["details"]["server"], &result["details"]["tool"]), (&json!("shell"), &json!("greet")));
    let states = scene.state()["mcpServers"].clone();
    assert_eq!(states, json!([{"name": "shell", "source": "user", "state": "ready"}]));
    let update = |frame: &Value| frame["type"] == "mcp_server_update";
    assert!(!scene.host.frames().iter().any(update), "hosts that never asked know no such event");
    finish(scene, &server);
}

#[test]
fn arguments_that_the_server_does_not_take_are_not_sent() {
    // The model is not told of `oneOf`.
    let turns = [Turn::call("mcp__shell__wait", json!({"a": 1, "b": 1})), Turn::text("done")];
    let (model, home, server) = home_answering(turns, |server| json!({"shell": entry(server)}));
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.run("go");
    let result = scene.tool_results().remove(0);
    assert_eq!(result["isError"], true, "{result}");
    assert!(!log(&server, "log").contains("tools/call"), "{}", log(&server, "log"));
    finish(scene, &server);
}

#[test]
fn tools_are_known_from_the_cache_and_the_server_starts_with_its_first_call() {
    let (model, home, server) = home_answering(
        [Turn::text("one"), Turn::text("two"), Turn::call("mcp__shell__greet", json!({"who": "x"})), Turn::text("end")],
        |server| json!({"shell": entry(server)}),
    );
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.run("learn the tools");
    let mut second = scene.again(&[]);
    second.data(json!({"type": "prompt", "message": "say something"}));
    second.wait_type("agent_settled");
    assert_eq!(offered(&scene, 1), offered(&scene, 0));
    let starts = log(&server, "pids").lines().count();
    assert_eq!(starts, 1, "the second process has not started the server");
    second.data(json!({"type": "prompt", "message": "call it"}));
    second.wait_type("agent_settled");
    assert_eq!(log(&server, "pids").lines().count(), 2);
    second.finish();
    finish(scene, &server);
}

#[test]
fn a_host_brings_servers_and_follows_them() {
    let mut scene = Scene::new([Turn::call("mcp__shell__greet", json!({"who": "you"})), Turn::text("done")]);
    let server = shell_server(&scene.home.agent());
    let refused = scene.refusal(json!({"type": "set_mcp_servers", "servers": {"a": {"command": 7}}}));
    assert_eq!(refused, "server \"a\": command: expected a string, got number");
    let set = scene.host.data(json!({"type": "set_mcp_servers", "servers": {"shell": entry(&server)}}));
    assert_eq!(set, json!({"servers": [{"name": "shell", "source": "host", "state": "idle"}]}));
    let listed = scene.host.data(json!({"type": "get_mcp_servers"}));
    assert_eq!((&listed["servers"][0]["state"], &listed["servers"][0]["tools"]), (&json!("idle"), &json!([])));
    assert_eq!(listed["servers"][0]["exposure"], "auto");
    let listed = scene.host.data(json!({"type": "get_mcp_servers", "connect": true}));
    let shown = &listed["servers"][0];
    assert_eq!((&shown["state"], &shown["protocolVersion"]), (&json!("ready"), &json!("2025-11-25")));
    assert_eq!(shown["exposure"], "direct", "so few tools are declared");
    assert_eq!(shown["serverInfo"], json!({"name": "shell", "version": "1"}));
    let greet = json!({"name": "mcp__shell__greet", "tool": "greet", "annotations": {"readOnlyHint": true}});
    assert_eq!(shown["tools"][0], greet);
    let states: Vec<Value> =
        scene.host.frames().into_iter().filter(|frame| frame["type"] == "mcp_server_update").collect();
    let states: Vec<&str> = states.iter().map(|frame| frame["state"].as_str().expect("a word")).collect();
    assert_eq!(states, ["starting", "ready"]);
    scene.run("go");
    assert_eq!(texts(&scene.tool_results()[0]["content"]), "Hello from the server");
    let off = scene.host.data(json!({"type": "set_mcp_enabled", "name": "shell", "enabled": false}));
    assert_eq!(off["servers"][0]["state"], "disabled");
    wait_gone(&log(&server, "pids"));
    let unknown = scene.refusal(json!({"type": "mcp_reconnect", "name": "none"}));
    assert_eq!(unknown, "There is no MCP server \"none\"");
    scene.command(json!({"type": "set_mcp_enabled", "name": "shell", "enabled": true}));
    let again = scene.host.data(json!({"type": "mcp_reconnect", "name": "shell"}));
    assert_eq!(again["servers"][0]["state"], "ready");
    finish(scene, &server);
}

#[test]
fn a_host_that_closes_its_input_is_answered_before_the_servers_end() {
    let mut scene = Scene::new([]);
    let server = shell_server(&scene.home.agent());
    scene.host.send_all([
        json!({"id": "set", "type": "set_mcp_servers", "servers": {"shell": entry(&server)}}),
        json!({"id": "list", "type": "get_mcp_servers", "connect": true}),
    ]);
    let (frames, code) = scene.host.finish();
    assert_eq!(code, 0);
    let listed = frames.iter().find(|frame| frame["id"] == "list").expect("an answer");
    let shown = &listed["data"]["servers"][0];
    assert_eq!((&shown["name"], &shown["state"]), (&json!("shell"), &json!("ready")));
    assert_eq!(shown["tools"][0]["name"], "mcp__shell__greet");
    wait_gone(&log(&server, "pids"));
}

#[test]
fn a_signal_does_not_wait_for_a_server_that_is_asked_for() {
    let mut scene = Scene::new([]);
    let silent = json!({"command": "sh", "args": ["-c", "cat > /dev/null"]});
    scene.command(json!({"type": "set_mcp_servers", "servers": {"silent": silent}}));
    scene.host.send(json!({"id": "list", "type": "get_mcp_servers", "connect": true}));
    scene.host.wait(|frame| frame["type"] == "mcp_server_update" && frame["state"] == "starting");
    scene.host.signal(Signal::TERM);
    assert_eq!(scene.host.exit_code(), 143);
    let frames = scene.host.frames();
    let listed = frames.iter().find(|frame| frame["id"] == "list").expect("an answer");
    assert_eq!(listed["data"]["servers"][0]["state"], "starting");
}

#[test]
fn a_server_that_fails_is_reported_and_the_prompt_goes_on() {
    let (model, home, server) =
        home_answering([Turn::text("fine")], |server| json!({"shell": {"command": "sh", "args": [server, "broken"]}}));
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.run("go");
    assert_eq!(offered(&scene, 0), Vec::<String>::new());
    let found = scene.host.data(json!({"type": "get_diagnostics"}));
    let found = found["diagnostics"].as_array().expect("a list");
    let of_server = found.iter().find(|found| found["code"] == "mcp_start").expect("reported");
    assert_eq!(of_server["message"], "server \"shell\": ended with exit code 3; it wrote: no database");
    finish(scene, &server);
}

#[test]
fn flags_choose_servers_and_their_tools() {
    let (model, home, server) = home_answering([Turn::text("fine")], |server| json!({"user": entry(server)}));
    let given = file(json!({"given": entry(&server)}));
    let mut scene = Scene::in_home(model, home, |builder| {
        let tools = ["--exclude-tools", "mcp__*__wait", "--tools", "read,mcp__given__*"];
        builder.args(["--no-mcp", "--mcp-config", &given]).args(tools)
    });
    scene.run("go");
    assert_eq!(offered(&scene, 0), ["mcp__given__greet", "mcp__given__visit"]);
    finish(scene, &server);
}

#[test]
fn servers_that_are_switched_off_do_not_start() {
    let check = |flags: &[&str], user: Value, project: Value, is_on: bool| {
        let (model, home, server) = home_answering([Turn::text("fine")], |server| json!({"user": entry(server)}));
        home.write_settings(&json!({"extensions": user}));
        std::fs::create_dir_all(home.work().join(".pi")).expect("created");
        std::fs::write(home.work().join(".pi/settings.json"), json!({"extensions": project}).to_string())
            .expect("written");
        let mut scene = Scene::in_home(model, home, |builder| builder.args(["--approve"]).args(flags));
        scene.run("go");
        let what = format!("{flags:?} {user} {project}");
        assert_eq!(!log(&server, "pids").is_empty(), is_on, "{what}");
        assert_eq!(!offered(&scene, 0).is_empty(), is_on, "{what}");
        let found = scene.host.data(json!({"type": "get_diagnostics"}))["diagnostics"].clone();
        assert_eq!(found, json!([]), "{what}");
        scene.finish();
    };
    let (none, off, on) = (json!([]), json!(["-builtin:mcp"]), json!(["+builtin:mcp"]));
    check(&[], none.clone(), none.clone(), true);
    check(&[], json!(["-builtin:tool-search", "-builtin:codemode"]), none.clone(), true);
    check(&[], off.clone(), none.clone(), false);
    check(&[], json!(["!builtin:*"]), none.clone(), false);
    check(&[], none.clone(), off.clone(), false);
    check(&[], on.clone(), off.clone(), false);
    check(&[], off.clone(), on.clone(), true);
    check(&["-e", "builtin:mcp"], off.clone(), none.clone(), true);
    check(&["--no-extensions"], on.clone(), none.clone(), false);
    check(&["--no-extensions", "-e", "builtin:mcp"], off, none.clone(), true);
    check(&["--no-mcp", "-e", "builtin:mcp"], on, none, false);
}

#[test]
fn tools_of_servers_are_used_only_if_the_flag_names_them() {
    let check = |exposure: &str, tools: &str, declared: &[&str], is_run: bool| {
        let search = Turn::call("tool_search", json!({"query": "greet"}));
        let turns = [search, Turn::call("mcp__shell__greet", json!({"who": "you"})), Turn::text("done")];
        let entry = |server: &Path| json!({"shell": {"command": "sh", "args": [server], "exposure": exposure}});
        let (model, home, server) = home_answering(turns, entry);
        let mut scene = Scene::in_home(model, home, |builder| builder.args(["--tools", tools]));
        scene.run("go");
        let what = format!("{exposure}, --tools {tools}");
        let body = scene.server.wait_request(0).body;
        let names = body["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str());
        assert_eq!(names.collect::<Vec<_>>(), declared, "{what}");
        let result = texts(&scene.tool_results().remove(1)["content"]);
        let expected = if is_run { "Hello from the server" } else { "Tool mcp__shell__greet not found" };
        assert_eq!(result, expected, "{what}");
        assert_eq!(log(&server, "log").contains("tools/call"), is_run, "{what}");
        scene.finish();
    };
    for exposure in ["direct", "deferred"] {
        check(exposure, "read", &["read"], false);
        check(exposure, "read,mcp__other__*", &["read"], false);
        check(exposure, "read,mcp__shell__visit", &["read", "mcp__shell__visit"], false);
        check(exposure, "mcp__shell__greet,read", &["read", "mcp__shell__greet"], true);
    }
    check("deferred", "read,tool_search", &["read", "tool_search"], false);
    check("deferred", "read,tool_search,mcp__shell__g*", &["read", "tool_search"], true);
}

#[test]
fn a_search_that_is_excluded_is_not_declared() {
    let deferred = |server: &Path| json!({"shell": {"command": "sh", "args": [server], "exposure": "deferred"}});
    for (flags, expected) in
        [(["--exclude-tools", "tool_search"].as_slice(), None), (&["--no-tools"], None), (&[], Some("tool_search"))]
    {
        let (model, home, server) = home_answering([Turn::text("fine")], deferred);
        let mut scene = Scene::in_home(model, home, |builder| builder.args(flags));
        scene.run("go");
        let body = scene.server.wait_request(0).body;
        let mut names = body["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str());
        assert_eq!(names.find(|name| *name == "tool_search"), expected, "{flags:?}");
        assert_eq!(log(&server, "pids"), "", "nobody has searched");
        scene.finish();
    }
}

#[test]
fn an_abort_ends_a_call_at_once() {
    let (model, home, server) = home_answering(
        [Turn::blocks([Block::call("mcp__shell__wait", json!({}))])],
        |server| json!({"shell": entry(server)}),
    );
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.prompt("go");
    scene.wait_type("tool_execution_start");
    wait_for(|| log(&server, "log").contains("tools/call"), "the call reaches the server");
    scene.command(json!({"type": "abort"}));
    assert_eq!(texts(&scene.tool_results()[0]["content"]), "Operation aborted");
    wait_for(|| log(&server, "log").contains("notifications/cancelled"), "the server hears of it");
    finish(scene, &server);
}

#[test]
fn a_killed_pith_leaves_no_server() {
    let (model, home, server) = home_answering(
        [Turn::text("fine")],
        |server| json!({"one": entry(server), "two": entry(server), "three": entry(server)}),
    );
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.run("go");
    assert_eq!(log(&server, "pids").lines().count(), 3);
    let pids = log(&server, "pids");
    scene.host.kill();
    wait_gone(&pids);
}

/// A session in which the model calls a tool whose server asks the user.
fn asked(arguments: &[&str]) -> (Scene, PathBuf) {
    let (model, home, server) = home_answering(
        [Turn::call("mcp__shell__wait", json!({"ask": true})), Turn::text("done")],
        |server| json!({"shell": entry(server)}),
    );
    (Scene::in_home(model, home, |builder| builder.args(arguments)), server)
}

#[test]
fn a_server_asks_the_user_through_the_host() {
    let (mut scene, server) = asked(&[]);
    scene.prompt("go");
    let question = scene.wait_type("extension_ui_request");
    assert_eq!((&question["method"], &question["title"]), (&json!("input"), &json!("shell asks: Who are you?\nname")));
    scene.host.send(json!({"type": "extension_ui_response", "id": question["id"], "value": "Ann"}));
    scene.wait_type("agent_settled");
    assert_eq!(texts(&scene.tool_results()[0]["content"]), "noted");
    let log = log(&server, "log");
    assert!(log.contains(r#""elicitation":{"form":{},"url":{}}"#), "{log}");
    assert!(log.contains(r#""result":{"action":"accept","content":{"name":"Ann"}}"#), "{log}");
    finish(scene, &server);
}

#[test]
fn an_abort_takes_back_the_question_of_a_server() {
    let (mut scene, server) = asked(&["--ui-cancel"]);
    scene.prompt("go");
    let question = scene.wait_type("extension_ui_request");
    scene.command(json!({"type": "abort"}));
    let is_taken_back = |frame: &Value| frame["method"] == "cancel" && frame["targetId"] == question["id"];
    assert!(scene.host.frames().iter().any(is_taken_back));
    assert_eq!(texts(&scene.tool_results()[0]["content"]), "Operation aborted");
    finish(scene, &server);
}

#[test]
fn a_server_asks_the_model_if_the_user_lets_it() {
    let (model, home, server) = home_answering(
        [Turn::call("mcp__shell__wait", json!({"sample": true})), Turn::text("four"), Turn::text("done")],
        |server| json!({"shell": {"command": "sh", "args": [server], "sampling": "ask"}}),
    );
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.prompt("go");
    let question = scene.wait_type("extension_ui_request");
    assert_eq!((&question["method"], &question["message"]), (&json!("confirm"), &json!("user: What is 2 + 2?")));
    assert_eq!(question["title"], "shell asks the model, for at most 50 tokens");
    scene.host.send(json!({"type": "extension_ui_response", "id": question["id"], "confirmed": true}));
    scene.wait_type("agent_settled");
    let asked = scene.server.wait_request(1).body;
    assert!(asked.to_string().contains("What is 2 + 2?") && asked.get("tools").is_none(), "{asked}");
    let log = log(&server, "log");
    assert!(log.contains(r#""sampling":{}"#) && log.contains(r#""text":"four""#), "{log}");
    let usage = scene.tool_results().remove(0)["usage"].clone();
    let stats = scene.host.data(json!({"type": "get_session_stats"}));
    let answers: Vec<u64> = scene.messages().iter().filter_map(|message| message["usage"]["output"].as_u64()).collect();
    assert!(usage["output"].as_u64().is_some_and(|output| output > 0), "{usage}");
    assert_eq!((answers.len(), stats["tokens"]["output"].as_u64()), (3, Some(answers.iter().sum())));
    finish(scene, &server);
}

#[test]
fn servers_ask_the_model_ten_times_for_each_prompt() {
    let call = |number: usize| Turn::call("mcp__shell__wait", json!({"sample": true, "number": number}));
    let turns = (0..10).flat_map(|number| [call(number), Turn::text("four")]);
    let (model, home, server) = home_answering(
        turns.chain([call(10), Turn::text("done"), call(11), Turn::text("four"), Turn::text("done")]),
        |server| json!({"shell": {"command": "sh", "args": [server], "sampling": "allow"}}),
    );
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.run("go");
    let answered = || log(&server, "log").matches(r#""text":"four""#).count();
    assert_eq!(answered(), 10);
    assert!(log(&server, "log").contains(r#""id":"question","error":"#), "{}", log(&server, "log"));
    scene.run("go on");
    assert_eq!(answered(), 11);
    finish(scene, &server);
}

#[test]
fn prompts_and_resources_of_servers_reach_the_model() {
    let turns = [Turn::text("hailed"), Turn::text("read"), Turn::text("queued")];
    let (model, home, server) = home_answering(turns, |server| json!({"shell": entry(server)}));
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.host.send(json!({"id": "bare", "type": "prompt", "message": "/mcp:shell:hail"}));
    let question = scene.wait_type("extension_ui_request");
    assert_eq!(question["title"], "The prompt \"hail\" of shell needs who");
    scene.host.send(json!({"type": "extension_ui_response", "id": question["id"], "cancelled": true}));
    let refused = scene.host.wait(|frame| frame["type"] == "response" && frame["id"] == "bare");
    assert_eq!(refused["error"], "the prompt \"hail\" needs who (NAME=VALUE, or in this order)");
    let commands = scene.host.data(json!({"type": "get_commands"}))["commands"].clone();
    let command = commands.as_array().expect("a list").iter().find(|command| command["source"] == "mcp");
    let command = command.expect("the prompt is a command");
    assert_eq!((&command["name"], &command["description"]), (&json!("mcp:shell:hail"), &json!("Hails somebody")));
    scene.run("/mcp:shell:hail Ann");
    let said = |request: usize| scene.server.wait_request(request).body;
    let last = |body: &Value| body["messages"].as_array().expect("a list").last().expect("not empty").to_string();
    assert!(last(&said(0)).contains("Hail them all"), "{}", said(0));
    assert!(log(&server, "log").contains(r#""arguments":{"who":"Ann"}"#), "{}", log(&server, "log"));
    let instructions = r#"<mcp_server name=\"shell\">\nGreet people by name.\n</mcp_server>"#;
    assert!(said(0).to_string().contains(instructions), "{}", said(0));
    let tools: Vec<Value> = said(0)["tools"].as_array().expect("a list").clone();
    assert!(tools.iter().any(|tool| tool["name"] == "read_mcp_resource"), "{tools:?}");
    scene.run("who is @shell:list://people?");
    let mentioned = last(&scene.server.wait_request(1).body);
    assert!(mentioned.contains("Ann and Bob"), "{mentioned}");
    finish(scene, &server);
}

#[test]
fn resources_can_be_read_where_nothing_may_be_changed() {
    let turns = [
        Turn::call("read_mcp_resource", json!({"server": "shell", "uri": "list://people"})),
        Turn::call("mcp__shell__wait", json!({"fail": true})),
        Turn::text("done"),
    ];
    let (model, home, server) = home_answering(turns, |server| json!({"shell": entry(server)}));
    let mut scene = Scene::in_home(model, home, |builder| builder.args(["--approval-mode", "read-only"]));
    scene.run("go");
    let results = scene.tool_results();
    assert!(texts(&results[0]["content"]).contains("Ann and Bob"), "{results:?}");
    assert!(texts(&results[1]["content"]).starts_with("Not allowed"), "{results:?}");
    finish(scene, &server);
}

#[test]
fn a_host_waits_for_its_own_servers_only() {
    let (model, home, server) = home_answering([], |server| json!({"of_user": entry(server)}));
    let mut scene = Scene::in_home(model, home, |builder| builder);
    let own = shell_server(&scene.home.work());
    let set = scene.host.data(json!({"type": "set_mcp_servers", "servers": {"own": entry(&own)}, "wait": true}));
    let state = |name: &str| set["servers"].as_array().expect("a list").iter().find(|it| it["name"] == name).cloned();
    assert_eq!(state("own").expect("listed")["state"], "ready");
    assert_eq!(state("of_user").expect("listed")["state"], "idle");
    assert_eq!(log(&server, "pids"), "", "nobody needs it");
    finish(scene, &own);
}

/// The names of all tools of the n-th request.
fn declared(scene: &Scene, request: usize) -> Vec<String> {
    let body = scene.server.wait_request(request).body;
    let tools = body["tools"].as_array().expect("tools are a list");
    let names = tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned());
    names.filter(|name| name.starts_with("mcp__") || name == "tool_search").collect()
}

#[test]
fn deferred_tools_are_found_and_stay_declared() {
    let turns = [
        Turn::call("tool_search", json!({"query": "greets salutation", "limit": 1})),
        Turn::call("mcp__shell__greet", json!({"who": "you"})),
        Turn::text("done"),
        Turn::text("resumed"),
    ];
    let (model, home, server) = home_answering(turns, |server| {
        let mut entry = entry(server);
        entry["exposure"] = json!("deferred");
        entry["description"] = json!("Greets people");
        entry["searchKeywords"] = json!(["salutation"]);
        json!({"shell": entry})
    });
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.run("go");
    assert_eq!(declared(&scene, 0), ["tool_search"]);
    let prompt = scene.server.wait_request(0).body.to_string();
    assert!(prompt.contains("Tools of the server shell are found with tool_search: Greets people"), "{prompt}");
    assert!(!prompt.contains("Greet people by name."), "the search has started the server, not the prompt: {prompt}");
    assert_eq!(declared(&scene, 1), ["tool_search", "mcp__shell__greet"]);
    let results = scene.tool_results();
    assert!(texts(&results[0]["content"]).contains("\"who\""), "{results:?}");
    assert_eq!(results[0]["details"]["tools"], json!(["mcp__shell__greet"]));
    assert_eq!(texts(&results[1]["content"]), "Hello from the server");
    // A resumed session declares the same tools, byte for byte.
    let path = scene.state()["sessionFile"].as_str().expect("a file").to_owned();
    let mut second = scene.again(&["--session", &path]);
    second.data(json!({"type": "prompt", "message": "and now"}));
    second.wait_type("agent_settled");
    let tools = |request: usize| scene.server.wait_request(request).body["tools"].to_string();
    assert_eq!(tools(3), tools(2));
    second.finish();
    finish(scene, &server);
}

#[test]
fn a_session_that_has_found_tools_declares_them_without_a_cache() {
    let turns =
        [Turn::call("tool_search", json!({"query": "greets", "limit": 1})), Turn::text("done"), Turn::text("resumed")];
    let (model, home, server) = home_answering(turns, |server| {
        let mut entry = entry(server);
        entry["exposure"] = json!("deferred");
        json!({"shell": entry})
    });
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.run("go");
    let path = scene.state()["sessionFile"].as_str().expect("a file").to_owned();
    std::fs::remove_dir_all(scene.home.agent().join("pith-mcp")).expect("a cache");
    let mut second = scene.again(&["--session", &path]);
    second.data(json!({"type": "prompt", "message": "and now"}));
    second.wait_type("agent_settled");
    assert_eq!(declared(&scene, 2), ["tool_search", "mcp__shell__greet"]);
    second.finish();
    finish(scene, &server);
}

#[test]
fn an_abort_ends_a_search_that_waits_for_a_server() {
    let turns = [Turn::call("tool_search", json!({"query": "anything"}))];
    let (model, home, _) = home_answering(
        turns,
        |_| json!({"mute": {"command": "sh", "args": ["-c", "while read -r line; do :; done"], "exposure": "deferred"}}),
    );
    home.write_agent_file("settings.json", json!({"mcp": {"startupWait": 600}}).to_string());
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.command(json!({"type": "get_mcp_servers"}));
    scene.prompt("go");
    scene.host.wait(|frame| frame["type"] == "mcp_server_update" && frame["state"] == "starting");
    scene.command(json!({"type": "abort"}));
    assert_eq!(texts(&scene.tool_results()[0]["content"]), "Operation aborted");
    scene.finish();
}

#[test]
fn a_deferred_tool_that_was_not_found_runs_and_is_declared_from_then_on() {
    let (model, home, server) = home_with(|server| {
        let mut entry = entry(server);
        entry["toolExposure"] = json!({"greet": "deferred"});
        json!({"shell": entry})
    });
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.run("go");
    assert_eq!(declared(&scene, 0), ["mcp__shell__visit", "mcp__shell__wait", "tool_search"]);
    assert_eq!(texts(&scene.tool_results()[0]["content"]), "Hello from the server");
    assert_eq!(declared(&scene, 1), ["mcp__shell__visit", "mcp__shell__wait", "tool_search", "mcp__shell__greet"]);
    finish(scene, &server);
}
