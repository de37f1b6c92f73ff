//! The frames of servers, read leniently. rmcp's strict types lose what odd servers send: here results stay raw JSON,
//! and what cannot be read ends one call, not all.

use std::collections::HashSet;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, CustomResult, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use serde_json::{Map, Value, json};

/// The requests that were sent and have no answer.
#[derive(Default)]
pub struct Requests {
    pending: HashSet<i64>,
    /// The last handshake; its result is read by rmcp.
    handshake: Option<i64>,
}

impl Requests {
    /// Notes a message that is sent, and returns its id if it is a request.
    pub fn sent(&mut self, message: &ClientJsonRpcMessage) -> Option<i64> {
        let JsonRpcMessage::Request(request) = message else { return None };
        let RequestId::Number(id) = &request.id else { return None };
        self.pending.insert(*id);
        if let ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_) = &request.request {
            self.handshake = Some(*id);
        }
        Some(*id)
    }

    #[cfg(test)]
    pub fn expect_answers(&mut self, ids: impl IntoIterator<Item = i64>) {
        self.pending.extend(ids);
    }

    /// Whether a request has no answer yet.
    pub fn is_pending(&self, id: i64) -> bool {
        self.pending.contains(&id)
    }

    /// Takes an answer; `None` if nobody has asked, or it is the second one.
    pub fn answered(&mut self, id: i64) -> Option<ResultOf> {
        let is_handshake = self.handshake == Some(id);
        self.pending.remove(&id).then_some(if is_handshake { ResultOf::Handshake } else { ResultOf::Request })
    }
}

/// What a result answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ResultOf {
    Handshake,
    Request,
}

/// What a line is.
pub enum Reading {
    Message(Box<ServerJsonRpcMessage>),
    /// A request that cannot be understood; this is the answer.
    Refusal(Value),
    Noise,
    Nothing,
}

/// Reads a frame. An answer with both members counts as what it says first, but `null` only says something alone; what
/// fits nothing is ignored.
pub fn read_message(mut message: Map<String, Value>, answered: impl FnOnce(i64) -> Option<ResultOf>) -> Reading {
    if message.contains_key("method") {
        let id = message.get("id").cloned();
        return match (serde_json::from_value(Value::Object(message)), id) {
            (Ok(message), _) => Reading::Message(Box::new(message)),
            (Err(error), Some(id)) => Reading::Refusal(json!({
                "jsonrpc": "2.0", "id": id,
                "error": {"code": ErrorCode::INVALID_PARAMS.0, "message": error.to_string()},
            })),
            (Err(_), None) => Reading::Nothing,
        };
    }
    let id = match message.get("id") {
        Some(Value::Number(id)) => id.as_i64(),
        Some(Value::String(id)) => id.parse().ok(),
        _ => None,
    };
    let Some((id, of)) = id.and_then(|id| Some((id, answered(id)?))) else { return Reading::Nothing };
    message.retain(|key, _| key == "result" || key == "error");
    if message.values().any(|value| !value.is_null()) {
        message.retain(|_, value| !value.is_null());
    }
    let Some((member, said)) = message.into_iter().next() else { return Reading::Nothing };
    let message = if member == "error" {
        JsonRpcMessage::error(read_error(&said), Some(RequestId::Number(id)))
    } else {
        match read_result(said, of) {
            Ok(result) => JsonRpcMessage::response(result, RequestId::Number(id)),
            Err(why) => JsonRpcMessage::error(ErrorData::invalid_request(why, None), Some(RequestId::Number(id))),
        }
    };
    Reading::Message(Box::new(message))
}

/// Reads a line as if it answered a handshake, for fuzzing. Returns the answer that it gets at once, if it gets one.
#[doc(hidden)]
pub fn answer_to_line(line: &[u8]) -> Option<Value> {
    let Ok(Value::Object(message)) = serde_json::from_slice(line) else { return None };
    match read_message(message, |_| Some(ResultOf::Handshake)) {
        Reading::Refusal(answer) => Some(answer),
        Reading::Message(_) | Reading::Noise | Reading::Nothing => None,
    }
}

/// Keeps a result as it is, unless rmcp itself has to understand it.
fn read_result(result: Value, of: ResultOf) -> Result<ServerResult, String> {
    if of == ResultOf::Request {
        return Ok(ServerResult::CustomResult(CustomResult(result)));
    }
    let Value::Object(mut result) = result else { return Err("the answer to the handshake is no object".to_owned()) };
    if result.contains_key("supportedVersions") {
        let read = serde_json::from_value(Value::Object(result));
        return read.map(ServerResult::DiscoverResult).map_err(|error| format!("server/discover: {error}"));
    }
    // What older servers leave out is not needed.
    result.entry("capabilities").or_insert_with(|| json!({}));
    if !result.get("serverInfo").is_some_and(|info| info.get("name").is_some_and(Value::is_string)) {
        result.insert("serverInfo".to_owned(), json!({"name": "", "version": ""}));
    }
    if let Some(Value::Object(info)) = result.get_mut("serverInfo") {
        info.entry("version").or_insert_with(|| json!(""));
    }
    let read = serde_json::from_value(Value::Object(result));
    read.map(ServerResult::InitializeResult).map_err(|error| format!("initialize: {error}"))
}

fn read_error(error: &Value) -> ErrorData {
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned);
    let code = code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    ErrorData::new(code, message, error.get("data").cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let Ok(Value::Object(message)) = serde_json::from_str(line) else { panic!("{line}") };
        let Reading::Message(message) = read_message(message, |_| Some(ResultOf::Request)) else { panic!("{line}") };
        assert_eq!(serde_json::to_string(&message).expect("a message"), expected, "{line}");
    }

    #[test]
    fn a_member_that_is_null_does_not_hide_the_other() {
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}"#;
        check(r#"{"id":1,"result":null,"error":{"code":-32000,"message":"no"}}"#, error);
        check(r#"{"id":1,"error":null,"result":{"a":1}}"#, r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#);
        check(r#"{"id":1,"result":7,"error":{"code":1}}"#, r#"{"jsonrpc":"2.0","id":1,"result":7}"#);
        check(r#"{"id":1,"result":null}"#, r#"{"jsonrpc":"2.0","id":1,"result":null}"#);
    }
}
