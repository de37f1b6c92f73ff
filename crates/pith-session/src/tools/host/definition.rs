//! Checks the tool definitions of `set_host_tools`.

use serde_json::{Map, Value};

/// A valid definition.
#[derive(Debug, PartialEq)]
pub(super) struct Definition {
    pub name: String,
    pub label: String,
    pub description: String,
    pub parameters: Map<String, Value>,
    /// Registered, but not shown to the model.
    pub is_hidden: bool,
}

/// Reads all definitions; the first problem refuses all of them.
pub(super) fn read(tools: Vec<Value>) -> Result<Vec<Definition>, String> {
    let definitions =
        tools.into_iter().enumerate().map(|(index, tool)| one(index, tool)).collect::<Result<Vec<_>, _>>()?;
    let is_repeated =
        |(at, tool): (usize, &Definition)| definitions[..at].iter().any(|earlier| earlier.name == tool.name);
    if definitions.iter().enumerate().any(is_repeated) {
        return Err("RPC host tool names must be unique".to_owned());
    }
    Ok(definitions)
}

fn one(index: usize, tool: Value) -> Result<Definition, String> {
    let Value::Object(mut tool) = tool else {
        return Err(format!("Host tool at index {index} must provide a non-empty name"));
    };
    let text = |tool: &Map<String, Value>, name: &str| {
        tool.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let name =
        text(&tool, "name").ok_or_else(|| format!("Host tool at index {index} must provide a non-empty name"))?;
    let description = text(&tool, "description")
        .ok_or_else(|| format!("Host tool \"{name}\" must provide a non-empty description"))?;
    let Some(Value::Object(parameters)) = tool.remove("parameters") else {
        return Err(format!("Host tool \"{name}\" must provide a JSON Schema object"));
    };
    let label = text(&tool, "label").unwrap_or_else(|| name.clone());
    let is_hidden = tool.get("hidden") == Some(&Value::Bool(true));
    Ok(Definition { name, label, description, parameters, is_hidden })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(tools: Value) -> String {
        let Value::Array(tools) = tools else { panic!("a list") };
        read(tools).expect_err("refused")
    }

    #[test]
    fn refusals_say_which_tool_lacks_what() {
        assert_eq!(refusal(json!([7])), "Host tool at index 0 must provide a non-empty name");
        assert_eq!(
            refusal(json!([{"name": " ", "description": "d"}])),
            "Host tool at index 0 must provide a non-empty name"
        );
        let good = json!({"name": "a", "description": "d", "parameters": {}});
        assert_eq!(refusal(json!([good, {"description": "d"}])), "Host tool at index 1 must provide a non-empty name");
        assert_eq!(refusal(json!([{"name": "x"}])), "Host tool \"x\" must provide a non-empty description");
        let schema = "Host tool \"x\" must provide a JSON Schema object";
        assert_eq!(refusal(json!([{"name": "x", "description": "d"}])), schema);
        assert_eq!(refusal(json!([{"name": "x", "description": "d", "parameters": []}])), schema);
        assert_eq!(
            refusal(json!([good, {"name": " a ", "description": "e", "parameters": {}}])),
            "RPC host tool names must be unique"
        );
    }

    #[test]
    fn texts_are_trimmed_and_the_label_is_optional() {
        let tool =
            json!({"name": " x ", "description": " d\n", "parameters": {"type": "object"}, "hidden": true, "label": 5});
        let read = read(vec![tool]).expect("usable").remove(0);
        assert_eq!((&*read.name, &*read.label, &*read.description, read.is_hidden), ("x", "x", "d", true));
    }
}
