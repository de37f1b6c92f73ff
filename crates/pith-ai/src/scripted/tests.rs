use super::*;
use crate::client::{ClientOptions, Providers};
use crate::credentials::{CredentialSource, Credentials};
use crate::testing::{call, result, user};
use futures_util::future::BoxFuture;
use pith_agent::ModelClient;
use pith_protocol::AssistantMessage;
use serde_json::json;
use tokio_util::sync::CancellationToken;

struct NoKeys;

impl CredentialSource for NoKeys {
    fn credentials<'a>(&'a self, _: &'a Model) -> BoxFuture<'a, Result<Credentials, String>> {
        Box::pin(async { Err("a scripted model needs no key".to_owned()) })
    }
}

fn player(script: &str) -> Providers {
    let scripts = Scripts::of(Script::parse(script).expect("a script"));
    Providers::with_scripts(Arc::new(NoKeys), ClientOptions::default(), scripts)
}

fn question(messages: Vec<Message>) -> LlmCall {
    call(model("script"), messages)
}

async fn events(providers: &Providers, call: LlmCall) -> (Vec<AssistantEvent>, AssistantMessage) {
    let mut receiver = providers.stream(call, CancellationToken::new());
    let mut events = Vec::new();
    while let Some(event) = receiver.recv().await {
        events.push(event);
    }
    match events.pop() {
        Some(AssistantEvent::End(message)) => (events, *message),
        other => panic!("the last event is {other:?}"),
    }
}

async fn answer(providers: &Providers) -> AssistantMessage {
    events(providers, question(vec![user("hi")])).await.1
}

fn shown(message: &AssistantMessage) -> String {
    let text: String = message.content.iter().filter_map(|block| block.as_text()).collect();
    message.error_message.clone().unwrap_or(text)
}

#[tokio::test]
async fn turns_follow_each_other() {
    for (after, expected) in [("default", "a b b (end)"), ("repeat", "a b b b"), ("loop", "a b b a")] {
        let script = json!({"turns":[{"text":"a"},{"text":"b","times":2}],"after":after,"default":{"text":"(end)"}});
        let player = player(&script.to_string());
        let mut texts = Vec::new();
        for _ in 0..4 {
            texts.push(shown(&answer(&player).await));
        }
        assert_eq!(texts.join(" "), expected, "{after}");
    }
}

#[tokio::test]
async fn blocks_arrive_in_whole_characters() {
    let script = json!({"turns":[{"chunk":2,"usage":{"input":7},"blocks":[
        {"type":"thinking","text":"hm"},{"type":"text","text":"aé€😀b"},
        {"type":"toolCall","name":"ls","args":{"path":"."}},{"type":"text","text":""}]}]});
    let (events, message) = events(&player(&script.to_string()), question(vec![user("x")])).await;
    let deltas: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            AssistantEvent::TextDelta { delta, .. } => Some(delta.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(deltas, ["aé", "€😀", "b"]);
    assert!(matches!(events[0], AssistantEvent::Start(_)));
    assert_eq!((message.stop_reason, message.usage.input, message.usage.output), (StopReason::ToolUse, 7, 20));
    let call = message.tool_calls().next().expect("a call");
    assert_eq!((call.id.as_str(), call.arguments["path"].as_str()), ("call_t0b2", Some(".")));
    assert_eq!((message.api.as_str(), message.provider.as_str()), ("scripted", "scripted"));
}

#[tokio::test]
async fn routes_look_at_the_newest_messages() {
    let script = json!({"turns":[{"text":"main"}],"after":"repeat","routes":[
        {"match":"summar","turns":[{"text":"S1"},{"text":"S2"}]},
        {"match":"\"role\":\"user\"","previous":"toolResult","turns":[{"text":"steered: ${prompt}"}]}]});
    let player = player(&script.to_string());
    let ask = async |messages| shown(&events(&player, question(messages)).await.1);
    assert_eq!(ask(vec![user("please summarise")]).await, "S1");
    assert_eq!(ask(vec![user("hello")]).await, "main");
    assert_eq!(ask(vec![user("a summary")]).await, "S2");
    assert_eq!(ask(vec![result("c", "ok"), user("turn left")]).await, "steered: turn left");
    assert_eq!(ask(vec![user("hello"), result("c", "ok")]).await, "main");
}

#[tokio::test]
async fn faults() {
    let fault = async |fault: serde_json::Value| {
        let script = json!({"turns":[{"chunk":1,"text":"abcdef","fault":fault}]});
        answer(&player(&script.to_string())).await
    };
    let message = fault(json!({"kind":"error","status":429,"body":"slow down","headers":{"Retry-After":"3"}})).await;
    let failure = message.error.clone().expect("a failure");
    assert_eq!((shown(&message).as_str(), message.content.len()), ("429 slow down", 0));
    assert_eq!((failure.kind, failure.status, failure.retry_after_ms), (ErrorKind::RateLimit, Some(429), Some(3000)));

    let message = fault(json!({"kind":"error_event","after":2})).await;
    assert_eq!(message.content[0].as_text(), Some("ab"));
    assert_eq!(shown(&message), r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#);
    assert!(crate::failure::is_retryable(&message));

    for (kind, is_retried) in
        [("cut", true), ("reset", true), ("truncate", true), ("malformed", false), ("badjson", false)]
    {
        let message = fault(json!({"kind":kind,"after":3})).await;
        assert_eq!(message.content[0].as_text(), Some("abc"), "{kind}");
        assert_eq!(crate::failure::is_retryable(&message), is_retried, "{kind}: {}", shown(&message));
    }
    let message = fault(json!({"kind":"hang","after":1,"seconds":0.01})).await;
    assert_eq!((message.content[0].as_text(), message.stop_reason), (Some("a"), StopReason::Error));
}

#[tokio::test]
async fn broken_arguments_are_not_mended() {
    let script =
        json!({"turns":[{"blocks":[{"type":"toolCall","id":"c","name":"bash","raw_args":"{\"command\":\"ech"}]}]});
    let message = answer(&player(&script.to_string())).await;
    assert_eq!(message.tool_calls().next().and_then(|call| call.arguments_truncated), Some(true));
    assert_eq!(message.diagnostics.expect("notes")["toolCalls"]["c"]["raw"], "{\"command\":\"ech");
}

#[tokio::test]
async fn an_abort_ends_a_hang_at_once() {
    let script = json!({"turns":[{"text":"abc","chunk":1,"fault":{"kind":"hang","after":2}}]});
    let cancel = CancellationToken::new();
    let mut events = player(&script.to_string()).stream(question(vec![user("x")]), cancel.clone());
    let mut n_deltas = 0;
    while n_deltas < 2 {
        n_deltas += u32::from(matches!(events.recv().await, Some(AssistantEvent::TextDelta { .. })));
    }
    cancel.cancel();
    // Without the abort the stream never ends.
    while let Some(event) = events.recv().await {
        if let AssistantEvent::End(message) = event {
            assert_eq!((message.stop_reason, message.content[0].as_text()), (StopReason::Aborted, Some("ab")));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pauses_are_kept() {
    let script = json!({"turns":[{"text":"abcd","chunk":1,"delay_ms":100,"first_byte_ms":1000}]});
    let started = tokio::time::Instant::now();
    answer(&player(&script.to_string())).await;
    assert_eq!(started.elapsed(), Duration::from_millis(1400));
}

#[tokio::test]
async fn the_documented_example_plays() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scripted-model.md");
    let text = std::fs::read_to_string(path).expect("the page");
    let example = text.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let player = player(example);
    let first = answer(&player).await;
    assert_eq!((first.stop_reason, first.content.len(), first.usage.input), (StopReason::ToolUse, 3, 120));
    let second = answer(&player).await;
    assert_eq!(second.error.as_ref().and_then(|failure| failure.retry_after_ms), Some(50));
    assert!(crate::failure::is_retryable(&second));
    assert_eq!(shown(&answer(&player).await), "The notes are fine.");
    assert_eq!(shown(&answer(&player).await), "(end of script)");
    let summary = events(&player, question(vec![user("A summary, please")])).await.1;
    assert_eq!(shown(&summary), "Nothing much happened.");
}

#[tokio::test(start_paused = true)]
async fn the_tour_shows_everything_and_hears_a_steering_message() {
    let providers = Providers::new(Arc::new(NoKeys), ClientOptions::default());
    let mut messages = vec![user("show me")];
    let mut tools = Vec::new();
    let mut has_thought = false;
    for step in 0..12 {
        let mut call = call(model(TOUR), messages.clone());
        call.session_id = Some(Arc::from("s1"));
        let (_, message) = events(&providers, call).await;
        has_thought |= message.content.iter().any(|block| matches!(block, pith_protocol::Block::Thinking(_)));
        let called: Vec<_> = message.tool_calls().map(|call| (call.id.clone(), call.name.clone())).collect();
        let text = shown(&message);
        messages.push(Message::Assistant(message));
        for (id, name) in called {
            tools.push(name);
            messages.push(result(&id, "ok"));
        }
        match step {
            2 => messages.push(user("use fewer words")),
            3 => assert!(text.contains("use fewer words"), "{text}"),
            _ => {}
        }
        if messages.last().is_some_and(|message| message.as_assistant().is_some()) {
            break;
        }
    }
    assert_eq!(tools, ["write", "read", "bash", "bash", "edit"]);
    assert!(has_thought);
    // Another session sees it from the beginning.
    let mut call = call(model(TOUR), vec![user("again")]);
    call.session_id = Some(Arc::from("s2"));
    let (_, message) = events(&providers, call).await;
    assert_eq!(message.tool_calls().next().map(|call| call.name.as_str()), Some("write"));
}

#[tokio::test]
async fn without_a_script_there_is_guidance() {
    let providers = Providers::new(Arc::new(NoKeys), ClientOptions::default());
    assert!(shown(&answer(&providers).await).starts_with("No script is loaded: start with --script FILE"));
}

#[test]
fn scenario_files_are_scripts() {
    let text = "{\"scenario\":\"x\",\"api\":\"anthropic\"}\n{\"file\":\"a.txt\",\"text\":\"alpha\"}\n\n\
        {\"turn\":{\"text\":\"one\"}}\n{\"route\":{\"match\":\"s\",\"turns\":[]}}\n{\"mock\":{\"after\":\"loop\"}}\n\
        {\"send\":{\"type\":\"prompt\"}}\n";
    let script = Script::parse(text).expect("a script");
    assert_eq!((script.turns.len(), script.routes.len(), script.after), (1, 1, After::Loop));
    assert_eq!(Script::parse(r#"{"turn":{"text":"only"}}"#).expect("a script").turns.len(), 1);
    assert_eq!(Script::parse("{\"text\":\"a\"}\n{\"blocks\":[]}\n").expect("a script").turns.len(), 2);
}

#[test]
fn mistakes_are_named() {
    let error = |text: &str| Script::parse(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
    let names = |text: &str, part: &str| assert!(error(text).contains(part), "{} has no {part}", error(text));
    names("{\"turns\": [", "EOF");
    names(r#"{"turns":[{"txet":"a"}]}"#, "turns[0]: unknown field `txet`");
    names(r#"{"turns":[{"text":"a"},{"blocks":[{"type":"txt"}]}]}"#, "turns[1].blocks[0].type: \"txt\"");
    names(r#"{"turns":[{"blocks":[{"type":"toolCall"}]}]}"#, "turns[0].blocks[0].name: missing");
    names(r#"{"turns":[{"fault":{"kind":"boom"}}]}"#, "turns[0].fault.kind: \"boom\"");
    names(r#"{"turns":[{"fault":{"kind":"http"}}]}"#, "turns[0].fault.status");
    names(r#"{"turns":[{"text":"a","chunk":0}]}"#, "turns[0].chunk");
    names(r#"{"turns":[{"text":"a","delay_ms":-1}]}"#, "turns[0].delay_ms");
    names(r#"{"routes":[{"match":"(","turns":[]}]}"#, "routes[0].match");
    names(r#"{"turns":[{"text":"a"}],"after":"never"}"#, "never");
    names("{}", "turns");
    names("{\"turn\":{\"text\":\"a\"}}\nnot json\n", "line 2");
    let path = std::env::temp_dir().join("pith-no-such-script.json");
    let error = Script::load(&path).expect_err("there is no file");
    assert!(error.starts_with(&format!("script {}: ", path.display())), "{error}");
}
