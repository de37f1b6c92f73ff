//! The scenarios for strangers, played against pith itself; and strangers that fail them.

use std::process::{Command, Output};
use std::time::Duration;

use pith_conformance::{Outcome, Target, scenarios, timeout};

const PITH: &str = env!("CARGO_BIN_EXE_pith");

#[track_caller]
fn check(dialect: &str, at_least: usize) {
    let command = [PITH, "--mode", "rpc"].map(str::to_owned).to_vec();
    let target = Target::new(command, dialect, timeout()).expect("pith starts");
    let scenarios = scenarios().into_iter().filter(|scenario| scenario.dialects.iter().any(|name| name == dialect));
    let played: Vec<_> = scenarios.map(|scenario| (target.play(&scenario), scenario.name)).collect();
    let broken: Vec<_> = played.iter().filter(|(outcome, _)| *outcome != Outcome::Held).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(played.len() >= at_least, "{} scenarios", played.len());
}

#[test]
fn every_scenario_holds_for_hosts_of_pi() {
    check("pi", 70);
}

#[test]
fn every_scenario_holds_for_hosts_of_xcsh() {
    check("xcsh", 50);
}

/// Holds a shell script against one scenario.
fn stranger(script: &str, scenario: &str) -> Outcome {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    let target = Target::new(command, "pi", Duration::from_secs(2)).expect("it answers");
    let scenario = scenarios().into_iter().find(|known| known.name == scenario).expect("a scenario");
    target.play(&scenario)
}

/// Answers every line as if it were an abort.
const ABORTS: &str = r#"while read -r line; do
  echo '{"id":"1","type":"response","command":"abort","success":true}'
done"#;

#[test]
fn a_stranger_that_keeps_a_promise_passes() {
    assert_eq!(stranger(ABORTS, "abort-idle"), Outcome::Held);
}

#[test]
fn what_a_stranger_does_wrong_is_named() {
    let check = |script: &str, scenario: &str, wanted: &str| match stranger(script, scenario) {
        Outcome::Failed(why) => assert!(why.contains(wanted), "{why}"),
        other => panic!("{other:?}"),
    };
    check(&format!("{ABORTS}; exit 3"), "abort-idle", "exit status: 3, not exit status 0");
    check(&ABORTS.replace("echo", "echo hello; echo"), "abort-idle", "a line that is no frame: \"hello\"");
    check(
        &ABORTS.replace("\ndone", "; done").replace("echo", "echo '{\"type\":\"agent_end\"}'; echo"),
        "abort-idle",
        "not 0",
    );
    check(ABORTS, "state", "no {\"id\":\"1\",\"type\":\"response\",\"command\":\"get_state\"");
    let twice = "while read -r line; do for n in 1 2; do echo '{\"id\":\"1\",\"type\":\"response\",\"command\":\"abort\",\"success\":true}'; done; done";
    check(twice, "abort-idle", "abort with id \"1\" was answered 2 times");
}

#[test]
fn additions_are_skipped_where_nobody_announces_them() {
    assert!(matches!(stranger(ABORTS, "hello"), Outcome::Skipped(why) if why.contains("addition of pith")));
}

fn conformance(arguments: &[&str]) -> Output {
    Command::new(PITH).arg("conformance").args(arguments).output().expect("pith runs")
}

#[test]
fn the_subcommand_prints_a_table_and_fails_with_a_scenario() {
    let output = conformance(&["--timeout", "120", "--filter", "abort-idle", "--", PITH, "--mode", "rpc"]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(table.contains("abort-idle  ok       An abort while nothing runs succeeds at once.\n"), "{table}");
    assert!(table.ends_with("1 hold, 0 failed, 0 skipped, in dialect pi\n"), "{table}");
    let output =
        conformance(&["--timeout", "2", "--filter", "abort-idle", "--", "sh", "-c", &format!("{ABORTS}; exit 3")]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{table}");
    assert!(table.contains("abort-idle  failed"), "{table}");
}

#[test]
fn a_command_that_cannot_be_held_against_anything_is_refused() {
    let refused = |arguments: &[&str], why: &str| {
        let output = conformance(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains(why), "{stderr}");
    };
    refused(&[], "name the program behind two dashes");
    refused(&["--filter", "moon", "--", PITH], "no scenario of dialect pi has \"moon\" in its name");
    refused(&["--", "/nowhere/pith", "--mode", "rpc"], "/nowhere/pith");
    refused(&["--timeout", "2", "--", "true"], "no answer to a first command");
}
