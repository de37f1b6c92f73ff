//! The frames of servers, read leniently. rmcp's strict types lose what odd servers send: here results stay raw JSON,
//! and what cannot be read ends one call, not all.

use std::collections::HashSet;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, CustomResult, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use serde_json::{Map, Value, json};

use crate::introduction;

/// The requests that were sent and have no answer.
#[derive(Default)]
pub struct Requests {
    pending: HashSet<i64>,
    /// The last handshake, and which it is; its result is read by rmcp.
    handshake: Option<(i64, ResultOf)>,
}

impl Requests {
    /// Notes a message that is sent, and returns its id if it is a request.
    pub fn sent(&mut self, message: &ClientJsonRpcMessage) -> Option<i64> {
        let JsonRpcMessage::Request(request) = message else { return None };
        let RequestId::Number(id) = &request.id else { return None };
        self.pending.insert(*id);
        match &request.request {
            ClientRequest::InitializeRequest(_) => self.handshake = Some((*id, ResultOf::Initialize)),
            ClientRequest::DiscoverRequest(_) => self.handshake = Some((*id, ResultOf::Discover)),
            _ => {}
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
        let handshake = self.handshake.filter(|(handshake, _)| *handshake == id);
        self.pending.remove(&id).then_some(handshake.map_or(ResultOf::Request, |(_, of)| of))
    }
}

/// What a result answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ResultOf {
    Initialize,
    Discover,
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
    let is_discover = message.get("result").is_some_and(|result| result.get("supportedVersions").is_some());
    let of = if is_discover { ResultOf::Discover } else { ResultOf::Initialize };
    match read_message(message, |_| Some(of)) {
        Reading::Refusal(answer) => Some(answer),
        Reading::Message(_) | Reading::Noise | Reading::Nothing => None,
    }
}

/// Keeps a result as it is, unless rmcp itself has to understand it.
fn read_result(result: Value, of: ResultOf) -> Result<ServerResult, String> {
    match of {
        ResultOf::Initialize => introduction::read_initialize(result).map(ServerResult::InitializeResult),
        ResultOf::Discover => introduction::read_discover(result).map(ServerResult::DiscoverResult),
        ResultOf::Request => Ok(ServerResult::CustomResult(CustomResult(result))),
    }
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
