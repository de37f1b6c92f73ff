//! What happens to programs between calls, and what they may ask at any time.

use std::sync::Arc;

use pith_agent::{Hints, Tool, ToolContext, ToolOutput};
use pith_mcp::{State, Wanted};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, entry, program, text};

#[tokio::test]
async fn an_unused_server_ends_and_the_next_call_starts_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut idle = entry(directory.path(), "plain");
    // Minutes.
    idle["idleTimeout"] = json!(0.0005);
    let bench = Bench::in_directory(directory, json!({ "s": idle }));
    bench.connect().await;
    bench.wait(|bench| bench.state() == State::Idle).await;
    bench.wait(|bench| bench.log().contains("ended")).await;
    assert_eq!(text(&bench.call("echo", json!({})).await), "{}");
    bench.servers.close().await;
}

#[tokio::test]
async fn a_server_that_ends_by_itself_is_idle() {
    let bench = Bench::with("plain");
    bench.connect().await;
    assert_eq!(text(&bench.call("leave", json!({})).await), "bye");
    bench.wait(|bench| bench.state() == State::Idle).await;
    assert_eq!(bench.error(), "");
    assert_eq!(text(&bench.call("echo", json!({})).await), "{}");
    assert_eq!(bench.servers.shown()[0].restarts, 1);
    bench.servers.close().await;
}

#[tokio::test]
async fn what_servers_ask_is_answered_or_refused() {
    let bench = Bench::with("plain");
    bench.connect().await;
    let asked = async |method: &str| -> Value {
        let output = bench.call("request", json!({ "text": method })).await;
        serde_json::from_str(text(&output)).expect("an answer")
    };
    assert_eq!(asked("ping").await, json!({}));
    let roots = asked("roots/list").await;
    let own = format!("file://{}", bench.directory.path().display());
    assert_eq!((&roots["roots"][0]["uri"], &roots["roots"][1]["name"]), (&json!(own), &json!("more things")));
    assert_eq!(roots["roots"][1]["uri"], "file:///srv/more%20things");
    assert_eq!(asked("tasks/list").await["code"], -32601);
    assert_eq!(asked("made/up").await["code"], -32601);
    let greeting = bench.log();
    assert!(greeting.contains(r#""roots":{"listChanged":false}"#), "no change is promised: {greeting}");
    bench.servers.close().await;
}

#[tokio::test]
async fn a_tool_that_the_server_has_no_longer_is_named() {
    let bench = Bench::with("forgets");
    bench.connect().await;
    let tool = bench.tool("mcp__s__once");
    bench.servers.find("s").expect("configured").stop().await;
    let output = call(&tool, json!({}), CancellationToken::new(), |_| {}).await;
    assert_eq!((text(&output), output.is_error), ("once is no longer offered by s", true));
    assert!(!bench.log().contains("tools/call"), "{}", bench.log());
    bench.servers.close().await;
}

async fn call(
    tool: &Arc<dyn Tool>,
    arguments: Value,
    cancel: CancellationToken,
    update: impl Fn(ToolOutput) + Send + Sync + 'static,
) -> ToolOutput {
    let context = ToolContext { call_id: "1".into(), cancel, update: Arc::new(update), trace: None };
    let arguments: Map<String, Value> = arguments.as_object().expect("an object").clone();
    tool.clone().run(arguments, context).await
}

#[tokio::test]
async fn eight_calls_run_side_by_side_and_others_wait() {
    let bench = Bench::with("plain");
    bench.connect().await;
    let tool = bench.tool("mcp__s__slow");
    let (begun, mut updates) = mpsc::unbounded_channel();
    let cancels: Vec<CancellationToken> = (0..9).map(|_| CancellationToken::new()).collect();
    let mut calls = Vec::new();
    for cancel in &cancels {
        let (tool, cancel, begun) = (tool.clone(), cancel.clone(), begun.clone());
        calls.push(tokio::spawn(async move {
            call(&tool, json!({}), cancel, move |_| begun.send(()).expect("the test listens")).await
        }));
    }
    for _ in 0..8 {
        updates.recv().await.expect("a call has begun");
    }
    assert_eq!(bench.servers.shown()[0].calls, 8);
    cancels[0].cancel();
    updates.recv().await.expect("the ninth has begun");
    assert_eq!(bench.servers.shown()[0].calls, 9);
    cancels.iter().for_each(CancellationToken::cancel);
    for call in calls {
        assert_eq!(text(&call.await.expect("no panic")), "Operation aborted");
    }
    bench.servers.close().await;
}

#[tokio::test]
async fn arguments_keep_their_order_and_numbers_of_64_bits_their_value() {
    let bench = Bench::with("plain");
    bench.connect().await;
    let written = r#"{"b":1.0,"a":1,"big":18446744073709551615,"fine":0.30000000000000004}"#;
    bench.call("echo", serde_json::from_str(written).expect("JSON")).await;
    assert!(bench.log().contains(&format!(r#""arguments":{written}"#)), "{}", bench.log());
    bench.servers.close().await;
}

#[tokio::test]
async fn a_server_of_the_newer_era_may_ask_ten_times() {
    let bench = Bench::with("modern-curious");
    bench.connect().await;
    let output = bench.call("ask", json!({})).await;
    assert_eq!((text(&output), output.is_error), ("s: asked for more input more than 10 times", true));
    assert_eq!(bench.log().matches("\"tools/call\"").count(), 11);
    bench.servers.close().await;
}

#[tokio::test]
async fn a_server_of_the_project_is_believed_nothing_and_runs_no_command_for_a_value() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut plain = entry(directory.path(), "plain");
    plain["approveTools"] = json!(["*"]);
    let mut curious = entry(directory.path(), "plain");
    curious["env"] = json!({"KEY": "!touch touched; echo value"});
    let file = json!({"mcpServers": {"p": plain, "q": curious}});
    std::fs::write(directory.path().join(".mcp.json"), file.to_string()).expect("written");
    let bench = Bench::in_directory(directory, json!({}));
    bench.connect().await;
    let hints = bench.tool("mcp__p__echo").origin().expect("of a server").hints;
    assert_eq!(hints, Hints { is_read_only: false, is_destructive: true, is_approved: false });
    assert_eq!(bench.servers.instructions(), []);
    let error = bench.servers.find("q").expect("configured").snapshot().error.unwrap_or_default();
    assert!(error.contains("files of a project may do that only with --approve"), "{error}");
    assert!(!bench.directory.path().join("touched").exists());
    bench.servers.close().await;
}

#[tokio::test]
async fn a_path_may_begin_at_home() {
    let directory = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink(program(), directory.path().join("linked")).expect("linked");
    std::fs::create_dir(directory.path().join("below")).expect("made");
    let server = json!({"command": "~/linked", "args": ["plain", "~/log"], "cwd": "~/below"});
    let bench = Bench::in_directory(directory, json!({ "s": server }));
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    assert!(bench.log().contains("initialize"));
    bench.servers.close().await;
}

#[tokio::test]
async fn a_program_is_found_in_the_path_of_its_entry() {
    let directory = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink(program(), directory.path().join("only-there")).expect("linked");
    let env = json!({"PATH": directory.path()});
    let bench = Bench::in_directory(directory, json!({"s": {"command": "only-there", "env": env}}));
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    bench.servers.close().await;
}

#[tokio::test]
async fn a_server_that_somebody_ends_while_it_starts_is_not_started_again() {
    let bench = Bench::with("silent");
    let server = bench.servers.find("s").expect("configured");
    let starting = tokio::spawn({
        let server = server.clone();
        async move { server.connect(Wanted::Asked).await.map(drop) }
    });
    bench.wait(|bench| bench.state() == State::Starting).await;
    server.stop().await;
    let failure = starting.await.expect("no panic").expect_err("it was ended");
    assert_eq!(failure.why, "ended before it could be used");
    assert_eq!((bench.state(), server.snapshot().n_restarts), (State::Idle, 0));
    bench.servers.close().await;
}

#[tokio::test]
async fn a_server_that_dies_while_it_lists_its_tools_is_started_once_more() {
    for (behaviour, state, error) in
        [("stumbles", State::Ready, ""), ("falls", State::Failed, "its tools cannot be listed: ended with exit code 7")]
    {
        let bench = Bench::with(behaviour);
        bench.connect().await;
        assert_eq!((bench.state(), &*bench.error()), (state, error), "{behaviour}");
        assert_eq!(bench.log().matches("\"initialize\"").count(), 2, "{behaviour}");
        assert_eq!(bench.servers.find("s").expect("configured").snapshot().n_restarts, 1, "{behaviour}");
        bench.servers.close().await;
    }
}

#[tokio::test]
async fn a_server_that_never_lists_its_tools_fails_after_its_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut listless = entry(directory.path(), "listless");
    listless["requestTimeoutMs"] = json!(3_600_000);
    listless["startupTimeoutMs"] = json!(2000);
    let bench = Bench::in_directory(directory, json!({ "s": listless }));
    bench.connect().await;
    assert_eq!(bench.state(), State::Failed);
    // On a slow machine even the handshake may take longer.
    let errors = ["its tools cannot be listed within 2 s", "did not answer within 2 s"];
    assert!(errors.contains(&&*bench.error()), "{}", bench.error());
    bench.servers.close().await;
}
