//! Plays a case against a session and returns the rules it broke.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use pith_agent::{ToolContext, ToolOutput};
use pith_config::settings::Fsync;
use pith_protocol::Message;
use pith_store::SessionStore;
use serde_json::{Value, json};

use crate::case::{Act, Case, Moment, long};
use crate::rules;
use crate::support::{Frames, Harness, RetryPolicy};

/// The result of a case.
#[derive(Clone)]
pub struct Outcome {
    /// Empty if no rule was broken.
    pub violations: Vec<String>,
    pub frames: Vec<Value>,
}

/// Plays a case in a runtime of its own.
pub fn play(case: &Case) -> Outcome {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().expect("a runtime");
    let frames = Frames::default();
    PANIC.set(Some(String::new()));
    let played = catch_unwind(AssertUnwindSafe(|| runtime.block_on(live(case, frames.clone()))));
    let panic = PANIC.take();
    let violations = played.unwrap_or_else(|_| panic.into_iter().collect());
    Outcome { violations, frames: frames.all() }
}

thread_local! {
    /// The newest panic of this thread, with its location; `None` where no case is played.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Cases cause panics on purpose: while one is played they are stored instead of shown.
pub fn collect_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let show = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANIC.with_borrow_mut(|kept| match kept {
                Some(kept) => *kept = panic.to_string().replace('\n', " "),
                None => show(panic),
            });
        }));
    });
}

/// Opens a dialog now and then, and otherwise does nothing.
const EXTENSION: &str = "
    let n = 0;
    const sometimes = () => ++n % 3 === 0;
    export default (pi) => {
        pi.registerCommand('ask', { handler: async (_, ctx) => { await ctx.ui.select('Which?', ['A', 'B']); } });
        pi.on('input', async (_, ctx) => { if (sometimes()) await ctx.ui.confirm('Really?', ''); });
        pi.on('tool_call', async (_, ctx) => { if (sometimes()) await ctx.ui.confirm('Run it?', ''); });
        pi.on('session_compact', async (_, ctx) => { if (sometimes()) await ctx.ui.confirm('Compacted', ''); });
        pi.on('session_before_compact', async (_, ctx) => { if (sometimes()) await ctx.ui.confirm('Compact?', ''); });
        pi.on('session_before_switch', async (_, ctx) => { if (sometimes()) await ctx.ui.confirm('Leave?', ''); });
        pi.on('session_before_fork', async () => {});
        pi.on('session_tree', async () => {});
        pi.on('turn_end', async (_, ctx) => { if (sometimes()) await ctx.ui.confirm('Go on?', ''); });
        pi.on('agent_before_settle', async () => {});
        pi.on('agent_settled', async () => {});
        pi.on('model_select', async () => {});
        pi.on('session_start', (event) => console.log('start ' + event.reason));
        pi.on('session_shutdown', (event) => console.log('shutdown ' + event.reason));
    };";

async fn live(case: &Case, frames: Frames) -> Vec<String> {
    let is_wild = Arc::new(AtomicBool::new(false));
    let mut host = open(case, frames, is_wild.clone()).await;
    let mut table = Table { is_answered: Cell::new(0), disk: None };
    for _ in 0..case.n_prompts_before {
        // Something to compact, to fork and to navigate to.
        host.send(json!({"type": "prompt", "message": long(2500)}));
        table.answer_all(&mut host).await;
    }
    is_wild.store(true, Ordering::Relaxed);
    for step in &case.steps {
        table.perform(&mut host, &step.act);
        match step.moment {
            // A shell command of the host may run for ever, so the session need not settle.
            Moment::Settle if case.runs_commands() => host.pass(Duration::from_secs(7)).await,
            Moment::Polls(n) => host.polls(n).await,
            Moment::Pass(time) => host.pass(time).await,
            Moment::Settle => host.settle().await,
        }
    }
    is_wild.store(false, Ordering::Relaxed);
    let mut violations = if case.ends_abruptly {
        hang_up(&mut host).await
    } else {
        table.come_to_rest(&mut host).await;
        last_words(&mut host, &table).await
    };
    violations.extend(host.problems());
    violations.extend(rules::violations(&host.frames()));
    violations.extend(rules::unmatched(&host.log.lines()));
    violations
}

async fn open(case: &Case, frames: Frames, is_wild: Arc<AtomicBool>) -> Harness {
    let script = case.script(move || is_wild.load(Ordering::Relaxed));
    let mut builder = Harness::builder(script)
        .recording(frames)
        .window(case.window)
        .options(|options| {
            let (base_delay, max_delay) = (Duration::from_millis(50), Duration::from_millis(200));
            options.retry = RetryPolicy { max_retries: 2, base_delay, max_delay, ..RetryPolicy::default() };
        })
        .tool("quick", |_, _| async { ToolOutput::text("done") })
        .tool("slow", |_, context| slow(context))
        .tool("stubborn", |_, _| async {
            tokio::time::sleep(Duration::from_secs(8)).await;
            ToolOutput::text("at last")
        })
        .tool("panics", |_, _| async { panic!("the tool panics, as the test wants") });
    if case.is_saved {
        builder = builder.saved();
    }
    if !case.is_synced {
        builder = builder.settings(|settings| settings.session.fsync = Fsync::Never);
    }
    if case.has_extension {
        builder = builder.extension("random.ts", EXTENSION);
    }
    let mut host = builder.start().await;
    host.hide_frames();
    host
}

async fn slow(context: ToolContext) -> ToolOutput {
    for n in 0..20 {
        (context.update)(ToolOutput::text(n.to_string()));
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
            () = context.cancel.cancelled() => return ToolOutput::error("aborted"),
        }
    }
    ToolOutput::text("done")
}

/// What the host keeps track of.
struct Table {
    /// Frames before this index need no answer any more.
    is_answered: Cell<usize>,
    /// Where the session directory is while it is unwritable.
    disk: Option<(PathBuf, PathBuf)>,
}

impl Table {
    fn perform(&mut self, host: &mut Harness, act: &Act) {
        match act {
            Act::Send(command) => {
                host.send(filled_in(command, &host.frames()));
            }
            Act::SendAt(frame, command) => {
                host.send_when(json!({"type": frame}), filled_in(command, &host.frames()));
            }
            Act::StopReading => host.reader.stop(),
            Act::Read => host.reader.resume(),
            Act::BreakDisk => self.break_disk(host),
            Act::MendDisk => self.mend_disk(),
            Act::AnswerDialog => {
                self.answer(host, "extension_ui_request");
            }
            Act::AnswerTool => {
                self.answer(host, "host_tool_call");
            }
            Act::Release => host.model.release(),
        }
    }

    /// Answers the oldest question of a kind; `false` if there is none.
    fn answer(&self, host: &mut Harness, kind: &str) -> bool {
        let frames = host.frames();
        let is_question = |frame: &Value| {
            let is_dialog = matches!(frame["method"].as_str(), Some("select" | "confirm"));
            frame["type"] == kind && (is_dialog || kind == "host_tool_call")
        };
        let rest = frames.iter().enumerate().skip(self.is_answered.get());
        let Some((at, question)) = rest.into_iter().find(|(_, frame)| is_question(frame)) else { return false };
        self.is_answered.set(at + 1);
        let result = json!({"content": [{"type": "text", "text": "by the host"}]});
        host.answer(question, json!({"value": "A", "confirmed": true, "result": result}));
        true
    }

    /// Puts a file in the place of the session directory, so that nothing can be written.
    fn break_disk(&mut self, host: &Harness) {
        let place = host.directory().join("sessions");
        let aside = host.directory().join("sessions aside");
        if self.disk.is_none() && place.is_dir() && std::fs::rename(&place, &aside).is_ok() {
            std::fs::write(&place, "no directory").expect("a file in the way");
            self.disk = Some((place, aside));
        }
    }

    fn mend_disk(&mut self) {
        if let Some((place, aside)) = self.disk.take() {
            std::fs::remove_file(&place).expect("the file in the way");
            std::fs::rename(&aside, &place).expect("the sessions are still there");
        }
    }

    /// Does everything a host can do to let the session settle.
    async fn come_to_rest(&mut self, host: &mut Harness) {
        host.forget_unsent();
        host.reader.resume();
        self.mend_disk();
        self.is_answered.set(0);
        (0..20).for_each(|_| host.model.release());
        host.send(json!({"type": "set_limits", "limits": {"turns": null, "wallSeconds": null, "repeats": null}}));
        host.send(json!({"type": "resume"}));
        host.send(json!({"type": "abort"}));
        while has_command(host) {
            self.answer(host, "extension_ui_request");
            host.send(json!({"type": "abort_bash"}));
            host.pass(Duration::from_millis(100)).await;
        }
        self.answer_all(host).await;
    }

    /// Answers everything the session asks until it has settled.
    async fn answer_all(&self, host: &mut Harness) {
        loop {
            host.settle().await;
            if !self.answer(host, "extension_ui_request") && !self.answer(host, "host_tool_call") {
                return;
            }
        }
    }
}

/// Whether a shell command of the host is running.
fn has_command(host: &Harness) -> bool {
    let mut commands = host.sent().filter(|line| line["type"] == "bash");
    commands.any(|line| host.count(json!({"type": "response", "id": line["id"]})) == 0)
}

/// Replaces `$…` in a command by values the session has sent.
fn filled_in(command: &Value, frames: &[Value]) -> Value {
    let mut command = command.clone();
    let newest = |name: &str, read: &dyn Fn(&Value) -> Option<Value>| {
        let answers = frames.iter().rev().filter(|frame| frame["type"] == "response" && frame["command"] == name);
        answers.into_iter().find_map(|answer| read(&answer["data"])).unwrap_or_else(|| json!("nowhere"))
    };
    for value in command.as_object_mut().expect("commands are objects").values_mut() {
        let filled = match value.as_str() {
            Some("$prompt") => newest("get_fork_messages", &|data| Some(data["messages"].get(0)?["entryId"].clone())),
            Some("$entry") => newest("get_entries", &|data| Some(data["entries"].as_array()?.last()?["id"].clone())),
            Some("$session") => newest("get_state", &|data| data.get("sessionFile").cloned()),
            _ => continue,
        };
        *value = filled;
    }
    command
}

/// Checks a settled session: gets its state, prompts once more and disconnects.
async fn last_words(host: &mut Harness, table: &Table) -> Vec<String> {
    let mut violations = Vec::new();
    host.send(json!({"type": "clear_queue"}));
    let state = host.send(json!({"type": "get_state"}));
    let prompt = host.send(json!({"type": "prompt", "message": "are you there?"}));
    table.answer_all(host).await;
    let frames = host.frames();
    let response = |id: &str| frames.iter().find(|frame| frame["type"] == "response" && frame["id"] == id);
    for (name, wanted) in
        [("isStreaming", json!(false)), ("isCompacting", json!(false)), ("pendingMessageCount", json!(0))]
    {
        let shown = response(&state).map_or(&Value::Null, |state| &state["data"][name]);
        if *shown != wanted {
            violations.push(format!("at rest, {name} is {shown}"));
        }
    }
    match response(&prompt).map(|response| &response["data"]["disposition"]) {
        Some(disposition) if disposition == "started" => {}
        other => violations.push(format!("at rest, a prompt is answered with {other:?}")),
    }
    let (messages, state) = (host.send(json!({"type": "get_messages"})), host.send(json!({"type": "get_state"})));
    violations.extend(hang_up(host).await);
    let frames = host.frames();
    let data =
        |id: &str| frames.iter().find(|frame| frame["id"] == id).map_or(Value::Null, |frame| frame["data"].clone());
    violations.extend(difference_of_file(host, &data(&messages), &data(&state)));
    violations
}

/// Compares what a session has sent with its file, once it has ended.
fn difference_of_file(host: &Harness, messages: &Value, state: &Value) -> Option<String> {
    let path = state["sessionFile"].as_str()?;
    let store = match SessionStore::resume(path.as_ref(), host.directory()) {
        Ok(store) => store,
        Err(error) => return Some(format!("the session's file cannot be read: {error}")),
    };
    let (said, written) = (messages["messages"].as_array()?, store.messages());
    // Compared as JSON text, because numbers have several forms.
    let shown = |message: &Message| serde_json::from_str::<Value>(&pith_protocol::json::to_string(message)).ok();
    let first = said.iter().zip(written).position(|(said, written)| Some(said) != shown(written).as_ref());
    if first.is_none() && said.len() == written.len() {
        return None;
    }
    let (n_said, n_written) = (said.len(), written.len());
    Some(format!("{n_said} messages were said and {n_written} were written; the first that differs is {first:?}"))
}

/// Disconnects and waits for the end of the session.
async fn hang_up(host: &mut Harness) -> Vec<String> {
    host.forget_unsent();
    if host.end().await { Vec::new() } else { vec!["the session does not end".to_owned()] }
}
