//! Values that the user is asked for when a server starts: `inputs` of a file, as VS Code writes them, and
//! `${input:id}` in its entries.

use pith_protocol::fields::type_name;
use serde_json::Value;

use super::fields::Fields;

/// A value that the user is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompted {
    pub id: String,
    pub description: Option<String>,
    pub default: Option<String>,
    /// What there is to choose from; `None` for a text of the user's own.
    pub choices: Option<Vec<String>>,
}

impl Prompted {
    /// What is asked for where nothing is said about an id.
    pub fn named(id: &str) -> Self {
        Prompted { id: id.to_owned(), description: None, default: None, choices: None }
    }

    /// The variable that has the value.
    pub fn variable(id: &str) -> String {
        id.to_uppercase().replace(['-', '.', ' '], "_")
    }

    fn read(value: &Value) -> Result<Self, String> {
        let Value::Object(object) = value else { return Err(format!("expected an object, got {}", type_name(value))) };
        let fields = Fields(object);
        let Some(id) = fields.text("id")?.filter(|id| !id.is_empty()) else {
            return Err("id: it is missing".to_owned());
        };
        // Whatever is typed counts as a secret, also if `password` does not say so.
        fields.flag("password")?;
        let choices = match fields.text("type")?.as_deref() {
            Some("promptString") => None,
            Some("pickString") => Some(choices(object.get("options"))?),
            other => {
                let got = other.map_or_else(|| "nothing".to_owned(), |other| format!("\"{other}\""));
                return Err(format!("type: expected one of \"promptString\", \"pickString\", got {got}"));
            }
        };
        let (description, default) = (fields.text("description")?, fields.text("default")?);
        Ok(Prompted { id, description, default, choices })
    }
}

/// Texts, or objects with a `value`.
fn choices(options: Option<&Value>) -> Result<Vec<String>, String> {
    let Some(Value::Array(options)) = options.filter(|options| options.as_array().is_some_and(|all| !all.is_empty()))
    else {
        return Err("options: expected an array of strings".to_owned());
    };
    let choice = |(index, option): (usize, &Value)| {
        let text = option.as_str().or_else(|| option.get("value").and_then(Value::as_str));
        text.map(str::to_owned).ok_or_else(|| format!("options[{index}]: expected a string"))
    };
    options.iter().enumerate().map(choice).collect()
}

/// Reads `inputs` of a file; what cannot be used is named by its place.
pub fn read_prompted(document: &Value) -> (Vec<Prompted>, Vec<String>) {
    let (mut prompted, mut problems) = (Vec::new(), Vec::new());
    match document.get("inputs") {
        None | Some(Value::Null) => {}
        Some(Value::Array(inputs)) => {
            for (index, input) in inputs.iter().enumerate() {
                match Prompted::read(input) {
                    Ok(input) => prompted.push(input),
                    Err(why) => problems.push(format!("inputs[{index}]: {why}")),
                }
            }
        }
        Some(other) => problems.push(format!("inputs: expected an array, got {}", type_name(other))),
    }
    (prompted, problems)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn inputs_are_read_and_mistakes_are_named_by_their_place() {
        let (prompted, problems) = read_prompted(&json!({"inputs": [
            {"id": "key", "type": "promptString", "description": "Your key", "password": true, "default": "k"},
            {"id": "place", "type": "pickString", "options": ["eu", {"label": "America", "value": "us"}]},
            {"id": "c", "type": "command"}, {"type": "promptString"}, {"id": "p", "type": "pickString"},
            {"id": "p", "type": "pickString", "options": [5]}, {"id": "q", "type": "promptString", "password": 1}, 7,
        ]}));
        let key = Prompted {
            description: Some("Your key".to_owned()),
            default: Some("k".to_owned()),
            ..Prompted::named("key")
        };
        let place = Prompted { choices: Some(vec!["eu".to_owned(), "us".to_owned()]), ..Prompted::named("place") };
        assert_eq!(prompted, [key, place]);
        assert_eq!(
            problems,
            [
                "inputs[2]: type: expected one of \"promptString\", \"pickString\", got \"command\"",
                "inputs[3]: id: it is missing",
                "inputs[4]: options: expected an array of strings",
                "inputs[5]: options[0]: expected a string",
                "inputs[6]: password: expected a boolean, got number",
                "inputs[7]: expected an object, got number",
            ]
        );
        assert_eq!(read_prompted(&json!({"inputs": {}})).1, ["inputs: expected an array, got object"]);
        assert_eq!(read_prompted(&json!({})), (vec![], vec![]));
    }
}
