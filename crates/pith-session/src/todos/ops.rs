//! The operations of `todo_write`, applied to a list.

use std::fmt::Write;

use serde_json::{Map, Value};

use pith_protocol::todos::{TodoPhase as Phase, TodoStatus as Status, TodoTask as Task};

use super::list::{TodoList, mark};

/// Applies the operations in order. Returns the failures; the other operations are applied nevertheless.
pub(super) fn apply(list: &mut TodoList, ops: &[Value]) -> Vec<String> {
    let failures = ops.iter().filter_map(|op| apply_one(list, op).err()).collect();
    choose_current(list);
    failures
}

fn apply_one(list: &mut TodoList, op: &Value) -> Result<(), String> {
    let Value::Object(op) = op else { return Err("an operation must be an object".to_owned()) };
    match op.get("op").and_then(Value::as_str).unwrap_or_default() {
        "replace" => replace(list, op),
        "add_phase" => {
            let (phase, task) = (next_id(list.phases.iter().map(|phase| &*phase.id), "phase"), next_task(list));
            list.phases.push(new_phase(op, phase, &mut { task }, "add_phase")?);
            Ok(())
        }
        "add_task" => {
            let wanted = text(op, "phase").ok_or("add_task needs phase")?;
            let content = text(op, "content").ok_or("add_task needs content")?;
            let task = new_task(op, content, next_task(list), Status::Pending);
            let found = list.phases.iter_mut().find(|phase| phase.id == wanted || phase.name == wanted);
            found.ok_or_else(|| format!("no such phase: {wanted}"))?.tasks.push(task);
            Ok(())
        }
        "update" => update(list, op),
        "remove_task" => {
            let id = text(op, "id").ok_or("remove_task needs id")?;
            let phase = list.phases.iter_mut().find(|phase| phase.tasks.iter().any(|task| task.id == id));
            phase.ok_or_else(|| format!("no such task: {id}"))?.tasks.retain(|task| task.id != id);
            Ok(())
        }
        other => Err(format!("no such operation: {other:?}")),
    }
}

fn replace(list: &mut TodoList, op: &Map<String, Value>) -> Result<(), String> {
    let Some(Value::Array(phases)) = op.get("phases") else { return Err("replace needs phases".to_owned()) };
    let mut task = 1;
    let read = |(index, phase): (usize, &Value)| match phase {
        Value::Object(phase) => new_phase(phase, index as u64 + 1, &mut task, "replace"),
        _ => Err(format!("phase {} of replace must be an object", index + 1)),
    };
    list.phases = phases.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    Ok(())
}

fn update(list: &mut TodoList, op: &Map<String, Value>) -> Result<(), String> {
    let id = text(op, "id").ok_or("update needs id")?;
    let task = list.tasks_mut().find(|task| task.id == id).ok_or_else(|| format!("no such task: {id}"))?;
    if let Some(word) = text(op, "status") {
        task.status = Status::parse(word).ok_or_else(|| format!("no such status: {word}"))?;
    }
    if let Some(content) = text(op, "content") {
        task.content = content.to_owned();
    }
    task.notes = text(op, "notes").map(str::to_owned).or(task.notes.take());
    task.details = text(op, "details").map(str::to_owned).or(task.details.take());
    Ok(())
}

fn new_phase(fields: &Map<String, Value>, n: u64, next: &mut u64, op: &str) -> Result<Phase, String> {
    let name = text(fields, "name").ok_or_else(|| format!("{op} needs a name for each phase"))?;
    let mut tasks = Vec::new();
    for task in fields.get("tasks").and_then(Value::as_array).into_iter().flatten() {
        let Value::Object(task) = task else { return Err(format!("a task of {op} must be an object")) };
        let content = text(task, "content").ok_or_else(|| format!("{op} needs content for each task"))?;
        let status = match text(task, "status") {
            Some(word) => Status::parse(word).ok_or_else(|| format!("no such status: {word}"))?,
            None => Status::Pending,
        };
        tasks.push(new_task(task, content, *next, status));
        *next += 1;
    }
    Ok(Phase { id: format!("phase-{n}"), name: name.to_owned(), tasks, extra: Map::new() })
}

fn new_task(fields: &Map<String, Value>, content: &str, n: u64, status: Status) -> Task {
    Task {
        id: format!("task-{n}"),
        content: content.to_owned(),
        status,
        notes: text(fields, "notes").map(str::to_owned),
        details: text(fields, "details").map(str::to_owned),
        extra: Map::new(),
    }
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    fields.get(name)?.as_str()
}

fn next_task(list: &TodoList) -> u64 {
    next_id(list.tasks().map(|task| &*task.id), "task")
}

/// One more than the highest number in use.
fn next_id<'a>(ids: impl Iterator<Item = &'a str>, kind: &str) -> u64 {
    let number = |id: &str| id.strip_prefix(kind)?.strip_prefix('-')?.parse::<u64>().ok();
    ids.filter_map(number).max().unwrap_or(0).saturating_add(1)
}

/// Makes sure that one task is in progress as long as any is open, and never more than one.
fn choose_current(list: &mut TodoList) {
    let mut has_current = false;
    for task in list.tasks_mut().filter(|task| task.status == Status::InProgress) {
        if std::mem::replace(&mut has_current, true) {
            task.status = Status::Pending;
        }
    }
    if !has_current && let Some(task) = list.tasks_mut().find(|task| task.status == Status::Pending) {
        task.status = Status::InProgress;
    }
}

/// The text the model reads: open tasks, progress of the current phase, and the whole list.
pub(super) fn describe(list: &TodoList) -> String {
    if list.tasks().next().is_none() {
        return "Todo list cleared.".to_owned();
    }
    let mut text = String::new();
    let line = |text: &mut String, line: std::fmt::Arguments<'_>| {
        text.write_fmt(line).and_then(|()| text.write_char('\n')).expect("a string takes any text");
    };
    let n_open = list.tasks().filter(|task| task.status.is_open()).count();
    match n_open {
        0 => line(&mut text, format_args!("Nothing is left to do.")),
        _ => line(&mut text, format_args!("Left to do ({n_open}):")),
    }
    for phase in &list.phases {
        for task in phase.tasks.iter().filter(|task| task.status.is_open()) {
            line(&mut text, format_args!("{} {} {} ({})", mark(task.status), task.id, task.content, phase.name));
        }
    }
    if let Some(phase) = list.phases.iter().find(|phase| phase.tasks.iter().any(|task| task.status.is_open())) {
        let n_done = phase.tasks.iter().filter(|task| !task.status.is_open()).count();
        line(&mut text, format_args!("\nCurrent phase: {} ({n_done} of {} done)", phase.name, phase.tasks.len()));
    }
    for phase in &list.phases {
        line(&mut text, format_args!("\n{} ({})", phase.name, phase.id));
        for task in &phase.tasks {
            line(&mut text, format_args!("  {} {} {}", mark(task.status), task.id, task.content));
        }
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Checks the list after the operations, one line per phase, and the failures.
    fn check(ops: Value, lines: &[&str], failures: &[&str]) {
        let Value::Array(ops) = ops else { panic!("a list") };
        let mut list = TodoList::default();
        assert_eq!(apply(&mut list, &ops), failures);
        let shown = |phase: &Phase| {
            let tasks: Vec<_> =
                phase.tasks.iter().map(|task| format!("{}{} {}", mark(task.status), task.id, task.content)).collect();
            format!("{} {}: {}", phase.id, phase.name, tasks.join(", "))
        };
        assert_eq!(list.phases.iter().map(shown).collect::<Vec<_>>(), lines);
    }

    #[test]
    fn operations_build_a_list() {
        let start = json!({"op": "replace", "phases": [{"name": "P", "tasks": [{"content": "a"}, {"content": "b", "status": "in_progress"}]}]});
        check(json!([start]), &["phase-1 P: [ ]task-1 a, [>]task-2 b"], &[]);
        check(
            json!([start, {"op": "add_phase", "name": "Q", "tasks": [{"content": "c"}]}, {"op": "add_task", "phase": "phase-2", "content": "d"}]),
            &["phase-1 P: [ ]task-1 a, [>]task-2 b", "phase-2 Q: [ ]task-3 c, [ ]task-4 d"],
            &[],
        );
        check(
            json!([start, {"op": "update", "id": "task-2", "status": "completed", "content": "B"}]),
            &["phase-1 P: [>]task-1 a, [x]task-2 B"],
            &[],
        );
        check(json!([start, {"op": "remove_task", "id": "task-2"}]), &["phase-1 P: [>]task-1 a"], &[]);
    }

    #[test]
    fn one_task_is_current() {
        let two = json!({"op": "replace", "phases": [{"name": "P", "tasks": [
            {"content": "a", "status": "in_progress"}, {"content": "b", "status": "in_progress"}]}]});
        check(json!([two]), &["phase-1 P: [>]task-1 a, [ ]task-2 b"], &[]);
    }

    #[test]
    fn what_fails_does_not_stop_the_rest() {
        let start = json!({"op": "replace", "phases": [{"name": "P", "tasks": [{"content": "a"}]}]});
        check(
            json!([start, {"op": "update", "id": "task-9", "status": "completed"}, {"op": "add_task", "phase": "no", "content": "x"},
                   {"op": "dance"}, {"op": "update", "id": "task-1", "status": "done"}, {"op": "add_task", "phase": "P", "content": "b"}]),
            &["phase-1 P: [>]task-1 a, [ ]task-2 b"],
            &["no such task: task-9", "no such phase: no", "no such operation: \"dance\"", "no such status: done"],
        );
    }

    #[test]
    fn the_description_lists_what_is_left_first() {
        let mut list = TodoList::default();
        assert_eq!(describe(&list), "Todo list cleared.");
        apply(
            &mut list,
            &[
                json!({"op": "replace", "phases": [{"name": "P", "tasks": [{"content": "a", "status": "completed"}, {"content": "b"}]}]}),
            ],
        );
        assert_eq!(
            describe(&list),
            "Left to do (1):\n[>] task-2 b (P)\n\nCurrent phase: P (1 of 2 done)\n\nP (phase-1)\n  [x] task-1 a\n  [>] task-2 b"
        );
    }
}
