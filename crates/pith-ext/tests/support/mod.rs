//! A minimal session for tests: it answers what extensions ask and records everything.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "tests")]

pub mod evaluate;

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pith_agent::ToolOutput;
use pith_ext::outgoing::{
    ContextUsage, Delivery, FetchHead, ModelAuth, PromptView, ProviderView, Replaced, SessionView, StateView, ToolsView,
};
use pith_ext::{
    BuiltinTool, ExtensionConfig, ExtensionError, ExtensionHandle, ExtensionHost, ExtensionSource, FromExtension,
    Limits, LoadReport, Loading, Mode, Output, Query, Requests, Surroundings,
};
use pith_protocol::host::{UiAnswer, UiMethod, UiRequest};
use pith_protocol::{AssistantEvent, AssistantMessage, Block, Model, StopReason};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;

/// How long a test waits for something before it fails: much longer than a busy machine needs.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// A dialog that was not answered yet.
pub type OpenDialog = (UiRequest, pith_ext::outgoing::Answer<UiAnswer>);

/// What the session has received and what it answers with.
#[derive(Default)]
pub struct Seen {
    pub errors: Vec<ExtensionError>,
    pub displays: Vec<UiMethod>,
    pub dialogs: Vec<UiMethod>,
    pub withdrawn: Vec<String>,
    /// One line for every other request.
    pub log: Vec<String>,
    pub output: String,
    /// Answers to dialogs, in turn; without one the dialog stays open.
    pub answers: VecDeque<UiAnswer>,
    pub open: Vec<OpenDialog>,
    pub entries: Vec<Value>,
    pub state: StateView,
    pub active_tools: Vec<String>,
    pub providers: HashMap<String, Value>,
    pub fetches: Vec<pith_ext::outgoing::FetchRequest>,
    /// Whether queries stay unanswered.
    pub is_deaf: bool,
}

/// The engine under test and the session that serves it.
pub struct Harness {
    pub handle: ExtensionHandle,
    pub seen: Arc<Mutex<Seen>>,
    /// Counts what the session has received, so that tests can wait for more.
    changes: watch::Receiver<u64>,
    pub dir: TempDir,
    pub surroundings: Surroundings,
}

impl Harness {
    /// Starts an engine with default limits, but less than a second for a slice of execution.
    pub fn start() -> Harness {
        Harness::with_limits(Limits { slice: Duration::from_millis(700), ..Limits::default() })
    }

    /// Starts an engine that waits for code which a busy machine makes slow.
    pub fn patient() -> Harness {
        Harness::with_limits(Limits { slice: TIMEOUT, handler: TIMEOUT, ..Limits::default() })
    }

    pub fn with_limits(limits: Limits) -> Harness {
        let dir = tempfile::tempdir().unwrap();
        let surroundings = Surroundings {
            cwd: dir.path().canonicalize().unwrap(),
            mode: Mode::Rpc,
            has_ui: true,
            trust_has_ui: false,
            agent_dir: dir.path().join("agent"),
            config_dir_name: ".pi".to_owned(),
            version: "1.4.0".to_owned(),
            color: false,
        };
        let seen: Arc<Mutex<Seen>> = Arc::default();
        seen.lock().unwrap().state = idle_state();
        seen.lock().unwrap().active_tools = vec!["bash".to_owned(), "read".to_owned()];
        let (changed, changes) = watch::channel(0);
        let output = {
            let seen = seen.clone();
            let changed = changed.clone();
            Output::new(move |text| {
                seen.lock().unwrap().output.push_str(text);
                changed.send_modify(|count| *count += 1);
            })
        };
        let config = ExtensionConfig {
            surroundings: surroundings.clone(),
            builtin_tools: builtin_tools(),
            limits,
            output,
            environment: None,
            arguments: vec!["--mode".to_owned(), "rpc".to_owned()],
            launcher: None,
        };
        let (handle, requests) = ExtensionHost::start(config);
        let session = Session { seen: seen.clone(), changed, cwd: surroundings.cwd.clone(), handle: handle.clone() };
        tokio::spawn(session.serve(requests));
        Harness { handle, seen, changes, dir, surroundings }
    }

    /// Writes a file below the test's directory.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.surroundings.cwd.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn source(&self, path: &Path) -> ExtensionSource {
        ExtensionSource::new(path.display().to_string(), "cli", "temporary")
    }

    /// Loads extensions given as name and text.
    pub async fn load(&self, extensions: &[(&str, &str)]) -> LoadReport {
        let sources: Vec<_> = extensions.iter().map(|(name, text)| self.source(&self.file(name, text))).collect();
        self.handle.load(&sources, Loading::Add, &self.surroundings).await
    }

    /// Loads extensions, expects no error, and binds them.
    pub async fn run(&self, extensions: &[(&str, &str)]) {
        let report = self.load(extensions).await;
        assert_eq!(report.errors, [], "all extensions load");
        self.bind().await;
    }

    pub async fn bind(&self) {
        self.handle.bind(&self.surroundings, &HashMap::new()).await;
    }

    /// Waits until `test` returns something for what the session has received.
    pub async fn wait_for<T>(&self, what: &str, mut test: impl FnMut(&mut Seen) -> Option<T>) -> T {
        let mut changes = self.changes.clone();
        let found = async {
            loop {
                changes.mark_unchanged();
                if let Some(found) = test(&mut self.seen.lock().unwrap()) {
                    return found;
                }
                changes.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(TIMEOUT, found).await {
            Ok(found) => found,
            Err(_) => panic!("never saw {what}; log {:?}, errors {:?}", self.log(), self.errors()),
        }
    }

    pub async fn error(&self, event: &str) -> ExtensionError {
        self.wait_for(&format!("an error of {event}"), |seen| {
            seen.errors.iter().find(|error| error.event == event).cloned()
        })
        .await
    }

    /// Waits for the notification with this text.
    pub async fn notified(&self, text: &str) {
        self.wait_for(&format!("the notification {text:?}"), |seen| {
            seen.displays
                .iter()
                .any(|shown| matches!(shown, UiMethod::Notify { message, .. } if message == text))
                .then_some(())
        })
        .await;
    }

    /// Texts of all notifications so far.
    pub fn notifications(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let texts = seen.displays.iter().filter_map(|shown| match shown {
            UiMethod::Notify { message, .. } => Some(message.clone()),
            _ => None,
        });
        texts.collect()
    }

    pub async fn logged(&self, text: &str) -> String {
        self.wait_for(&format!("{text:?} in the log"), |seen| seen.log.iter().find(|line| line.contains(text)).cloned())
            .await
    }

    pub fn log(&self) -> Vec<String> {
        self.seen.lock().unwrap().log.clone()
    }

    pub fn errors(&self) -> Vec<ExtensionError> {
        self.seen.lock().unwrap().errors.clone()
    }

    pub fn answer(&self, answer: UiAnswer) {
        self.seen.lock().unwrap().answers.push_back(answer);
    }

    /// Runs the command `name` of an extension, which must exist.
    pub async fn command(&self, name: &str, args: &str) {
        assert!(self.handle.run_command(name, args).await, "there is a command {name}");
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.handle.stop();
    }
}

struct Session {
    seen: Arc<Mutex<Seen>>,
    changed: watch::Sender<u64>,
    cwd: PathBuf,
    handle: ExtensionHandle,
}

impl Session {
    async fn serve(self, mut requests: Requests) {
        while let Some(request) = requests.recv().await {
            self.handle(request);
            self.changed.send_modify(|count| *count += 1);
        }
    }

    fn log(&self, line: impl Into<String>) {
        self.seen.lock().unwrap().log.push(line.into());
    }

    fn handle(&self, request: FromExtension) {
        match request {
            FromExtension::Error(error) => self.seen.lock().unwrap().errors.push(error),
            FromExtension::Dialog { request, answer } => {
                let mut seen = self.seen.lock().unwrap();
                seen.dialogs.push(request.method.clone());
                match seen.answers.pop_front() {
                    Some(given) => answer.send(given),
                    None => seen.open.push((request, answer)),
                }
            }
            FromExtension::DialogWithdrawn { id } => self.seen.lock().unwrap().withdrawn.push(id),
            FromExtension::Display(request) => self.seen.lock().unwrap().displays.push(request.method),
            FromExtension::Query(query) => self.answer(query),
            other => self.act(other),
        }
    }

    fn act(&self, request: FromExtension) {
        match request {
            FromExtension::RegistryChanged => self.log("registry_changed"),
            FromExtension::RegisterProvider(provider) => {
                self.log(format!("register_provider {} streams={}", provider.name, provider.streams));
                self.seen.lock().unwrap().providers.insert(provider.name, provider.config);
            }
            FromExtension::UnregisterProvider { name } => self.log(format!("unregister_provider {name}")),
            FromExtension::SendMessage { message, answer } => {
                self.log(format!("send_message {} {}", message.custom_type, shown(&message.content)));
                if message.custom_type == "refused" {
                    answer.fail("no room for it");
                } else {
                    answer.send(());
                }
            }
            FromExtension::SendUserMessage { message, answer } => {
                let how = match message.deliver_as {
                    Some(Delivery::Steer) => "steer",
                    Some(Delivery::FollowUp) => "followUp",
                    Some(Delivery::NextTurn) => "nextTurn",
                    None => "now",
                };
                self.log(format!("send_user_message {how} {}", message.text));
                answer.send(());
            }
            FromExtension::AppendEntry { custom_type, data } => {
                self.log(format!("append_entry {custom_type} {}", data.clone().unwrap_or_default()));
                let mut seen = self.seen.lock().unwrap();
                let parent = seen.entries.last().map(|entry| entry["id"].clone()).unwrap_or_default();
                let id = format!("e{}", seen.entries.len() + 1);
                let entry =
                    json!({ "type": "custom", "id": id, "parentId": parent, "customType": custom_type, "data": data });
                seen.entries.push(entry);
            }
            FromExtension::SetSessionName { name } => {
                self.log(format!("set_session_name {name}"));
                self.seen.lock().unwrap().state.session_name = Some(name);
            }
            FromExtension::SetLabel { entry_id, label } => self.log(format!("set_label {entry_id} {label:?}")),
            FromExtension::SetActiveTools { names } => {
                self.log(format!("set_active_tools {}", names.join(",")));
                self.seen.lock().unwrap().active_tools = names;
            }
            FromExtension::SetModel { model, answer } => {
                self.log(format!("set_model {}", model["id"]));
                answer.send(model["id"] != "locked");
            }
            FromExtension::SetThinkingLevel { level } => {
                self.log(format!("set_thinking_level {level}"));
                self.seen.lock().unwrap().state.thinking_level = level;
            }
            FromExtension::Abort => self.log("abort"),
            FromExtension::Shutdown { status: None } => self.log("shutdown"),
            FromExtension::Shutdown { status: Some(status) } => self.log(format!("shutdown with {status}")),
            other => self.serve_other(other),
        }
    }

    fn serve_other(&self, request: FromExtension) {
        match request {
            FromExtension::Compact { custom_instructions, answer } => {
                self.log(format!("compact {custom_instructions:?}"));
                answer.send(json!({ "summary": "short" }));
            }
            FromExtension::WaitForIdle { answer } => answer.send(()),
            FromExtension::NewSession { entries, answer, .. } => {
                self.log(format!("new_session {}", entries.len()));
                answer.send(Replaced { cancelled: false });
            }
            FromExtension::Fork { entry_id, position, answer } => {
                self.log(format!("fork {entry_id} {position:?}"));
                answer.send(Replaced { cancelled: true });
            }
            FromExtension::SwitchSession { path, answer } => {
                self.log(format!("switch_session {path}"));
                answer.send(Replaced { cancelled: false });
            }
            FromExtension::NavigateTree { navigation, answer } => {
                self.log(format!("navigate_tree {}", navigation.target_id));
                answer.send(Replaced { cancelled: false });
            }
            FromExtension::Reload { answer } => {
                self.log("reload");
                answer.send(());
            }
            FromExtension::ModelAuth { provider, answer, .. } => {
                answer.send(ModelAuth { ok: true, api_key: Some(format!("key-{provider}")), ..ModelAuth::default() });
            }
            FromExtension::RefreshModels { answer } => answer.send(()),
            FromExtension::Stream { request, mut reply } => {
                self.log(format!("stream {}", request.model["id"]));
                for event in scripted_answer("hello from the model") {
                    reply.event(&event);
                }
            }
            FromExtension::Fetch { request, reply } => {
                self.log(format!("fetch {} {}", request.method, request.url));
                let is_broken = request.url.contains("broken");
                self.seen.lock().unwrap().fetches.push(request.clone());
                if is_broken {
                    return reply.finish(Err("connection refused".to_owned()));
                }
                let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
                reply.head(&FetchHead { status: 200, status_text: "OK".to_owned(), headers, url: request.url });
                reply.chunk(b"{\"answer\":".to_vec());
                reply.chunk(b"42}".to_vec());
                reply.finish(Ok(()));
            }
            FromExtension::RunTool { request, reply } => {
                self.log(format!("run_tool {} {} in {}", request.name, json!(request.arguments), request.cwd));
                reply.update(&ToolOutput::text("half"));
                reply.finish(&ToolOutput::text(format!("native {} done", request.name)));
            }
            other => panic!("unexpected request {other:?}"),
        }
    }

    fn answer(&self, query: Query) {
        let seen = self.seen.lock().unwrap();
        if seen.is_deaf {
            return;
        }
        match query {
            Query::State(reply) => reply.send(seen.state.clone()),
            Query::Session { session_id, from, reply } => {
                let from = if session_id.as_deref() == Some("session-1") { from } else { 0 };
                let leaf = seen.entries.last().and_then(|entry| entry["id"].as_str()).map(str::to_owned);
                reply.send(SessionView {
                    session_id: "session-1".to_owned(),
                    session_dir: "/sessions".to_owned(),
                    cwd: self.cwd.display().to_string(),
                    leaf_id: leaf,
                    header: json!({ "type": "session", "id": "session-1" }),
                    from,
                    entries: serde_json::value::to_raw_value(&seen.entries[from..]).unwrap(),
                    ..SessionView::default()
                });
            }
            Query::SystemPrompt(reply) => {
                reply.send(PromptView { text: "You are pith.".to_owned(), options: json!({ "cwd": "/" }) });
            }
            Query::BuildPrompt { options, reply } => reply.send(format!("built with {options}")),
            Query::Boundary { entries, reply, .. } => {
                reply.send(json!({ "canContinue": true, "drafts": entries.len() }))
            }
            Query::Tools(reply) => {
                let registry = self.handle.registry();
                let own =
                    registry.tools.iter().map(|tool| json!({ "name": tool.name, "sourceInfo": tool.source_info }));
                let builtin =
                    ["bash", "read"].map(|name| json!({ "name": name, "sourceInfo": { "source": "builtin" } }));
                reply.send(ToolsView {
                    active: seen.active_tools.clone(),
                    all: builtin.into_iter().chain(own).collect(),
                });
            }
            Query::Commands(reply) => {
                let registry = self.handle.registry();
                let listed = registry.commands.iter().map(|command| {
                    json!({ "name": command.name, "description": command.description, "source": "extension", "sourceInfo": command.source_info })
                });
                reply.send(listed.collect());
            }
            Query::Model { provider, id, reply } => {
                reply.send((id != "none").then(|| json!({ "provider": provider, "id": id, "api": "test" })));
            }
            Query::Models { reply, .. } => reply.send(vec![json!({ "provider": "test", "id": "one", "api": "test" })]),
            Query::Provider { reply, .. } => reply.send(ProviderView { has_auth: true, ..ProviderView::default() }),
        }
    }
}

fn shown(content: &impl Debug) -> String {
    format!("{content:?}")
}

fn builtin_tools() -> Vec<BuiltinTool> {
    let tool = |name: &str| BuiltinTool {
        name: name.to_owned(),
        label: name.to_owned(),
        description: format!("the {name} tool"),
        parameters: Arc::new(json!({ "type": "object", "properties": {} })),
        prompt_snippet: Some(format!("use {name}")),
        prompt_guidelines: Vec::new(),
        is_default: ["read", "bash", "edit", "write"].contains(&name),
        is_read_only: ["read", "grep", "find", "ls"].contains(&name),
    };
    ["read", "bash", "edit", "write", "grep", "find", "ls"].map(tool).to_vec()
}

pub fn idle_state() -> StateView {
    let model = Model { id: "one".into(), provider: "test".into(), api: "test".into(), ..Model::default() };
    StateView {
        model: Some(Arc::new(model)),
        thinking_level: "medium".to_owned(),
        is_idle: true,
        is_project_trusted: true,
        context_usage: Some(ContextUsage { tokens: Some(10), context_window: 100, percent: Some(10.0) }),
        ..StateView::default()
    }
}

/// An answer of one sentence.
pub fn scripted_answer(text: &str) -> Vec<AssistantEvent> {
    let message = AssistantMessage {
        api: "test".to_owned(),
        provider: "test".to_owned(),
        model: "one".to_owned(),
        ..AssistantMessage::default()
    };
    let done = AssistantMessage { content: vec![Block::text(text)], stop_reason: StopReason::Stop, ..message.clone() };
    vec![
        AssistantEvent::Start(Box::new(message)),
        AssistantEvent::TextStart { index: 0 },
        AssistantEvent::TextDelta { index: 0, delta: text.to_owned() },
        AssistantEvent::TextEnd { index: 0, content: text.to_owned(), signature: None },
        AssistantEvent::End(Box::new(done)),
    ]
}
