//! What tools report while they run: the newest state, at a rate a host can follow.

use std::time::Duration;

use pith_agent::{ToolContext, ToolOutput};
use tokio_util::sync::CancellationToken;

use super::{calls, go, recorder, text, tool};

/// Reports `n_reports` numbers, one per `every`, and returns.
fn counting(name: &str, n_reports: usize, every: Duration) -> super::Function {
    tool(name, move |_, context: ToolContext| async move {
        for number in 0..n_reports {
            (context.update)(ToolOutput::text(number.to_string()));
            tokio::time::sleep(every).await;
        }
        (context.update)(ToolOutput::text("last"));
        ToolOutput::text("done")
    })
}

/// The lines about one call, from its start to its end.
fn lines_about<'a>(log: &'a [String], id: &str) -> Vec<&'a str> {
    let is_about = |line: &&str| line.starts_with("tool_") && line.split(' ').nth(1) == Some(id);
    log.iter().map(String::as_str).filter(is_about).collect()
}

#[test]
fn of_a_flood_of_reports_few_arrive_but_the_first_and_the_last() {
    let flood = || counting("flood", 1_000, Duration::from_millis(1));
    let answer = calls(&[("a", "flood"), ("b", "flood")]);
    let done = go(recorder(vec![answer, text()], vec![flood()]), &CancellationToken::new());
    for id in ["a", "b"] {
        let lines_about = lines_about(&done.log, id);
        assert_eq!(lines_about[..2], [format!("tool_start {id}"), format!("tool_update {id} 0")]);
        assert_eq!(
            lines_about[lines_about.len() - 2..],
            [format!("tool_update {id} last"), format!("tool_end {id} ok")]
        );
        // A bit more than a second, at most one report per 50 ms, and the last one.
        let n_updates = lines_about.len() - 2;
        assert!((10..=24).contains(&n_updates), "{n_updates} updates");
        let numbers: Vec<u32> = lines_about.iter().filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
    }
}

#[test]
fn infrequent_reports_all_arrive() {
    let slow = counting("slow", 5, Duration::from_millis(100));
    let done = go(recorder(vec![calls(&[("a", "slow")]), text()], vec![slow]), &CancellationToken::new());
    let updates: Vec<_> = ["0", "1", "2", "3", "4", "last"].map(|word| format!("tool_update a {word}")).into();
    let lines_about = lines_about(&done.log, "a");
    assert_eq!(lines_about[1..lines_about.len() - 1], updates);
}

#[test]
fn nothing_is_reported_after_the_tool_has_returned() {
    let hasty = tool("hasty", |_, context: ToolContext| async move {
        tokio::spawn(async move {
            for _ in 0..100 {
                tokio::time::sleep(Duration::from_millis(1)).await;
                (context.update)(ToolOutput::text("late"));
            }
        });
        ToolOutput::text("done")
    });
    // Ends that come close together are reported in call order, so this one is delayed for a moment.
    let program = counting("program", 1, Duration::from_millis(10));
    let answer = calls(&[("a", "program"), ("b", "hasty")]);
    let done = go(recorder(vec![answer, text()], vec![hasty, program]), &CancellationToken::new());
    assert_eq!(lines_about(&done.log, "b"), ["tool_start b", "tool_end b ok"]);
}
