//! What the scenes have produced, by the name under which the documents show it.

use std::collections::{BTreeMap, HashMap};

use pith_protocol::Entry;
use pith_testkit::{Host, Normal, TempHome};
use serde_json::{Value, json};

/// Roles of messages.
pub const ROLES: [&str; 8] =
    ["user", "assistant", "toolResult", "bashExecution", "custom", "compactionSummary", "branchSummary", "developer"];

/// Types of content blocks.
pub const BLOCKS: [&str; 4] = ["text", "image", "thinking", "toolCall"];

/// The lines that stand in the documents, by key. The first that came is kept.
#[derive(Default)]
pub struct Exchanges {
    lines: BTreeMap<String, Vec<String>>,
    normal: Normal,
}

impl Exchanges {
    /// Returns the text of a key.
    pub fn text(&self, key: &str) -> Option<String> {
        Some(self.lines.get(key)?.join("\n"))
    }

    /// Keeps frames under a key, unless it has some.
    pub fn keep(&mut self, key: impl Into<String>, frames: &[&Value]) {
        let normal = &mut self.normal;
        self.lines.entry(key.into()).or_insert_with(|| frames.iter().map(|frame| normal.line(frame)).collect());
    }

    /// Takes what a session wrote to its host: events, messages and blocks.
    fn harvest(&mut self, frame: &Value) {
        let kind = frame["type"].as_str().unwrap_or_default();
        match kind {
            "response" => {}
            "extension_ui_request" => {
                let method = frame["method"].as_str().unwrap_or_default();
                self.keep(format!("ui:{method}"), &[frame]);
            }
            "message_update" if frame.get("message").is_none() => {
                let step = frame["assistantMessageEvent"]["type"].as_str().unwrap_or_default();
                self.keep(format!("step:{step}"), &[frame]);
            }
            // The first deltas are empty; a later one says more.
            "message_update" if frame["assistantMessageEvent"].get("delta").is_none() => {}
            _ => self.keep(kind, &[frame]),
        }
        // Others have messages that are not complete.
        if ["message_end", "response"].contains(&kind) {
            self.harvest_messages(frame);
        }
    }

    fn harvest_messages(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                let word = |key: &str| members.get(key).and_then(Value::as_str);
                if let Some(role) =
                    word("role").filter(|role| ROLES.contains(role) && members.contains_key("timestamp"))
                {
                    self.keep(format!("role:{role}"), &[value]);
                    let blocks = members.get("content").and_then(Value::as_array).into_iter().flatten();
                    for block in blocks {
                        let kind = block["type"].as_str().unwrap_or_default();
                        if BLOCKS.contains(&kind) {
                            self.keep(format!("block:{kind}"), &[block]);
                        }
                    }
                }
                members.values().for_each(|member| self.harvest_messages(member));
            }
            Value::Array(items) => items.iter().for_each(|item| self.harvest_messages(item)),
            _ => {}
        }
    }

    fn harvest_entry(&mut self, entry: &Value) {
        let kind = entry["type"].as_str().unwrap_or_default();
        if kind == "session" || Entry::TYPES.contains(&kind) {
            self.keep(format!("entry:{kind}"), &[entry]);
        }
    }
}

/// A session whose commands are kept.
pub struct Scene<'a> {
    pub host: Host,
    pub home: TempHome,
    shown: &'a mut Exchanges,
    n_sent: usize,
    /// Commands that were not answered yet, by id.
    sent: HashMap<String, Value>,
    /// Frames that were kept already.
    n_harvested: usize,
}

impl<'a> Scene<'a> {
    /// Starts pith in a home, with a script for its model.
    pub fn start(shown: &'a mut Exchanges, home: TempHome, script: &Value, arguments: &[&str]) -> Self {
        shown.normal.enter(&home);
        let path = home.tmp().join("script.json");
        std::fs::write(&path, script.to_string()).expect("writable");
        let builder = Host::builder(env!("CARGO_BIN_EXE_pith")).home(&home).args(["--mode", "rpc", "--script"]);
        let host = builder.arg(&path).args(arguments).spawn();
        Scene { host, home, shown, n_sent: 0, sent: HashMap::new(), n_harvested: 0 }
    }

    /// Sends a command that is not waited for, and returns its id.
    pub fn send(&mut self, mut command: Value) -> String {
        self.n_sent += 1;
        let id = format!("req-{}", self.n_sent);
        let Value::Object(members) = command.take() else { panic!("a command is an object") };
        let mut sent = json!({ "id": id });
        sent.as_object_mut().expect("an object").extend(members);
        self.host.send(sent.clone());
        self.sent.insert(id.clone(), sent);
        id
    }

    /// Sends a command, keeps it with its answer under its name, and returns the data.
    #[track_caller]
    pub fn ask(&mut self, command: Value) -> Value {
        let name = command["type"].as_str().expect("a command has a name").to_owned();
        self.variant(&name, command)
    }

    /// Like [`Scene::ask`], under another key.
    #[track_caller]
    pub fn variant(&mut self, key: &str, command: Value) -> Value {
        let id = self.send(command);
        self.answered(key, &id)
    }

    /// Keeps a command that was sent with its answer, and returns the data.
    #[track_caller]
    pub fn answered(&mut self, key: &str, id: &str) -> Value {
        let answer = self.answer(key, id);
        assert_eq!(answer["success"], true, "{answer}");
        answer["data"].clone()
    }

    /// Keeps a command that is refused with its answer.
    #[track_caller]
    pub fn refused(&mut self, key: &str, command: Value) {
        let id = self.send(command);
        let answer = self.answer(key, &id);
        assert_eq!(answer["success"], false, "{answer}");
    }

    /// Sends a command and keeps it with its answer, in which `mask` replaces what is another each time.
    #[track_caller]
    pub fn masked(&mut self, key: &str, command: Value, mask: impl FnOnce(&mut Value)) {
        let id = self.send(command);
        let (sent, mut answer) = self.exchange(&id);
        mask(&mut answer);
        self.shown.keep(key, &[&sent, &answer]);
    }

    #[track_caller]
    fn answer(&mut self, key: &str, id: &str) -> Value {
        let (sent, answer) = self.exchange(id);
        self.shown.keep(key, &[&sent, &answer]);
        answer
    }

    /// Waits for the answer to a command, and returns both.
    #[track_caller]
    fn exchange(&mut self, id: &str) -> (Value, Value) {
        let answer = self.host.response(id);
        self.harvest_to(|frame| *frame == answer);
        (self.sent.remove(id).expect("it was sent"), answer)
    }

    /// Keeps a frame under a key of its own.
    pub fn keep(&mut self, key: &str, frame: &Value) {
        self.shown.keep(key, &[frame]);
    }

    /// Prompts and waits for the end of the work.
    #[track_caller]
    pub fn prompt(&mut self, text: &str) {
        self.ask(json!({"type": "prompt", "message": text}));
        self.settled();
    }

    #[track_caller]
    pub fn settled(&mut self) {
        self.host.wait_type("agent_settled");
        self.harvest_to(|frame| frame["type"] == "agent_settled");
    }

    /// Sends what is no command: an answer to something pith asked.
    pub fn reply(&mut self, key: &str, reply: Value) {
        self.host.send(reply.clone());
        self.shown.keep(key, &[&reply]);
    }

    /// Answers the next dialog of a method, and keeps both.
    #[track_caller]
    pub fn dialog(&mut self, method: &str, answer: (&str, Value)) {
        let request = self.host.wait(|frame| frame["method"] == method);
        let reply = json!({"type": "extension_ui_response", "id": request["id"], answer.0: answer.1});
        self.host.send(reply.clone());
        self.shown.keep(format!("ui:{method}"), &[&request, &reply]);
    }

    /// Keeps what has come since the last time, up to a frame that has come. What follows it may have come or not, and
    /// must not change the order in which ids are first seen.
    fn harvest_to(&mut self, is_last: impl Fn(&Value) -> bool) {
        let frames = self.host.frames();
        let new = &frames[self.n_harvested..];
        let n_new = new.iter().position(is_last).map_or(0, |at| at + 1);
        new[..n_new].iter().for_each(|frame| self.shown.harvest(frame));
        self.n_harvested += n_new;
    }

    /// Ends the session and keeps the lines of its files.
    #[track_caller]
    pub fn end(mut self) {
        let (frames, code) = self.host.finish();
        assert_eq!(code, 0, "{}", self.host.stderr());
        frames[self.n_harvested..].iter().for_each(|frame| self.shown.harvest(frame));
        for file in self.home.sessions() {
            file.entries.iter().for_each(|entry| self.shown.harvest_entry(entry));
        }
    }
}
