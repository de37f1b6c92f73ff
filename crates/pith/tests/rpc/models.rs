//! Which model answers, and at which thinking level.

use pith_testkit::{Api, ModelServer, Script, TempHome, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, assert_order, builder};

fn names(models: &Value) -> Vec<String> {
    let list = models["models"].as_array().expect("a list");
    let name = |model: &Value| {
        format!("{}/{}", model["provider"].as_str().unwrap_or("?"), model["id"].as_str().unwrap_or("?"))
    };
    let mut names: Vec<_> = list.iter().map(name).filter(|name| name.starts_with("mock-")).collect();
    names.sort();
    names
}

#[test]
fn models_with_credentials_are_listed() {
    let mut scene = Scene::new([]);
    let models = scene.data(json!({"type": "get_available_models"}));
    let wanted = [
        "mock-anthropic/claude-mock",
        "mock-anthropic/plain-mock",
        "mock-google/gemini-mock",
        "mock-openai/gpt-mock",
        "mock-responses/gpt-mock-r",
    ];
    assert_eq!(names(&models), wanted);
    for model in models["models"].as_array().expect("a list") {
        for key in
            ["id", "name", "api", "provider", "baseUrl", "reasoning", "input", "cost", "contextWindow", "maxTokens"]
        {
            assert!(model.get(key).is_some(), "{key} is missing in {model}");
        }
        assert!(!model.to_string().contains("mock-key"));
    }
    scene.finish();
    let mut host = builder().args(["--mode", "rpc"]).home(&TempHome::new()).spawn();
    assert_eq!(host.data(json!({"type": "get_available_models"})), json!({"models": []}));
}

#[test]
fn a_chosen_model_gets_the_next_request() {
    let mut scene = Scene::new([Turn::text("from the first"), Turn::text("from the second")]);
    scene.run("one");
    let model = scene.data(json!({"type": "set_model", "provider": "mock-responses", "modelId": "gpt-mock-r"}));
    assert_like(&model, &json!({"id": "gpt-mock-r", "provider": "mock-responses", "api": "openai-responses"}));
    assert_eq!(scene.state()["model"], model);
    scene.run("two");
    let apis: Vec<_> = scene.server.requests().iter().map(|request| request.api).collect();
    assert_eq!(apis, [Some(Api::Anthropic), Some(Api::Responses)]);
    // Nothing is written to the user's settings.
    assert!(!scene.home.agent().join("settings.json").exists());
    let entries = scene.home.sessions().remove(0).entries;
    let change = entries.iter().rfind(|entry| entry["type"] == "model_change").expect("recorded");
    assert_like(change, &json!({"provider": "mock-responses", "modelId": "gpt-mock-r"}));
    scene.finish();
}

#[test]
fn an_unknown_model_is_refused_and_nothing_changes() {
    let mut scene = Scene::new([]);
    for (provider, id) in [("mock-anthropic", "no-such"), ("nobody", "claude-mock"), ("mock-openai", "claude-mock")] {
        let error = scene.refusal(json!({"type": "set_model", "provider": provider, "modelId": id}));
        assert_eq!(error, format!("Model not found: {provider}/{id}"));
    }
    assert_eq!(scene.state()["model"]["id"], "claude-mock");
    let missing = scene.refusal(json!({"type": "set_model", "provider": "x"}));
    assert_eq!(missing, "Missing required field \"modelId\" for command \"set_model\"");
    scene.finish();
}

#[test]
fn a_change_during_a_run_applies_to_the_next_request() {
    let gate = json!({"command": "echo waiting; until [ -e go ]; do sleep 0.01; done"});
    let mut scene = Scene::new([Turn::call("bash", gate), Turn::text("done")]);
    scene.prompt("go");
    scene.wait_output("waiting");
    scene.command(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
    scene.home.write_file("go", "");
    scene.wait_type("agent_settled");
    let apis: Vec<_> = scene.server.requests().iter().map(|request| request.api).collect();
    assert_eq!(apis, [Some(Api::Anthropic), Some(Api::Completions)]);
    scene.finish();
}

#[test]
fn thinking_levels_are_announced_when_they_change() {
    let mut scene = Scene::new([]);
    let start = scene.frames().len();
    scene.command(json!({"type": "set_thinking_level", "level": "high"}));
    assert_order(
        &scene.frames()[start..],
        &[
            json!({"type": "thinking_level_changed", "level": "high"}),
            json!({"type": "response", "command": "set_thinking_level"}),
        ],
    );
    assert_eq!(scene.state()["thinkingLevel"], "high");
    let start = scene.frames().len();
    scene.command(json!({"type": "set_thinking_level", "level": "high"}));
    assert_eq!(scene.frames().len(), start + 1, "no change, no event");
    scene.finish();
}

#[test]
fn thinking_levels_fit_the_model() {
    let mut scene = Scene::new([]);
    let levels = scene.data(json!({"type": "get_available_thinking_levels"}));
    assert_eq!(levels, json!({"levels": ["off", "minimal", "low", "medium", "high"]}));
    scene.command(json!({"type": "set_thinking_level", "level": "xhigh"}));
    assert_eq!(scene.state()["thinkingLevel"], "high");
    assert_eq!(scene.data(json!({"type": "cycle_thinking_level"})), json!({"level": "off"}));
    assert_eq!(scene.data(json!({"type": "cycle_thinking_level"})), json!({"level": "minimal"}));
    for level in [json!("enormous"), json!(""), json!("High")] {
        let error = scene.refusal(json!({"type": "set_thinking_level", "level": level}));
        assert!(
            error.starts_with("Invalid field \"level\" for command \"set_thinking_level\": expected one of \"off\""),
            "{error}"
        );
    }
    assert_eq!(scene.state()["thinkingLevel"], "minimal");
    scene.finish();
}

#[test]
fn a_model_without_reasoning_does_not_think() {
    let mut scene = Scene::new([Turn::text("hi")]);
    let start = scene.frames().len();
    scene.command(json!({"type": "set_model", "provider": "mock-anthropic", "modelId": "plain-mock"}));
    assert_order(
        &scene.frames()[start..],
        &[
            json!({"type": "thinking_level_changed", "level": "off"}),
            json!({"type": "response", "command": "set_model"}),
        ],
    );
    assert_eq!(scene.state()["thinkingLevel"], "off");
    assert_eq!(scene.data(json!({"type": "get_available_thinking_levels"})), json!({"levels": ["off"]}));
    assert_eq!(scene.ask(json!({"type": "cycle_thinking_level"}))["data"], Value::Null);
    scene.command(json!({"type": "set_thinking_level", "level": "high"}));
    assert_eq!(scene.state()["thinkingLevel"], "off");
    scene.run("go");
    assert_eq!(
        scene.server.wait_request(0).body.get("thinking").filter(|thinking| thinking["type"] != "disabled"),
        None
    );
    scene.finish();
}

#[test]
fn the_level_reaches_the_model() {
    let body = |level: &str| {
        let mut scene = Scene::with(Script::of([Turn::text("hi")]), |builder| builder.args(["--thinking", level]));
        assert_eq!(scene.state()["thinkingLevel"], level);
        scene.run("go");
        let body = scene.server.wait_request(0).body;
        scene.finish();
        body["thinking"]["budget_tokens"].as_u64()
    };
    let (off, low, high) = (body("off"), body("low"), body("high"));
    assert!(off.is_none() && low < high, "{off:?} {low:?} {high:?}");
}

#[test]
fn xcsh_hosts_have_files_of_their_own() {
    let home = TempHome::with_layout(".xcsh");
    home.write_agent_file(
        "models.yml",
        "providers:\n  mine:\n    baseUrl: http://127.0.0.1:9\n    api: anthropic-messages\n    apiKey: k\n    models:\n      - id: m\n",
    );
    home.write_agent_file("config.yml", "steeringMode: all\n");
    let model = |dialect: &str| {
        let mut host = builder().args(["--mode", "rpc", "--dialect", dialect, "--no-session"]).home(&home).spawn();
        let state = host.data(json!({"type": "get_state"}));
        host.finish();
        (state["model"]["provider"].clone(), state["steeringMode"].clone())
    };
    assert_eq!(model("xcsh"), (json!("mine"), json!("all")));
    assert_eq!(model("pi"), (Value::Null, json!("one-at-a-time")));
}

/// A server that answers every request with the same JSON.
fn answering(answer: Value) -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let body = answer.to_string();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    url
}

#[test]
fn a_local_server_is_asked_for_its_models() {
    let url = answering(json!({"data": [{"id": "discovered-7b", "max_model_len": 4096}]}));
    let server = ModelServer::start(Script::new());
    let home = TempHome::new();
    home.write_models(&server.url(), |models| {
        models["providers"]["local"] =
            json!({"baseUrl": url, "api": "openai-completions", "discovery": {"type": "openai"}, "models": []});
    });
    let mut scene = Scene::start(server, home, Api::Anthropic, |builder| builder.env("PI_OFFLINE", "0"));
    // It is asked in the background, so the list is polled until the answer is in it.
    let deadline = std::time::Instant::now() + pith_testkit::timeout();
    loop {
        let models = scene.data(json!({"type": "get_available_models"}))["models"].to_string();
        if models.contains("discovered-7b") {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{models}");
    }
    scene.finish();
}
