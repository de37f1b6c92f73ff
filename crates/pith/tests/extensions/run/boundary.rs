//! Drafts and continuations at the end of turns and runs.

use pith_testkit::Turn;
use serde_json::{Value, json};

use super::{failures, notes, scene};
use crate::support::{of_type, sent_texts};

/// The types of the entries the host was told of.
fn appended(frames: &[Value]) -> Vec<&str> {
    of_type(frames, "entry_appended").iter().filter_map(|frame| frame["entry"]["type"].as_str()).collect()
}

#[test]
fn a_turn_can_be_continued_with_what_extensions_add() {
    let body = r#"
        let n = 0;
        pi.on("turn_end", (event) => {
            if (n++ > 0) return;
            return { continue: true, entries: [
                { type: "custom", customType: "mark", data: { n: 1 } },
                { type: "custom_message", customType: "nudge", content: "go on", display: false },
            ] };
        });"#;
    let mut scene = scene(body, [Turn::text("one"), Turn::text("two"), Turn::text("never")]);
    let frames = scene.run("go");
    assert_eq!(appended(&frames), ["custom", "custom_message"]);
    // Exactly one more request, in the same run.
    assert_eq!(scene.server.requests().len(), 2);
    assert_eq!(of_type(&frames, "agent_start").len(), 1);
    assert!(sent_texts(&scene.server.requests()[1].body).ends_with("go on"));
    assert_eq!(failures(&frames), []);
    scene.finish();
}

#[test]
fn an_activity_can_be_continued_before_it_settles() {
    let body = r#"
        let n = 0;
        pi.on("agent_before_settle", (event, ctx) => {
            note(ctx, event.outcome);
            if (n++ === 0) return { continue: true, entries: [{ type: "custom_message", customType: "more", content: "once more", display: true }] };
        });"#;
    let mut scene = scene(body, [Turn::text("one"), Turn::text("two")]);
    let frames = scene.run("go");
    assert_eq!(notes(&frames), ["completed", "completed"]);
    assert_eq!((of_type(&frames, "agent_end").len(), of_type(&frames, "agent_settled").len()), (2, 1));
    assert!(sent_texts(&scene.server.requests()[1].body).ends_with("once more"));
    scene.finish();
}

#[test]
fn drafts_change_what_the_model_sees_next() {
    let body = r#"
        let n = 0;
        pi.on("turn_end", (event) => {
            if (n++ === 0) return { entries: [{ type: "context_edit", targetId: event.messageEntryId, replacement: { content: [{ type: "text", text: "rewritten" }] } }] };
            if (n === 2) return { entries: [{ type: "compaction", summary: "all that was", firstKeptEntryId: event.messageEntryId }] };
        });"#;
    let mut scene = scene(body, ["one", "two", "three"].map(Turn::text));
    assert_eq!(appended(&scene.run("first")), ["context_edit"]);
    assert_eq!(appended(&scene.run("second")), ["compaction"]);
    let sent = |at: usize| sent_texts(&scene.server.requests()[at].body);
    assert!(sent(1).contains("rewritten") && !sent(1).contains("one"), "{}", sent(1));
    scene.run("third");
    let sent = sent_texts(&scene.server.requests()[2].body);
    assert!(sent.contains("all that was") && sent.contains("two") && !sent.contains("second"), "{sent}");
    scene.finish();
}

#[test]
fn invalid_proposals_are_reported_and_change_nothing() {
    let check = |result: &str, expected: &str| {
        let mut scene =
            scene(&format!("pi.on('turn_end', () => ({result}));"), [Turn::text("one"), Turn::text("never")]);
        let frames = scene.run("go");
        let (path, event, error) = failures(&frames)[0];
        assert_eq!(event, "turn_end");
        // Bad drafts are reported for their extension; a continuation for none in particular.
        assert_eq!(path == "<boundary>", result.contains("continue"), "{path}");
        assert!(path == "<boundary>" || path.ends_with(".ts"), "{path}");
        assert!(error.starts_with(expected), "{error}");
        assert_eq!(appended(&frames), [""; 0]);
        assert_eq!(scene.server.requests().len(), 1);
        scene.finish();
    };
    // A valid draft beside an invalid one is not stored either.
    let mark = "{ type: 'custom', customType: 'mark' }";
    check(
        &format!("{{ entries: [{mark}, {{ type: 'context_edit', targetId: 'nowhere', replacement: null }}] }}"),
        "Invalid boundary entries: entries[1]: Entry not found: nowhere",
    );
    check(
        &format!("{{ entries: [{mark}, {{ type: 'mystery' }}] }}"),
        "Invalid boundary entries: entries[1]: unknown variant",
    );
    check("{ entries: [{ type: 'custom_message' }] }", "Invalid boundary entries: entries[0]: missing field");
    check("{ continue: true }", "turn_end requested continuation without runnable model context");
}

#[test]
fn handlers_see_the_proposal_so_far_and_what_it_would_mean() {
    let body = r#"
        pi.on("agent_before_settle", (event, ctx) => {
            note(ctx, [event.entries.length, event.context.canContinue, event.context.contextMessages.length]);
            return { entries: [{ type: "custom_message", customType: "x", content: "more", display: true }] };
        });
        pi.on("agent_before_settle", (event, ctx) => {
            const { canContinue, contextMessages, llmMessages, contextEntries, pendingMessages } = event.context;
            note(ctx, [event.entries.length, canContinue, contextMessages.length, llmMessages.at(-1).role, contextEntries.at(-1).messages.length, pendingMessages.length]);
            return { entries: [], continue: false };
        });"#;
    let mut scene = scene(body, [Turn::text("one")]);
    let frames = scene.run("go");
    assert_eq!(notes(&frames), ["[0,false,2]", r#"[1,true,3,"user",1,0]"#]);
    assert_eq!(appended(&frames), [""; 0]);
    scene.finish();
}

#[test]
fn an_abort_before_settling_ends_the_activity() {
    let body =
        r#"pi.on("agent_before_settle", (event, ctx) => { note(ctx, "stuck"); return new Promise(() => {}); });"#;
    let mut scene = scene(body, [Turn::text("one")]);
    scene.prompt("go");
    scene.wait(|frame| frame["message"] == "stuck");
    assert_eq!(scene.state()["isStreaming"], true);
    scene.command(json!({"type": "abort"}));
    let frames = scene.finish();
    assert_eq!(of_type(&frames, "agent_settled").len(), 1);
}
