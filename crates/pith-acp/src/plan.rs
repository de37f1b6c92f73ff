//! The todo list as a plan.

use agent_client_protocol_schema::v1::{Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus};
use pith_protocol::todos::{TodoPhase, TodoStatus, TodoTask};

/// Returns all tasks as one plan. What was abandoned is struck through, because plans know no such state.
pub fn plan(phases: &[TodoPhase]) -> Plan {
    Plan::new(phases.iter().flat_map(|phase| &phase.tasks).map(entry).collect())
}

fn entry(task: &TodoTask) -> PlanEntry {
    let (status, priority) = match task.status {
        TodoStatus::Pending => (PlanEntryStatus::Pending, PlanEntryPriority::Medium),
        TodoStatus::InProgress => (PlanEntryStatus::InProgress, PlanEntryPriority::High),
        TodoStatus::Completed | TodoStatus::Abandoned => (PlanEntryStatus::Completed, PlanEntryPriority::Medium),
    };
    let text =
        if task.status == TodoStatus::Abandoned { format!("~~{}~~", task.content) } else { task.content.clone() };
    PlanEntry::new(text, priority, status)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_state_of_a_task_has_its_look() {
        let task = |content: &str, status: &str| json!({"id": content, "content": content, "status": status});
        let tasks = ["pending", "in_progress", "completed", "abandoned"].map(|status| task(status, status));
        let phases = json!([{"id": "p", "name": "P", "tasks": tasks}]);
        let shown = json!(plan(&serde_json::from_value::<Vec<TodoPhase>>(phases).expect("phases")));
        let entry =
            |text: &str, priority: &str, status: &str| json!({"content": text, "priority": priority, "status": status});
        let expected = [
            entry("pending", "medium", "pending"),
            entry("in_progress", "high", "in_progress"),
            entry("completed", "medium", "completed"),
            entry("~~abandoned~~", "medium", "completed"),
        ];
        assert_eq!(shown["entries"], json!(expected));
    }
}
