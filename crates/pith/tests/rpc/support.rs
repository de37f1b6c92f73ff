//! A host, its home and its model, and ways to search its frames.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};

use pith_testkit::transcript::matching::{Placeholders, matches};
use pith_testkit::{Api, Host, HostBuilder, ModelServer, Script, TempHome, Turn};
use serde_json::{Value, json};

/// A started pith with its own home and scripted model.
pub struct Scene {
    pub host: Host,
    pub home: TempHome,
    pub server: ModelServer,
}

impl Scene {
    /// Starts pith with a model that gives these answers.
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Scene::with(Script::of(turns), |builder| builder)
    }

    /// Starts pith with a whole script and further arguments or variables.
    pub fn with(script: Script, configure: impl FnOnce(HostBuilder) -> HostBuilder) -> Self {
        let server = ModelServer::start(script);
        let home = TempHome::for_server(&server);
        Scene::start(server, home, Api::Anthropic, configure)
    }

    /// Starts pith with settings of the user.
    pub fn with_settings(turns: impl IntoIterator<Item = Turn>, settings: &Value) -> Self {
        let server = ModelServer::start(Script::of(turns));
        let home = TempHome::for_server(&server);
        home.write_settings(settings);
        Scene::start(server, home, Api::Anthropic, |builder| builder)
    }

    /// Starts pith with a model of another wire format.
    pub fn speaking(api: Api, turns: impl IntoIterator<Item = Turn>) -> Self {
        let server = ModelServer::start(Script::of(turns));
        let home = TempHome::for_server(&server);
        Scene::start(server, home, api, |builder| builder)
    }

    /// Starts pith as xcsh hosts know it, in the same home.
    pub fn xcsh(turns: impl IntoIterator<Item = Turn>) -> Self {
        Scene::with(Script::of(turns), |builder| builder.args(["--dialect", "xcsh"]))
    }

    /// Starts pith with settings and a window of that many tokens.
    pub fn with_window(script: Script, window: u64, settings: &Value) -> Self {
        let server = ModelServer::start(script);
        let home = TempHome::new();
        home.write_models(&server.url(), |models| {
            models["providers"][Api::Anthropic.provider()]["models"][0]["contextWindow"] = json!(window);
        });
        home.write_settings(settings);
        Scene::start(server, home, Api::Anthropic, |builder| builder)
    }

    /// Starts another pith with the same home and model.
    pub fn again(&self, arguments: &[&str]) -> Host {
        let agent = self.home.agent().display().to_string();
        builder().rpc(Api::Anthropic).home(&self.home).env("PITH_AGENT_DIR", &agent).args(arguments).spawn()
    }

    /// Starts pith in a home that was prepared.
    pub fn in_home(server: ModelServer, home: TempHome, configure: impl FnOnce(HostBuilder) -> HostBuilder) -> Self {
        Scene::start(server, home, Api::Anthropic, configure)
    }

    pub fn start(
        server: ModelServer,
        home: TempHome,
        api: Api,
        configure: impl FnOnce(HostBuilder) -> HostBuilder,
    ) -> Self {
        // Dialects search different places; this one is used in all of them.
        let agent = home.agent().display().to_string();
        let host = configure(builder().rpc(api).home(&home).env("PITH_AGENT_DIR", &agent)).spawn();
        Scene { host, home, server }
    }

    /// Sends a prompt that must be accepted as the start of a run.
    #[track_caller]
    pub fn prompt(&mut self, message: &str) {
        let data = self.host.data(json!({"type": "prompt", "message": message}));
        assert_eq!(data, json!({"disposition": "started"}));
    }

    /// Sends a command that must succeed.
    #[track_caller]
    pub fn command(&mut self, command: Value) -> Value {
        let response = self.host.ask(command);
        assert_eq!(response["success"], true, "{response}");
        response
    }

    /// Sends a command that must fail, and returns the reason.
    #[track_caller]
    pub fn refusal(&mut self, command: Value) -> String {
        let response = self.host.ask(command);
        assert_eq!(response["success"], false, "{response}");
        response["error"].as_str().expect("errors are texts").to_owned()
    }

    /// Prompts, waits for the end of the work and returns its frames.
    #[track_caller]
    pub fn run(&mut self, message: &str) -> Vec<Value> {
        self.host.catch_up();
        let start = self.host.frames().len();
        self.prompt(message);
        self.host.wait_type("agent_settled");
        self.host.frames().split_off(start)
    }

    /// `get_state`.
    #[track_caller]
    pub fn state(&mut self) -> Value {
        self.host.data(json!({"type": "get_state"}))
    }

    /// `get_messages`.
    #[track_caller]
    pub fn messages(&mut self) -> Vec<Value> {
        let data = self.host.data(json!({"type": "get_messages"}));
        data["messages"].as_array().expect("messages are a list").clone()
    }

    /// The tool results in `get_messages`.
    #[track_caller]
    pub fn tool_results(&mut self) -> Vec<Value> {
        self.messages().into_iter().filter(|message| message["role"] == "toolResult").collect()
    }

    /// Waits for the next `message_update` whose inner event has that type.
    #[track_caller]
    pub fn wait_update(&mut self, kind: &str) -> Value {
        self.host.wait(|frame| frame["type"] == "message_update" && frame["assistantMessageEvent"]["type"] == kind)
    }

    /// Waits until a running tool has shown `text`.
    #[track_caller]
    pub fn wait_output(&mut self, text: &str) -> Value {
        self.host.wait(|frame| {
            frame["type"] == "tool_execution_update" && texts(&frame["partialResult"]["content"]).contains(text)
        })
    }

    /// Ends pith in order; every start must have its end by then.
    #[track_caller]
    pub fn finish(mut self) -> Vec<Value> {
        let (frames, code) = self.host.finish();
        assert_eq!(code, 0, "{}", self.host.describe());
        assert_closed(&frames);
        frames
    }
}

impl Deref for Scene {
    type Target = Host;

    fn deref(&self) -> &Host {
        &self.host
    }
}

impl DerefMut for Scene {
    fn deref_mut(&mut self) -> &mut Host {
        &mut self.host
    }
}

/// The binary under test.
pub fn builder() -> HostBuilder {
    Host::builder(env!("CARGO_BIN_EXE_pith"))
}

/// Fails unless `frame` contains everything in `pattern`.
#[track_caller]
pub fn assert_like(frame: &Value, pattern: &Value) {
    if let Err(difference) = matches(pattern, frame, &Placeholders::default()) {
        panic!("{difference}\n  wanted: {pattern}\n  got:    {frame}");
    }
}

/// Short names of frames, with repeated updates folded: `message_start:user`, `message_update:text_delta`.
pub fn kinds(frames: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for frame in frames {
        let kind = frame["type"].as_str().expect("frames have a type");
        let detail = match kind {
            "message_start" | "message_end" => frame["message"]["role"].as_str(),
            "message_update" => frame["assistantMessageEvent"]["type"].as_str(),
            "response" => frame["command"].as_str(),
            _ => frame["toolCallId"].as_str(),
        };
        let name = detail.map_or_else(|| kind.to_owned(), |detail| format!("{kind}:{detail}"));
        if !kind.ends_with("_update") || names.last() != Some(&name) {
            names.push(name);
        }
    }
    names
}

/// The frames of one type.
pub fn of_type<'f>(frames: &'f [Value], kind: &str) -> Vec<&'f Value> {
    frames.iter().filter(|frame| frame["type"] == kind).collect()
}

/// The index of the first frame like `pattern`.
#[track_caller]
pub fn position(frames: &[Value], pattern: &Value) -> usize {
    let places = Placeholders::default();
    let found = frames.iter().position(|frame| matches(pattern, frame, &places).is_ok());
    found.unwrap_or_else(|| panic!("no frame like {pattern} in {frames:#?}"))
}

/// Fails unless the patterns are found in this order.
#[track_caller]
pub fn assert_order(frames: &[Value], patterns: &[Value]) {
    let mut start = 0;
    for pattern in patterns {
        start += position(&frames[start..], pattern) + 1;
    }
}

/// Fails unless everything that started ended, once and in the right nesting.
#[track_caller]
pub fn assert_closed(frames: &[Value]) {
    let mut open: Vec<String> = Vec::new();
    for frame in frames {
        let kind = frame["type"].as_str().unwrap_or_default();
        let Some((name, edge)) = kind.rsplit_once('_') else { continue };
        let name = format!("{name}{}", frame["toolCallId"].as_str().unwrap_or_default());
        match edge {
            "start" if name == "auto_retry" && open.contains(&name) => {}
            // Ended by `summarization_retry_finished`, once for all attempts.
            "start" if name == "summarization_retry_attempt" => {}
            "start" => {
                assert!(!open.contains(&name), "{name} opened twice: {:#?}", kinds(frames));
                open.push(name);
            }
            "end" if kind == "auto_retry_end" => open.retain(|other| *other != name),
            "end" => {
                let index = open.iter().rposition(|other| *other == name);
                let index = index.unwrap_or_else(|| panic!("{kind} without a start: {:#?}", kinds(frames)));
                // Tools of a batch end in any order; everything else nests.
                let inner = &open[index + 1..];
                assert!(inner.iter().all(|other| other.starts_with("tool_execution")), "{kind} around {inner:?}");
                open.remove(index);
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "never closed: {open:?} in {:#?}", kinds(frames));
}

/// Concatenated texts of content blocks.
pub fn texts(content: &Value) -> String {
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}

/// The texts of every message of an Anthropic request, one line each.
pub fn sent_texts(body: &Value) -> String {
    let messages = body["messages"].as_array().expect("messages are a list");
    let said = |message: &Value| message["content"].as_str().map_or_else(|| texts(&message["content"]), str::to_owned);
    messages.iter().map(said).collect::<Vec<_>>().join("\n")
}

/// A `sleep` that no other process runs, to be found with [`pith_testkit::process`].
pub fn endless_command() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("sleep 4000.{}{:04}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
