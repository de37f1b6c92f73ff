//! The headers of the newer era that repeat parts of a request, so that gateways need not read it.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The mark of a schema's property whose value is repeated in a header.
const ANNOTATION: &str = "x-mcp-header";

/// Which arguments of which tools are repeated: the way to the value, and the name of its header.
#[derive(Default)]
pub struct Mirrored(HashMap<String, Vec<(Vec<String>, String)>>);

impl Mirrored {
    /// Learns the annotations of the tools in an answer; other answers have none.
    pub fn learn(&mut self, answer: &Value) {
        for tool in answer.pointer("/result/tools").and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            let mut found = Vec::new();
            collect(tool.pointer("/inputSchema/properties"), &mut Vec::new(), &mut found);
            if !found.is_empty() {
                self.0.insert(name.to_owned(), found);
            }
        }
    }

    /// Returns the headers of a request of the newer era.
    pub fn of(&self, request: &Value) -> Vec<(String, String)> {
        let Some(method) = request.get("method").and_then(Value::as_str) else { return Vec::new() };
        let mut headers = vec![("Mcp-Method".to_owned(), method.to_owned())];
        let named_by = match method {
            "tools/call" | "prompts/get" => "/params/name",
            "resources/read" => "/params/uri",
            _ => return headers,
        };
        let Some(name) = request.pointer(named_by).and_then(Value::as_str) else { return headers };
        headers.push(("Mcp-Name".to_owned(), header_text(name)));
        let arguments = request.pointer("/params/arguments");
        for (path, header) in self.0.get(name).into_iter().flatten().filter(|_| method == "tools/call") {
            let text = match path.iter().fold(arguments, |value, step| value?.get(step)) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Bool(value)) => value.to_string(),
                Some(Value::Number(number)) => number.to_string(),
                _ => continue,
            };
            headers.push((format!("Mcp-Param-{header}"), header_text(&text)));
        }
        headers
    }
}

fn collect(properties: Option<&Value>, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    for (name, schema) in properties.and_then(Value::as_object).into_iter().flatten() {
        path.push(name.clone());
        if let Some(header) = schema.get(ANNOTATION).and_then(Value::as_str).filter(|header| is_token(header)) {
            found.push((path.clone(), header.to_owned()));
        }
        collect(schema.get("properties"), path, found);
        path.pop();
    }
}

fn is_token(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_allowed)
}

/// A text as a header can carry it: what would be lost there is Base64 in a marked form.
fn header_text(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && text.trim() == text;
    let looks_marked = text.starts_with("=?base64?") && text.ends_with("?=");
    if is_plain && !looks_marked { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_repeated_in_headers() {
        let mut mirrored = Mirrored::default();
        let region = json!({"type": "string", "x-mcp-header": "Region"});
        let depth = json!({"type": "integer", "x-mcp-header": "Depth"});
        let bad = json!({"type": "string", "x-mcp-header": "a b"});
        mirrored.learn(&json!({"result": {"tools": [{"name": "find", "inputSchema": {"properties": {
            "region": region, "bad": bad, "options": {"properties": {"depth": depth}}}}}]}}));
        let check = |request: Value, expected: &[(&str, &str)]| {
            let headers = mirrored.of(&request);
            let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(headers, expected);
        };
        check(json!({"method": "tools/list"}), &[("Mcp-Method", "tools/list")]);
        let arguments = json!({"region": "Zürich", "bad": "x", "options": {"depth": 3}});
        check(
            json!({"method": "tools/call", "params": {"name": "find", "arguments": arguments}}),
            &[
                ("Mcp-Method", "tools/call"),
                ("Mcp-Name", "find"),
                ("Mcp-Param-Region", "=?base64?WsO8cmljaA==?="),
                ("Mcp-Param-Depth", "3"),
            ],
        );
        check(
            json!({"method": "resources/read", "params": {"uri": "a://b"}}),
            &[("Mcp-Method", "resources/read"), ("Mcp-Name", "a://b")],
        );
        check(json!({"id": 1, "result": {}}), &[]);
    }
}
