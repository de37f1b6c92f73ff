//! Introductions that clients really send, and a turn with each of them.

use pith_testkit::{ModelServer, Script, TempHome, Turn};
use serde_json::{Value, json};

use crate::support::{Editor, text_of};

/// What each client says of itself, and of the session it wants beyond directory and servers.
fn clients() -> Vec<(&'static str, Value, Value)> {
    let files = json!({"readTextFile": true, "writeTextFile": true});
    let zed = json!({
        "protocolVersion": 1,
        "clientCapabilities": {
            "fs": files, "terminal": true, "auth": {"terminal": true},
            "session": {"configOptions": {"boolean": {}}}, "elicitation": {"form": {}, "url": {}},
            "_meta": {"terminal_output": true, "terminal-auth": true},
        },
        "clientInfo": {"name": "zed", "version": "1.0.0"},
    });
    let older_zed = json!({
        "protocolVersion": 1,
        "clientCapabilities": {"fs": files, "terminal": true, "_meta": {"terminal_output": true}},
        "clientInfo": {"name": "zed", "version": "0.200.0"},
    });
    let acpx = json!({
        "protocolVersion": 1,
        "clientCapabilities": {"fs": files, "terminal": true},
        "clientInfo": {"name": "acpx", "version": "0.19.1"},
    });
    let code_companion = json!({
        "protocolVersion": 1,
        "clientCapabilities": {"fs": files},
        "clientInfo": {"name": "CodeCompanion.nvim", "version": "1.0.0"},
    });
    let avante = json!({"protocolVersion": 1, "clientCapabilities": {"fs": files}});
    let silent = json!({"protocolVersion": 1});
    let newer = json!({"protocolVersion": 2, "clientCapabilities": null, "clientInfo": null, "_meta": null});
    vec![
        ("Zed", zed, json!({})),
        ("an older Zed", older_zed, json!({})),
        ("acpx", acpx, json!({"_meta": {"systemPrompt": "Be short"}})),
        ("CodeCompanion", code_companion, json!({})),
        ("avante", avante, json!({})),
        ("a client that says nothing of itself", silent, json!({})),
        ("a client of a newer version", newer, json!({})),
    ]
}

#[test]
fn every_client_gets_its_turn() {
    for (name, introduction, more) in clients() {
        let call = Turn::call("read", json!({"path": "a.txt"}));
        let server = ModelServer::start(Script::of([call, Turn::text("It says one.")]));
        let home = TempHome::for_server(&server);
        home.write_file("a.txt", "one\n");
        let mut editor = Editor::start(server, home, |builder| builder);
        let reads = introduction["clientCapabilities"]["fs"]["readTextFile"] == true;
        assert_eq!(editor.ask("initialize", introduction)["protocolVersion"], 1, "{name}");
        let mut wanted = json!({"cwd": editor.home.work(), "mcpServers": []});
        for (key, value) in more.as_object().expect("an object") {
            wanted[key] = value.clone();
        }
        let opened = editor.ask("session/new", wanted);
        assert!(opened["configOptions"].is_array() && opened["modes"].is_object(), "{name}: {opened}");
        let session = opened["sessionId"].as_str().expect("an id").to_owned();
        let prompt = editor.send_prompt(&session, "What does it say?");
        if reads {
            // acpx leaves out the newline at the end.
            let asked = editor.asked("fs/read_text_file");
            editor.reply(&asked, json!({"content": "one"}));
        }
        assert_eq!(editor.result(prompt)["stopReason"], "end_turn", "{name}");
        assert_eq!(text_of(&editor.updates(&session), "agent_message_chunk"), "It says one.", "{name}");
        let system = editor.server.requests()[0].body.to_string();
        assert_eq!(system.contains("Be short"), name == "acpx", "{name}");
        // avante changes the model with a method that others no longer have.
        let model = editor.refusal("session/set_model", json!({"sessionId": session, "modelId": "no/such"}));
        assert_eq!(model.0, -32602, "{name}: {}", model.1);
        editor.finish();
    }
}
