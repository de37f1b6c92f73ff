//! Servers that are programs, and whatever they do wrong.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pith_agent::{ArgumentSchema, Hints, ToolContext};
use pith_mcp::{State, Wanted};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, entry, program, text};

/// The test server has resources, so there are tools for them.
const RESOURCE_TOOLS: usize = 3;

#[tokio::test]
async fn a_server_is_started_by_its_first_call_once_its_tools_are_known() {
    let bench = Bench::with("plain");
    assert!(bench.servers.tools().is_empty());
    bench.servers.begin_work(Vec::new).expect("the tools are not known").await;
    assert_eq!(bench.state(), State::Ready);
    assert_eq!(bench.servers.tools().len(), 13 + RESOURCE_TOOLS);
    let shown = bench.servers.shown().remove(0);
    assert_eq!(shown.server_info.expect("named").name, "test");
    assert_eq!(shown.protocol_version.as_deref(), Some("2025-11-25"));
    bench.servers.find("s").expect("configured").stop().await;
    assert_eq!(bench.state(), State::Idle);
    // Another session of the same configuration knows the tools from the cache.
    let servers = json!({ "s": entry(bench.directory.path(), "plain") });
    let cached = Bench::sharing(bench.directory.clone(), servers, None, None, None);
    assert!(cached.servers.begin_work(Vec::new).is_none());
    assert_eq!((cached.servers.tools().len(), cached.state()), (13 + RESOURCE_TOOLS, State::Idle));
    let output = cached.call("echo", json!({"text": "hi"})).await;
    assert_eq!((text(&output), output.is_error), (r#"{"text":"hi"}"#, false));
    assert_eq!(output.details.expect("details")["server"], "s");
    assert_eq!(cached.state(), State::Ready);
    cached.servers.close().await;
    bench.servers.close().await;
}

/// The same servers in another session.
#[tokio::test]
async fn the_newer_era_is_spoken_where_the_older_is_refused() {
    let bench = Bench::with("modern");
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    assert_eq!(bench.servers.shown()[0].protocol_version.as_deref(), Some("2026-07-28"));
    assert_eq!(text(&bench.call("echo", json!({})).await), "{}");
    let call = bench.log().lines().find(|line| line.contains("tools/call")).expect("logged").to_owned();
    assert!(call.contains("io.modelcontextprotocol/protocolVersion"), "{call}");
    // The next time it is asked in the way that worked.
    bench.servers.find("s").expect("configured").stop().await;
    bench.connect().await;
    assert_eq!(bench.log().matches("\"initialize\"").count(), 1);
    bench.servers.close().await;
}

#[tokio::test]
async fn odd_servers_are_understood() {
    for behaviour in ["banner", "odd"] {
        let bench = Bench::with(behaviour);
        bench.connect().await;
        assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()), "{behaviour}");
        assert_eq!(text(&bench.call("echo", json!({"text": "x"})).await), r#"{"text":"x"}"#);
        let odd = bench.call("odd", json!({})).await;
        assert_eq!(text(&odd), r#"{"type":"hologram"}"#);
        assert_eq!(odd.content[1].as_text(), Some(r#"{"n":1}"#));
        bench.servers.close().await;
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_used_says_why() {
    let check = async |behaviour: &str, why: &str| {
        let bench = Bench::with(behaviour);
        bench.connect().await;
        assert_eq!(bench.state(), State::Failed, "{behaviour}");
        assert!(bench.error().starts_with(why), "{behaviour}: {}", bench.error());
        assert!(!bench.error().contains("secret-token"), "{}", bench.error());
        bench.servers.close().await;
    };
    check("dies", "ended with exit code 3; it wrote: cannot find the database at [redacted]").await;
    check("talks", "does not speak MCP").await;
    check("future", "speaks 2999-01-01, pith knows 2024-11-05, ").await;
    check("numbered", "speaks 7, pith knows 2024-11-05, ").await;
    check("versionless", "speaks no version, pith knows 2024-11-05, ").await;
    check("unlicensed", "refused the handshake: license expired (-32000)").await;
}

#[tokio::test]
async fn what_is_missing_before_the_start_is_named() {
    let check = async |entry: Value, state: State, why: &str| {
        let bench = Bench::new(json!({ "s": entry }));
        bench.connect().await;
        assert_eq!((bench.state(), bench.error().contains(why)), (state, true), "{}", bench.error());
    };
    check(json!({"command": "no-such-program-anywhere"}), State::Failed, "No such file").await;
    check(json!({"command": "/etc/passwd"}), State::Failed, "Permission denied").await;
    check(json!({"command": program(), "cwd": "none"}), State::Failed, "there is no directory").await;
    check(json!({"command": program(), "env": {"A": "${NOT_SET}"}}), State::Failed, "needs variable NOT_SET").await;
    check(json!({"command": program(), "args": ["${input:key}"]}), State::NeedsInput, "needs input key").await;
    check(
        json!({"command": program(), "env": {"A": "!true"}}),
        State::Failed,
        "the command for a value printed nothing",
    )
    .await;
    check(json!({"command": program(), "env": {"A": "!exit 3"}}), State::Failed, "the command for a value failed")
        .await;
    let long = json!({"command": program(), "env": {"A": "!yes"}});
    check(long, State::Failed, "the command for a value printed more than 64 KiB").await;
}

#[tokio::test]
async fn a_command_for_a_value_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("a directory");
    let pid = directory.path().join("pid");
    let command = format!("!sleep 1000 & echo $! > {}; echo value", pid.display());
    let bench = Bench::new(json!({"s": {"command": program(), "env": {"A": command}}}));
    bench.connect().await;
    assert_eq!(bench.state(), State::Ready, "{}", bench.error());
    let pid = std::fs::read_to_string(pid).expect("it has run");
    bench.wait(|_| !Path::new("/proc").join(pid.trim()).exists()).await;
    bench.servers.close().await;
}

#[tokio::test]
async fn a_silent_server_fails_after_its_time() {
    let bench = Bench::new(json!({"s": {"command": program(), "args": ["silent"], "startupTimeoutMs": 50}}));
    bench.connect().await;
    assert_eq!((bench.state(), &*bench.error()), (State::Failed, "did not answer within 0.05 s"));
    bench.servers.close().await;
}

#[tokio::test]
async fn a_failed_server_is_left_alone_until_somebody_asks() {
    let bench = Bench::with("dies");
    let server = bench.servers.find("s").expect("configured");
    assert!(server.connect(Wanted::Asked).await.is_err());
    let starts = server.snapshot().n_restarts;
    assert!(server.connect(Wanted::Used).await.is_err());
    assert_eq!(server.snapshot().n_restarts, starts, "too soon");
    assert!(server.connect(Wanted::Asked).await.is_err());
    assert_eq!(server.snapshot().n_restarts, starts + 1);
    bench.servers.close().await;
}

#[tokio::test]
async fn model_keys_and_other_secrets_do_not_reach_servers() {
    let bench = Bench::with("plain");
    bench.connect().await;
    let output = bench.call("environment", json!({})).await;
    let environment = text(&output);
    assert!(environment.contains("TOKEN=secret-token") && environment.contains("PATH="), "{environment}");
    assert!(!environment.contains("sk-secret") && !environment.contains("MY_SECRET"), "{environment}");
    bench.servers.close().await;
}

#[tokio::test]
async fn refusals_and_lost_servers_fail_one_call() {
    let bench = Bench::with("plain");
    bench.connect().await;
    let failed = async |tool: &str, why: &str| {
        let output = bench.call(tool, json!({})).await;
        assert!(output.is_error && text(&output).starts_with(why), "{tool}: {}", text(&output));
    };
    failed("fail", "s: bad arguments (-32602)").await;
    failed("die", "s: ended with exit code 7; it wrote: something went wrong").await;
    // The next call starts the server again.
    assert_eq!(text(&bench.call("echo", json!({})).await), "{}");
    assert_eq!(bench.state(), State::Ready);
    failed("flood", "s: sent a line longer than 16 MiB").await;
    assert_eq!(text(&bench.call("echo", json!({})).await), "{}");
    assert_eq!(bench.servers.shown()[0].restarts, 2);
    bench.servers.close().await;
}

#[tokio::test]
async fn an_abort_ends_the_call_at_once_and_the_server_hears_of_it() {
    let bench = Bench::with("plain");
    bench.connect().await;
    let cancel = CancellationToken::new();
    let updates: Arc<Mutex<Vec<String>>> = Arc::default();
    let (seen, on_progress) = (updates.clone(), cancel.clone());
    let context = ToolContext {
        call_id: "1".into(),
        cancel: cancel.clone(),
        update: Arc::new(move |output| {
            seen.lock().expect("no panic").push(text(&output).to_owned());
            on_progress.cancel();
        }),
        trace: None,
    };
    let output = bench.tool("mcp__s__slow").run(Map::new(), context).await;
    assert_eq!((text(&output), output.is_error), ("Operation aborted", true));
    assert_eq!(*updates.lock().expect("no panic"), ["1/4 working"]);
    // The server answers in order, so it has read the cancellation before this.
    assert_eq!(text(&bench.call("echo", json!({})).await), "{}");
    let log = bench.log();
    assert!(log.contains("notifications/cancelled") && log.contains("the user aborted the call"), "{log}");
    bench.servers.close().await;
}

#[tokio::test]
async fn a_call_without_answer_times_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut slow = entry(directory.path(), "plain");
    slow["requestTimeoutMs"] = json!(300);
    let bench = Bench::in_directory(directory, json!({ "s": slow }));
    bench.connect().await;
    if bench.state() != State::Ready {
        // The list took longer than the timeout on a loaded machine; that is the same behaviour.
        assert!(bench.error().contains("no answer within 0.3 s"), "{}", bench.error());
        return;
    }
    let output = bench.call("slow", json!({})).await;
    assert_eq!(text(&output), "s: no answer within 0.3 s");
    bench.servers.close().await;
}

#[tokio::test]
async fn all_pages_of_a_list_are_read_and_a_circle_ends() {
    let bench = Bench::with("many");
    bench.connect().await;
    assert_eq!(bench.servers.tools().len(), 500 + RESOURCE_TOOLS);
    bench.servers.close().await;
    for (behaviour, n_pages) in [("circular", 2), ("endless", 200)] {
        let bench = Bench::with(behaviour);
        bench.connect().await;
        assert_eq!(bench.servers.tools().len(), n_pages + RESOURCE_TOOLS, "{behaviour}");
        bench.servers.close().await;
    }
}

#[tokio::test]
async fn changed_lists_are_asked_for_again_in_both_eras() {
    for behaviour in ["grows", "modern-grows"] {
        let bench = Bench::with(behaviour);
        bench.connect().await;
        while behaviour == "modern-grows" && !bench.log().contains("subscriptions/listen") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let (n_tools, version) = (bench.servers.tools().len(), bench.servers.version());
        bench.call("grow", json!({})).await;
        while bench.servers.version() == version {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(bench.servers.tools().len(), n_tools + 1, "{behaviour}");
        bench.servers.close().await;
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_server_that_ignores_its_end() {
    let bench = Bench::with("stubborn");
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    let child = bench.log();
    let alive = |pid: &str| Path::new("/proc").join(pid.trim()).join("cmdline").exists();
    assert!(!cfg!(target_os = "linux") || alive(&child), "child {child:?}");
    bench.servers.close().await;
    assert!(!alive(&child), "child {child:?}");
}

#[tokio::test]
async fn unchanged_servers_of_a_host_stay_and_others_end() {
    let bench = Bench::with("plain");
    bench.connect().await;
    let kept = json!({"s": entry(bench.directory.path(), "plain"), "t": {"command": "x", "enabled": false}});
    bench.servers.set_host(kept.as_object().expect("an object")).expect("usable");
    let states: Vec<_> = bench.servers.states().into_iter().map(|server| (server.name, server.state)).collect();
    assert_eq!(states, [("s".to_owned(), "ready".to_owned()), ("t".to_owned(), "disabled".to_owned())]);
    let refused = json!({"s": {}});
    assert!(bench.servers.set_host(refused.as_object().expect("an object")).is_err());
    assert_eq!(bench.state(), State::Ready);
    bench.servers.find("s").expect("configured").set_enabled(false).await;
    assert_eq!((bench.state(), bench.servers.tools().len()), (State::Disabled, 0));
    bench.servers.set_host(&Map::new()).expect("usable");
    assert!(bench.servers.states().is_empty());
    bench.servers.close().await;
}

#[tokio::test]
async fn bad_tools_are_reported_and_left_out() {
    let bench = Bench::with("plain");
    bench.connect().await;
    let found: Vec<_> = bench.servers.diagnostics().into_iter().map(|found| (found.code, found.message)).collect();
    let message = "server \"s\": tool \"broken\" is left out: its input schema refers to https://example.com/x, which \
                   is not in it";
    assert_eq!(found, [("mcp_schema", message.to_owned())]);
    bench.servers.close().await;
}

#[tokio::test]
async fn a_server_that_is_kept_alive_is_started_again_when_it_leaves_two_pings_unanswered() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut mute = entry(directory.path(), "mute");
    mute["lifecycle"] = json!("keep-alive");
    let bench = Bench::in_directory(directory, json!({ "s": mute }));
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    let server = bench.servers.find("s").expect("configured");
    // Nothing but these pauses happens in the minutes that pass here.
    tokio::time::pause();
    while server.snapshot().n_restarts == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::resume();
    assert!(server.connect(Wanted::Used).await.is_ok());
    assert_eq!(bench.log().matches("\"ping\"").count(), 2);
    bench.servers.close().await;
}

#[tokio::test]
async fn eager_servers_start_by_themselves_and_others_do_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut eager, lazy) = (entry(directory.path(), "plain"), entry(directory.path(), "plain"));
    eager["lifecycle"] = json!("eager");
    let bench = Bench::in_directory(directory, json!({ "s": eager, "t": lazy }));
    bench.servers.start_eager();
    let server = bench.servers.find("s").expect("configured");
    assert!(server.connect(Wanted::Used).await.is_ok());
    let starts: Vec<_> = bench.servers.states().into_iter().map(|server| (server.name, server.state)).collect();
    assert_eq!(starts, [("s".to_owned(), "ready".to_owned()), ("t".to_owned(), "idle".to_owned())]);
    bench.servers.close().await;
}

#[tokio::test]
async fn a_log_is_kept_without_secrets() {
    let bench = Bench::with("plain");
    bench.connect().await;
    // The request for the level follows the start.
    while !bench.servers.find("s").expect("configured").remarks().iter().any(|line| line.contains("db")) {
        tokio::task::yield_now().await;
    }
    let remarks = bench.servers.find("s").expect("configured").remarks();
    assert_eq!(remarks, [r#"[warning] db: {"slow":"[redacted]"}"#]);
    assert!(bench.log().contains(r#""level":"warning""#), "{}", bench.log());
    bench.servers.close().await;
}

#[tokio::test]
async fn arguments_and_results_are_checked_against_the_schemas_of_the_server() {
    let bench = Bench::with("plain");
    bench.connect().await;
    let tool = bench.tool("mcp__s__typed");
    let schema = ArgumentSchema::of(&*tool);
    let check = |arguments: Value| schema.check("typed", arguments.as_object().expect("an object"));
    // The model is told less: alternatives are merged, so both seem possible.
    assert_eq!(tool.spec().parameters["properties"]["b"], json!({"type": "integer", "maximum": 3}));
    assert!(tool.spec().parameters.get("oneOf").is_none());
    assert!(check(json!({"a": 1, "b": 2})).is_err() && check(json!({"b": 4})).is_err());
    let given = check(json!({"b": null, "a": 1})).expect("an optional property that is null is left out");
    assert_eq!(Value::Object(given), json!({"a": 1}));
    let problems = || bench.servers.find("s").expect("configured").snapshot().problems;
    let before = problems().len();
    assert_eq!(text(&bench.call("typed", json!({"a": 1})).await), r#"{"n":1}"#);
    assert_eq!(problems().len(), before);
    let output = bench.call("typed", json!({"a": "one"})).await;
    assert_eq!((text(&output), output.is_error), (r#"{"n":"one"}"#, false));
    let noted = problems().pop().expect("noted");
    assert!(noted.starts_with("tool \"typed\": structuredContent does not fit its outputSchema: n: "), "{noted}");
    bench.servers.close().await;
}

#[tokio::test]
async fn schemas_that_would_take_for_ever_are_not_checked_against() {
    let bench = Bench::with("multiplies");
    bench.connect().await;
    let tool = bench.tool("mcp__s__typed");
    let arguments = json!({"a": 1});
    assert!(ArgumentSchema::of(&*tool).check("typed", arguments.as_object().expect("an object")).is_ok());
    assert_eq!(text(&bench.call("typed", arguments).await), r#"{"n":1}"#);
    let unchecked = |what: &str| format!("tool \"typed\": checking {what} would take too long");
    let expected =
        [unchecked("its arguments against its inputSchema"), unchecked("structuredContent against its outputSchema")];
    assert_eq!(bench.servers.find("s").expect("configured").snapshot().problems, expected);
    bench.servers.close().await;
}

#[tokio::test]
async fn what_an_approval_goes_by_is_known_of_every_tool() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = entry(directory.path(), "plain");
    server["approveTools"] = json!(["ec*"]);
    let bench = Bench::in_directory(directory, json!({ "s": server }));
    bench.connect().await;
    let hints = |tool: &str| bench.tool(tool).origin().expect("of a server").hints;
    let expected = Hints { is_read_only: true, is_destructive: false, is_approved: true };
    assert_eq!(hints("mcp__s__echo"), expected);
    let expected = Hints { is_read_only: false, is_destructive: false, is_approved: false };
    assert_eq!(hints("mcp__s__typed"), expected);
    bench.servers.close().await;
}
