//! `--mode json`: a header, every event, the result, and an exit code that tells the outcome.

use pith_testkit::{TempHome, Turn};
use serde_json::{Value, json};

use super::support::{Output, model, run, scene};

fn frames(output: &Output) -> Vec<Value> {
    output.stdout.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

#[test]
fn json_mode_prints_a_header_and_then_the_events() {
    let (home, _server) = scene([Turn::text("hello")]);
    let output = run(&home, model().into_iter().chain(["--mode", "json", "-p", "hi"]));
    assert_eq!((output.stderr.as_str(), output.code), ("", 0));
    let frames = frames(&output);
    let kinds: Vec<&str> = frames.iter().map(|frame| frame["type"].as_str().expect("a type")).collect();
    assert_eq!(
        (kinds[0], kinds[1], &kinds[kinds.len() - 2..]),
        ("session", "agent_start", &["agent_settled", "result"][..])
    );
    assert!(!kinds.contains(&"response"), "{kinds:?}");
    let work = home.work().canonicalize().expect("work directory");
    assert_eq!((frames[0]["cwd"].as_str(), &frames[0]["version"]), (work.to_str(), &3.into()));
    assert_eq!(frames[0], home.sessions()[0].entries[0], "the header is the file's");
}

#[test]
fn a_run_that_was_stopped_on_purpose_is_no_failure() {
    let endless = || Turn::call("bash", json!({"command": "true"}));
    let last = |output: &Output| {
        let frames = frames(output);
        frames.into_iter().rfind(|frame| frame["type"] == "message_end").expect("an answer")["message"].clone()
    };
    let (home, _server) = scene([endless(), endless(), endless(), endless()]);
    home.write_settings(&json!({"maxTurns": 2}));
    let output = run(&home, model().into_iter().chain(["--mode", "json", "hi"]));
    assert_eq!((output.stderr.as_str(), output.code), ("", 0));
    assert_eq!((&last(&output)["stopReason"], &last(&output)["error"]["kind"]), (&json!("error"), &json!("limit")));
    let printed = run(&home, model().into_iter().chain(["-p", "hi"]));
    assert!(printed.code == 1 && printed.stderr.contains("limit of 2 turns"), "{}", printed.stderr);

    let (home, _server) = scene([endless(), Turn::text("never")]);
    let stopper = "export default (pi) => { pi.on('tool_call', (_, ctx) => ctx.abort()); };";
    home.write_agent_file("extensions/stopper.ts", stopper);
    let output = run(&home, model().into_iter().chain(["--mode", "json", "hi"]));
    assert_eq!((output.stderr.as_str(), output.code), ("", 0));
    assert_eq!(last(&output)["stopReason"], "aborted");
}

#[test]
fn failures_show_in_the_exit_code() {
    let (home, _server) = scene([Turn::status(401)]);
    let output = run(&home, model().into_iter().chain(["--mode", "json", "hi"]));
    assert_eq!(output.code, 1);
    let last = frames(&output).into_iter().rfind(|frame| frame["type"] == "message_end").expect("an answer");
    assert_eq!(last["message"]["stopReason"], "error");

    let refused = run(&TempHome::new(), ["--mode", "json", "hi"]);
    assert!(refused.code == 1 && refused.stderr.starts_with("No API key found"), "{}", refused.stderr);
    assert_eq!(frames(&refused).len(), 2, "only the header and the result: {}", refused.stdout);
}
