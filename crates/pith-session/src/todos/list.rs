//! The todo list itself: phases of tasks, read from hosts and from session files.

use std::collections::HashSet;

use pith_protocol::fields::{Field, FieldError, Place, read_word};
use pith_protocol::todos::{TodoPhase as Phase, TodoStatus as Status, TodoTask as Task};
use pith_protocol::{CommandError, ErrorCode};
use serde::Deserialize;
use serde_json::{Map, Value};

/// An ordered list of phases.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TodoList {
    pub phases: Vec<Phase>,
}

/// The mark in front of a task in texts for the model.
pub(crate) fn mark(status: Status) -> &'static str {
    match status {
        Status::Pending => "[ ]",
        Status::InProgress => "[>]",
        Status::Completed => "[x]",
        Status::Abandoned => "[-]",
    }
}

impl TodoList {
    /// Reads the phases of `set_todos`; the error is the answer to the command.
    pub fn read(phases: Vec<Value>) -> Result<TodoList, CommandError> {
        let place = Place::new("set_todos", "phases");
        let read = |(index, value)| read_phase(value, &place.element(index));
        let phases = phases.into_iter().enumerate().map(read).collect::<Result<Vec<_>, FieldError>>();
        let mut list = TodoList { phases: phases? };
        list.name_all()?;
        Ok(list)
    }

    /// Reads the list from a tool result, without the tasks that are finished.
    pub fn of_details(details: &Value) -> Option<TodoList> {
        let phases = Vec::<Phase>::deserialize(details.get("phases")?).ok()?;
        let mut list = TodoList { phases };
        list.retain(|task| task.status.is_open());
        Some(list)
    }

    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.phases.iter().flat_map(|phase| &phase.tasks)
    }

    pub fn tasks_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        self.phases.iter_mut().flat_map(|phase| &mut phase.tasks)
    }

    /// Keeps some tasks; removes phases that become empty.
    pub fn retain(&mut self, keep: impl Fn(&Task) -> bool) {
        for phase in &mut self.phases {
            phase.tasks.retain(&keep);
        }
        self.phases.retain(|phase| !phase.tasks.is_empty());
    }

    /// Fills missing ids by position; duplicates are an error.
    fn name_all(&mut self) -> Result<(), CommandError> {
        let phases = self.phases.iter_mut().map(|phase| &mut phase.id).collect();
        name("phase", phases)?;
        name("task", self.tasks_mut().map(|task| &mut task.id).collect())
    }
}

fn name(kind: &str, ids: Vec<&mut String>) -> Result<(), CommandError> {
    let mut taken = HashSet::new();
    for id in ids.iter().filter(|id| !id.is_empty()) {
        if !taken.insert(id.to_string()) {
            return Err(CommandError::new(ErrorCode::InvalidField, format!("Duplicate todo id \"{id}\"")));
        }
    }
    for (index, id) in ids.into_iter().enumerate().filter(|(_, id)| id.is_empty()) {
        // The host may have used this number for another item.
        let free = (index + 1..).map(|n| format!("{kind}-{n}")).find(|name| !taken.contains(name));
        *id = free.expect("numbers do not run out");
        taken.insert(id.clone());
    }
    Ok(())
}

fn read_phase(value: Value, place: &Place) -> Result<Phase, FieldError> {
    let mut object = read_object(value, place)?;
    let tasks = Option::<Vec<Value>>::read(object.remove("tasks"), &place.member("tasks"))?.unwrap_or_default();
    let read = |(index, value)| read_task(value, &place.member("tasks").element(index));
    Ok(Phase {
        id: Option::<String>::read(object.remove("id"), &place.member("id"))?.unwrap_or_default(),
        name: String::read(object.remove("name"), &place.member("name"))?,
        tasks: tasks.into_iter().enumerate().map(read).collect::<Result<_, _>>()?,
        extra: object,
    })
}

fn read_task(value: Value, place: &Place) -> Result<Task, FieldError> {
    let mut object = read_object(value, place)?;
    let status = match object.remove("status") {
        None | Some(Value::Null) => Status::Pending,
        given => read_word(given, &place.member("status"), Status::WORDS)?,
    };
    let mut text = |name: &str| Option::<String>::read(object.remove(name), &place.member(name));
    let (id, notes, details) = (text("id")?.unwrap_or_default(), text("notes")?, text("details")?);
    let content = String::read(object.remove("content"), &place.member("content"))?;
    Ok(Task { id, content, status, notes, details, extra: object })
}

fn read_object(value: Value, place: &Place) -> Result<Map<String, Value>, FieldError> {
    match value {
        Value::Object(object) => Ok(object),
        other => Err(place.expected("object", &other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(phases: Value) -> Result<Value, String> {
        let Value::Array(phases) = phases else { panic!("a list") };
        TodoList::read(phases).map(|list| json!(list.phases)).map_err(String::from)
    }

    #[test]
    fn missing_parts_are_filled_and_all_fields_kept() {
        let given = json!([
            {"name": "One", "tasks": [{"content": "a"}, {"content": "b", "status": "completed", "notes": "n", "colour": 3}]},
            {"id": "mine", "name": "Two", "tasks": [{"content": "c", "details": "d"}]},
            {"name": "Three"},
        ]);
        let filled = json!([
            {"id": "phase-1", "name": "One", "tasks": [
                {"id": "task-1", "content": "a", "status": "pending"},
                {"id": "task-2", "content": "b", "status": "completed", "notes": "n", "colour": 3}]},
            {"id": "mine", "name": "Two", "tasks": [{"id": "task-3", "content": "c", "status": "pending", "details": "d"}]},
            {"id": "phase-3", "name": "Three", "tasks": []},
        ]);
        assert_eq!(read(given), Ok(filled.clone()));
        assert_eq!(read(filled.clone()), Ok(filled), "a normal list stays as it is");
        let given = json!([{"name": "N", "tasks": [{"id": "task-2", "content": "a"}, {"content": "b"}]}]);
        assert_eq!(read(given).expect("usable")[0]["tasks"][1]["id"], "task-3");
    }

    #[test]
    fn refusals_name_the_place() {
        let check = |phases: Value, text: &str| assert_eq!(read(phases).expect_err("refused"), text);
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
        let twice =
            json!([{"name": "x", "tasks": [{"id": "task-1", "content": "a"}, {"id": "task-1", "content": "b"}]}]);
        check(twice, "Duplicate todo id \"task-1\"");
        check(json!([{"id": "p", "name": "x"}, {"id": "p", "name": "y"}]), "Duplicate todo id \"p\"");
    }

    #[test]
    fn a_list_from_a_file_has_only_what_is_left_to_do() {
        let phase = |id: &str, status: &str| json!({"id": id, "name": id, "tasks": [{"id": format!("{id}-t"), "content": "c", "status": status}]});
        let details = json!({"phases": [phase("a", "completed"), phase("b", "in_progress"), phase("c", "abandoned")]});
        let list = TodoList::of_details(&details).expect("a list");
        assert_eq!(json!(list.phases), json!([phase("b", "in_progress")]));
        assert_eq!(TodoList::of_details(&json!({"phases": 5})), None);
    }
}
