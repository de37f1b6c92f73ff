//! `pith mcp`: servers are configured, listed, tried and copied from the command line.

use pith_testkit::{TempHome, shell_server};
use serde_json::{Value, json};

use super::support::{finish, run, start_in};

fn user_file(home: &TempHome) -> Value {
    let text = std::fs::read_to_string(home.agent().join("mcp.json")).expect("a file");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_server_is_added_listed_tried_and_removed() {
    let home = TempHome::new();
    shell_server(&home.work());
    home.write_agent_file("mcp.json", r#"{"theirs": 1, "mcpServers": {"other": {"command": "x", "enabled": false}}}"#);
    let added = run(&home, ["mcp", "add", "sh", "--env", "TOKEN=hush-4711-hush", "--", "sh", "server.sh"]).quiet();
    assert!(added.starts_with("added sh to ") && added.ends_with("mcp.json\n"), "{added}");
    let entry = json!({"command": "sh", "args": ["server.sh"], "env": {"TOKEN": "hush-4711-hush"}});
    assert_eq!((&user_file(&home)["theirs"], &user_file(&home)["mcpServers"]["sh"]), (&json!(1), &entry));

    let listed = run(&home, ["mcp", "list"]).quiet();
    let file = home.agent().join("mcp.json").display().to_string();
    assert!(listed.contains(&format!("other  disabled  ({file})\n")), "{listed}");
    let tools = "  mcp__sh__greet\n  mcp__sh__visit\n  mcp__sh__wait\n";
    let lines = format!("sh  ready, 3 tools, 2025-11-25, shell 1  ({file})\n{tools}  /mcp:sh:hail\n");
    assert!(listed.contains(&lines), "{listed}");
    let listed: Value = serde_json::from_str(&run(&home, ["mcp", "list", "--json"]).quiet()).expect("JSON");
    assert_eq!(listed["servers"].as_array().map(Vec::len), Some(2), "{listed}");

    let tried = run(&home, ["mcp", "test", "sh", "--call", "greet", "{}"]).quiet();
    let hello = "\"text\": \"Hello from the server\"";
    for part in ["started in ", "protocol 2025-11-25\n", "3 tools\n  greet  Greets\n", hello, "ended in "] {
        assert!(tried.contains(part), "{part}: {tried}");
    }
    assert!(tried.contains("a remark with [redacted]") && !tried.contains("hush"), "{tried}");
    assert_eq!(run(&home, ["mcp", "test", "sh", "--call", "greet", r#"{"fail": true}"#]).code, 1);
    assert_eq!(run(&home, ["mcp", "test", "nobody"]).code, 1);

    assert!(run(&home, ["mcp", "remove", "sh"]).quiet().starts_with("removed sh from "));
    assert_eq!(user_file(&home), json!({"theirs": 1, "mcpServers": {"other": {"command": "x", "enabled": false}}}));
    let refused = run(&home, ["mcp", "remove", "sh"]);
    assert!(refused.code == 1 && refused.stderr.contains("there is no server \"sh\""), "{}", refused.stderr);
}

#[test]
fn servers_that_cannot_be_used_make_the_list_fail() {
    let home = TempHome::new();
    assert_eq!(run(&home, ["mcp", "list"]).quiet(), "no MCP servers (pith mcp add NAME -- PROGRAM ...)\n");
    home.write_agent_file("mcp.json", r#"{"mcpServers": {"gone": {"command": "/nowhere/at/all"}}}"#);
    let listed = run(&home, ["mcp", "list"]);
    assert!(listed.code == 1 && listed.stdout.contains("gone  failed"), "{}", listed.stdout);
    let needs = json!({"mcpServers": {"asks": {"command": "sh", "env": {"KEY": "${input:my-key}"}}}});
    home.write_agent_file("mcp.json", needs.to_string());
    let listed = run(&home, ["mcp", "list"]);
    assert!(listed.code == 1 && listed.stdout.contains("asks  needs_input"), "{}", listed.stdout);
    assert!(listed.stdout.contains("needs input my-key: set the variable MY_KEY"), "{}", listed.stdout);
    // A note is no failure.
    let noted = json!({"mcpServers": {"sh": {"command": "sh", "args": [shell_server(&home.work())], "comand": 1}}});
    home.write_agent_file("mcp.json", noted.to_string());
    let listed = run(&home, ["mcp", "list"]);
    assert!(listed.code == 0 && listed.stderr.contains("unknown keys are ignored: comand"), "{}", listed.stderr);
    home.write_agent_file("mcp.json", r#"{"mcpServers": {"bad": {}}}"#);
    let listed = run(&home, ["mcp", "list"]);
    assert!(listed.code == 1 && listed.stderr.contains("server \"bad\": it has neither"), "{}", listed.stderr);
}

#[test]
fn servers_of_another_program_are_shown_then_copied() {
    let home = TempHome::new();
    let theirs = home.home().join(".cursor/mcp.json");
    std::fs::create_dir_all(theirs.parent().expect("below")).expect("made");
    let entry = json!({"command": "git-server", "env": {"TOKEN": "${GIT_TOKEN}"}});
    std::fs::write(&theirs, json!({"mcpServers": {"git": entry}}).to_string()).expect("written");
    assert_eq!(run(&home, ["mcp", "import", "cursor", "--dry-run"]).quiet(), "would add git\n");
    assert!(!home.agent().join("mcp.json").exists());
    assert_eq!(run(&home, ["mcp", "import", "cursor"]).quiet(), "added git\n");
    assert_eq!(user_file(&home)["mcpServers"]["git"], entry);
    assert_eq!(run(&home, ["mcp", "import", "cursor"]).quiet(), "git is there already\n");
}

#[test]
fn what_vs_code_asks_the_user_for_works_after_the_copy() {
    let home = TempHome::new();
    let theirs = home.home().join(if cfg!(target_os = "macos") {
        "Library/Application Support/Code/User/mcp.json"
    } else {
        ".config/Code/User/mcp.json"
    });
    std::fs::create_dir_all(theirs.parent().expect("below")).expect("made");
    let input = json!({"id": "city", "type": "pickString", "description": "Where?", "options": ["Oslo", "Bonn"]});
    let server = shell_server(&home.work());
    let entry = json!({"command": "sh", "args": [server], "env": {"TOKEN": "${input:city}", "KEY": "${env:HOME}"}});
    std::fs::write(&theirs, json!({"servers": {"sh": entry}, "inputs": [input]}).to_string()).expect("written");
    assert_eq!(run(&home, ["mcp", "import", "vscode"]).quiet(), "added sh\n");
    assert_eq!(user_file(&home), json!({"inputs": [input], "mcpServers": {"sh": entry}}));
    // Nobody can be asked here, so the variable is what counts.
    let listed = run(&home, ["mcp", "list"]);
    assert!(listed.code == 1 && listed.stdout.contains("needs input city: set the variable CITY"), "{}", listed.stdout);
    let listed = finish(start_in(&home, ["mcp", "list"], &[("CITY", "Oslo")]));
    assert!(listed.code == 0 && listed.stdout.contains("sh  ready"), "{}", listed.stdout);
}
