//! A pith with extensions, watched: while a test waits for something, it sends `get_state` again and again and measures
//! every answer.

use std::time::{Duration, Instant};

use pith_testkit::{Api, Host, HostBuilder, ModelServer, Script, TempHome, Turn, timeout};
use serde_json::{Value, json};

use crate::support::builder;

/// How often the state is requested while a test waits.
const POLL_INTERVAL: Duration = Duration::from_millis(15);

/// Far above what a busy machine needs, far below what a host would accept.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// An extension that must never be affected by another.
pub const NEIGHBOUR: (&str, &str) = (
    "neighbour.ts",
    "export default (pi) => {
        pi.on('input', (_, ctx) => { ctx.ui.notify('neighbour'); });
        pi.registerCommand('alive', { handler: async (_, ctx) => ctx.ui.notify('alive') });
    };",
);

/// Limits short enough for tests, in the same proportions as the defaults.
pub fn strict() -> Value {
    json!({"extensionLimits": {"executionMs": 400, "handlerMs": 600, "observerMs": 300, "factoryMs": 1500,
        "shutdownMs": 1000, "abortMs": 300, "memoryMb": 96}})
}

/// A running pith.
pub struct Stage {
    pub host: Host,
    pub home: TempHome,
    pub server: ModelServer,
    slowest: Duration,
    n_asked: usize,
}

impl Stage {
    /// Starts pith with extensions in the user's directory, strict limits, and a model with these answers.
    pub fn new(extensions: &[(&str, &str)], turns: impl IntoIterator<Item = Turn>) -> Self {
        Stage::with(extensions, &strict(), Script::of(turns), |builder| builder)
    }

    /// Like [`Self::new`], with settings, a whole script and further arguments.
    pub fn with(
        extensions: &[(&str, &str)],
        settings: &Value,
        script: Script,
        configure: impl FnOnce(HostBuilder) -> HostBuilder,
    ) -> Self {
        let furnish = |home: &TempHome, _: &ModelServer| {
            home.write_settings(settings);
            for (name, text) in extensions {
                home.write_agent_file(&format!("extensions/{name}"), text);
            }
        };
        Stage::furnished(script, furnish, configure)
    }

    /// Starts pith in a home that the test prepares.
    pub fn furnished(
        script: Script,
        furnish: impl FnOnce(&TempHome, &ModelServer),
        configure: impl FnOnce(HostBuilder) -> HostBuilder,
    ) -> Self {
        let server = ModelServer::start(script);
        let home = TempHome::for_server(&server);
        furnish(&home, &server);
        let host = configure(builder().rpc(Api::Anthropic).home(&home)).spawn();
        Stage { host, home, server, slowest: Duration::ZERO, n_asked: 0 }
    }

    /// The index of the next frame.
    pub fn now(&self) -> usize {
        self.host.frames().len()
    }

    /// Waits for the first frame from `start` on that `wanted` accepts. Meanwhile pith must answer.
    #[track_caller]
    pub fn watch(&mut self, start: usize, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            if let Some(frame) = self.host.find_within(start, POLL_INTERVAL, &wanted) {
                return frame;
            }
            assert!(!self.host.has_exited(), "pith has ended before {what}\n{}", self.host.describe());
            assert!(began.elapsed() < timeout(), "waited in vain for {what}\n{}", self.host.describe());
            self.poll_state();
        }
    }

    /// Requests the state and records how long the answer took.
    #[track_caller]
    pub fn poll_state(&mut self) -> Value {
        let began = Instant::now();
        let state = self.host.data(json!({"type": "get_state"}));
        let spent = began.elapsed();
        assert!(spent < ANSWER_LIMIT, "get_state took {spent:?}\n{}", self.host.describe());
        self.slowest = self.slowest.max(spent);
        self.n_asked += 1;
        state
    }

    /// Sends a command and returns its response, watching meanwhile.
    #[track_caller]
    pub fn ask(&mut self, mut command: Value) -> Value {
        let start = self.now();
        let id = format!("stage-{start}");
        command["id"] = json!(id);
        self.host.send(command.clone());
        self.watch(start, &format!("the response to {command}"), |frame| {
            frame["type"] == "response" && frame["id"] == json!(id)
        })
    }

    /// Sends a prompt that must be accepted.
    #[track_caller]
    pub fn prompt(&mut self, message: &str) -> Value {
        let response = self.ask(json!({"type": "prompt", "message": message}));
        assert_eq!(response["success"], true, "{response}");
        response
    }

    /// Prompts and waits for the end of the run; returns the index of its first frame.
    #[track_caller]
    pub fn run(&mut self, message: &str) -> usize {
        let start = self.now();
        self.prompt(message);
        self.watch(start, "the end of the run", |frame| frame["type"] == "agent_settled");
        start
    }

    /// Waits for the next `extension_error` of that event.
    #[track_caller]
    pub fn error(&mut self, start: usize, event: &str) -> Value {
        self.watch(start, &format!("an extension_error of {event}"), |frame| {
            frame["type"] == "extension_error" && frame["event"] == event
        })
    }

    /// Waits for a notification with that text.
    #[track_caller]
    pub fn notified(&mut self, start: usize, text: &str) -> Value {
        self.watch(start, &format!("the notification {text:?}"), |frame| {
            frame["method"] == "notify" && frame["message"] == text
        })
    }

    /// Waits for the next request of that method.
    #[track_caller]
    pub fn asked(&mut self, start: usize, method: &str) -> Value {
        self.watch(start, &format!("a {method} request"), |frame| {
            frame["type"] == "extension_ui_request" && frame["method"] == method
        })
    }

    /// Waits for the next dialog whose title begins so, and answers it.
    #[track_caller]
    pub fn dialog(&mut self, start: usize, title: &str, answer: Value) -> Value {
        let request = self.watch(start, &format!("the dialog {title:?}"), |frame| {
            frame["type"] == "extension_ui_request"
                && frame["title"].as_str().is_some_and(|shown| shown.starts_with(title))
        });
        self.answer(&request, answer);
        request
    }

    /// Waits for the end of the first tool that ends.
    #[track_caller]
    pub fn tool_end(&mut self, start: usize) -> Value {
        self.watch(start, "the end of a tool", |frame| frame["type"] == "tool_execution_end")
    }

    /// What request `index` sent to the model, as text.
    pub fn sent(&self, index: usize) -> String {
        self.server.wait_request(index).body.to_string()
    }

    /// Answers a dialog.
    pub fn answer(&self, request: &Value, mut answer: Value) {
        answer["type"] = json!("extension_ui_response");
        answer["id"] = request["id"].clone();
        self.host.send(answer);
    }

    /// Checks that the neighbour still works.
    #[track_caller]
    pub fn assert_alive(&mut self) {
        let start = self.now();
        self.prompt("/alive");
        self.notified(start, "alive");
    }

    /// Ends pith in order: checks for exit status 0, and only frames on standard output.
    #[track_caller]
    pub fn finish(mut self, what: &str) -> Vec<Value> {
        let (frames, code) = self.host.finish();
        assert_eq!(code, 0, "{}", self.host.describe());
        for frame in &frames {
            assert!(frame["type"].is_string(), "not a frame: {frame}");
        }
        tell(&format!("{what:<60} get_state {:>4} times, slowest {:?}", self.n_asked, self.slowest));
        frames
    }
}

#[allow(clippy::print_stdout, reason = "figures for people who run the tests with --nocapture")]
pub fn tell(line: &str) {
    println!("{line}");
}
