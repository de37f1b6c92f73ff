//! Pictures that a server refuses do not follow the conversation to its end.

use std::sync::{Arc, Mutex};

use pith_agent::ModelClient;
use pith_protocol::{AssistantMessage, ErrorKind, LlmCall, Message, Model, StopReason};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::server::{Server, end, event_stream, failure, providers, question, serve, whole};
use crate::client::{ClientOptions, Notice, Providers};
use crate::testing::{call, fixture, message, own};

fn with_pictures(pictures: &[&str]) -> Message {
    let mut content = vec![json!({"type": "text", "text": "look"})];
    content.extend(pictures.iter().map(|data| json!({"type": "image", "data": data, "mimeType": "image/png"})));
    message(json!({"role": "user", "content": content, "timestamp": 1}))
}

fn ask_about(server: &Server, messages: impl FnOnce(&Model) -> Vec<Message>) -> LlmCall {
    let model = (*question(server, "anthropic-messages").model).clone();
    let model = Model { input: vec!["text".into(), "image".into()], ..model };
    let messages = messages(&model);
    call(model, messages)
}

async fn ask(providers: &Providers, call: LlmCall) -> AssistantMessage {
    end(providers.stream(call, CancellationToken::new())).await
}

fn text_of(server: &Server, at: usize) -> String {
    server.requests.lock().expect("no panics")[at]["messages"].to_string()
}

/// A server that answers unless a request contains `bad`.
async fn picky(bad: &'static str, status: &'static str, error: Value) -> Server {
    serve(move |_, body| {
        let is_bad = body["messages"].to_string().contains(bad);
        if is_bad { whole(status, "", &error.to_string()) } else { event_stream(&fixture("anthropic.sse")) }
    })
    .await
}

#[tokio::test]
async fn a_refused_picture_becomes_a_note() {
    let error =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "Could not process image"}});
    let server = picky("QkFE", "400 Bad Request", error).await;
    let heard: Arc<Mutex<Vec<Notice>>> = Arc::default();
    let ear = heard.clone();
    let options = ClientOptions {
        notice: Some(Arc::new(move |notice| ear.lock().expect("no panics").push(notice))),
        ..ClientOptions::default()
    };
    let providers = providers(options);
    // The first picture has been answered to, so the new one is meant.
    let history = |model: &Model| {
        let answer = own(model, json!([{"type": "text", "text": "nice"}]));
        vec![with_pictures(&["R09PRA"]), answer, with_pictures(&["QkFE"])]
    };
    let answer = ask(&providers, ask_about(&server, history)).await;
    assert_eq!((answer.stop_reason, server.n_requests()), (StopReason::ToolUse, 2), "{:?}", answer.error_message);
    let sent = text_of(&server, 1);
    assert!(sent.contains("(image omitted: the server refused it: Could not process image)"), "{sent}");
    assert!(sent.contains("R09PRA") && !sent.contains("QkFE"), "{sent}");
    let expected = json!({"count": 1, "reason": "Could not process image"});
    assert_eq!(answer.diagnostics.expect("the host is told")["imagesOmitted"], expected);
    let heard = heard.lock().expect("no panics").clone();
    assert!(matches!(&heard[..], [Notice::ImageRefused { count: 1, .. }]), "{heard:?}");
    // Later requests do not try it again.
    let answer = ask(&providers, ask_about(&server, history)).await;
    assert_eq!((answer.stop_reason, server.n_requests(), answer.diagnostics), (StopReason::ToolUse, 3, None));
}

#[tokio::test]
async fn a_model_that_sees_no_pictures_is_sent_none() {
    let text = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj";
    let server =
        picky("\"image\"", "500 Internal Server Error", json!({"error": {"code": 500, "message": text}})).await;
    let providers = providers(ClientOptions::default());
    let answer = ask(&providers, ask_about(&server, |_| vec![with_pictures(&["AAAA", "BBBB"])])).await;
    assert_eq!((answer.stop_reason, server.n_requests()), (StopReason::ToolUse, 2));
    let sent = text_of(&server, 1);
    assert_eq!(sent.matches("image omitted").count(), 1, "neighbours share a note: {sent}");
    // A picture that the server has never seen is not tried either.
    let result = message(json!({"role": "toolResult", "toolCallId": "c", "toolName": "read", "isError": false,
        "timestamp": 3, "content": [{"type": "image", "data": "CCCC", "mimeType": "image/png"}]}));
    let turns = |model: &Model| {
        let asked = own(model, json!([{"type": "toolCall", "id": "c", "name": "read", "arguments": {}}]));
        vec![with_pictures(&[]), asked, result]
    };
    let answer = ask(&providers, ask_about(&server, turns)).await;
    assert_eq!((answer.stop_reason, server.n_requests()), (StopReason::ToolUse, 3));
    assert!(text_of(&server, 2).contains("(tool image omitted: the server refused it: image input is"));
}

#[tokio::test]
async fn the_picture_that_is_named_is_the_one_that_is_meant() {
    let text = "messages.0.content.2.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes";
    let server = picky("QkFE", "400 Bad Request", json!({"error": {"message": text}})).await;
    let call = ask_about(&server, |_| vec![with_pictures(&["R09PRA", "QkFE"])]);
    let answer = ask(&providers(ClientOptions::default()), call).await;
    assert_eq!((answer.stop_reason, server.n_requests()), (StopReason::ToolUse, 2));
    assert!(text_of(&server, 1).contains("R09PRA"));
}

#[tokio::test]
async fn a_key_that_the_server_echoes_gets_into_no_note() {
    let error = json!({"error": {"message": "Could not process image of sk-secret-123456"}});
    let server = picky("QkFE", "400 Bad Request", error).await;
    let call = ask_about(&server, |_| vec![with_pictures(&["QkFE"])]);
    let answer = ask(&providers(ClientOptions::default()), call).await;
    let reason = answer.diagnostics.expect("the host is told")["imagesOmitted"]["reason"].clone();
    assert_eq!(reason, "Could not process image of [redacted]");
    assert!(!text_of(&server, 1).contains("sk-secret"), "{}", text_of(&server, 1));
}

#[tokio::test]
async fn refusals_that_leaving_pictures_out_does_not_mend_are_errors() {
    let server = serve(|_, _| whole("400 Bad Request", "", "Could not process image")).await;
    let providers = providers(ClientOptions::default());
    let answer = ask(&providers, ask_about(&server, |_| vec![with_pictures(&[])])).await;
    assert_eq!((failure(&answer).0, server.n_requests()), (ErrorKind::InvalidRequest, 1));
    let answer = ask(&providers, ask_about(&server, |_| vec![with_pictures(&["AAAA"])])).await;
    assert_eq!((failure(&answer).0, server.n_requests()), (ErrorKind::InvalidRequest, 3));
}
