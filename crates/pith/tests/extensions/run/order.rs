//! What extensions see of a run, and when.

use pith_testkit::{Block, Script, Turn};
use serde_json::{Value, json};

use super::{failures, notes, scene, scene_with};
use crate::support::{assert_like, kinds, of_type, texts};

#[test]
fn agent_end_begins_with_what_the_model_was_told_of_itself() {
    let witness = r#"
        pi.on("agent_end", (event, ctx) => note(ctx, event.messages.map((message) => message.role === "system"
            ? ["system", message.content.length > 0, message.toolsAdded?.map((tool) => tool.name), message.toolsRemoved?.map((tool) => tool.name)].filter((part) => part !== undefined).join("/")
            : message.role).join(" ")));
        pi.registerCommand("less", { handler: async () => pi.setActiveTools(["read"]) });"#;
    let turns = (0..4).map(|_| Turn::text("done"));
    let mut scene = scene_with(witness, Script::of(turns), |builder| builder.args(["--tools", "read,ls"]));
    let mut check = |prompt: &str, expected: &str| assert_eq!(notes(&scene.run(prompt)), [expected], "{prompt}");
    check("one", "system/true/read,ls user assistant");
    check("two", "user assistant");
    scene.data(json!({"type": "prompt", "message": "/less"}));
    assert_eq!(notes(&scene.run("three")), ["system/true/ls user assistant"]);
    scene.data(json!({"type": "new_session"}));
    assert_eq!(notes(&scene.run("four")), ["system/true/read,ls user assistant"]);
}

/// Tells the host every event of a run, with something that identifies it.
const WITNESS: &str = r#"
    const label = {
        message_start: (e) => e.message.role, message_end: (e) => e.message.role,
        tool_execution_start: (e) => e.toolCallId, tool_execution_end: (e) => e.toolCallId,
        tool_call: (e) => e.toolCallId, tool_result: (e) => e.toolCallId,
        turn_start: (e) => e.turnIndex, turn_end: (e) => `${e.turnIndex} ${e.outcome} ${e.toolResultEntryIds.length}`,
    };
    for (const name of ["input", "before_agent_start", "agent_start", "turn_start", "message_start", "message_end", "context",
            "context_with_system", "before_provider_headers", "before_provider_request", "after_provider_response",
            "tool_execution_start", "tool_call", "tool_result", "tool_execution_end", "turn_end", "agent_end",
            "agent_before_settle", "agent_settled"]) {
        pi.on(name, (event, ctx) => note(ctx, [name, label[name]?.(event), ctx.signal && "running"].filter((part) => part !== undefined).join(":")));
    }"#;

#[test]
fn extensions_see_a_run_in_order_and_before_the_host() {
    let calls = [Block::call("ls", json!({"path": "."})), Block::call("ls", json!({"path": "."}))];
    let script = Script::of([Turn::blocks(calls), Turn::text("done")]);
    let mut scene = scene_with(WITNESS, script, |builder| builder.args(["--tools", "ls"]));
    let frames = scene.run("go");
    let ids: Vec<String> = of_type(&frames, "tool_execution_start")
        .iter()
        .map(|frame| frame["toolCallId"].as_str().expect("an id").to_owned())
        .collect();
    let request = [
        "context",
        "context_with_system",
        "before_provider_headers",
        "before_provider_request",
        "after_provider_response",
        "message_start:assistant",
        "message_end:assistant",
    ];
    let mut expected: Vec<String> = ["agent_start", "turn_start:0", "message_start:user", "message_end:user"]
        .into_iter()
        .chain(request)
        .map(|name| format!("{name}:running"))
        .collect();
    for id in &ids {
        expected.extend([format!("tool_execution_start:{id}:running"), format!("tool_call:{id}:running")]);
    }
    let (before, rest) = notes(&frames)
        .into_iter()
        .map(str::to_owned)
        .partition::<Vec<_>, _>(|note| note == "input" || note.starts_with("before_agent_start"));
    assert_eq!(before, ["input", "before_agent_start:running"]);
    assert_eq!(rest[..expected.len()], expected[..]);
    // The two calls run in parallel; each has its result before its end.
    let batch = &rest[expected.len()..expected.len() + 4];
    for id in &ids {
        let at =
            |name: &str| batch.iter().position(|note| *note == format!("{name}:{id}:running")).expect("it is there");
        assert!(at("tool_result") < at("tool_execution_end"), "{batch:?}");
    }
    let results = ["message_start:toolResult", "message_end:toolResult"];
    let mut after: Vec<&str> = [results, results].concat();
    after.extend(["turn_end:0 completed 2", "turn_start:1"]);
    after.extend(request);
    after.extend(["turn_end:1 completed 0", "agent_end"]);
    let mut after: Vec<String> = after.into_iter().map(|name| format!("{name}:running")).collect();
    after.extend(["agent_before_settle".to_owned(), "agent_settled".to_owned()]);
    assert_eq!(rest[expected.len() + 4..], after[..]);
    assert_told_first(&frames);
    assert_eq!(failures(&frames), []);
    scene.finish();
}

/// Checks that every event reaches extensions before the host.
#[track_caller]
fn assert_told_first(frames: &[Value]) {
    let told = |at: usize, name: &str| {
        frames[..at].iter().filter(|frame| frame["message"].as_str().is_some_and(|text| text.starts_with(name))).count()
    };
    for name in [
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "tool_execution_start",
        "tool_execution_end",
        "turn_end",
        "agent_end",
        "agent_settled",
    ] {
        let mut n_seen = 0;
        for (at, frame) in frames.iter().enumerate().filter(|(_, frame)| frame["type"] == name) {
            n_seen += 1;
            assert!(told(at, name) >= n_seen, "{name} at {at}: {frame} in {:#?}", kinds(frames));
        }
        assert!(n_seen > 0, "{name}");
    }
}

#[test]
fn a_message_is_stored_shown_and_continued_as_extensions_leave_it() {
    let body = r#"
        pi.on("message_end", (event) => {
            if (event.message.role === "user") return { message: { ...event.message, content: "a better question" } };
            if (event.message.role === "toolResult") return { message: { ...event.message, content: [{ type: "text", text: "nothing here" }] } };
            const calls = event.message.content.filter((block) => block.type === "toolCall");
            if (calls.length === 0) return { message: { ...event.message, role: "user" } };
            return { message: { ...event.message, content: calls.map((call) => ({ ...call, arguments: { path: "replaced" } })) } };
        });"#;
    let turns = [Turn::call("ls", json!({"path": "original"})), Turn::text("done")];
    let mut scene = scene_with(body, Script::of(turns), |builder| builder.args(["--tools", "ls"]));
    let frames = scene.run("a question");
    let ends = of_type(&frames, "message_end");
    assert_eq!(ends[0]["message"]["content"], "a better question");
    assert_eq!(ends[1]["message"]["content"][0]["arguments"], json!({"path": "replaced"}));
    assert_eq!(texts(&ends[2]["message"]["content"]), "nothing here");
    // The replaced call is the one that ran.
    assert_like(of_type(&frames, "tool_execution_start")[0], &json!({"args": {"path": "replaced"}}));
    let request = scene.server.requests()[1].body.clone();
    assert!(request.to_string().contains("nothing here"), "{request}");
    assert!(request.to_string().contains("a better question"), "{request}");
    // An answer must keep its role.
    assert_eq!(texts(&ends[3]["message"]["content"]), "done");
    let errors: Vec<_> = failures(&frames).into_iter().map(|(_, event, error)| (event, error)).collect();
    assert_eq!(errors, [("message_end", "message_end handlers must return a message with the same role")]);
    let messages = scene.messages();
    assert_eq!(messages[0]["content"], "a better question");
    let file = std::fs::read_to_string(scene.state()["sessionFile"].as_str().expect("a file")).expect("it can be read");
    assert!(file.contains("a better question") && !file.contains("a question\""), "{file}");
    scene.finish();
}

#[test]
fn updates_delay_no_run_and_only_the_newest_is_kept() {
    let body = r#"
        let n = 0;
        pi.on("message_update", (event, ctx) => {
            note(ctx, `${event.assistantMessageEvent.type} ${event.message.content[0].text}`);
            return n++ === 0 ? ctx.ui.confirm("go on?", "") : undefined;
        });"#;
    let mut scene = scene(body, [Turn::text("many words in a row").chunk(1)]);
    let frames = scene.run("go");
    let n_updates = of_type(&frames, "message_update").len();
    assert!(n_updates > 15);
    // The run does not wait for the handler. When it is free again it is told what was on its way to it, and the newest.
    assert!(notes(&frames).len() <= 1, "{:?}", notes(&frames));
    let asks = |frame: &Value| frame["method"] == "confirm";
    let asked = frames.iter().find(|frame| asks(frame)).cloned().unwrap_or_else(|| scene.wait(asks));
    scene.send(json!({"type": "extension_ui_response", "id": asked["id"], "confirmed": true}));
    let whole = "text_end many words in a row";
    if !notes(&scene.frames()).contains(&whole) {
        scene.wait(|frame| frame["message"] == whole);
    }
    assert!(notes(&scene.frames()).len() <= 3, "{:?}", notes(&scene.frames()));
    scene.finish();
}

#[test]
fn an_abort_does_not_wait_for_a_handler() {
    let check = |event: &str| {
        let body = format!("pi.on('{event}', (_, ctx) => {{ note(ctx, 'stuck'); return new Promise(() => {{}}); }});");
        let mut scene = scene(&body, [Turn::call("ls", json!({}))]);
        scene.send(json!({"type": "prompt", "message": "go"}));
        scene.wait(|frame| frame["message"] == "stuck");
        scene.command(json!({"type": "abort"}));
        assert_like(&scene.wait_type("agent_settled"), &json!({"aborted": true}));
        assert_eq!(scene.state()["isStreaming"], false);
        scene.finish();
    };
    for event in [
        "before_agent_start",
        "turn_start",
        "context",
        "before_provider_request",
        "message_end",
        "turn_end",
        "agent_end",
    ] {
        check(event);
    }
}

#[test]
fn messages_sent_while_a_run_settles_come_after_it() {
    let body = r#"
        let n = 0;
        pi.on("agent_settled", async (_, ctx) => {
            if (n++ > 0) return;
            note(ctx, "settled");
            await new Promise((resolve) => setTimeout(resolve, 50));
        });"#;
    let mut scene = scene(body, [Turn::text("one"), Turn::text("two")]);
    scene.prompt("first");
    scene.wait(|frame| frame["message"] == "settled");
    // The host is quicker than the extension.
    scene.prompt("second");
    scene.wait_type("agent_settled");
    let frames = scene.finish();
    let order: Vec<&str> = frames
        .iter()
        .filter_map(|frame| frame["type"].as_str())
        .filter(|kind| ["agent_start", "agent_settled"].contains(kind))
        .collect();
    assert_eq!(order, ["agent_start", "agent_settled", "agent_start", "agent_settled"]);
}
