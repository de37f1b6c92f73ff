//! Instructions, skills, templates, trust, and reading them again.

use pith_testkit::{Api, Host, ModelServer, Script, TempHome, Turn};
use serde_json::{Value, json};

use super::support::{Scene, assert_like, builder, of_type, sent_texts};

const SKILL: &str = "---\nname: tidy\ndescription: Tidies up.\n---\nTidy everything.\n";

fn home(turns: impl IntoIterator<Item = Turn>) -> (TempHome, ModelServer) {
    let server = ModelServer::start(Script::of(turns));
    (TempHome::for_server(&server), server)
}

fn host(home: &TempHome, arguments: &[&str]) -> Host {
    builder().rpc(Api::Anthropic).home(home).args(arguments).spawn()
}

fn names(host: &mut Host) -> Vec<String> {
    let data = host.data(json!({"type": "get_commands"}));
    data["commands"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|command| command["name"].as_str().expect("a name").to_owned())
        .collect()
}

fn run(host: &mut Host, message: &str) {
    host.send(json!({"type": "prompt", "message": message}));
    host.wait_type("agent_settled");
}

/// The system prompt of a request.
fn system(body: &Value) -> String {
    body["system"][0]["text"].as_str().expect("a system prompt").to_owned()
}

#[test]
fn templates_and_skills_are_listed_with_where_they_come_from() {
    let (home, _server) = home([]);
    home.write_file("../home/.pi/agent/prompts/fix.md", "Fix $1.");
    home.write_file("../home/.pi/agent/skills/tidy/SKILL.md", SKILL);
    let mut host = host(&home, &[]);
    let data = host.data(json!({"type": "get_commands"}));
    let agent = home.agent();
    assert_eq!(
        data["commands"][0],
        json!({"name": "fix", "description": "Fix $1.", "source": "prompt", "location": "user",
            "path": agent.join("prompts/fix.md"),
            "sourceInfo": {"path": agent.join("prompts/fix.md"), "source": "auto", "scope": "user",
                "origin": "top-level", "baseDir": agent}})
    );
    assert_eq!(
        (data["commands"][1]["name"].as_str(), data["commands"][1]["source"].as_str()),
        (Some("skill:tidy"), Some("skill"))
    );
}

#[test]
fn prompts_steering_and_follow_ups_expand_templates() {
    let turns = [
        Turn::text("one by one").chunk(3).hold_after(1),
        Turn::text("two"),
        Turn::text("three"),
        Turn::silent(),
        Turn::text("five"),
    ];
    let (home, server) = home(turns);
    home.write_file("../home/.pi/agent/prompts/say.md", "Expanded $1.");
    let mut host = host(&home, &[]);
    host.send(json!({"type": "prompt", "message": "/say prompt"}));
    server.wait_held(0);
    host.data(json!({"type": "steer", "message": "/say steer"}));
    host.data(json!({"type": "follow_up", "message": "/say follow"}));
    host.data(json!({"type": "prompt", "message": "/say queued", "streamingBehavior": "followUp"}));
    server.release(0);
    server.wait_request(3);
    host.data(json!({"type": "abort_and_prompt", "message": "/say abort"}));
    host.wait_type("agent_start");
    let sent = sent_texts(&server.wait_request(4).body);
    for word in ["prompt", "steer", "follow", "queued", "abort"] {
        assert!(sent.contains(&format!("Expanded {word}.")), "{word} is missing in {sent}");
    }
}

#[test]
fn a_skill_expands_to_its_text_and_an_unknown_one_stays() {
    let (home, server) = home([Turn::text("a"), Turn::text("b")]);
    home.write_file("../home/.pi/agent/skills/tidy/SKILL.md", SKILL);
    let mut host = host(&home, &[]);
    run(&mut host, "/skill:tidy now please");
    run(&mut host, "/skill:nope x");
    let path = home.agent().join("skills/tidy");
    let expected = format!(
        "<skill name=\"tidy\" location=\"{0}/SKILL.md\">\nReferences are relative to {0}.\n\nTidy everything.\n</skill>\n\nnow please",
        path.display()
    );
    let sent = sent_texts(&server.requests()[1].body);
    assert!(sent.contains(&expected) && sent.contains("/skill:nope x"), "{sent}");
    assert!(system(&server.requests()[0].body).contains("<name>tidy</name>"));
}

#[test]
fn an_unreadable_skill_leaves_the_text_and_is_reported() {
    let (home, server) = home([Turn::text("a")]);
    home.write_file("extra/tidy/SKILL.md", SKILL);
    let mut host = host(&home, &["--skill", "extra/tidy/SKILL.md"]);
    host.data(json!({"type": "get_state"}));
    // Unreadable, but not changed: the file is read only when it is used.
    let file = home.work().join("extra/tidy/SKILL.md");
    std::fs::remove_file(&file).expect("removed");
    std::fs::create_dir(&file).expect("a directory in its place");
    run(&mut host, "/skill:tidy");
    assert!(sent_texts(&server.requests()[0].body).contains("/skill:tidy"));
}

#[test]
fn instructions_reach_the_model_and_flags_change_them() {
    let check = |arguments: &[&str], has: &[&str], has_not: &[&str]| {
        let (home, server) = home([Turn::text("a")]);
        home.write_file("AGENTS.md", "Use tabs.");
        home.write_file("own.md", "You are a poet.");
        let mut host = host(&home, arguments);
        run(&mut host, "hi");
        let prompt = system(&server.requests()[0].body);
        has.iter().for_each(|text| assert!(prompt.contains(text), "{text} is missing in {prompt}"));
        has_not.iter().for_each(|text| assert!(!prompt.contains(text), "{text} is in {prompt}"));
    };
    check(&[], &["<rules>", "Use tabs.", "<project_instructions path=\"", "<cwd>"], &[]);
    check(&["--no-context-files"], &["<rules>"], &["Use tabs."]);
    check(&["--system-prompt", "own.md"], &["You are a poet.", "Use tabs."], &["<rules>", "<tools>"]);
    check(
        &["--append-system-prompt", "Rhyme.", "--append-system-prompt", "Twice."],
        &["<rules>", "Rhyme.", "Twice."],
        &[],
    );
}

#[test]
fn flags_limit_what_is_found() {
    let (home, _server) = home([]);
    home.write_file("../home/.pi/agent/skills/tidy/SKILL.md", SKILL);
    home.write_file("../home/.pi/agent/prompts/fix.md", "Fix.");
    home.write_file("extra/own.md", "Own.");
    let check = |arguments: &[&str], expected: &[&str]| {
        assert_eq!(names(&mut host(&home, arguments)), expected, "{arguments:?}")
    };
    check(&[], &["fix", "skill:tidy"]);
    check(&["--no-skills"], &["fix"]);
    check(&["-np", "--prompt-template", "extra/own.md"], &["own", "skill:tidy"]);
    check(&["--skills", "x*,y*"], &["fix"]);
}

#[test]
fn a_project_is_not_trusted_by_default() {
    let (home, _server) = home([]);
    home.write_file(".pi/prompts/local.md", "Do it.");
    home.write_file(".pi/settings.json", r#"{"steeringMode":"all"}"#);
    let check = |arguments: &[&str], commands: &[&str], mode: &str| {
        let mut host = host(&home, arguments);
        let state = host.data(json!({"type": "get_state"}));
        assert_eq!(
            (names(&mut host), state["steeringMode"].as_str()),
            (commands.iter().map(|&name| name.to_owned()).collect(), Some(mode))
        );
    };
    check(&[], &[], "one-at-a-time");
    check(&["--approve"], &["local"], "all");
    check(&["--approve", "--no-approve"], &[], "one-at-a-time");
    let work = home.work().canonicalize().expect("work directory");
    home.write_file("../home/.pi/agent/trust.json", json!({work.to_str().expect("UTF-8"): true}).to_string());
    check(&[], &["local"], "all");
    check(&["--no-approve"], &[], "one-at-a-time");
    home.write_file("../home/.pi/agent/trust.json", "{}");
    home.write_settings(&json!({"defaultProjectTrust": "always"}));
    check(&[], &["local"], "all");
}

#[test]
fn reload_tells_what_changed_and_keeps_the_conversation() {
    let (home, server) = home([Turn::text("a"), Turn::text("b"), Turn::text("c")]);
    let mut host = host(&home, &[]);
    run(&mut host, "one");
    assert_eq!(host.data(json!({"type": "reload"})), json!({"changes": []}));
    run(&mut host, "two");
    assert_eq!(system(&server.requests()[0].body), system(&server.requests()[1].body), "byte-identical");
    home.write_file("../home/.pi/agent/prompts/fix.md", "Fix.");
    home.write_file("AGENTS.md", "Use tabs.");
    home.write_settings(&json!({"maxTurns": 3}));
    let changes = host.data(json!({"type": "reload"}))["changes"].clone();
    let told: Vec<_> =
        changes.as_array().expect("a list").iter().map(|change| (&change["change"], &change["resource"])).collect();
    let (added, changed) = (json!("added"), json!("changed"));
    let (prompt, file, settings) = (json!("prompt"), json!("context_file"), json!("settings"));
    assert_eq!(told, [(&added, &prompt), (&added, &file), (&changed, &settings)]);
    run(&mut host, "/fix");
    let request = server.requests().remove(2).body;
    assert!(system(&request).contains("Use tabs."));
    assert!(sent_texts(&request).contains("one") && sent_texts(&request).contains("Fix."));
}

#[test]
fn changed_files_are_noticed_before_a_prompt() {
    let (home, server) = home([Turn::text("a"), Turn::text("b")]);
    home.write_file("AGENTS.md", "Use tabs.");
    let mut host = host(&home, &[]);
    run(&mut host, "one");
    home.write_file("AGENTS.md", "Use spaces, always.");
    run(&mut host, "two");
    assert!(system(&server.requests()[0].body).contains("Use tabs."));
    assert!(system(&server.requests()[1].body).contains("Use spaces, always."));
}

#[test]
fn diagnostics_name_file_and_reason() {
    let (home, _server) = home([]);
    home.write_settings(&json!({"steeringMode": 7}));
    home.write_file("../home/.pi/agent/skills/bad/SKILL.md", "---\nname: bad\n---\nNo description.");
    home.write_file("../home/.pi/agent/auth.json", "[");
    let mut host = host(&home, &["--skill", "nowhere"]);
    let data = host.data(json!({"type": "get_diagnostics"}));
    let all = data["diagnostics"].as_array().expect("a list");
    let find = |path: &str, text: &str| {
        let is_it = |found: &&Value| {
            found["path"].as_str().is_some_and(|at| at.ends_with(path))
                && found["message"].as_str().is_some_and(|said| said.contains(text))
        };
        let found = all.iter().find(is_it).unwrap_or_else(|| panic!("nothing about {path} in {all:#?}"));
        assert!(found["type"].is_string() && found["code"].is_string(), "{found}");
    };
    find("settings.json", "steeringMode");
    find("bad/SKILL.md", "description is required");
    find("auth.json", "Invalid credentials file");
    find("nowhere", "does not exist");
}

#[test]
fn a_clean_home_has_no_diagnostics() {
    let mut scene = Scene::new([]);
    assert_eq!(scene.host.data(json!({"type": "get_diagnostics"})), json!({"diagnostics": []}));
}

/// A host with an untrusted project, after its first line.
fn host_asked(first: Value) -> (Host, TempHome) {
    let (home, _server) = home([]);
    home.write_file(".pi/prompts/local.md", "Do it.");
    home.write_file(".pi/settings.json", r#"{"steeringMode":"all"}"#);
    let mut host = host(&home, &[]);
    assert_eq!(host.ask(first)["success"], true);
    (host, home)
}

#[test]
fn a_host_with_dialogs_is_asked_about_trust() {
    let (mut host, home) = host_asked(json!({"type": "get_state", "ui": true}));
    let frames = host.frames();
    let question = frames.iter().find(|frame| frame["type"] == "extension_ui_request").expect("a question");
    assert_eq!((&question["method"], &question["timeout"]), (&json!("confirm"), &json!(30_000)));
    assert!(question["message"].as_str().expect("a text").contains(".pi/prompts"), "{question}");
    assert_eq!(names(&mut host), [] as [&str; 0], "not before the answer");
    host.send(json!({"type": "extension_ui_response", "id": "someone else", "confirmed": true}));
    assert_eq!(names(&mut host), [] as [&str; 0], "not by another answer");
    host.send(json!({"type": "extension_ui_response", "id": question["id"], "confirmed": true}));
    assert_eq!(names(&mut host), ["local"]);
    assert_eq!(host.data(json!({"type": "get_state"}))["steeringMode"], "all");
    assert!(!home.agent().join("trust.json").exists(), "hosts remember for themselves");
}

#[test]
fn a_no_or_no_answer_keeps_a_project_untrusted() {
    let (mut host, _home) = host_asked(json!({"type": "get_state", "ui": true}));
    let frames = host.frames();
    let question = frames.iter().find(|frame| frame["type"] == "extension_ui_request").expect("a question").clone();
    host.send(json!({"type": "extension_ui_response", "id": question["id"], "confirmed": false}));
    host.send(json!({"type": "extension_ui_response", "id": question["id"], "confirmed": true}));
    assert_eq!(names(&mut host), [] as [&str; 0], "the first answer counts");

    // An open question does not keep pith from ending.
    let (mut host, _home) = host_asked(json!({"type": "get_state", "ui": true}));
    assert_eq!(host.finish().1, 0);

    let (mut host, _home) = host_asked(json!({"type": "get_state"}));
    host.data(json!({"type": "get_state", "ui": true}));
    assert!(host.frames().iter().all(|frame| frame["type"] != "extension_ui_request"), "only the first line counts");
}

#[test]
fn reload_applies_settings_of_tools() {
    let turns = [Turn::call("bash", json!({"command": "echo got=$GREETING"})), Turn::text("done")];
    let mut scene = Scene::new(turns);
    // It has read the settings of that time.
    scene.state();
    scene.home.write_settings(&json!({"shellCommandPrefix": "GREETING=hello", "defaultTools": ["bash"]}));
    let changes = scene.data(json!({"type": "reload"}));
    assert_like(&changes["changes"][0], &json!({"resource": "settings"}));
    let frames = scene.run("go");
    let end = of_type(&frames, "tool_execution_end")[0].clone();
    assert_eq!(end["result"]["content"][0]["text"], "got=hello\n", "{end}");
    let tools = scene.server.wait_request(0).body["tools"].clone();
    assert_eq!(tools.as_array().map(Vec::len), Some(1), "{tools}");
    scene.finish();
}
