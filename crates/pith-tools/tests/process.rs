//! No process outlives its command, its session or pith, whatever it does.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Bench, eventually, eventually_async, is_alive, pids, run, text, within_a_second};
use serde_json::json;

/// Starts three sleepers: a child, one in a session of its own, and an orphan in a session of its own. Their ids and
/// the shell's go to the file `pids`.
const FAMILY: &str = "
    echo $$ >> pids
    sleep 60 & echo $! >> pids
    setsid sleep 60 & echo $! >> pids
    (setsid sh -c 'echo $$ >> pids; exec sleep 60' &) 
    while [ $(wc -l < pids) -lt 4 ]; do :; done
";

/// Everything ends within a second on an idle machine; a busy one may take longer. Far less than the commands take.
const SOON: Duration = Duration::from_secs(20);

async fn family(bench: &Bench) -> Vec<u32> {
    eventually_async(Duration::from_secs(60), "the family is complete", || pids(&bench.path("pids"), 4).is_some())
        .await;
    pids(&bench.path("pids"), 4).expect("complete")
}

fn none_is_alive(pids: &[u32]) -> bool {
    pids.iter().all(|pid| !is_alive(*pid))
}

#[test]
fn an_abort_ends_all_processes_of_the_command() {
    run(async {
        let bench = Bench::new();
        let call = tokio::spawn(bench.start("bash", json!({"command": format!("{FAMILY} echo begun; sleep 60")})));
        let pids = family(&bench).await;
        let aborted = Instant::now();
        bench.cancel.cancel();
        let output = call.await.unwrap();
        assert!(output.is_error && text(&output).ends_with("Command aborted"), "{output:?}");
        assert!(aborted.elapsed() < SOON, "took {:?}", aborted.elapsed());
        assert!(none_is_alive(&pids), "{pids:?}");
        assert_eq!(bench.workbench.jobs.count(), 0);
    });
}

#[test]
fn processes_that_ignore_sigterm_are_killed() {
    run(async {
        let bench = Bench::new();
        let command = "
            trap '' TERM
            setsid sh -c 'echo $$ >> pids; while :; do sleep 1; done' &
            echo $$ >> pids
            while :; do sleep 1; done
        ";
        let call = tokio::spawn(bench.start("bash", json!({"command": command})));
        eventually_async(Duration::from_secs(60), "both run", || pids(&bench.path("pids"), 2).is_some()).await;
        let pids = pids(&bench.path("pids"), 2).unwrap();
        let aborted = Instant::now();
        bench.cancel.cancel();
        call.await.unwrap();
        assert!((Duration::from_millis(450)..SOON).contains(&aborted.elapsed()), "{:?}", aborted.elapsed());
        assert!(none_is_alive(&pids));
    });
}

#[test]
fn sigterm_comes_first_so_that_commands_can_clean_up() {
    run(async {
        let bench = Bench::new();
        let command = "trap 'echo tidied; exit' TERM; echo ready > ready; while :; do sleep 0.01; done";
        let call = tokio::spawn(bench.start("bash", json!({"command": command})));
        eventually_async(Duration::from_secs(60), "it runs", || bench.path("ready").exists()).await;
        bench.cancel.cancel();
        // bash itself reports the sleep that was killed.
        let text = text(&call.await.unwrap());
        assert!(text.ends_with("tidied\n\n\nCommand aborted"), "{text}");
    });
}

#[test]
fn a_timeout_ends_all_processes_of_the_command() {
    run(async {
        let bench = Bench::new();
        let output = bench.call("bash", json!({"command": format!("{FAMILY} echo a; sleep 60"), "timeout": 0.4})).await;
        assert_eq!(text(&output), "a\n\n\nCommand timed out after 0.4 seconds");
        assert!(none_is_alive(&family(&bench).await));
    });
}

#[test]
fn one_abort_leaves_other_commands_alone() {
    run(async {
        let bench = Bench::new();
        let other = Bench::new();
        let call = tokio::spawn(bench.start("bash", json!({"command": format!("{FAMILY} sleep 60")})));
        family(&bench).await;
        let survivor = tokio::spawn(other.start("bash", json!({"command": format!("{FAMILY} sleep 60")})));
        let survivors = family(&other).await;
        bench.cancel.cancel();
        call.await.unwrap();
        assert!(survivors.iter().all(|pid| is_alive(*pid)));
        other.cancel.cancel();
        survivor.await.unwrap();
        assert!(none_is_alive(&survivors));
    });
}

#[test]
fn background_jobs_live_until_the_session_ends() {
    run(async {
        let bench = Bench::new();
        let started = Instant::now();
        let output = bench
            .ok("bash", json!({"command": "sleep 120 & echo $! >> pids; setsid sleep 120 & echo $! >> pids; echo bg"}))
            .await;
        assert_eq!(output, "bg\n");
        assert!(started.elapsed() < Duration::from_secs(100));
        let pids = pids(&bench.path("pids"), 2).unwrap();
        assert!(pids.iter().all(|pid| is_alive(*pid)));
        assert_eq!(bench.workbench.jobs.count(), 1);
        bench.workbench.jobs.shutdown_all(Duration::from_secs(2)).await;
        assert!(none_is_alive(&pids));
    });
}

#[test]
fn a_dropped_call_is_ended() {
    run(async {
        let bench = Bench::new();
        let call = tokio::spawn(bench.start("bash", json!({"command": format!("{FAMILY} sleep 60")})));
        let pids = family(&bench).await;
        call.abort();
        eventually_async(SOON, "all are gone", || none_is_alive(&pids)).await;
    });
}

#[test]
fn a_dropped_workbench_ends_its_background_jobs() {
    run(async {
        let bench = Bench::new();
        bench.ok("bash", json!({"command": "sleep 30 & echo $! >> pids"})).await;
        let pids = pids(&bench.path("pids"), 1).unwrap();
        let Bench { dir, workbench, .. } = bench;
        drop(workbench);
        eventually_async(SOON, "it is gone", || none_is_alive(&pids)).await;
        drop(dir);
    });
}

#[test]
fn finished_commands_leave_no_zombies() {
    run(async {
        let bench = Bench::new();
        for _ in 0..5 {
            bench.ok("bash", json!({"command": "(sleep 0.01 &) ; true"})).await;
        }
        let own = std::process::id().to_string();
        let zombies = || {
            let stats = std::fs::read_dir("/proc")
                .unwrap()
                .flatten()
                .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
            stats
                .filter(|stat| {
                    stat.rsplit_once(") ").is_some_and(|(head, rest)| {
                        head.contains("(test-agent") && rest.starts_with(&format!("Z {own} "))
                    })
                })
                .count()
        };
        eventually_async(SOON, "all supervisors are reaped", || zombies() == 0).await;
    });
}

#[test]
fn killing_the_supervisor_also_kills_the_command() {
    run(async {
        let bench = Bench::new();
        let command = "sleep 60 & echo $! >> pids; echo $$ >> pids; kill -9 $PPID; sleep 60";
        let output = bench.call("bash", json!({"command": command})).await;
        assert!(output.is_error && text(&output).contains("supervisor"), "{output:?}");
        let pids = pids(&bench.path("pids"), 2).unwrap();
        eventually_async(SOON, "all are gone", || none_is_alive(&pids)).await;
    });
}

/// The exit code is the one that shells make of a signal; programs are told the signal itself.
async fn ends_by_a_signal(bench: &Bench) {
    for (command, code, signal) in [("kill -9 $$", 137, "SIGKILL"), ("kill -TERM $$", 143, "SIGTERM")] {
        let output = bench.call("bash", json!({ "command": command })).await;
        assert_eq!(text(&output), format!("(no output)\n\nCommand exited with code {code}"));
        assert_eq!((output.is_error, output.details), (true, Some(json!({ "signal": signal }))));
    }
    let output = bench.call("bash", json!({"command": "exit 137"})).await;
    assert_eq!((output.is_error, output.details), (true, Some(json!({}))));
}

#[test]
fn a_signal_that_ends_a_command_is_told() {
    run(async { ends_by_a_signal(&Bench::new()).await });
}

#[test]
fn without_a_supervisor_groups_and_children_are_still_ended() {
    run(async {
        let bench = Bench::with(|options| options.supervisor = None);
        assert_eq!(bench.ok("bash", json!({"command": "echo a; echo b >&2"})).await, "a\nb\n");
        ends_by_a_signal(&bench).await;
        assert_eq!(bench.ok("bash", json!({"command": "sleep 60 & echo $! > bg"})).await, "(no output)");
        bench.workbench.jobs.shutdown_all(Duration::from_secs(2)).await;
        assert!(none_is_alive(&common::pids(&bench.path("bg"), 1).unwrap()));
        let command = "sleep 60 & echo $! >> pids; setsid sleep 60 & echo $! >> pids; echo $$ >> pids; wait";
        let call = tokio::spawn(bench.start("bash", json!({"command": command})));
        eventually_async(Duration::from_secs(60), "all run", || pids(&bench.path("pids"), 3).is_some()).await;
        let pids = pids(&bench.path("pids"), 3).unwrap();
        bench.cancel.cancel();
        assert_eq!(text(&call.await.unwrap()), "Command aborted");
        assert!(none_is_alive(&pids));
    });
}

fn agent(role: &str, cwd: &Path, subject: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_test-agent"))
        .args([role, cwd.to_str().expect("plain"), subject])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the agent starts")
}

fn family_of(dir: &Path) -> Vec<u32> {
    eventually(Duration::from_secs(60), "the family is complete", || pids(&dir.join("pids"), 4).is_some());
    pids(&dir.join("pids"), 4).expect("complete")
}

#[test]
fn kill_9_of_the_agent_leaves_no_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut agent = agent("run", dir.path(), &format!("{FAMILY} trap '' TERM; while :; do sleep 1; done"));
    let pids = family_of(dir.path());
    agent.kill().unwrap();
    agent.wait().unwrap();
    within_a_second("all are gone", || none_is_alive(&pids));
}

#[test]
fn kill_9_of_the_agent_also_ends_background_jobs() {
    let dir = tempfile::tempdir().unwrap();
    let mut agent = agent("run", dir.path(), FAMILY);
    let mut line = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pids = family_of(dir.path());
    assert!(pids[1..].iter().all(|pid| is_alive(*pid)));
    agent.kill().unwrap();
    agent.wait().unwrap();
    within_a_second("all are gone", || none_is_alive(&pids));
}

#[test]
fn background_jobs_can_be_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut agent = agent("keep", dir.path(), FAMILY);
    let pids = family_of(dir.path());
    agent.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(agent.wait().unwrap().success());
    assert!(pids[1..].iter().all(|pid| is_alive(*pid)));
    for pid in &pids[1..] {
        Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    }
}

#[test]
fn a_normal_end_ends_background_jobs() {
    let dir = tempfile::tempdir().unwrap();
    let mut agent = agent("run", dir.path(), FAMILY);
    let pids = family_of(dir.path());
    drop(agent.stdin.take());
    assert!(agent.wait().unwrap().success());
    assert!(none_is_alive(&pids));
}
