//! Requests on their way past whoever wants to see them.

use bytes::Bytes;
use pith_protocol::{ErrorKind, LlmCall, Message, RequestHooks, RequestPart};
use serde_json::{Map, Value, json};
use std::sync::Arc;

use crate::failure::Fault;
use crate::wire::{Headers, HttpRequest};

/// Lets headers and payload be changed. Costs nothing when nobody wants to.
pub(crate) async fn shape(call: &LlmCall, mut request: HttpRequest) -> Result<HttpRequest, Fault> {
    let Some(hooks) = &call.hooks else { return Ok(request) };
    if hooks.sees(RequestPart::Headers) {
        let headers = request.headers.iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
        request.headers = read_headers(hooks.headers(headers).await);
    }
    if hooks.sees(RequestPart::Payload) {
        let unreadable = |error| Fault::new(ErrorKind::InvalidRequest, format!("The request is not JSON: {error}"));
        let payload = serde_json::from_slice(&request.body).map_err(unreadable)?;
        request.body = Bytes::from(serde_json::to_vec(&hooks.payload(payload).await).map_err(unreadable)?);
    }
    Ok(request)
}

/// Tells that a server has answered.
pub(crate) async fn arrived(call: &LlmCall, status: u16, headers: &[(String, String)]) {
    let hooks = call.hooks.as_ref().filter(|hooks| hooks.sees(RequestPart::Response));
    if let Some(hooks) = hooks {
        let headers = headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        hooks.response(status, headers).await;
    }
}

/// The same for a model without a server. The messages may be others afterwards.
pub(crate) async fn rehearse(call: &LlmCall, hooks: &Arc<dyn RequestHooks>) -> LlmCall {
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
    arrived(&call, 200, &[]).await;
    call
}

/// Headers without a usable value are left out.
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
