//! The fields of a form that are asked for one after the other, each with the dialog that fits it.

use pith_protocol::host::{UiAnswer, UiMethod};
use serde_json::{Value, json};

use super::{Asker, MAX_TRIES, limit};

const YES: &str = "Yes";
const NO: &str = "No";

/// One field of a form.
#[derive(Debug, PartialEq)]
pub struct Field {
    pub name: String,
    /// What it is called and what it is for.
    label: String,
    kind: Kind,
    is_required: bool,
    default: Option<Value>,
}

#[derive(Debug, PartialEq)]
enum Kind {
    Text,
    Number,
    Integer,
    Flag,
    /// Values with the texts that stand for them.
    One(Vec<(String, String)>),
    Several(Vec<(String, String)>),
}

/// What came of a field.
pub enum Filled {
    With(Value),
    LeftOut,
    Cancelled,
}

/// The fields of a schema of primitive properties; required ones first, as the schema orders them.
pub fn fields(schema: &Value) -> Vec<Field> {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut fields: Vec<Field> = properties.map(|(name, schema)| field(name, schema, &required)).collect();
    fields.sort_by_key(|field| required.iter().position(|name| *name == field.name).unwrap_or(usize::MAX));
    fields
}

fn field(name: &str, schema: &Value, required: &[&str]) -> Field {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let kind = match text("type") {
        Some("boolean") => Kind::Flag,
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some("array") => Kind::Several(schema.get("items").map(choices).unwrap_or_default()),
        _ => match choices(schema) {
            choices if choices.is_empty() => Kind::Text,
            choices => Kind::One(choices),
        },
    };
    let title = text("title").unwrap_or(name);
    Field {
        name: name.to_owned(),
        label: text("description").map_or_else(|| title.to_owned(), |about| format!("{title}: {about}")),
        kind,
        is_required: required.contains(&name),
        default: schema.get("default").filter(|default| !default.is_null()).cloned(),
    }
}

/// The values of `enum`, with `enumNames` as texts, or of `oneOf` or `anyOf` with titles.
fn choices(schema: &Value) -> Vec<(String, String)> {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    let titled = list("oneOf").or_else(|| list("anyOf")).into_iter().flatten().filter_map(|choice| {
        let value = choice.get("const")?.as_str()?;
        let title = choice.get("title").and_then(Value::as_str).unwrap_or(value);
        Some((value.to_owned(), title.to_owned()))
    });
    let names = list("enumNames");
    let plain = list("enum").into_iter().flatten().enumerate().filter_map(|(at, value)| {
        let value = value.as_str()?;
        let name = names.and_then(|names| names.get(at)).and_then(Value::as_str).unwrap_or(value);
        Some((value.to_owned(), name.to_owned()))
    });
    titled.chain(plain).collect()
}

impl Field {
    /// Asks for the field; again if the answer does not fit it.
    pub async fn fill(&self, user: &Asker<'_>, lead: &str) -> Filled {
        let mut title = format!("{lead}\n{}", self.label);
        for _ in 0..MAX_TRIES {
            let answer = match user.ask(self.dialog(title)).await {
                UiAnswer::Value(answer) => answer,
                UiAnswer::Confirmed(yes) => (if yes { YES } else { NO }).to_owned(),
                UiAnswer::Cancelled | UiAnswer::Malformed(_) => return Filled::Cancelled,
            };
            if answer.trim().is_empty() && (self.default.is_some() || !self.is_required) {
                return self.default.clone().map_or(Filled::LeftOut, Filled::With);
            }
            match self.read(answer.trim()) {
                Ok(value) => return Filled::With(value),
                Err(why) => title = format!("{lead}\n{} ({why})", self.label),
            }
        }
        Filled::Cancelled
    }

    fn dialog(&self, title: String) -> UiMethod {
        let texts = |choices: &[(String, String)]| choices.iter().map(|(_, text)| text.clone()).collect::<Vec<_>>();
        match &self.kind {
            Kind::Flag => UiMethod::Select { title, options: vec![YES.to_owned(), NO.to_owned()], timeout: limit() },
            Kind::One(choices) => UiMethod::Select { title, options: texts(choices), timeout: limit() },
            Kind::Several(choices) => {
                let placeholder = Some(format!("some of: {}", texts(choices).join(", ")));
                UiMethod::Input { title, placeholder, timeout: limit() }
            }
            Kind::Text | Kind::Number | Kind::Integer => {
                let placeholder = self.default.as_ref().map(|default| match default {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                });
                UiMethod::Input { title, placeholder, timeout: limit() }
            }
        }
    }

    fn read(&self, answer: &str) -> Result<Value, String> {
        let chosen = |choices: &[(String, String)], answer: &str| {
            let found = choices.iter().find(|(value, text)| text == answer || value == answer);
            found.map(|(value, _)| json!(value)).ok_or_else(|| format!("\"{answer}\" is none of the choices"))
        };
        match &self.kind {
            Kind::Text if answer.is_empty() => Err("it is needed".to_owned()),
            Kind::Text => Ok(json!(answer)),
            Kind::Integer => {
                answer.parse::<i64>().map(|number| json!(number)).map_err(|_| "a whole number is needed".to_owned())
            }
            Kind::Number => match answer.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(json!(number)),
                _ => Err("a number is needed".to_owned()),
            },
            Kind::Flag => match answer {
                YES => Ok(json!(true)),
                NO => Ok(json!(false)),
                _ => Err(format!("{YES} or {NO} is needed")),
            },
            Kind::One(choices) => chosen(choices, answer),
            Kind::Several(choices) => {
                let words = answer.split(',').map(str::trim).filter(|word| !word.is_empty());
                words.map(|word| chosen(choices, word)).collect::<Result<Vec<_>, _>>().map(Value::Array)
            }
        }
    }
}
