//! Acknowledged inputs survive when pith is killed, and are delivered exactly once.

use pith_testkit::{ModelServer, Script, TempHome, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, sent_texts};

/// The session of a killed pith, opened by another one without extensions.
fn resumed(scene: &mut Scene) -> pith_testkit::Host {
    let file = scene.state()["sessionFile"].as_str().expect("a file").to_owned();
    scene.host.kill();
    scene.again(&["--session", &file, "-ne"])
}

fn n_pending(host: &mut pith_testkit::Host) -> Value {
    host.data(json!({"type": "get_state"}))["pendingMessageCount"].clone()
}

#[test]
fn a_queued_message_goes_to_the_model_with_the_next_prompt() {
    let turns = [Turn::text("one two").chunk(4).hold_after(1), Turn::text("two"), Turn::text("three")];
    let mut scene = Scene::new(turns);
    scene.prompt("first");
    scene.wait_update("text_delta");
    scene.command(json!({"type": "steer", "message": "to the left"}));
    scene.command(json!({"type": "follow_up", "message": "and then home"}));
    let mut host = resumed(&mut scene);
    let queue = host.wait(|frame| frame["type"] == "queue_update" && frame["followUp"] == json!(["and then home"]));
    assert_eq!(queue["steering"], json!(["to the left"]));
    assert_eq!(n_pending(&mut host), 2);
    host.data(json!({"type": "prompt", "message": "go on"}));
    host.wait_type("agent_settled");
    let requests = scene.server.requests();
    assert!(sent_texts(&requests[1].body).contains("go on\nto the left"), "{}", sent_texts(&requests[1].body));
    assert!(sent_texts(&requests[2].body).contains("and then home"));
    assert_eq!(n_pending(&mut host), 0);
    host.finish();
    let mut again = scene.again(&["--continue"]);
    assert_eq!(n_pending(&mut again), 0, "what was delivered is not delivered again");
}

#[test]
fn a_prompt_that_extensions_were_deciding_about_is_not_lost() {
    let server = ModelServer::start(Script::of([Turn::text("one"), Turn::text("two")]));
    let home = TempHome::for_server(&server);
    let source = "export default (pi) => pi.on('before_agent_start', () => new Promise(() => {}));";
    home.write_agent_file("extensions/slow.ts", source);
    let mut scene = Scene::in_home(server, home, |builder| builder);
    scene.prompt("remember me");
    let mut host = resumed(&mut scene);
    assert_eq!(n_pending(&mut host), 1);
    host.data(json!({"type": "prompt", "message": "anything left?"}));
    host.wait_type("agent_settled");
    assert!(sent_texts(&scene.server.requests()[1].body).contains("remember me"));
    host.finish();
}

#[test]
fn cleared_messages_do_not_come_back() {
    let mut scene = Scene::new([Turn::text("one two").chunk(4).hold_after(1)]);
    scene.prompt("first");
    scene.wait_update("text_delta");
    scene.command(json!({"type": "steer", "message": "to the left"}));
    scene.command(json!({"type": "clear_queue"}));
    let mut host = resumed(&mut scene);
    assert_eq!(n_pending(&mut host), 0);
    let messages = host.data(json!({"type": "get_messages"}));
    assert_eq!(messages["messages"].as_array().expect("a list").len(), 1, "the prompt itself is an entry: {messages}");
    host.finish();
}
