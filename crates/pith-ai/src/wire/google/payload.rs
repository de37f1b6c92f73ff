//! A request as extensions know it: the vendor's library keeps everything but the model and the
//! conversation in one `config`, and takes the system prompt as a text.

use serde_json::{Map, Value, json};

/// Fields of the body that are fields of `config` there.
const BESIDE: [&str; 5] = ["systemInstruction", "tools", "toolConfig", "safetySettings", "cachedContent"];

/// Returns a request body in the shape that extensions know.
pub(super) fn shown(model: &str, body: Value) -> Value {
    let Value::Object(mut body) = body else { return body };
    let mut config = match body.shift_remove("generationConfig") {
        Some(Value::Object(config)) => config,
        _ => Map::new(),
    };
    for name in BESIDE {
        if let Some(value) = body.shift_remove(name) {
            let text = value["parts"][0]["text"].as_str().filter(|_| name == "systemInstruction");
            let value = text.map_or_else(|| value.clone(), Value::from);
            config.insert(name.to_owned(), value);
        }
    }
    let contents = body.shift_remove("contents").unwrap_or_else(|| json!([]));
    let mut shown = Map::from_iter([("model".to_owned(), json!(model)), ("contents".to_owned(), contents)]);
    shown.insert("config".to_owned(), Value::Object(config));
    shown.extend(body);
    Value::Object(shown)
}

/// Returns the request body for a shown one, which extensions may have changed.
pub(super) fn sent(shown: Value) -> Value {
    let Value::Object(mut body) = shown else { return shown };
    // It is in the address.
    body.shift_remove("model");
    let Some(Value::Object(mut config)) = body.shift_remove("config") else { return Value::Object(body) };
    for name in BESIDE {
        match config.shift_remove(name) {
            Some(Value::String(text)) if name == "systemInstruction" => {
                body.insert(name.to_owned(), json!({"role": "user", "parts": [{"text": text}]}));
            }
            Some(value) => _ = body.insert(name.to_owned(), value),
            None => {}
        }
    }
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(config));
    }
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_back_as_it_was() {
        let body = json!({
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "systemInstruction": {"role": "user", "parts": [{"text": "be brief"}]},
            "tools": [{"functionDeclarations": []}],
            "generationConfig": {"maxOutputTokens": 9, "thinkingConfig": {"thinkingBudget": 0}},
        });
        let shown = shown("gemini-x", body.clone());
        assert_eq!(shown["model"], "gemini-x");
        assert_eq!(shown["config"]["systemInstruction"], "be brief");
        assert_eq!(shown["config"]["maxOutputTokens"], 9);
        assert_eq!(sent(shown), body);
    }

    #[test]
    fn what_was_changed_is_sent() {
        let mut shown = shown("m", json!({"contents": []}));
        shown["config"]["temperature"] = json!(0.5);
        assert_eq!(sent(shown), json!({"contents": [], "generationConfig": {"temperature": 0.5}}));
        assert_eq!(sent(json!({"contents": [], "config": 5})), json!({"contents": []}));
        assert_eq!(sent(json!(null)), json!(null));
    }
}
