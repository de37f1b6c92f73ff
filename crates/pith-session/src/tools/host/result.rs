//! Reads what a host returns for a call.

use pith_agent::ToolOutput;
use pith_protocol::fields::type_name;
use pith_protocol::{Block, ImageBlock};
use serde_json::{Map, Value};

const FAILED: &str = "Host tool execution failed";

/// Reads `result` or `partialResult`; `Err` says what is wrong with it.
pub(super) fn read(value: Option<Value>) -> Result<ToolOutput, String> {
    let mut object = match value {
        Some(Value::Object(object)) => object,
        Some(other) => return Err(format!("expected an object, got {}", type_name(&other))),
        None => return Err("it is missing".to_owned()),
    };
    let items = match object.remove("content") {
        Some(Value::Array(items)) => items,
        Some(other) => return Err(format!("content: expected an array, got {}", type_name(&other))),
        None => return Err("content is missing".to_owned()),
    };
    let content = items
        .into_iter()
        .enumerate()
        .map(|(index, item)| block(item).map_err(|why| format!("content[{index}]: {why}")));
    let content = content.collect::<Result<_, _>>()?;
    Ok(ToolOutput {
        content,
        details: object.remove("details").filter(|details| !details.is_null()),
        is_error: object.get("isError") == Some(&Value::Bool(true)),
        ..ToolOutput::default()
    })
}

/// The error a host reports: its texts, one per line.
pub(super) fn failure(output: &ToolOutput) -> ToolOutput {
    let texts: Vec<_> = output.content.iter().filter_map(Block::as_text).collect();
    let text = texts.join("\n");
    ToolOutput::error(if text.is_empty() { FAILED.to_owned() } else { text })
}

/// Reads a block of a type that models accept.
fn block(value: Value) -> Result<Block, String> {
    let mut object = match value {
        Value::Object(object) => object,
        other => return Err(format!("expected an object, got {}", type_name(&other))),
    };
    match object.get("type").and_then(Value::as_str) {
        Some("text") => Ok(Block::text(text(&mut object, "text")?)),
        Some("image") => {
            let (data, mime_type) = (text(&mut object, "data")?, text(&mut object, "mimeType")?);
            Ok(Block::Image(ImageBlock { data, mime_type }))
        }
        Some(other) => Err(format!("type must be \"text\" or \"image\", got \"{other}\"")),
        None => Err("type is missing".to_owned()),
    }
}

fn text(object: &mut Map<String, Value>, name: &str) -> Result<String, String> {
    match object.remove(name) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(format!("{name}: expected a string, got {}", type_name(&other))),
        None => Err(format!("{name} is missing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn results_are_read_or_refused_with_a_place() {
        let refusal = |value: Option<Value>| read(value).expect_err("refused");
        assert_eq!(refusal(None), "it is missing");
        assert_eq!(refusal(Some(json!("done"))), "expected an object, got string");
        assert_eq!(refusal(Some(json!({}))), "content is missing");
        assert_eq!(refusal(Some(json!({"content": "x"}))), "content: expected an array, got string");
        assert_eq!(refusal(Some(json!({"content": [{"type": "text"}]}))), "content[0]: text is missing");
        let mixed = json!({"content": [{"type": "text", "text": "a"}, {"type": "video"}]});
        assert_eq!(refusal(Some(mixed)), "content[1]: type must be \"text\" or \"image\", got \"video\"");
        let output =
            read(Some(json!({"content": [{"type": "text", "text": "a"}], "details": {"n": 1}}))).expect("usable");
        assert_eq!(output, ToolOutput::text("a").with_details(json!({"n": 1})));
        for (is_error, expected) in [(json!(true), true), (json!(false), false), (json!("true"), false)] {
            let output = read(Some(json!({"content": [], "isError": is_error}))).expect("usable");
            assert_eq!(output.is_error, expected);
        }
    }

    #[test]
    fn failures_join_their_texts() {
        let output = |texts: &[&str]| ToolOutput {
            content: texts.iter().map(|text| Block::text(*text)).collect(),
            ..Default::default()
        };
        assert_eq!(failure(&output(&["a", "b"])), ToolOutput::error("a\nb"));
        assert_eq!(failure(&output(&[])), ToolOutput::error("Host tool execution failed"));
    }
}
