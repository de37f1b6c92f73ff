use std::io::{Read, Write};
use std::time::Duration;

use super::*;
use serde_json::{Map, Value, json};

fn path(api: Api) -> &'static str {
    match api {
        Api::Anthropic => "/v1/messages",
        Api::Completions => "/v1/chat/completions",
        Api::Responses => "/v1/responses",
        Api::Google => "/v1beta/models/m:streamGenerateContent?alt=sse",
    }
}

fn connect(server: &ModelServer) -> TcpStream {
    TcpStream::connect(server.address).expect("the server accepts")
}

fn ask(mut stream: &TcpStream, path: &str, body: &Value) {
    let body = body.to_string();
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nX-Test: Yes\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).expect("the request is taken");
}

/// Everything until the end of the connection or of the body.
fn read_answer(mut stream: &TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    while !is_complete(&bytes) {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => bytes.extend_from_slice(&chunk[..length]),
            Err(error) => return format!("{}<{:?}>", String::from_utf8_lossy(&bytes), error.kind()),
        }
    }
    String::from_utf8(bytes).expect("answers are text")
}

fn is_complete(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    length.map_or_else(|| text.ends_with("\r\n0\r\n\r\n"), |length| body.len() == length)
}

/// The JSON of every event of an answer.
fn events(answer: &str) -> Vec<Value> {
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

fn answer(script: Script, api: Api) -> String {
    let server = ModelServer::start(script);
    let stream = connect(&server);
    ask(&stream, path(api), &json!({}));
    read_answer(&stream)
}

/// All strings found under `pointers` in the events, joined.
fn joined_strings(api: Api, pointer: &str) -> String {
    let turn = Turn::blocks([
        Block::thinking("let me think"),
        Block::text("héllo wörld, this is long enough"),
        Block::call("bash", json!({"command": "ls"})),
    ])
    .chunk(5);
    let answer = answer(Script::of([turn]), api);
    let texts = events(&answer);
    texts.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect()
}

#[test]
fn deltas_of_every_format_add_up() {
    let text = "héllo wörld, this is long enough";
    assert_eq!(joined_strings(Api::Anthropic, "/delta/text"), text);
    assert_eq!(joined_strings(Api::Anthropic, "/delta/thinking"), "let me think");
    assert_eq!(joined_strings(Api::Anthropic, "/delta/partial_json"), r#"{"command":"ls"}"#);
    assert_eq!(joined_strings(Api::Anthropic, "/content_block/id"), "toolu_t0b2");
    assert_eq!(joined_strings(Api::Anthropic, "/delta/stop_reason"), "tool_use");
    assert_eq!(joined_strings(Api::Completions, "/choices/0/delta/content"), text);
    assert_eq!(joined_strings(Api::Completions, "/choices/0/delta/reasoning_content"), "let me think");
    assert_eq!(
        joined_strings(Api::Completions, "/choices/0/delta/tool_calls/0/function/arguments"),
        r#"{"command":"ls"}"#
    );
    assert_eq!(joined_strings(Api::Completions, "/choices/0/finish_reason"), "tool_calls");
    assert_eq!(joined_strings(Api::Responses, "/delta"), format!("let me think{text}{}", r#"{"command":"ls"}"#));
    assert_eq!(joined_strings(Api::Responses, "/response/status"), "in_progresscompleted");
    assert_eq!(joined_strings(Api::Google, "/candidates/0/content/parts/0/text"), format!("let me think{text}"));
    assert_eq!(joined_strings(Api::Google, "/candidates/0/content/parts/0/functionCall/args/command"), "ls");
    assert_eq!(joined_strings(Api::Google, "/candidates/0/finishReason"), "STOP");
}

#[test]
fn usage_and_stop_come_from_the_turn() {
    let turn = || {
        let usage = TurnUsage { input: 7, output: 3, cache_read: 2, cache_write: 1 };
        Script::of([Turn::text("x").stop("length").usage(usage)])
    };
    let last = |api: Api, back: usize| {
        let events = events(&answer(turn(), api));
        events[events.len() - back].clone()
    };
    assert_eq!(last(Api::Anthropic, 2)["delta"]["stop_reason"], "max_tokens");
    assert_eq!(last(Api::Anthropic, 2)["usage"]["output_tokens"], 3);
    assert_eq!(last(Api::Completions, 1)["usage"]["prompt_tokens"], 9);
    assert_eq!(last(Api::Completions, 2)["choices"][0]["finish_reason"], "length");
    assert_eq!(last(Api::Responses, 1)["type"], "response.incomplete");
    assert_eq!(last(Api::Responses, 1)["response"]["usage"]["input_tokens_details"]["cached_tokens"], 2);
    assert_eq!(last(Api::Google, 1)["candidates"][0]["finishReason"], "MAX_TOKENS");
    assert_eq!(last(Api::Google, 1)["usageMetadata"]["totalTokenCount"], 12);
}

#[test]
fn requests_are_recorded_and_waited_for() {
    let server = ModelServer::start(Script::new());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| server.wait_request(1));
        let stream = connect(&server);
        for text in ["first", "second"] {
            ask(&stream, "/v1/messages?beta=1", &json!({"messages": [text]}));
            read_answer(&stream);
        }
        let request = waiting.join().expect("the request came");
        assert_eq!(request.body, json!({"messages": ["second"]}));
        assert_eq!(
            (request.method.as_str(), request.path.as_str(), request.query.as_str()),
            ("POST", "/v1/messages", "beta=1")
        );
        assert_eq!((request.header("x-test"), request.api), (Some("Yes"), Some(Api::Anthropic)));
        assert_eq!(server.wait_outcome(1), Outcome::Sent);
    });
}

#[test]
fn a_chunked_request_body_is_read() {
    let server = ModelServer::start(Script::new());
    let mut stream = connect(&server);
    let request =
        "POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n3;x=y\r\n:1}\r\n0\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("taken");
    assert_eq!(server.wait_request(0).body, json!({"a": 1}));
}

#[test]
fn turns_come_in_order_then_follow_the_after_rule() {
    let texts = |script: Script| {
        let server = ModelServer::start(script);
        let stream = connect(&server);
        let next = |_| {
            ask(&stream, "/v1/messages", &json!({}));
            let events = events(&read_answer(&stream));
            events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect::<String>()
        };
        (0..4).map(next).collect::<Vec<_>>().join(" ")
    };
    let script = || Script::of([Turn::text("a"), Turn::text("b").times(2)]);
    assert_eq!(texts(script()), "a b b (end of script)");
    assert_eq!(texts(Script::of([Turn::text("a"), Turn::text("b")]).after(After::Repeat)), "a b b b");
    assert_eq!(texts(script().after(After::Loop)), "a b b a");
    assert_eq!(texts(Script::of([Turn::text("a").times(2)]).fallback(Turn::text("d"))), "a a d d");
}

#[test]
fn routes_match_the_newest_message_and_conversations_are_counted_separately() {
    let server =
        ModelServer::start(Script::of([Turn::text("one"), Turn::text("two")]).route("summar", [Turn::text("summary")]));
    let stream = connect(&server);
    let say = |path: &str, message: &str| {
        ask(&stream, path, &json!({"messages": ["summary of old", message]}));
        let events = events(&read_answer(&stream));
        events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect::<String>()
    };
    assert_eq!(say("/c/a/v1/messages", "x"), "one");
    assert_eq!(say("/c/a/v1/messages", "please summarise"), "summary");
    assert_eq!(say("/c/b/v1/messages", "x"), "one");
    assert_eq!(say("/c/a/v1/messages", "x"), "two");
    server.push(Turn::text("three"));
    assert_eq!(say("/c/a/v1/messages", "x"), "three");
    assert_eq!(server.requests()[1].route, "route0");
}

#[test]
fn faults_go_wrong_as_scripted() {
    let check = |fault: Fault, wanted: &dyn Fn(&str) -> bool| {
        let what = format!("{fault:?}");
        let answer = answer(Script::of([Turn::text("abcdef").chunk(2).fault(fault)]), Api::Anthropic);
        assert!(wanted(&answer), "{what}: {answer}");
    };
    let n_deltas = |answer: &str| answer.matches("text_delta").count();
    let headers = json!({"retry-after": 2}).as_object().cloned().expect("an object");
    check(Fault::Http { status: 529, body: json!({"a": 1}), headers }, &|answer| {
        answer.starts_with("HTTP/1.1 529 ")
            && answer.contains("\r\nretry-after: 2\r\n")
            && answer.ends_with("{\"a\":1}")
    });
    check(Fault::Http { status: 500, body: json!("plain"), headers: Map::new() }, &|answer| {
        answer.ends_with("\r\n\r\nplain")
    });
    check(Fault::Cut { after: 2 }, &|answer| n_deltas(answer) == 2 && !answer.ends_with("\r\n0\r\n\r\n"));
    check(Fault::Truncate { after: 1 }, &|answer| n_deltas(answer) == 1 && answer.ends_with("\r\n0\r\n\r\n"));
    check(Fault::Reset { after: 1 }, &|answer| n_deltas(answer) == 1 && answer.ends_with("<ConnectionReset>"));
    check(Fault::Hang { after: 1, seconds: 0.01 }, &|answer| n_deltas(answer) == 1);
    let error = json!({"type": "overloaded_error", "message": "Overloaded"});
    check(Fault::ErrorEvent { after: 1, error }, &|answer| n_deltas(answer) == 1 && answer.contains("Overloaded"));
    check(Fault::Badjson { after: 1 }, &|answer| n_deltas(answer) == 3 && answer.contains("oops"));
}

#[test]
fn an_answer_with_an_unknown_member_is_refused() {
    let refused = |value: Value| serde_json::from_value::<Turn>(value).expect_err("is refused").to_string();
    assert!(refused(json!({"txt": "a"})).contains("txt"));
    assert!(refused(json!({"fault": {"kind": "explode"}})).contains("explode"));
}

#[test]
fn a_client_that_hangs_up_is_noticed() {
    let silent = || Turn::text("late").first_byte(Duration::from_secs(600));
    let hanging = Turn::text("abc").fault(Fault::Hang { after: 0, seconds: 600.0 });
    for turn in [silent(), hanging, Turn::text("abc").hold_after(1), Turn::text("abc").delay(Duration::from_secs(600))]
    {
        let server = ModelServer::start(Script::of([turn]));
        let stream = connect(&server);
        ask(&stream, "/v1/messages", &json!({}));
        server.wait_request(0);
        drop(stream);
        assert_eq!(server.wait_outcome(0), Outcome::ClientClosed);
    }
}

#[test]
fn a_held_answer_continues_when_released() {
    let server = ModelServer::start(Script::of([Turn::text("abcdef").chunk(2).hold_after(2)]));
    let stream = connect(&server);
    ask(&stream, "/v1/messages", &json!({}));
    server.wait_held(0);
    let mut seen = vec![0; 1 << 16];
    let mut stream_ref = &stream;
    let mut text = String::new();
    while text.matches("text_delta").count() < 2 {
        let length = stream_ref.read(&mut seen).expect("the first part arrives");
        text.push_str(std::str::from_utf8(&seen[..length]).expect("text"));
    }
    assert_eq!(text.matches("text_delta").count(), 2);
    server.release(0);
    assert_eq!(read_answer(&stream).matches("text_delta").count(), 1);
    assert_eq!(server.wait_outcome(0), Outcome::Sent);
}

#[test]
fn other_requests_get_404() {
    let server = ModelServer::start(Script::new());
    let mut stream = connect(&server);
    stream.write_all(b"GET /v1/models HTTP/1.1\r\n\r\n").expect("taken");
    let mut head = [0; 12];
    stream.read_exact(&mut head).expect("answered");
    assert_eq!(&head, b"HTTP/1.1 404");
    assert_eq!(server.other_requests()[0].path, "/v1/models");
    assert!(server.requests().is_empty());
}

#[test]
fn dropping_the_server_ends_open_answers() {
    let server = ModelServer::start(Script::of([Turn::text("abc").hold_after(0)]));
    let stream = connect(&server);
    ask(&stream, "/v1/messages", &json!({}));
    server.wait_held(0);
    drop(server);
    assert!(!read_answer(&stream).contains("text_delta"));
}
