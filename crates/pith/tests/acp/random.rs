//! An editor that does anything at any moment. Whatever it does, every request gets one answer, every frame fits the
//! schema, and nothing is left running.
//!
//! `PITH_RANDOM_SEED=7` plays one case, `PITH_RANDOM_CASES=500` that many.

use std::ops::Range;

use pith_testkit::process::no_process_with;
use pith_testkit::{Dice, Host, ModelServer, Script, TempHome, timeout};
use serde_json::{Value, json};

use crate::support::Editor;

/// How often an editor does something.
const STEPS: u64 = 80;
/// More sessions than this say nothing new.
const MAX_SESSIONS: usize = 8;
const PROMPTS: [&str; 9] = [
    "hello",
    "use a tool",
    "wait for ever",
    "write a file",
    "tell a long story",
    "/stats",
    "/compact",
    "/model nobody",
    "/etc/passwd",
];
/// Lines that are no requests.
const GARBAGE: [&str; 5] = ["{}", "[]", "nonsense", r#"{"jsonrpc":"2.0","id":"p1","result":{}}"#, "\u{feff}{"];

#[test]
fn every_request_of_any_editor_is_answered() {
    for seed in seeds() {
        Random::new(seed).play();
    }
}

/// The cases to play.
fn seeds() -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("PITH_RANDOM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PITH_RANDOM_CASES").unwrap_or(4),
    }
}

/// What the model answers to the prompts.
fn script() -> Value {
    let call = |name: &str, args: Value| json!([{"blocks": [{"type": "toolCall", "name": name, "args": args}]}]);
    json!({
        "routes": [
            {"match": "use a tool", "turns": call("bash", json!({"command": "echo done"}))},
            {"match": "wait for ever", "turns": call("bash", json!({"command": "sleep 1000"}))},
            {"match": "write a file", "turns": call("write", json!({"path": "a.txt", "content": "a\n"}))},
            {"match": "a long story", "turns": [{"blocks": [{"type": "text", "chars": 20000}], "delay_ms": 1}]},
        ],
        "default": {"text": "You said: ${prompt}"},
    })
}

struct Random {
    seed: u64,
    dice: Dice,
    editor: Editor,
    /// Frames before this one were looked at.
    n_seen: usize,
    n_requests: u64,
    sessions: Vec<String>,
}

impl Random {
    fn new(seed: u64) -> Self {
        let server = ModelServer::start(Script::of([]));
        let home = TempHome::for_server(&server);
        home.write_file("script.json", script().to_string());
        let builder = Host::builder(env!("CARGO_BIN_EXE_pith")).home(&home).args(["acp", "--script"]);
        let host = builder.arg(home.work().join("script.json")).spawn();
        let mut editor = Editor::of(host, home, server);
        let able = json!({
            "fs": {"readTextFile": true, "writeTextFile": true},
            "elicitation": {"form": {}, "url": {}},
            "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
            "_meta": {"terminal_output": true, "pith": {"events": true}},
        });
        let capabilities = if seed.is_multiple_of(2) { able } else { json!({}) };
        editor.ask("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities}));
        Random { seed, dice: Dice::new(seed), editor, n_seen: 0, n_requests: 1, sessions: Vec::new() }
    }

    #[allow(clippy::print_stderr, reason = "shown if the case fails")]
    fn play(mut self) {
        eprintln!("case {}", self.seed);
        for _ in 0..STEPS {
            self.act();
            if self.dice.one_in(3) {
                // Lets the program do something before the next step.
                self.request("session/list", json!({}));
                self.editor.answer(self.n_requests);
            }
            self.look();
        }
        let marker = self.editor.host.marker().to_owned();
        self.editor.finish();
        no_process_with(&marker, timeout());
    }

    /// A session that was opened, or none.
    fn session(&mut self) -> String {
        let n_sessions = self.sessions.len() as u64;
        let index = self.dice.below(n_sessions + 1) as usize;
        self.sessions.get(index).cloned().unwrap_or_else(|| "none".to_owned())
    }

    fn request(&mut self, method: &str, params: Value) {
        self.n_requests = self.editor.send(method, params);
    }

    fn act(&mut self) {
        let (session, cwd) = (self.session(), self.editor.home.work());
        let prompt = json!([{"type": "text", "text": self.dice.pick(&PROMPTS)}]);
        let place = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
        match self.dice.below(20) {
            0 | 1 if self.sessions.len() < MAX_SESSIONS => self.request("session/new", place),
            0..=5 => self.request("session/prompt", json!({"sessionId": session, "prompt": prompt})),
            6 => {
                let steers = json!({"pith": {"delivery": "steer"}});
                self.request("session/prompt", json!({"sessionId": session, "prompt": prompt, "_meta": steers}));
            }
            7 => self.request("_session/steering", json!({"sessionId": session, "prompt": prompt})),
            8 => self.editor.notify("session/cancel", json!({"sessionId": session})),
            9 => {
                let id = 1 + self.dice.below(self.n_requests);
                self.editor.notify("$/cancel_request", json!({"requestId": id}));
            }
            10 => self.request("session/load", place),
            11 => self.request("session/resume", place),
            12 => self.request("session/fork", place),
            13 => {
                let method = self.dice.pick(&["session/close", "session/delete", "session/status"]);
                self.request(method, json!({"sessionId": session}));
            }
            14 => {
                let mode = self.dice.pick(&["full", "ask", "write", "read-only", "none"]);
                self.request("session/set_mode", json!({"sessionId": session, "modeId": mode}));
            }
            15 => {
                let option = self.dice.pick(&["mode", "model", "thought_level", "none"]);
                let value = self.dice.pick(&["ask", "scripted/script", "high"]);
                let change = json!({"sessionId": session, "configId": option, "value": value});
                self.request("session/set_config_option", change);
            }
            16 | 17 => {
                let own =
                    ["state", "entries", "tree", "diagnostics", "mcp", "compact", "reload", "clear_queue", "none"];
                let method = self.dice.pick(&own);
                self.request(&format!("_pith/{method}"), json!({"sessionId": session}));
            }
            18 => {
                let kind = self.dice.pick(&["get_messages", "new_session", "cycle_model", "abort", "none"]);
                self.request("_pith/command", json!({"sessionId": session, "command": {"type": kind}}));
            }
            _ => {
                let line = self.dice.pick(&GARBAGE);
                self.editor.host.send_raw(format!("{line}\n"));
            }
        }
    }

    /// Learns of sessions, and answers what pith asks: rightly, wrongly, or not at all.
    fn look(&mut self) {
        for frame in self.editor.host.frames().split_off(self.n_seen) {
            self.n_seen += 1;
            if let Some(session) = frame["result"]["sessionId"].as_str() {
                self.sessions.push(session.to_owned());
            }
            if frame.get("method").is_none() || frame.get("id").is_none() {
                continue;
            }
            let right = match frame["method"].as_str() {
                Some("session/request_permission") => {
                    json!({"outcome": {"outcome": "selected", "optionId": frame["params"]["options"][0]["optionId"]}})
                }
                Some("fs/read_text_file") => json!({"content": "text of a buffer\n"}),
                _ => json!({}),
            };
            match self.dice.below(6) {
                0 => {}
                1 => self.editor.refuse(&frame, "no"),
                2 => self.editor.reply(&frame, json!({"outcome": {"outcome": "cancelled"}})),
                3 => self.editor.reply(&frame, json!(["nonsense"])),
                _ => self.editor.reply(&frame, right),
            }
        }
    }
}
