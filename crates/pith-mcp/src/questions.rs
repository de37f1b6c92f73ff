//! Questions of a server to the user (`elicitation/create`), asked with the dialogs of the host, one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pith_agent::BoxFuture;
use pith_protocol::host::{UiAnswer, UiMethod};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use url::Url;

/// Shows a dialog to the user and returns the answer. A future that is dropped takes the dialog back.
pub type Ask = Arc<dyn Fn(UiMethod) -> BoxFuture<'static, UiAnswer> + Send + Sync>;

/// How long the user may take for all dialogs of a question.
const LIMIT: Duration = Duration::from_secs(5 * 60);
/// How often a field is asked for that was filled with something else.
const MAX_TRIES: usize = 3;
const YES: &str = "Yes";
const NO: &str = "No";

/// The questions of one connection.
pub struct Questions {
    server: String,
    /// `None` if there is nobody to ask.
    ask: Option<Ask>,
    /// How many wait for an answer.
    open: AtomicUsize,
}

/// What the user made of a question.
#[derive(Debug, PartialEq)]
pub enum Reaction {
    Accepted(Map<String, Value>),
    Declined,
    Cancelled,
}

impl Reaction {
    /// The result of the request.
    pub fn result(self) -> Value {
        match self {
            Reaction::Accepted(content) => json!({"action": "accept", "content": content}),
            Reaction::Declined => json!({"action": "decline"}),
            Reaction::Cancelled => json!({"action": "cancel"}),
        }
    }
}

impl Questions {
    pub fn of(server: &str, ask: Option<Ask>) -> Self {
        Questions { server: server.to_owned(), ask, open: AtomicUsize::new(0) }
    }

    /// Whether somebody can answer.
    pub fn has_user(&self) -> bool {
        self.ask.is_some()
    }

    /// Whether a request of the server waits for its answer; meanwhile the time of calls stands still.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Counts a request of the server that waits for its answer, until the returned value is dropped.
    pub fn open(&self) -> Open<'_> {
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(&self.open)
    }

    /// Asks whether something may be done. Nobody there, or no answer in time, means no.
    pub async fn confirm(&self, title: String, message: String) -> bool {
        let Some(ask) = &self.ask else { return false };
        matches!(timeout(LIMIT, ask(confirm(title, message))).await, Ok(UiAnswer::Confirmed(true)))
    }

    /// Asks the user what a server wants to know. Nobody there declines at once.
    pub async fn elicit(&self, params: &Value) -> Reaction {
        let Some(ask) = &self.ask else { return Reaction::Declined };
        let _open = self.open();
        let asked = async {
            match params.get("mode").and_then(Value::as_str) {
                Some("url") => self.open_address(ask, params).await,
                _ => self.fill_form(ask, params).await,
            }
        };
        timeout(LIMIT, asked).await.unwrap_or(Reaction::Cancelled)
    }

    /// Shows an address with its host; the user opens it, pith never does.
    async fn open_address(&self, ask: &Ask, params: &Value) -> Reaction {
        let address = params.get("url").and_then(Value::as_str).unwrap_or_default();
        let host = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
        let Some(host) = host else { return Reaction::Declined };
        let title = format!("{} asks you to open a page of {host}", self.server);
        let message = format!("{}\n\n{address}", message(params));
        let page = Some(address.to_owned());
        match ask(UiMethod::Confirm { title, message, timeout: limit(), page }).await {
            UiAnswer::Confirmed(true) => Reaction::Accepted(Map::new()),
            UiAnswer::Confirmed(false) => Reaction::Declined,
            UiAnswer::Value(_) | UiAnswer::Cancelled | UiAnswer::Malformed(_) => Reaction::Cancelled,
        }
    }

    async fn fill_form(&self, ask: &Ask, params: &Value) -> Reaction {
        let schema = params.get("requestedSchema");
        let fields: Vec<Field> = schema.map(fields).unwrap_or_default();
        let lead = format!("{} asks: {}", self.server, message(params));
        if fields.is_empty() {
            return match ask(confirm(format!("{} asks", self.server), message(params).to_owned())).await {
                UiAnswer::Confirmed(true) => Reaction::Accepted(Map::new()),
                UiAnswer::Confirmed(false) => Reaction::Declined,
                UiAnswer::Value(_) | UiAnswer::Cancelled | UiAnswer::Malformed(_) => Reaction::Cancelled,
            };
        }
        let mut content = Map::new();
        for field in fields {
            match field.fill(ask, &lead).await {
                Filled::With(value) => drop(content.insert(field.name, value)),
                Filled::LeftOut => {}
                Filled::Cancelled => return Reaction::Cancelled,
            }
        }
        Reaction::Accepted(content)
    }
}

/// A request of a server that waits for its answer.
pub struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn message(params: &Value) -> &str {
    params.get("message").and_then(Value::as_str).unwrap_or_default()
}

fn confirm(title: String, message: String) -> UiMethod {
    UiMethod::Confirm { title, message, timeout: limit(), page: None }
}

fn limit() -> Option<u64> {
    u64::try_from(LIMIT.as_millis()).ok()
}

/// One field of a form.
#[derive(Debug, PartialEq)]
struct Field {
    name: String,
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

enum Filled {
    With(Value),
    LeftOut,
    Cancelled,
}

/// The fields of a schema of primitive properties; required ones first, as the schema orders them.
fn fields(schema: &Value) -> Vec<Field> {
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
    async fn fill(&self, ask: &Ask, lead: &str) -> Filled {
        let mut title = format!("{lead}\n{}", self.label);
        for _ in 0..MAX_TRIES {
            let answer = match ask(self.dialog(title)).await {
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use super::*;

    /// Asks with prepared answers, and returns what came of it and the dialogs that were shown.
    async fn asked(params: Value, answers: impl IntoIterator<Item = UiAnswer>) -> (Reaction, Vec<UiMethod>) {
        let answers: Mutex<VecDeque<UiAnswer>> = Mutex::new(answers.into_iter().collect());
        let shown: Arc<Mutex<Vec<UiMethod>>> = Arc::default();
        let seen = shown.clone();
        let ask: Ask = Arc::new(move |dialog| {
            seen.lock().expect("no panic").push(dialog);
            let answer = answers.lock().expect("no panic").pop_front().unwrap_or(UiAnswer::Cancelled);
            Box::pin(async move { answer })
        });
        let reaction = Questions::of("git", Some(ask)).elicit(&params).await;
        let shown = std::mem::take(&mut *shown.lock().expect("no panic"));
        (reaction, shown)
    }

    fn form(properties: Value, required: &[&str]) -> Value {
        json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": properties, "required": required}})
    }

    fn accepted(content: Value) -> Reaction {
        Reaction::Accepted(content.as_object().expect("an object").clone())
    }

    #[tokio::test]
    async fn every_kind_of_field_has_its_dialog() {
        let properties = json!({
            "age": {"type": "integer", "title": "Age", "description": "in years"},
            "kind": {"type": "string", "enum": ["a", "b"], "enumNames": ["Ay", "Bee"]},
            "name": {"type": "string"},
            "size": {"type": "number", "default": 1.5},
            "sure": {"type": "boolean"},
            "tags": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "Ex"}, {"const": "y", "title": "Why"}]}},
        });
        let answers = ["Ann", "old", "7", "Bee", "", "Yes", "Ex, y"].map(UiAnswer::from);
        let (reaction, shown) = asked(form(properties, &["name"]), answers).await;
        let content = json!({"name": "Ann", "age": 7, "kind": "b", "size": 1.5, "sure": true, "tags": ["x", "y"]});
        assert_eq!(reaction, accepted(content));
        let titles: Vec<&str> = shown
            .iter()
            .map(|dialog| match dialog {
                UiMethod::Input { title, .. } | UiMethod::Select { title, .. } => title.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [
            "git asks: Who?\nname",
            "git asks: Who?\nAge: in years",
            "git asks: Who?\nAge: in years (a whole number is needed)",
            "git asks: Who?\nkind",
            "git asks: Who?\nsize",
            "git asks: Who?\nsure",
            "git asks: Who?\ntags",
        ];
        assert_eq!(titles, expected);
    }

    #[tokio::test]
    async fn a_form_is_left_in_the_middle_or_filled_in_part() {
        let properties = json!({"a": {"type": "string"}, "b": {"type": "string"}});
        let (reaction, _) = asked(form(properties.clone(), &["a"]), ["x".into(), UiAnswer::Cancelled]).await;
        assert_eq!(reaction, Reaction::Cancelled);
        let (reaction, _) = asked(form(properties.clone(), &["a"]), ["x", ""].map(UiAnswer::from)).await;
        assert_eq!(reaction, accepted(json!({"a": "x"})));
        let (reaction, shown) = asked(form(properties, &["a"]), ["", "", "", "x"].map(UiAnswer::from)).await;
        assert_eq!((reaction, shown.len()), (Reaction::Cancelled, MAX_TRIES));
    }

    #[tokio::test]
    async fn a_question_without_fields_and_an_address_are_confirmed() {
        for (answer, expected) in [
            (true.into(), accepted(json!({}))),
            (false.into(), Reaction::Declined),
            (UiAnswer::Cancelled, Reaction::Cancelled),
        ] {
            let (reaction, _) = asked(form(json!({}), &[]), [answer]).await;
            assert_eq!(reaction, expected);
        }
        let page = json!({"mode": "url", "message": "Sign in", "url": "https://example.com/x?y", "elicitationId": "1"});
        let (reaction, shown) = asked(page, [true.into()]).await;
        assert_eq!(reaction, accepted(json!({})));
        let UiMethod::Confirm { title, message, page, .. } = &shown[0] else { panic!("{shown:?}") };
        assert!(page.as_ref().is_some_and(|page| message.ends_with(page.as_str())), "{shown:?}");
        assert_eq!(title, "git asks you to open a page of example.com");
        assert_eq!(message, "Sign in\n\nhttps://example.com/x?y");
        let (reaction, shown) = asked(json!({"mode": "url", "url": "no address"}), []).await;
        assert_eq!((reaction, shown.len()), (Reaction::Declined, 0));
    }

    #[tokio::test]
    async fn nobody_declines() {
        assert_eq!(Questions::of("git", None).elicit(&form(json!({}), &[])).await, Reaction::Declined);
    }
}
