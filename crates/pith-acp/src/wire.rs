//! JSON-RPC frames: one line in, one of four outcomes; one object out.

use std::hash::{Hash, Hasher};

use agent_client_protocol_schema::v1::Error;
use pith_protocol::inbound::{NoObject, read_object};
use pith_protocol::json;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{invalid_request, parse};

/// What a line turned out to be.
#[derive(Debug)]
pub enum Incoming {
    Request {
        id: RequestId,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// The answer to a request of pith.
    Answer {
        id: Value,
        result: Result<Value, Value>,
    },
    /// Not a frame; answered with the error.
    Refused {
        id: RequestId,
        error: Error,
    },
}

/// The id of a client's request. It goes back as the client wrote it; ids that mean the same are equal.
#[derive(Clone, Debug)]
pub struct RequestId {
    written: String,
    /// A string has many spellings in JSON: here each has the one of our encoder.
    meant: String,
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.meant == other.meant
    }
}

impl Eq for RequestId {}

impl Hash for RequestId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.meant.hash(state);
    }
}

impl RequestId {
    /// The id of answers to what has none.
    pub fn null() -> Self {
        RequestId::of_value(&Value::Null)
    }

    fn of(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        (is_integer || text.starts_with('"') || text == "null").then(|| {
            // A lone surrogate means nothing else than what is written.
            let meant =
                serde_json::from_str::<String>(text).map_or_else(|_| text.to_owned(), |text| json::to_string(&text));
            RequestId { written: text.to_owned(), meant }
        })
    }

    /// The id that a notification names, such as that of `$/cancel_request`.
    pub fn of_value(value: &Value) -> Self {
        let text = json::to_string(value);
        RequestId { written: text.clone(), meant: text }
    }

    fn raw(&self) -> Box<RawValue> {
        RawValue::from_string(self.written.clone()).expect("ids are kept as JSON")
    }
}

/// Decodes one line without its newline; `None` for a blank line.
pub fn decode(line: &[u8]) -> Option<Incoming> {
    let refused = |id, error| Incoming::Refused { id, error };
    let (id, mut fields) = match read_object(line)? {
        Ok(object) => object,
        Err(NoObject::Syntax(why)) => return Some(refused(RequestId::null(), parse(format!("Parse error: {why}")))),
        Err(NoObject::Other("array")) => {
            let error = invalid_request("Batches are not supported: send one object per line");
            return Some(refused(RequestId::null(), error));
        }
        Err(NoObject::Other(kind)) => {
            let error = invalid_request(format!("Expected a JSON object, got {kind}"));
            return Some(refused(RequestId::null(), error));
        }
    };
    let request_id = match id.raw().map(RequestId::of) {
        None => None,
        Some(Some(id)) => Some(id),
        Some(None) => {
            let error = invalid_request("Invalid id: expected a string, an integer or null");
            return Some(refused(RequestId::null(), error));
        }
    };
    let echoed = || request_id.clone().unwrap_or_else(RequestId::null);
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Some(refused(echoed(), invalid_request("Invalid or missing jsonrpc: expected \"2.0\"")));
    }
    let params = fields.remove("params").unwrap_or_default();
    Some(match fields.remove("method") {
        Some(Value::String(method)) => match request_id {
            Some(id) => Incoming::Request { id, method, params },
            None => Incoming::Notification { method, params },
        },
        Some(_) => refused(echoed(), invalid_request("Invalid method: expected a string")),
        None => match (fields.remove("result"), fields.remove("error"), id.raw()) {
            (Some(result), None, Some(id)) => Incoming::Answer { id: value_of(id), result: Ok(result) },
            (_, Some(error), Some(id)) => Incoming::Answer { id: value_of(id), result: Err(error) },
            _ => refused(echoed(), invalid_request("Missing method")),
        },
    })
}

/// The answer to a line that was too long to be kept.
pub fn too_long(limit: usize) -> Incoming {
    Incoming::Refused { id: RequestId::null(), error: parse(format!("Parse error: line exceeds {limit} bytes")) }
}

fn value_of(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

#[derive(Serialize)]
struct Frame<'a, I, P, R> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<I>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Error>,
}

const EMPTY: Frame<'_, (), (), ()> =
    Frame { jsonrpc: "2.0", id: None, method: None, params: None, result: None, error: None };

/// Appends the answer to a request.
pub fn append_answer(out: &mut Vec<u8>, id: &RequestId, answer: Result<&RawValue, &Error>) {
    let Frame { jsonrpc, method, params, .. } = EMPTY;
    let (result, error) = match answer {
        Ok(result) => (Some(result), None),
        Err(error) => (None, Some(error)),
    };
    json::append(out, &Frame { jsonrpc, id: Some(id.raw()), method, params, result, error });
}

/// Appends a notification.
pub fn append_notification<P: Serialize>(out: &mut Vec<u8>, method: &str, params: &P) {
    let Frame { jsonrpc, id, result, error, .. } = EMPTY;
    json::append(out, &Frame { jsonrpc, id, method: Some(method), params: Some(params), result, error });
}

/// Appends a request of pith.
pub fn append_request<P: Serialize>(out: &mut Vec<u8>, id: &str, method: &str, params: &P) {
    let Frame { jsonrpc, result, error, .. } = EMPTY;
    json::append(out, &Frame { jsonrpc, id: Some(id), method: Some(method), params: Some(params), result, error });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(line: &str, expected: &str) {
        let shown = match decode(line.as_bytes()) {
            None => "blank".to_owned(),
            Some(Incoming::Request { id, method, params }) => format!("{} {method} {params}", id.written),
            Some(Incoming::Notification { method, params }) => format!("- {method} {params}"),
            Some(Incoming::Answer { id, result }) => format!("answer {id} {result:?}"),
            Some(Incoming::Refused { id, error }) => format!("{} {}", id.written, i32::from(error.code)),
        };
        assert_eq!(shown, expected, "{line}");
    }

    #[test]
    fn lines_are_told_apart() {
        check("", "blank");
        check("  \r", "blank");
        check(r#"{"jsonrpc":"2.0","id":7,"method":"a"}"#, "7 a null");
        check(r#"{"jsonrpc":"2.0","id":"x\u0041","method":"a","params":{}}"#, r#""x\u0041" a {}"#);
        check(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "null a null");
        check(r#"{"jsonrpc":"2.0","method":"a","params":[1]}"#, "- a [1]");
        check(r#"{"jsonrpc":"2.0","id":"p1","result":null}"#, r#"answer "p1" Ok(Null)"#);
        check(r#"{"jsonrpc":"2.0","id":"p1","error":{"code":1}}"#, r#"answer "p1" Err(Object {"code": Number(1)})"#);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        check("{", "null -32700");
        check("[]", "null -32600");
        check(r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#, "null -32600");
        check("3", "null -32600");
        check(r#"{"id":1,"method":"a"}"#, "1 -32600");
        check(r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, "1 -32600");
        check(r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, "null -32600");
        check(r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, "null -32600");
        check(r#"{"jsonrpc":"2.0","id":1}"#, "1 -32600");
        check(r#"{"jsonrpc":"2.0","id":1,"method":5}"#, "1 -32600");
        check(&format!("{}1{}", "[".repeat(9000), "]".repeat(9000)), "null -32700");
    }

    #[test]
    fn ids_are_equal_if_they_mean_the_same() {
        let id = |text: &str| RequestId::of(&RawValue::from_string(text.to_owned()).expect("JSON")).expect("an id");
        let check = |one: &str, other: &str, is_same: bool| {
            assert_eq!(id(one) == id(other), is_same, "{one} {other}");
            let named = RequestId::of_value(&serde_json::from_str(one).expect("JSON"));
            assert_eq!(named == id(other), is_same, "{one} {other}");
        };
        check(r#""dup""#, r#""d\u0075p""#, true);
        check(r#""é""#, r#""\u00e9""#, true);
        check(r#""a/b""#, r#""a\/b""#, true);
        check("7", "7", true);
        check("7", r#""7""#, false);
        check("null", r#""null""#, false);
        assert_eq!(id(r#""\ud800""#), id(r#""\ud800""#));
    }

    #[test]
    fn frames_have_the_members_they_need() {
        let line = |append: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            append(&mut out);
            String::from_utf8(out).expect("UTF-8")
        };
        let null = RawValue::from_string("null".to_owned()).expect("JSON");
        let id = RequestId::of_value(&7.into());
        assert_eq!(line(&|out| append_answer(out, &id, Ok(&null))), r#"{"jsonrpc":"2.0","id":7,"result":null}"#);
        assert_eq!(
            line(&|out| append_answer(out, &RequestId::null(), Err(&parse("no")))),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#
        );
        assert_eq!(line(&|out| append_notification(out, "m", &1)), r#"{"jsonrpc":"2.0","method":"m","params":1}"#);
        assert_eq!(
            line(&|out| append_request(out, "p1", "m", &1)),
            r#"{"jsonrpc":"2.0","id":"p1","method":"m","params":1}"#
        );
    }

    proptest! {
        #[test]
        fn ids_come_back_as_they_were_written(id in "(-?[1-9][0-9]{0,18}|0|\"[a-z \\\\u]{0,0}[a-z0-9 é-]{0,12}\")") {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\"}}");
            let Some(Incoming::Request { id: read, .. }) = decode(line.as_bytes()) else { panic!("{line}") };
            let mut out = Vec::new();
            append_answer(&mut out, &read, Err(&parse("")));
            let text = String::from_utf8(out).expect("UTF-8");
            prop_assert!(text.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},")), "{}", text);
        }

        #[test]
        fn any_line_has_an_outcome(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(&bytes);
        }
    }
}
