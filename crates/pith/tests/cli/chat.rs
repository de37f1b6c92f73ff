//! The chat, in a real pseudo-terminal.

use pith_testkit::{TempHome, Terminal, Turn};
use serde_json::json;

use super::support::{PITH, model, scene};

fn open(home: &TempHome, arguments: &[&str]) -> Terminal {
    Terminal::chat(PITH, arguments, home)
}

#[test]
fn a_message_is_answered_and_the_next_one_waited_for() {
    let turns = [Turn::call("bash", json!({"command": "echo one; echo two"})), Turn::text("**Both** lines are there.")];
    let (home, _server) = scene(turns);
    let mut terminal = open(&home, &model());
    terminal.type_keys("count them\r");
    terminal.wait("✓ $ echo one; echo two");
    terminal.wait("Both");
    terminal.wait("2 requests");
    terminal.wait("› ");
    terminal.type_keys("/stats\r");
    terminal.wait(".jsonl");
    terminal.wait("› ");
    terminal.type_keys("\x04");
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(home.sessions().len(), 1);
}

#[test]
fn ctrl_c_stops_the_turn_and_not_the_chat() {
    let (home, server) = scene([Turn::silent(), Turn::text("still here")]);
    let mut terminal = open(&home, &model());
    terminal.type_keys("hang\r");
    terminal.wait("waiting for the model");
    // The silent turn is for this request; if it were stopped before it is sent, the next request would get it.
    server.wait_request(0);
    terminal.type_keys("\x03");
    terminal.wait("✗ ");
    terminal.wait("› ");
    terminal.type_keys("again\r");
    terminal.wait("still here");
    terminal.wait("› ");
    terminal.type_keys("\x03");
    terminal.wait("Ctrl-C again");
    terminal.wait("› ");
    terminal.type_keys("\x03");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn a_message_may_have_several_lines_and_is_remembered() {
    let (home, server) = scene([Turn::text("first"), Turn::text("second")]);
    let mut terminal = open(&home, &model());
    terminal.type_keys("one \\\rtwo\x1b\rthree\r");
    terminal.wait("first");
    terminal.wait("› ");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.exit_code(), 0);
    let sent = server.requests()[0].body["messages"][0]["content"].clone();
    let text = sent.as_str().or_else(|| sent[0]["text"].as_str()).expect("text");
    assert_eq!(text, "one \ntwo\nthree");

    let mut terminal = open(&home, &model());
    assert!(terminal.screen().contains("Last session here: "), "{}", terminal.screen());
    // Two lines up: the last command, then the message.
    terminal.type_keys("\x1b[A\x1b[A\r");
    terminal.wait("second");
    terminal.leave();
}

#[test]
fn unknown_slash_commands_are_reported_and_known_ones_run() {
    let (home, _server) = scene([]);
    home.write_file(".keep", "");
    std::fs::create_dir_all(home.agent().join("prompts")).expect("directory");
    std::fs::write(home.agent().join("prompts/greet.md"), "Say hello to $1.").expect("written");
    let mut terminal = open(&home, &model());
    terminal.type_keys("/modle\r");
    terminal.wait("there is no /modle");
    terminal.type_keys("/commands\r");
    terminal.wait("/greet");
    terminal.type_keys("!echo out; exit 3\r");
    terminal.wait("exit code 3");
    terminal.type_keys("/rpc {\"type\":\"get_last_assistant_text\"}\r");
    terminal.wait("\"text\": null");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn a_project_is_trusted_after_a_yes() {
    let (home, _server) = scene([]);
    home.write_file(".pi/prompts/local.md", "Do it.");
    let mut terminal = Terminal::spawn(PITH, &model(), &home);
    terminal.wait("Trust this project?");
    terminal.wait("[y/n] ");
    terminal.type_keys("y\r");
    terminal.wait("› ");
    terminal.type_keys("/commands\r");
    terminal.wait("/local");
    terminal.leave();
    let trust = std::fs::read_to_string(home.agent().join("trust.json")).expect("saved");
    assert!(trust.contains("true"), "{trust}");
}

#[test]
fn earlier_sessions_are_listed_and_resumed() {
    let (home, server) = scene([Turn::text("the first answer"), Turn::text("the second answer")]);
    let mut terminal = open(&home, &model());
    terminal.type_keys("the first question\r");
    terminal.wait("1 request");
    terminal.type_keys("/name my errand\r");
    terminal.wait("Named.");
    terminal.leave();

    let mut terminal = open(&home, &[&model()[..], &["--resume"]].concat());
    assert!(terminal.screen().contains("  1  \"my errand\""), "{}", terminal.screen());
    terminal.type_keys("/resume 1\r");
    terminal.wait("the first answer");
    terminal.type_keys("and the next one\r");
    terminal.wait("the second answer");
    terminal.wait("› ");
    terminal.leave();
    assert_eq!(server.requests()[1].body["messages"].as_array().map(Vec::len), Some(3));

    let terminal = open(&home, &[&model()[..], &["-c"]].concat());
    assert!(terminal.screen().contains("Continuing a session of 4 messages."), "{}", terminal.screen());
    terminal.leave();
}

#[test]
fn lines_typed_while_the_agent_works_are_not_lost() {
    let (home, server) = scene([Turn::text("one by one").chunk(3).hold_after(1), Turn::text("two")]);
    let mut terminal = open(&home, &model());
    terminal.type_keys("first\r");
    server.wait_held(0);
    terminal.type_keys("second\r");
    server.release(0);
    terminal.wait("two");
    terminal.wait("› ");
    terminal.leave();
}
