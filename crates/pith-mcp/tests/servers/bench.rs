//! Servers of a session, for tests.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pith_agent::{BoxFuture, Tool, ToolContext, ToolOutput};
use pith_ai::Web;
use pith_config::{AgentDir, Environment, Layout, ProjectTrust};
use pith_mcp::config::{Given, Places};
use pith_mcp::{Options, Pool, Sample, Servers, State, User};
use pith_protocol::host::{UiAnswer, UiMethod};
use pith_secrets::Secrets;
use pith_tools::process::{SUPERVISOR_ARGUMENT, Supervisor};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// Makes a user of a function that is given every dialog and the call it belongs to.
pub fn user<F>(ask: F) -> Arc<dyn User>
where
    F: Fn(UiMethod, Option<&str>) -> BoxFuture<'static, UiAnswer> + Send + Sync + 'static,
{
    struct Asked<F>(F);
    impl<F: Fn(UiMethod, Option<&str>) -> BoxFuture<'static, UiAnswer> + Send + Sync> User for Asked<F> {
        fn ask(&self, dialog: UiMethod, call: Option<&str>) -> BoxFuture<'static, UiAnswer> {
            (self.0)(dialog, call)
        }

        fn sees_forms(&self) -> bool {
            false
        }

        fn page_done(&self, _id: &str) {}
    }
    Arc::new(Asked(ask))
}

pub struct Bench {
    pub directory: Arc<tempfile::TempDir>,
    pub servers: Servers,
    pub secrets: Arc<Secrets>,
}

impl Bench {
    /// A session whose host has these servers.
    pub fn new(servers: Value) -> Bench {
        Bench::in_directory(tempfile::tempdir().expect("a directory"), servers)
    }

    /// A server that behaves in a certain way, called `s`.
    pub fn with(behaviour: &str) -> Bench {
        let directory = tempfile::tempdir().expect("a directory");
        let entry = entry(directory.path(), behaviour);
        Bench::in_directory(directory, json!({ "s": entry }))
    }

    pub fn in_directory(directory: tempfile::TempDir, servers: Value) -> Bench {
        Bench::asking(directory, servers, None)
    }

    /// A session with a user who answers questions.
    pub fn asking(directory: tempfile::TempDir, servers: Value, user: Option<Arc<dyn User>>) -> Bench {
        Bench::sampling(directory, servers, user, None)
    }

    /// A session with a model that answers servers.
    pub fn sampling(
        directory: tempfile::TempDir,
        servers: Value,
        user: Option<Arc<dyn User>>,
        sample: Option<Sample>,
    ) -> Bench {
        Bench::sharing(Arc::new(directory), servers, user, sample, None)
    }

    /// A session that shares its servers with others.
    pub fn sharing(
        directory: Arc<tempfile::TempDir>,
        servers: Value,
        user: Option<Arc<dyn User>>,
        sample: Option<Sample>,
        pool: Option<Pool>,
    ) -> Bench {
        let path = std::env::var("PATH").expect("a PATH");
        let environment = Environment::of(
            directory.path(),
            [("PATH", path.as_str()), ("ANTHROPIC_API_KEY", "sk-secret"), ("MY_SECRET", "x")],
        );
        let places = Places {
            agent_dir: AgentDir::at(directory.path().join("agent"), Layout::Pi),
            environment,
            cwd: directory.path().to_owned(),
        };
        let secrets: Arc<Secrets> = Arc::default();
        let options = Options {
            places,
            given: Given::default(),
            trust: Box::new(|_| ProjectTrust::Given),
            is_off: Box::new(|_| false),
            hidden: Box::new(|| vec!["ANTHROPIC_API_KEY".to_owned()]),
            secrets: secrets.clone(),
            renewals: Arc::default(),
            web: Web::default().patient(),
            pool,
            sandbox: pith_tools::sandbox::CurrentSandbox::default(),
            supervisor: Some(Supervisor { program: program().into(), argument: SUPERVISOR_ARGUMENT.into() }),
            report: Arc::new(|_| {}),
            user,
            sample,
            additional_roots: vec!["/srv/more things".into()],
            startup_wait: Duration::from_secs(600),
            temp: directory.path().to_owned(),
        };
        let session = Servers::new(options);
        session.set_host(servers.as_object().expect("an object")).expect("usable");
        Bench { directory, servers: session, secrets }
    }

    /// Waits until something is so.
    pub async fn wait(&self, is_so: impl Fn(&Bench) -> bool) {
        let waiting = async {
            while !is_so(self) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it has come to that");
    }

    pub fn state(&self) -> State {
        self.servers.find("s").expect("configured").snapshot().state
    }

    pub fn error(&self) -> String {
        self.servers.find("s").expect("configured").snapshot().error.unwrap_or_default()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    pub fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let found = self.servers.tools().into_iter().find(|tool| &*tool.spec().name == name);
        found.unwrap_or_else(|| panic!("no tool {name}"))
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> ToolOutput {
        self.run(&format!("mcp__s__{tool}"), arguments).await
    }

    /// Runs a tool as the model calls it.
    pub async fn run(&self, tool: &str, arguments: Value) -> ToolOutput {
        let context = ToolContext {
            call_id: "1".into(),
            cancel: CancellationToken::new(),
            update: Arc::new(|_| {}),
            trace: None,
        };
        let arguments: Map<String, Value> = arguments.as_object().expect("an object").clone();
        self.tool(tool).run(arguments, context).await
    }

    pub async fn connect(&self) {
        self.servers.connect(None).await;
    }
}

pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_test-server")
}

pub fn entry(directory: &Path, behaviour: &str) -> Value {
    json!({"command": program(), "args": [behaviour, directory.join("log")], "startupTimeoutMs": 60_000,
        "env": {"TOKEN": "secret-token"}})
}

pub fn text(output: &ToolOutput) -> &str {
    output.content[0].as_text().expect("text")
}
