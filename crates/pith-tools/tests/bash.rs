//! The `bash` tool: output, status, limits, environment.

mod common;

use std::time::{Duration, Instant};

use common::{Bench, eventually_async, run, text};
use pith_tools::shell::Shell;
use serde_json::{Value, json};

async fn check(bench: &Bench, command: &str, expected: &str) {
    assert_eq!(bench.ok("bash", json!({"command": command})).await, expected, "{command}");
}

async fn refuse(bench: &Bench, arguments: Value, expected: &str) {
    assert_eq!(bench.fails("bash", arguments.clone()).await, expected, "{arguments}");
}

#[test]
fn results_have_output_and_exit_status() {
    run(async {
        let bench = Bench::new();
        check(&bench, "echo out; echo err 1>&2; echo more", "out\nerr\nmore\n").await;
        check(&bench, "true", "(no output)").await;
        check(&bench, "", "(no output)").await;
        check(&bench, "pwd", &format!("{}\n", bench.workbench.base.cwd.display())).await;
        check(&bench, "cat; readlink /proc/self/fd/0", "/dev/null\n").await;
        check(
            &bench,
            r"printf 'a\033[31mred\033[0m\r\nb\tc\377\376d\000e\n'",
            "a\u{1b}[31mred\u{1b}[0m\r\nb\tc\u{fffd}\u{fffd}d\0e\n",
        )
        .await;
        check(&bench, r"printf 'a\360\237'; sleep 0.05; printf '\230\200b'", "a😀b").await;
        check(&bench, r"printf '\357\273\277a\357\273\277b'", "a\u{feff}b").await; // a byte order mark
        check(&bench, r"printf '\357\273\277'", "(no output)").await;
        refuse(&bench, json!({"command": "exit 3"}), "(no output)\n\nCommand exited with code 3").await;
        refuse(&bench, json!({"command": "echo out; exit 1"}), "out\n\n\nCommand exited with code 1").await;
        refuse(&bench, json!({"command": "printf x; exit 2"}), "x\n\nCommand exited with code 2").await;
    });
}

#[test]
fn unusable_timeouts_are_refused() {
    run(async {
        let bench = Bench::new();
        let not_finite = "Invalid timeout: must be a finite number of seconds";
        refuse(&bench, json!({"command": "echo x", "timeout": 0}), not_finite).await;
        refuse(&bench, json!({"command": "echo x", "timeout": -1}), not_finite).await;
        let too_long = "Invalid timeout: maximum is 2147483.647 seconds";
        refuse(&bench, json!({"command": "echo x", "timeout": 99_999_999}), too_long).await;
        refuse(&bench, json!({"command": "sleep 5", "timeout": 0.2}), "Command timed out after 0.2 seconds").await;
        assert_eq!(bench.ok("bash", json!({"command": "echo x", "timeout": 2_147_483.647})).await, "x\n");
    });
}

#[test]
fn a_timeout_says_when_only_background_processes_were_left() {
    run(async {
        let bench = Bench::new();
        // Three of them, so that one always has something to say.
        let command = "for n in 1 2 3; do while :; do echo tick; done & done; exit 3";
        let failed = bench.fails("bash", json!({"command": command, "timeout": 0.5})).await;
        let (_, status) = failed.split_once("Command timed out after 0.5 seconds. ").expect(&failed);
        let seconds = status.strip_prefix("The shell exited with code 3 after ");
        let (seconds, rest) = seconds.and_then(|rest| rest.split_once(' ')).expect(status);
        assert!(seconds.parse::<f64>().is_ok_and(|seconds| (0.0..=0.5).contains(&seconds)), "{seconds}");
        let why = "seconds, but background processes it started kept writing output until the timeout.";
        assert_eq!(rest, why);
        let running = bench.fails("bash", json!({"command": "echo x; sleep 5 & wait", "timeout": 0.2})).await;
        assert_eq!(running, "x\n\n\nCommand timed out after 0.2 seconds");
    });
}

#[test]
fn long_output_keeps_its_end_and_names_the_log() {
    run(async {
        let bench = Bench::new();
        let output = bench.call("bash", json!({"command": "seq 1 5000"})).await;
        let details = output.details.clone().unwrap();
        let path = details["fullOutputPath"].as_str().unwrap();
        let expected: String = (3001..=5000).map(|n| format!("{n}\n")).collect();
        assert_eq!(text(&output), format!("{expected}\n[Showing lines 3001-5000 of 5000. Full output: {path}]"));
        let truncation = json!({
            "truncated": true, "truncatedBy": "lines", "totalLines": 5000, "totalBytes": 23893, "outputLines": 2000,
            "outputBytes": 9999, "lastLinePartial": false, "firstLineExceedsLimit": false, "maxLines": 2000,
            "maxBytes": 51200,
        });
        assert_eq!(details, json!({"truncation": truncation, "fullOutputPath": path}));
        let all: String = (1..=5000).map(|n| format!("{n}\n")).collect();
        assert_eq!(std::fs::read_to_string(path).unwrap(), all);
        let failed = bench.fails("bash", json!({"command": "seq 1 3000; exit 4"})).await;
        assert!(failed.ends_with(".log]\n\nCommand exited with code 4"), "{failed}");
    });
}

#[test]
fn progress_starts_empty_and_ends_complete() {
    run(async {
        let bench = Bench::new();
        bench.ok("bash", json!({"command": "for i in 1 2 3; do echo $i; sleep 0.15; done"})).await;
        let updates = bench.updates.lock().unwrap();
        assert!(updates[0].content.is_empty() && updates[0].details.is_none());
        assert_eq!(text(updates.last().unwrap()), "1\n2\n3\n");
        assert!(updates[1..].iter().all(|update| update.details == Some(json!({}))));
        assert!((3..=5).contains(&updates.len()), "{updates:?}");
    });
    run(async {
        let bench = Bench::new();
        bench.ok("bash", json!({"command": "true"})).await;
        assert_eq!(bench.updates.lock().unwrap().len(), 1, "no news");
    });
}

#[test]
fn updates_are_small() {
    run(async {
        let bench = Bench::new();
        bench.ok("bash", json!({"command": "seq 1 100000; sleep 0.2; seq 1 10"})).await;
        let updates = bench.updates.lock().unwrap();
        assert!(updates.len() >= 2 && updates.iter().all(|update| text(update).len() <= 16 * 1024));
        let details = updates.last().unwrap().details.as_ref().unwrap();
        assert_eq!(details["truncation"]["totalLines"], 100_010);
        assert!(details["truncation"].get("content").is_none() && details["fullOutputPath"].is_string());
    });
}

#[test]
fn a_flood_of_output_costs_little_memory_and_few_events() {
    // In a process of its own, so that its memory can be measured.
    let dir = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_test-agent"))
        .args(["flood", dir.path().to_str().unwrap(), "timeout 2 yes"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["events"].as_u64().unwrap() < 1_000_000, "{report}");
    assert!(report["kilobytes"].as_u64().unwrap() < 10_000, "{report}");
    let logs = std::fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.path());
    let log = logs.flat_map(|dir| std::fs::read_dir(dir).unwrap().flatten()).next().unwrap();
    let size = log.metadata().unwrap().len();
    assert!((1..=64 << 20).contains(&size), "{size}");
}

#[test]
fn a_background_writer_does_not_hold_the_call_open() {
    run(async {
        let bench = Bench::new();
        let started = Instant::now();
        check(&bench, "(sleep 120; echo late) & echo bg", "bg\n").await;
        assert!(started.elapsed() < Duration::from_secs(100));
    });
}

#[test]
fn the_environment_is_what_the_session_says() {
    run(async {
        let bench = Bench::new();
        bench.workbench.update_call_options(|call_options| {
            call_options.env.common = vec![("PITH".to_owned(), "1".to_owned())];
            call_options.env.session = vec![("PI_SESSION_ID".to_owned(), "s1".to_owned())];
            call_options.env.bin = Some("/agent/bin".into());
        });
        check(&bench, "echo $PITH $PI_SESSION_ID ${PATH%%:*} ${CARGO:+inherited}", "1 s1 /agent/bin inherited\n").await;
        bench.workbench.update_call_options(|call_options| {
            call_options.env.session = vec![("PI_SESSION_ID".to_owned(), "s2".to_owned())];
            call_options.env.hidden = vec!["CARGO".to_owned()];
        });
        check(&bench, "echo $PI_SESSION_ID; env | grep -c '^CARGO='; true", "s2\n0\n").await;
    });
}

#[test]
fn an_error_names_why_the_shell_cannot_run() {
    run(async {
        let bench = Bench::with(|options| options.shell.path = Some("/no/shell".into()));
        refuse(&bench, json!({"command": "true"}), "Custom shell path not found: /no/shell").await;
        let bench = Bench::with(|options| options.shell = Shell { path: Some("/etc/passwd".into()), prefix: None });
        let refusal = bench.fails("bash", json!({"command": "true"})).await;
        assert_eq!(refusal, "Could not run the shell: Permission denied (os error 13)");
        let bench = Bench::new();
        let cwd = bench.workbench.base.cwd.clone();
        std::fs::remove_dir(&cwd).unwrap();
        let expected = format!("Working directory does not exist: {}\nCannot execute bash commands.", cwd.display());
        refuse(&bench, json!({"command": "true"}), &expected).await;
    });
}

#[test]
fn a_prefix_runs_before_the_command() {
    run(async {
        let bench = Bench::with(|options| options.shell.prefix = Some("greeting=hello".to_owned()));
        check(&bench, "echo $greeting", "hello\n").await;
    });
}

#[test]
fn an_aborted_call_starts_nothing() {
    run(async {
        let bench = Bench::new();
        bench.cancel.cancel();
        refuse(&bench, json!({"command": "touch made"}), "Command aborted").await;
        assert!(!bench.path("made").exists());
    });
}

#[test]
fn a_workbench_in_another_directory_has_its_own_variables_and_the_same_rules() {
    run(async {
        let bench = Bench::new();
        bench.file("below/file.txt", "below");
        bench.workbench.update_call_options(|call_options| {
            call_options.env.common = vec![("PITH".to_owned(), "1".to_owned())];
            call_options.env.hidden = vec!["SECRET".to_owned()];
        });
        let own = [("PATH", "/usr/bin:/bin"), ("OWN", "mine"), ("SECRET", "key")];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let other = bench.workbench.in_directory(bench.path("below"), Shell::default(), Some(own));
        assert!(pith_tools::builtin_tool("nothing", &other).is_none());
        let other = Bench { workbench: other, ..Bench::new() };
        let command = "cat file.txt; echo \" $OWN ${SECRET-none} $PITH ${HOME-none}\"";
        check(&other, command, "below mine none 1 none\n").await;
        // Ending the processes of one ends those of the other.
        eventually_async(Duration::from_secs(60), "the first is over", || bench.workbench.jobs.count() == 0).await;
        let job = tokio::spawn(other.start("bash", json!({"command": "sleep 4000"})));
        eventually_async(Duration::from_secs(60), "the command runs", || bench.workbench.jobs.count() > 0).await;
        bench.workbench.jobs.shutdown_all(Duration::ZERO).await;
        assert!(job.await.expect("no panic").is_error);
    });
}
