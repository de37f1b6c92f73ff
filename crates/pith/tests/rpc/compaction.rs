//! Compaction on request.

use pith_testkit::server::Fault;
use pith_testkit::{Script, Turn};
use serde_json::{Map, Value, json};

use crate::support::{Scene, assert_like, assert_order, of_type, position, sent_texts};

/// Matches requests for a summary, and no others.
pub const SUMMARY: &str = "<conversation>";

/// Text of about that many tokens.
pub fn long(word: &str, tokens: usize) -> String {
    format!("{word} ").repeat(4 * tokens / (word.len() + 1))
}

fn settings() -> Value {
    json!({"compaction": {"reserveTokens": 2000, "keepRecentTokens": 200}, "retry": {"baseDelayMs": 1}})
}

fn talk(summaries: impl IntoIterator<Item = Turn>) -> Scene {
    let script = Script::of([Turn::text(long("alpha", 300)), Turn::text(long("beta", 150)), Turn::text("later")]);
    let mut scene = Scene::with_window(script.route(SUMMARY, summaries), 200_000, &settings());
    scene.run(&long("first", 100));
    scene.run(&long("second", 100));
    scene
}

fn refused(status: u16, message: &str) -> Turn {
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    Turn::failing(Fault::Http { status, body, headers: Map::new() })
}

fn compact() -> Value {
    json!({"type": "compact"})
}

#[test]
fn a_summary_replaces_the_older_messages() {
    let mut scene = talk([Turn::text("## Goal\nGo on.")]);
    let before = scene.messages();
    let start = scene.frames().len();
    let result = scene.data(json!({"type": "compact", "customInstructions": "Stress the foxes"}));
    let frames = scene.frames().split_off(start);
    assert_order(
        &frames,
        &[
            json!({"type": "compaction_start", "reason": "manual"}),
            json!({"type": "compaction_end", "reason": "manual", "aborted": false, "willRetry": false, "errorMessage": "[ABSENT]"}),
            json!({"type": "response", "command": "compact"}),
        ],
    );
    assert_eq!(frames.len(), 3, "{frames:#?}");
    assert_eq!(frames[1]["result"], result);
    assert_like(
        &result,
        &json!({"summary": "## Goal\nGo on.", "tokensBefore": 120, "details": {"readFiles": [], "modifiedFiles": []},
            "usage": {"input": 100, "output": 20, "totalTokens": 120}}),
    );
    // The kept part begins at a message and is unchanged.
    let messages = scene.messages();
    assert_like(&messages[0], &json!({"role": "compactionSummary", "summary": "## Goal\nGo on.", "tokensBefore": 120}));
    assert_eq!(messages[1..], before[2..]);
    let estimate: u64 = 4 + 100 + 150;
    let after = result["estimatedTokensAfter"].as_u64().expect("a number");
    assert!(after.abs_diff(estimate) < 5, "{after}");

    let request = scene.server.wait_request(2);
    assert!(request.body["tools"].as_array().is_none_or(Vec::is_empty));
    let text = sent_texts(&request.body);
    assert!(text.contains("[User]: first") && text.contains("[Assistant]: alpha") && text.contains("Stress the foxes"));
    assert!(!text.contains("second") && !text.contains("beta"));
    assert!(!request.body.to_string().contains("cache_control"), "summaries are not cached");

    // The entry has everything a later compaction and the totals need.
    let sessions = scene.home.sessions();
    let entry = sessions[0].entries.last().expect("entries");
    assert_like(
        entry,
        &json!({"type": "compaction", "firstKeptEntryId": result["firstKeptEntryId"], "usage": {"totalTokens": 120}}),
    );
    assert_like(
        &scene.data(json!({"type": "get_session_stats"})),
        &json!({"totalMessages": 4, "tokens": {"total": 360}, "contextUsage": {"tokens": null, "percent": null}}),
    );
    scene.run("third");
    let text = sent_texts(&scene.server.wait_request(3).body);
    assert!(
        text.contains("<summary>\n## Goal\nGo on.\n</summary>")
            && text.contains("second second")
            && !text.contains("alpha")
    );
    assert_like(&scene.data(json!({"type": "get_session_stats"})), &json!({"contextUsage": {"tokens": 120}}));
    scene.finish();
}

#[test]
fn a_compaction_that_is_not_possible_is_refused_with_a_reason() {
    let failure = |scene: &mut Scene, text: &str| {
        let start = scene.frames().len();
        assert_eq!(scene.refusal(compact()), text);
        let frames = scene.frames().split_off(start);
        assert_order(
            &frames,
            &[
                json!({"type": "compaction_start", "reason": "manual"}),
                json!({"type": "compaction_end", "result": null, "aborted": false, "errorMessage": format!("Compaction failed: {text}")}),
                json!({"type": "response", "success": false}),
            ],
        );
    };
    let mut scene = Scene::new([Turn::text("hi")]);
    failure(&mut scene, "Nothing to compact (session too small)");
    scene.run("go");
    failure(&mut scene, "Nothing to compact (session too small)");
    assert_eq!(scene.server.requests().len(), 1);
    scene.finish();

    let mut scene = talk([Turn::text("sum")]);
    scene.command(compact());
    failure(&mut scene, "Already compacted");
    scene.finish();

    let check = |summary: Turn, text: &str| {
        let mut scene = talk([summary]);
        let before = scene.messages();
        let start = scene.frames().len();
        let refusal = scene.refusal(compact());
        assert!(refusal.contains(text), "{refusal}");
        let end = scene.frames().split_off(start).remove(1);
        assert_eq!(end["errorMessage"], format!("Compaction failed: {refusal}"));
        assert_eq!(scene.messages(), before, "the history is unchanged");
        assert_like(&scene.state(), &json!({"isCompacting": false, "isStreaming": false}));
        scene.finish();
    };
    check(refused(400, "no summary today"), "no summary today");
    check(Turn::text("half").stop("length"), "cut off by the output limit");
    check(Turn::call("bash", json!({"command": "true"})), "called a tool");
    check(Turn::text("  \n"), "empty summary");
}

#[test]
fn without_a_model_compaction_is_refused() {
    let mut host = crate::support::builder().args(["--mode", "rpc", "--no-session"]).spawn();
    let response = host.ask(compact());
    assert_eq!(response["success"], false);
    assert!(response["error"].as_str().is_some_and(|text| text.contains("model")), "{response}");
    assert_eq!(host.finish().1, 0);
}

#[test]
fn an_abort_cancels_the_compaction() {
    let mut scene = talk([Turn::text("slow summary").hold_after(0)]);
    let before = scene.messages();
    scene.send(json!({"id": "c", "type": "compact"}));
    scene.server.wait_request(2);
    scene.send(json!({"id": "a", "type": "abort"}));
    scene.response("a");
    assert_order(
        &scene.frames(),
        &[
            json!({"type": "compaction_end", "reason": "manual", "aborted": true, "result": null, "errorMessage": "[ABSENT]"}),
            json!({"type": "response", "id": "c", "success": false, "error": "Compaction cancelled"}),
            json!({"type": "response", "id": "a", "success": true}),
        ],
    );
    assert_eq!(scene.messages(), before);
    scene.run("third");
    scene.finish();
}

#[test]
fn prompts_wait_for_the_host_while_a_compaction_runs() {
    let mut scene = talk([Turn::text("sum").hold_after(0)]);
    scene.send(json!({"id": "c", "type": "compact"}));
    scene.server.wait_held(2);
    assert_like(&scene.state(), &json!({"isCompacting": true, "isStreaming": false}));
    for prompt in [
        json!({"type": "prompt", "message": "x"}),
        json!({"type": "prompt", "message": "x", "streamingBehavior": "steer"}),
    ] {
        assert_eq!(
            scene.refusal(prompt),
            "Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry."
        );
    }
    assert_eq!(scene.refusal(compact()), "Compaction already in progress");
    assert_eq!(scene.data(json!({"type": "steer", "message": "soon"})), json!({"disposition": "queued"}));
    // A shell command of the host is recorded at once: only a run must not see it in its middle.
    scene.data(json!({"type": "bash", "command": "echo aside"}));
    assert_eq!(scene.messages().last().expect("messages")["command"], "echo aside");
    scene.server.release(2);
    assert_eq!(scene.response("c")["success"], true);
    assert_like(&scene.state(), &json!({"isCompacting": false, "pendingMessageCount": 1}));
    assert_eq!(scene.messages().last().expect("messages")["command"], "echo aside");
    scene.run("third");
    assert!(sent_texts(&scene.server.wait_request(3).body).contains("soon"));
    scene.finish();
}

#[test]
fn compact_aborts_a_run_first() {
    let script = Script::of([Turn::text(long("alpha", 300)), Turn::text("abcdef").chunk(2).hold_after(1)]);
    let mut scene = Scene::with_window(script.route(SUMMARY, [Turn::text("sum")]), 200_000, &settings());
    scene.run("first");
    scene.prompt("second");
    scene.wait_update("text_delta");
    scene.send(json!({"id": "c", "type": "compact"}));
    assert_eq!(scene.response("c")["success"], true);
    assert_order(
        &scene.frames(),
        &[
            json!({"type": "message_end", "message": {"stopReason": "aborted"}}),
            json!({"type": "agent_end"}),
            json!({"type": "agent_settled", "aborted": true}),
            json!({"type": "compaction_start"}),
            json!({"type": "compaction_end"}),
            json!({"type": "response", "id": "c"}),
        ],
    );
    scene.finish();
}

#[test]
fn failed_summary_requests_are_repeated() {
    let mut scene = talk([Turn::overloaded(), Turn::overloaded(), Turn::text("at last")]);
    let start = scene.frames().len();
    assert_eq!(scene.data(compact())["summary"], "at last");
    let frames = scene.frames().split_off(start);
    assert_order(
        &frames,
        &[
            json!({"type": "compaction_start"}),
            json!({"type": "summarization_retry_scheduled", "attempt": 1, "maxAttempts": 3, "delayMs": 1}),
            json!({"type": "summarization_retry_attempt_start", "source": "compaction", "reason": "manual"}),
            json!({"type": "summarization_retry_scheduled", "attempt": 2, "delayMs": 2}),
            json!({"type": "summarization_retry_attempt_start"}),
            json!({"type": "summarization_retry_finished"}),
            json!({"type": "compaction_end", "aborted": false}),
        ],
    );
    assert_eq!(of_type(&frames, "summarization_retry_finished").len(), 1);
    scene.finish();
}

#[test]
fn a_retry_delay_of_a_summary_can_be_aborted() {
    let script = Script::of([Turn::text(long("alpha", 300)), Turn::text("b")]).route(SUMMARY, [Turn::overloaded()]);
    let settings = json!({"compaction": {"keepRecentTokens": 2}, "retry": {"baseDelayMs": 600_000}});
    let mut scene = Scene::with_window(script, 200_000, &settings);
    scene.run("first");
    scene.run("second");
    scene.send(json!({"id": "c", "type": "compact"}));
    scene.wait_type("summarization_retry_scheduled");
    scene.command(json!({"type": "abort"}));
    assert_eq!(scene.response("c")["error"], "Compaction cancelled");
    let frames = scene.finish();
    assert!(
        position(&frames, &json!({"type": "summarization_retry_finished"}))
            < position(&frames, &json!({"type": "compaction_end"}))
    );
}

#[test]
fn later_summaries_include_earlier_ones() {
    let read = |path: &str| Turn::call("read", json!({"path": path}));
    let write = Turn::call("write", json!({"path": "b.txt", "content": "x"}));
    let script = Script::of([read("a.txt"), write, read("b.txt"), Turn::text(long("alpha", 300)), Turn::text("end")]);
    let script = script.turn(read("c.txt")).turn(Turn::text(long("gamma", 300))).turn(Turn::text("end"));
    let script = script.route(SUMMARY, [Turn::text("FIRST SUMMARY"), Turn::text("SECOND SUMMARY")]);
    let settings = json!({"compaction": {"reserveTokens": 2000, "keepRecentTokens": 20}});
    let mut scene = Scene::with_window(script, 200_000, &settings);
    scene.run("one");
    scene.run(&long("two", 50));
    assert_eq!(
        scene.data(compact())["summary"],
        "FIRST SUMMARY\n\n<read-files>\na.txt\n</read-files>\n\n<modified-files>\nb.txt\n</modified-files>"
    );
    scene.run(&long("three", 50));
    scene.run(&long("four", 50));
    let n_before = scene.server.requests().len();
    let second = scene.data(compact());
    assert_eq!(second["details"], json!({"readFiles": ["a.txt", "c.txt"], "modifiedFiles": ["b.txt"]}));
    assert!(
        second["summary"]
            .as_str()
            .is_some_and(|text| text.starts_with("SECOND SUMMARY\n\n<read-files>\na.txt\nc.txt\n"))
    );
    let asked = sent_texts(&scene.server.wait_request(n_before).body);
    assert!(asked.contains("<previous-summary>\nFIRST SUMMARY\n</previous-summary>"), "{asked}");
    assert!(
        asked.contains("two two") && asked.contains("gamma") && !asked.contains("alpha") && !asked.contains("four")
    );
    let summaries = scene.messages().iter().filter(|message| message["role"] == "compactionSummary").count();
    assert_eq!(summaries, 1);
    scene.finish();
}
