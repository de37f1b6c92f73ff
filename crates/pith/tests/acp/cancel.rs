//! A cancel is answered whatever extensions and the session do.

use pith_testkit::{Turn, shell_server};
use serde_json::{Value, json};

use crate::support::Editor;

fn editor(extension: &str, capabilities: Value, turns: impl IntoIterator<Item = Turn>) -> Editor {
    let editor = Editor::with(turns, capabilities, |builder| builder);
    editor.home.write_agent_file("extensions/slow.ts", extension);
    editor
}

fn forms() -> Value {
    json!({"elicitation": {"form": {}}, "session": {"notices": {}}})
}

#[test]
fn an_extension_that_asks_before_a_refused_prompt_is_taken_back_can_be_cancelled() {
    let asks = "export default (pi) => pi.on('session_before_tree', async (event, ctx) =>
      (await ctx.ui.confirm('Move?', '')) ? undefined : { cancel: true });";
    for is_cancelled in [true, false] {
        let mut editor = editor(asks, forms(), [Turn::text("no").stop("refusal"), Turn::text("fine")]);
        let session = editor.new_session();
        let prompt = editor.send_prompt(&session, "forbidden words");
        let asked = editor.asked("elicitation/create");
        let second = editor.send_prompt(&session, "hello");
        if is_cancelled {
            editor.notify("session/cancel", json!({"sessionId": session}));
            editor.withdrawn(&asked);
            assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
            assert_eq!(editor.result(second)["stopReason"], "cancelled");
        } else {
            editor.reply(&asked, json!({"action": "accept", "content": {"answer": true}}));
            assert_eq!(editor.result(prompt)["stopReason"], "refusal");
            assert_eq!(editor.result(second)["stopReason"], "end_turn");
            let request = editor.server.requests().last().expect("a request").body.to_string();
            assert!(!request.contains("forbidden words"), "{request}");
        }
        editor.finish();
    }
}

#[test]
fn a_command_that_does_not_end_can_be_cancelled() {
    let hangs = "export default (pi) => pi.registerCommand('wait', { handler: (args, ctx) => {
      ctx.ui.notify('waiting');
      return new Promise(() => {});
    } });";
    let mut editor = editor(hangs, forms(), []);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "/wait");
    editor.wait_update(|update| update["title"] == "waiting");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
    // Others wait for it, and can be cancelled as well.
    let second = editor.send_prompt(&session, "hello");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.result(second)["stopReason"], "cancelled");
    editor.finish();
}

#[test]
fn prompts_follow_a_cancelled_command_that_ends_late() {
    let late = "let end;
    export default (pi) => {
      pi.registerCommand('wait', { handler: (args, ctx) => {
        ctx.ui.notify('waiting');
        return new Promise((done) => { end = done; });
      } });
      pi.on('session_info_changed', () => end?.());
    };";
    let mut editor = editor(late, forms(), [Turn::text("after all")]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "/wait");
    editor.wait_update(|update| update["title"] == "waiting");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
    let second = editor.send_prompt(&session, "hello");
    editor.ask("_pith/command", json!({"sessionId": session, "command": {"type": "set_session_name", "name": "n"}}));
    assert_eq!(editor.result(second)["stopReason"], "end_turn");
    editor.finish();
}

#[test]
fn a_session_whose_extensions_still_start_can_be_cancelled() {
    let starts = "export default (pi) => pi.on('session_start', (event, ctx) => {
      ctx.ui.notify('starting');
      return new Promise(() => {});
    });";
    let mut editor = editor(starts, forms(), []);
    let (cwd, script) = (editor.home.work(), shell_server(&editor.home.work()));
    let server = json!({"name": "shell", "command": "sh", "args": [script], "env": []});
    let opened = editor.ask("session/new", json!({"cwd": cwd, "mcpServers": [server]}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    editor.wait_update(|update| update["title"] == "starting");
    // A server that is ready brings commands, which the session lists only when it has started.
    let mcp = editor.ask("_pith/mcp", json!({"sessionId": session, "connect": true}));
    assert!(mcp.to_string().contains("ready"), "{mcp}");
    let prompt = editor.send_prompt(&session, "hello");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
    assert!(editor.server.requests().is_empty());
    editor.finish();
}

#[test]
fn a_dialog_is_closed_before_the_cancelled_prompt_is_answered() {
    let asks =
        "export default (pi) => pi.registerCommand('ask', { handler: (args, ctx) => ctx.ui.confirm('Sure?', '') });";
    let mut editor = editor(asks, json!({"session": {"notices": {}}}), []);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "/ask");
    let asked = editor.asked("session/request_permission");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
    let frames = editor.finish();
    let at = |is_it: &dyn Fn(&Value) -> bool| frames.iter().position(is_it).expect("the frame");
    let answer = at(&|frame| frame["id"] == prompt && frame.get("result").is_some());
    let withdrawn = at(&|frame| frame["params"]["requestId"] == asked["id"]);
    let closed = at(&|frame| frame["params"]["update"]["status"] == "completed");
    assert!(withdrawn < answer && closed < answer, "{frames:#?}");
}
