//! Runs the hooks of extensions that see and change requests.

use bytes::Bytes;
use pith_protocol::{ErrorKind, LlmCall, Message, RequestHooks, RequestPart};
use serde_json::{Map, Value, json};
use std::sync::Arc;

use crate::failure::Fault;
use crate::wire::{Headers, HttpRequest, Wire};

/// Lets hooks change headers and payload. Costs nothing without hooks.
pub(crate) async fn change_request(
    call: &LlmCall,
    wire: &dyn Wire,
    mut request: HttpRequest,
) -> Result<HttpRequest, Fault> {
    let Some(hooks) = &call.hooks else { return Ok(request) };
    if hooks.sees(RequestPart::Headers) {
        let headers = request.headers.iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
        request.headers = read_headers(hooks.headers(headers).await);
    }
    if hooks.sees(RequestPart::Payload) {
        let unreadable = |error| Fault::new(ErrorKind::InvalidRequest, format!("The request is not JSON: {error}"));
        let body = serde_json::from_slice(&request.body).map_err(unreadable)?;
        let body = wire.sent(hooks.payload(wire.shown(&call.model, body)).await);
        request.body = Bytes::from(serde_json::to_vec(&body).map_err(unreadable)?);
    }
    Ok(request)
}

/// Tells hooks that a server has answered.
pub(crate) async fn report_response(call: &LlmCall, status: u16, headers: &[(String, String)]) {
    let hooks = call.hooks.as_ref().filter(|hooks| hooks.sees(RequestPart::Response));
    if let Some(hooks) = hooks {
        let headers = headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        hooks.response(status, headers).await;
    }
}

/// Runs the hooks for a model without a server. Returns the call with the messages they left.
pub(crate) async fn run_without_server(call: &LlmCall, hooks: &Arc<dyn RequestHooks>) -> LlmCall {
    let mut call = call.clone();
    if hooks.sees(RequestPart::Headers) {
        hooks.headers(Map::new()).await;
    }
    if hooks.sees(RequestPart::Payload) {
        let tool = |tool: &pith_protocol::ToolSpec| json!({ "name": tool.name, "description": tool.description });
        let payload = json!({
            "model": call.model.id,
            "system": &*call.system_prompt,
            "messages": call.messages,
            "tools": call.tools.iter().map(tool).collect::<Vec<_>>(),
        });
        let mut payload = hooks.payload(payload).await;
        let messages = payload.get_mut("messages").map(Value::take).unwrap_or_default();
        if let Ok(messages) = serde_json::from_value::<Vec<Message>>(messages) {
            call.messages = messages.into_iter().map(Arc::new).collect();
        }
    }
    report_response(&call, 200, &[]).await;
    call
}

/// Reads the headers that an extension returned, without those that have no usable value.
fn read_headers(headers: Map<String, Value>) -> Headers {
    let mut read = Headers::default();
    for (name, value) in headers {
        match value {
            Value::String(text) => read.set(&name, &text),
            Value::Number(_) | Value::Bool(_) => read.set(&name, &value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {}
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use pith_protocol::{Hooked, UserMessage};

    /// Shows its requests as they are.
    const PLAIN: &dyn Wire = &crate::wire::anthropic::Anthropic;

    /// Sees some parts and changes what it sees.
    struct Meddler(&'static [RequestPart]);

    impl RequestHooks for Meddler {
        fn sees(&self, part: RequestPart) -> bool {
            self.0.contains(&part)
        }

        fn headers(&self, mut headers: Map<String, Value>) -> Hooked<'_, Map<String, Value>> {
            headers.insert("x-added".into(), json!(5));
            headers.insert("x-gone".into(), Value::Null);
            headers.insert("x-odd".into(), json!([1]));
            Box::pin(async { headers })
        }

        fn payload(&self, mut payload: Value) -> Hooked<'_, Value> {
            payload["messages"] = json!([{"role": "user", "content": "another", "timestamp": 1}]);
            Box::pin(async { payload })
        }

        fn response(&self, _status: u16, _headers: Map<String, Value>) -> Hooked<'_, ()> {
            panic!("nobody asked for responses")
        }
    }

    fn call(parts: Option<&'static [RequestPart]>) -> LlmCall {
        let user = Message::User(UserMessage::new("original".into(), vec![], 0));
        let mut call = testing::call(crate::scripted::model("x"), vec![user]);
        call.hooks = parts.map(|parts| Arc::new(Meddler(parts)) as Arc<dyn RequestHooks>);
        call
    }

    fn request() -> HttpRequest {
        let mut headers = Headers::default();
        headers.set("x-kept", "k");
        headers.set("x-gone", "g");
        HttpRequest { url: "u".into(), headers, body: Bytes::from_static(br#"{"messages": [], "n": 1.0}"#) }
    }

    #[tokio::test]
    async fn a_request_without_hooks_is_sent_unchanged() {
        for parts in [None, Some(&[][..])] {
            let call = call(parts);
            assert_eq!(change_request(&call, PLAIN, request()).await.expect("it is JSON"), request());
            report_response(&call, 200, &[]).await;
        }
    }

    #[tokio::test]
    async fn watched_parts_are_changed_and_the_others_are_not() {
        let shaped = change_request(&call(Some(&[RequestPart::Headers])), PLAIN, request()).await.expect("it is JSON");
        assert_eq!(shaped.headers.iter().collect::<Vec<_>>(), [("x-kept", "k"), ("x-added", "5")]);
        assert_eq!(shaped.body, request().body);
        let shaped = change_request(&call(Some(&[RequestPart::Payload])), PLAIN, request()).await.expect("it is JSON");
        assert_eq!(shaped.headers, request().headers);
        let body: Value = serde_json::from_slice(&shaped.body).expect("it is JSON");
        assert_eq!((&body["n"], &body["messages"][0]["content"]), (&json!(1.0), &json!("another")));
    }

    #[tokio::test]
    async fn a_model_without_a_server_reads_what_hooks_left() {
        let call = call(Some(&[RequestPart::Payload]));
        let hooks = call.hooks.clone().expect("it has hooks");
        let Message::User(user) = &*run_without_server(&call, &hooks).await.messages[0] else { panic!("a prompt") };
        assert_eq!(user.content.text(), "another");
    }
}
