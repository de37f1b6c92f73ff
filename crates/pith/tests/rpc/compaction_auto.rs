//! Automatic compaction: at the threshold, and when the window overflows.

use pith_testkit::server::{Fault, TurnUsage};
use pith_testkit::{Script, Turn};
use serde_json::{Map, Value, json};

use crate::compaction::{SUMMARY, long};
use crate::support::{Scene, assert_like, assert_order, kinds, of_type, sent_texts, texts};

fn full(input: u64) -> TurnUsage {
    TurnUsage { input, output: 20, cache_read: 0, cache_write: 0 }
}

fn overflow() -> Turn {
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9001 tokens > 8000 maximum"}});
    Turn::failing(Fault::Http { status: 400, body, headers: Map::new() })
}

fn settings(keep: u64) -> Value {
    json!({"compaction": {"reserveTokens": 2000, "keepRecentTokens": keep}, "retry": {"baseDelayMs": 1}})
}

fn summaries(frames: &[Value]) -> Vec<String> {
    let wanted = |kind: &String| kind.starts_with("compaction") || kind.starts_with("agent");
    kinds(frames).into_iter().filter(wanted).collect()
}

#[test]
fn a_full_window_is_compacted_after_the_run() {
    let script = Script::of([Turn::text(long("alpha", 300)), Turn::text("b").usage(full(199_000)), Turn::text("c")]);
    let mut scene = Scene::with_window(script.route(SUMMARY, [Turn::text("sum")]), 200_000, &settings(100));
    scene.run("first");
    let frames = scene.run("second");
    assert_eq!(summaries(&frames), ["agent_start", "agent_end", "compaction_start", "compaction_end", "agent_settled"]);
    let end = of_type(&frames, "compaction_end")[0];
    assert_like(
        end,
        &json!({"reason": "threshold", "aborted": false, "willRetry": false, "result": {"tokensBefore": 199_020}}),
    );
    let frames = scene.run("third");
    assert_eq!(summaries(&frames), ["agent_start", "agent_end", "agent_settled"]);
    scene.finish();
}

#[test]
fn nothing_happens_when_it_is_switched_off_or_there_is_nothing_to_cut() {
    let mut scene =
        Scene::with_window(Script::of([Turn::text("a").usage(full(199_000)).times(2)]), 200_000, &settings(100));
    scene.command(json!({"type": "set_auto_compaction", "enabled": false}));
    scene.run(&long("first", 200));
    scene.command(json!({"type": "new_session"}));
    scene.command(json!({"type": "set_auto_compaction", "enabled": true}));
    scene.run("short");
    let frames = scene.finish();
    assert!(of_type(&frames, "compaction_start").is_empty());
}

#[test]
fn compaction_settings_can_be_set_per_model() {
    let script = Script::of([Turn::text(long("alpha", 300)), Turn::text("b").usage(full(50_000))])
        .route(SUMMARY, [Turn::text("sum")]);
    let settings = json!({"compaction": {"modelOverrides": {"mock-anthropic/claude-mock": {"reserveTokens": 50_000, "keepRecentTokens": 10}}}});
    let mut scene = Scene::with_window(script, 99_999, &settings);
    scene.run("first");
    let frames = scene.run("second");
    // At most a quarter of the window is kept free, so 75 000 is the threshold.
    assert!(of_type(&frames, "compaction_end").is_empty());
    scene.server.push(Turn::text("c").usage(full(75_000)));
    let frames = scene.run("third");
    assert_eq!(of_type(&frames, "compaction_end").len(), 1);
    scene.finish();
}

#[test]
fn a_long_run_is_compacted_between_its_turns() {
    let script = Script::of([
        Turn::text(long("alpha", 300)),
        Turn::call("bash", json!({"command": "echo one"})).usage(full(198_500)),
        Turn::text("done"),
    ]);
    let mut scene =
        Scene::with_window(script.route(SUMMARY, [Turn::text("sum").hold_after(0)]), 200_000, &settings(100));
    scene.run("first");
    let start = scene.frames().len();
    scene.prompt(&long("second", 120));
    scene.server.wait_held(2);
    assert_like(&scene.state(), &json!({"isCompacting": true, "isStreaming": true}));
    scene.server.release(2);
    scene.wait_type("agent_settled");
    let frames = scene.frames().split_off(start);
    assert_order(
        &frames,
        &[
            json!({"type": "turn_end"}),
            json!({"type": "compaction_start", "reason": "threshold"}),
            json!({"type": "compaction_end", "reason": "threshold", "willRetry": false}),
            json!({"type": "turn_start"}),
            json!({"type": "agent_end"}),
        ],
    );
    let text = scene.server.wait_request(3).body.to_string();
    assert!(text.contains("sum") && text.contains("second") && text.contains("tool_result") && !text.contains("alpha"));
    scene.finish();
}

#[test]
fn an_abort_during_a_compaction_between_turns_ends_the_run() {
    let script = Script::of([
        Turn::text(long("alpha", 300)),
        Turn::call("bash", json!({"command": "true"})).usage(full(198_500)),
    ]);
    let mut scene =
        Scene::with_window(script.route(SUMMARY, [Turn::text("sum").hold_after(0)]), 200_000, &settings(100));
    scene.run("first");
    scene.prompt("second");
    scene.server.wait_held(2);
    scene.send(json!({"id": "a", "type": "abort"}));
    scene.response("a");
    assert_order(
        &scene.frames(),
        &[
            json!({"type": "compaction_end", "aborted": true}),
            json!({"type": "turn_start"}),
            json!({"type": "message_end", "message": {"stopReason": "aborted"}}),
            json!({"type": "agent_end"}),
            json!({"type": "agent_settled", "aborted": true}),
            json!({"type": "response", "id": "a"}),
        ],
    );
    assert_eq!(scene.server.requests().len(), 3);
    scene.finish();
}

#[test]
fn a_full_window_is_compacted_before_the_next_prompt() {
    let script = Script::of([Turn::text(long("alpha", 300)), Turn::text("b").usage(full(199_000)), Turn::text("c")]);
    let mut scene = Scene::with_window(script.route(SUMMARY, [Turn::text("sum")]), 200_000, &settings(100));
    scene.command(json!({"type": "set_auto_compaction", "enabled": false}));
    scene.run("first");
    scene.run("second");
    scene.command(json!({"type": "set_auto_compaction", "enabled": true}));
    let frames = scene.run("third");
    assert_eq!(summaries(&frames), ["compaction_start", "compaction_end", "agent_start", "agent_end", "agent_settled"]);
    assert!(sent_texts(&scene.server.wait_request(3).body).contains("third"));
    scene.finish();
}

#[test]
fn a_prompt_that_was_accepted_survives_an_abort_during_its_compaction() {
    let script = Script::of([Turn::text(long("alpha", 300)), Turn::text("b").usage(full(199_000))]);
    let mut scene =
        Scene::with_window(script.route(SUMMARY, [Turn::text("sum").hold_after(0)]), 200_000, &settings(100));
    scene.command(json!({"type": "set_auto_compaction", "enabled": false}));
    scene.run("first");
    scene.run("second");
    scene.command(json!({"type": "set_auto_compaction", "enabled": true}));
    scene.prompt("third");
    scene.server.wait_held(2);
    assert_eq!(
        scene.refusal(json!({"type": "prompt", "message": "x"})),
        "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."
    );
    scene.command(json!({"type": "abort"}));
    let messages = scene.messages();
    assert_eq!(texts(&messages[messages.len() - 2]["content"]), "third");
    assert_eq!(messages[messages.len() - 1]["stopReason"], "aborted");
    scene.finish();
}

#[test]
fn an_overflow_is_recovered_once() {
    let script = Script::of([Turn::text(long("alpha", 300)), overflow(), Turn::text("recovered"), overflow().times(2)]);
    let mut scene = Scene::with_window(script.route(SUMMARY, [Turn::text("sum")]), 8000, &settings(100));
    scene.run("first");
    let frames = scene.run(&long("second", 120));
    assert_eq!(
        summaries(&frames),
        ["agent_start", "agent_end", "compaction_start", "compaction_end", "agent_start", "agent_end", "agent_settled"]
    );
    assert_like(
        of_type(&frames, "compaction_end")[0],
        &json!({"reason": "overflow", "willRetry": true, "aborted": false}),
    );
    assert_eq!(of_type(&frames, "agent_end")[0]["willRetry"], false);
    let text = sent_texts(&scene.server.wait_request(3).body);
    assert!(text.contains("sum") && text.contains("second") && !text.contains("alpha"));
    // The failed answer is in the file and no longer in the context.
    let messages = scene.messages();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().expect("a role")).collect();
    assert_eq!(roles, ["compactionSummary", "user", "assistant"]);
    assert_eq!(scene.home.sessions()[0].messages().len(), 5);

    let frames = scene.run(&long("third", 400));
    let ends = of_type(&frames, "compaction_end");
    assert_eq!(ends.len(), 2, "{:#?}", kinds(&frames));
    assert_like(ends[0], &json!({"reason": "overflow", "willRetry": true}));
    assert_like(
        ends[1],
        &json!({"reason": "overflow", "result": null, "willRetry": false, "errorMessage": "Context overflow recovery failed after one compact-and-retry attempt. Try reducing context or switching to a larger-context model."}),
    );
    scene.finish();
}

#[test]
fn small_windows_work_with_default_settings() {
    let script = Script::of([
        Turn::text(long("alpha", 1400)),
        Turn::text(long("beta", 1400)),
        overflow(),
        Turn::text("fits now"),
    ]);
    let mut scene = Scene::with_window(script.route(SUMMARY, [Turn::text("sum")]), 8000, &json!({}));
    scene.run(&long("one", 600));
    scene.run(&long("two", 600));
    let frames = scene.run(&long("three", 600));
    assert_like(
        of_type(&frames, "compaction_end")[0],
        &json!({"reason": "overflow", "result": {"summary": "sum"}, "willRetry": true}),
    );
    assert_eq!(scene.data(json!({"type": "get_last_assistant_text"}))["text"], "fits now");
    // Small windows still leave room to answer.
    let asked = scene.server.requests();
    assert!(asked.iter().all(|request| request.body["max_tokens"].as_u64().is_some_and(|max| max >= 1000)));
    scene.finish();
}

#[test]
fn a_window_that_the_server_reports_is_used_from_then_on() {
    let script = Script::of([
        Turn::text(long("alpha", 1400)),
        Turn::text(long("beta", 1400)),
        overflow(),
        Turn::text("fits now"),
    ]);
    // The defaults of a minimal entry in `models.json`. With those, nothing would have to be cut.
    let mut scene = Scene::with_window(script.route(SUMMARY, [Turn::text("sum")]), 128_000, &json!({}));
    scene.run(&long("one", 600));
    scene.run(&long("two", 600));
    let window =
        |scene: &mut Scene| scene.data(json!({"type": "get_session_stats"}))["contextUsage"]["contextWindow"].clone();
    assert_eq!(window(&mut scene), 128_000);
    let frames = scene.run(&long("three", 600));
    assert_like(
        of_type(&frames, "compaction_end")[0],
        &json!({"reason": "overflow", "result": {"summary": "sum"}, "willRetry": true}),
    );
    assert_eq!(scene.data(json!({"type": "get_last_assistant_text"}))["text"], "fits now");
    assert_eq!(window(&mut scene), 8000);
    scene.finish();
}

#[test]
fn the_current_request_survives_verbatim() {
    // Kept as a message: it is larger than what is usually kept.
    let script = Script::of([Turn::text(long("alpha", 500)), overflow(), Turn::text("ok")]);
    let mut scene = Scene::with_window(script.route(SUMMARY, [Turn::text("sum")]), 8000, &settings(1500));
    scene.run("first");
    let request = long("request", 1750);
    scene.run(&request);
    assert!(sent_texts(&scene.server.wait_request(3).body).contains(&request));
    scene.finish();

    // Quoted in the summary: the turn it opened is too long to be kept whole, twice over.
    let call =
        |n: usize| Turn::call("bash", json!({"command": format!("echo {}", "y".repeat(4 * n))})).usage(full(6500));
    let script = Script::of([call(300), call(300), call(300), Turn::text("done")]).route(SUMMARY, [Turn::text("sum")]);
    let mut scene = Scene::with_window(script, 8000, &settings(350));
    let request = long("please", 100);
    let frames = scene.run(&request);
    let n_compactions = of_type(&frames, "compaction_end").len();
    assert!(n_compactions >= 2, "{:#?}", kinds(&frames));
    let last = scene.server.requests().pop().expect("requests");
    assert!(sent_texts(&last.body).contains(&format!("<request>\n{request}\n</request>")));
    scene.finish();
}

#[test]
fn a_request_too_large_for_the_window_loses_its_middle() {
    let script = Script::of([overflow(), Turn::text("ok")]);
    let mut scene = Scene::with_window(script, 8000, &json!({}));
    let request = format!("BEGIN {} END", long("huge", 20_000));
    let frames = scene.run(&request);
    assert_like(
        of_type(&frames, "compaction_end")[0],
        &json!({"reason": "overflow", "result": null, "willRetry": true}),
    );
    let text = sent_texts(&scene.server.wait_request(1).body);
    assert!(text.contains("BEGIN") && text.contains("END") && text.len() < 4 * 6000, "{}", text.len());
    let path = text.split("the whole text is in ").nth(1).and_then(|rest| rest.split(']').next()).expect("a path");
    assert_eq!(std::fs::read_to_string(path).expect("the file"), request);
    // The history keeps the original.
    assert_eq!(texts(&scene.home.sessions()[0].messages()[0]["content"]), request);
    scene.finish();
}

#[test]
fn long_histories_are_summarised_piece_by_piece() {
    let words = ["one", "two", "three", "four"];
    let script = Script::of(words.map(|word| Turn::text(long(word, 6000)))).turn(overflow()).turn(Turn::text("ok"));
    let mut scene = Scene::with_window(script.route(SUMMARY, [Turn::text("sum so far")]), 8000, &settings(1500));
    scene.command(json!({"type": "set_auto_compaction", "enabled": false}));
    for word in words {
        scene.run(word);
    }
    scene.command(json!({"type": "set_auto_compaction", "enabled": true}));
    // The scripted model reports far less than the threshold, so only the overflow matters.
    let frames = scene.run("now");
    assert_like(
        of_type(&frames, "compaction_end")[0],
        &json!({"willRetry": true, "result": {"summary": "sum so far"}}),
    );
    let requests = scene.server.requests();
    let asked: Vec<String> =
        requests.iter().filter(|request| request.route != "main").map(|request| sent_texts(&request.body)).collect();
    assert!(asked.len() >= 4, "{}", asked.len());
    assert!(asked.iter().all(|text| text.len() < 3 * 8000), "each fits the window");
    assert!(asked[1..].iter().all(|text| text.contains("<previous-summary>\nsum so far")));
    for word in words {
        assert!(asked.iter().any(|text| text.contains(&format!("{word} {word}"))), "{word} was shown");
    }
    scene.finish();
}

#[test]
fn a_short_answer_that_was_cut_off_is_no_overflow() {
    let script = Script::of([Turn::text("cut").stop("length").usage(TurnUsage {
        input: 900,
        output: 50,
        cache_read: 0,
        cache_write: 0,
    })]);
    let mut scene = Scene::with_window(script, 20_000, &settings(10));
    scene.run(&long("question", 200));
    assert_eq!(scene.server.requests().len(), 1);
    let frames = scene.finish();
    assert!(of_type(&frames, "compaction_start").is_empty());
}

#[test]
fn an_answer_cut_off_by_a_full_window_is_requested_again() {
    let squeezed = Turn::text("half an ans").stop("length").usage(TurnUsage {
        input: 15_000,
        output: 50,
        cache_read: 0,
        cache_write: 0,
    });
    let script = Script::of([Turn::text(long("alpha", 300)), squeezed, Turn::text("whole answer")]);
    let mut scene = Scene::with_window(script.route(SUMMARY, [Turn::text("sum")]), 20_000, &settings(100));
    scene.run("first");
    scene.run("second");
    let sent = sent_texts(&scene.server.wait_request(3).body);
    assert!(sent.contains("second") && !sent.contains("half an ans"));
    assert_eq!(scene.data(json!({"type": "get_last_assistant_text"}))["text"], "whole answer");
    scene.finish();
}

#[test]
fn a_failed_compaction_is_reported_and_the_work_ends() {
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no summary today"}});
    let failing = Turn::failing(Fault::Http { status: 400, body, headers: Map::new() });
    let script = Script::of([Turn::text(long("alpha", 300)), Turn::text("b").usage(full(199_000)), Turn::text("c")]);
    let mut scene = Scene::with_window(script.route(SUMMARY, [failing]), 200_000, &settings(100));
    scene.run("first");
    let frames = scene.run("second");
    let text = of_type(&frames, "compaction_end")[0]["errorMessage"].as_str().expect("a text");
    assert!(text.starts_with("Auto-compaction failed: ") && text.contains("no summary today"), "{text}");
    scene.finish();
}

#[test]
fn messages_queued_during_a_compaction_start_another_run() {
    let script = Script::of([Turn::text(long("alpha", 300)), Turn::text("b").usage(full(199_000)), Turn::text("c")]);
    let mut scene =
        Scene::with_window(script.route(SUMMARY, [Turn::text("sum").hold_after(0)]), 200_000, &settings(100));
    scene.run("first");
    let start = scene.frames().len();
    scene.prompt("second");
    scene.server.wait_held(2);
    scene.command(json!({"type": "follow_up", "message": "and then"}));
    scene.server.release(2);
    scene.wait_type("agent_settled");
    let frames = scene.frames().split_off(start);
    assert_eq!(
        summaries(&frames),
        ["agent_start", "agent_end", "compaction_start", "compaction_end", "agent_start", "agent_end", "agent_settled"]
    );
    scene.finish();
}

#[test]
fn xcsh_hosts_get_auto_compaction_events() {
    let script = Script::of([Turn::text(long("alpha", 20_100)), Turn::text("b").usage(full(199_000))])
        .route(SUMMARY, [Turn::text("sum")]);
    let mut scene = Scene::with(script, |builder| builder.args(["--dialect", "xcsh"]));
    scene.run("first");
    let frames = scene.run("second");
    assert_like(
        of_type(&frames, "auto_compaction_start")[0],
        &json!({"reason": "threshold", "action": "context-full"}),
    );
    assert_like(
        of_type(&frames, "auto_compaction_end")[0],
        &json!({"action": "context-full", "result": {"summary": "[ANY]"}}),
    );
    scene.finish();
}
