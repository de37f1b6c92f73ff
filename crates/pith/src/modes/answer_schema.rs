//! `--output-schema`: the last answer has to be JSON that fits a JSON Schema.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use jsonschema::Validator;
use serde_json::Value;

/// How often the model may mend its answer, unless the user says otherwise.
const USUAL_TRIES: u32 = 3;
/// How many errors the model is told at once; more would hide the first ones.
const MAX_ERRORS: usize = 10;
/// A schema is sent with every request, so a larger one is a mistake.
const MAX_BYTES: u64 = 1 << 20;

/// A schema that compiles.
pub struct AnswerSchema {
    path: PathBuf,
    schema: Value,
    validator: Validator,
    /// How often the model may mend its answer.
    pub n_tries: u32,
}

/// An answer that fits.
#[derive(Debug, PartialEq)]
pub struct FittingAnswer {
    /// The JSON as the model wrote it, without a code fence.
    pub text: String,
    pub value: Value,
}

impl AnswerSchema {
    /// Reads and compiles the schema; the error names the file and what is wrong with it.
    pub fn load(path: &Path, n_tries: Option<u32>) -> anyhow::Result<Self> {
        let shown = path.display();
        let size = std::fs::metadata(path).with_context(|| format!("cannot read the output schema {shown}"))?.len();
        ensure!(size <= MAX_BYTES, "the output schema {shown} is too large: more than {} KiB", MAX_BYTES >> 10);
        let text = std::fs::read(path).with_context(|| format!("cannot read the output schema {shown}"))?;
        let schema: Value =
            serde_json::from_slice(&text).with_context(|| format!("the output schema {shown} is not JSON"))?;
        let wrong = |at: String, why: String| {
            let place = if at.is_empty() { String::new() } else { format!(" at {at}") };
            anyhow::anyhow!("the output schema {shown} is not a valid JSON Schema{place}: {why}")
        };
        jsonschema::meta::validate(&schema)
            .map_err(|error| wrong(error.instance_path().to_string(), error.to_string()))?;
        let validator = jsonschema::validator_for(&schema)
            .map_err(|error| wrong(error.instance_path().to_string(), error.to_string()))?;
        Ok(AnswerSchema { path: path.to_owned(), schema, validator, n_tries: n_tries.unwrap_or(USUAL_TRIES) })
    }

    /// The file, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the system prompt says about it.
    pub fn instruction(&self) -> String {
        format!(
            "Your final answer is read by a program. Work as usual, with tools where they help; then answer with one \
             JSON value that fits the following JSON Schema, and with nothing else: no explanation, no code fence.\n\n{}",
            self.schema
        )
    }

    /// Returns the JSON of an answer, or what is wrong with it, one problem each.
    pub fn check(&self, answer: &str) -> Result<FittingAnswer, Vec<String>> {
        let text = without_fence(answer.trim());
        let value: Value = serde_json::from_str(text).map_err(|error| vec![format!("it is not JSON: {error}")])?;
        let problem = |error: jsonschema::ValidationError<'_>| match error.instance_path().to_string().as_str() {
            "" => error.to_string(),
            place => format!("at {place}: {error}"),
        };
        let problems: Vec<String> = self.validator.iter_errors(&value).take(MAX_ERRORS).map(problem).collect();
        if problems.is_empty() { Ok(FittingAnswer { text: text.to_owned(), value }) } else { Err(problems) }
    }

    /// The prompt that has the model mend its answer.
    pub fn mend(&self, problems: &[String]) -> String {
        format!(
            "Your answer does not fit the JSON Schema:\n- {}\n\nAnswer again, with the whole corrected JSON value and \
             nothing else.",
            problems.join("\n- ")
        )
    }
}

/// Models often put JSON into a code fence although they were told not to.
fn without_fence(answer: &str) -> &str {
    let inner = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inner = inner.and_then(|inner| inner.split_once('\n')).filter(|(language, _)| !language.contains('`'));
    inner.map_or(answer, |(_, json)| json.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn load(text: &str) -> anyhow::Result<AnswerSchema> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("schema.json");
        std::fs::write(&path, text).expect("written");
        AnswerSchema::load(&path, None)
    }

    #[test]
    fn the_answer_may_have_a_code_fence() {
        let schema = load(r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}"#).expect("fine");
        for answer in ["{\"n\": 1}", " {\"n\": 1}\n", "```json\n{\"n\": 1}\n```", "```\n{\"n\": 1}\n```\n"] {
            let fitting = schema.check(answer).expect(answer);
            assert_eq!((fitting.text.as_str(), fitting.value), ("{\"n\": 1}", json!({"n": 1})));
        }
    }

    #[test]
    fn problems_name_the_place() {
        let schema = load(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#).expect("fine");
        assert_eq!(schema.check("{\"n\":\"x\"}"), Err(vec!["at /n: \"x\" is not of type \"integer\"".to_owned()]));
        let problems = schema.check("Here it is: {}").expect_err("prose");
        assert!(problems[0].starts_with("it is not JSON: "), "{problems:?}");
        assert!(schema.mend(&problems).contains("- it is not JSON"));
    }

    #[test]
    fn a_schema_that_does_not_compile_is_named() {
        let error = |text: &str| format!("{:#}", load(text).err().expect(text));
        assert!(error("{").contains("schema.json is not JSON: "), "{}", error("{"));
        let wrong = error(r#"{"properties":{"n":{"type":"integre"}}}"#);
        assert!(wrong.contains("schema.json is not a valid JSON Schema at /properties/n/type: "), "{wrong}");
        let elsewhere = error(r#"{"$ref":"https://example.com/other.json"}"#);
        assert!(elsewhere.contains("is not a valid JSON Schema"), "{elsewhere}");
        let missing = AnswerSchema::load(Path::new("/no/where.json"), None).err().expect("missing");
        assert!(format!("{missing:#}").starts_with("cannot read the output schema /no/where.json: "), "{missing:#}");
    }
}
