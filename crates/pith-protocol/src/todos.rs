//! The todo list that hosts, models and session files share.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::fields::{Field, FieldError, Place, read_object, read_word};

/// A named group of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoPhase {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub tasks: Vec<TodoTask>,
    /// Whatever else the host said.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoTask {
    pub id: String,
    pub content: String,
    pub status: TodoStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    Pending,
    InProgress,
    Completed,
    Abandoned,
}

impl TodoStatus {
    /// Wire words and their meaning.
    pub const WORDS: &[(&str, TodoStatus)] = &[
        ("pending", TodoStatus::Pending),
        ("in_progress", TodoStatus::InProgress),
        ("completed", TodoStatus::Completed),
        ("abandoned", TodoStatus::Abandoned),
    ];

    /// The state of a wire word.
    pub fn parse(word: &str) -> Option<TodoStatus> {
        TodoStatus::WORDS.iter().find(|(name, _)| *name == word).map(|(_, status)| *status)
    }

    /// Whether there is something left to do.
    pub fn is_open(self) -> bool {
        matches!(self, TodoStatus::Pending | TodoStatus::InProgress)
    }
}

/// A phase as `set_todos` takes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoPhaseInput {
    /// Filled in by position if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TodoTaskInput>,
    /// Whatever else the host says; it is kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A task as `set_todos` takes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoTaskInput {
    /// Filled in by position if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub content: String,
    /// `pending` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TodoStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Field for Vec<TodoPhaseInput> {
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Vec<TodoPhaseInput>>()
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        let phases = Vec::<Value>::read(value, place)?.into_iter().enumerate();
        phases.map(|(index, phase)| read_phase(phase, &place.element(index))).collect()
    }
}

fn read_phase(value: Value, place: &Place) -> Result<TodoPhaseInput, FieldError> {
    let mut object = read_object(value, place)?;
    let tasks = Option::<Vec<Value>>::read(object.remove("tasks"), &place.member("tasks"))?.unwrap_or_default();
    let read = |(index, value)| read_task(value, &place.member("tasks").element(index));
    Ok(TodoPhaseInput {
        id: Option::read(object.remove("id"), &place.member("id"))?,
        name: String::read(object.remove("name"), &place.member("name"))?,
        tasks: tasks.into_iter().enumerate().map(read).collect::<Result<_, _>>()?,
        extra: object,
    })
}

fn read_task(value: Value, place: &Place) -> Result<TodoTaskInput, FieldError> {
    let mut object = read_object(value, place)?;
    let status = match object.remove("status") {
        None | Some(Value::Null) => None,
        given => Some(read_word(given, &place.member("status"), TodoStatus::WORDS)?),
    };
    let mut text = |name: &str| Option::<String>::read(object.remove(name), &place.member(name));
    let (id, notes, details) = (text("id")?, text("notes")?, text("details")?);
    let content = String::read(object.remove("content"), &place.member("content"))?;
    Ok(TodoTaskInput { id, content, status, notes, details, extra: object })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn refusals_name_the_place() {
        let place = Place::new("set_todos", "phases");
        let check = |phases: Value, text: &str| {
            let refusal = Vec::<TodoPhaseInput>::read(Some(phases), &place).expect_err("refused");
            assert_eq!(refusal.to_string(), text);
        };
        let field = |path: &str, rest: &str| format!("Invalid field \"{path}\" for command \"set_todos\": {rest}");
        check(json!([1]), &field("phases[0]", "expected object, got number"));
        check(json!([{"tasks": []}]), "Missing required field \"phases[0].name\" for command \"set_todos\"");
        check(json!([{"name": "x", "tasks": {}}]), &field("phases[0].tasks", "expected array, got object"));
        check(
            json!([{"name": "x", "tasks": [{"content": "a"}, {}]}]),
            "Missing required field \"phases[0].tasks[1].content\" for command \"set_todos\"",
        );
        let words = "expected one of \"pending\", \"in_progress\", \"completed\", \"abandoned\", got \"done\"";
        check(
            json!([{"name": "x", "tasks": [{"content": "a", "status": "done"}]}]),
            &field("phases[0].tasks[0].status", words),
        );
    }
}
