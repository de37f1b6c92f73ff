//! A session and its host in one process: commands in, frames out, a model that follows a script, a clock that stands
//! still.

use std::future::Future;
use std::time::{Duration, Instant};

use pith_protocol::{Inbound, inbound};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};

use super::builder::Builder;
use super::clock::{self, Pace};
use super::extensions::{Engine, Log};
use super::frames::{Frames, describe, is_like, nesting_problem};
use super::model::{Script, ScriptedModel};
use super::session::{HostReader, Opened, Serving};

/// A host and the session it talks to. Wait only through its methods: they keep the clock and the extensions' thread in
/// step.
pub struct Harness {
    pub model: ScriptedModel,
    /// Whether this host reads what it is sent.
    pub reader: HostReader,
    /// Printed by extensions.
    pub log: Log,
    frames: Frames,
    /// `None` once the host has disconnected.
    inbox: Option<mpsc::Sender<Inbound>>,
    /// `None` once the session has ended.
    serving: Option<Serving>,
    engine: Option<Engine>,
    late: Option<oneshot::Sender<()>>,
    timeout: Duration,
    directory: TempDir,
    /// Frames before this index have been waited for.
    cursor: usize,
    /// The lines sent so far, and those that wait for a frame.
    sent: Vec<Value>,
    n_lines: usize,
    /// Whether a failing test shows the frames.
    shows_frames: bool,
}

/// What a session runs with.
pub struct Surroundings {
    pub model: ScriptedModel,
    pub frames: Frames,
    pub log: Log,
    /// The engine's thread, if there are extensions.
    pub engine: Option<Engine>,
    /// Starts the loading of extensions that the session does not wait for.
    pub late: Option<oneshot::Sender<()>>,
    /// Nothing a session does by itself takes longer: a wait that lasts this long has failed.
    pub timeout: Duration,
    pub directory: TempDir,
}

/// How long real processes may take before a test fails.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the thread of a dead engine may take to report its end.
const ENGINE_END_TIMEOUT: Duration = Duration::from_secs(20);

/// Extension code runs in real time: the clock must not run far ahead of it.
const LONGEST_STEP: Duration = Duration::from_millis(200);

impl Harness {
    /// Creates a session in memory, without tools and extensions, whose model follows a script.
    pub fn new(script: impl Into<Script>) -> Harness {
        Builder::new(script).open()
    }

    /// Creates a builder, for tests that need more than that.
    pub fn builder(script: impl Into<Script>) -> Builder {
        Builder::new(script)
    }

    /// Creates a host for any session, however it was opened.
    pub fn over(session: Opened, around: Surroundings) -> Harness {
        let Opened { inbox, reader, serving } = session;
        let Surroundings { model, frames, log, engine, late, timeout, directory } = around;
        let (inbox, serving) = (Some(inbox), Some(serving));
        let (cursor, sent, n_lines, shows_frames) = (0, Vec::new(), 0, true);
        Harness {
            model,
            reader,
            log,
            frames,
            inbox,
            serving,
            engine,
            late,
            timeout,
            directory,
            cursor,
            sent,
            n_lines,
            shows_frames,
        }
    }

    /// Sends a line and returns its id; a command without one gets a fresh one.
    pub fn send(&mut self, line: Value) -> String {
        let (id, line) = self.address(line);
        // A session that has ended takes no more lines; waiting for the answer will fail.
        let _ = self.inbox().try_send(line);
        id
    }

    /// Sends a line at the moment a frame like `pattern` leaves the session, before anything else happens.
    pub fn send_when(&mut self, pattern: Value, line: Value) -> String {
        let (id, line) = self.address(line);
        self.frames.react(id.clone(), pattern, line, self.inbox());
        id
    }

    /// Sends a command and returns its response.
    pub async fn ask(&mut self, command: Value) -> Value {
        let id = self.send(command);
        self.response(&id).await
    }

    /// Sends a command that must succeed, and returns its data.
    pub async fn data(&mut self, command: Value) -> Value {
        let mut response = self.ask(command).await;
        assert_eq!(response["success"], true, "{response}");
        response["data"].take()
    }

    /// Sends a command that must fail, and returns the reason.
    pub async fn refusal(&mut self, command: Value) -> String {
        let response = self.ask(command).await;
        assert_eq!(response["success"], false, "{response}");
        response["error"].as_str().expect("errors are texts").to_owned()
    }

    /// Prompts and waits until the work is over; the prompt must be accepted.
    pub async fn run(&mut self, message: &str) {
        let data = self.data(json!({"type": "prompt", "message": message})).await;
        assert_eq!(data["disposition"], "started");
        self.wait_type("agent_settled").await;
    }

    /// `get_state`.
    pub async fn state(&mut self) -> Value {
        self.data(json!({"type": "get_state"})).await
    }

    /// Answers a dialog of an extension (`value`, `confirmed`, `cancelled`), a call of a host tool (`result`) or a
    /// question about a call (`optionId`), given its frame.
    pub fn answer(&mut self, request: &Value, mut answer: Value) {
        let kind = match request["type"].as_str() {
            Some("host_tool_call") => "host_tool_result",
            Some("permission_request") => "permission_response",
            _ => "extension_ui_response",
        };
        answer["type"] = json!(kind);
        answer["id"] = request["id"].clone();
        self.send(answer);
    }

    /// Waits for the response to a command, which may have come already.
    pub async fn response(&mut self, id: &str) -> Value {
        let pattern = json!({"type": "response", "id": id});
        self.until(&format!("the response to {id}"), |host| host.frames.find(0, &pattern)).await.1
    }

    /// Waits for the next frame of a type.
    pub async fn wait_type(&mut self, kind: &str) -> Value {
        self.wait(json!({"type": kind})).await
    }

    /// Waits for the next frame like `pattern`; earlier frames count as seen.
    pub async fn wait(&mut self, pattern: Value) -> Value {
        let what = format!("a frame like {pattern}");
        let (at, frame) = self.until(&what, |host| host.frames.find(host.cursor, &pattern)).await;
        self.cursor = at + 1;
        frame
    }

    /// Waits until the model has been called `n` times.
    pub async fn wait_calls(&mut self, n: usize) {
        self.until(&format!("request {n} to the model"), |host| (host.model.calls().len() >= n).then_some(())).await;
    }

    /// Waits until an extension has printed a line.
    pub async fn wait_log(&mut self, line: &str) {
        let is_there = |host: &Harness| host.log.lines().iter().any(|known| known == line).then_some(());
        self.until(&format!("the line {line:?} of an extension"), is_there).await;
    }

    /// Lets time pass until nothing happens any more, retries and time limits included.
    pub async fn settle(&mut self) {
        let mut pace = self.pace();
        let began = Instant::now();
        while pace.quiet() < self.timeout && self.is_served() {
            self.step(&mut pace, began).await;
        }
        self.cursor = self.frames.len();
    }

    /// Lets that much time pass, whatever happens meanwhile.
    pub async fn pass(&mut self, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < end && self.is_served() {
            if let Some(engine) = self.engine.clone() {
                self.serve_during(engine.catch_up()).await;
            }
            let next = end.min(tokio::time::Instant::now() + LONGEST_STEP);
            self.serve_during(tokio::time::sleep_until(next)).await;
        }
    }

    /// Lets the runtime take `n` steps without letting time pass, to stop it between two events.
    pub async fn polls(&mut self, n: usize) {
        for _ in 0..n {
            self.serve_during(tokio::task::yield_now()).await;
        }
    }

    /// Returns every frame so far.
    pub fn frames(&self) -> Vec<Value> {
        self.frames.all()
    }

    /// Keeps a failing test from showing the frames.
    pub fn hide_frames(&mut self) {
        self.shows_frames = false;
    }

    /// Returns every line sent so far.
    pub fn sent(&self) -> impl Iterator<Item = &Value> {
        self.sent.iter().filter(|line| !self.frames.is_unsent(&line["id"]))
    }

    /// Drops the lines of [`Harness::send_when`] whose frames have not come.
    pub fn forget_unsent(&mut self) {
        let frames = &self.frames;
        self.sent.retain(|line| !frames.is_unsent(&line["id"]));
        frames.forget_unsent();
    }

    /// Returns how many frames so far are like `pattern`.
    pub fn count(&self, pattern: Value) -> usize {
        self.frames.count(&pattern)
    }

    /// Returns whether the session is still being served.
    pub fn is_served(&self) -> bool {
        self.serving.is_some()
    }

    /// The session's working directory.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Stops the extension engine, as a crash would.
    pub fn kill_extensions(&self) {
        self.engine.as_ref().expect("there are extensions").0.stop();
    }

    /// Lets the late extensions load.
    pub fn finish_loading(&mut self) {
        let late = self.late.take().expect("extensions are being loaded");
        late.send(()).expect("the session waits for its extensions");
    }

    /// Disconnects the host.
    pub fn hang_up(&mut self) {
        self.inbox = None;
    }

    /// Disconnects and waits for the end of the session; `false` if it does not come.
    pub async fn end(&mut self) -> bool {
        self.hang_up();
        let began = Instant::now();
        loop {
            self.settle().await;
            if !self.is_served() || began.elapsed() > ENGINE_END_TIMEOUT {
                return !self.is_served();
            }
            // The engine has ended, but its thread may not have reported that yet.
            self.serve_during(clock::let_processes_work()).await;
        }
    }

    /// Disconnects, waits for the end of the session and checks what every session must have done by then: one answer
    /// to each command, an end to each start.
    pub async fn finish(mut self) -> Vec<Value> {
        assert!(self.end().await, "the session does not end");
        let problems = self.problems();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        self.frames()
    }

    /// Describes what is wrong with the whole exchange so far, once everything is over.
    pub fn problems(&self) -> Vec<String> {
        let frames = self.frames();
        let mut problems: Vec<String> = nesting_problem(&frames).into_iter().collect();
        for command in self.sent().filter(|line| is_answered(line)) {
            let pattern = json!({"type": "response", "id": command["id"], "command": command["type"]});
            match frames.iter().filter(|frame| is_like(frame, &pattern)).count() {
                1 => {}
                n => problems.push(format!("{n} answers to {command}")),
            }
        }
        problems
    }

    fn address(&mut self, mut line: Value) -> (String, Inbound) {
        if line.get("id").is_none() {
            self.n_lines += 1;
            line["id"] = Value::from(format!("{}-{}", line["type"].as_str().unwrap_or("line"), self.n_lines));
        }
        let id = line["id"].as_str().unwrap_or_default().to_owned();
        let decoded = inbound::decode(line.to_string().as_bytes()).expect("a test sends no blank lines");
        self.sent.push(line);
        (id, decoded)
    }

    fn inbox(&self) -> mpsc::Sender<Inbound> {
        self.inbox.clone().expect("the host has not hung up")
    }

    /// Waits until `find` returns something.
    async fn until<T>(&mut self, what: &str, mut find: impl FnMut(&Harness) -> Option<T>) -> T {
        let mut pace = self.pace();
        let began = Instant::now();
        loop {
            if let Some(found) = find(self) {
                return found;
            }
            assert!(self.is_served(), "the session ended before {what}");
            assert!(pace.quiet() < self.timeout, "nothing happens any more, and there was no sign of {what}");
            self.step(&mut pace, began).await;
        }
    }

    fn pace(&self) -> Pace {
        Pace::new(if self.engine.is_some() { LONGEST_STEP } else { self.timeout })
    }

    /// Lets everything run that can, and advances the clock if nothing does.
    async fn step(&mut self, pace: &mut Pace, began: Instant) {
        let activity = self.frames.activity.clone();
        let seen = activity.count();
        if let Some(engine) = self.engine.clone() {
            self.serve_during(engine.catch_up()).await;
        }
        if self.has_processes() {
            assert!(began.elapsed() < PROCESS_TIMEOUT, "a command of the host does not end");
            self.serve_during(clock::let_processes_work()).await;
            pace.restart();
        }
        let has_news = self.serve_during(async {
            tokio::select! {
                biased;
                () = activity.beyond(seen) => true,
                () = tokio::time::sleep(pace.step()) => false,
            }
        });
        if has_news.await { pace.restart() } else { pace.relax() }
    }

    /// Serves the session while waiting for something.
    async fn serve_during<T>(&mut self, waited: impl Future<Output = T>) -> T {
        tokio::pin!(waited);
        if let Some(serving) = &mut self.serving {
            tokio::select! {
                biased;
                () = serving => {}
                done = &mut waited => return done,
            }
            self.serving = None;
        }
        waited.await
    }

    /// Whether a shell command of the host runs, which takes real time.
    fn has_processes(&self) -> bool {
        let mut commands = self.sent().filter(|line| line["type"] == "bash");
        commands.any(|line| self.frames.find(0, &json!({"type": "response", "id": line["id"]})).is_none())
    }
}

impl Drop for Harness {
    /// Shows the frames if the test failed.
    fn drop(&mut self) {
        if self.shows_frames && std::thread::panicking() {
            let (frames, log) = (describe(&self.frames()), self.log.lines().join("\n"));
            eprintln!("frames so far:\n{frames}\nextensions printed:\n{log}");
        }
    }
}

/// Whether a line gets a response: replies of the host get none.
fn is_answered(line: &Value) -> bool {
    let kind = line["type"].as_str().unwrap_or_default();
    !pith_protocol::HostReply::NAMES.contains(&kind)
}
