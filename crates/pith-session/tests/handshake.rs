//! `hello`: optional, at any time, and no difference for hosts that never send it.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests wait and share as the session may not")]

mod support;

use serde_json::{Value, json};
use support::{Harness, Turn};

fn has(list: &Value, name: &str) -> bool {
    list.as_array().expect("a list").iter().any(|item| item == name)
}

#[tokio::test(start_paused = true)]
async fn hello_tells_what_can_be_sent_and_what_can_come() {
    let mut host = Harness::new([]);
    let hello = json!({"type": "hello", "client": {"name": "editor", "version": "99.0-beta"}});
    let greeting = host.data(hello).await;
    assert_eq!(greeting["protocolVersion"], 1);
    assert_eq!(greeting["dialect"], "pi");
    assert_eq!(greeting["server"]["name"], "pith");
    assert_eq!(greeting["accepted"], json!([]));
    let capabilities = &greeting["capabilities"];
    assert!(has(&capabilities["commands"], "navigate_tree") && has(&capabilities["commands"], "hello"));
    assert!(has(&capabilities["events"], "compaction_end") && !has(&capabilities["events"], "auto_compaction_end"));
    assert!(has(&capabilities["uiMethods"], "confirm"));
    assert_eq!(capabilities["limits"]["maxDepth"], 512);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_hello_of_another_time_is_understood_as_far_as_possible() {
    let mut host = Harness::new([Turn::gated("one"), Turn::text("two")]);
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait_calls(1).await;
    let late = json!({"type": "hello", "client": {"name": 5}, "accept": {"telepathy": true, "streamUpdates": "waves"}});
    assert_eq!(host.data(late).await["accepted"], json!([]));
    let again = json!({"type": "hello", "accept": {"settledWhenHandled": true, "streamUpdates": "full"}});
    assert_eq!(host.data(again).await["accepted"], json!(["settledWhenHandled", "streamUpdates"]));
    let refused = host.ask(json!({"type": "hello", "accept": 5})).await;
    assert_eq!(refused["error"], "Invalid field \"accept\" for command \"hello\": expected object, got number");
    assert_eq!(refused["code"], "invalid_field");
    host.model.release();
    host.wait_type("agent_settled").await;
    host.run("again").await;
    let mut updates = host.frames().into_iter().filter(|frame| frame["type"] == "message_update");
    assert!(updates.next_back().expect("updates").get("message").is_some(), "the full form from the next answer on");
    host.finish().await;
}

const COMMAND: &str = "export default (pi) => {
    pi.registerCommand('noop', { description: 'does nothing', handler: async () => {} });
    pi.on('input', async (event) => event.text === 'mine' ? { action: 'handled' } : undefined);
};";

#[tokio::test(start_paused = true)]
async fn a_handled_prompt_is_settled_for_hosts_that_ask_for_it() {
    let mut host = Harness::builder([Turn::gated("one")]).extension("noop.ts", COMMAND).start().await;
    for text in ["/noop", "mine"] {
        let placed = host.data(json!({"type": "prompt", "message": text})).await;
        assert_eq!(placed["disposition"], "handled");
    }
    assert_eq!(host.count(json!({"type": "agent_settled"})), 0, "nobody has asked for it");

    host.data(json!({"type": "hello", "accept": {"settledWhenHandled": true}})).await;
    for (n, text) in ["/noop", "mine"].into_iter().enumerate() {
        let placed = host.data(json!({"type": "prompt", "message": text})).await;
        assert_eq!(placed["disposition"], "handled");
        assert_eq!(host.wait_type("agent_settled").await["aborted"], false);
        assert_eq!(host.count(json!({"type": "agent_settled"})), n + 1);
    }

    // A run that is under way tells its own end, once.
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait_calls(1).await;
    assert_eq!(host.data(json!({"type": "prompt", "message": "/noop"})).await["disposition"], "handled");
    assert_eq!(host.count(json!({"type": "agent_settled"})), 2);
    host.model.release();
    host.wait_type("agent_settled").await;
    assert_eq!(host.count(json!({"type": "agent_settled"})), 3);
    host.finish().await;
}
