//! Messages and prompts that extensions add to the conversation.

use pith_testkit::Turn;
use serde_json::{Value, json};

use crate::state::{run_command, told, with_extension};
use crate::support::{Scene, assert_like, assert_order, kinds, of_type, position, sent_texts};

/// Commands that send their argument, as JSON: `/message [message, options]`, `/user [content, options]`.
const SENDERS: &str = r#"
    pi.registerCommand("message", { handler: async (args) => pi.sendMessage(...JSON.parse(args)) });
    pi.registerCommand("user", { handler: async (args) => pi.sendUserMessage(...JSON.parse(args)) });
    pi.registerCommand("abort", { handler: async (_, ctx) => ctx.abort() });
    pi.registerCommand("idle", { handler: async (_, ctx) => {
        await ctx.waitForIdle();
        tell(ctx, { idle: ctx.isIdle() });
    } });
"#;

#[track_caller]
fn send(scene: &mut Scene, command: &str, arguments: &Value) {
    let message = format!("/{command} {arguments}");
    let data = scene.data(json!({"type": "prompt", "message": message}));
    assert_eq!(data, json!({"disposition": "handled"}));
}

fn note(text: &str) -> Value {
    json!({"customType": "note", "content": text, "display": true})
}

/// The error with which `sendMessage` or `sendUserMessage` failed.
#[track_caller]
fn failure(scene: &mut Scene, event: &str) -> String {
    let frame = scene.wait(|frame| frame["type"] == "extension_error" && frame["event"] == event);
    assert_eq!(frame["extensionPath"], "<runtime>", "{frame}");
    frame["error"].as_str().expect("errors are texts").to_owned()
}

#[test]
fn a_message_to_an_idle_session_is_appended_with_its_events() {
    let mut scene = with_extension(SENDERS, [Turn::text("seen")]);
    let message = json!({"customType": "note", "content": "by the way", "display": false, "details": {"n": 1}});
    send(&mut scene, "message", &json!([message]));
    let end = scene.wait_type("message_end");
    assert_like(
        &end["message"],
        &json!({"role": "custom", "customType": "note", "display": false, "details": {"n": 1}}),
    );
    assert_eq!(scene.messages().len(), 1, "nothing was started");
    scene.run("hello");
    assert_eq!(sent_texts(&scene.server.wait_request(0).body), "by the way\nhello");
    let frames = scene.finish();
    assert_order(
        &frames,
        &[json!({"type": "message_start"}), json!({"type": "message_end"}), json!({"type": "agent_start"})],
    );
}

#[test]
fn a_message_can_start_a_turn() {
    let mut scene = with_extension(SENDERS, [Turn::text("done")]);
    send(&mut scene, "message", &json!([note("look at this"), {"triggerTurn": true}]));
    scene.wait_type("agent_settled");
    assert_eq!(sent_texts(&scene.server.wait_request(0).body), "look at this");
    let roles: Vec<Value> = scene.messages().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["custom", "assistant"]);
    scene.finish();
}

#[test]
fn a_message_for_the_next_turn_is_sent_with_the_next_prompt() {
    let mut scene = with_extension(SENDERS, [Turn::text("one"), Turn::text("two")]);
    send(&mut scene, "message", &json!([note("context"), {"deliverAs": "nextTurn", "triggerTurn": true}]));
    assert!(scene.messages().is_empty());
    scene.run("first");
    scene.run("second");
    assert_eq!(sent_texts(&scene.server.wait_request(0).body), "first\ncontext");
    let roles: Vec<Value> = scene.messages().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "custom", "assistant", "user", "assistant"]);
    scene.finish();
}

#[test]
fn messages_to_a_running_model_are_queued_without_a_queue_update() {
    let turns = [Turn::text("long answer").chunk(4).hold_after(1), Turn::text("steered"), Turn::text("followed")];
    let mut scene = with_extension(SENDERS, turns);
    scene.prompt("go");
    scene.server.wait_held(0);
    send(&mut scene, "message", &json!([note("later"), {"deliverAs": "followUp"}]));
    send(&mut scene, "message", &json!([note("sooner")]));
    assert_eq!(scene.state()["queuedMessageCount"], 0);
    scene.server.release(0);
    scene.wait_type("agent_settled");
    assert_eq!(sent_texts(&scene.server.wait_request(1).body), "go\nlong answer\nsooner");
    assert_eq!(sent_texts(&scene.server.wait_request(2).body), "go\nlong answer\nsooner\nsteered\nlater");
    let frames = scene.finish();
    assert!(of_type(&frames, "queue_update").is_empty());
    assert_eq!(of_type(&frames, "agent_settled").len(), 1);
}

#[test]
fn a_message_without_a_turn_never_stands_between_a_call_and_its_result() {
    let turns =
        [Turn::call("bash", json!({"command": "echo started; read line < gate"})), Turn::text("after the tool")];
    let mut scene = with_extension(SENDERS, turns);
    make_gate(&scene);
    scene.prompt("go");
    scene.wait_output("started");
    send(&mut scene, "message", &json!([note("meanwhile"), {"triggerTurn": false}]));
    assert_eq!(scene.messages().last().unwrap()["role"], "assistant", "it waits");
    std::fs::write(scene.home.work().join("gate"), "go\n").unwrap();
    scene.wait_type("agent_settled");
    let roles: Vec<Value> = scene.messages().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "custom", "assistant"]);
    let frames = scene.finish();
    let names = kinds(&frames);
    let at = names.iter().position(|name| name == "message_start:custom").unwrap();
    assert_eq!(&names[at - 1..at + 3], ["turn_end", "message_start:custom", "message_end:custom", "turn_start"]);
}

/// Creates a pipe in the work directory that a tool can wait for.
fn make_gate(scene: &Scene) {
    let made = std::process::Command::new("mkfifo").arg(scene.home.work().join("gate")).status();
    assert!(made.expect("mkfifo is there").success());
}

#[test]
fn a_prompt_of_an_extension_passes_its_input_handlers_and_means_what_it_says() {
    let body = format!(
        "{SENDERS}\npi.on('input', (event, ctx) => tell(ctx, {{ source: event.source, text: event.text, images: event.images?.length ?? 0 }}));"
    );
    let mut scene = with_extension(&body, [Turn::text("one"), Turn::text("two")]);
    scene.home.write_agent_file("prompts/fix.md", "Fix everything\n");
    send(&mut scene, "user", &json!(["/fix"]));
    assert_eq!(told(&mut scene), json!({"source": "extension", "text": "/fix", "images": 0}));
    scene.wait_type("agent_settled");
    assert_eq!(sent_texts(&scene.server.wait_request(0).body), "/fix");
    send(&mut scene, "user", &json!(["/fix", {"expandPromptTemplates": true}]));
    scene.wait_type("agent_settled");
    let body = scene.server.wait_request(1).body;
    assert!(sent_texts(&body).contains("Fix everything"), "{body}");
    scene.finish();
}

#[test]
fn a_prompt_of_several_parts_is_one_text_with_pictures() {
    let mut scene = with_extension(SENDERS, [Turn::text("seen")]);
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let parts = json!([{"type": "text", "text": "a"}, {"type": "image", "data": pixel, "mimeType": "image/png"}, {"type": "text", "text": "b"}]);
    send(&mut scene, "user", &json!([parts]));
    scene.wait_type("agent_settled");
    let content = scene.messages()[0]["content"].clone();
    assert_like(&content[0], &json!({"type": "text", "text": "a\nb"}));
    assert_like(&content[1], &json!({"type": "image"}));
    scene.finish();
}

#[test]
fn with_expansion_a_prompt_may_be_a_command() {
    let body = format!("{SENDERS}\npi.registerCommand('other', {{ handler: async (args, ctx) => tell(ctx, args) }});");
    let mut scene = with_extension(&body, []);
    send(&mut scene, "user", &json!(["/other with words", {"expandPromptTemplates": true}]));
    assert_eq!(told(&mut scene), "with words");
    scene.finish();
}

#[test]
fn a_prompt_to_a_running_model_needs_a_way_to_be_delivered() {
    let turns = [Turn::text("long answer").chunk(4).hold_after(1), Turn::text("steered"), Turn::text("followed")];
    let mut scene = with_extension(SENDERS, turns);
    scene.prompt("go");
    scene.server.wait_held(0);
    send(&mut scene, "user", &json!(["lost"]));
    assert_eq!(
        failure(&mut scene, "send_user_message"),
        "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."
    );
    send(&mut scene, "user", &json!(["follow", {"deliverAs": "followUp"}]));
    send(&mut scene, "user", &json!(["steer", {"deliverAs": "steer"}]));
    let update = scene.wait(|frame| frame["type"] == "queue_update" && frame["steering"] == json!(["steer"]));
    assert_eq!(update["followUp"], json!(["follow"]));
    scene.server.release(0);
    scene.wait_type("agent_settled");
    assert_eq!(sent_texts(&scene.server.wait_request(2).body), "go\nlong answer\nsteer\nsteered\nfollow");
    scene.finish();
}

#[test]
fn prompts_that_cannot_be_started_are_reported() {
    let home = pith_testkit::TempHome::new();
    home.write_agent_file("extensions/own.ts", crate::state::extension(SENDERS));
    let mut host = crate::support::builder().args(["--mode", "rpc"]).home(&home).spawn();
    for (command, event) in [("message", "send_message"), ("user", "send_user_message")] {
        let arguments = match command {
            "message" => json!([note("x"), {"triggerTurn": true}]),
            _ => json!(["x"]),
        };
        host.send(json!({"type": "prompt", "message": format!("/{command} {arguments}")}));
        let frame = host.wait(|frame| frame["type"] == "extension_error" && frame["event"] == event);
        assert!(frame["error"].as_str().unwrap().starts_with("No model selected."), "{frame}");
    }
    host.finish();
}

#[test]
fn messages_sent_in_agent_settled_start_after_it() {
    let body = r#"
        const left = [
            () => pi.sendUserMessage("and now"),
            () => pi.sendMessage({ customType: "note", content: "and then", display: true }, { triggerTurn: true }),
        ];
        pi.on("agent_settled", async (_, ctx) => {
            const next = left.shift();
            if (!next) return tell(ctx, "done");
            next();
            await new Promise((resolve) => setTimeout(resolve, 20));
        });
    "#;
    let mut scene = with_extension(body, [Turn::text("one"), Turn::text("two"), Turn::text("three")]);
    scene.prompt("go");
    assert_eq!(told(&mut scene), "done");
    assert_eq!(sent_texts(&scene.server.wait_request(2).body), "go\none\nand now\ntwo\nand then");
    let frames = scene.finish();
    let edges: Vec<&Value> = frames
        .iter()
        .map(|frame| &frame["type"])
        .filter(|kind| *kind == "agent_start" || *kind == "agent_settled")
        .collect();
    assert_eq!(edges, ["agent_start", "agent_settled"].repeat(3));
}

#[test]
fn a_prompt_sent_at_the_end_of_a_run_continues_it() {
    let body = r#"
        let n = 0;
        pi.on("agent_end", () => { if (n++ === 0) pi.sendUserMessage("and now", { deliverAs: "followUp" }); });
    "#;
    let mut scene = with_extension(body, [Turn::text("one"), Turn::text("two")]);
    scene.prompt("go");
    assert_eq!(sent_texts(&scene.server.wait_request(1).body), "go\none\nand now");
    scene.wait_type("agent_settled");
    let frames = scene.finish();
    assert_eq!(of_type(&frames, "agent_settled").len(), 1);
}

#[test]
fn waiting_for_idle_ends_with_the_run() {
    let mut scene = with_extension(SENDERS, [Turn::text("long answer").chunk(4).hold_after(1)]);
    assert_eq!(run_command(&mut scene, "/idle"), json!({"idle": true}));
    scene.prompt("go");
    scene.server.wait_held(0);
    scene.send(json!({"id": "wait", "type": "prompt", "message": "/idle"}));
    scene.state();
    scene.server.release(0);
    assert_like(&scene.response("wait"), &json!({"success": true}));
    let frames = scene.finish();
    let settled = position(&frames, &json!({"type": "agent_settled"}));
    assert!(settled < position(&frames, &json!({"type": "response", "id": "wait"})));
}

#[test]
fn an_extension_can_abort_the_run() {
    let mut scene = with_extension(SENDERS, [Turn::text("long answer").chunk(4).hold_after(1)]);
    scene.prompt("go");
    scene.server.wait_held(0);
    send(&mut scene, "abort", &Value::Null);
    let settled = scene.wait_type("agent_settled");
    assert_eq!(settled["aborted"], true);
    assert_eq!(scene.messages()[1]["stopReason"], "aborted");
    scene.finish();
}
