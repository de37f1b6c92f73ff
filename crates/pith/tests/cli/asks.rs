//! The chat in tmux asks whether calls may run: what each question shows, and what its keys do.

use pith_testkit::{TempHome, Tmux, Turn, shell_server};
use serde_json::{Value, json};

use super::support::{PITH, model, scene};

/// Plays an answer to a question of each kind.
fn each_question_is_answered(size: (u16, u16)) {
    let tool = "export default (pi) => pi.registerTool({ name: 'deploy', label: 'Deploy', description: 'Deploys', \
        parameters: { type: 'object', properties: { stage: { type: 'string' } } }, \
        execute: async (_, { stage }) => ({ content: [{ type: 'text', text: 'deployed to ' + stage }], details: {} }) });";
    let bash = |command: &str| Turn::call("bash", json!({"command": command}));
    let edit = json!({"path": "src/lib.rs", "edits": [{"oldText": "w + h", "newText": "w * h"}]});
    let long = (1..=90).map(|n| format!("echo {n}\n")).collect::<String>() + "touch at-the-end";
    let (home, server) = scene([
        bash("touch one"),
        Turn::call("write", json!({"path": "two.txt", "content": "a\nb\n"})),
        Turn::call("edit", edit.clone()),
        Turn::call("edit", edit),
        bash(&long),
        Turn::call("deploy", json!({"stage": "Staging"})),
        Turn::call("mcp__shell__wait", json!({"a": 17})),
        bash("touch stopped"),
        Turn::text("never said"),
    ]);
    home.write_file("src/lib.rs", "pub fn area() {\n    w + h\n}\n");
    home.write_agent_file("extensions/deploy.ts", tool);
    let server_file = shell_server(&home.agent());
    let entry = json!({"command": "sh", "args": [server_file], "exposure": "direct"});
    home.write_agent_file("mcp.json", json!({"mcpServers": {"shell": entry}}).to_string());
    let program = [&[PITH][..], &model(), &["--approval-mode", "ask"]].concat();
    let Some(tmux) = Tmux::open(&home, size, &program, &[]) else { return };
    tmux.wait("Enter sends");
    tmux.enter("go");

    let asked = |tmux: &Tmux, title: &str, parts: &[&str]| {
        tmux.wait(&format!("? {title}"));
        // Only from then on keys are answers.
        tmux.wait("waiting for you");
        parts.iter().for_each(|part| tmux.wait(part));
    };
    // Enter is no answer, and a letter is one at once.
    asked(
        &tmux,
        "bash",
        &["claude-mock · ask · ", "touch one", "s bash(touch one), this session", "p always bash(touch one)"],
    );
    tmux.press(&["Enter", "n"]);
    asked(&tmux, "write two.txt   new, 2 lines", &["+1 a", "+2 b", "always edit(./two.txt)"]);
    tmux.press(&["Escape"]);
    asked(&tmux, "edit src/lib.rs   +1 -1", &["-2     w + h", "+2     w * h", "s edits in src/, this session"]);
    tmux.type_text("euse tabs");
    tmux.press(&["Enter"]);
    tmux.wait("did not allow this. use tabs");
    asked(&tmux, "edit src/lib.rs   +1 -1", &["+2     w * h"]);
    tmux.type_text("y");
    asked(&tmux, "bash", &["echo 1", "touch at-the-end", "more lines, v shows everything"]);
    tmux.type_text("v");
    tmux.wait("more lines, v shows everything");
    tmux.type_text("y");
    asked(&tmux, "deploy", &["stage: Staging", "s this very call, this session"]);
    tmux.type_text("s");
    asked(&tmux, "mcp__shell__wait", &["a: 17", "It may destroy something", "s this very call, this session"]);
    // Similar calls are no choice here.
    tmux.type_text("a");
    tmux.type_text("n");
    asked(&tmux, "bash", &["touch stopped"]);
    tmux.type_text("x");
    tmux.wait("✗ stopped");

    let is_there = |name: &str| home.work().join(name).exists();
    assert_eq!(["one", "two.txt", "at-the-end", "stopped"].map(is_there), [false, false, true, false]);
    let changed = std::fs::read_to_string(home.work().join("src/lib.rs")).expect("the file");
    assert!(changed.contains("w * h"), "{changed}");
    let heard: Vec<String> = results(&server.requests().last().expect("requests").body);
    let refused = "The user did not allow this.";
    assert_eq!(heard[..3], [refused, refused, "The user did not allow this. use tabs"]);
    assert!(heard[5].contains("deployed to Staging"), "{heard:?}");
    assert_eq!(heard[6], refused);
    assert!(tmux.history().contains("echo 45\n"), "v has printed the whole command");
}

/// The texts of tool results in a request.
fn results(request: &Value) -> Vec<String> {
    let blocks = request["messages"].as_array().into_iter().flatten();
    let blocks = blocks.flat_map(|message| message["content"].as_array().into_iter().flatten());
    let text = |block: &Value| match &block["content"] {
        Value::String(text) => text.clone(),
        content => content[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    blocks.filter(|block| block["type"] == "tool_result").map(text).collect()
}

#[test]
fn questions_are_answered_on_a_wide_screen() {
    each_question_is_answered((100, 40));
}

#[test]
fn questions_are_answered_on_a_small_screen() {
    each_question_is_answered((60, 20));
}

/// Opens a chat whose first call is a command.
fn asked_about<'a>(home: &'a TempHome, size: (u16, u16)) -> Option<Tmux<'a>> {
    let tmux = Tmux::open(home, size, &[&[PITH][..], &model(), &["--approval-mode", "ask"]].concat(), &[])?;
    tmux.wait("Enter sends");
    Some(tmux)
}

#[test]
fn a_tiny_screen_shows_the_command() {
    let (home, _server) = scene([Turn::call("bash", json!({"command": "touch tiny"})), Turn::text("over")]);
    let Some(tmux) = asked_about(&home, (40, 8)) else { return };
    tmux.enter("go");
    tmux.wait("waiting for you");
    tmux.wait("touch tiny");
    tmux.wait("y once");
    tmux.type_text("n");
    tmux.wait("over");
    assert!(!home.work().join("tiny").exists());
}

#[test]
fn a_word_that_is_being_written_answers_nothing() {
    let call = Turn::call("bash", json!({"command": "touch typed"})).hold_after(1);
    let (home, server) = scene([call, Turn::text("over")]);
    let Some(tmux) = asked_about(&home, (80, 24)) else { return };
    tmux.enter("go");
    server.wait_held(0);
    tmux.type_text("yes yes y");
    tmux.wait("› yes yes y");
    server.release(0);
    tmux.wait("waiting for you");
    tmux.press(&["Enter", "Enter", "Escape"]);
    tmux.wait("over");
    assert!(!home.work().join("typed").exists());
    tmux.wait("› yes yes y");
}
