//! The only support file that names types of the crate under test: assembles a session and records what it sends.

use std::borrow::Cow;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use pith_agent::Tool;
use pith_ai::select::Start;
use pith_ai::{ModelConfig, ModelFields, ProviderConfig, Registry, Visibility};
use pith_config::{AgentDir, Environment, Layout, Settings};
use pith_ext::Loading;
use pith_permissions::{RuleFlags, Sources};
use pith_protocol::answers::Wire;
use pith_protocol::host::{HostToolFrame, UiRequest};
use pith_protocol::permissions::PermissionFrame;
use pith_protocol::{
    AssistantEvent, AssistantMessage, CacheRetention, CommandError, ErrorCode, Event, Frame, Id, Inbound,
    InterruptMode, LiveMessage, Message, QueueMode, Response, StreamUpdates, ThinkingLevel,
};
use pith_resources::{ResourceOptions, Resources};
use pith_session::{
    Attendance, ExtensionSetup, Outbox, ProjectFiles, Room, RunningExtensions, Session, SessionParts, SessionPlaces,
    StreamRules, ToolChoice, WorkLimits,
};
use pith_store::{NewSession, SessionStore};
use pith_testkit::schema::{self, Dialect};
use pith_tools::{Workbench, WorkbenchOptions};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub use pith_session::{RetryPolicy, SessionOptions};

use super::extensions::{Extensions, Loaded};
use super::frames::Frames;
use super::model::ScriptedModel;
use super::no_servers;

/// The provider of the two models a test can select.
pub const PROVIDER: &str = "test";
/// The model a session starts with, and another one.
pub const MODELS: [&str; 2] = ["one", "two"];

/// How many lines may wait; no test sends as many at once.
const BACKLOG: usize = 4096;

/// What a session is to be made of.
pub struct Plan {
    pub directory: PathBuf,
    pub is_saved: bool,
    pub settings: Settings,
    pub options: SessionOptions,
    /// The context window of the models, in tokens.
    pub window: u64,
    pub tools: Vec<Arc<dyn Tool>>,
    pub model: ScriptedModel,
    pub extensions: Option<(Extensions, Loaded)>,
    /// Fires when the late extensions are to be loaded.
    pub late: Option<oneshot::Receiver<()>>,
}

/// A session that is being served.
pub struct Opened {
    /// Closing it ends the session, as the end of stdin does.
    pub inbox: mpsc::Sender<Inbound>,
    pub reader: HostReader,
    /// Serves the session while it is polled; completes when the session ends.
    pub serving: Serving,
}

/// A session being served. Not a task of its own: a panic in it is a panic of the test.
pub type Serving = Pin<Box<dyn Future<Output = ()>>>;

/// Opens a session whose frames go to `frames`.
pub fn open(plan: Plan, frames: Frames) -> Opened {
    let (inbox, lines) = mpsc::channel(BACKLOG);
    let reader = HostReader::default();
    let recorder = Recorder { frames, live: None, mode: StreamUpdates::Delta, room: reader.0.clone() };
    let session = Session::new(parts(plan, recorder));
    let serving = Box::pin(async move {
        session.serve(lines, CancellationToken::new()).await;
    });
    Opened { inbox, reader, serving }
}

fn parts(plan: Plan, recorder: Recorder) -> SessionParts {
    let Plan { directory, is_saved, settings, options, window, tools, model, extensions, late } = plan;
    let agent = AgentDir::at(directory.join("agent"), Layout::Pi);
    let places = SessionPlaces { dir: directory.join("sessions"), root: directory.join("sessions") };
    let store = if is_saved {
        let (cwd, session_dir) = (directory.clone(), places.dir.clone());
        SessionStore::create(NewSession { cwd, session_dir, ..NewSession::default() })
    } else {
        SessionStore::in_memory(&directory, None)
    };
    let registry = Arc::new(Registry::load(&agent, Environment::of(directory.clone(), []), &settings));
    registry.support_api(PROVIDER);
    registry.register(provider(window), Visibility::Listed);
    let start = Start { model: registry.find(PROVIDER, MODELS[0]), ..Start::default() };
    let settings = Arc::new(settings);
    let project = {
        let agent = agent.path().to_owned();
        move |cwd: &Path| ProjectFiles {
            resources: resources(&agent, cwd),
            settings: settings.clone(),
            rules: StreamRules::default(),
            options: options.clone(),
            diagnostics: Vec::new(),
            is_trusted: true,
            question: None,
        }
    };
    let names = tools.iter().map(|tool| tool.spec().name.to_string()).collect();
    SessionParts {
        out: Box::new(recorder),
        store,
        places,
        make_tools: {
            let tools = tools.clone();
            Box::new(move |cwd, _, _| (workbench(cwd), tools.clone()))
        },
        change_sandbox: Box::new(|_, _| Err("there is no sandbox here".to_owned())),
        hosts: Default::default(),
        client: Arc::new(model),
        registry,
        files: project(&directory),
        load_project: Box::new(move |cwd, _, _| project(cwd)),
        start,
        workbench: workbench(&directory),
        tools,
        tool_choice: ToolChoice { defaults: Some(names), ..ToolChoice::default() },
        extensions: setup(extensions, late),
        mcp: no_servers::setup(),
        permissions: Sources {
            agent_dir: agent,
            cwd: directory.clone(),
            home: directory.clone(),
            is_trusted: true,
            flags: RuleFlags::default(),
        },
        tracer: None,
        on_rest: Box::new(|| {}),
    }
}

fn setup(extensions: Option<(Extensions, Loaded)>, late: Option<oneshot::Receiver<()>>) -> ExtensionSetup {
    let Some((extensions, Loaded { handle, requests, early })) = extensions else {
        return ExtensionSetup {
            find: Box::new(|_| Vec::new()),
            config: Box::new(|_| unreachable!("nothing is found, so nothing is started")),
            flags: Default::default(),
            running: None,
            web: Default::default(),
        };
    };
    let (config, sources) = (extensions.config(), extensions.sources());
    let loading = late.map(|late| {
        let (handle, sources, surroundings) = (handle.clone(), sources.clone(), config.surroundings.clone());
        let loading = async move {
            // The test has ended, so nothing is loaded any more.
            if late.await.is_err() {
                std::future::pending::<()>().await;
            }
            handle.load(&sources, Loading::Add, &surroundings).await
        };
        Box::pin(loading) as pith_session::LoadingExtensions
    });
    ExtensionSetup {
        find: {
            let sources = sources.clone();
            Box::new(move |_| sources.clone())
        },
        config: Box::new(move |_| config.clone()),
        flags: Default::default(),
        running: Some(RunningExtensions { handle, requests, sources, errors: Vec::new(), early, loading }),
        web: Default::default(),
    }
}

/// The options for a host of dialect pi with these settings, except that updates are sent as deltas.
pub fn options(settings: &Settings) -> SessionOptions {
    SessionOptions {
        steering_mode: QueueMode::OneAtATime,
        follow_up_mode: QueueMode::OneAtATime,
        interrupt_mode: InterruptMode::Wait,
        stream_updates: StreamUpdates::Delta,
        auto_compaction: settings.compaction.enabled,
        retry: RetryPolicy::default(),
        limits: WorkLimits::default(),
        session_limits: settings.limits.clone(),
        has_ui: true,
        block_images: false,
        cache: CacheRetention::Short,
        attribution: None,
        export_app: "pi",
        wire: Wire { dialect: "pi", hidden_events: Event::HIDDEN_FROM_PI, max_line_bytes: 1 << 27 },
        busy_text: "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.",
        state_has_prompt: false,
        state_has_unknown_model: false,
        highest_level: ThinkingLevel::Max,
        counts_premium_requests: false,
        tells_late_failures: false,
        reports_aborted_calls: false,
        has_todo_tool: false,
        todo_reminders: false,
        todo_clear_after: None,
        host_tool_timeout: None,
        fsync: settings.session.fsync,
        trust_answer_limit: Some(pith_resources::HOST_ANSWER_LIMIT),
        attendance: Attendance::Unsure,
        is_replaceable: true,
        name: None,
    }
}

fn provider(window: u64) -> ProviderConfig {
    let mut fields = ModelFields {
        reasoning: Some(true),
        context_window: Some(window),
        max_tokens: Some(4096),
        ..ModelFields::default()
    };
    // A thousand tokens of a request cost a dollar.
    fields.cost.input = Some(1000.0);
    let model = |id: &str| ModelConfig { id: id.to_owned(), fields: fields.clone(), ..ModelConfig::default() };
    ProviderConfig {
        id: PROVIDER.to_owned(),
        // Nothing ever connects to it; the registry requires an address.
        base_url: Some("test:".to_owned()),
        api: Some(PROVIDER.to_owned()),
        keyless: true,
        models: MODELS.map(model).into(),
        ..ProviderConfig::default()
    }
}

fn resources(agent: &Path, cwd: &Path) -> Resources {
    Resources::load(&ResourceOptions {
        agent_dir: agent.to_owned(),
        project_dir_name: ".pi".to_owned(),
        cwd: cwd.to_owned(),
        no_skills: true,
        no_prompt_templates: true,
        no_context_files: true,
        ..ResourceOptions::default()
    })
}

fn workbench(cwd: &Path) -> Arc<Workbench> {
    Workbench::new(cwd.to_owned(), WorkbenchOptions { temp: cwd.to_owned(), ..WorkbenchOptions::default() })
}

/// Whether the host reads what it is sent.
#[derive(Clone, Default)]
pub struct HostReader(Room);

impl HostReader {
    /// Stops reading: frames queue up from now on.
    pub fn stop(&self) {
        self.0.close();
    }

    pub fn resume(&self) {
        self.0.open();
    }
}

/// The session's outbox: records every frame as a host would read it.
struct Recorder {
    frames: Frames,
    /// The answer being streamed.
    live: Option<LiveMessage>,
    mode: StreamUpdates,
    room: Room,
}

impl Recorder {
    fn record(&self, frame: &impl Serialize) {
        self.take(pith_protocol::json::to_string(frame));
    }

    /// Takes a line down that is what its type says.
    fn take(&self, line: String) {
        let frame: Value = serde_json::from_str(&line).expect("frames are JSON");
        // What only hosts of xcsh are shown is in the schema of the other dialect.
        let in_schema =
            || schema::problem(&frame, Dialect::Pi).filter(|_| schema::problem(&frame, Dialect::Xcsh).is_some());
        if let Some(problem) = Frame::problem(&line).or_else(in_schema) {
            panic!("not a frame of the protocol: {line}\n{problem}");
        }
        self.frames.push(frame);
    }
}

impl Outbox for Recorder {
    fn respond(&mut self, response: &Response<'_>) {
        self.record(response);
    }

    fn respond_unknown(&mut self, id: &Id, name: &str) {
        let error = CommandError::new(ErrorCode::UnknownCommand, format!("Unknown command: {name}"));
        self.record(&Response::failure(id.raw(), name, &error));
    }

    fn event(&mut self, event: &Event<'_>) {
        self.record(event);
    }

    fn host_tool(&mut self, frame: &HostToolFrame) {
        self.record(frame);
    }

    fn permission(&mut self, frame: &PermissionFrame) {
        self.record(frame);
    }

    fn ui_request(&mut self, request: &UiRequest) {
        self.record(request);
    }

    fn open_answer(&mut self, mode: StreamUpdates, start: &AssistantMessage) {
        self.live = Some(LiveMessage::new(mode, start));
        self.mode = mode;
        let mut frame = json!(Event::MessageStart { message: Cow::Owned(Message::Assistant(start.clone())) });
        if mode == StreamUpdates::Delta {
            // The stop reason of an unfinished answer, as hosts that read deltas know it.
            frame["message"]["stopReason"] = Value::from("pending");
        }
        self.frames.push(frame);
    }

    fn stream(&mut self, event: &AssistantEvent) {
        let Some(live) = &mut self.live else { return };
        let mut frame = Vec::new();
        match live.fold(event) {
            Some(delta) => live.append_delta_frame(&delta, &mut frame),
            None => live.append_event_frame(event, &mut frame),
        }
        // An event with token counts alone has no frame.
        if !frame.is_empty() {
            self.take(String::from_utf8(frame).expect("frames are UTF-8"));
        }
    }

    fn room(&self) -> Room {
        self.room.clone()
    }
}
