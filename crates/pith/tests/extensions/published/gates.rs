//! Examples that may refuse what the model, or the host, wants.

use serde_json::{Value, json};

use super::{Exercise, bash, calling, exercise};
use crate::support::texts;

pub const ALL: &[Exercise] = &[
    exercise("permission-gate", "asks before dangerous commands", |lab| {
        let turns = [bash("echo harmless"), bash("rm -rf ./gone; echo removed"), bash("rm -rf ./gone; echo removed")];
        let mut stage = lab.start("permission-gate", turns.into_iter().flatten());
        let start = stage.run("first");
        assert!(texts(&stage.tool_end(start)["result"]["content"]).contains("harmless"));
        for (answer, expected) in [("No", "Blocked by user"), ("Yes", "removed")] {
            let start = stage.now();
            stage.prompt("dangerous");
            stage.dialog(start, "⚠️ Dangerous command:", json!({"value": answer}));
            let end = stage.tool_end(start);
            assert!(texts(&end["result"]["content"]).contains(expected), "{end}");
            stage.watch(start, "the end", |frame| frame["type"] == "agent_settled");
        }
        stage.finish("permission-gate");
    }),
    exercise("protected-paths", "refuses to write .env", |lab| {
        let turns = [
            calling("write", json!({"path": ".env", "content": "x"})),
            calling("write", json!({"path": "ok.txt", "content": "x"})),
        ];
        let mut stage = lab.start("protected-paths", turns.into_iter().flatten());
        let start = stage.run("write");
        stage.notified(start, "Blocked write to protected path: .env");
        let end = stage.tool_end(start);
        assert!(texts(&end["result"]["content"]).contains("is protected"), "{end}");
        stage.run("write another");
        assert_eq!((stage.home.read_file(".env"), stage.home.read_file("ok.txt").as_deref()), (None, Some("x")));
        stage.finish("protected-paths");
    }),
    exercise("rpc-demo", "title, widget, status and all four dialogs", |lab| {
        let mut stage = lab.start("rpc-demo", bash("sudo ls"));
        for method in ["setTitle", "setWidget", "setStatus"] {
            stage.asked(0, method);
        }
        let start = stage.now();
        stage.host.send(json!({"type": "prompt", "message": "/rpc-input"}));
        stage.dialog(start, "Enter a value", json!({"value": "typed"}));
        stage.notified(start, "You entered: typed");
        stage.host.send(json!({"type": "prompt", "message": "/rpc-editor"}));
        stage.dialog(start, "Edit some text", json!({"value": "a\nb"}));
        stage.notified(start, "Editor submitted (2 lines)");
        stage.prompt("/rpc-prefill");
        stage.asked(start, "set_editor_text");
        stage.prompt("dangerous");
        stage.dialog(start, "Dangerous command: sudo ls", json!({"value": "Block"}));
        stage.notified(start, "Command blocked by user");
        stage.watch(start, "the end", |frame| frame["type"] == "agent_settled");
        stage.watch(start, "the status", |frame| frame["statusText"] == "Turn 1 done");
        stage.host.send(json!({"id": "new", "type": "new_session"}));
        stage.dialog(start, "Clear session?", json!({"confirmed": false}));
        let answer = stage.watch(start, "the answer", |frame| frame["id"] == "new");
        assert_eq!(answer["data"]["cancelled"], true, "{answer}");
        stage.finish("rpc-demo");
    }),
    exercise("confirm-destructive", "asks before the session is left or forked", |lab| {
        let mut stage = lab.start("confirm-destructive", [super::any()]);
        stage.run("hello");
        for (confirmed, cancelled) in [(false, true), (true, false)] {
            let start = stage.now();
            stage.host.send(json!({"id": format!("new-{confirmed}"), "type": "new_session"}));
            stage.dialog(start, "Clear session?", json!({"confirmed": confirmed}));
            let answer = stage.watch(start, "the answer", |frame| frame["id"] == json!(format!("new-{confirmed}")));
            assert_eq!(answer["data"]["cancelled"], cancelled, "{answer}");
        }
        let entry = fork_point(&mut stage);
        let start = stage.now();
        stage.host.send(json!({"id": "fork", "type": "fork", "entryId": entry}));
        stage.dialog(start, "Fork from entry", json!({"value": "No, stay in current session"}));
        stage.notified(start, "Fork cancelled");
        let answer = stage.watch(start, "the answer", |frame| frame["id"] == "fork");
        assert_eq!(answer["data"]["cancelled"], true, "{answer}");
        stage.finish("confirm-destructive");
    }),
    exercise("plan-mode", "switches write tools off and blocks commands", |lab| {
        let mut stage = lab.start("plan-mode", bash("touch changed"));
        let start = stage.now();
        stage.prompt("/plan");
        stage.watch(start, "the notification", |frame| {
            frame["method"] == "notify"
                && frame["message"].as_str().is_some_and(|text| text.starts_with("Plan mode enabled"))
        });
        stage.watch(start, "the status", |frame| frame["statusKey"] == "plan-mode" && frame["statusText"].is_string());
        stage.host.send(json!({"type": "prompt", "message": "plan something"}));
        let end = stage.tool_end(start);
        assert!(texts(&end["result"]["content"]).contains("Plan mode: command blocked"), "{end}");
        let offered: Vec<Value> = stage.server.wait_request(0).body["tools"].as_array().cloned().unwrap_or_default();
        let names: Vec<&str> = offered.iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert!(names.contains(&"read") && names.contains(&"grep") && !names.contains(&"write"), "{names:?}");
        assert!(stage.sent(0).contains("[PLAN MODE ACTIVE]"));
        // At the end it asks what to do with the plan, if there was one.
        stage.watch(start, "the end", |frame| frame["type"] == "agent_settled" || frame["method"] == "select");
        stage.finish("plan-mode");
    }),
];

/// The last user message that can be forked.
fn fork_point(stage: &mut crate::stage::Stage) -> Value {
    stage.server.push(super::any());
    stage.run("something to fork from");
    let messages = stage.ask(json!({"type": "get_fork_messages"}));
    messages["data"]["messages"][0]["entryId"].clone()
}
