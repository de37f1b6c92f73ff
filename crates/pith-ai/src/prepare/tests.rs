use super::*;
use crate::testing::{assistant, call, message, own, result, user};
use pith_protocol::Model;
use serde_json::json;

fn model() -> Model {
    Model { id: "m".into(), api: "a".into(), provider: "p".into(), input: vec!["text".into()], ..Model::default() }
}

fn options() -> PrepareOptions {
    let foreign = |id: &str, _: &Model| shorten(&sanitise(id), id, 64);
    PrepareOptions {
        ids: IdRule { max: 64, foreign, has_items: false },
        foreign_thinking: ForeignThinking::AsText,
        merge_users: false,
    }
}

/// One line per turn, pieces separated by ` | `.
fn show(call: &LlmCall, options: PrepareOptions) -> Vec<String> {
    let part = |part: &Part<'_>| match part {
        Part::Text(text) => text.replace('\n', "\\n"),
        Part::Image(image) => format!("<{}>", image.mime_type),
    };
    let piece = |piece: &PreparedBlock<'_>| match piece {
        PreparedBlock::Text { text, signature, was_thinking } => {
            let tag = if *was_thinking { "was " } else { "" };
            format!("{tag}{}{}", text.replace('\n', "\\n"), signature.map(|s| format!("~{s}")).unwrap_or_default())
        }
        PreparedBlock::Thinking { text, signature, redacted } => {
            format!("think {text}~{}{}", signature.unwrap_or("-"), if *redacted { "!" } else { "" })
        }
        PreparedBlock::Call { id, name, signature, .. } => {
            format!("{name}#{id}{}", signature.map(|s| format!("~{s}")).unwrap_or_default())
        }
    };
    let parts = |parts: &[Part<'_>]| parts.iter().map(part).collect::<Vec<_>>().join(" | ");
    prepare(call, options)
        .iter()
        .map(|turn| match turn {
            PreparedMessage::User(user) => format!("user: {}", parts(user)),
            PreparedMessage::Assistant(answer) => {
                format!("model: {}", answer.pieces.iter().map(piece).collect::<Vec<_>>().join(" | "))
            }
            PreparedMessage::Result(result) => {
                let mark = if result.is_error { "!" } else { "" };
                format!("{}#{}{mark}: {}", result.name, result.id, parts(&result.parts))
            }
        })
        .collect()
}

fn check(messages: Vec<Message>, expected: &[&str]) {
    assert_eq!(show(&call(model(), messages), options()), expected);
}

#[test]
fn roles_only_pith_knows_become_user_text() {
    check(
        vec![
            message(json!({"role":"bashExecution","command":"ls","output":"a\n","exitCode":0})),
            message(json!({"role":"bashExecution","command":"x","output":"","exitCode":7})),
            message(json!({"role":"bashExecution","command":"y","output":"z","cancelled":true,"exitCode":1})),
            message(
                json!({"role":"bashExecution","command":"big","output":"z","truncated":true,"fullOutputPath":"/f"}),
            ),
            message(json!({"role":"bashExecution","command":"secret","output":"","excludeFromContext":true})),
            message(json!({"role":"custom","customType":"note","content":"hello"})),
            message(json!({"role":"compactionSummary","summary":"S"})),
            message(json!({"role":"branchSummary","summary":"B"})),
            message(json!({"role":"system","content":"dropped"})),
            message(json!({"role":"developer","content":[{"type":"text","text":"remember"}]})),
            message(json!({"role":"user","content":null})),
        ],
        &[
            r"user: Ran `ls`\n```\na\n\n```",
            r"user: Ran `x`\n(no output)\n\nCommand exited with code 7",
            r"user: Ran `y`\n```\nz\n```\n\n(command cancelled)",
            r"user: Ran `big`\n```\nz\n```\n\n[Output truncated. Full output: /f]",
            "user: hello",
            r"user: The conversation history before this point was compacted into the following summary:\n\n<summary>\nS\n</summary>",
            r"user: The following is a summary of a branch that this conversation came back from:\n\n<summary>\nB</summary>",
            "user: remember",
            "user: ",
        ],
    );
}

fn pictures() -> Vec<Message> {
    let image = json!({"type":"image","data":"AA==","mimeType":"image/png"});
    vec![
        message(
            json!({"role":"user","content":[{"type":"text","text":"see"}, image, image, {"type":"text","text":"?"}, image]}),
        ),
        own(&model(), json!([{"type":"toolCall","id":"c","name":"read","arguments":{}}])),
        message(
            json!({"role":"toolResult","toolCallId":"c","toolName":"read","content":[image, image],"isError":false}),
        ),
    ]
}

#[test]
fn models_that_see_no_pictures_get_a_note_instead() {
    let omitted = "(image omitted: model does not support images)";
    check(
        pictures(),
        &[
            &format!("user: see | {omitted} | ? | {omitted}"),
            "model: read#c",
            "read#c: (tool image omitted: model does not support images)",
        ],
    );
}

#[test]
fn blocked_pictures_never_leave() {
    let mut model = model();
    model.input.push("image".into());
    let mut call = call(model, pictures());
    assert_eq!(show(&call, options())[0], "user: see | <image/png> | <image/png> | ? | <image/png>");
    call.block_images = true;
    assert_eq!(
        show(&call, options()),
        [
            "user: see | Image reading is disabled. | ? | Image reading is disabled.",
            "model: read#c",
            "read#c: Image reading is disabled."
        ]
    );
}

fn thoughts() -> serde_json::Value {
    json!([
        {"type":"thinking","thinking":"plan","thinkingSignature":"sig"},
        {"type":"thinking","thinking":"","thinkingSignature":"sig2"},
        {"type":"thinking","thinking":"  "},
        {"type":"thinking","thinking":"[gone]","thinkingSignature":"data","redacted":true},
        {"type":"text","text":"hi","textSignature":"t"},
        {"type":"toolCall","id":"a|b.c","name":"read","arguments":{},"thoughtSignature":"s"}
    ])
}

#[test]
fn a_models_own_thinking_is_kept() {
    check(
        vec![own(&model(), thoughts()), result("a|b.c", "ok")],
        &["model: think plan~sig | think ~sig2 | think [gone]~data! | hi~t | read#a|b.c~s", "read#a|b.c: ok"],
    );
}

#[test]
fn foreign_thinking_becomes_text_or_goes() {
    let messages = || vec![Message::Assistant(assistant(thoughts())), result("a|b.c", "ok")];
    check(messages(), &["model: was plan | hi | read#a_b_c", "read#a_b_c: ok"]);
    let options = PrepareOptions { foreign_thinking: ForeignThinking::Drop, ..options() };
    assert_eq!(show(&call(model(), messages()), options)[0], "model: hi | read#a_b_c");
}

fn ended(stop_reason: &str, content: serde_json::Value) -> Message {
    message(json!({"role":"assistant","content":content,"api":"a","provider":"p","model":"m","stopReason":stop_reason}))
}

#[test]
fn failed_turns_keep_only_what_the_user_saw() {
    let content = json!([{"type":"thinking","thinking":"hm"},{"type":"text","text":"Half an ans"},
        {"type":"toolCall","id":"c","name":"read","arguments":{}}]);
    check(
        vec![
            user("1"),
            ended("aborted", content.clone()),
            user("2"),
            ended("error", content),
            ended("aborted", json!([{"type":"text","text":" "}])),
            user("3"),
        ],
        &["user: 1", r"model: Half an ans\n\n[The user interrupted this answer here.]", "user: 2", "user: 3"],
    );
}

#[test]
fn neighbouring_user_messages_merge_on_demand() {
    let messages = vec![user("1"), ended("error", json!([])), user("2"), own(&model(), json!([])), user("3")];
    let options = PrepareOptions { merge_users: true, ..options() };
    assert_eq!(show(&call(model(), messages), options), ["user: 1 | 2", "model: ", "user: 3"]);
}

#[test]
fn every_call_is_answered_once_and_at_once() {
    let calls = json!([{"type":"toolCall","id":"1","name":"read","arguments":{}},
        {"type":"toolCall","id":"2","name":"bash","arguments":{}}]);
    check(
        vec![own(&model(), calls.clone()), result("2", "ok"), result("2", "again"), user("x"), result("1", "late")],
        &["model: read#1 | bash#2", "read#2: ok", "read#1!: No result provided", "user: x"],
    );
    check(
        vec![own(&model(), calls)],
        &["model: read#1 | bash#2", "read#1!: No result provided", "bash#2!: No result provided"],
    );
    check(vec![result("9", "of a call that is gone")], &[]);
}

#[test]
fn ids_cannot_collide() {
    let stem = "x".repeat(64);
    let (one, two) = (format!("{stem}{}", "1".repeat(36)), format!("{stem}{}", "2".repeat(36)));
    let calls = json!([{"type":"toolCall","id":one,"name":"a","arguments":{}},
        {"type":"toolCall","id":two,"name":"b","arguments":{}},
        {"type":"toolCall","id":"p.q","name":"c","arguments":{}},
        {"type":"toolCall","id":"p_q","name":"d","arguments":{}}]);
    let messages = vec![
        Message::Assistant(assistant(calls)),
        result(&two, "2"),
        result(&one, "1"),
        result("p_q", "4"),
        result("p.q", "3"),
    ];
    let call = call(model(), messages);
    let turns = prepare(&call, options());
    let PreparedMessage::Assistant(answer) = &turns[0] else { panic!("an answer first") };
    let ids: Vec<&str> = answer
        .pieces
        .iter()
        .map(|piece| match piece {
            PreparedBlock::Call { id, .. } => id.as_ref(),
            other => panic!("{other:?}"),
        })
        .collect();
    let distinct: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), 4, "{ids:?}");
    assert!(ids.iter().all(|id| id.len() <= 64));
    let results: Vec<&str> = turns[1..]
        .iter()
        .map(|turn| match turn {
            PreparedMessage::Result(result) => result.id.as_ref(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(results, [ids[1], ids[0], ids[3], ids[2]]);
}

#[test]
fn repeated_ids_of_one_model_are_told_apart() {
    let again = || own(&model(), json!([{"type":"toolCall","id":"call_0","name":"read","arguments":{}}]));
    let shown = show(&call(model(), vec![again(), result("call_0", "1"), again(), result("call_0", "2")]), options());
    assert_eq!(shown[..2], ["model: read#call_0", "read#call_0: 1"]);
    let id = shown[2].strip_prefix("model: read#").expect("a call");
    assert_ne!(id, "call_0");
    assert_eq!(shown[3], format!("read#{id}: 2"));
}
