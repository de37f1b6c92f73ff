//! What tools report while they run: the newest state, at a pace a host can follow.

use std::time::Duration;

use pith_agent::{ToolContext, ToolOutput};
use tokio_util::sync::CancellationToken;

use super::{calls, go, recorder, text, tool};

/// Reports `n_reports` numbers, `every` so often, and is done.
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
fn story<'a>(log: &'a [String], id: &str) -> Vec<&'a str> {
    let is_about = |line: &&str| line.starts_with("tool_") && line.split(' ').nth(1) == Some(id);
    log.iter().map(String::as_str).filter(is_about).collect()
}

#[test]
fn a_flood_of_reports_is_thinned_out_between_the_first_and_the_last() {
    let flood = || counting("flood", 1_000, Duration::from_millis(1));
    let answer = calls(&[("a", "flood"), ("b", "flood")]);
    let done = go(recorder(vec![answer, text()], vec![flood()]), &CancellationToken::new());
    for id in ["a", "b"] {
        let story = story(&done.log, id);
        assert_eq!(story[..2], [format!("tool_start {id}"), format!("tool_update {id} 0")]);
        assert_eq!(story[story.len() - 2..], [format!("tool_update {id} last"), format!("tool_end {id} ok")]);
        // A second and a bit, at most one report in 50 ms, and the last one.
        let n_updates = story.len() - 2;
        assert!((10..=24).contains(&n_updates), "{n_updates} updates");
        let numbers: Vec<u32> = story.iter().filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
    }
}

#[test]
fn reports_at_an_easy_pace_all_arrive() {
    let slow = counting("slow", 5, Duration::from_millis(100));
    let done = go(recorder(vec![calls(&[("a", "slow")]), text()], vec![slow]), &CancellationToken::new());
    let updates: Vec<_> = ["0", "1", "2", "3", "4", "last"].map(|word| format!("tool_update a {word}")).into();
    let story = story(&done.log, "a");
    assert_eq!(story[1..story.len() - 1], updates);
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
    // Ends are told in call order when they come close together, so this one's is held back for a moment.
    let program = counting("program", 1, Duration::from_millis(10));
    let answer = calls(&[("a", "program"), ("b", "hasty")]);
    let done = go(recorder(vec![answer, text()], vec![hasty, program]), &CancellationToken::new());
    assert_eq!(story(&done.log, "b"), ["tool_start b", "tool_end b ok"]);
}
