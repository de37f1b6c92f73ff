//! Several sessions in a directory about which the user is asked.

use pith_testkit::Turn;
use serde_json::{Value, json};

use crate::support::Editor;

/// An editor whose directory has a template that needs trust.
fn editor() -> Editor {
    let editor = Editor::with([Turn::text("hi")], json!({"session": {"notices": {}}}), |builder| builder);
    editor.home.write_file(".pi/prompts/local.md", "Do it.");
    editor
}

impl Editor {
    /// Waits for the question about trust of a session.
    fn asked_about_trust(&mut self, session: &str) -> Value {
        let asked = self.asked("session/request_permission");
        assert_eq!(asked["params"]["sessionId"], session);
        asked
    }

    fn decide(&self, asked: &Value, option: &str) {
        self.reply(asked, json!({"outcome": {"outcome": "selected", "optionId": option}}));
    }

    /// Whether the editor was told of the template in a session.
    fn knows_template(&self, session: &str) -> bool {
        self.updates(session).iter().any(|update| update.to_string().contains("\"local\""))
    }

    fn n_questions(&self) -> usize {
        self.host.frames().iter().filter(|frame| frame["method"] == "session/request_permission").count()
    }
}

#[test]
fn a_yes_holds_for_every_session_of_the_directory() {
    let mut editor = editor();
    let first = editor.new_session();
    let asked = editor.asked_about_trust(&first);
    let second = editor.new_session();
    assert_eq!(editor.prompt(&second, "hi"), "end_turn");
    editor.decide(&asked, "allow");
    for session in [&first, &second] {
        let is_told =
            |frame: &Value| frame["params"]["sessionId"] == session.as_str() && frame.to_string().contains("\"local\"");
        assert!(editor.host.find_within(0, pith_testkit::timeout(), is_told).is_some(), "{}", editor.host.describe());
    }
    let third = editor.new_session();
    editor.ask("session/close", json!({"sessionId": third}));
    assert_eq!(editor.n_questions(), 1);
    editor.finish();
}

#[test]
fn a_no_holds_for_every_session_of_the_directory() {
    let mut editor = editor();
    let first = editor.new_session();
    let asked = editor.asked_about_trust(&first);
    let second = editor.new_session();
    editor.decide(&asked, "reject");
    editor.wait_update(|update| update["sessionUpdate"] == "notice");
    let third = editor.new_session();
    for session in [&first, &second, &third] {
        editor.ask("session/close", json!({"sessionId": session}));
        assert!(!editor.knows_template(session));
    }
    assert_eq!(editor.n_questions(), 1);
    editor.finish();
}

#[test]
fn a_session_asks_when_the_one_that_asked_is_closed() {
    let mut editor = editor();
    let first = editor.new_session();
    let asked = editor.asked_about_trust(&first);
    let second = editor.new_session();
    editor.ask("session/close", json!({"sessionId": first}));
    editor.withdrawn(&asked);
    let again = editor.asked_about_trust(&second);
    editor.decide(&again, "allow");
    editor.wait_update(|update| update.to_string().contains("\"local\""));
    assert!(!editor.knows_template(&first));
    editor.finish();
}
