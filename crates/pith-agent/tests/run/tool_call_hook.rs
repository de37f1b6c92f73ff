//! Calls on their way to their tools: corrected, checked, and admitted one after the other.

use super::*;
use pith_agent::link::Call;
use pith_agent::{BoxFuture, Verdict};
use pith_protocol::audit::PermissionBy;

/// What happened to calls, in order.
type Log = Arc<Mutex<Vec<String>>>;

fn write(log: &Log, line: impl Into<String>) {
    log.lock().expect("lock").push(line.into());
}

fn lines(log: &Log) -> Vec<String> {
    log.lock().expect("lock").clone()
}

/// Admits calls, except those of a tool called `blocked`; never decides about one called `pondered`. A tool called
/// `asked` is permitted once `free` has run, one called `forbidden` never.
struct Admitting {
    log: Log,
    amends: bool,
}

impl ToolCallHook for Admitting {
    fn admit<'a>(
        &'a self,
        call: &'a Call,
        _tool: &'a dyn Tool,
        mut arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            write(&self.log, format!("admit {} {}", call.id, Value::Object(arguments.clone())));
            // A slow verdict must not let later calls overtake.
            tokio::task::yield_now().await;
            if call.name == "pondered" {
                std::future::pending::<()>().await;
            }
            if call.name == "blocked" {
                let output = ToolOutput { terminate: true, ..ToolOutput::error("not this one") };
                return Verdict::Refuse { output, by: PermissionBy::Extension };
            }
            // Arguments are not checked again, so they may break the schema.
            arguments.insert("n".into(), "many".into());
            Verdict::Run { arguments, by: None }
        })
    }

    fn before_start<'a>(
        &'a self,
        call: &'a Call,
        tool: &'a dyn Tool,
        arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<(), ToolOutput>> {
        Box::pin(async move {
            match &*tool.spec().name {
                "asked" => {
                    while !lines(&self.log).iter().any(|line| line.starts_with("run free")) {
                        tokio::task::yield_now().await;
                    }
                    write(&self.log, format!("permit {} {}", call.id, Value::Object(arguments.clone())));
                    Ok(())
                }
                "forbidden" => Err(ToolOutput::error("not permitted")),
                "unanswered" => std::future::pending().await,
                _ => Ok(()),
            }
        })
    }

    fn amends(&self) -> bool {
        self.amends
    }

    fn amend<'a>(
        &'a self,
        call: &'a Call,
        input: Map<String, Value>,
        output: &'a ToolOutput,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        Box::pin(async move {
            write(&self.log, format!("amend {} {}", call.id, Value::Object(input)));
            let is_touched = call.id.as_ref() != "left";
            is_touched.then(|| ToolOutput { content: vec![Block::text("amended")], ..output.clone() })
        })
    }
}

/// A tool that corrects its arguments, with or without success.
struct Correcting {
    inner: Arc<Function>,
    log: Log,
}

impl Tool for Correcting {
    fn spec(&self) -> &ToolSpec {
        &self.inner.spec
    }

    fn prepare(&self, arguments: &Map<String, Value>) -> Option<BoxFuture<'_, Result<Map<String, Value>, String>>> {
        let mut arguments = arguments.clone();
        Some(Box::pin(async move {
            write(&self.log, "prepare");
            if arguments.contains_key("hopeless") {
                return Err("cannot be mended".to_owned());
            }
            arguments.insert("n".into(), "5".into());
            Ok(arguments)
        }))
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        self.inner.clone().run(arguments, context)
    }
}

fn noted(name: &str, log: &Log) -> Function {
    let (log, own) = (log.clone(), name.to_owned());
    tool(name, move |arguments, _| {
        write(&log, format!("run {own} {}", Value::Object(arguments)));
        async { ToolOutput::text("ran") }
    })
}

fn hooked(log: &Log, answers: Vec<AssistantMessage>, tools: Vec<Function>, amends: bool) -> Recorder {
    Recorder { hook: Some(Arc::new(Admitting { log: log.clone(), amends })), ..recorder(answers, tools) }
}

fn results(done: &Recorder) -> Vec<&str> {
    done.log.iter().filter_map(|line| line.strip_prefix("end result ")).collect()
}

#[test]
fn all_calls_are_admitted_before_any_runs_and_refused_ones_end_at_once() {
    let log = Log::default();
    let tools = vec![noted("free", &log), noted("blocked", &log)];
    let answers = vec![calls(&[("a", "free"), ("b", "blocked"), ("c", "missing"), ("d", "free")]), text()];
    let done = go(hooked(&log, answers, tools, false), &CancellationToken::new());
    assert_eq!(
        lines(&log),
        ["admit a {}", "admit b {}", "admit d {}", "run free {\"n\":\"many\"}", "run free {\"n\":\"many\"}"]
    );
    let started: Vec<&str> =
        done.log.iter().map(String::as_str).filter(|line| line.starts_with("tool_")).take(6).collect();
    assert_eq!(
        started,
        ["tool_start a", "tool_start b", "tool_end b error", "tool_start c", "tool_end c error", "tool_start d"]
    );
    assert_eq!(results(&done), ["a ran", "b not this one", "c Tool missing not found", "d ran"]);
}

#[test]
fn only_a_batch_in_which_all_terminate_ends_the_run() {
    let check = |wanted: &[(&str, &str)], n_turns| {
        let log = Log::default();
        let tools = vec![noted("free", &log), noted("blocked", &log)];
        let done = go(hooked(&log, vec![calls(wanted), text()], tools, false), &CancellationToken::new());
        assert_eq!(done.log.iter().filter(|line| *line == "turn_start").count(), n_turns);
    };
    check(&[("a", "blocked"), ("b", "blocked")], 1);
    check(&[("a", "blocked"), ("b", "free")], 2);
}

#[test]
fn results_are_amended_for_calls_that_ran() {
    let log = Log::default();
    let tools = vec![noted("free", &log), noted("blocked", &log)];
    let answers = vec![calls(&[("a", "free"), ("b", "blocked"), ("left", "free")]), text()];
    let done = go(hooked(&log, answers, tools, true), &CancellationToken::new());
    let amended: Vec<String> = lines(&log).into_iter().filter(|line| line.starts_with("amend")).collect();
    assert_eq!(amended, ["amend a {\"n\":\"many\"}", "amend left {\"n\":\"many\"}"]);
    assert_eq!(results(&done), ["a amended", "b not this one", "left ran"]);
}

#[test]
fn arguments_are_corrected_before_they_are_checked() {
    let check = |arguments: Value, expected_lines: &[&str], result: &str| {
        let log = Log::default();
        let inner = Arc::new(noted("mending", &log));
        let mut answer = calls(&[("a", "mending")]);
        let Block::ToolCall(call) = &mut answer.content[0] else { panic!("a call") };
        call.arguments = arguments.as_object().expect("an object").clone();
        let mut recorder = recorder(vec![answer, text()], vec![]);
        recorder.tools = Arc::new(Toolset::new(vec![Arc::new(Correcting { inner, log: log.clone() })]));
        let done = go(recorder, &CancellationToken::new());
        assert_eq!(lines(&log), expected_lines);
        assert_eq!(results(&done), [result]);
    };
    // A text where a number is required, corrected to one that can be read as a number.
    check(json!({"n": {}}), &["prepare", "run mending {\"n\":5}"], "a ran");
    check(json!({"hopeless": true}), &["prepare"], "a cannot be mended");
}

#[test]
fn an_abort_does_not_wait_for_a_verdict() {
    let cancel = CancellationToken::new();
    let log = Log::default();
    let tools = vec![noted("pondered", &log), noted("free", &log)];
    let mut recorder = hooked(&log, vec![calls(&[("a", "pondered"), ("b", "free")])], tools, false);
    let (runtime, aborting) = (runtime(), cancel.clone());
    runtime.block_on(async {
        let watched = log.clone();
        let abort = async move {
            while lines(&watched).is_empty() {
                tokio::task::yield_now().await;
            }
            aborting.cancel();
        };
        tokio::join!(run(Opening::Prompts(vec![user("go")]), &mut recorder, &cancel), abort);
    });
    assert_eq!(lines(&log), ["admit a {}"]);
    assert_eq!(results(&recorder), ["a Operation aborted", "b Operation aborted"]);
}

#[test]
fn a_call_that_waits_for_permission_lets_others_run() {
    let log = Log::default();
    let tools = ["asked", "forbidden", "free"].map(|name| noted(name, &log)).into();
    // More calls wait than may run at the same time.
    let mut wanted = vec![("a", "asked"); 8];
    wanted.extend([("b", "forbidden"), ("c", "free")]);
    let done = go(hooked(&log, vec![calls(&wanted), text()], tools, false), &CancellationToken::new());
    let log = lines(&log);
    assert_eq!(log[10..12], ["run free {\"n\":\"many\"}", "permit a {\"n\":\"many\"}"]);
    assert_eq!(log.iter().filter(|line| line.starts_with("run asked")).count(), 8);
    assert_eq!(results(&done)[7..], ["a ran", "b not permitted", "c ran"]);
}

#[test]
fn an_abort_does_not_wait_for_permission() {
    let cancel = CancellationToken::new();
    let log = Log::default();
    let tools = vec![noted("unanswered", &log), noted("free", &log)];
    let mut recorder = hooked(&log, vec![calls(&[("a", "unanswered"), ("b", "free")])], tools, false);
    let stop = cancel.clone();
    recorder.on_line = Box::new(move |line, _| {
        if line == "tool_end b ok" {
            stop.cancel();
        }
    });
    let done = go(recorder, &cancel);
    assert_eq!(results(&done), ["a Operation aborted", "b ran"]);
}

#[test]
fn the_loop_continues_with_the_message_that_was_stored() {
    let log = Log::default();
    let mut recorder = recorder(vec![text(), text()], vec![noted("free", &log)]);
    recorder.replace = |message| match message.as_assistant() {
        Some(answer) if answer.tool_calls().next().is_none() && answer.content == [Block::text("done")] => {
            let mut replaced = calls(&[("late", "free")]);
            replaced.content.push(Block::text("and more"));
            Arc::new(Message::Assistant(replaced))
        }
        _ => message,
    };
    // Every plain answer is replaced, so the third request, which is never answered, is aborted.
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let mut n_turns = 0;
    recorder.on_line = Box::new(move |line, _| {
        n_turns += usize::from(line == "turn_start");
        if n_turns == 3 {
            stop.cancel();
        }
    });
    go(recorder, &cancel);
    assert_eq!(lines(&log), ["run free {}", "run free {}"]);
}

#[test]
fn a_turn_can_ask_for_exactly_one_more_answer() {
    let turns = |n_continued| {
        let mut recorder = recorder(vec![text(), text(), text(), text()], vec![]);
        recorder.n_continued = n_continued;
        let done = go(recorder, &CancellationToken::new());
        done.log.iter().filter(|line| *line == "turn_start").count()
    };
    assert_eq!(turns(0), 1);
    assert_eq!(turns(1), 2);
    assert_eq!(turns(2), 3);
}
