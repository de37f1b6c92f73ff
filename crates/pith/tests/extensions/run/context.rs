//! What the model gets to read and how it is called, changed by extensions.

use pith_testkit::{Script, Turn};
use serde_json::{Value, json};

use super::{failures, notes, scene, scene_with};
use crate::support::{Scene, assert_like, of_type, sent_texts, texts};

/// The body of a request to the model server.
fn body(scene: &Scene, index: usize) -> Value {
    scene.server.requests()[index].body.clone()
}

fn header(scene: &Scene, name: &str) -> Option<String> {
    let request = &scene.server.requests()[0];
    request.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
}

#[test]
fn the_conversation_can_be_edited_for_one_request() {
    let body_of_extension = r#"
        pi.on("context", (event) => { event.messages[0].content = "edited in place"; });
        pi.on("context", (event) => ({ messages: [...event.messages, { role: "user", content: "and added", timestamp: 1 }] }));
        pi.on("context", () => { throw new Error("no idea"); });"#;
    let mut scene = scene(body_of_extension, [Turn::text("done")]);
    let frames = scene.run("original");
    let sent = sent_texts(&body(&scene, 0));
    assert!(sent.contains("edited in place") && sent.contains("and added") && !sent.contains("original"), "{sent}");
    // The history keeps the original.
    assert_eq!(texts(&scene.messages()[0]["content"]), "original");
    assert_eq!(scene.messages().len(), 2);
    let errors: Vec<_> = failures(&frames).into_iter().map(|(_, event, error)| (event, error)).collect();
    assert_eq!(errors, [("context", "no idea")]);
    scene.finish();
}

#[test]
fn the_whole_request_can_be_edited_with_its_system_prompt() {
    let body_of_extension = r#"
        pi.on("context", (event, ctx) => note(ctx, event.messages.map((message) => message.role)));
        pi.on("context_with_system", (event, ctx) => {
            const [system, ...rest] = event.messages;
            note(ctx, [system.role, typeof system.content, system.toolsAdded.length, rest.length]);
            return { messages: [{ ...system, content: "my prompt", toolsAdded: system.toolsAdded.slice(0, 1) }, ...rest] };
        });"#;
    let mut scene = scene(body_of_extension, [Turn::text("done")]);
    let frames = scene.run("hello");
    assert_eq!(notes(&frames), [r#"["user"]"#, r#"["system","string",4,1]"#]);
    assert_eq!(texts(&body(&scene, 0)["system"]), "my prompt");
    assert_eq!(body(&scene, 0)["tools"].as_array().map(Vec::len), Some(1));
    scene.finish();
}

#[test]
fn a_request_without_its_system_message_is_reported_and_sent() {
    let body_of_extension = r#"pi.on("context_with_system", (event) => ({ messages: event.messages.slice(1) }));"#;
    let mut scene = scene(body_of_extension, [Turn::text("done")]);
    let frames = scene.run("hello");
    assert!(failures(&frames)[0].2.starts_with("Handler removed the leading system message"));
    assert_eq!(texts(&body(&scene, 0)["system"]), "");
    assert_eq!(sent_texts(&body(&scene, 0)), "hello");
    scene.finish();
}

#[test]
fn invalid_messages_are_not_sent() {
    let mut scene = scene(r#"pi.on("context", () => ({ messages: [17] }));"#, [Turn::text("done")]);
    let frames = scene.run("hello");
    assert_eq!(failures(&frames)[0].1, "context");
    assert_eq!(sent_texts(&body(&scene, 0)), "hello");
    scene.finish();
}

#[test]
fn before_a_run_extensions_add_messages_and_replace_the_prompt() {
    let body_of_extension = r#"
        let n = 0;
        pi.on("before_agent_start", (event, ctx) => {
            note(ctx, `${event.prompt} ${event.images?.length} ${event.systemPromptOptions.selectedTools} ${event.systemPrompt.length > 100}`);
            if (n++ > 0) return;
            return { message: { customType: "hint", content: "mind the gap", display: true, details: { a: 1 } }, systemPrompt: "Be brief." };
        });
        pi.on("before_agent_start", (event, ctx) => {
            if (n === 1) return { message: { customType: "empty" }, systemPrompt: event.systemPrompt + " Very brief." };
        });"#;
    let turns = [Turn::call("bash", json!({"command": "true"})), Turn::text("one"), Turn::text("two")];
    let mut scene = scene(body_of_extension, turns);
    let frames = scene.run("first");
    // Once for the prompt, however many requests follow.
    assert_eq!(notes(&frames), ["first undefined read,bash,edit,write true"]);
    let starts = of_type(&frames, "message_start");
    assert_like(
        starts[1],
        &json!({"message": {"role": "custom", "customType": "hint", "content": "mind the gap", "display": true, "details": {"a": 1}}}),
    );
    assert_like(
        starts[2],
        &json!({"message": {"role": "custom", "customType": "empty", "content": [], "display": false}}),
    );
    for request in 0..2 {
        assert_eq!(texts(&body(&scene, request)["system"]), "Be brief. Very brief.");
    }
    assert!(sent_texts(&body(&scene, 0)).contains("mind the gap"));
    // The next prompt starts from the default one again.
    scene.run("second");
    assert!(texts(&body(&scene, 2)["system"]).len() > 100);
    assert_eq!(scene.messages()[1]["role"], "custom");
    scene.finish();
}

#[test]
fn edited_options_give_another_prompt() {
    let body_of_extension = r#"
        pi.on("before_agent_start", (event) => {
            const options = event.systemPromptOptions;
            options.promptGuidelines.push("Answer in rhymes");
            options.sections.weather = "It rains.";
            options.toolSnippets.read = "Look into files";
            options.selectedTools = ["read", "ls"];
            options.contextFiles.push({ path: "/made/up.md", content: "made up" });
            options.appendSystemPrompt += "One more thing.";
        });"#;
    let mut scene = scene(body_of_extension, [Turn::text("done")]);
    scene.run("go");
    let request = body(&scene, 0);
    let prompt = texts(&request["system"]);
    for part in [
        "- Answer in rhymes",
        "<weather>\nIt rains.\n</weather>",
        "- read: Look into files",
        "made up",
        "One more thing.",
    ] {
        assert!(prompt.contains(part), "{part} is not in {prompt}");
    }
    assert!(!prompt.contains("- bash:"), "{prompt}");
    let tools: Vec<&str> =
        request["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(tools, ["read", "ls"]);
    scene.finish();
}

#[test]
fn a_queued_message_does_not_raise_before_agent_start() {
    let body_of_extension = r#"pi.on("before_agent_start", (event, ctx) => note(ctx, event.prompt));"#;
    let mut scene = scene(body_of_extension, [Turn::text("slow").hold_after(1), Turn::text("done")]);
    scene.prompt("first");
    scene.server.wait_held(0);
    scene.command(json!({"type": "follow_up", "message": "second"}));
    scene.server.release(0);
    scene.wait_type("agent_settled");
    let frames = scene.finish();
    assert_eq!(notes(&frames), ["first"]);
}

#[test]
fn headers_and_payload_can_be_changed_and_the_answer_is_announced() {
    let body_of_extension = r#"
        pi.on("before_provider_headers", (event) => {
            event.headers["x-mine"] = "yes";
            event.headers["user-agent"] = null;
        });
        pi.on("before_provider_request", (event) => ({ ...event.payload, max_tokens: 77, metadata: { a: [1, 2] } }));
        pi.on("before_provider_request", (event) => { event.payload.max_tokens += 1; return event.payload; });
        pi.on("after_provider_response", (event, ctx) => note(ctx, [event.status, event.headers["content-type"]]));"#;
    let mut scene = scene(body_of_extension, [Turn::text("done")]);
    let frames = scene.run("go");
    assert_eq!(header(&scene, "x-mine").as_deref(), Some("yes"));
    assert_eq!(header(&scene, "user-agent"), None);
    assert_like(&body(&scene, 0), &json!({"max_tokens": 78, "metadata": {"a": [1, 2]}, "stream": true}));
    let told = notes(&frames);
    assert!(told.len() == 1 && told[0].starts_with("[200,\"text/event-stream"), "{told:?}");
    scene.finish();
}

#[test]
fn a_refused_request_is_announced_too() {
    let body_of_extension = r#"pi.on("after_provider_response", (event, ctx) => note(ctx, String(event.status)));"#;
    let script = Script::of([Turn::status(400)]);
    let mut scene = scene_with(body_of_extension, script, |builder| builder);
    assert_eq!(notes(&scene.run("go")), ["400"]);
    scene.finish();
}
