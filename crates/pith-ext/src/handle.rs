//! The session's side of the extension engine.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::config::{ExtensionConfig, ExtensionSource, Limits, Surroundings};
use crate::engine::inbox::{Inbox, ToEngine};
use crate::events::EventName;
use crate::registry::{Registry, SourceInfo};
use crate::shared::{Answered, Busy, CallError, PendingCall, Progress, Shared};

/// How often a waiting call checks whether the engine is alive.
const ALIVE_CHECK: Duration = Duration::from_millis(500);

/// Talks to the engine thread. Cheap to clone; every method returns in bounded time.
#[derive(Clone)]
pub struct ExtensionHandle {
    pub(crate) shared: Arc<Shared>,
    engine: Arc<EngineLink>,
    pub(crate) limits: Arc<Limits>,
}

/// The channel to the engine thread. The thread ends when the last handle is dropped.
struct EngineLink(Inbox);

impl EngineLink {
    fn send(&self, message: ToEngine) -> bool {
        self.0.send(message).is_ok()
    }
}

impl Drop for EngineLink {
    fn drop(&mut self) {
        self.send(ToEngine::Stop);
    }
}

/// The result of loading extensions.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct LoadReport {
    pub extensions: Vec<LoadedExtension>,
    pub errors: Vec<LoadError>,
}

/// A loaded extension.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadedExtension {
    pub path: String,
    pub source_info: SourceInfo,
    pub tools: Vec<String>,
    pub commands: Vec<String>,
    pub flags: Vec<String>,
    pub events: Vec<String>,
    /// `{kind, customType?}` of the renderers it registered; they are never called.
    pub renderers: Vec<Value>,
    /// Providers it will register when the session begins.
    pub providers: Vec<String>,
}

/// Why an extension was not loaded, or not completely.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LoadError {
    pub path: String,
    /// The whole text, `Failed to load extension "…": …`.
    pub error: String,
    /// The stack in the extension's own files.
    #[serde(default)]
    pub stack: Option<String>,
}

impl LoadError {
    /// Creates an error without a stack.
    pub fn new(path: impl Into<String>, why: &str) -> Self {
        let path = path.into();
        LoadError { error: format!("Failed to load extension \"{path}\": {why}"), path, stack: None }
    }

    /// Returns the text, followed by the stack.
    pub fn in_full(&self) -> String {
        self.stack.iter().fold(self.error.clone(), |text, stack| format!("{text}\n{stack}"))
    }

    /// Maps the stack to source lines and removes the engine's own.
    fn map_stack(&mut self) {
        let Some(stack) = self.stack.take() else { return };
        let mapped = crate::modules::stack::mapped(&stack);
        let lines: Vec<&str> =
            mapped.lines().filter(|line| line.contains(" at ") && !line.contains("(pith:")).collect();
        self.stack = (!lines.is_empty()).then(|| lines.join("\n"));
    }
}

/// What happens to extensions that are loaded already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loading {
    /// They stay; only new sources are loaded.
    Add,
    /// All are instantiated again, for another session.
    Again,
    /// All are read from disk and instantiated again.
    Reload,
}

/// How long a caller waits for an engine that does not return.
#[derive(Clone, Copy)]
pub(crate) enum EngineWait {
    /// As long as the engine is alive.
    Alive,
    /// As long as a handler may block the engine.
    Handler,
}

impl ExtensionHandle {
    pub(crate) fn new(shared: Arc<Shared>, inbox: Inbox, config: &ExtensionConfig) -> Self {
        ExtensionHandle { shared, engine: Arc::new(EngineLink(inbox)), limits: Arc::new(config.limits) }
    }

    /// Loads extensions in order. Those that cannot be loaded are reported and left out.
    pub async fn load(&self, sources: &[ExtensionSource], loading: Loading, surroundings: &Surroundings) -> LoadReport {
        let args = json!({
            "sources": sources,
            "config": surroundings,
            "fresh": loading != Loading::Add,
            "forget": loading == Loading::Reload,
        });
        match self.call::<LoadReport>("load", &args, EngineWait::Alive).await {
            Ok(mut report) => {
                report.errors.iter_mut().for_each(LoadError::map_stack);
                report
            }
            Err(error) => {
                let failed = |source: &ExtensionSource| LoadError::new(&source.path, &error.to_string());
                LoadReport { extensions: Vec::new(), errors: sources.iter().map(failed).collect() }
            }
        }
    }

    /// Called when the session exists: actions of extensions work from now on, and queued providers are registered.
    pub async fn bind(&self, surroundings: &Surroundings, flags: &HashMap<String, Value>) {
        let args = json!({ "config": surroundings, "flagValues": flags });
        let _ = self.call::<Value>("bind", &args, EngineWait::Alive).await;
    }

    /// Called when the session is over: every `pi` and `ctx` of it throws from now on, and its dialogs end.
    pub async fn invalidate(&self) {
        let _ = self.call::<Value>("stale", &Value::Null, EngineWait::Handler).await;
    }

    /// Returns what is registered now.
    pub fn registry(&self) -> Arc<Registry> {
        self.shared.registry()
    }

    /// Returns whether any extension listens for an event. Ask before building its payload.
    pub fn listens(&self, event: EventName) -> bool {
        self.shared.listening.has(event)
    }

    /// Reports a problem between the agent and its extensions to the host.
    pub fn report(&self, path: &str, event: EventName, error: impl Into<String>) {
        self.shared.report(path, event.as_str(), error);
    }

    /// Returns whether the engine still runs.
    pub fn is_alive(&self) -> bool {
        !self.shared.is_gone()
    }

    /// Returns when the engine has made no progress for `limit`: extension code loops, or waits.
    pub async fn stalled(&self, limit: Duration) {
        const STEPS: u32 = 4;
        let mut seen = self.shared.activity.n_steps();
        let mut n_same = 0;
        while n_same < STEPS {
            tokio::time::sleep(limit / STEPS).await;
            let now = self.shared.activity.n_steps();
            n_same = if now == seen { n_same + 1 } else { 0 };
            seen = now;
        }
    }

    /// Returns how long extensions may take when the process ends.
    pub fn shutdown_limit(&self) -> Duration {
        self.limits.shutdown
    }

    /// Stops the engine at once. Calls that still wait fail.
    pub fn stop(&self) {
        self.engine.send(ToEngine::Stop);
        self.shared.end();
    }

    /// Stops the engine once it has handled everything sent before; `process.on("exit")` handlers are called.
    pub async fn close(&self) {
        self.engine.send(ToEngine::Stop);
        if tokio::time::timeout(self.limits.shutdown, self.gone()).await.is_err() {
            self.stop();
        }
    }

    /// Returns when the engine has ended, for whatever reason.
    pub async fn gone(&self) {
        while self.is_alive() {
            self.shared.ended().await;
        }
    }

    /// Called when a run begins: `ctx.signal` exists until [`Self::end_run`].
    pub fn begin_run(&self) {
        self.tell("run", &json!({ "state": "begin" }));
    }

    /// Called when the run is aborted: its signal fires and its dialogs end.
    pub fn abort_run(&self) {
        self.tell("run", &json!({ "state": "abort" }));
    }

    /// Called when the run has ended.
    pub fn end_run(&self) {
        self.tell("run", &json!({ "state": "end" }));
    }

    /// Runs a slash command; returns `false` if there is none of that name. Failures are reported as `extension_error`.
    pub async fn run_command(&self, name: &str, args: &str) -> bool {
        #[derive(Deserialize)]
        struct Ran {
            found: bool,
        }
        let ran = self.call::<Ran>("command", &json!({ "name": name, "args": args }), EngineWait::Alive).await;
        ran.map_or_else(
            |error| {
                self.shared.report(&format!("command:{name}"), "command", error.to_string());
                true
            },
            |ran| ran.found,
        )
    }

    /// Returns the completions a command offers for its arguments: `{value, label, description?}[]`, or null.
    pub async fn complete_arguments(&self, name: &str, prefix: &str) -> Value {
        let args = json!({ "name": name, "prefix": prefix });
        self.call("completions", &args, EngineWait::Handler).await.unwrap_or(Value::Null)
    }

    /// Sends a call without waiting for its result.
    pub(crate) fn tell(&self, method: &'static str, args: &impl Serialize) {
        let (reply, _) = oneshot::channel();
        let id = self.shared.open_call(PendingCall { reply, progress: None });
        self.send(id, method, args);
    }

    /// Stores an observation; only the newest of each key is delivered.
    pub(crate) fn observe(&self, key: &str, text: String) {
        if self.shared.put_update(key, text) {
            self.engine.send(ToEngine::Update { key: key.to_owned() });
        }
    }

    /// Calls a method of the JavaScript side.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        args: &impl Serialize,
        wait: EngineWait,
    ) -> Result<T, CallError> {
        let start = Instant::now();
        let outcome = self.open(method, args, None).finish(wait).await;
        debug!(target: "pith::extension", method, is_ok = outcome.is_ok(), took = ?start.elapsed(), "call");
        outcome.and_then(|text| read(&text))
    }

    /// Starts a call that may report progress and can be aborted.
    pub(crate) fn open(&self, method: &'static str, args: &impl Serialize, progress: Option<Progress>) -> OpenCall {
        let (reply, outcome) = oneshot::channel();
        let id = self.shared.open_call(PendingCall { reply, progress });
        self.send(id, method, args);
        OpenCall { handle: self.clone(), id, outcome }
    }

    fn send(&self, id: u64, method: &'static str, args: &impl Serialize) {
        let args = serde_json::to_string(args).expect("plain data serializes");
        let is_sent = !self.shared.is_gone() && self.engine.send(ToEngine::Call { id, method, args });
        if !is_sent {
            self.shared.answer(id, Err(CallError::Gone));
        }
    }

    /// Checks whether the engine has been silent for too long; if so it may be given up.
    fn check(&self, wait: EngineWait) -> Option<CallError> {
        match (self.shared.activity.busy(), wait) {
            (Busy::Running(spent), _) if spent > self.limits.slice + self.limits.hang_grace => {
                self.abandon();
                Some(CallError::Gone)
            }
            (Busy::Blocking(spent), EngineWait::Handler) if spent > self.limits.handler => Some(CallError::Timeout),
            _ => None,
        }
    }

    /// Gives up the engine, whose native code does not return. The thread is leaked.
    fn abandon(&self) {
        if self.shared.end() {
            self.shared.report("<runtime>", "disabled", "Extensions stopped responding and are off for this session");
        }
    }
}

/// A call that has not ended.
pub(crate) struct OpenCall {
    handle: ExtensionHandle,
    id: u64,
    outcome: oneshot::Receiver<Answered>,
}

impl OpenCall {
    /// Fires the call's abort signal.
    pub fn abort(&self) {
        self.handle.engine.send(ToEngine::Abort { id: self.id });
    }

    /// Waits for the answer; fails if the engine is gone.
    pub async fn finish(mut self, wait: EngineWait) -> Result<String, CallError> {
        self.wait(wait).await
    }

    /// Waits for the answer; aborts the call when `cancel` fires, and gives up some time after that.
    pub async fn finish_or_abort(mut self, cancel: &CancellationToken) -> Result<String, CallError> {
        tokio::select! {
            biased;
            outcome = self.wait(EngineWait::Alive) => return outcome,
            () = cancel.cancelled() => self.abort(),
        }
        let grace = self.handle.limits.abort_grace;
        tokio::time::timeout(grace, self.wait(EngineWait::Alive)).await.unwrap_or(Err(CallError::Timeout))
    }

    async fn wait(&mut self, wait: EngineWait) -> Result<String, CallError> {
        loop {
            tokio::select! {
                biased;
                answered = &mut self.outcome => {
                    let Ok(Answered { outcome, requests }) = answered else { return Err(CallError::Gone) };
                    self.handle.shared.caught_up(requests).await;
                    return outcome;
                }
                () = tokio::time::sleep(ALIVE_CHECK) => {
                    if let Some(error) = self.handle.check(wait) {
                        return Err(error);
                    }
                }
            }
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        // Whatever the engine still reports about this call is ignored.
        self.handle.shared.close_call(self.id);
    }
}

pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, CallError> {
    crate::json::parse(text).map_err(|error| CallError::Failed(format!("Unusable result: {error}")))
}
