//! Todos of the session: set by the host, updated by the model, cleared when done. A model that stops too early is
//! reminded of them.

mod list;
mod ops;
mod tool;

use std::sync::Arc;

use pith_agent::{Opening, ToolOutput, now_ms};
use pith_protocol::answers::TodoPhases;
use pith_protocol::commands::SetTodos;
use pith_protocol::todos::{TodoPhase, TodoTask};
use pith_protocol::{Content, CustomMessage, Event, Message, StopReason};
use pith_store::SessionStore;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::task::AbortHandle;

use crate::jobs::{Job, JobEnd};
use crate::reply::Reply;
use crate::session::Session;
use list::{TodoList, mark};
pub(crate) use tool::{TODO_WRITE, TodoWrite};

/// The `customType` of a reminder in the session file. Hosts that know reminders see them with a role of their own,
/// which no other program would understand in a file.
const REMINDER: &str = "todo-reminder";

/// The role that hosts know reminders by.
const ROLE: &str = "developer";

/// How many reminders one prompt can cause.
const MAX_REMINDERS: u32 = 3;

/// The list and its state in the session.
#[derive(Default)]
pub(crate) struct Todos {
    list: TodoList,
    /// The host has set a list, so it wants reminders.
    is_hosted: bool,
    /// Reminders since the last prompt.
    n_reminders: u32,
    /// Finished tasks and the timers after which they are removed.
    clearing: Vec<(String, AbortHandle)>,
}

impl Todos {
    /// The list as hosts see it.
    pub fn phases(&self) -> &[TodoPhase] {
        &self.list.phases
    }

    /// Called when a prompt starts. Resets the number of reminders.
    pub fn begin_prompt(&mut self) {
        self.n_reminders = 0;
    }

    /// Cancels the timers: finished tasks stay.
    pub fn stop_clearing(&mut self) {
        self.clearing.drain(..).for_each(|(_, wait)| wait.abort());
    }

    fn open_tasks(&self) -> Vec<&TodoTask> {
        self.list.tasks().filter(|task| task.status.is_open()).collect()
    }
}

impl Session {
    pub(crate) fn set_todos(&mut self, call: SetTodos, reply: Reply<SetTodos>) {
        let answer = TodoList::of_host(call.phases).map(|list| {
            self.todos.list = list;
            self.todos.is_hosted = true;
            self.todos.stop_clearing();
            self.clear_when_due();
            self.tools.activate(TODO_WRITE);
            self.assemble_prompt();
            TodoPhases { todo_phases: self.todos.phases().to_vec() }
        });
        self.answer(reply, answer);
    }

    /// Takes the list from the end of the branch; lists set by the host are kept in memory only.
    pub(crate) fn resume_todos(&mut self) {
        self.todos.stop_clearing();
        let list = of_branch(&self.store).unwrap_or_default();
        self.todos = Todos { list, ..Todos::default() };
    }

    /// Serves a call of `todo_write`.
    pub(crate) fn write_todos(&mut self, arguments: Map<String, Value>) -> ToolOutput {
        let ops = arguments.get("ops").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let failures = if ops.is_empty() { Vec::new() } else { ops::apply(&mut self.todos.list, ops) };
        self.clear_when_due();
        let mut text = ops::describe(&self.todos.list);
        for failure in failures.iter().rev() {
            text.insert_str(0, &format!("Not done: {failure}\n"));
        }
        if !ops.is_empty() && failures.len() == ops.len() {
            return ToolOutput::error(text);
        }
        let storage = if self.store.path().is_some() { "session" } else { "memory" };
        ToolOutput::text(text).with_details(json!({"phases": self.todos.phases(), "storage": storage}))
    }

    /// Starts a timer for each finished task, and cancels those of tasks that were reopened.
    fn clear_when_due(&mut self) {
        let finished = |id: &str, list: &TodoList| list.tasks().any(|task| task.id == id && !task.status.is_open());
        let Todos { list, clearing, .. } = &mut self.todos;
        clearing.retain(|(id, wait)| {
            let is_finished = finished(id, list);
            if !is_finished {
                wait.abort();
            }
            is_finished
        });
        let Some(delay) = self.options.todo_clear_after.filter(|_| !self.is_closing) else { return };
        for task in list.tasks().filter(|task| !task.status.is_open()) {
            if clearing.iter().any(|(id, _)| *id == task.id) {
                continue;
            }
            let id = task.id.clone();
            let wait = self.jobs.spawn(Job::Background, async move {
                tokio::time::sleep(delay).await;
                JobEnd::TodoDue(id)
            });
            clearing.push((task.id.clone(), wait));
        }
    }

    /// Called when a finished task has been shown long enough.
    pub(crate) fn on_todo_due(&mut self, id: &str) {
        let Some(at) = self.todos.clearing.iter().position(|(waiting, _)| waiting == id) else { return };
        self.todos.clearing.swap_remove(at);
        self.todos.list.retain(|task| task.id != id);
        self.out.event(&Event::TodoAutoClear);
    }

    /// How to continue when the model stops while tasks are open; `None` once it was reminded often enough.
    pub(crate) fn reminder(&mut self) -> Option<Opening> {
        let is_wanted = self.options.todo_reminders && self.todos.is_hosted && !self.is_closing;
        let last = self.store.messages().last().and_then(|message| message.as_assistant());
        let has_stopped = last.is_some_and(|answer| answer.stop_reason == StopReason::Stop);
        let open = self.todos.open_tasks();
        if !is_wanted || !has_stopped || open.is_empty() || self.todos.n_reminders == MAX_REMINDERS {
            return None;
        }
        let todos = open.into_iter().cloned().collect();
        let attempt = self.todos.n_reminders + 1;
        let text = reminder_text(&self.todos.list, attempt);
        self.todos.n_reminders = attempt;
        self.out.event(&Event::TodoReminder { todos, attempt, max_attempts: MAX_REMINDERS });
        let message = json!({
            "role": ROLE,
            "content": [{"type": "text", "text": text}],
            "attribution": "agent",
            "timestamp": now_ms(),
        });
        let Value::Object(message) = message else { return None };
        Some(Opening::Prompts(vec![Arc::new(Message::Other(message))]))
    }
}

/// The form in which a message is stored: reminders as custom messages, all others unchanged.
pub(crate) fn stored_form(message: &Arc<Message>) -> Arc<Message> {
    let Message::Other(reminder) = &**message else { return message.clone() };
    let content = reminder.get("content").and_then(|content| Content::deserialize(content).ok());
    let Some(content) = content.filter(|_| reminder.get("role").is_some_and(|role| role == ROLE)) else {
        return message.clone();
    };
    let timestamp = reminder.get("timestamp").and_then(Value::as_i64).unwrap_or_else(now_ms);
    let custom_type = REMINDER.to_owned();
    Arc::new(Message::Custom(CustomMessage { custom_type, content, timestamp, ..CustomMessage::default() }))
}

fn reminder_text(list: &TodoList, attempt: u32) -> String {
    let mut text = format!("You stopped, but these tasks are not finished (reminder {attempt} of {MAX_REMINDERS}):\n");
    for phase in &list.phases {
        let open: Vec<_> = phase.tasks.iter().filter(|task| task.status.is_open()).collect();
        if open.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{}\n", phase.name));
        for task in open {
            text.push_str(&format!("- {} {} {}\n", mark(task.status), task.id, task.content));
        }
    }
    text.push_str("\nGo on with them, or mark them completed or abandoned.");
    text
}

/// The newest list that a call of `todo_write` left on the branch.
fn of_branch(store: &SessionStore) -> Option<TodoList> {
    // Entries that a compaction has replaced are still in the file.
    store.results_of(TODO_WRITE).find_map(|message| of_message(&message))
}

fn of_message(message: &Message) -> Option<TodoList> {
    let Message::ToolResult(result) = message else { return None };
    let is_list = result.tool_name == TODO_WRITE && !result.is_error;
    result.details.as_ref().filter(|_| is_list).and_then(TodoList::of_details)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_protocol::{ToolResultMessage, UserMessage};
    use pith_store::CompactionEntry;
    use std::path::Path;

    fn result(content: &str, is_error: bool) -> Arc<Message> {
        let phases = json!([{"id": "phase-1", "name": "P", "tasks": [
            {"id": "task-1", "content": "done", "status": "completed"},
            {"id": "task-2", "content": content, "status": "pending"}]}]);
        Arc::new(Message::ToolResult(ToolResultMessage {
            tool_name: TODO_WRITE.to_owned(),
            details: Some(json!({"phases": phases, "storage": "session"})),
            is_error,
            ..ToolResultMessage::default()
        }))
    }

    fn left(store: &SessionStore) -> Vec<String> {
        of_branch(store).unwrap_or_default().tasks().map(|task| task.content.clone()).collect()
    }

    #[test]
    fn a_resumed_session_has_the_newest_list_of_its_branch() {
        let mut store = SessionStore::in_memory(Path::new("/"), None);
        assert!(left(&store).is_empty());
        store.append_message(&result("old", false));
        store.append_message(&result("new", false));
        store.append_message(&result("failed", true));
        assert_eq!(left(&store), ["new"]);
        // A compaction takes the result out of the context, not out of the file.
        store.append_message(&Arc::new(Message::User(UserMessage::new("go on".to_owned(), Vec::new(), 0))));
        store.append_compaction(&CompactionEntry { summary: "S".to_owned(), ..CompactionEntry::default() });
        assert!(!store.messages().iter().any(|message| matches!(**message, Message::ToolResult(_))));
        assert_eq!(left(&store), ["new"]);
    }
}
