//! The todo list itself: phases of tasks, read from hosts and from session files.

use std::collections::HashSet;

use pith_protocol::todos::{TodoPhase as Phase, TodoPhaseInput, TodoStatus as Status, TodoTask as Task, TodoTaskInput};
use pith_protocol::{CommandError, ErrorCode};
use serde::Deserialize;
use serde_json::Value;

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
    /// Makes a list of the phases of `set_todos`; the error is the answer to the command.
    pub fn of_host(phases: Vec<TodoPhaseInput>) -> Result<TodoList, CommandError> {
        let mut list = TodoList { phases: phases.into_iter().map(phase).collect() };
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

/// Takes a phase of the host over; what it left out is empty until all have names.
fn phase(given: TodoPhaseInput) -> Phase {
    let TodoPhaseInput { id, name, tasks, extra } = given;
    let task = |TodoTaskInput { id, content, status, notes, details, extra }| Task {
        id: id.unwrap_or_default(),
        content,
        status: status.unwrap_or(Status::Pending),
        notes,
        details,
        extra,
    };
    Phase { id: id.unwrap_or_default(), name, tasks: tasks.into_iter().map(task).collect(), extra }
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

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::fields::{Field, Place};
    use serde_json::json;

    fn read(phases: Value) -> Result<Value, String> {
        let phases = Field::read(Some(phases), &Place::new("set_todos", "phases")).expect("readable");
        TodoList::of_host(phases).map(|list| json!(list.phases)).map_err(String::from)
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
    fn an_id_that_is_used_twice_is_refused() {
        let check = |phases: Value, text: &str| assert_eq!(read(phases).expect_err("refused"), text);
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
