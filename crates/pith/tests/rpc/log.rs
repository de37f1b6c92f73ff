//! What `PITH_LOG` shows, and what it never shows; recording and replaying model calls.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pith_testkit::{Api, Fault, ModelServer, Script, TempHome, Turn};
use serde_json::{Map, Value, json};

use crate::support::{Scene, builder};

/// Keys in every place a key can be in.
const KEYS: [&str; 4] =
    ["key-of-the-header-71", "key-of-the-address-72", "key-of-the-file-73", "key-of-the-command-74"];

fn home_with_key(server: &ModelServer, place: usize) -> TempHome {
    let home = TempHome::new();
    let key = KEYS[place];
    let url = if place == 1 { server.url().replace("http://", &format!("http://user:{key}@")) } else { server.url() };
    home.write_models(&url, |models| {
        let provider = &mut models["providers"][Api::Anthropic.provider()];
        match place {
            0 => {
                provider["apiKey"] = json!(key);
                provider["headers"] = json!({"x-team-key": key});
            }
            2 => {
                provider.as_object_mut().expect("a provider").remove("apiKey");
            }
            3 => provider["apiKey"] = json!(format!("!printf %s {key}")),
            _ => {}
        }
    });
    if place == 2 {
        let stored = json!({Api::Anthropic.provider(): {"type": "api_key", "key": key}});
        home.write_agent_file("auth.json", stored.to_string());
    }
    home
}

#[test]
fn keys_are_in_no_log() {
    for (place, key) in KEYS.iter().enumerate() {
        let call = Turn::call("bash", json!({"command": "echo done"}));
        let body =
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": format!("no: {key}")}});
        let refusal = Turn::failing(Fault::Http { status: 400, body, headers: Map::new() });
        let server = ModelServer::start(Script::of([Turn::overloaded(), call, Turn::text("done"), refusal]));
        let home = home_with_key(&server, place);
        home.write_settings(&json!({"retry": {"baseDelayMs": 1}}));
        let log = home.work().join("pith.log").display().to_string();
        let mut scene = Scene::in_home(server, home, |builder| {
            builder.env("PITH_LOG", "trace").env("PITH_LOG_FILE", &log).env("RUST_LOG", "trace")
        });
        scene.run("hello");
        // The server repeats the key it was given.
        scene.run("again");
        let sent = scene.server.requests().iter().any(|request| format!("{:?}", request.headers).contains(key));
        assert!(sent || place == 1, "the key was used: {key}");
        scene.host.finish();
        let text = fs::read_to_string(&log).expect("a log");
        assert_eq!(fs::metadata(&log).expect("a log").permissions().mode() & 0o777, 0o600);
        for wanted in ["pith::command", "pith::tool", "retry", "status=529", "status=200", "status=400", "first byte"] {
            assert!(text.contains(wanted), "{wanted} is missing in\n{text}");
        }
        let shown: Vec<_> = text.lines().filter(|line| line.contains(key)).collect();
        assert!(shown.is_empty(), "{shown:#?}");
        // Base64 of the address's credentials is a secret as well.
        assert!(!text.contains("dXNlcjp"), "{text}");
    }
}

/// A line without what is different each time: moments, durations, ids, sizes, ports, paths.
fn shape(line: &str) -> String {
    let words =
        line.split(' ').enumerate().filter(|(at, word)| *at > 0 && !word.is_empty()).map(|(_, word)| {
            match word.split_once('=').filter(|(name, _)| !name.contains(['{', '"'])) {
                Some((name, _))
                    if ["took", "id", "path", "cwd", "url", "n_bytes", "tokens", "input"].contains(&name) =>
                {
                    format!("{name}=…{}", if word.ends_with("}:") { "}:" } else { "" })
                }
                _ if word.starts_with("run{session=") => {
                    let rest = word.split_once('}').map_or("", |(_, rest)| rest);
                    format!("run{{session=…}}{rest}")
                }
                _ => word.to_owned(),
            }
        });
    words.collect::<Vec<_>>().join(" ")
}

/// The first block of that language below a heading of a page.
fn block(page: &str, heading: &str, language: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join(page)).expect(page);
    let (_, below) = text.split_once(heading).expect(heading);
    let (_, block) = below.split_once(&format!("```{language}\n")).expect(language);
    block.split_once("```").expect("a block ends").0.to_owned()
}

#[test]
fn the_log_in_the_documentation_is_what_pith_prints() {
    let call = Turn::call("bash", json!({"command": "echo hello"}));
    let mut scene =
        Scene::with(Script::of([call, Turn::text("It says hello.")]), |builder| builder.env("PITH_LOG", "debug"));
    scene.run("What does `echo hello` say?");
    scene.host.finish();
    let log = scene.host.stderr();
    let printed: Vec<_> = log.lines().filter(|line| line.contains(" pith::")).map(shape).collect();
    let documented = block("docs/debugging.md", "## What pith does", "text");
    let documented: Vec<_> = documented.lines().map(shape).collect();
    assert_eq!(printed, documented, "the log is now\n{log}");
}

#[test]
fn a_wish_that_cannot_be_read_is_told_and_nothing_else_changes() {
    let mut scene = Scene::with(Script::of([Turn::text("hi")]), |builder| builder.env("PITH_LOG", "loud"));
    scene.run("hello");
    scene.host.finish();
    let stderr = scene.host.stderr();
    assert_eq!(
        stderr.trim(),
        "Warning: PITH_LOG: \"loud\" is not a level; there are off, error, warn, info, debug and trace"
    );
}

#[test]
fn verbose_logs_to_stderr_and_without_it_nothing_is_written() {
    let mut scene = Scene::with(Script::of([Turn::text("hi")]), |builder| builder.args(["--verbose"]));
    scene.run("hello");
    scene.host.finish();
    assert!(scene.host.stderr().contains("DEBUG"), "{}", scene.host.stderr());
    let mut scene = Scene::new([Turn::text("hi")]);
    scene.run("hello");
    scene.host.finish();
    assert_eq!(scene.host.stderr(), "");
}

#[test]
fn a_recorded_conversation_is_replayed_without_a_server() {
    let server = ModelServer::start(Script::of([
        Turn::call("bash", json!({"command": "echo hello"})),
        Turn::text("It says hello."),
    ]));
    let home = TempHome::for_server(&server);
    let tape = home.work().join("tape").display().to_string();
    let mut scene = Scene::in_home(server, home, |builder| builder.env("PITH_RECORD", &tape));
    let recorded = scene.run("What does it say?");
    scene.host.finish();
    let names: Vec<_> = ["0001.json", "0001.body", "0002.json", "0002.body"].into();
    for name in names {
        let text = fs::read_to_string(Path::new(&tape).join(name)).expect(name);
        assert!(!text.contains("mock-key"), "{name}: {text}");
    }
    let Scene { home, server, host } = scene;
    drop((server, host));
    let mut host = builder().rpc(Api::Anthropic).home(&home).env("PITH_REPLAY", &tape).spawn();
    host.data(json!({"type": "prompt", "message": "What does it say?"}));
    host.wait_type("agent_settled");
    let texts = |frames: &[Value]| -> Vec<String> {
        let ends = frames.iter().filter(|frame| frame["type"] == "message_end");
        ends.map(|frame| frame["message"]["content"][0]["text"].to_string()).collect()
    };
    assert_eq!(texts(&host.frames()), texts(&recorded));
    host.finish();
}
