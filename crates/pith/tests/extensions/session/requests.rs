//! Extensions that request another session, and what they do in it.

use pith_testkit::Turn;
use serde_json::{Value, json};

use super::{file, notes, scene};
use crate::support::{Scene, assert_like, of_type};

#[test]
fn contexts_of_the_previous_session_are_stale() {
    let captures = r#"
        export default (pi) => {
            pi.registerCommand("leave", { handler: async (args, ctx) => {
                const before = ctx;
                await ctx.newSession({ withSession: async (next) => {
                    try { before.cwd } catch (error) { next.ui.notify(error.message) }
                    try { pi.getSessionName() } catch (error) { next.ui.notify(error.message) }
                } });
            } });
        };"#;
    let mut scene = scene([], &[("captures.js", captures)]);
    let before = file(&mut scene);
    scene.slash("/leave");
    assert_ne!(file(&mut scene), before);
    let told = notes(&scene.host.frames());
    assert_eq!(told.len(), 2, "{told:?}");
    for text in told {
        let text = text.as_str().unwrap();
        assert!(text.starts_with("This extension ctx is stale after session replacement or reload."), "{text}");
    }
}

#[test]
fn an_extension_prepares_the_session_it_asks_for() {
    let prepares = r#"export default (pi) => {
        pi.registerCommand("prepare", { handler: async (args, ctx) => {
            const result = await ctx.newSession({
                parentSession: "/some/where.jsonl",
                setup: async (sm) => {
                    const id = sm.appendMessage({ role: "user", content: [{ type: "text", text: "noted" }], timestamp: 1 });
                    sm.appendCustomEntry("mine", { n: 1 });
                    sm.appendCustomMessageEntry("hint", "look here", true);
                    sm.appendLabelChange(id, "start");
                    sm.appendSessionInfo("prepared");
                    try { sm.appendLabelChange("gone", "nowhere"); } catch (error) { console.error("refused: " + error.message); }
                    sm.appendMessage(7);
                },
                withSession: async (next) => next.ui.notify("inside"),
            });
            console.error("cancelled: " + result.cancelled);
        } });
    };"#;
    let mut scene = scene([], &[("prepares.js", prepares)]);
    scene.slash("/prepare");
    scene.wait_stderr(|text| text.contains("refused: Entry gone not found"));
    scene.wait_stderr(|text| text.contains("cancelled: false"));
    assert_eq!(notes(&scene.host.frames()), [json!("inside")]);
    assert_eq!(scene.state()["sessionName"], "prepared");
    let messages = scene.messages();
    assert_like(&messages[0], &json!({"role": "user", "content": [{"text": "noted"}]}));
    assert_like(
        &messages[1],
        &json!({"role": "custom", "customType": "hint", "content": "look here", "display": true}),
    );
    let entries = scene.data(json!({"type": "get_entries"}))["entries"].clone();
    let entries = entries.as_array().unwrap();
    let of = |kind: &str| entries.iter().find(|entry| entry["type"] == kind).cloned().unwrap_or_default();
    assert_like(&of("custom"), &json!({"customType": "mine", "data": {"n": 1}}));
    let first = entries.iter().find(|entry| entry["type"] == "message").unwrap();
    assert_eq!(of("label")["targetId"], first["id"]);
    // Invalid entries are reported and left out.
    let errors = scene.host.frames();
    let errors = of_type(&errors, "extension_error");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_like(errors[0], &json!({"extensionPath": "<runtime>", "event": "new_session"}));
}

#[test]
fn an_extension_continues_in_the_session_it_requested() {
    let hands_off = r#"export default (pi) => {
        pi.registerCommand("handoff", { handler: async (args, ctx) => {
            await ctx.newSession({ withSession: async (next) => { await next.sendUserMessage("go on with " + args) } });
        } });
    };"#;
    let mut scene = scene([Turn::text("one"), Turn::text("two")], &[("handoff.js", hands_off)]);
    scene.run("first");
    scene.slash("/handoff the plan");
    scene.wait(|frame| frame["type"] == "message_end" && frame["message"]["role"] == "assistant");
    scene.wait_type("agent_settled");
    let messages = scene.messages();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_like(&messages[0], &json!({"role": "user", "content": [{"text": "go on with the plan"}]}));
}

#[test]
fn an_extension_forks_and_switches() {
    let forks = r#"export default (pi) => {
        pi.registerCommand("fork", { handler: async (args, ctx) => {
            const [entry, position] = args.split(" ");
            try { await ctx.fork(entry, { position }) } catch (error) { ctx.ui.notify(error.message) }
        } });
        pi.registerCommand("switch", { handler: async (args, ctx) => {
            try { await ctx.switchSession(args) } catch (error) { ctx.ui.notify(error.message) }
        } });
    };"#;
    let mut scene = scene([Turn::text("one"), Turn::text("two")], &[("forks.js", forks)]);
    scene.run("first");
    scene.run("second");
    let origin = file(&mut scene);
    let prompts = scene.data(json!({"type": "get_fork_messages"}));
    let entry = prompts["messages"][1]["entryId"].as_str().unwrap().to_owned();
    let texts = |scene: &mut Scene| scene.messages().len();
    scene.slash(&format!("/fork {entry} before"));
    assert_eq!(texts(&mut scene), 2);
    scene.slash(&format!("/switch {}", origin.as_str().unwrap()));
    assert_eq!((file(&mut scene), texts(&mut scene)), (origin.clone(), 4));
    scene.slash(&format!("/fork {entry} at"));
    assert_eq!(texts(&mut scene), 3);
    assert_ne!(file(&mut scene), origin);
    scene.slash("/fork nothing at");
    scene.slash("/switch gone.jsonl");
    let told = notes(&scene.host.frames());
    assert_eq!(told[0], "Invalid entry ID for forking");
    assert!(told[1].as_str().unwrap().starts_with("Session file not found: "), "{told:?}");
}

#[test]
fn messages_sent_in_session_shutdown_do_not_reach_the_next_session() {
    let sends = r#"export default (pi) => {
        pi.on("session_shutdown", (event) => { if (event.reason === "new") pi.sendUserMessage("too late"); });
    };"#;
    let mut scene = scene([Turn::text("never")], &[("sends.js", sends)]);
    scene.command(json!({"type": "new_session"}));
    assert_eq!(scene.messages(), [] as [Value; 0]);
    let frames = scene.finish();
    assert!(of_type(&frames, "agent_start").is_empty());
}

#[test]
fn a_session_start_handler_can_prompt_the_new_session() {
    let greets = r#"export default (pi) => {
        pi.on("session_start", (event) => { if (event.reason === "new") pi.sendUserMessage("hello there"); });
    };"#;
    let mut scene = scene([Turn::text("hi")], &[("greets.js", greets)]);
    scene.command(json!({"type": "new_session"}));
    scene.wait_type("agent_settled");
    assert_like(&scene.messages()[0], &json!({"role": "user", "content": [{"text": "hello there"}]}));
}
