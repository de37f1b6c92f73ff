//! Estimates how much work a validation is before it is begun: a small schema whose references refer on, several at
//! each step, can keep a validator busy for years.

use serde_json::Value;

use crate::References;

/// How many pairs of a schema and a value a validation may look at. That many took 0.12 s in a release build.
const MAX_STEPS: usize = 200_000;
/// How deeply it may nest, which also ends references that lead back to themselves.
const MAX_NESTING: usize = 512;

/// Returns whether a value can be checked against a schema in a bearable time. Every branch counts as taken.
pub fn is_checkable(schema: &Value, value: &Value) -> bool {
    let references = References::of(schema);
    // Without references the work is at most the size of the schema times that of the value.
    references.is_empty()
        || references.is_complete()
            && Estimate { references: &references, n_left: MAX_STEPS }.visit(schema, value, 0).is_some()
}

/// What may be spent on validations that come in addition, all of them together.
pub(super) struct Effort {
    n_left: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Effort { n_left: MAX_STEPS }
    }
}

impl Effort {
    /// Spends what it takes to check a value against a part of a schema; `false` if not that much is left.
    pub(super) fn covers<'a>(&mut self, references: &References<'a>, part: &'a Value, value: &Value) -> bool {
        let mut estimate = Estimate { references, n_left: self.n_left };
        let is_covered = estimate.visit(part, value, 0).is_some();
        self.n_left = estimate.n_left;
        is_covered
    }
}

struct Estimate<'r, 'a> {
    references: &'r References<'a>,
    n_left: usize,
}

impl<'a> Estimate<'_, 'a> {
    /// Counts what a validator would look at; nothing if that is too much.
    fn visit(&mut self, schema: &'a Value, value: &Value, nesting: usize) -> Option<()> {
        self.n_left = self.n_left.checked_sub(1)?;
        let Value::Object(keywords) = schema else { return Some(()) };
        if nesting >= MAX_NESTING {
            return None;
        }
        let nesting = nesting + 1;
        for (keyword, rule) in keywords {
            match (keyword.as_str(), rule) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    for target in self.references.targets(reference) {
                        self.visit(target, value, nesting)?;
                    }
                }
                ("not" | "if" | "then" | "else", schema) => self.visit(schema, value, nesting)?,
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                    for schema in schemas {
                        self.visit(schema, value, nesting)?;
                    }
                }
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    for schema in schemas.values() {
                        self.visit(schema, value, nesting)?;
                    }
                }
                ("properties", Value::Object(schemas)) => {
                    for (name, member) in value.as_object().into_iter().flatten() {
                        if let Some(schema) = schemas.get(name) {
                            self.visit(schema, member, nesting)?;
                        }
                    }
                }
                ("patternProperties", Value::Object(schemas)) => {
                    for schema in schemas.values() {
                        self.visit_children(schema, value, nesting)?;
                    }
                }
                ("items" | "prefixItems", Value::Array(schemas)) => {
                    for (schema, item) in schemas.iter().zip(value.as_array().into_iter().flatten()) {
                        self.visit(schema, item, nesting)?;
                    }
                }
                (
                    "additionalProperties"
                    | "unevaluatedProperties"
                    | "propertyNames"
                    | "items"
                    | "additionalItems"
                    | "unevaluatedItems"
                    | "contains",
                    schema,
                ) => self.visit_children(schema, value, nesting)?,
                _ => {}
            }
        }
        Some(())
    }

    fn visit_children(&mut self, schema: &'a Value, value: &Value, nesting: usize) -> Option<()> {
        match value {
            Value::Object(members) => members.values().try_for_each(|member| self.visit(schema, member, nesting)),
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(schema, item, nesting)),
            _ => Some(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mismatch;

    fn check(schema: &Value, value: &Value, expected: bool) {
        assert_eq!(is_checkable(schema, value), expected, "{schema} {value}");
        // Ends at once in either case.
        mismatch(schema, value);
    }

    #[test]
    fn branches_that_multiply_are_not_checked() {
        let level = |level: usize| {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            (format!("d{level}"), json!({"anyOf": [next, next, next, next]}))
        };
        let schema = |n_levels: usize| {
            let mut levels: serde_json::Map<String, Value> = (0..n_levels).map(level).collect();
            levels.insert(format!("d{n_levels}"), json!({"type": "string"}));
            json!({"$defs": levels, "$ref": "#/$defs/d0"})
        };
        check(&schema(5), &json!(1), true);
        check(&schema(14), &json!(1), false);
        check(&schema(60), &json!("fits"), false);
    }

    #[test]
    fn recursion_costs_as_much_as_there_is_to_check() {
        let node = json!({"$ref": "#/$defs/node"});
        let all = json!({"type": "array", "items": node});
        let filter =
            json!({"$defs": {"node": {"properties": {"and": all, "or": all, "not": node}}}, "$ref": "#/$defs/node"});
        let value = (0..20).fold(json!({}), |inner, _| json!({"and": [inner, {"not": {}}], "or": [{}]}));
        check(&filter, &value, true);
        assert!(mismatch(&filter, &json!({"and": [{"not": 1, "or": 2}]})).is_some());
        let twice = json!({"properties": {"a": {"$ref": "#"}}, "allOf": [{"properties": {"a": {"$ref": "#"}}}]});
        let deep = |n_levels: usize| (0..n_levels).fold(json!({}), |inner, _| json!({"a": inner}));
        check(&twice, &deep(10), true);
        check(&twice, &deep(60), false);
    }

    #[test]
    fn references_that_lead_back_to_themselves_are_not_checked() {
        let circle = json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
        check(&circle, &json!({}), false);
    }
}
