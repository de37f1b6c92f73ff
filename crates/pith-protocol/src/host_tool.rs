//! A tool that a host offers, as `set_host_tools` takes it.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::fields::{Field, FieldError, Place};

/// The definition of a tool. One that was read has texts without space around them, and an object as schema.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostToolInput {
    pub name: String,
    /// What the model reads.
    pub description: String,
    /// A JSON Schema of the arguments.
    #[cfg_attr(feature = "schema", schemars(with = "Map<String, Value>"))]
    pub parameters: Value,
    /// For people; the name if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Known, but not shown to the model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

/// All definitions of a command; the first problem refuses all of them.
impl Field for Vec<HostToolInput> {
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Vec<HostToolInput>>()
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        let tools = Vec::<Value>::read(value, place)?.into_iter().enumerate();
        let tools = tools.map(|(index, tool)| read_tool(index, tool)).collect::<Result<Vec<_>, _>>();
        let tools = tools.map_err(FieldError::HostTool)?;
        let is_repeated = |(at, tool): (usize, &HostToolInput)| tools[..at].iter().any(|other| other.name == tool.name);
        if tools.iter().enumerate().any(is_repeated) {
            return Err(FieldError::HostTool("RPC host tool names must be unique".to_owned()));
        }
        Ok(tools)
    }
}

fn read_tool(index: usize, tool: Value) -> Result<HostToolInput, String> {
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
    let parameters = tool
        .remove("parameters")
        .filter(Value::is_object)
        .ok_or_else(|| format!("Host tool \"{name}\" must provide a JSON Schema object"))?;
    let label = text(&tool, "label");
    let hidden = tool.get("hidden") == Some(&Value::Bool(true));
    Ok(HostToolInput { name, description, parameters, label, hidden })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(tools: Value) -> Result<Vec<HostToolInput>, String> {
        let place = Place::new("set_host_tools", "tools");
        Vec::<HostToolInput>::read(Some(tools), &place).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn refusals_say_which_tool_lacks_what() {
        let check = |tools: Value, text: &str| assert_eq!(read(tools).expect_err("refused"), text);
        let nameless = "Host tool at index 0 must provide a non-empty name";
        check(json!([7]), nameless);
        check(json!([{"name": " ", "description": "d"}]), nameless);
        let good = json!({"name": "a", "description": "d", "parameters": {}});
        check(json!([good, {"description": "d"}]), "Host tool at index 1 must provide a non-empty name");
        check(json!([{"name": "x"}]), "Host tool \"x\" must provide a non-empty description");
        let schema = "Host tool \"x\" must provide a JSON Schema object";
        check(json!([{"name": "x", "description": "d"}]), schema);
        check(json!([{"name": "x", "description": "d", "parameters": []}]), schema);
        check(
            json!([good, {"name": " a ", "description": "e", "parameters": {}}]),
            "RPC host tool names must be unique",
        );
        check(json!({}), "Invalid field \"tools\" for command \"set_host_tools\": expected array, got object");
    }

    #[test]
    fn texts_are_trimmed_and_the_label_is_optional() {
        let tool =
            json!({"name": " x ", "description": " d\n", "parameters": {"type": "object"}, "hidden": true, "label": 5});
        let read = read(json!([tool])).expect("usable").remove(0);
        assert_eq!((&*read.name, &*read.description, read.label, read.hidden), ("x", "d", None, true));
    }
}
