//! What `pith acp` costs: to start, to open sessions, to keep them, to show a long one, to pass on a chunk.
//!
//! `cargo bench -p pith --bench acp` prints the figures; nothing is asserted here.

mod measure;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pith_acp::Client;
use pith_acp::acp::{SessionId, SessionNotification, SessionUpdate};
use pith_acp::piece::Piece;
use pith_acp::updates::{Notable, Sink, Translator};
use pith_acp::wire::append_notification;
use pith_protocol::AssistantEvent;
use pith_testkit::{Api, Block, Host, ModelServer, Script, TempHome, Turn};
use serde_json::{Value, json};

use measure::{PROGRAM, median, megabytes, ms, pss, show};

fn main() {
    let (initialize, new) = starts(41);
    show("spawn to the answer of initialize, median and slowest of 41", &both(initialize));
    show("session/new, the first of a process, median and slowest of 41", &both(new));
    let (first, further, opening) = idle(50);
    show("session/new, further ones, median of 50", &ms(opening));
    show("idle PSS with one session", &megabytes(first));
    show("each further idle session", &megabytes(further));
    show("session/load of a long conversation, median of 5", &load());
    let (short, long) = (chunk(1_000), chunk(100_000));
    show("a chunk of text from the event to its frame", &micros(short));
    show("the same after 100 000 chunks of the same message", &micros(long));
}

/// An editor that counts its requests.
struct Editor {
    host: Host,
    home: TempHome,
    n_sent: u64,
}

impl Editor {
    fn start(home: TempHome) -> Self {
        let (provider, model) = (Api::Anthropic.provider(), Api::Anthropic.model());
        let agent = home.agent().display().to_string();
        let builder = Host::builder(&*PROGRAM)
            .home(&home)
            .env("PITH_AGENT_DIR", &agent)
            .env("PITH_DUMPABLE", "1")
            .timeout(Duration::from_secs(120));
        let host = builder.args(["acp", "--provider", provider, "--model", model]).spawn();
        Editor { host, home, n_sent: 0 }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.n_sent += 1;
        let id = self.n_sent;
        self.host.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.host.wait(|frame| frame["id"] == id);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    fn initialize(&mut self) {
        self.ask("initialize", json!({"protocolVersion": 1}));
    }

    fn new_session(&mut self) -> String {
        let cwd = self.home.work();
        self.ask("session/new", json!({"cwd": cwd, "mcpServers": []}))["sessionId"].as_str().expect("an id").to_owned()
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn both(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let slowest = times.last().copied().unwrap_or_default();
    format!("{}, {}", ms(median(times)), ms(slowest))
}

/// How long processes take to answer `initialize`, and then to open a session.
fn starts(n: usize) -> (Vec<Duration>, Vec<Duration>) {
    let server = ModelServer::start(Script::new());
    let once = || {
        let home = TempHome::for_server(&server);
        let (mut editor, started) = timed(|| {
            let mut editor = Editor::start(home);
            editor.initialize();
            editor
        });
        (started, timed(|| editor.new_session()).1)
    };
    (0..n).map(|_| once()).unzip()
}

/// The memory of one idle session, of each further one, and how long those take to open.
fn idle(n: u64) -> (u64, u64, Duration) {
    let server = ModelServer::start(Script::new());
    let mut editor = Editor::start(TempHome::for_server(&server));
    editor.initialize();
    editor.new_session();
    let first = at_rest(&editor);
    let times = (0..n).map(|_| timed(|| editor.new_session()).1).collect();
    let all = at_rest(&editor);
    (first, all.saturating_sub(first) / n, median(times))
}

/// Memory is given back a moment after the last work.
fn at_rest(editor: &Editor) -> u64 {
    std::thread::sleep(Duration::from_millis(500));
    pss(editor.host.pid())
}

/// How long it takes to show a session of 5 000 messages and 10 MB.
fn load() -> String {
    let server =
        ModelServer::start(Script::of([Turn::blocks([Block::text("One more line of an answer.\n".repeat(50))])]));
    let mut editor = Editor::start(TempHome::for_server(&server));
    editor.initialize();
    let session = editor.new_session();
    editor.ask("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}));
    editor.ask("session/close", json!({"sessionId": session}));
    let file = lengthen(&editor.home, &session, 5000);
    let loads: Vec<_> = (0..5).map(|_| timed_load(&editor.home, &session)).collect();
    let n_frames = loads[0].0;
    let time = median(loads.into_iter().map(|(_, time)| time).collect());
    format!("{} ({:.1} MB, {n_frames} frames)", ms(time), file as f64 / 1e6)
}

/// Loads a session for a client that only counts lines, so that its own work is no part of the time. Returns how many
/// came up to the answer, and how long that took.
fn timed_load(home: &TempHome, session: &str) -> (usize, Duration) {
    let mut command = Command::new(&*PROGRAM);
    command.args(["acp", "--provider", Api::Anthropic.provider(), "--model", Api::Anthropic.model()]);
    command.env_clear().envs(home.environment()).env("PITH_AGENT_DIR", home.agent()).current_dir(home.work());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("stdin is piped");
    let mut output = BufReader::with_capacity(64 << 10, child.stdout.take().expect("stdout is piped"));
    let mut ask = |id: u64, method: &str, params: Value| {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n";
        input.write_all(line.as_bytes()).expect("it reads");
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result""#);
        let (mut line, mut n_lines) = (Vec::new(), 0);
        while !line.starts_with(answer.as_bytes()) {
            line.clear();
            assert_ne!(output.read_until(b'\n', &mut line).expect("it writes"), 0, "no answer to {method}");
            n_lines += 1;
        }
        n_lines
    };
    ask(1, "initialize", json!({"protocolVersion": 1}));
    let load = json!({"sessionId": session, "cwd": home.work(), "mcpServers": []});
    let loaded = timed(|| ask(2, "session/load", load));
    drop(input);
    child.wait().expect("it ends");
    loaded
}

/// Repeats the last answer of a session until it has `n`; returns the size of its file.
fn lengthen(home: &TempHome, session: &str, n: usize) -> u64 {
    let places = walk(&home.agent().join("sessions"));
    let path = places.into_iter().find(|path| path.to_string_lossy().contains(session)).expect("a session file");
    let text = std::fs::read_to_string(&path).expect("text");
    let is_answer = |line: &Value| line["message"]["role"] == "assistant";
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut answer = lines.rfind(is_answer).expect("an answer");
    let mut longer = text.clone();
    for number in 0..n {
        answer["parentId"] = answer["id"].clone();
        answer["id"] = json!(format!("{number:08x}"));
        longer.push_str(&answer.to_string());
        longer.push('\n');
    }
    std::fs::write(&path, longer).expect("written");
    path.metadata().expect("it is there").len()
}

/// Frames of updates, in a buffer that is used again.
#[derive(Default)]
struct Frames(Vec<u8>);

impl Sink for Frames {
    fn update(&mut self, update: SessionUpdate) {
        self.0.clear();
        append_notification(
            &mut self.0,
            "session/update",
            &SessionNotification::new(SessionId::new("session"), update),
        );
    }

    fn text(&mut self, piece: Piece, text: &str) {
        self.update(piece.update(text));
    }

    fn progress(&mut self, _call: &str, update: SessionUpdate) {
        self.update(update);
    }

    fn progress_ended(&mut self, _call: &str) {}

    fn tell(&mut self, _notable: Notable) {}

    fn log(&mut self, _text: &str) {}
}

/// What a chunk costs behind `before` others of its message.
fn chunk(before: usize) -> Duration {
    const N_CHUNKS: u32 = 10_000;
    let mut translator = Translator::new("/work".into(), Client::default());
    let mut frames = Frames::default();
    translator.entry("0a1b2c3d");
    translator.stream(&AssistantEvent::Start(Box::default()), &mut frames);
    translator.stream(&AssistantEvent::TextStart { index: 0 }, &mut frames);
    let delta = AssistantEvent::TextDelta { index: 0, delta: "some words of it ".to_owned() };
    (0..before).for_each(|_| translator.stream(&delta, &mut frames));
    timed(|| (0..N_CHUNKS).for_each(|_| translator.stream(&delta, &mut frames))).1 / N_CHUNKS
}

fn micros(time: Duration) -> String {
    format!("{:.2} µs", time.as_secs_f64() * 1e6)
}

fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
