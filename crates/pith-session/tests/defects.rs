//! What a session must do at moments that are hard to hit from outside: while extensions handle an event, when a job
//! dies, when an abort arrives between two events of one step.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests wait and share as the session may not")]

mod support;

use std::sync::Arc;

use pith_agent::{BoxFuture, Tool, ToolContext, ToolOutput};
use pith_protocol::ToolSpec;
use serde_json::{Map, Value, json};
use support::{Harness, Script, Turn};

/// A text of about `n_tokens` tokens.
fn long(n_tokens: usize) -> String {
    "word ".repeat(n_tokens * 4 / 5)
}

fn prompt(message: &str) -> Value {
    json!({"type": "prompt", "message": message})
}

/// The index of the first frame like `pattern`.
#[track_caller]
fn place(host: &Harness, pattern: Value) -> usize {
    let frames = host.frames();
    let place = frames.iter().position(|frame| support::is_like(frame, &pattern));
    place.unwrap_or_else(|| panic!("no frame like {pattern}"))
}

/// Fails unless the session is idle and accepts a prompt.
async fn assert_ready(host: &mut Harness) {
    let state = host.state().await;
    let shown = json!({"isStreaming": false, "isCompacting": false, "pendingMessageCount": 0});
    assert!(support::is_like(&state, &shown), "{state}");
    assert_eq!(host.ask(json!({"type": "abort"})).await["success"], true);
    host.run("are you there?").await;
}

// While extensions handle a compaction.

/// Keeps a compaction from ending until the host has answered a dialog.
const ASKS_AFTER_COMPACTIONS: &str = "export default (pi) => pi.on('session_compact', async (event, ctx) => {
    await ctx.ui.select('compacted', ['go on']);
});";

/// A session with something to compact.
async fn with_history(script: Script) -> Harness {
    let mut host = Harness::builder(script).window(8000).extension("listens.ts", ASKS_AFTER_COMPACTIONS).start().await;
    host.run(&long(3000)).await;
    host
}

/// A session between the end of a manual compaction and its announcement, and the dialog of the extension.
async fn compacting() -> (Harness, String, Value) {
    let mut host = with_history(Script::of([Turn::text(&long(2500))])).await;
    let compact = host.send(json!({"type": "compact"}));
    let dialog = host.wait(json!({"method": "select"})).await;
    (host, compact, dialog)
}

#[tokio::test(start_paused = true)]
async fn a_prompt_while_extensions_handle_a_compaction_is_refused_and_not_lost() {
    let (mut host, compact, dialog) = compacting().await;
    let error = host.refusal(prompt("now?")).await;
    assert!(error.starts_with("Cannot submit a prompt while compaction is in progress"), "{error}");
    host.answer(&dialog, json!({"value": "go on"}));
    assert_eq!(host.response(&compact).await["success"], true);
    assert_ready(&mut host).await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_extensions_handle_a_compaction_is_compacting() {
    let (mut host, _, dialog) = compacting().await;
    let state = host.state().await;
    assert_eq!((&state["isCompacting"], &state["isStreaming"]), (&json!(true), &json!(false)));
    host.answer(&dialog, json!({"value": "go on"}));
    host.wait_type("compaction_end").await;
    assert_ready(&mut host).await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_compaction_is_refused_until_extensions_have_handled_the_first() {
    let (mut host, compact, dialog) = compacting().await;
    assert_eq!(host.refusal(json!({"type": "compact"})).await, "Compaction already in progress");
    host.answer(&dialog, json!({"value": "go on"}));
    assert_eq!(host.response(&compact).await["success"], true);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_is_answered_after_extensions_have_handled_the_compaction() {
    let (mut host, _, dialog) = compacting().await;
    let abort = host.send(json!({"type": "abort"}));
    host.settle().await;
    host.answer(&dialog, json!({"value": "go on"}));
    host.response(&abort).await;
    host.settle().await;
    let ended = place(&host, json!({"type": "compaction_end"}));
    let answered = place(&host, json!({"type": "response", "id": abort}));
    assert!(ended < answered, "the compaction ended at frame {ended}, the abort was answered at {answered}");
    host.finish().await;
}

/// A session at the same moment in a run that waits for the compaction because the window was exceeded.
async fn recovering() -> (Harness, String, Value) {
    let mut host = with_history(Script::of([Turn::text(&long(2500)), Turn::overflow(), Turn::text("fits now")])).await;
    let prompt = host.send(prompt("one more"));
    let dialog = host.wait(json!({"method": "select"})).await;
    (host, prompt, dialog)
}

#[tokio::test(start_paused = true)]
async fn a_new_session_while_extensions_handle_an_overflow_replaces_the_old_one_in_order() {
    let (mut host, _, dialog) = recovering().await;
    let replaced = host.send(json!({"type": "new_session"}));
    host.settle().await;
    host.answer(&dialog, json!({"value": "go on"}));
    assert_eq!(host.response(&replaced).await["success"], true);
    host.settle().await;
    assert_eq!(host.count(json!({"type": "agent_settled"})), 2, "one for each prompt");
    assert_ready(&mut host).await;
    host.finish().await;
}

/// Delays a compaction until the model has answered it.
const DELAYS_COMPACTIONS: &str = "export default (pi) => pi.on('session_compact', async (event, ctx) => {
    console.log('pondering');
    await ctx.modelRegistry.complete({ provider: 'test', id: 'one' }, { messages: [] });
});";

#[tokio::test(start_paused = true)]
async fn a_new_session_is_not_affected_by_the_compaction_of_the_previous_one() {
    let turns = [Turn::text(&long(2500)), Turn::overflow(), Turn::gated("pondered")];
    let host = Harness::builder(turns).window(8000).extension("ponders.ts", DELAYS_COMPACTIONS);
    let mut host = host.start().await;
    host.run(&long(3000)).await;
    host.send(prompt("one more"));
    host.wait_log("pondering").await;
    let replaced = host.send(json!({"type": "new_session"}));
    host.settle().await;
    host.model.release();
    assert_eq!(host.response(&replaced).await["success"], true);
    host.settle().await;
    assert_eq!(host.count(json!({"type": "agent_settled"})), 2, "one for each prompt");
    assert_ready(&mut host).await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_extensions_to_handle_an_overflow_is_still_running() {
    let (mut host, _, dialog) = recovering().await;
    let state = host.state().await;
    assert_eq!((&state["isCompacting"], &state["isStreaming"]), (&json!(true), &json!(true)));
    let error = host.refusal(prompt("another")).await;
    assert!(error.starts_with("Agent is already processing"), "{error}");
    host.answer(&dialog, json!({"value": "go on"}));
    host.wait_type("agent_settled").await;
    assert_eq!(host.data(json!({"type": "get_last_assistant_text"})).await["text"], "fits now");
    host.finish().await;
}

// Tasks that panic.

#[tokio::test(start_paused = true)]
async fn a_model_that_panics_ends_its_run_and_nothing_else() {
    let mut host = Harness::new([Turn::panic()]);
    host.run("go").await;
    assert_ready(&mut host).await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_is_answered_although_the_run_dies() {
    let mut host = Harness::new([Turn::overloaded("503"), Turn::panic()]);
    host.send(prompt("go"));
    host.wait_type("auto_retry_start").await;
    host.send_when(json!({"type": "agent_start"}), json!({"type": "abort", "id": "stop"}));
    host.response("stop").await;
    assert_ready(&mut host).await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_stream_that_closes_early_fails_the_answer() {
    let mut host = Harness::new([Turn::die()]);
    host.run("go").await;
    assert_eq!(host.count(json!({"type": "message_end", "message": {"stopReason": "error"}})), 1);
    assert_ready(&mut host).await;
    host.finish().await;
}

/// A tool that panics where only the run can notice.
struct Unprepared(ToolSpec);

impl Tool for Unprepared {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn adapt(&self, _: Map<String, Value>) -> Map<String, Value> {
        panic!("the tool panics, as the test wants")
    }

    fn run(self: Arc<Self>, _: Map<String, Value>, _: ToolContext) -> BoxFuture<'static, ToolOutput> {
        unreachable!("its arguments are never ready")
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_before_it_runs_leaves_no_call_open() {
    let parameters = Arc::new(json!({"type": "object"}));
    let spec = ToolSpec { name: "odd".into(), description: "".into(), parameters, prefer_strict: false };
    let mut host = Harness::builder([Turn::call("odd", json!({}))]).own_tool(Unprepared(spec)).open();
    host.run("go").await;
    assert_eq!(host.count(json!({"type": "tool_execution_end", "isError": true})), 1);
    assert_ready(&mut host).await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_panics_while_it_summarises_fails_the_compaction() {
    let script = Script::of([Turn::text(&long(2500))]).summaries([Turn::panic()]);
    let mut host = with_history(script).await;
    let error = host.refusal(json!({"type": "compact"})).await;
    assert!(error.contains("Internal error"), "{error}");
    assert_ready(&mut host).await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_panics_between_two_turns_lets_the_run_go_on() {
    let script = Script::of([Turn::text(&long(2500)), Turn::call("echo", json!({})).usage(7000, 10)]);
    let script = script.summaries([Turn::panic()]);
    let mut host = Harness::builder(script).window(8000).tool("echo", |_, _| async { ToolOutput::text("hi") }).open();
    host.run(&long(2500)).await;
    host.run("use the tool").await;
    assert_eq!(host.count(json!({"type": "compaction_end", "reason": "threshold"})), 1);
    assert_ready(&mut host).await;
    host.finish().await;
}

/// An extension whose handler of `event` never returns.
fn stuck_in(event: &str) -> String {
    format!(
        "export default (pi) => pi.on('{event}', () => {{ console.log('{event}'); return new Promise(() => {{}}); }});"
    )
}

/// Kills the engine while a handler of `event` runs.
async fn lose_extensions_in(event: &str) {
    let mut host = Harness::builder([]).extension("stuck.ts", &stuck_in(event)).start().await;
    let prompt = host.send(prompt("go"));
    host.wait_log(event).await;
    host.kill_extensions();
    assert_eq!(host.response(&prompt).await["data"]["disposition"], "started", "{event}");
    host.wait_type("agent_settled").await;
    assert_ready(&mut host).await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_dies_blocks_nothing() {
    for event in ["input", "before_agent_start", "agent_start", "message_end", "turn_end", "agent_end"] {
        lose_extensions_in(event).await;
    }
    for event in ["agent_before_settle", "agent_settled"] {
        lose_extensions_in(event).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_compaction_ends_although_the_engine_dies_while_handling_it() {
    let (mut host, compact, _) = compacting().await;
    host.kill_extensions();
    assert_eq!(host.response(&compact).await["success"], true);
    assert_ready(&mut host).await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_panics_for_an_extension_fails_the_extensions_request() {
    let asks = "export default (pi) => pi.registerCommand('ask', { handler: async (_, ctx) => {
        const message = await ctx.modelRegistry.complete({ provider: 'test', id: 'one' }, { messages: [] });
        console.log('answered: ' + message.stopReason);
    } });";
    let mut host = Harness::builder([Turn::panic()]).extension("asks.ts", asks).start().await;
    assert_eq!(host.ask(prompt("/ask")).await["success"], true);
    assert_eq!(host.log.lines(), ["answered: error"]);
    assert_ready(&mut host).await;
    host.finish().await;
}

// Retries.

#[tokio::test(start_paused = true)]
async fn an_abort_right_after_a_failed_attempt_ends_the_retries() {
    let turns = [Turn::overloaded("503 one"), Turn::overloaded("503 two"), Turn::overloaded("503 three")];
    let mut host = Harness::new(turns);
    let failed = json!({"type": "message_end", "message": {"errorMessage": "503 two"}});
    let abort = host.send_when(failed, json!({"type": "abort"}));
    host.send(prompt("go"));
    assert_eq!(host.response(&abort).await["success"], true);
    let ends = |host: &Harness| host.count(json!({"type": "auto_retry_end", "success": false}));
    assert_eq!(ends(&host), 1, "the attempts have an end");
    host.send(prompt("again"));
    host.wait(json!({"type": "auto_retry_start", "errorMessage": "503 three", "attempt": 1})).await;
    host.wait_type("agent_settled").await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn retries_end_with_the_session_they_belong_to() {
    let turns = [Turn::overloaded("503 one"), Turn::overloaded("503 two"), Turn::overloaded("503 three")];
    let mut host = Harness::new(turns);
    let failed = json!({"type": "message_end", "message": {"errorMessage": "503 two"}});
    let replaced = host.send_when(failed, json!({"type": "new_session"}));
    host.send(prompt("go"));
    assert_eq!(host.response(&replaced).await["success"], true);
    assert_eq!(host.count(json!({"type": "auto_retry_end", "success": false})), 1);
    host.send(prompt("again"));
    host.wait(json!({"type": "auto_retry_start", "errorMessage": "503 three", "attempt": 1})).await;
    host.wait_type("agent_settled").await;
    host.finish().await;
}

// The size of the context.

#[tokio::test(start_paused = true)]
async fn a_new_session_has_the_context_size_of_its_prompt_and_tools() {
    let mut host = Harness::builder([]).tool("echo", |_, _| async { ToolOutput::text("hi") }).open();
    let usage = host.data(json!({"type": "get_session_stats"})).await["contextUsage"].take();
    host.run("go").await;
    let call = &host.model.calls()[0];
    let schemas = call
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + serde_json::to_string(&tool.parameters).unwrap().len());
    let n_chars = call.system_prompt.encode_utf16().count() + schemas.sum::<usize>();
    let tokens = n_chars.div_ceil(4);
    assert_eq!(usage["tokens"], tokens, "{usage}");
    assert_eq!(usage["percent"], 100.0 * tokens as f64 / 200_000.0);
    host.finish().await;
}

// Dialogs of what is aborted.

/// An extension whose handlers open a dialog before anything happens.
const ASKS_FIRST: &str = "export default (pi) => {
    pi.registerCommand('ask', { handler: async (_, ctx) => ctx.ui.select('Which?', ['A', 'B']) });
    pi.on('input', async (event, ctx) => { if (event.text === 'check') await ctx.ui.confirm('Really?', ''); });
    pi.on('session_before_switch', async (_, ctx) => ({ cancel: !(await ctx.ui.confirm('Leave?', '')) }));
};";

/// Sends a command that opens a dialog, aborts, and returns the command's response.
async fn abort_in_dialog(host: &mut Harness, command: Value) -> Value {
    let id = host.send(command);
    let dialog = host.wait(json!({"type": "extension_ui_request"})).await;
    assert_eq!(host.ask(json!({"type": "abort"})).await["success"], true);
    let response = host.response(&id).await;
    host.wait(json!({"method": "cancel", "targetId": dialog["id"]})).await;
    response
}

#[tokio::test(start_paused = true)]
async fn an_abort_withdraws_the_dialog_of_an_extension_command() {
    let mut host = Harness::builder([]).extension("asks.ts", ASKS_FIRST).start().await;
    let response = abort_in_dialog(&mut host, prompt("/ask")).await;
    assert_eq!(response["success"], false, "{response}");
    assert_ready(&mut host).await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_withdraws_the_dialog_of_an_input_handler() {
    let mut host = Harness::builder([]).extension("asks.ts", ASKS_FIRST).start().await;
    let response = abort_in_dialog(&mut host, prompt("check")).await;
    assert_eq!(response["error"], "Aborted before the prompt was started");
    assert_ready(&mut host).await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_withdraws_the_question_whether_to_leave_the_session() {
    let mut host = Harness::builder([]).extension("asks.ts", ASKS_FIRST).start().await;
    let response = abort_in_dialog(&mut host, json!({"type": "new_session"})).await;
    assert_eq!(response["data"]["cancelled"], true, "{response}");
    assert_ready(&mut host).await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_withdraws_the_dialog_of_a_run() {
    let asks = "export default (pi) => pi.on('turn_end', async (_, ctx) => { await ctx.ui.confirm('Go on?', ''); });";
    let mut host = Harness::builder([]).extension("asks.ts", asks).start().await;
    let response = abort_in_dialog(&mut host, prompt("go")).await;
    assert_eq!(response["data"]["disposition"], "started");
    host.finish().await;
}

// Queues.

#[tokio::test(start_paused = true)]
async fn leaving_a_session_announces_that_its_queue_is_empty() {
    for command in [json!({"type": "new_session"}), json!({"type": "clone"})] {
        let mut host = Harness::new([Turn::text("first"), Turn::hang()]);
        host.run("go").await;
        host.send(prompt("more"));
        host.wait_calls(2).await;
        host.ask(json!({"type": "steer", "message": "left"})).await;
        host.ask(json!({"type": "follow_up", "message": "right"})).await;
        host.wait(json!({"type": "queue_update", "steering": ["left"], "followUp": ["right"]})).await;
        assert_eq!(host.ask(command).await["success"], true);
        assert_eq!(host.state().await["pendingMessageCount"], 0);
        host.wait(json!({"type": "queue_update", "steering": [], "followUp": []})).await;
        host.finish().await;
    }
}

// Hosts that do not read.

#[tokio::test(start_paused = true)]
async fn tool_progress_does_not_accumulate_for_a_host_that_does_not_read() {
    const N_UPDATES: usize = 5000;
    let mut host = Harness::builder([Turn::call("count", json!({}))])
        .tool("count", |_, context| async move {
            for n in 0..N_UPDATES {
                (context.update)(ToolOutput::text(n.to_string()));
                tokio::task::yield_now().await;
            }
            ToolOutput::text("done")
        })
        .open();
    host.send(prompt("go"));
    host.wait_type("tool_execution_start").await;
    host.reader.stop();
    host.settle().await;
    let n_piled_up = host.count(json!({"type": "tool_execution_update"}));
    assert!(n_piled_up < N_UPDATES / 10, "{n_piled_up} updates for a host that reads none");
    host.reader.resume();
    host.wait_type("agent_settled").await;
    let n_updates = host.count(json!({"type": "tool_execution_update"}));
    assert!(n_updates < N_UPDATES / 5, "{n_updates} updates, of which only the newest matters");
    host.finish().await;
}

// Extensions that load slowly.

/// Prints the start and the end of every session.
const PRINTS_SESSIONS: &str = "export default (pi) => {
    pi.on('session_start', (event) => console.log('start ' + event.reason));
    pi.on('session_shutdown', (event) => console.log('shutdown ' + event.reason));
};";

/// Prints a line for every prompt and tool call.
const PRINTS_PROMPTS: &str = "export default (pi) => {
    pi.on('input', (event) => { console.log('input ' + event.text); });
    pi.on('tool_call', (event) => ({ block: true, reason: 'the gate is closed' }));
};";

#[tokio::test(start_paused = true)]
async fn ending_a_session_while_extensions_load_sends_shutdown_only_to_those_that_got_start() {
    let mut host = Harness::builder([])
        .extension("diary.ts", PRINTS_SESSIONS)
        .late_extension("gate.ts", PRINTS_PROMPTS)
        .start()
        .await;
    host.state().await;
    assert!(host.end().await, "the session has ended");
    let log = host.log.lines();
    let count = |word: &str| log.iter().filter(|line| line.starts_with(word)).count();
    assert_eq!(count("start"), count("shutdown"), "{log:?}");
}

/// Delays its shutdown until the model has answered it.
const DELAYS_SHUTDOWN: &str = "export default (pi) => {
    pi.on('session_start', (event) => console.log('start ' + event.reason));
    pi.on('session_shutdown', async (event, ctx) => {
        console.log('shutdown ' + event.reason);
        await ctx.modelRegistry.complete({ provider: 'test', id: 'one' }, { messages: [] });
    });
};";

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_during_a_replacement_sends_shutdown_once() {
    for command in ["reload", "new_session"] {
        let mut host = Harness::builder([Turn::gated("go")]).extension("lingers.ts", DELAYS_SHUTDOWN).start().await;
        host.send(json!({"type": command}));
        host.wait_calls(1).await;
        host.hang_up();
        host.model.release();
        assert!(host.end().await, "the session has ended");
        let log = host.log.lines();
        let count = |word: &str| log.iter().filter(|line| line.starts_with(word)).count();
        assert_eq!(count("start"), count("shutdown"), "{command}: {log:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_right_after_a_replacement_sends_shutdown() {
    for command in ["reload", "new_session"] {
        let mut host = Harness::builder([]).extension("diary.ts", PRINTS_SESSIONS).start().await;
        host.wait_log("start startup").await;
        host.settle().await;
        host.send(json!({"type": command}));
        assert!(host.end().await, "the session has ended");
        let log = host.log.lines();
        let count = |word: &str| log.iter().filter(|line| line.starts_with(word)).count();
        assert_eq!(count("start"), count("shutdown"), "{command}: {log:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_replaced_while_extensions_load_still_gets_start_and_shutdown() {
    let mut host = Harness::builder([])
        .extension("diary.ts", PRINTS_SESSIONS)
        .late_extension("gate.ts", PRINTS_PROMPTS)
        .start()
        .await;
    let replaced = host.send(json!({"type": "new_session"}));
    host.settle().await;
    host.finish_loading();
    assert_eq!(host.response(&replaced).await["success"], true);
    let log = host.log.clone();
    host.finish().await;
    assert_eq!(log.lines(), ["start startup", "shutdown new", "start new", "shutdown quit"]);
}

#[tokio::test(start_paused = true)]
async fn an_abort_while_extensions_load_keeps_start_and_shutdown_balanced() {
    let mut host = Harness::builder([])
        .extension("diary.ts", PRINTS_SESSIONS)
        .late_extension("gate.ts", PRINTS_PROMPTS)
        .start()
        .await;
    let prompt = host.send(prompt("go"));
    host.settle().await;
    assert_eq!(host.ask(json!({"type": "abort"})).await["success"], true);
    assert_eq!(host.response(&prompt).await["error"], "Aborted before the prompt was started");
    host.finish_loading();
    host.settle().await;
    let log = host.log.clone();
    host.finish().await;
    assert_eq!(log.lines(), ["start startup", "shutdown quit"]);
}

/// Asks the user something when the session starts.
const ASKS_AT_START: &str = "export default (pi) => {
    pi.registerCommand('early', { handler: async () => {} });
    pi.on('session_start', async (event, ctx) => { await ctx.ui.confirm('Go on?', 'It waits for an answer'); });
};";

#[tokio::test(start_paused = true)]
async fn commands_are_listed_while_an_extension_that_starts_asks_something() {
    for is_late in [false, true] {
        let builder = Harness::builder([]);
        let mut host = if is_late {
            builder.late_extension("asks.ts", ASKS_AT_START).start().await
        } else {
            builder.extension("asks.ts", ASKS_AT_START).start().await
        };
        // The first list waits until the dialog is there, the second one finds it open.
        let first = host.send(json!({"type": "get_commands"}));
        if is_late {
            host.finish_loading();
        }
        let dialog = host.wait_type("extension_ui_request").await;
        assert_eq!(host.response(&first).await["data"]["commands"][0]["name"], "early");
        assert_eq!(host.data(json!({"type": "get_commands"})).await["commands"][0]["name"], "early");
        host.answer(&dialog, json!({"confirmed": true}));
        host.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_waits_for_handlers_of_extensions_that_are_still_loading() {
    let mut host = Harness::builder([Turn::call("echo", json!({}))])
        .tool("echo", |_, _| async { ToolOutput::text("the tool ran") })
        .late_extension("gate.ts", PRINTS_PROMPTS)
        .start()
        .await;
    let prompt = host.send(prompt("go"));
    host.settle().await;
    assert_eq!(host.model.calls().len(), 0, "nobody has looked at the prompt yet");
    host.finish_loading();
    assert_eq!(host.response(&prompt).await["data"]["disposition"], "started");
    let end = host.wait_type("tool_execution_end").await;
    assert_eq!(end["result"]["content"][0]["text"], "the gate is closed");
    assert_eq!(host.log.lines(), ["input go"]);
    host.wait_type("agent_settled").await;
    host.finish().await;
}

// What extensions start and ask for.

#[tokio::test(start_paused = true)]
async fn a_run_that_an_extension_starts_is_shown_to_its_handlers_like_a_prompt() {
    let extension = "export default (pi) => {
        pi.on('before_agent_start', (event) => {
            console.log([event.messageType, event.prompt ?? '', event.message?.content ?? ''].join('|'));
            return { systemPrompt: event.systemPrompt + ' Be brief.' };
        });
        pi.registerCommand('wake', { handler: async () => {
            pi.sendMessage({ customType: 'note', content: 'time is up', display: true }, { triggerTurn: true });
        } });
    };";
    let mut host = Harness::builder([]).extension("wake.ts", extension).start().await;
    host.run("hello").await;
    host.wait_log("user|hello|").await;
    host.data(json!({"type": "prompt", "message": "/wake"})).await;
    host.wait_log("custom||time is up").await;
    host.wait_calls(2).await;
    let prompts: Vec<_> = host.model.calls().into_iter().map(|call| call.system_prompt).collect();
    assert!(prompts[0].ends_with("Be brief.") && prompts[0] == prompts[1], "{prompts:?}");
    host.settle().await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn extensions_cannot_reload_what_is_at_work() {
    let extension = "export default (pi) => pi.registerCommand('again', { handler: async (args, ctx) => {
        try { await ctx.reload(); console.log('reloaded'); } catch (error) { console.log(error.message); }
    } });";
    let mut host = Harness::builder([Turn::gated("done")]).extension("again.ts", extension).start().await;
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait_calls(1).await;
    host.data(json!({"type": "prompt", "message": "/again"})).await;
    host.wait_log("Wait for the current response to finish before reloading.").await;
    host.model.release();
    host.wait_type("agent_settled").await;
    host.data(json!({"type": "prompt", "message": "/again"})).await;
    host.wait_log("reloaded").await;
    host.finish().await;
}
