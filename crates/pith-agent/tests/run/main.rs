//! The loop, driven by closures: a model that plays answers, tools that are functions.

mod progress;
mod spans;
mod tool_call_hook;

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex};

use pith_agent::link::Limits;
use pith_agent::trace::TurnTrace;
use pith_agent::{
    BoxFuture, Link, ModelClient, Opening, Queue, RunEvent, Tool, ToolCallHook, ToolContext, ToolOutput, Toolset, Turn,
    run,
};
use pith_protocol::{
    AssistantEvent, AssistantMessage, Block, CacheRetention, LlmCall, Message, Model, StopReason, ThinkingLevel,
    ToolCall, ToolSpec, UserMessage,
};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

/// Plays one message per request.
#[derive(Default)]
struct Player(Mutex<VecDeque<AssistantMessage>>);

impl ModelClient for Player {
    fn stream(&self, _call: LlmCall, cancel: CancellationToken) -> mpsc::Receiver<AssistantEvent> {
        let (events, stream) = mpsc::channel(8);
        let next = self.0.lock().expect("lock").pop_front();
        tokio::spawn(async move {
            let Some(message) = next else {
                cancel.cancelled().await; // a model that never answers
                let aborted = AssistantMessage { stop_reason: StopReason::Aborted, ..Default::default() };
                return drop(events.send(AssistantEvent::End(Box::new(aborted))).await);
            };
            let _ = events.send(AssistantEvent::Start(Box::default())).await;
            let _ = events.send(AssistantEvent::End(Box::new(message))).await;
        });
        stream
    }
}

type Body = Arc<dyn Fn(Map<String, Value>, ToolContext) -> BoxFuture<'static, ToolOutput> + Send + Sync>;

struct Function {
    spec: ToolSpec,
    is_sequential: bool,
    body: Body,
}

impl Tool for Function {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_sequential(&self) -> bool {
        self.is_sequential
    }

    fn runs_programs(&self) -> bool {
        self.spec.name.starts_with("program")
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        (self.body)(arguments, context)
    }
}

fn tool<F, R>(name: &str, body: F) -> Function
where
    F: Fn(Map<String, Value>, ToolContext) -> R + Send + Sync + 'static,
    R: Future<Output = ToolOutput> + Send + 'static,
{
    let parameters = Arc::new(json!({"type":"object","properties":{"n":{"type":"number"}}}));
    let spec = ToolSpec { name: name.into(), description: "".into(), parameters, prefer_strict: false };
    Function {
        spec,
        is_sequential: false,
        body: Arc::new(move |arguments, context| Box::pin(body(arguments, context))),
    }
}

type OnLine = Box<dyn FnMut(&str, &mut VecDeque<&'static str>) + Send>;

/// Records what the loop reports; answers from two lists.
struct Recorder {
    log: Vec<String>,
    player: Arc<Player>,
    tools: Arc<Toolset>,
    steering: VecDeque<&'static str>,
    follow_ups: VecDeque<&'static str>,
    interrupts: bool,
    reports_aborted_calls: bool,
    hook: Option<Arc<dyn ToolCallHook>>,
    trace: Option<TurnTrace>,
    /// How often a turn asks for one more answer.
    n_continued: usize,
    /// Replaces a finished message.
    replace: fn(Arc<Message>) -> Arc<Message>,
    /// Called with each line of the log, to act at an exact moment.
    on_line: OnLine,
}

impl Recorder {
    fn queue(&mut self, queue: Queue) -> &mut VecDeque<&'static str> {
        match queue {
            Queue::Steering => &mut self.steering,
            Queue::FollowUp => &mut self.follow_ups,
        }
    }
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User(UserMessage::new(text.to_owned(), vec![], 0)))
}

fn show(message: &Message) -> String {
    match message {
        Message::User(user) => format!("user {}", user.content.text()),
        Message::Assistant(answer) => format!("assistant {:?}", answer.stop_reason),
        Message::ToolResult(result) => {
            let text: String = result.content.iter().filter_map(Block::as_text).collect();
            format!("result {} {text}", result.tool_call_id)
        }
        other => other.role().to_owned(),
    }
}

impl Link for Recorder {
    async fn emit(&mut self, event: RunEvent) {
        let line = match event {
            RunEvent::AgentStart => "agent_start".to_owned(),
            RunEvent::TurnStart => "turn_start".to_owned(),
            RunEvent::MessageStart(message) => format!("start {}", show(&message)),
            RunEvent::AnswerStart(_) => "start answer".to_owned(),
            RunEvent::Stream(event) => format!("{event:?}"),
            RunEvent::MessageEnd(message) => format!("end {}", show(&message)),
            RunEvent::ToolStart { call } => format!("tool_start {}", call.id),
            RunEvent::ToolUpdate { call, output } => {
                let text: String = output.content.iter().filter_map(Block::as_text).collect();
                format!("tool_update {} {text}", call.id)
            }
            RunEvent::ToolEnd { call, output } => {
                let warned = output.content.iter().filter_map(Block::as_text).any(|text| text.contains("in a row"));
                let outcome = if output.is_error { "error" } else { "ok" };
                format!("tool_end {} {outcome}{}", call.id, if warned { ", warned" } else { "" })
            }
            RunEvent::TurnEnd { results, .. } => format!("turn_end {}", results.len()),
            RunEvent::AgentEnd { messages } => format!("agent_end {}", messages.len()),
        };
        (self.on_line)(&line, &mut self.steering);
        self.log.push(line);
    }

    async fn conclude(&mut self, message: Arc<Message>) -> Arc<Message> {
        let message = (self.replace)(message);
        self.emit(RunEvent::MessageEnd(message.clone())).await;
        message
    }

    async fn end_turn(&mut self, message: Arc<Message>, results: Vec<Arc<Message>>) -> bool {
        self.emit(RunEvent::TurnEnd { message, results }).await;
        let is_continued = self.n_continued > 0;
        self.n_continued = self.n_continued.saturating_sub(1);
        is_continued
    }

    async fn has(&mut self, queue: Queue) -> bool {
        !self.queue(queue).is_empty()
    }

    async fn take(&mut self, queue: Queue) -> Vec<Arc<Message>> {
        self.queue(queue).pop_front().map(user).into_iter().collect()
    }

    async fn turn(&mut self) -> Turn {
        let call = LlmCall {
            model: Arc::new(Model::default()),
            system_prompt: "".into(),
            messages: vec![],
            tools: self.tools.specs().clone(),
            thinking: ThinkingLevel::Off,
            search_tool: None,
            max_tokens: None,
            session_id: None,
            cache: CacheRetention::None,
            block_images: false,
            hooks: None,
        };
        Turn {
            blank: AssistantMessage::default(),
            call: Ok((self.player.clone(), call)),
            tools: self.tools.clone(),
            hook: self.hook.clone(),
            limits: Limits { reports_aborted_calls: self.reports_aborted_calls, ..Limits::default() },
            trace: self.trace.clone(),
        }
    }

    async fn is_interrupted(&mut self) -> bool {
        self.interrupts && !self.steering.is_empty()
    }
}

fn text() -> AssistantMessage {
    AssistantMessage { content: vec![Block::text("done")], ..Default::default() }
}

fn calls(calls: &[(&str, &str)]) -> AssistantMessage {
    let block = |(id, name): &(&str, &str)| {
        Block::ToolCall(ToolCall { id: (*id).into(), name: (*name).into(), ..Default::default() })
    };
    AssistantMessage {
        content: calls.iter().map(block).collect(),
        stop_reason: StopReason::ToolUse,
        ..Default::default()
    }
}

fn recorder(answers: Vec<AssistantMessage>, tools: Vec<Function>) -> Recorder {
    let tools = tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect();
    Recorder {
        log: vec![],
        player: Arc::new(Player(Mutex::new(answers.into()))),
        tools: Arc::new(Toolset::new(tools)),
        steering: VecDeque::new(),
        follow_ups: VecDeque::new(),
        interrupts: false,
        reports_aborted_calls: false,
        hook: None,
        trace: None,
        n_continued: 0,
        replace: |message| message,
        on_line: Box::new(|_, _| {}),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("runtime")
}

fn go(mut recorder: Recorder, cancel: &CancellationToken) -> Recorder {
    runtime().block_on(run(Opening::Prompts(vec![user("go")]), &mut recorder, cancel));
    recorder
}

fn check(recorder: &Recorder, expected: &[&str]) {
    assert_eq!(recorder.log, expected);
}

#[test]
fn a_plain_answer_is_one_turn() {
    let done = go(recorder(vec![text()], vec![]), &CancellationToken::new());
    check(
        &done,
        &[
            "agent_start",
            "turn_start",
            "start user go",
            "end user go",
            "start answer",
            "end assistant Stop",
            "turn_end 0",
            "agent_end 2",
        ],
    );
}

#[test]
fn ends_are_reported_as_they_come_and_results_in_call_order() {
    let gate = Arc::new(Notify::new());
    let (opened, waited) = (gate.clone(), gate);
    let slow = tool("slow", move |_, context: ToolContext| {
        let waited = waited.clone();
        async move {
            (context.update)(ToolOutput::text("half"));
            waited.notified().await;
            ToolOutput::text("slow")
        }
    });
    let fast = tool("fast", move |_, _| {
        let opened = opened.clone();
        async move {
            opened.notify_one();
            ToolOutput::text("fast")
        }
    });
    let done = go(
        recorder(vec![calls(&[("a", "slow"), ("b", "fast"), ("c", "none")]), text()], vec![slow, fast]),
        &CancellationToken::new(),
    );
    check(
        &done,
        &[
            "agent_start",
            "turn_start",
            "start user go",
            "end user go",
            "start answer",
            "end assistant ToolUse",
            "tool_start a",
            "tool_start b",
            "tool_start c",
            "tool_end c error",
            "tool_update a half",
            "tool_end b ok",
            "tool_end a ok",
            "start result a slow",
            "end result a slow",
            "start result b fast",
            "end result b fast",
            "start result c Tool none not found",
            "end result c Tool none not found",
            "turn_end 3",
            "turn_start",
            "start answer",
            "end assistant Stop",
            "turn_end 0",
            "agent_end 6",
        ],
    );
}

#[test]
fn a_panicking_tool_fails_only_its_call() {
    let bad = tool("bad", |_, _| async { panic!("on purpose") });
    let done = go(recorder(vec![calls(&[("a", "bad")]), text()], vec![bad]), &CancellationToken::new());
    assert!(done.log.contains(&"end result a Tool bad failed: internal error".to_owned()));
    assert_eq!(done.log.last().map(String::as_str), Some("agent_end 4"));
}

#[test]
fn abort_during_tools_closes_the_history_and_leaves_the_queue() {
    let cancel = CancellationToken::new();
    let stuck = tool("stuck", |_, context: ToolContext| async move {
        context.cancel.cancelled().await;
        ToolOutput::error("Command aborted")
    });
    let mut recorder = recorder(vec![calls(&[("a", "stuck")]), text()], vec![stuck]);
    recorder.steering.push_back("later");
    recorder.steering.push_back("later still");
    let token = cancel.clone();
    recorder.on_line = Box::new(move |line, _| {
        if line == "tool_start a" {
            token.cancel();
        }
    });
    let done = go(recorder, &cancel);
    let tail: Vec<_> = done.log.iter().skip_while(|line| *line != "turn_end 1").map(String::as_str).collect();
    assert_eq!(
        tail,
        ["turn_end 1", "turn_start", "start assistant Aborted", "end assistant Aborted", "turn_end 0", "agent_end 5"]
    );
    assert_eq!(done.steering, ["later still"], "the first was delivered with the prompt, the second stays");
}

#[test]
fn a_tool_that_ignores_an_abort_is_abandoned() {
    let cancel = CancellationToken::new();
    let deaf = tool("deaf", |_, _| std::future::pending());
    let mut recorder = recorder(vec![calls(&[("a", "deaf")])], vec![deaf]);
    let token = cancel.clone();
    recorder.on_line = Box::new(move |line, _| {
        if line == "tool_start a" {
            token.cancel();
        }
    });
    let done = go(recorder, &cancel);
    assert!(done.log.contains(&"end result a Operation aborted".to_owned()));
}

#[test]
fn an_abort_before_the_model_answers_ends_the_run() {
    let cancel = CancellationToken::new();
    let mut recorder = recorder(vec![], vec![]);
    let token = cancel.clone();
    recorder.on_line = Box::new(move |line, _| {
        if line == "end user go" {
            token.cancel();
        }
    });
    let done = go(recorder, &cancel);
    let tail: Vec<_> = done.log.iter().rev().take(4).rev().map(String::as_str).collect();
    assert_eq!(tail, ["start assistant Aborted", "end assistant Aborted", "turn_end 0", "agent_end 2"]);
}

#[test]
fn immediate_interruption_skips_what_has_not_started() {
    let quick = Function { is_sequential: true, ..tool("quick", |_, _| async { ToolOutput::text("ran") }) };
    let stuck = tool("stuck", |_, context: ToolContext| async move {
        context.cancel.cancelled().await;
        ToolOutput::error("Command aborted")
    });
    let mut recorder = recorder(
        vec![calls(&[("a", "stuck"), ("b", "fine")]), text()],
        vec![stuck, tool("fine", |_, _| async { ToolOutput::text("ran") }), quick],
    );
    recorder.interrupts = true;
    recorder.on_line = Box::new(|line, steering| {
        if line == "tool_start b" {
            steering.push_back("stop that");
        }
    });
    let done = go(recorder, &CancellationToken::new());
    assert!(done.log.contains(&"end result a Command aborted".to_owned()), "{:#?}", done.log);
    assert!(done.log.contains(&"end result b ran".to_owned()));
    assert!(done.log.contains(&"start user stop that".to_owned()));
}

#[test]
fn interruption_also_reaches_calls_that_run_one_by_one() {
    let step = Function { is_sequential: true, ..tool("step", |_, _| async { ToolOutput::text("ran") }) };
    let mut recorder = recorder(vec![calls(&[("a", "step"), ("b", "step"), ("c", "step")]), text()], vec![step]);
    recorder.interrupts = true;
    recorder.on_line = Box::new(|line, steering| {
        if line == "tool_start a" {
            steering.push_back("stop that");
        }
    });
    let done = go(recorder, &CancellationToken::new());
    let results: Vec<_> = done.log.iter().filter(|line| line.starts_with("end result")).map(String::as_str).collect();
    let skipped = "Skipped due to queued user message.";
    assert_eq!(results, ["end result a ran", &format!("end result b {skipped}"), &format!("end result c {skipped}")]);
}

#[test]
fn calls_of_an_aborted_answer_are_reported_where_hosts_want_it() {
    let aborted = || AssistantMessage {
        stop_reason: StopReason::Aborted,
        error_message: Some("Request was aborted.".to_owned()),
        ..calls(&[("a", "fine")])
    };
    let mut loud = recorder(vec![aborted()], vec![]);
    loud.reports_aborted_calls = true;
    let tail = |recorder: Recorder| {
        let log = go(recorder, &CancellationToken::new()).log;
        let end = log.iter().position(|line| line == "end assistant Aborted").expect("an answer");
        log[end + 1..].to_vec()
    };
    let text = "result a Tool execution was aborted: Request was aborted.";
    let (start, end) = (format!("start {text}"), format!("end {text}"));
    assert_eq!(tail(loud), ["tool_start a", "tool_end a error", &start, &end, "turn_end 1", "agent_end 3"]);
    assert_eq!(tail(recorder(vec![aborted()], vec![])), ["turn_end 0", "agent_end 2"]);
}

#[test]
fn follow_ups_continue_the_run_one_by_one() {
    let mut recorder = recorder(vec![text(), text(), text()], vec![]);
    recorder.follow_ups.extend(["one", "two"]);
    let done = go(recorder, &CancellationToken::new());
    let users: Vec<_> = done.log.iter().filter(|line| line.starts_with("start user")).map(String::as_str).collect();
    assert_eq!(users, ["start user go", "start user one", "start user two"]);
    assert_eq!(done.log.iter().filter(|line| *line == "agent_start").count(), 1);
}

#[test]
fn programs_that_end_together_are_reported_in_call_order() {
    let gate = Arc::new(Notify::new());
    let (opened, waited) = (gate.clone(), gate);
    let second = tool("program 2", move |_, _| {
        let opened = opened.clone();
        async move {
            opened.notify_one();
            ToolOutput::text("a moment earlier")
        }
    });
    let first = tool("program 1", move |_, _| {
        let waited = waited.clone();
        async move {
            waited.notified().await;
            ToolOutput::text("a moment later")
        }
    });
    let script = vec![calls(&[("a", "program 1"), ("b", "program 2")]), text()];
    let done = go(recorder(script, vec![first, second]), &CancellationToken::new());
    let ends: Vec<_> = done.log.iter().filter(|line| line.starts_with("tool_end")).collect();
    assert_eq!(ends, ["tool_end a ok", "tool_end b ok"]);
}

#[test]
fn calls_of_a_cut_off_answer_are_not_executed() {
    let fine = tool("fine", |_, _| async { ToolOutput::text("ran") });
    let cut = AssistantMessage { stop_reason: StopReason::Length, ..calls(&[("a", "fine")]) };
    let done = go(recorder(vec![cut, text()], vec![fine]), &CancellationToken::new());
    assert!(done.log.iter().any(|line| line.starts_with("end result a Tool call \"fine\" was not executed")));
}

#[test]
fn a_model_that_repeats_a_failing_call_is_told() {
    let bad = tool("bad", |_, _| async { ToolOutput::error("no") });
    let mut answers = vec![calls(&[("a", "bad")]); 5];
    answers.push(text());
    let done = go(recorder(answers, vec![bad]), &CancellationToken::new());
    let warned: Vec<_> =
        done.log.iter().filter(|line| line.starts_with("end result") && line.contains("5 times")).collect();
    assert_eq!(warned.len(), 1);
    let ends: Vec<_> = done.log.iter().filter(|line| line.starts_with("tool_end")).collect();
    assert_eq!(ends.last().map(|line| line.as_str()), Some("tool_end a error, warned"));
}

#[test]
fn tools_can_end_the_run() {
    let last = tool("last", |_, _| async { ToolOutput { terminate: true, ..ToolOutput::text("bye") } });
    let done = go(recorder(vec![calls(&[("a", "last")]), text()], vec![last]), &CancellationToken::new());
    assert_eq!(done.log.last().map(String::as_str), Some("agent_end 3"));
}
