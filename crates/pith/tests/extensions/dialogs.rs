//! Careless answers of hosts to dialogs.

use pith_testkit::Turn;
use serde_json::{Value, json};

use crate::stage::{NEIGHBOUR, Stage};

/// An extension that shows the result of `/go`.
fn asking(body: &str) -> String {
    format!(
        "export default (pi) => pi.registerCommand('go', {{ handler: async (args, ctx) => {{
            const result = await (async () => {{ {body} }})();
            ctx.ui.notify('result ' + JSON.stringify(result ?? null));
        }} }});"
    )
}

/// Sends `answers` to the dialog that opens (an id is added if it is missing) and checks its result.
#[track_caller]
fn check(body: &str, method: &str, answers: &[Value], expected: &str) {
    let mut stage = Stage::new(&[("ask.ts", &asking(body)), NEIGHBOUR], []);
    stage.host.send(json!({"type": "prompt", "message": "/go"}));
    let request = stage.asked(0, method);
    for answer in answers {
        let mut answer = answer.clone();
        answer["type"] = json!("extension_ui_response");
        if answer.get("id").is_none() {
            answer["id"] = request["id"].clone();
        }
        stage.host.send(answer);
    }
    stage.notified(0, &format!("result {expected}"));
    stage.assert_alive();
    stage.finish(body);
}

const SELECT: &str = "return ctx.ui.select('Pick', ['A', 'B'])";
const CONFIRM: &str = "return ctx.ui.confirm('Sure?', 'really')";
const INPUT: &str = "return ctx.ui.input('Name?', 'hint')";
const EDITOR: &str = "return ctx.ui.editor('Edit', 'text')";

#[test]
fn answers_of_the_right_kind_reach_the_extension() {
    check(SELECT, "select", &[json!({"value": "B"})], r#""B""#);
    check(SELECT, "select", &[json!({"value": "typed freely"})], r#""typed freely""#);
    check(CONFIRM, "confirm", &[json!({"confirmed": true})], "true");
    check(INPUT, "input", &[json!({"value": ""})], r#""""#);
    check(EDITOR, "editor", &[json!({"value": "a\nb"})], r#""a\nb""#);
}

#[test]
fn answers_of_the_wrong_kind_count_as_cancelled() {
    check(CONFIRM, "confirm", &[json!({"confirmed": "no"})], "false");
    check(CONFIRM, "confirm", &[json!({"value": "true"})], "false");
    check(CONFIRM, "confirm", &[json!({})], "false");
    check(INPUT, "input", &[json!({"value": 5})], "null");
    check(INPUT, "input", &[json!({"confirmed": true})], "null");
    check(SELECT, "select", &[json!({"cancelled": false})], "null");
    check(SELECT, "select", &[json!({"value": ["A"]})], "null");
    check(EDITOR, "editor", &[json!({"value": null})], "null");
}

#[test]
fn cancelled_wins_over_a_value() {
    check(SELECT, "select", &[json!({"cancelled": true, "value": "A"})], "null");
    check(CONFIRM, "confirm", &[json!({"cancelled": true, "confirmed": true})], "false");
}

#[test]
fn only_the_first_of_two_answers_is_used() {
    check(SELECT, "select", &[json!({"value": "A"}), json!({"value": "B"})], r#""A""#);
    check(CONFIRM, "confirm", &[json!({"cancelled": true}), json!({"confirmed": true})], "false");
}

#[test]
fn answers_to_unknown_dialogs_are_ignored() {
    let strangers =
        [json!({"id": "nobody", "value": "A"}), json!({"id": 5, "value": "A"}), json!({"id": null, "value": "A"})];
    let answers: Vec<Value> = strangers.into_iter().chain([json!({"value": "B"})]).collect();
    check(SELECT, "select", &answers, r#""B""#);
}

#[test]
fn an_answer_after_the_timeout_is_ignored() {
    let body = "const first = await ctx.ui.confirm('Quick?', '', { timeout: 30 }); ctx.ui.notify('over');
        return [first, await ctx.ui.input('Then?')]";
    let mut stage = Stage::new(&[("ask.ts", &asking(body)), NEIGHBOUR], []);
    stage.host.send(json!({"type": "prompt", "message": "/go"}));
    let request = stage.asked(0, "confirm");
    assert_eq!(request["timeout"], 30);
    stage.notified(0, "over");
    stage.answer(&request, json!({"confirmed": true}));
    let request = stage.asked(0, "input");
    stage.answer(&request, json!({"value": "still here"}));
    stage.notified(0, r#"result [false,"still here"]"#);
    stage.finish("an answer after the timeout");
}

#[test]
fn many_dialogs_are_answered_in_any_order() {
    let body = "return (await Promise.all(Array.from({ length: 50 }, (_, n) => ctx.ui.input('n' + n)))).join()";
    let mut stage = Stage::new(&[("ask.ts", &asking(body)), NEIGHBOUR], []);
    stage.host.send(json!({"type": "prompt", "message": "/go"}));
    stage.watch(0, "the last dialog", |frame| frame["title"] == "n49");
    let mut requests: Vec<Value> = stage.host.frames().into_iter().filter(|frame| frame["method"] == "input").collect();
    assert_eq!(requests.len(), 50);
    requests.reverse();
    for request in &requests {
        stage.answer(request, json!({"value": request["title"]}));
    }
    let expected: Vec<String> = (0..50).map(|number| format!("n{number}")).collect();
    stage.notified(0, &format!("result {:?}", expected.join(",")));
    stage.finish("many dialogs");
}

#[test]
fn an_open_dialog_blocks_nothing() {
    let gate = "export default (pi) => pi.on('tool_call', async (_, ctx) => {
        if (!(await ctx.ui.confirm('Run it?', ''))) return { block: true, reason: 'refused' };
    });";
    // Longer than any handler may take: waiting for the user does not count.
    let turns = [Turn::call("bash", json!({"command": "echo ran > ran.txt"})), Turn::text("done")];
    let mut stage = Stage::new(&[("gate.ts", gate), NEIGHBOUR], turns);
    stage.prompt("go");
    let request = stage.asked(0, "confirm");
    let began = std::time::Instant::now();
    while began.elapsed() < std::time::Duration::from_millis(1000) {
        assert_eq!(stage.poll_state()["isStreaming"], true);
    }
    stage.assert_alive();
    stage.answer(&request, json!({"confirmed": true}));
    stage.watch(0, "the end of the run", |frame| frame["type"] == "agent_settled");
    assert_eq!(stage.home.read_file("ran.txt").as_deref(), Some("ran\n"));
    stage.finish("an open dialog");
}

#[test]
fn abort_and_the_end_of_the_session_close_dialogs() {
    let gate = "export default (pi) => {
        pi.on('tool_call', async (_, ctx) => { const yes = await ctx.ui.confirm('Run it?', ''); ctx.ui.notify('heard ' + yes); return { block: !yes }; });
        pi.registerCommand('wait', { handler: async (_, ctx) => { await ctx.ui.input('for ever'); } });
    };";
    let mut stage =
        Stage::new(&[("gate.ts", gate), NEIGHBOUR], [Turn::call("bash", json!({"command": "echo ran > ran.txt"}))]);
    stage.prompt("go");
    let request = stage.asked(0, "confirm");
    assert_eq!(stage.ask(json!({"type": "abort"}))["success"], true);
    stage.notified(0, "heard false");
    stage.watch(0, "the end of the run", |frame| frame["type"] == "agent_settled");
    stage.answer(&request, json!({"confirmed": true}));
    stage.assert_alive();
    assert_eq!(stage.home.read_file("ran.txt"), None);
    stage.host.send(json!({"type": "prompt", "message": "/wait"}));
    stage.asked(0, "input");
    stage.finish("dialogs that are closed");
}

#[test]
fn dialogs_of_five_extensions_do_not_mix() {
    let one = |name: &str| {
        format!(
            "export default (pi) => pi.on('input', async (event, ctx) => {{
                const answer = await ctx.ui.input('{name}');
                ctx.ui.notify('{name} got ' + answer);
            }});"
        )
    };
    let sources = ["a", "b", "c", "d", "e"].map(|name| (format!("{name}.ts"), one(name)));
    let extensions: Vec<(&str, &str)> = sources.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let mut stage = Stage::new(&extensions, []);
    stage.host.send(json!({"type": "prompt", "message": "go"}));
    for name in ["a", "b", "c", "d", "e"] {
        let request = stage.watch(0, name, |frame| frame["method"] == "input" && frame["title"] == name);
        stage.answer(&request, json!({"value": format!("for {name}")}));
        stage.notified(0, &format!("{name} got for {name}"));
    }
    stage.watch(0, "the end of the run", |frame| frame["type"] == "agent_settled");
    stage.finish("five extensions");
}
