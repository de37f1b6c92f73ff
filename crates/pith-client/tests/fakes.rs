//! The client against programs that behave badly, each a few words of shell.
#![cfg(unix)]

use std::path::Path;
use std::time::Duration;

use pith_client::protocol::commands::{GetMessages, GetState};
use pith_client::protocol::host::UiAnswer;
use pith_client::{Builder, Error, HostTool, Pith, Told};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

/// Only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

fn fake(script: &str) -> Builder {
    Pith::builder().program("sh").first_argument("-c").first_argument(script)
}

/// A response to the command with that number.
fn response(number: usize, rest: &str) -> String {
    format!(r#"{{"id":"rs-{number}","type":"response","command":"x",{rest}}}"#)
}

/// A tool that would do anything.
fn tool(call: impl Fn() -> Result<String, String> + Send + Sync + 'static) -> HostTool {
    let call = std::sync::Arc::new(call);
    HostTool::new("try", "Tries", json!({"type": "object"}), move |_, _| {
        let call = call.clone();
        async move { call() }
    })
}

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}/exe")).exists()
}

async fn gone(pid: u32) {
    let poll = async {
        while is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, poll).await.expect("the process has ended");
}

#[tokio::test]
async fn garbage_on_stdout_disturbs_nothing() {
    let state = response(1, r#""success":true,"data":{"messages":[]}"#);
    let script = format!(
        r#"read line; printf 'warning: \377\n\n[1]\n"text"\n{{"type":5}}\n{{"half\n'; printf '%s\n' '{state}'; cat"#
    );
    let pith = fake(&script).spawn().await.expect("started");
    assert!(pith.call(GetMessages {}).await.expect("answered").messages.is_empty());
    pith.close().await;
}

#[tokio::test]
async fn frames_of_a_later_version_are_kept_as_they_are() {
    let first = r#"{"type":"moon_rises","phase":{"lit":0.5}}"#;
    // A known event with a word nobody knows yet.
    let second = r#"{"type":"compaction_start","reason":"boredom"}"#;
    let script = format!("read line; printf '%s\\n' '{first}' '{second}' '{}'; cat", response(1, r#""success":true"#));
    let pith = fake(&script).spawn().await.expect("started");
    let mut events = pith.listen();
    pith.ask("rise", Map::new()).await.expect("answered");
    let Some(Told::Other(frame)) = events.next().await else { panic!("no raw frame") };
    assert_eq!(frame["phase"]["lit"], 0.5);
    let told = events.wait("compaction_start").await.expect("a frame");
    assert!(matches!(told, Told::Other(frame) if frame["reason"] == "boredom"));
}

#[tokio::test]
async fn unknown_codes_and_answers_reach_the_host() {
    let refused = response(1, r#""success":false,"error":"no","code":"from_the_future""#);
    let strange = response(2, r#""success":true,"data":{"model":5}"#);
    let mute = response(3, r#""success":7"#);
    let script = format!("for answer in '{refused}' '{strange}' '{mute}'; do read line; echo \"$answer\"; done; cat");
    let pith = fake(&script).spawn().await.expect("started");
    let Err(Error::Failed(failed)) = pith.call(GetState {}).await else { panic!("a refusal") };
    assert_eq!((failed.code.as_deref(), failed.known_code()), (Some("from_the_future"), None));
    let Err(Error::Unreadable { command, data, .. }) = pith.call(GetState {}).await else { panic!("a strange one") };
    assert_eq!((command.as_str(), data), ("get_state", json!({"model": 5})));
    assert!(matches!(pith.call(GetState {}).await, Err(Error::Failed(failed)) if failed.error == "unknown error"));
}

#[tokio::test]
async fn the_end_of_the_process_fails_what_waits_and_says_why() {
    let pith = fake("read line; echo 'out of luck' >&2; exit 3").spawn().await.expect("started");
    let mut events = pith.listen();
    let Err(Error::Exited(exited)) = pith.call(GetState {}).await else { panic!("an end") };
    assert_eq!((exited.status.and_then(|status| status.code()), exited.stderr.trim()), (Some(3), "out of luck"));
    assert!(exited.to_string().contains("out of luck"), "{exited}");
    assert!(events.next().await.is_none());
    assert!(matches!(events.wait("agent_settled").await, Err(Error::Exited(_))));
    assert!(matches!(pith.call(GetState {}).await, Err(Error::Exited(_))), "later calls fail at once");
    assert!(pith.listen().next().await.is_none());
}

#[tokio::test]
async fn a_last_line_without_its_end_is_still_read() {
    let script = format!("read line; printf '%s' '{}'", response(1, r#""success":true"#));
    let pith = fake(&script).spawn().await.expect("started");
    assert_eq!(pith.ask("x", Map::new()).await.expect("answered"), Value::Null);
}

#[tokio::test]
async fn a_process_that_does_not_read_can_be_left_and_ended() {
    let pith = fake("exec sleep 1000").spawn().await.expect("started");
    let long = "x".repeat(1 << 20);
    // Never answered, however long one waits.
    assert!(timeout(Duration::from_millis(50), pith.prompt(long)).await.is_err());
    let status = timeout(PATIENCE, pith.close_within(Duration::from_millis(1))).await.expect("it ends");
    assert!(!status.expect("waited for").success());
}

#[tokio::test]
async fn a_process_that_ignores_termination_is_killed() {
    let pith = fake("trap '' TERM; echo '{\"type\":\"deaf\"}'; exec sleep 1000").spawn().await.expect("started");
    pith.listen().wait("deaf").await.expect("it is deaf now");
    let pid = pith.pid().expect("a process");
    timeout(PATIENCE, pith.close_within(Duration::from_millis(1))).await.expect("it ends");
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_process_that_never_stops_talking_can_be_ended() {
    let pith = fake("exec yes '{\"type\":\"yes\"}'").spawn().await.expect("started");
    timeout(PATIENCE, pith.close_within(Duration::from_millis(1))).await.expect("it ends");
}

#[tokio::test]
async fn a_process_without_stdout_is_ended() {
    let pith = fake("exec 1>&-; exec sleep 1000").spawn().await.expect("started");
    let failed = timeout(PATIENCE, pith.call(GetState {})).await.expect("does not wait for ever");
    assert!(matches!(failed, Err(Error::Exited(_))));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let Err(error) = Pith::builder().program("/nowhere/pith").spawn().await else { panic!("no such program") };
    assert_eq!(error.to_string(), "/nowhere/pith: entity not found");
}

#[tokio::test]
async fn refused_tools_are_an_error_of_the_start() {
    let refused = response(1, r#""success":false,"error":"no tools here","code":"host_tool_refused""#);
    let script = format!("read line; echo '{refused}'; cat");
    let started = fake(&script).tool(tool(|| Ok("done".into()))).spawn().await;
    assert!(matches!(started, Err(Error::Failed(failed)) if failed.error == "no tools here"));
}

#[tokio::test]
async fn dropping_the_client_ends_the_process() {
    let pith = fake("exec cat").spawn().await.expect("started");
    let pid = pith.pid().expect("a process");
    drop(pith);
    gone(pid).await;
}

#[test]
fn a_runtime_that_ends_takes_the_process_with_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let pith = runtime.block_on(fake("exec sleep 1000").spawn()).expect("started");
    let pid = pith.pid().expect("a process");
    drop(runtime);
    assert!(!is_alive(pid));
}

/// Starts a program that asks for something and repeats what the host says to it.
async fn repeats(builder: impl FnOnce(Builder) -> Builder, frame: &str) -> Value {
    let accepted = response(1, r#""success":true,"data":{"toolNames":["try"]}"#);
    let script = format!(
        "read line; echo '{accepted}'; echo '{frame}'; read line; echo \"{{\\\"type\\\":\\\"got\\\",\\\"reply\\\":$line}}\"; cat"
    );
    let pith = builder(fake(&script)).tool(tool(|| Ok("done".into()))).spawn().await.expect("started");
    match pith.listen().wait("got").await {
        Ok(Told::Other(mut frame)) => frame["reply"].take(),
        other => panic!("{other:?}"),
    }
}

const CALL: &str = r#"{"type":"host_tool_call","id":"7","toolCallId":"t","toolName":"NAME","arguments":{}}"#;

#[tokio::test]
async fn tools_answer_fail_and_panic_one_by_one() {
    let call = |name: &str| CALL.replace("NAME", name);
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let check = |reply: Value, is_error: bool, said: &str| {
        assert_eq!((&reply["type"], &reply["id"]), (&json!("host_tool_result"), &json!("7")));
        assert_eq!((reply["isError"] == true, &reply["result"]), (is_error, &text(said)));
    };
    check(repeats(|builder| builder, &call("try")).await, false, "done");
    let bad = |builder: Builder| {
        let fails = HostTool::new("fails", "Fails", json!({}), async |_, _| Err::<String, _>("no such city"));
        let panics =
            HostTool::new("panics", "Panics", json!({}), async |_, _| -> Result<String, String> { panic!("oh") });
        builder.tool(fails).tool(panics)
    };
    check(repeats(bad, &call("fails")).await, true, "no such city");
    check(repeats(bad, &call("panics")).await, true, "host tool panics panicked");
    check(repeats(bad, &call("other")).await, true, "there is no host tool other");
}

#[tokio::test]
async fn dialogs_are_answered_in_the_words_of_the_wire() {
    let confirm = r#"{"type":"extension_ui_request","id":"d","method":"confirm","title":"a","message":"b"}"#;
    let input = r#"{"type":"extension_ui_request","id":"d","method":"input","title":"a"}"#;
    let check = |mut reply: Value, expected: Value| {
        let members = reply.as_object_mut().expect("an object");
        members.retain(|name, _| name != "type" && name != "id");
        assert_eq!(reply, expected);
    };
    check(repeats(|builder| builder.dialog(async |_| true), confirm).await, json!({"confirmed": true}));
    check(repeats(|builder| builder.dialog(async |_| "Ada"), input).await, json!({"value": "Ada"}));
    check(repeats(|builder| builder.dialog(async |_| None::<&str>), input).await, json!({"cancelled": true}));
    check(repeats(|builder| builder, input).await, json!({"cancelled": true}));
    let panics = |builder: Builder| builder.dialog(async |_| -> UiAnswer { panic!("oh") });
    check(repeats(panics, confirm).await, json!({"cancelled": true}));
}
