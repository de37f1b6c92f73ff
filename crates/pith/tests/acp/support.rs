//! An editor: sends requests, waits for their answers, and reads what it is told.

use std::collections::HashMap;

use pith_testkit::{Api, Host, HostBuilder, ModelServer, Script, TempHome, Turn, timeout};
use serde_json::{Map, Value, json};

use crate::schema;

/// A started `pith acp` with its own home and scripted model.
pub struct Editor {
    pub host: Host,
    pub home: TempHome,
    pub server: ModelServer,
    n_sent: u64,
    /// The methods of requests by their id as JSON.
    methods: HashMap<String, String>,
}

impl Editor {
    /// Starts pith with a model that gives these answers, and introduces a client that can show nothing special.
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Editor::with(turns, json!({}), |builder| builder)
    }

    /// Starts pith for a client with these capabilities.
    pub fn with(
        turns: impl IntoIterator<Item = Turn>,
        capabilities: Value,
        configure: impl FnOnce(HostBuilder) -> HostBuilder,
    ) -> Self {
        let server = ModelServer::start(Script::of(turns));
        let home = TempHome::for_server(&server);
        let mut editor = Editor::start(server, home, configure);
        editor.ask("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities}));
        editor
    }

    /// Starts pith without introducing anybody.
    pub fn start(server: ModelServer, home: TempHome, configure: impl FnOnce(HostBuilder) -> HostBuilder) -> Self {
        let agent = home.agent().display().to_string();
        let builder = Host::builder(env!("CARGO_BIN_EXE_pith")).home(&home).env("PITH_AGENT_DIR", &agent);
        let (provider, model) = (Api::Anthropic.provider(), Api::Anthropic.model());
        let host = configure(builder.args(["acp", "--provider", provider, "--model", model])).spawn();
        Editor::of(host, home, server)
    }

    /// Takes a pith that was started.
    pub fn of(host: Host, home: TempHome, server: ModelServer) -> Self {
        Editor { host, home, server, n_sent: 0, methods: HashMap::new() }
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.n_sent += 1;
        self.methods.insert(self.n_sent.to_string(), method.to_owned());
        self.host.send(json!({"jsonrpc": "2.0", "id": self.n_sent, "method": method, "params": params}));
        self.n_sent
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: Value) {
        self.host.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub fn answer(&self, id: u64) -> Value {
        let is_answer = |frame: &Value| frame["id"] == id && frame.get("method").is_none();
        let found = self.host.find_within(0, timeout(), is_answer);
        found.unwrap_or_else(|| panic!("no answer to {id}\n{}", self.host.describe()))
    }

    /// Sends a request that must succeed; returns its result.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.result(id)
    }

    /// The result of a request that must succeed.
    #[track_caller]
    pub fn result(&self, id: u64) -> Value {
        let mut answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// Sends a request that must fail; returns code and message.
    #[track_caller]
    pub fn refusal(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.send(method, params);
        let answer = self.answer(id);
        let error = answer.get("error").unwrap_or_else(|| panic!("it succeeded: {answer}"));
        (error["code"].as_i64().expect("a code"), error["message"].as_str().expect("a message").to_owned())
    }

    /// Opens a session in the home's directory.
    #[track_caller]
    pub fn new_session(&mut self) -> String {
        let cwd = self.home.work();
        self.ask("session/new", json!({"cwd": cwd, "mcpServers": []}))["sessionId"].as_str().expect("an id").to_owned()
    }

    /// Sends a prompt without waiting for its end.
    pub fn send_prompt(&mut self, session: &str, text: &str) -> u64 {
        self.send("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
    }

    /// Prompts, and returns why the turn ended.
    #[track_caller]
    pub fn prompt(&mut self, session: &str, text: &str) -> String {
        let id = self.send_prompt(session, text);
        self.result(id)["stopReason"].as_str().expect("a reason").to_owned()
    }

    /// Waits for an update.
    #[track_caller]
    pub fn wait_update(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let frame = self.host.wait(|frame| frame["method"] == "session/update" && wanted(&frame["params"]["update"]));
        frame["params"]["update"].clone()
    }

    /// Waits for the next request of pith.
    pub fn asked(&mut self, method: &str) -> Value {
        self.host.wait(|frame| frame["method"] == method && frame.get("id").is_some())
    }

    /// Answers a request of pith.
    pub fn reply(&self, asked: &Value, result: Value) {
        self.host.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    }

    /// Waits until pith has withdrawn a request.
    pub fn withdrawn(&mut self, asked: &Value) {
        let is_it =
            |frame: &Value| frame["method"] == "$/cancel_request" && frame["params"]["requestId"] == asked["id"];
        assert!(self.host.find_within(0, timeout(), is_it).is_some(), "{}", self.host.describe());
    }

    /// Answers a request of pith with an error.
    pub fn refuse(&self, asked: &Value, message: &str) {
        let error = json!({"code": -32603, "message": message});
        self.host.send(json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
    }

    /// The updates about a session so far.
    pub fn updates(&self, session: &str) -> Vec<Value> {
        updates(&self.host.frames(), session)
    }

    /// Ends pith in order; all its frames must fit the schema, and every request must have one answer.
    #[track_caller]
    pub fn finish(mut self) -> Vec<Value> {
        let (frames, code) = self.host.finish();
        assert_eq!(code, 0, "{}", self.host.describe());
        schema::check(&frames, &self.methods);
        for id in 1..=self.n_sent {
            let is_answer = |frame: &&Value| frame.get("method").is_none() && frame["id"] == id;
            assert_eq!(frames.iter().filter(is_answer).count(), 1, "answers to request {id}");
        }
        frames
    }
}

/// The updates about a session among frames.
pub fn updates(frames: &[Value], session: &str) -> Vec<Value> {
    let about = |frame: &&Value| frame["method"] == "session/update" && frame["params"]["sessionId"] == session;
    frames.iter().filter(about).map(|frame| frame["params"]["update"].clone()).collect()
}

/// The text that updates of one kind add up to.
pub fn text_of(updates: &[Value], kind: &str) -> String {
    let chunks = updates.iter().filter(|update| update["sessionUpdate"] == kind);
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

/// Adds to the terminal of a call what `_meta` says of it.
fn fold_terminal(call: &mut Value, meta: &Value) {
    for (key, value) in meta.as_object().expect("an object") {
        match (key.as_str(), value["data"].as_str()) {
            ("terminal_output", Some(data)) => {
                let shown = call["output"].as_str().unwrap_or_default();
                call["output"] = format!("{shown}{data}").into();
            }
            _ => call[key] = value.clone(),
        }
    }
}

/// What an editor shows after these updates: messages by id, tool calls by id, and the newest of everything else.
pub fn fold(updates: &[Value]) -> Value {
    let mut shown = Map::new();
    for update in updates {
        let kind = update["sessionUpdate"].as_str().expect("a kind");
        match kind {
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                let id = update["messageId"].as_str().expect("messages have ids");
                let text = shown.entry(format!("{kind} {id}")).or_insert_with(|| Value::from(""));
                *text = format!(
                    "{}{}",
                    text.as_str().unwrap_or_default(),
                    update["content"]["text"].as_str().unwrap_or("[image]")
                )
                .into();
            }
            "tool_call" | "tool_call_update" => {
                let id = update["toolCallId"].as_str().expect("calls have ids");
                let call = shown.entry(format!("call {id}")).or_insert_with(|| json!({"status": "pending"}));
                for (key, value) in update.as_object().expect("an object") {
                    match key.as_str() {
                        "sessionUpdate" => {}
                        "_meta" => fold_terminal(call, value),
                        _ => call[key] = value.clone(),
                    }
                }
            }
            "session_info_update" => {
                let info = shown.entry("info").or_insert_with(|| json!({}));
                for key in ["title", "updatedAt"] {
                    if let Some(value) = update.get(key) {
                        info[key] = value.clone();
                    }
                }
            }
            "available_commands_update" => {}
            _ => _ = shown.insert(kind.to_owned(), update.clone()),
        }
    }
    Value::Object(shown)
}
