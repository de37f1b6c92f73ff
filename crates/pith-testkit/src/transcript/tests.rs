use super::*;
use serde_json::json;

/// A program that ignores its arguments and runs a shell script.
fn program(home: &TempHome, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = home.tmp().join("fake-host");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("writable");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("changeable");
    path
}

fn parse(text: &str) -> Transcript {
    Transcript::parse(text).expect("a transcript")
}

fn play(script: &str, text: &str) -> Played {
    let home = TempHome::new();
    {
        let program = program(&home, script);
        parse(text).play(&|builder| builder.stranger().program(&program).spawn(), Purpose::Check)
    }
}

#[track_caller]
fn passes(script: &str, text: &str) {
    assert_eq!(play(script, text).problem, None);
}

#[track_caller]
fn fails(script: &str, text: &str, problem: &str) {
    let found = play(script, text).problem.expect("differs");
    assert!(found.starts_with(problem), "{found}");
}

#[test]
fn frames_have_to_come_in_order() {
    passes("cat", "# echo\n> {\"type\":\"a\"}\n< {\"type\":\"a\"}\n\n> {\"type\":\"b\"}\n< {\"type\":\"b\"}\n");
    fails("cat", "> {\"type\":\"a\"}\n< {\"type\":\"b\"}", "line 2: type: wanted \"b\", got \"a\"");
    fails("read -r line; echo \"$line\"", "> {}\n< {}\n< {}", "line 3: no frame came");
}

#[test]
fn dots_stand_for_any_frames() {
    let three = "echo '{\"n\":1}'; echo '{\"n\":2}'; echo '{\"n\":3}'";
    passes(three, "...\n< {\"n\":3}");
    passes(three, "< {\"n\":1}\n...\n< {\"n\":2}\n...");
    fails(three, "...\n< {\"n\":4}", "line 2: no such frame came");
}

#[test]
fn unread_frames_and_a_bad_exit_fail() {
    fails("echo '{\"n\":1}'; echo '{\"n\":2}'", "< {\"n\":1}", "left unread at the end: {\"n\":2}");
    fails("exit 3", "# nothing", "exit code 3");
}

#[test]
fn sent_lines_need_not_be_json_and_have_placeholders_filled() {
    passes("cat", "> not json [CWD]\n< \"not json [CWD]\"");
}

#[test]
fn arguments_and_settings_reach_the_program() {
    let script = r#"printf '{"args":"%s"}\n' "$*"; cat "$HOME/.pi/agent/settings.json"; echo"#;
    let wanted = "--mode rpc --provider mock-anthropic --model claude-mock --flag x";
    passes(script, &format!("#! args --flag x\n#! settings {{\"a\":1}}\n< {{\"args\":\"{wanted}\"}}\n< {{\"a\":1}}"));
}

#[test]
fn answers_are_played_by_the_model_server() {
    // A host that asks the model once and prints the answer's text deltas.
    let script = r#"
url=$(sed 's/.*"mock-anthropic":{"baseUrl":"http:\/\/\([^"]*\)".*/\1/' "$HOME/.pi/agent/models.json")
host=${url%:*}; port=${url#*:}
exec 3<>/dev/tcp/$host/$port
printf 'POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}' >&3
while read -r line <&3; do
  case $line in *text_delta*) rest=${line##*\"text\":}; echo "{\"saw\":${rest%%\}*}}" ;; *message_stop*) break ;; esac
done
"#;
    let home = TempHome::new();
    let path = program(&home, script);
    let text = fs::read_to_string(&path).expect("readable").replace("#!/bin/sh", "#!/bin/bash");
    fs::write(&path, text).expect("writable");
    let transcript = parse("~ text \"hello\"\n< {\"saw\":\"hello\"}");
    assert_eq!(transcript.play(&|builder| builder.stranger().program(&path).spawn(), Purpose::Check).problem, None);
}

#[test]
fn answers_can_be_text_thinking_call_or_json() {
    let count = |text: &str| Transcript::parse(text).map(|transcript| transcript.answers().count());
    assert_eq!(
        count("~ text \"a\"\n~ thinking \"b\"\n~ call ls\n~ call bash {\"command\":\"x\"}\n~ {\"text\":\"c\"}"),
        Ok(5)
    );
}

#[test]
fn bad_lines_are_named() {
    let problem = |text: &str| Transcript::parse(text).expect_err("is refused");
    assert_eq!(problem("# fine\nhello"), "line 2: starts with none of > < ... ~ #: hello");
    assert!(problem("< {").starts_with("line 1: not JSON"));
    assert!(problem("~ sing \"a\"").contains("text, thinking, call"));
    assert!(problem("~ call bash 5").contains("must be an object"));
    assert!(problem("~ {\"txt\":1}").contains("txt"));
    assert!(problem("#! colour red").contains("no such directive"));
}

#[test]
fn an_update_writes_what_came() {
    let home = TempHome::new();
    let program = program(&home, "read -r line; echo \"$line\"; echo '{\"type\":\"bye\",\"id\":\"7\",\"noise\":1}'");
    let text = "# why\n> {\"type\":\"a\",\"x\":1,\"y\":2}\n< {\"type\":\"b\",\"x\":9}\n";
    let played = parse(text)
        .timeout(Duration::from_millis(300))
        .play(&|builder| builder.stranger().program(&program).spawn(), Purpose::Update);
    assert_eq!(
        played.text,
        "# why\n> {\"type\":\"a\",\"x\":1,\"y\":2}\n< {\"type\":\"a\",\"x\":1}\n< {\"id\":\"7\",\"type\":\"bye\"}\n"
    );
    // What was written passes.
    let again = parse(&played.text).play(&|builder| builder.stranger().program(&program).spawn(), Purpose::Check);
    assert_eq!(again.problem, None);
}

#[test]
fn placeholders_match_and_remember() {
    let home = TempHome::new();
    let placeholders = Placeholders::new(&home);
    let check = |pattern: Value, frame: Value| matching::matches(&pattern, &frame, &placeholders);
    let cwd = home.work().display().to_string();
    for (pattern, frame) in [
        (json!({}), json!({"a": 1})),
        (json!({"a": {"b": 1}}), json!({"a": {"b": 1.0, "c": 2}, "d": 3})),
        (json!({"a": [{"b": 1}, {}]}), json!({"a": [{"b": 1}, {"c": 1}]})),
        (
            json!({"id": "[ID]", "t": "[TIME]", "u": "[TIME]"}),
            json!({"id": "a-1_b", "t": 12, "u": "2026-11-15T06:52:54.872Z"}),
        ),
        (json!({"path": "[CWD]/s_[ID].jsonl"}), json!({"path": format!("{cwd}/s_01a.jsonl")})),
        (json!({"a": "[ABSENT]", "b": "[ANY]", "c": "x[ANY]"}), json!({"b": null, "c": "x\ny"})),
        (json!({"a": null}), json!({"a": null})),
        (json!("a.b[c]"), json!("a.b[c]")),
    ] {
        assert_eq!(check(pattern.clone(), frame), Ok(()), "{pattern}");
    }
    for (pattern, frame, problem) in [
        (json!({"a": 1}), json!({}), "a: wanted 1, got nothing"),
        (json!({"a": null}), json!({}), "a: wanted null, got nothing"),
        (json!({"a": {"b": [1, 2]}}), json!({"a": {"b": [1]}}), "a.b: wanted 2 items, got [1]"),
        (json!({"a": [1]}), json!({"a": [2]}), "a.0: wanted 1, got 2"),
        (json!({"a": "[ABSENT]"}), json!({"a": 1}), "a: wanted \"[ABSENT]\", got 1"),
        (json!({"a": "[ID]"}), json!({"a": ""}), "a: wanted \"[ID]\", got \"\""),
        (json!({"a": "a.b"}), json!({"a": "axb"}), "a: wanted \"a.b\", got \"axb\""),
        (json!({"a": true}), json!({"a": 1}), "a: wanted true, got 1"),
        (json!({}), json!("x"), "the frame: wanted {}, got \"x\""),
    ] {
        assert_eq!(check(pattern, frame), Err(problem.to_owned()));
    }
}
