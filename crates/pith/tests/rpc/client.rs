//! The Rust client as a host: what pith and `pith-client` promise each other.

use std::path::Path;
use std::time::Duration;

use pith_client::protocol::Event;
use pith_client::protocol::answers::{Accept, Client, Disposition};
use pith_client::protocol::commands::{
    Bash, Fork, GetForkMessages, GetLastAssistantText, GetMessages, GetState, Hello, SetModel,
};
use pith_client::protocol::host::UiMethod;
use pith_client::protocol::{ErrorCode, StreamUpdates};
use pith_client::{Builder, Error, Events, HostTool, Pith, Told};
use pith_testkit::{TempHome, process, timeout};
use serde_json::{Map, json};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/script.json");

const ASKS: &str = r#"export default (pi) => pi.registerCommand("ask", { handler: async (_, ctx) => {
  const name = await ctx.ui.input("Name?", "somebody");
  const sure = await ctx.ui.confirm("Sure?", "Really");
  ctx.ui.notify(`${name} ${sure}`);
} });"#;

fn builder(home: &TempHome) -> Builder {
    let builder = Pith::builder().program(env!("CARGO_BIN_EXE_pith")).arguments(["--script", SCRIPT]);
    let builder = builder.cwd(home.work()).env_clear();
    home.environment().into_iter().fold(builder, |builder, (name, value)| builder.env(name, value))
}

async fn start(home: &TempHome) -> Pith {
    builder(home).spawn().await.expect("pith starts")
}

fn weather(call: impl Fn(&str) -> Result<String, String> + Send + Sync + Clone + 'static) -> HostTool {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    HostTool::new("weather", "Tells the weather", parameters, move |arguments, context| {
        let call = call.clone();
        async move {
            context.update("looking");
            call(arguments["city"].as_str().unwrap_or_default())
        }
    })
}

/// Starts an answer that takes long, and waits until it grows.
async fn long_run(pith: &Pith) -> Events {
    let mut events = pith.listen();
    pith.prompt("a long one").await.expect("accepted");
    events.wait("message_update").await.expect("it grows");
    events
}

fn settled(told: Told) -> Option<bool> {
    match told {
        Told::Event(Event::AgentSettled { aborted, .. }) => Some(aborted),
        _ => None,
    }
}

#[tokio::test]
async fn a_prompt_gives_its_frames_and_ends() {
    let home = TempHome::new();
    let pith = start(&home).await;
    let mut run = pith.run("hello").await.expect("accepted");
    let (mut kinds, mut text) = (Vec::new(), String::new());
    while let Some(told) = run.next().await.expect("pith lives") {
        kinds.push(told.kind().to_owned());
        text.push_str(told.text_delta().unwrap_or_default());
        assert!(!matches!(told, Told::Other(_)), "every frame has a type: {told:?}");
    }
    assert_eq!(
        (kinds.first().map(String::as_str), kinds.last().map(String::as_str)),
        (Some("agent_start"), Some("agent_settled"))
    );
    assert_eq!(text, "You said: hello");
    assert_eq!(pith.call(GetLastAssistantText {}).await.expect("answered").text.as_deref(), Some("You said: hello"));
    assert_eq!(pith.close().await.and_then(|status| status.code()), Some(0));
}

#[tokio::test]
async fn a_refused_command_is_an_error_and_the_next_one_works() {
    let home = TempHome::new();
    let pith = start(&home).await;
    let refused = pith.call(SetModel { provider: "nobody".into(), model_id: "nothing".into() }).await;
    let Err(Error::Failed(failed)) = refused else { panic!("{refused:?}") };
    assert_eq!((failed.command.as_str(), failed.known_code()), ("set_model", Some(ErrorCode::ModelNotFound)));
    assert!(failed.error.contains("nobody/nothing"), "{failed}");
    let unknown = pith.ask("dance", Map::new()).await;
    assert!(matches!(&unknown, Err(Error::Failed(failed)) if failed.known_code() == Some(ErrorCode::UnknownCommand)));
    assert!(!pith.call(GetState {}).await.expect("answered").is_streaming);
}

#[tokio::test]
async fn an_unknown_command_of_the_other_dialect_is_answered_too() {
    let home = TempHome::new();
    let pith = builder(&home).arguments(["--dialect", "xcsh"]).spawn().await.expect("pith starts");
    let mut events = pith.listen();
    assert!(matches!(pith.ask("dance", Map::new()).await, Err(Error::Failed(_))));
    assert!(matches!(events.next().await, Some(Told::Ready(_))));
}

#[tokio::test]
async fn steering_joins_a_run_and_abort_ends_it() {
    let home = TempHome::new();
    let pith = start(&home).await;
    let mut events = long_run(&pith).await;
    assert_eq!(pith.steer("shorter").await.expect("accepted").disposition, Disposition::Queued);
    let queue = events.wait("queue_update").await.expect("told");
    assert!(matches!(queue, Told::Event(Event::QueueUpdate { steering, .. }) if *steering == ["shorter"]));
    pith.abort().await.expect("answered");
    assert!(events.find(settled).await.expect("it settles"));
}

#[tokio::test]
async fn the_model_calls_tools_of_the_host() {
    let home = TempHome::new();
    let pith = builder(&home).tool(weather(|city| Ok(format!("4 degrees in {city}")))).spawn().await.expect("starts");
    let text = pith.run("how is the weather?").await.expect("accepted").text().await.expect("an answer");
    assert_eq!(text, "It is cold in Oslo.");
    let failing = builder(&home).tool(weather(|_| Err("no such city".into()))).spawn().await.expect("starts");
    let text = failing.run("how is the weather?").await.expect("accepted").text().await.expect("an answer");
    assert_eq!(text, "The tool failed.");
}

#[tokio::test]
async fn a_withdrawn_call_drops_its_future() {
    /// Says when it is dropped.
    struct Guard(tokio::sync::mpsc::UnboundedSender<()>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.send(()).ok();
        }
    }
    let home = TempHome::new();
    let (dropped, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let endless = HostTool::new("weather", "Tells the weather", json!({"type": "object"}), move |_, context| {
        let guard = Guard(dropped.clone());
        async move {
            context.update("looking");
            std::future::pending::<()>().await;
            drop(guard);
            Ok::<_, String>("never")
        }
    });
    let pith = builder(&home).tool(endless).spawn().await.expect("starts");
    let mut events = pith.listen();
    pith.prompt("how is the weather?").await.expect("accepted");
    events.wait("tool_execution_update").await.expect("it runs");
    pith.abort().await.expect("answered");
    heard.recv().await.expect("the future was dropped");
}

#[tokio::test]
async fn dialogs_are_answered() {
    let home = TempHome::new();
    home.write_file("asks.ts", ASKS);
    let dialog = async |request: pith_client::protocol::host::UiRequest| match request.method {
        UiMethod::Input { .. } => pith_client::protocol::host::UiAnswer::from("Ada"),
        _ => true.into(),
    };
    let pith = builder(&home).arguments(["-e", "asks.ts"]).dialog(dialog).spawn().await.expect("starts");
    let mut events = pith.listen();
    let mut run = pith.run("/ask").await.expect("accepted");
    assert!(run.next().await.expect("pith lives").is_none(), "an extension has dealt with it");
    let notified = |told| match told {
        Told::UiRequest(request) => match request.method {
            UiMethod::Notify { message, .. } => Some(message),
            _ => None,
        },
        _ => None,
    };
    assert_eq!(events.find(notified).await.expect("told"), "Ada true");
}

#[tokio::test]
async fn sessions_fork_and_resume() {
    let home = TempHome::new();
    let pith = start(&home).await;
    for text in ["one", "two"] {
        pith.run(text).await.expect("accepted").text().await.expect("an answer");
    }
    let messages = pith.call(GetForkMessages {}).await.expect("answered").messages;
    let forked = pith.call(Fork { entry_id: messages[1].entry_id.clone(), restore_files: None }).await.expect("forked");
    assert_eq!((forked.text.as_deref(), forked.cancelled), (Some("two"), false));
    assert_eq!(pith.call(GetMessages {}).await.expect("answered").messages.len(), 2);
    pith.run("three").await.expect("accepted").text().await.expect("an answer");
    let path = pith.call(GetState {}).await.expect("answered").session_file.expect("a file");
    pith.close().await;
    let again = builder(&home).arguments(["--session", &path]).spawn().await.expect("starts");
    assert_eq!(again.call(GetLastAssistantText {}).await.expect("answered").text.as_deref(), Some("You said: three"));
}

#[tokio::test]
async fn hello_may_come_late_and_twice() {
    let home = TempHome::new();
    let pith = start(&home).await;
    pith.run("hello").await.expect("accepted").text().await.expect("an answer");
    let client = || Client { name: Some("test".into()), version: Some("1".into()) };
    let accept =
        Accept { settled_when_handled: None, stream_updates: Some(StreamUpdates::Delta), permission_request: None };
    let greeting = pith.hello(client(), accept).await.expect("answered");
    assert_eq!((greeting.server.name.as_str(), greeting.dialect.as_str()), ("pith", "pi"));
    assert_eq!(greeting.accepted, ["streamUpdates"]);
    let mut events = long_run(&pith).await;
    let again = pith.call(Hello { client: None, accept: None }).await.expect("answered in a run too");
    assert_eq!(again.protocol_version, greeting.protocol_version);
    pith.abort().await.expect("answered");
    events.find(settled).await.expect("it settles");
}

#[tokio::test]
async fn a_pith_that_is_killed_fails_what_waits() {
    let home = TempHome::new();
    let pith = start(&home).await;
    let mut events = long_run(&pith).await;
    let pid = rustix::process::Pid::from_raw(pith.pid().expect("a process").cast_signed()).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("ours");
    let Err(Error::Exited(exited)) = events.find(settled).await else { panic!("an end") };
    assert_eq!(exited.status.and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status)), Some(9));
    assert!(matches!(pith.call(GetState {}).await, Err(Error::Exited(_))));
}

#[tokio::test]
async fn a_pith_that_refuses_to_start_says_why() {
    let home = TempHome::new();
    let pith =
        builder(&home).arguments(["--script", "/nowhere/script.json"]).spawn().await.expect("the process starts");
    let Err(Error::Exited(exited)) = pith.call(GetState {}).await else { panic!("an end") };
    assert!(exited.stderr.contains("/nowhere/script.json"), "{exited}");
}

#[tokio::test]
async fn a_second_client_on_a_running_session_is_refused() {
    let home = TempHome::new();
    let first = start(&home).await;
    first.run("hello").await.expect("accepted").text().await.expect("an answer");
    let path = first.call(GetState {}).await.expect("answered").session_file.expect("a file");
    let _events = long_run(&first).await;
    let second = builder(&home).arguments(["--session", &path]).spawn().await.expect("the process starts");
    let Err(Error::Exited(exited)) = second.prompt("me too").await else { panic!("an end") };
    assert!(exited.stderr.contains("in use by another process"), "{exited}");
    first.abort().await.expect("the first one goes on");
}

#[tokio::test]
async fn a_dropped_client_leaves_nothing_running() {
    let home = TempHome::new();
    let mark = home.work().join("mark").display().to_string();
    let pith = builder(&home).env("PITH_TEST_MARK", &mark).spawn().await.expect("starts");
    let shell = pith.call(Bash { command: "echo there > mark; sleep 1000".into(), exclude_from_context: None });
    // Until the shell command runs; its answer never comes.
    let is_there = async {
        while !Path::new(&mark).exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        answer = shell => panic!("{answer:?}"),
        () = is_there => {}
    }
    assert!(process::with_marker(&mark).len() >= 2, "pith and what it runs");
    drop(pith);
    tokio::task::spawn_blocking(move || process::no_process_with(&mark, timeout())).await.expect("all ended");
}
