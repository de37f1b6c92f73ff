//! Examples with commands and displays.

use pith_testkit::Turn;
use serde_json::{Value, json};

use super::{Exercise, any, exercise};

pub const ALL: &[Exercise] = &[
    exercise("timed-confirm", "dialogs with a time limit", |lab| {
        let mut stage = lab.start("timed-confirm", []);
        stage.host.send(json!({"type": "prompt", "message": "/timed"}));
        let request = stage.dialog(0, "Timed Confirmation", json!({"confirmed": true}));
        assert_eq!(request["timeout"], 5000);
        stage.notified(0, "Confirmed by user!");
        stage.host.send(json!({"type": "prompt", "message": "/timed-select"}));
        stage.dialog(0, "Pick an option", json!({"value": "Option B"}));
        stage.notified(0, "Selected: Option B");
        stage.finish("timed-confirm");
    }),
    exercise("session-name", "names the session", |lab| {
        let mut stage = lab.start("session-name", []);
        stage.prompt("/session-name work");
        stage.notified(0, "Session named: work");
        assert_eq!(stage.poll_state()["sessionName"], "work");
        stage.prompt("/session-name");
        stage.notified(0, "Session: work");
        stage.finish("session-name");
    }),
    exercise("bookmark", "labels the last answer and takes the label away", |lab| {
        let mut stage = lab.start("bookmark", [any()]);
        stage.run("hello");
        stage.prompt("/bookmark here");
        stage.notified(0, "Bookmarked as: here");
        stage.prompt("/unbookmark");
        stage.notified(0, "Removed bookmark: here");
        let sessions = stage.home.sessions();
        let labels: Vec<&Value> =
            sessions[0].entries.iter().filter(|entry| entry["type"] == "label").map(|entry| &entry["label"]).collect();
        assert_eq!(labels, [&json!("here"), &Value::Null]);
        stage.finish("bookmark");
    }),
    exercise("commands", "lists what can be called", |lab| {
        let mut stage = lab.start("commands", []);
        stage.host.send(json!({"type": "prompt", "message": "/commands"}));
        let request =
            stage.dialog(0, "Available Commands", json!({"value": "/commands - List available slash commands"}));
        assert!(request["options"].to_string().contains("--- Extensions ---"), "{request}");
        stage.dialog(0, "commands", json!({"confirmed": true}));
        stage.watch(0, "the path", |frame| {
            frame["method"] == "notify" && frame["message"].as_str().is_some_and(|text| text.ends_with("commands.ts"))
        });
        stage.finish("commands");
    }),
    exercise("send-user-message", "a command starts a run, steers and follows up", |lab| {
        let mut stage =
            lab.start("send-user-message", [Turn::text("a longer answer").chunk(1).hold_after(2), any(), any()]);
        stage.prompt("/ask what time is it");
        stage.server.wait_held(0);
        stage.prompt("/followup and then");
        stage.prompt("/steer be brief");
        stage.server.release(0);
        stage.watch(0, "the end", |frame| frame["type"] == "agent_settled");
        assert!(stage.sent(0).contains("what time is it"));
        assert!(stage.sent(1).contains("be brief") && stage.sent(2).contains("and then"));
        stage.finish("send-user-message");
    }),
    exercise("event-bus", "events travel between extensions", |lab| {
        let mut stage = lab.start("event-bus", []);
        stage.notified(0, "Event from event-bus-example: Session started");
        stage.prompt("/emit hello");
        stage.notified(0, "Event from /emit command: hello");
        stage.finish("event-bus");
    }),
    exercise("status-line", "follows the turns", |lab| {
        let mut stage = lab.start("status-line", [any()]);
        let shown =
            |frame: &Value, text: &str| frame["statusText"].as_str().is_some_and(|status| status.contains(text));
        stage.watch(0, "ready", |frame| shown(frame, "Ready"));
        stage.run("hello");
        stage.watch(0, "the turn", |frame| shown(frame, "Turn 1..."));
        stage.watch(0, "its end", |frame| shown(frame, "Turn 1 complete"));
        stage.finish("status-line");
    }),
    exercise("widget-placement", "widgets above and below", |lab| {
        let mut stage = lab.start("widget-placement", []);
        stage.watch(0, "one", |frame| {
            frame["widgetKey"] == "widget-above" && frame["widgetLines"] == json!(["Above editor widget"])
        });
        stage.watch(0, "the other", |frame| {
            frame["widgetKey"] == "widget-below" && frame["widgetPlacement"] == "belowEditor"
        });
        stage.finish("widget-placement");
    }),
    exercise("model-status", "sees another model chosen", |lab| {
        let mut stage = lab.start("model-status", []);
        let response = stage.ask(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
        assert_eq!(response["success"], true, "{response}");
        stage.notified(0, "Model: mock-openai/gpt-mock");
        stage.watch(0, "the status", |frame| frame["statusKey"] == "model");
        stage.finish("model-status");
    }),
    exercise("message-renderer", "its message joins the conversation", |lab| {
        let mut stage = lab.start("message-renderer", [any()]);
        stage.run("hello");
        stage.prompt("/status warn low on tea");
        let end = stage
            .watch(0, "the message", |frame| frame["type"] == "message_end" && frame["message"]["role"] == "custom");
        assert_eq!(end["message"]["customType"], "status-update", "{end}");
        assert_eq!(end["message"]["content"], "low on tea", "{end}");
        stage.finish("message-renderer");
    }),
    exercise("entry-renderer", "its entry is kept and not sent", |lab| {
        let mut stage = lab.start("entry-renderer", [any(), any()]);
        stage.run("hello");
        stage.prompt("/status-card only for people");
        stage.run("again");
        let entries = &stage.home.sessions()[0].entries;
        let card = entries.iter().find(|entry| entry["customType"] == "status-card").expect("the entry");
        assert_eq!(card["data"]["message"], "only for people");
        assert!(!stage.sent(1).contains("only for people"));
        stage.finish("entry-renderer");
    }),
    exercise("preset", "sets model, level, tools and instructions", |lab| {
        let presets = json!({"fast": {"provider": "mock-openai", "model": "gpt-mock", "thinkingLevel": "low", "tools": ["read"], "instructions": "BE FAST"}});
        let furnish = |home: &pith_testkit::TempHome, _: &_| home.write_agent_file("presets.json", presets.to_string());
        let mut stage = lab.start_in("preset", [any()], furnish, |builder| builder);
        stage.prompt("/preset fast");
        stage.watch(0, "the status", |frame| {
            frame["statusText"].as_str().is_some_and(|text| text.contains("preset:fast"))
        });
        let state = stage.poll_state();
        assert_eq!((&state["model"]["id"], &state["thinkingLevel"]), (&json!("gpt-mock"), &json!("low")), "{state}");
        stage.run("hello");
        let sent = stage.sent(0);
        assert!(sent.contains("BE FAST") && !sent.contains("\"name\":\"bash\""), "{sent}");
        stage.finish("preset");
    }),
    exercise("titlebar-spinner", "the title moves while the model answers", |lab| {
        let mut stage = lab.start("titlebar-spinner", [Turn::text("slow").chunk(1).hold_after(1)]);
        stage.prompt("hello");
        stage.watch(0, "a frame of the spinner", |frame| {
            frame["method"] == "setTitle" && frame["title"].as_str().is_some_and(|title| title.starts_with('⠋'))
        });
        stage.server.wait_held(0);
        stage.server.release(0);
        stage.watch(0, "the end", |frame| frame["type"] == "agent_settled");
        stage.finish("titlebar-spinner");
    }),
    exercise("shutdown-command", "/quit ends pith", |lab| {
        let stage = lab.start("shutdown-command", []);
        stage.host.send(json!({"type": "prompt", "message": "/quit"}));
        assert_eq!(stage.host.exit_code(), 0, "{}", stage.host.describe());
    }),
];
