//! Questions of extensions, and about trust, as forms and as permission cards.

use pith_testkit::Turn;
use serde_json::{Value, json};

use crate::support::{Editor, text_of};

/// Says what a command `/ask` was answered, as a notice.
const ASKS: &str = "const limited = async (ctx) => {
  const limit = new AbortController();
  const answer = ctx.ui.confirm('Quick?', '', { signal: limit.signal });
  await ctx.ui.confirm('Is the time over?', '');
  limit.abort();
  return answer;
};
export default (pi) => pi.registerCommand('ask', { handler: async (args, ctx) => {
  const answers = [];
  for (const kind of args.split(' ')) answers.push(
    kind === 'confirm' ? await ctx.ui.confirm('Sure?', 'It is final.') :
    kind === 'select' ? await ctx.ui.select('Pick', ['red', 'blue']) :
    kind === 'many' ? await ctx.ui.select('Pick', Array.from({ length: 21 }, (_, n) => `o${n}`)) :
    kind === 'limited' ? await limited(ctx) :
    kind === 'editor' ? await ctx.ui.editor('Edit', 'a draft') : await ctx.ui.input('Name', 'yours'));
  ctx.ui.notify('answers ' + JSON.stringify(answers.map((answer) => answer ?? null)));
} });";

/// Asks before every tool call.
const GATE: &str = "export default (pi) => pi.on('tool_call', async (event, ctx) =>
  (await ctx.ui.confirm('Run it?', 'Commands may do harm.')) ? undefined : { block: true, reason: 'The user said no' });";

fn editor(extension: &str, capabilities: Value, turns: impl IntoIterator<Item = Turn>) -> Editor {
    let editor = Editor::with(turns, capabilities, |builder| builder);
    editor.home.write_agent_file("extensions/asks.ts", extension);
    editor
}

fn forms() -> Value {
    json!({"elicitation": {"form": {}}, "session": {"notices": {}}})
}

fn cards() -> Value {
    json!({"session": {"notices": {}}})
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

impl Editor {
    /// What the extension says it was answered.
    fn answers(&mut self) -> Value {
        let notice = self.wait_update(|update| {
            update["sessionUpdate"] == "notice" && update["title"].as_str().is_some_and(|t| t.starts_with("answers "))
        });
        serde_json::from_str(&notice["title"].as_str().expect("a title")["answers ".len()..]).expect("JSON")
    }
}

#[test]
fn an_editor_with_forms_shows_dialogs_as_forms() {
    let mut editor = editor(ASKS, forms(), []);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "/ask confirm select many input editor");
    let accepted = |content: Value| json!({"action": "accept", "content": content});
    let confirm = editor.asked("elicitation/create");
    assert_eq!(confirm["params"]["mode"], "form");
    assert_eq!(confirm["params"]["sessionId"], session.as_str());
    assert_eq!(confirm["params"]["message"], "Sure?\n\nIt is final.");
    assert_eq!(confirm["params"]["requestedSchema"]["properties"]["answer"]["type"], "boolean");
    editor.reply(&confirm, accepted(json!({"answer": true})));
    let select = editor.asked("elicitation/create");
    let choice = &select["params"]["requestedSchema"]["properties"]["choice"];
    assert_eq!(choice["oneOf"], json!([{"const": "red", "title": "red"}, {"const": "blue", "title": "blue"}]));
    editor.reply(&select, accepted(json!({"choice": "blue"})));
    let many = editor.asked("elicitation/create");
    editor.reply(&many, accepted(json!({"choice": "o20"})));
    let input = editor.asked("elicitation/create");
    assert_eq!(input["params"]["requestedSchema"]["properties"]["text"]["description"], "yours");
    editor.reply(&input, accepted(json!({"text": "Ada"})));
    let edit = editor.asked("elicitation/create");
    assert_eq!(edit["params"]["requestedSchema"]["properties"]["text"]["default"], "a draft");
    editor.reply(&edit, json!({"action": "decline"}));
    assert_eq!(editor.answers(), json!([true, "blue", "o20", "Ada", null]));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    editor.finish();
}

#[test]
fn an_editor_without_forms_gets_cards() {
    let mut editor = editor(ASKS, cards(), []);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "/ask confirm select many input editor");
    let confirm = editor.asked("session/request_permission");
    let call = &confirm["params"]["toolCall"];
    assert_eq!((&call["toolCallId"], &call["title"]), (&json!("pith-dialog-1"), &json!("Sure?")));
    assert_eq!(call["content"][0]["content"]["text"], "It is final.");
    let kinds: Vec<_> = confirm["params"]["options"].as_array().expect("options").iter().map(|o| &o["kind"]).collect();
    assert_eq!(kinds, [&json!("allow_once"), &json!("reject_once")]);
    editor.reply(&confirm, selected("reject"));
    let select = editor.asked("session/request_permission");
    let names: Vec<_> = select["params"]["options"].as_array().expect("options").iter().map(|o| &o["name"]).collect();
    assert_eq!(names, [&json!("red"), &json!("blue"), &json!("Cancel")]);
    editor.reply(&select, selected("1"));
    assert_eq!(editor.answers(), json!([false, "blue", null, null, null]));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    // The cards are closed, and what could not be shown is told.
    let updates = editor.updates(&session);
    for call in ["pith-dialog-1", "pith-dialog-2"] {
        let of_call: Vec<_> = updates.iter().filter(|update| update["toolCallId"] == call).collect();
        assert_eq!(of_call.len(), 2, "{of_call:?}");
        assert_eq!((&of_call[0]["sessionUpdate"], &of_call[1]["status"]), (&json!("tool_call"), &json!("completed")));
    }
    let [choice, text] =
        ["a choice", "text"].map(|what| format!("A dialog asked for {what}, which this client cannot show"));
    let notices = updates.iter().filter(|update| update["sessionUpdate"] == "notice");
    let told: Vec<_> = notices.map(|notice| json!([notice["title"], notice["description"]])).take(3).collect();
    assert_eq!(told, [json!([choice, "Pick"]), json!([text, "Name"]), json!([text, "Edit"])]);
    // It can be looked up later, by the user and by the editor.
    assert_eq!(editor.prompt(&session, "/diagnostics"), "end_turn");
    let said = text_of(&editor.updates(&session), "agent_message_chunk");
    assert!(said.contains(&format!("{choice}: Pick")), "{said}");
    let found = editor.ask("_pith/diagnostics", json!({"sessionId": session}));
    assert_eq!(found, editor.ask("_pith/diagnostics", json!({})));
    let of_dialogs = found["diagnostics"].as_array().expect("a list").iter();
    let told: Vec<_> = of_dialogs.filter(|found| found["code"] == "dialog_unshown").map(|it| &it["message"]).collect();
    assert_eq!(
        told,
        [format!("{choice}: Pick"), format!("{text}: Name"), format!("{text}: Edit")]
            .map(Value::from)
            .iter()
            .collect::<Vec<_>>()
    );
    editor.finish();
}

#[test]
fn a_handler_of_tool_calls_asks_about_the_call() {
    let command = json!({"command": "echo ran > out.txt"});
    let turns = [
        Turn::call("bash", command.clone()),
        Turn::text("Then not."),
        Turn::call("bash", command),
        Turn::text("Done."),
    ];
    // Forms or not: it is a question of permission.
    let mut editor = editor(GATE, forms(), turns);
    let session = editor.new_session();
    for (option, text) in [("reject", None), ("allow", Some("ran\n"))] {
        let prompt = editor.send_prompt(&session, "go");
        let asked = editor.asked("session/request_permission");
        let call = &asked["params"]["toolCall"];
        assert_eq!((&call["name"], &call["kind"]), (&json!("bash"), &json!("execute")));
        assert_eq!((&call["status"], &call["title"]), (&json!("pending"), &json!("echo ran > out.txt")));
        assert_eq!(call["rawInput"]["command"], "echo ran > out.txt");
        assert_eq!(call["content"][0]["content"]["text"], "Run it?\n\nCommands may do harm.");
        let announced = editor
            .updates(&session)
            .iter()
            .any(|update| update["sessionUpdate"] == "tool_call" && update["toolCallId"] == call["toolCallId"]);
        assert!(announced, "the call is announced before the question");
        editor.reply(&asked, selected(option));
        assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
        assert_eq!(editor.home.read_file("out.txt").as_deref(), text);
    }
    let updates = editor.updates(&session);
    let ends: Vec<_> =
        updates.iter().filter_map(|u| u["status"].as_str()).filter(|s| ["failed", "completed"].contains(s)).collect();
    assert_eq!(ends, ["failed", "completed"]);
    editor.finish();
}

#[test]
fn nonsense_for_an_answer_dismisses_the_dialog() {
    for (capabilities, method) in [(forms(), "elicitation/create"), (cards(), "session/request_permission")] {
        let mut editor = editor(ASKS, capabilities, []);
        let session = editor.new_session();
        let answers = [
            json!({"result": null}),
            json!({"result": 7}),
            json!({"result": {"action": "dance"}}),
            json!({"result": {"action": "accept"}}),
            json!({"result": {"action": "accept", "content": {"answer": "yes"}}}),
            json!({"result": {"outcome": {"outcome": "selected", "optionId": "always"}}}),
            json!({"result": {"outcome": {"outcome": "selected"}}}),
            json!({"error": {"code": -32601, "message": "Method not found"}}),
            json!({"error": "no"}),
        ];
        for mut answer in answers {
            let prompt = editor.send_prompt(&session, "/ask confirm");
            let asked = editor.asked(method);
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = asked["id"].clone();
            editor.host.send(answer.clone());
            assert_eq!(editor.answers(), json!([false]), "{answer}");
            assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
            // A second answer is one to nothing.
            editor.reply(&asked, selected("allow"));
        }
        editor.finish();
    }
}

#[test]
fn a_cancelled_question_cancels_the_turn() {
    let mut editor =
        editor(GATE, cards(), [Turn::call("bash", json!({"command": "echo ran > out.txt"})), Turn::text("fine")]);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "go");
    let asked = editor.asked("session/request_permission");
    editor.reply(&asked, json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
    assert_eq!(editor.home.read_file("out.txt"), None);
    editor.finish();
}

#[test]
fn a_cancel_withdraws_questions_that_nobody_answers() {
    for (extension, text) in [(GATE, "go"), (ASKS, "/ask confirm")] {
        let turns = [Turn::call("bash", json!({"command": "echo ran > out.txt"})), Turn::text("still here")];
        let mut editor = editor(extension, cards(), turns);
        let session = editor.new_session();
        let prompt = editor.send_prompt(&session, text);
        let asked = editor.asked("session/request_permission");
        editor.notify("session/cancel", json!({"sessionId": session}));
        editor.withdrawn(&asked);
        assert_eq!(editor.result(prompt)["stopReason"], "cancelled", "{text}");
        // The answer comes too late and does nothing to the next turn.
        editor.reply(&asked, selected("allow"));
        assert_eq!(editor.home.read_file("out.txt"), None);
        if text == "go" {
            assert_eq!(editor.prompt(&session, "and now?"), "end_turn");
        }
        editor.finish();
    }
}

#[test]
fn a_dialog_ends_with_its_time_its_session_and_its_editor() {
    let mut editor = editor(ASKS, forms(), []);
    let session = editor.new_session();
    let prompt = editor.send_prompt(&session, "/ask limited");
    let asked = editor.asked("elicitation/create");
    let over = editor.asked("elicitation/create");
    editor.reply(&over, json!({"action": "accept", "content": {"answer": true}}));
    editor.withdrawn(&asked);
    assert_eq!(editor.answers(), json!([false]));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    let prompt = editor.send_prompt(&session, "/ask confirm");
    let asked = editor.asked("elicitation/create");
    editor.ask("session/close", json!({"sessionId": session}));
    editor.withdrawn(&asked);
    assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
    let session = editor.new_session();
    editor.send_prompt(&session, "/ask confirm");
    editor.asked("elicitation/create");
    // The editor disconnects while the question is open; `finish` wants an answer to the prompt, and exit code 0.
    editor.finish();
}

#[test]
fn questions_wait_until_the_editor_knows_the_session() {
    let early = "export default (pi) => pi.on('session_start', async (event, ctx) =>
      ctx.ui.notify('answers ' + JSON.stringify([await ctx.ui.confirm('Ready?', '')])));";
    let mut editor = editor(early, cards(), []);
    let session = editor.new_session();
    let asked = editor.asked("session/request_permission");
    assert_eq!(asked["params"]["sessionId"], session.as_str());
    editor.reply(&asked, selected("allow"));
    assert_eq!(editor.answers(), json!([true]));
    let frames = editor.finish();
    let named = frames.iter().position(|frame| frame["result"]["sessionId"] == session.as_str());
    assert!(named < frames.iter().position(|frame| frame["id"] == asked["id"]));
}

#[test]
fn the_user_is_asked_whether_a_project_is_trusted() {
    let has_local = |update: &Value| update.to_string().contains("\"local\"");
    for (option, is_trusted) in [("reject", false), ("allow", true)] {
        let mut editor = Editor::with([], cards(), |builder| builder);
        editor.home.write_file(".pi/prompts/local.md", "Do it.");
        let session = editor.new_session();
        let asked = editor.asked("session/request_permission");
        assert_eq!(asked["params"]["sessionId"], session.as_str());
        // Sessions of the same directory, and this one, go on meanwhile.
        assert_eq!(editor.ask("session/status", json!({"sessionId": session}))["status"], "open");
        editor.reply(&asked, selected(option));
        if is_trusted {
            editor.wait_update(|update| update["sessionUpdate"] == "available_commands_update" && has_local(update));
        } else {
            let notice = editor.wait_update(|update| update["sessionUpdate"] == "notice");
            assert!(notice["title"].as_str().is_some_and(|title| title.contains("not trusted")), "{notice}");
        }
        let frames = editor.finish();
        // Nothing of the project is used before a yes.
        let shown = frames.iter().position(has_local);
        assert_eq!(shown.is_some(), is_trusted);
        assert!(shown.is_none() || shown > frames.iter().position(|frame| frame["id"] == asked["id"]));
    }
}

#[test]
fn the_question_about_trust_ends_with_the_session_and_not_before() {
    let mut editor = Editor::with([Turn::text("meanwhile")], forms(), |builder| builder);
    editor.home.write_file(".pi/prompts/local.md", "Do it.");
    let session = editor.new_session();
    let asked = editor.asked("elicitation/create");
    // There is no limit that the user would have to know.
    assert!(!asked["params"].to_string().contains("timeout"));
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    editor.ask("session/close", json!({"sessionId": session}));
    editor.withdrawn(&asked);
    // An answer that comes too late changes nothing.
    editor.reply(&asked, json!({"action": "accept", "content": {"answer": true}}));
    editor.new_session();
    let frames = editor.finish();
    assert!(!frames.iter().any(|frame| frame.to_string().contains("\"local\"")));
}

#[test]
fn what_a_command_says_is_its_answer_where_there_are_no_notices() {
    let says = "export default (pi) => {
      pi.registerCommand('greet', { handler: async (name, ctx) => { ctx.ui.notify('Hello ' + name); } });
      pi.on('agent_start', (_, ctx) => ctx.ui.notify('beside the conversation'));
    };";
    for (capabilities, kind) in [(json!({}), "agent_message_chunk"), (cards(), "notice")] {
        let mut editor = editor(says, capabilities, [Turn::text("an answer")]);
        let session = editor.new_session();
        assert_eq!(editor.prompt(&session, "/greet Ada"), "end_turn");
        assert_eq!(editor.prompt(&session, "hi"), "end_turn");
        let told = |text: &str| {
            let updates = editor.updates(&session);
            updates
                .iter()
                .find(|update| update.to_string().contains(text))
                .map(|update| update["sessionUpdate"].clone())
        };
        assert_eq!(told("Hello Ada"), Some(json!(kind)));
        // Nobody asked for this one.
        assert_eq!(told("beside the conversation"), (kind == "notice").then(|| json!(kind)));
        editor.finish();
    }
}
