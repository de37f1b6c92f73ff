//! Servers that extensions register, and extensions that bring their own client.

use std::path::PathBuf;

use pith_testkit::Turn;
use serde_json::{Value, json};

use super::{entry, finish, home_answering, log, offered};
use crate::support::{Scene, texts};

/// A session with an extension that is given as text.
fn with_extension(turns: impl IntoIterator<Item = Turn>, user: Value, code: &str) -> (Scene, PathBuf) {
    let (model, home, server) = home_answering(turns, |_| user);
    let code = code.replace("SERVER", &server.display().to_string());
    let path = home.agent().join("servers.ts");
    std::fs::write(&path, code).expect("written");
    let path = path.display().to_string();
    (Scene::in_home(model, home, |builder| builder.args(["-e", &path])), server)
}

fn servers(scene: &mut Scene) -> Vec<String> {
    let listed = scene.host.data(json!({"type": "get_mcp_servers"}));
    let shown = |server: &Value| {
        let word = |key: &str| server[key].as_str().expect("a word").to_owned();
        format!("{} {}", word("name"), word("source"))
    };
    listed["servers"].as_array().expect("a list").iter().map(shown).collect()
}

#[test]
fn servers_of_extensions_are_used_behind_those_of_files() {
    let code = r#"export default (pi) => {
        const config = { command: "sh", args: ["SERVER"] };
        pi.registerMcpServer("shell", config);
        pi.registerMcpServer("of-user", { command: "never" });
        pi.registerMcpServer("wrong", { command: 7 });
        try { pi.registerMcpServer("bad", null) } catch (error) { console.log(error.message) }
        pi.registerCommand("swap", { handler: () => {
            pi.unregisterMcpServer("shell");
            pi.registerMcpServer("later", config);
            console.log(JSON.stringify(pi.getMcpServers().map(({ name }) => name)));
        } });
    }"#;
    let turns = [Turn::call("mcp__shell__greet", json!({"who": "you"})), Turn::text("done"), Turn::text("again")];
    let (mut scene, server) = with_extension(turns, json!({"of_user": {"command": "no", "enabled": false}}), code);
    scene.run("go");
    assert_eq!(offered(&scene, 0), ["mcp__shell__greet", "mcp__shell__visit", "mcp__shell__wait"]);
    assert_eq!(texts(&scene.tool_results()[0]["content"]), "Hello from the server");
    assert_eq!(servers(&mut scene), ["of_user user", "shell extension"]);
    let found = scene.host.data(json!({"type": "get_diagnostics"}))["diagnostics"].clone();
    let wrong = found.as_array().expect("a list").iter().find(|found| found["code"] == "mcp_config").expect("named");
    assert_eq!(wrong["message"], "server \"wrong\": command: expected a string, got number");
    assert!(wrong["path"].as_str().is_some_and(|path| path.ends_with("servers.ts")), "{wrong}");
    scene.command(json!({"type": "prompt", "message": "/swap"}));
    assert_eq!(servers(&mut scene), ["of_user user", "later extension"]);
    scene.run("again");
    assert_eq!(offered(&scene, 2), ["mcp__later__greet", "mcp__later__visit", "mcp__later__wait"]);
    finish(scene, &server);
}

#[test]
fn a_server_that_an_extension_registers_during_a_run_is_started_at_once() {
    let code = r#"export default (pi) => pi.registerTool({ name: "connect", description: "", parameters: { type: "object" },
        execute: async () => {
            pi.registerMcpServer("shell", { command: "sh", args: ["SERVER"], startupTimeoutMs: 60000 });
            while (!require("fs").existsSync("SERVER.log")) await new Promise((resolve) => setTimeout(resolve, 5));
            return { content: [{ type: "text", text: "connected" }] };
        } });"#;
    let turns = [Turn::call("connect", json!({})), Turn::text("done")];
    let (mut scene, server) = with_extension(turns, json!({}), code);
    scene.run("go");
    // The server runs although no prompt has come since it was registered.
    assert!(log(&server, "log").contains("initialize"));
    finish(scene, &server);
}

#[test]
fn an_extension_with_its_own_client_leaves_pith_only_the_servers_of_the_host() {
    let code = r#"export default (pi) => pi.registerCommand("mcp", { handler: () => {} });"#;
    let user = json!({"user": {"command": "sh", "args": ["never"], "lifecycle": "eager"}});
    let (mut scene, server) = with_extension([Turn::text("one"), Turn::text("two")], user, code);
    scene.run("go");
    assert_eq!((offered(&scene, 0), servers(&mut scene)), (Vec::new(), Vec::new()));
    scene.command(json!({"type": "set_mcp_servers", "servers": {"shell": entry(&server)}}));
    assert_eq!(servers(&mut scene), ["shell host"]);
    scene.run("go on");
    assert_eq!(offered(&scene, 1), ["mcp__shell__greet", "mcp__shell__visit", "mcp__shell__wait"]);
    finish(scene, &server);
}

#[test]
fn a_client_of_an_extension_that_does_not_load_replaces_nothing() {
    let (model, home, server) = home_answering([Turn::text("fine")], |server| json!({"shell": entry(server)}));
    let directory = home.agent().join("extensions");
    std::fs::create_dir_all(&directory).expect("made");
    let code = r#"export default (pi) => { pi.registerCommand("mcp", { handler: () => {} }); throw new Error("no") };"#;
    std::fs::write(directory.join("client.ts"), code).expect("written");
    let mut scene = Scene::in_home(model, home, |builder| builder);
    scene.run("go");
    assert_eq!(offered(&scene, 0), ["mcp__shell__greet", "mcp__shell__visit", "mcp__shell__wait"]);
    finish(scene, &server);
}

#[test]
fn a_tool_of_an_extension_wins_over_one_of_a_server_which_is_told() {
    let code = r#"export default (pi) => {
        pi.registerMcpServer("shell", { command: "sh", args: ["SERVER"] });
        pi.registerTool({ name: "mcp__shell__greet", description: "", parameters: { type: "object" },
            execute: async () => ({ content: [{ type: "text", text: "Hello from the extension" }] }) });
    }"#;
    let turns = [Turn::call("mcp__shell__greet", json!({})), Turn::text("done")];
    let (mut scene, server) = with_extension(turns, json!({}), code);
    scene.run("go");
    assert_eq!(texts(&scene.tool_results()[0]["content"]), "Hello from the extension");
    let found = scene.host.data(json!({"type": "get_diagnostics"}))["diagnostics"].clone();
    let told = found.as_array().expect("a list").iter().find(|found| found["code"] == "mcp_schema").expect("told");
    let message = "server \"shell\": another tool is called mcp__shell__greet, too, and is used instead";
    assert_eq!(told["message"], message);
    finish(scene, &server);
}
