//! Checks the arguments of a tool call against the tool's JSON Schema.
//!
//! Models send `"5"` for `5` and `null` for "not given". Such mistakes are corrected on a copy before validation, so
//! the stored message keeps what the model sent. What is still wrong becomes a text the model can act on. Schemas also
//! come from hosts, extensions and MCP servers: if one cannot be compiled, or a check would take too long, the arguments
//! of its tool are not checked.

mod coerce;
mod effort;
mod reason;

use std::fmt::Write;
use std::sync::{Arc, OnceLock};

use jsonschema::{Draft, PatternOptions, ValidationError, ValidationOptions, Validator, ValidatorMap};
use serde_json::{Map, Value};
use url::Url;

use crate::{References, Tool};
use coerce::Coercion;
pub use effort::is_checkable;
use reason::Problem;

/// Deeper nested schemas and arguments are rejected, because both come from outside and the code recurses.
const MAX_DEPTH: usize = 128;

/// How many problems one answer lists; the model corrects the first few and calls again.
const MAX_PROBLEMS: usize = 32;

/// The parameters of one tool. Cheap to create; compiled by the first call that needs it.
pub struct ArgumentSchema {
    /// What the model was told: says which properties may be left out.
    parameters: Arc<Value>,
    /// What arguments have to fit.
    checked: Arc<Value>,
    compiled: OnceLock<Option<Compiled>>,
}

struct Compiled {
    validator: Validator,
    draft: Option<Draft>,
    /// One validator per sub-schema, built when a value has to be matched against members of a union.
    parts: OnceLock<Option<ValidatorMap>>,
}

impl ArgumentSchema {
    /// Takes the JSON Schema object that the model sees.
    pub fn new(parameters: Arc<Value>) -> Self {
        ArgumentSchema { checked: parameters.clone(), parameters, compiled: OnceLock::new() }
    }

    /// Takes what a tool checks arguments against.
    pub fn of(tool: &dyn Tool) -> Self {
        ArgumentSchema {
            checked: tool.argument_schema().clone(),
            ..ArgumentSchema::new(tool.spec().parameters.clone())
        }
    }

    /// Returns the arguments to run `tool` with, or the text that tells the model what is wrong with them.
    pub fn check(&self, tool: &str, arguments: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let Some(compiled) = self.compiled.get_or_init(|| Compiled::new(&self.checked)) else {
            return Ok(arguments.clone());
        };
        if arguments.values().any(|value| is_deeper_than(value, MAX_DEPTH)) {
            return Err(refusal(tool, &["root: is nested too deeply".to_owned()], arguments));
        }
        let mut value = Value::Object(arguments.clone());
        if !is_checkable(&self.checked, &value) {
            return Ok(arguments.clone());
        }
        if !compiled.validator.is_valid(&value) {
            coerce::drop_nulls(&References::of(&self.parameters), &self.parameters, &mut value);
            let part = |pointer: &str| compiled.part(&self.checked, pointer);
            Coercion::new(&self.checked, part).apply(&self.checked, &mut value);
            let problems = problems(&compiled.validator, &value);
            if !problems.is_empty() {
                return Err(refusal(tool, &problems, arguments));
            }
        }
        match value {
            Value::Object(arguments) => Ok(arguments),
            _ => unreachable!("no conversion changes an object into anything else"),
        }
    }
}

/// Says what is wrong with a value, if it does not fit a schema. A schema that cannot be compiled, or whose check would
/// take too long, refuses nothing.
pub fn mismatch(schema: &Value, value: &Value) -> Option<String> {
    let compiled = Compiled::new(schema)?;
    if is_deeper_than(value, MAX_DEPTH) {
        return Some("root: is nested too deeply".to_owned());
    }
    if !is_checkable(schema, value) {
        return None;
    }
    problems(&compiled.validator, value).into_iter().next()
}

impl Compiled {
    fn new(schema: &Value) -> Option<Self> {
        if is_deeper_than(schema, MAX_DEPTH) {
            return None;
        }
        // Without `$schema` the newest draft is assumed; only older drafts have tuples written as `items: [..]`.
        [None, Some(Draft::Draft7)].into_iter().find_map(|draft| {
            let validator = options(draft).build(schema).ok()?;
            Some(Compiled { validator, draft, parts: OnceLock::new() })
        })
    }

    fn part(&self, schema: &Value, pointer: &str) -> Option<&Validator> {
        self.parts.get_or_init(|| options(self.draft).build_map(schema).ok()).as_ref()?.get(pointer)
    }
}

fn options(draft: Option<Draft>) -> ValidationOptions<'static> {
    // Look-around is common in generated schemas, so the backtracking engine is used, with a limit that keeps the worst
    // pattern at a few milliseconds.
    let patterns = PatternOptions::fancy_regex().backtrack_limit(20_000).size_limit(1 << 20).dfa_size_limit(1 << 20);
    // `url` is no format of JSON Schema; TypeBox, which extensions write their schemas with, checks it.
    let is_url = |text: &str| Url::parse(text).is_ok();
    let options =
        jsonschema::options().should_validate_formats(true).with_format("url", is_url).with_pattern_options(patterns);
    match draft {
        Some(draft) => options.with_draft(draft),
        None => options,
    }
}

fn problems(validator: &Validator, value: &Value) -> Vec<String> {
    let mut found: Vec<Problem> = Vec::new();
    let mut more = 0usize;
    for error in validator.iter_errors(value).filter(ValidationError::is_decided) {
        let problem = Problem::new(&error);
        match found.iter().position(|known| known.covers(&problem)) {
            Some(at) => found[at].take(problem),
            None if found.len() < MAX_PROBLEMS => found.push(problem),
            None => more += 1,
        }
    }
    let mut lines: Vec<String> = found.iter().map(Problem::line).collect();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

trait Decided {
    fn is_decided(&self) -> bool;
}

impl Decided for ValidationError<'_> {
    /// Whether the error says something about the value: a pattern that the engine gave up on does not.
    fn is_decided(&self) -> bool {
        use jsonschema::error::ValidationErrorKind::{BacktrackLimitExceeded, RegexEngineFailure};
        !matches!(self.kind(), BacktrackLimitExceeded { .. } | RegexEngineFailure { .. })
    }
}

fn refusal(tool: &str, problems: &[String], arguments: &Map<String, Value>) -> String {
    let mut text = format!("Validation failed for tool \"{tool}\":\n");
    for problem in problems {
        writeln!(text, "  - {problem}").expect("a string takes any text");
    }
    let raw = serde_json::to_string_pretty(arguments).expect("JSON values always serialize");
    write!(text, "\nReceived arguments:\n{raw}").expect("a string takes any text");
    text
}

fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let mut children: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => return false,
    };
    levels == 0 || children.any(|child| is_deeper_than(child, levels - 1))
}

#[cfg(test)]
mod tests;
