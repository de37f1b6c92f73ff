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
