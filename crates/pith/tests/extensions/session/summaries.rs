//! Compaction and navigation, with extensions that watch, refuse or replace them.

use pith_testkit::server::TurnUsage;
use pith_testkit::{Script, Turn};
use serde_json::{Value, json};

use super::{notes, reporting, scene, scene_with};
use crate::support::{Scene, assert_like, of_type, texts};

const SUMMARY: &str = "<conversation>";

fn long(word: &str, tokens: usize) -> String {
    format!("{word} ").repeat(4 * tokens / (word.len() + 1))
}

fn settings() -> Value {
    json!({"compaction": {"reserveTokens": 2000, "keepRecentTokens": 200}})
}

/// A conversation that can be compacted, with summaries of the model.
fn talk(source: &str, summaries: impl IntoIterator<Item = Turn>) -> Scene {
    let script = Script::of([Turn::text(long("alpha", 300)), Turn::text(long("beta", 150)), Turn::text("later")]);
    let mut scene = scene_with(script.route(SUMMARY, summaries), &settings(), &[("ext.js", source)]);
    scene.run(&long("first", 100));
    scene.run(&long("second", 100));
    scene
}

fn last_entry(scene: &mut Scene) -> Value {
    let data = scene.data(json!({"type": "get_entries"}));
    data["entries"].as_array().and_then(|entries| entries.last()).cloned().expect("entries")
}

const WATCH: &str = r#"export default (pi) => {
    pi.on("session_before_compact", (event, ctx) => {
        const { preparation, branchEntries, signal, ...rest } = event;
        const { fileOps, messagesToSummarize, ...facts } = preparation;
        ctx.ui.notify(JSON.stringify({
            ...rest, facts, sets: Object.values(fileOps).every((set) => set instanceof Set),
            n: messagesToSummarize.length, entries: branchEntries.length, aborted: signal.aborted,
        }));
    });
    for (const name of ["session_compact", "session_compact_failed"]) {
        pi.on(name, (event, ctx) => ctx.ui.notify(JSON.stringify(event)));
    }
};"#;

#[test]
fn a_compaction_is_announced_before_and_after() {
    let mut scene = talk(WATCH, [Turn::text("the sum")]);
    let result = scene.data(json!({"type": "compact", "customInstructions": "Stress the foxes"}));
    let entry = last_entry(&mut scene);
    let frames = scene.host.frames();
    let is_told = |frame: &Value| frame["message"].as_str().is_some_and(|text| text.contains("session_compact\""));
    let position = |wanted: &dyn Fn(&Value) -> bool| frames.iter().position(wanted).expect("a frame");
    assert!(position(&is_told) < position(&|frame| frame["type"] == "compaction_end"), "extensions hear of it first");
    let told = notes(&frames);
    assert_like(
        &told[0],
        &json!({"type": "session_before_compact", "reason": "manual", "willRetry": false, "sets": true, "n": 2,
            "customInstructions": "Stress the foxes", "entries": 6, "aborted": false,
            "facts": {"firstKeptEntryId": result["firstKeptEntryId"], "tokensBefore": 120, "isSplitTurn": false,
                "turnPrefixMessages": [], "settings": {"enabled": true, "reserveTokens": 2000, "keepRecentTokens": 200}}}),
    );
    assert_eq!(
        told[1],
        json!({"type": "session_compact", "reason": "manual", "willRetry": false, "fromExtension": false,
            "compactionEntry": entry})
    );
}

#[test]
fn an_extension_writes_the_summary_itself() {
    let own = r#"export default (pi) => {
        pi.on("session_before_compact", async ({ preparation }) => ({ compaction: {
            summary: "mine: " + preparation.messagesToSummarize.length,
            firstKeptEntryId: preparation.firstKeptEntryId,
            tokensBefore: preparation.tokensBefore,
            details: { by: "me" },
        } }));
        pi.on("session_compact", (event, ctx) => ctx.ui.notify("own: " + event.fromExtension));
    };"#;
    let mut scene = talk(own, []);
    let n_requests = scene.server.requests().len();
    let result = scene.data(json!({"type": "compact"}));
    assert_like(&result, &json!({"summary": "mine: 2", "details": {"by": "me"}, "usage": "[ABSENT]"}));
    assert_eq!(scene.server.requests().len(), n_requests, "the model was not asked");
    assert_like(&last_entry(&mut scene), &json!({"type": "compaction", "fromHook": true, "summary": "mine: 2"}));
    assert_like(&scene.messages()[0], &json!({"role": "compactionSummary", "summary": "mine: 2"}));
    scene.wait_note("own: true");
}

#[test]
fn an_extension_can_stop_a_compaction() {
    let stop = r#"export default (pi) => {
        pi.on("session_before_compact", () => ({ cancel: true }));
        pi.on("session_compact_failed", (event, ctx) => ctx.ui.notify(JSON.stringify(event)));
    };"#;
    let mut scene = talk(stop, []);
    assert_eq!(scene.refusal(json!({"type": "compact"})), "Compaction cancelled");
    let frames = scene.host.frames();
    assert_like(of_type(&frames, "compaction_end")[0], &json!({"aborted": true, "errorMessage": "[ABSENT]"}));
    let failed = json!({"type": "session_compact_failed", "reason": "manual", "aborted": true, "willRetry": false,
        "fromExtension": false});
    scene.wait(|frame| frame["message"].as_str().and_then(|text| text.parse::<Value>().ok()).as_ref() == Some(&failed));
    scene.run("third");
}

#[test]
fn a_summary_of_an_extension_is_checked() {
    for (given, expected) in [
        ("{ summary: 5 }", "session_before_compact: compaction.summary must be a string"),
        ("{ summary: 'x', firstKeptEntryId: 'gone' }", "an extension keeps entry gone, which is not on this branch"),
    ] {
        let source = format!(
            "export default (pi) => {{ pi.on('session_before_compact', () => ({{ compaction: {given} }})); }};"
        );
        let mut scene = talk(&source, []);
        assert_eq!(scene.refusal(json!({"type": "compact"})), expected);
        assert_eq!(scene.messages().len(), 4, "nothing has changed");
    }
}

#[test]
fn a_slow_handler_can_be_aborted() {
    let hang = r#"export default (pi) => {
        pi.on("session_before_compact", ({ signal }, ctx) => new Promise((resolve) => {
            ctx.ui.notify("asked");
            signal.addEventListener("abort", () => { ctx.ui.notify("signalled"); resolve(); });
        }));
    };"#;
    let mut scene = talk(hang, []);
    scene.send(json!({"id": "c", "type": "compact"}));
    scene.wait_note("asked");
    assert_like(&scene.state(), &json!({"isCompacting": true, "isStreaming": false}));
    scene.command(json!({"type": "abort"}));
    assert_like(&scene.response("c"), &json!({"success": false, "error": "Compaction cancelled"}));
    scene.wait_note("signalled");
    scene.run("third");
}

#[test]
fn extensions_handle_automatic_compactions_too() {
    let own = r#"export default (pi) => {
        pi.on("session_before_compact", ({ reason, preparation }) => ({ compaction: { ...preparation, summary: "due: " + reason } }));
    };"#;
    let full = TurnUsage { input: 199_000, output: 20, cache_read: 0, cache_write: 0 };
    let script = Script::of([Turn::text(long("alpha", 300)), Turn::text("b").usage(full), Turn::text("c")]);
    let mut scene = scene_with(script, &settings(), &[("ext.js", own)]);
    scene.run("first");
    let frames = scene.run(&long("second", 250));
    let end = of_type(&frames, "compaction_end");
    assert_like(
        end[0],
        &json!({"reason": "threshold", "result": {"summary": "due: threshold", "tokensBefore": 199_020}}),
    );
    scene.run("third");
    scene.finish();
}

#[test]
fn an_extension_asks_for_a_compaction() {
    let asks = r#"export default (pi) => {
        pi.registerCommand("tidy", { handler: (args, ctx) => ctx.compact({
            customInstructions: args,
            onComplete: (result) => ctx.ui.notify("done: " + result.summary),
            onError: (error) => ctx.ui.notify("failed: " + error.message),
        }) });
    };"#;
    let mut scene = talk(asks, [Turn::text("the sum")]);
    scene.slash("/tidy the desk");
    scene.wait_note("done: the sum");
    assert!(scene.server.requests().last().expect("requests").body.to_string().contains("the desk"));
    scene.slash("/tidy");
    scene.wait_note("failed: Already compacted");
}

/// A conversation of two turns; the id of the second prompt.
fn two_turns(scene: &mut Scene) -> Value {
    scene.run("first");
    scene.run("second");
    second_prompt(scene)["id"].clone()
}

fn second_prompt(scene: &mut Scene) -> Value {
    let entries = scene.data(json!({"type": "get_entries"}))["entries"].clone();
    let second = entries
        .as_array()
        .and_then(|entries| entries.iter().find(|entry| texts(&entry["message"]["content"]) == "second").cloned());
    second.expect("a prompt")
}

#[test]
fn a_move_is_announced_before_and_after() {
    let events = reporting(&["session_before_tree", "session_tree"]);
    let mut scene = scene([Turn::text("one"), Turn::text("two")], &[("reporting.js", &events)]);
    let second = two_turns(&mut scene);
    let old = scene.data(json!({"type": "get_tree"}))["leafId"].clone();
    let moved = scene.data(json!({"type": "navigate_tree", "targetId": second, "label": "here"}));
    assert_like(&moved, &json!({"cancelled": false, "text": "second"}));
    let parent = second_prompt(&mut scene)["parentId"].clone();
    let told = notes(&scene.host.frames());
    assert_like(
        &told[0],
        &json!({"type": "session_before_tree", "preparation": {"targetId": second, "oldLeafId": old, "label": "here",
            "commonAncestorId": parent, "userWantsSummary": false}}),
    );
    assert_eq!(told[0]["preparation"]["entriesToSummarize"].as_array().map(Vec::len), Some(2));
    assert_like(&told[1], &json!({"type": "session_tree", "oldLeafId": old, "summaryEntry": "[ABSENT]"}));
    // Before the answer: an extension that rebuilds its state has done so by then.
    let frames = scene.host.frames();
    let told =
        frames.iter().position(|frame| frame["message"].as_str().is_some_and(|text| text.contains("session_tree\"")));
    let answered = frames.iter().position(|frame| frame["command"] == "navigate_tree");
    assert!(told < answered);
}

#[test]
fn an_extension_can_refuse_or_change_a_move() {
    let guide = r#"export default (pi) => {
        pi.on("session_before_tree", ({ preparation }) => {
            if (preparation.label === "no") return { cancel: true };
            return { summary: { summary: "left it", details: { by: "me" } }, label: "guided" };
        });
        pi.on("session_tree", (event, ctx) => ctx.ui.notify("own: " + event.fromExtension));
    };"#;
    let mut scene = scene([Turn::text("one"), Turn::text("two")], &[("guide.js", guide)]);
    let second = two_turns(&mut scene);
    let refused = scene.data(json!({"type": "navigate_tree", "targetId": second, "label": "no"}));
    assert_eq!(refused, json!({"cancelled": true}));
    assert_eq!(scene.messages().len(), 4);
    let moved = scene.data(json!({"type": "navigate_tree", "targetId": second, "summarize": true}));
    assert_like(
        &moved["summaryEntry"],
        &json!({"type": "branch_summary", "summary": "left it", "details": {"by": "me"}, "fromHook": true}),
    );
    scene.wait_note("own: true");
    let label = scene.data(json!({"type": "get_entries"}))["entries"].clone();
    let label = label.as_array().and_then(|all| all.iter().find(|entry| entry["type"] == "label").cloned());
    assert_like(&label.expect("a label"), &json!({"label": "guided", "targetId": moved["summaryEntry"]["id"]}));
    assert_eq!(scene.server.requests().len(), 2, "the model was not asked");
}

#[test]
fn an_extension_moves_in_the_tree() {
    let moves = r#"export default (pi) => {
        pi.registerCommand("go", { handler: async (args, ctx) => {
            try { ctx.ui.notify(JSON.stringify(await ctx.navigateTree(args))) } catch (error) { ctx.ui.notify(error.message) }
        } });
    };"#;
    let mut scene = scene([Turn::text("one"), Turn::text("two")], &[("moves.js", moves)]);
    let second = two_turns(&mut scene);
    scene.slash(&format!("/go {}", second.as_str().expect("an id")));
    assert_eq!(scene.messages().len(), 2);
    scene.slash("/go nowhere");
    assert_eq!(notes(&scene.host.frames()), [json!({"cancelled": false}), json!("Entry not found: nowhere")]);
}
