//! Where keys come from, and where they must not go.

use std::fs;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pith_testkit::{Api, Fault, Host, HostBuilder, ModelServer, Script, TempHome, Turn};
use serde_json::{Map, Value, json};

use crate::{assert_not_below, assert_not_in};

const STORED: &str = "stored-key-A1b2C3d4E5";
const UNUSED: &str = "unused-key-\"quoted\"/F6g7";
const TOKEN: &str = "access-token-H8i9J0k1";
const REFRESH: &str = "refresh-token-L2m3N4o5";
pub const VARIABLE: &str = "variable-key-P6q7R8s9";
const HEADER: &str = "header-key-T0u1V2w3X4";
const PRINTED: &str = "printed-key-Y5z6A7b8C9";
const GIVEN: &str = "given-key-D0e1F2g3H4";
const RULE: &str = "customer-4711";

/// Every key in every form.
pub fn forms() -> Vec<String> {
    let keys = [STORED, UNUSED, TOKEN, REFRESH, VARIABLE, HEADER, PRINTED, GIVEN, RULE];
    let escaped = |key: &str| json!(key).to_string().trim_matches('"').to_owned();
    keys.iter().flat_map(|key| [(*key).to_owned(), escaped(key), BASE64_STANDARD.encode(key)]).collect()
}

pub fn home(server: &ModelServer) -> TempHome {
    let home = TempHome::new();
    home.write_models(&server.url(), |models| {
        let provider = &mut models["providers"][Api::Anthropic.provider()];
        provider.as_object_mut().expect("a provider").remove("apiKey");
        provider["headers"] = json!({"x-team-key": HEADER, "x-printed": format!("!printf %s {PRINTED}")});
    });
    let stored = json!({
        Api::Anthropic.provider(): {"type": "api_key", "key": STORED},
        "groq": {"type": "api_key", "key": UNUSED},
        "github-copilot": {"type": "oauth", "access": TOKEN, "refresh": REFRESH, "expires": 1},
    });
    home.write_agent_file("auth.json", stored.to_string());
    home.write_agent_file("secrets.yml", "- type: regex\n  content: customer-[0-9]+\n");
    home
}

pub fn start(home: &TempHome, configure: impl FnOnce(HostBuilder) -> HostBuilder) -> Host {
    let agent = home.agent().display().to_string();
    let builder = Host::builder(env!("CARGO_BIN_EXE_pith")).rpc(Api::Anthropic).home(home);
    configure(builder.env("PITH_AGENT_DIR", &agent).env("OPENAI_API_KEY", VARIABLE)).spawn()
}

pub fn run(host: &mut Host, message: &str) {
    host.data(json!({"type": "prompt", "message": message}));
    host.wait_type("agent_settled");
}

/// A command that prints all that a command can find, in several forms and piece by piece.
pub fn printing(home: &TempHome) -> String {
    let agent = home.agent().display().to_string();
    format!(
        "cat {agent}/auth.json {agent}/models.json; env; base64 -w0 {agent}/auth.json; printf %s $OPENAI_API_KEY | base64; \
         echo customer-$((4000 + 711)); k=$OPENAI_API_KEY; for ((i = 0; i < ${{#k}}; i++)); do printf %s \"${{k:i:1}}\"; done; \
         printf '\\033[31m'; seq 1 3000; cat {agent}/auth.json"
    )
}

fn refusal(text: &str) -> Turn {
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": text}});
    Turn::failing(Fault::Http { status: 400, body, headers: Map::new() })
}

#[test]
fn a_key_is_in_no_output_if_all_are_masked() {
    let read = |home: &TempHome| Turn::call("read", json!({"path": home.agent().join("auth.json")}));
    let scratch = ModelServer::start(Script::new());
    let home = home(&scratch);
    drop(scratch);
    let echo = refusal(&format!("no: {STORED} {HEADER} {PRINTED}"));
    let bash = Turn::call("bash", json!({"command": printing(&home)}));
    let server = ModelServer::start(Script::of([bash, read(&home), Turn::text("done"), echo]));
    let models = home.agent().join("models.json");
    let text = fs::read_to_string(&models).expect("models");
    let mut written: Value = serde_json::from_str(&text).expect("JSON");
    written["providers"][Api::Anthropic.provider()]["baseUrl"] = json!(server.url());
    fs::write(&models, written.to_string()).expect("written");
    home.write_settings(&json!({"secrets": {"redact": "all"}}));
    let broken =
        format!("export default (pi) => {{ pi.on(\"agent_start\", () => {{ throw new Error(\"{VARIABLE}\") }}) }}");
    home.write_agent_file("extensions/fails.ts", broken);
    let (tape, log) = (home.work().join("tape"), home.work().join("pith.log"));
    let mut host = start(&home, |builder| {
        let builder = builder.env("PITH_RECORD", &tape.display().to_string());
        builder.env("PITH_LOG", "trace").env("PITH_LOG_FILE", &log.display().to_string())
    });
    run(&mut host, "print everything");
    run(&mut host, "and fail");
    host.data(json!({"type": "bash", "command": printing(&home)}));
    host.data(json!({"type": "get_diagnostics"}));
    host.data(json!({"type": "get_messages"}));
    host.data(json!({"type": "export_html", "outputPath": "page.html"}));
    let lines = host.lines();
    let shown = lines.iter().filter(|line| String::from_utf8_lossy(line).contains("[redacted]")).count();
    assert!(shown > 5, "{}", host.describe());
    assert!(host.frames().iter().any(|frame| frame["type"] == "extension_error"), "{}", host.describe());
    assert!(host.frames().iter().any(|frame| frame["type"] == "tool_execution_update"));
    host.finish();
    let forms = forms();
    host.lines().iter().for_each(|line| assert_not_in("a frame", line, &forms));
    assert_not_in("stderr", host.stderr().as_bytes(), &forms);
    server
        .requests()
        .iter()
        .for_each(|request| assert_not_in("a request", request.body.to_string().as_bytes(), &forms));
    assert!(tape.join("0001.json").exists() && log.exists() && home.work().join("page.html").exists());
    assert_not_below(&home.work(), &forms);
    assert_not_below(&home.tmp(), &forms);
    home.sessions().iter().for_each(|session| {
        assert_not_in("the session", &fs::read(&session.path).expect("a session"), &forms);
    });
}

#[test]
fn by_default_results_stay_and_errors_are_masked() {
    let server = ModelServer::start(Script::of([
        Turn::call("bash", json!({"command": "printf %s $OPENAI_API_KEY"})),
        Turn::text("done"),
        refusal(&format!("no: {VARIABLE} {GIVEN}")),
    ]));
    let home = home(&server);
    let mut host = start(&home, |builder| builder.args(["--api-key", GIVEN]));
    run(&mut host, "print the key");
    let results = host.data(json!({"type": "get_messages"}))["messages"].to_string();
    assert!(results.contains(VARIABLE), "a drop-in changes no result: {results}");
    run(&mut host, "and fail");
    let messages = host.data(json!({"type": "get_messages"}))["messages"].clone();
    let failed = messages.as_array().and_then(|all| all.last()).expect("an answer");
    let error = failed["errorMessage"].as_str().expect("an error");
    assert!(error.contains("no: [redacted] [redacted]"), "{error}");
    host.data(json!({"type": "export_html", "outputPath": "page.html"}));
    let page = fs::read(home.work().join("page.html")).expect("a page");
    assert_not_in("the page", &page, &forms());
    host.finish();
}
