//! Tool schemas as Gemini reads them.

use serde_json::{Value, json};

use crate::schema;

/// Turns what has to be one text or number into a choice of one. Gemini ignores `const`.
pub(super) fn without_const(mut parameters: Value) -> Value {
    schema::walk(&mut parameters, &mut |object| {
        let is_plain = object.get("const").is_some_and(|value| value.is_string() || value.is_number());
        if is_plain && !object.contains_key("enum") {
            let value = object.shift_remove("const");
            object.insert("enum".to_owned(), json!([value]));
        }
    });
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_becomes_a_choice_of_one() {
        let schema = json!({
            "type": "object",
            "const": "x",
            "default": {"const": "stays"},
            "examples": [{"const": "stays"}],
            "properties": {
                "const": {"const": 5},
                "either": {"anyOf": [{"const": "a"}, {"const": true}, {"const": null}]},
                "list": {"type": "array", "items": {"const": "b", "description": "c"}},
                "both": {"const": "d", "enum": ["d", "e"]},
                "enum": {"enum": [{"const": "stays"}]}},
            "$defs": {"const": {"const": 1.5}},
        });
        assert_eq!(
            without_const(schema),
            json!({
                "type": "object",
                "enum": ["x"],
                "default": {"const": "stays"},
                "examples": [{"const": "stays"}],
                "properties": {
                    "const": {"enum": [5]},
                    "either": {"anyOf": [{"enum": ["a"]}, {"const": true}, {"const": null}]},
                    "list": {"type": "array", "items": {"enum": ["b"], "description": "c"}},
                    "both": {"const": "d", "enum": ["d", "e"]},
                    "enum": {"enum": [{"const": "stays"}]}},
                "$defs": {"const": {"enum": [1.5]}},
            })
        );
        let deep = (0..1000).fold(json!({"const": 1}), |inner, _| json!({"items": inner}));
        assert_eq!(without_const(deep.clone()), deep);
    }
}
