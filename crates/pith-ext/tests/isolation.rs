//! Extensions that misbehave: each fails its own call and nothing else.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::time::{Duration, Instant};

use pith_ext::{EventName, Limits, ToolCallVerdict};
use serde_json::{Map, json};
use support::{Harness, TIMEOUT};
use tokio_util::sync::CancellationToken;

/// Short limits, so that tests are quick, in the same proportions as the defaults.
fn strict() -> Limits {
    Limits {
        slice: Duration::from_millis(300),
        handler: Duration::from_millis(500),
        observer: Duration::from_millis(200),
        hang_grace: Duration::from_secs(2),
        memory: 24 << 20,
        ..Limits::default()
    }
}

/// A second extension that must never be affected.
const NEIGHBOUR: (&str, &str) = (
    "neighbour.ts",
    "export default (pi) => {
        pi.on('agent_start', (_, ctx) => ctx.ui.notify('neighbour'));
        pi.registerCommand('alive', { handler: async (_, ctx) => ctx.ui.notify('alive') });
    };",
);

/// An extension whose `agent_start` handler runs `body`.
fn handler(body: &str) -> String {
    format!("export default (pi) => pi.on('agent_start', async (event, ctx) => {{ {body} }});")
}

/// Raises an event for a bad extension and its neighbour; checks the error reported for the bad one.
async fn check(body: &str, event: &str, expected: &str) {
    check_within(strict(), body, event, expected).await;
}

async fn check_within(limits: Limits, body: &str, event: &str, expected: &str) {
    let harness = Harness::with_limits(limits);
    harness.run(&[("bad.ts", &handler(body)), NEIGHBOUR]).await;
    let began = Instant::now();
    harness.handle.notify(EventName::AgentStart, json!({})).await;
    assert!(began.elapsed() < TIMEOUT, "{body}: {:?}", began.elapsed());
    let error = harness.error(event).await;
    assert!(error.error.contains(expected), "{body}: {}", error.error);
    assert!(error.path.ends_with("bad.ts"), "{body}: {}", error.path);
    assert_eq!(harness.notifications(), ["neighbour"], "{body}");
    // The engine works as before.
    harness.command("alive", "").await;
    harness.notified("alive").await;
}

#[tokio::test]
async fn a_loop_is_interrupted() {
    check("for (;;) {}", "agent_start", "was interrupted").await;
}

#[tokio::test]
async fn a_loop_cannot_catch_its_interruption() {
    check("for (;;) { try { for (;;) {} } catch {} finally { for (;;) {} } }", "agent_start", "was interrupted").await;
}

#[tokio::test]
async fn a_loop_of_promises_is_interrupted() {
    check("for (;;) await null;", "agent_start", "was interrupted").await;
}

#[tokio::test]
async fn a_loop_after_an_await_is_interrupted() {
    check("await new Promise((done) => setTimeout(done, 5)); for (;;) {}", "agent_start", "was interrupted").await;
}

#[tokio::test]
async fn backtracking_is_interrupted() {
    check("/^(a+)+$/.test('a'.repeat(40) + 'b')", "agent_start", "was interrupted").await;
}

#[tokio::test]
async fn endless_recursion_ends_in_an_error() {
    check("const f = () => f() + 1; f();", "agent_start", "stack").await;
}

#[tokio::test]
async fn recursion_in_native_code_ends_in_an_error() {
    // The stack limit must end it before the time limit does, on a busy machine as well.
    let patient = || Limits { slice: TIMEOUT, handler: TIMEOUT, observer: TIMEOUT, ..strict() };
    for body in [
        "JSON.parse('['.repeat(1000000))",
        "let a = []; for (let i = 0; i < 100000; i++) a = [a]; String(a)",
        "new RegExp('(?:'.repeat(200000) + ')'.repeat(200000))",
    ] {
        check_within(patient(), body, "agent_start", "stack").await;
    }
}

#[tokio::test]
async fn whatever_is_thrown_is_reported() {
    check("throw undefined", "agent_start", "undefined").await;
    check("throw Symbol('x')", "agent_start", "Symbol(x)").await;
    check("throw { get message() { throw 1 }, get stack() { throw 2 } }", "agent_start", "unknown error").await;
    check("throw Object.create(null)", "agent_start", "unknown error").await;
}

#[tokio::test]
async fn deeply_nested_source_is_refused_not_fatal() {
    let harness = Harness::with_limits(Limits::default());
    for (open, close) in [("[", "]"), ("!!", ""), ("a+(", ")"), ("()=>", "")] {
        for depth in [10_000, 500_000] {
            let text = format!("export default () => {{ const x = {}1{}; }};", open.repeat(depth), close.repeat(depth));
            let name = format!("deep-{depth}-{}.ts", open.len());
            let report = harness.load(&[(&name, &text)]).await;
            assert!(depth == 10_000 || !report.errors.is_empty(), "{open}");
        }
    }
    harness.run(&[NEIGHBOUR]).await;
    harness.command("alive", "").await;
}

#[tokio::test]
async fn too_much_memory_ends_in_an_error() {
    check("const all = []; for (;;) all.push(new Uint8Array(1 << 20));", "agent_start", "memory").await;
}

#[tokio::test]
async fn a_heap_that_stays_full_ends_the_engine_not_the_agent() {
    let limits =
        Limits { memory: 8 << 20, slice: Duration::from_secs(20), handler: Duration::from_secs(20), ..strict() };
    let harness = Harness::with_limits(limits);
    let body = "globalThis.list = null; for (;;) globalThis.list = { next: globalThis.list };";
    harness
        .run(&[("bad.ts", &handler(body)), ("gate.ts", "export default (pi) => pi.on('tool_call', () => undefined);")])
        .await;
    harness.handle.notify(EventName::AgentStart, json!({})).await;
    let error = harness.error("disabled").await;
    assert_eq!(error.error, "Extensions have used up their memory and are off for this session");
    assert!(!harness.handle.is_alive());
    assert!(
        matches!(harness.handle.tool_call("t", "x", Map::new()).await, ToolCallVerdict::Block { .. }),
        "fails safe"
    );
}

#[tokio::test]
async fn one_huge_allocation_ends_in_an_error() {
    check("new Uint8Array(1 << 30)", "agent_start", "memory").await;
    check("'x'.repeat(1 << 29) + 'y'.repeat(1 << 29)", "agent_start", "").await;
}

#[tokio::test]
async fn a_handler_that_never_resolves_is_abandoned() {
    check("await new Promise(() => {})", "agent_start", "did not finish within 0.5 s").await;
}

#[tokio::test]
async fn rejected_promises_and_throwing_timers_are_reported() {
    check("Promise.reject(new Error('nobody cares'))", "unhandled_rejection", "nobody cares").await;
    check("(async () => { await null; throw new Error('in passing'); })()", "unhandled_rejection", "in passing").await;
    check("setTimeout(() => { throw new Error('tick'); }, 1)", "timer", "tick").await;
    check("queueMicrotask(() => { throw new Error('micro'); })", "uncaught", "micro").await;
}

#[tokio::test]
async fn a_rejection_that_is_handled_in_time_is_not_reported() {
    let harness = Harness::with_limits(strict());
    harness
        .run(&[("fine.ts", &handler("const p = Promise.reject(new Error('x')); await null; await p.catch(() => {}); ctx.ui.notify('caught');"))])
        .await;
    harness.handle.notify(EventName::AgentStart, json!({})).await;
    assert_eq!(harness.notifications(), ["caught"]);
    assert_eq!(harness.errors(), []);
}

#[tokio::test]
async fn time_spent_waiting_for_others_does_not_count() {
    let harness = Harness::with_limits(strict());
    harness
        .run(&[("patient.ts", &handler("await pi.exec('sleep', ['0.8']); ctx.ui.notify(String(await ctx.ui.confirm('x', '', { timeout: 700 })));"))])
        .await;
    harness.handle.notify(EventName::AgentStart, json!({})).await;
    assert_eq!(harness.notifications(), ["false"]);
    assert_eq!(harness.errors(), []);
}

#[tokio::test]
async fn any_failure_of_a_gate_blocks_the_call() {
    for (body, expected) in [
        ("for (;;) {}", "was interrupted"),
        ("await new Promise(() => {})", "did not finish"),
        ("const f = () => f() + 1; f();", "stack"),
        ("event.input = undefined", "replaced the arguments by nothing"),
        ("event.input = { toJSON() { for (;;) {} } }", "was interrupted"),
    ] {
        let harness = Harness::with_limits(strict());
        let text = format!("export default (pi) => pi.on('tool_call', async (event) => {{ {body} }});");
        harness.run(&[("gate.ts", &text), NEIGHBOUR]).await;
        match harness.handle.tool_call("t", "bash", Map::new()).await {
            ToolCallVerdict::Block { reason, .. } => assert!(reason.contains(expected), "{body}: {reason}"),
            ToolCallVerdict::Allow(_) => panic!("{body}: the call was let through"),
        }
        harness.error("tool_call").await;
        harness.command("alive", "").await;
    }
}

#[tokio::test]
async fn three_interruptions_in_a_row_disable_an_extension() {
    let harness = Harness::with_limits(strict());
    harness
        .run(&[
            ("bad.ts", "export default (pi) => { pi.on('agent_start', () => { for (;;) {} }); pi.on('tool_call', () => undefined); };"),
            NEIGHBOUR,
        ])
        .await;
    for _ in 0..3 {
        harness.handle.notify(EventName::AgentStart, json!({})).await;
    }
    let error = harness.error("disabled").await;
    assert!(error.path.ends_with("bad.ts"));
    let reported = harness.errors().len();
    harness.handle.notify(EventName::AgentStart, json!({})).await;
    assert_eq!(harness.errors().len(), reported, "its handlers are off");
    let verdict = harness.handle.tool_call("t", "bash", Map::new()).await;
    assert!(
        matches!(verdict, ToolCallVerdict::Block { ref reason, .. } if reason.contains("is disabled")),
        "{verdict:?}"
    );
    assert_eq!(harness.notifications().len(), 4, "the neighbour heard every event");
}

#[tokio::test]
async fn a_tool_that_loops_fails_alone() {
    let harness = Harness::with_limits(strict());
    harness
        .run(&[("loop.ts", "export default (pi) => pi.registerTool({ name: 'loop', description: '', parameters: { type: 'object' }, execute() { for (;;) {} } });"), NEIGHBOUR])
        .await;
    let output = harness.handle.run_tool("loop", "t", Map::new(), &CancellationToken::new(), |_| {}).await;
    assert!(output.is_error);
    harness.command("alive", "").await;
}

#[tokio::test]
async fn an_engine_stuck_in_native_code_is_given_up() {
    let harness = Harness::with_limits(Limits { memory: 1 << 30, ..strict() });
    // Sorting calls no script and cannot be interrupted.
    let text = "export default (pi) => { pi.on('tool_call', () => undefined); pi.on('agent_start', () => {
        const text = JSON.stringify(Array.from({ length: 400000 }, (_, n) => ({ n })));
        globalThis.stuck = true;
        for (let i = 0; i < 3; i++) JSON.parse(text);
        const big = new Float64Array(30000000); for (let i = 0; i < 2; i++) big.sort();
    }); };";
    harness.run(&[("stuck.ts", text)]).await;
    let began = Instant::now();
    harness.handle.notify(EventName::AgentStart, json!({})).await;
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
    // Either the engine returned in time and was interrupted, or it was given up; both are safe.
    if !harness.handle.is_alive() {
        harness.error("disabled").await;
        assert!(matches!(harness.handle.tool_call("t", "x", Map::new()).await, ToolCallVerdict::Block { .. }));
    }
}

#[tokio::test]
async fn waiting_in_a_sync_call_is_neither_a_hang_nor_a_reason_to_wait() {
    let harness = Harness::with_limits(strict());
    harness
        .run(&[
            (
                "sync.ts",
                "import { execSync } from 'node:child_process';
            export default (pi) => pi.on('tool_call', (_, ctx) => { execSync('sleep 2'); ctx.ui.notify('back'); });",
            ),
            NEIGHBOUR,
        ])
        .await;
    let verdict = harness.handle.tool_call("t", "x", Map::new()).await;
    assert!(matches!(verdict, ToolCallVerdict::Block { .. }), "the gate did not answer in time");
    harness.notified("back").await;
    assert!(harness.handle.is_alive());
    harness.command("alive", "").await;
}

#[tokio::test]
async fn the_handle_answers_while_the_engine_is_busy_and_after_it_has_ended() {
    let harness = Harness::with_limits(Limits { slice: Duration::from_secs(8), ..strict() });
    harness.run(&[("busy.ts", &handler("for (;;) {}"))]).await;
    harness.handle.announce(EventName::AgentStart, json!({}));
    let began = Instant::now();
    assert_eq!(harness.handle.registry().listening, ["agent_start"]);
    harness.handle.begin_run();
    harness.handle.observe_update(EventName::MessageUpdate, "m", || json!({}));
    assert!(began.elapsed() < Duration::from_secs(6), "it does not wait for the engine");
    harness.handle.stop();
    assert!(!harness.handle.run_command("x", "").await || !harness.handle.is_alive());
    assert_eq!(harness.handle.load(&[], pith_ext::Loading::Add, &harness.surroundings).await.extensions.len(), 0);
}

#[tokio::test]
async fn standard_output_is_protected() {
    let harness = Harness::start();
    harness
        .run(&[(
            "loud.ts",
            "import { spawnSync } from 'child_process';
            export default (pi) => pi.registerCommand('shout', { handler: async () => {
                console.log('logged %s', 'text', { a: 1 }); process.stdout.write('written\\n'); console.error('wrong');
                spawnSync('echo', ['inherited'], { stdio: 'inherit' });
            } });",
        )])
        .await;
    harness.command("shout", "").await;
    harness
        .wait_for("the output", |seen| (seen.output == "logged text { a: 1 }\nwritten\nwrong\n").then_some(()))
        .await;
}

#[tokio::test]
async fn process_exit_asks_the_agent_to_shut_down() {
    let harness = Harness::start();
    harness
        .run(&[(
            "exit.ts",
            "export default (pi) => pi.registerCommand('bye', { handler: async () => { process.exit(1); } });",
        )])
        .await;
    harness.command("bye", "").await;
    harness.logged("shutdown with 1").await;
    assert!(harness.error("command").await.error.contains("process.exit(1)"));
}

#[tokio::test]
async fn the_agent_exits_with_the_status_of_the_extension() {
    async fn check(code: &str, expected: &str) {
        let harness = Harness::start();
        let text =
            format!("export default (pi) => pi.registerCommand('bye', {{ handler: async () => {{ {code} }} }});");
        harness.run(&[("exit.ts", &text)]).await;
        harness.command("bye", "").await;
        harness.logged(expected).await;
    }
    check("process.exit();", "shutdown with 0").await;
    check("process.exit('7');", "shutdown with 7").await;
    check("process.exit(259);", "shutdown with 3").await;
    check("process.exit(-1);", "shutdown with 255").await;
    check("process.exitCode = 3; process.exit();", "shutdown with 3").await;
    check("process.exitCode = 3; process.exit(4);", "shutdown with 4").await;
}

#[tokio::test]
async fn a_session_that_has_ended_is_an_error_not_a_hang() {
    let limits = Limits { query: Duration::from_millis(100), ..strict() };
    let harness = Harness::with_limits(limits);
    harness
        .run(&[(
            "ask.ts",
            "export default (pi) => pi.registerCommand('look', { handler: async (_, ctx) => { ctx.isIdle(); } });",
        )])
        .await;
    harness.seen.lock().unwrap().is_deaf = true;
    let began = Instant::now();
    harness.command("look", "").await;
    assert!(began.elapsed() < TIMEOUT);
    harness.seen.lock().unwrap().is_deaf = false;
    assert!(harness.error("command").await.error.contains("The session did not answer (state)"));
}
