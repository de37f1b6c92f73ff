//! Inputs that join what runs: none is lost, none runs twice, each is answered by what became of it.

use pith_testkit::Turn;
use serde_json::{Value, json};

use crate::support::Editor;

/// Asks before it lets a prompt with ALPHA through, so that the session has not accepted it yet.
const SLOW_INPUT: &str = "export default (pi) => pi.on('input', async (event, ctx) => {
  if (event.text.includes('ALPHA')) await ctx.ui.confirm('Go on?', '');
  return { action: 'continue' };
});";

fn slow_editor(turns: impl IntoIterator<Item = Turn>) -> Editor {
    let editor = Editor::with(turns, json!({"elicitation": {"form": {}}}), |builder| builder);
    editor.home.write_agent_file("extensions/slow.ts", SLOW_INPUT);
    editor
}

fn held() -> Turn {
    Turn::text("one two").chunk(3).hold_after(1)
}

impl Editor {
    fn send_steering(&mut self, session: &str, text: &str) -> u64 {
        self.send("_session/steering", json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
    }

    /// Sends a prompt that is to join what runs.
    fn send_joining(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send(
            "session/prompt",
            json!({"sessionId": session, "prompt": prompt, "_meta": {"pith": {"delivery": "steer"}}}),
        )
    }

    /// How often the model was told each of these words, as it is now.
    fn n_told(&self, words: [&str; 2]) -> [usize; 2] {
        let messages = self.server.requests().last().expect("a request").body["messages"].to_string();
        words.map(|word| messages.matches(word).count())
    }
}

fn outcome(name: &str) -> Value {
    json!({ "outcome": name })
}

#[test]
fn what_is_steered_before_the_prompt_is_accepted_joins_its_turn() {
    let mut editor = slow_editor([Turn::text("one"), Turn::text("two"), Turn::text("three")]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "ALPHA");
    let asked = editor.asked("elicitation/create");
    let steering = editor.send_steering(&session, "BETA");
    let joining = editor.send_joining(&session, "GAMMA");
    editor.reply(&asked, json!({"action": "accept", "content": {"answer": true}}));
    assert_eq!(editor.result(steering), outcome("injected"));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    assert_eq!(editor.result(joining)["stopReason"], "end_turn");
    assert_eq!(editor.n_told(["ALPHA", "BETA"]), [1, 1]);
    assert_eq!(editor.n_told(["GAMMA", "nothing"]), [1, 0]);
    editor.finish();
}

#[test]
fn the_second_of_two_steerings_joins_the_turn_of_the_first() {
    let mut editor = slow_editor([Turn::text("one"), Turn::text("two"), Turn::text("three")]);
    let session = editor.new_session();
    let first = editor.send_steering(&session, "ALPHA");
    let asked = editor.asked("elicitation/create");
    let second = editor.send_steering(&session, "BETA");
    editor.reply(&asked, json!({"action": "accept", "content": {"answer": true}}));
    assert_eq!(editor.result(first), outcome("startedNewTurn"));
    assert_eq!(editor.result(second), outcome("injected"));
    // A prompt waits for the turn that nobody owns.
    assert_eq!(editor.prompt(&session, "and now"), "end_turn");
    assert_eq!(editor.n_told(["ALPHA", "BETA"]), [1, 1]);
    editor.finish();
}

#[test]
fn what_is_steered_while_a_summary_is_written_follows_it() {
    for is_slash_command in [true, false] {
        let turns = [Turn::text("hi"), Turn::text("a summary").chunk(3).hold_after(1), Turn::text("done")];
        let mut editor = Editor::new(turns);
        editor.home.write_settings(&json!({"compaction": {"keepRecentTokens": 1}}));
        let session = editor.new_session();
        assert_eq!(editor.prompt(&session, "hello"), "end_turn");
        let compacting = if is_slash_command {
            editor.send_prompt(&session, "/compact")
        } else {
            editor.send("_pith/compact", json!({"sessionId": session}))
        };
        editor.server.wait_request(1);
        let steering = editor.send_steering(&session, "BETA");
        // A request that is answered at once shows that the steering was taken, and waits.
        editor.ask("_pith/state", json!({"sessionId": session}));
        editor.server.release(1);
        editor.result(compacting);
        assert_eq!(editor.result(steering), outcome("startedNewTurn"));
        editor.wait_update(|update| update["content"]["text"] == "done");
        assert_eq!(editor.server.requests().len(), 3);
        assert_eq!(editor.n_told(["BETA", "/compact"]), [1, 0]);
        editor.finish();
    }
}

#[test]
fn a_prompt_joins_a_turn_that_nobody_owns_and_ends_with_it() {
    let mut editor = Editor::new([held(), Turn::text("two"), Turn::text("three")]);
    let session = editor.new_session();
    let steering = editor.send_steering(&session, "ALPHA");
    assert_eq!(editor.result(steering), outcome("startedNewTurn"));
    editor.wait_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    let joining = editor.send_joining(&session, "BETA");
    // Injected, so the prompt before it has joined, too.
    let steering = editor.send_steering(&session, "GAMMA");
    assert_eq!(editor.result(steering), outcome("injected"));
    editor.server.release(0);
    assert_eq!(editor.result(joining)["_meta"]["pith"]["turns"], 3);
    assert_eq!(editor.n_told(["ALPHA", "BETA"]), [1, 1]);
    editor.finish();
}

#[test]
fn to_withdraw_a_prompt_that_has_joined_cancels_the_turn() {
    let mut editor = Editor::new([held()]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "ALPHA");
    editor.wait_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    let joining = editor.send_joining(&session, "BETA");
    editor.notify("$/cancel_request", json!({"requestId": joining}));
    assert_eq!(editor.result(joining)["stopReason"], "cancelled");
    assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
    editor.finish();
}

#[test]
fn what_is_steered_into_a_slash_command_can_be_refused_or_cancelled() {
    let mut editor = Editor::new([Turn::text("hi"), Turn::text("a summary").chunk(3).hold_after(1)]);
    editor.home.write_settings(&json!({"compaction": {"keepRecentTokens": 1}}));
    let session = editor.new_session();
    assert_eq!(editor.prompt(&session, "hello"), "end_turn");
    let compacting = editor.send_prompt(&session, "/compact");
    editor.server.wait_request(1);
    let not_running = json!({"outcome": "promptRequired", "reason": "noRunningTurn"});
    let only_if_running = json!({"sessionId": session, "prompt": [{"type": "text", "text": "BETA"}],
        "_meta": {"steering": {"idleBehavior": "promptRequired"}}});
    assert_eq!(editor.ask("_session/steering", only_if_running), not_running);
    let steering = editor.send_steering(&session, "GAMMA");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.result(steering), not_running);
    assert_eq!(editor.result(compacting)["stopReason"], "cancelled");
    assert_eq!(editor.server.requests().len(), 2);
    editor.finish();
}

#[test]
fn a_steering_that_no_turn_can_take_any_more_begins_one() {
    // The extension takes the prompt for itself after the steering was sent.
    let taking = "export default (pi) => pi.on('input', async (event, ctx) => {
      if (!event.text.includes('ALPHA')) return { action: 'continue' };
      await ctx.ui.confirm('Go on?', '');
      return { action: 'handled' };
    });";
    let mut editor = Editor::with([Turn::text("done")], json!({"elicitation": {"form": {}}}), |builder| builder);
    editor.home.write_agent_file("extensions/taking.ts", taking);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "ALPHA");
    let asked = editor.asked("elicitation/create");
    let steering = editor.send_steering(&session, "BETA");
    editor.reply(&asked, json!({"action": "accept", "content": {"answer": true}}));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    assert_eq!(editor.result(steering), outcome("startedNewTurn"));
    editor.wait_update(|update| update["content"]["text"] == "done");
    assert_eq!(editor.n_told(["ALPHA", "BETA"]), [0, 1]);
    editor.finish();
}

#[test]
fn a_prompt_during_the_summary_of_a_branch_follows_it() {
    let summary = Turn::text("what was left").chunk(3).hold_after(1);
    let mut editor = Editor::new([Turn::text("one"), Turn::text("two"), summary, Turn::text("three")]);
    let session = editor.new_session();
    editor.prompt(&session, "first");
    editor.prompt(&session, "second");
    let entries = editor.ask("_pith/entries", json!({"sessionId": session}))["entries"].clone();
    let mut entries = entries.as_array().expect("a list").iter();
    let answer = entries.find(|entry| entry["message"]["role"] == "assistant").expect("an answer")["id"].clone();
    let wish = json!({"sessionId": session, "targetId": answer, "summarize": true});
    let moved = editor.send("_pith/navigate", wish);
    editor.server.wait_request(2);
    let prompt = editor.send_prompt(&session, "third");
    editor.ask("session/list", json!({}));
    editor.server.release(2);
    assert_eq!(editor.result(moved)["cancelled"], false);
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    editor.finish();
}
