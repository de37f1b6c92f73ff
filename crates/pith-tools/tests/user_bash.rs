//! The `bash` command of the protocol.

mod common;

use std::time::{Duration, Instant};

use common::{Bench, eventually_async, run};
use pith_tools::shell::{UserBash, run_user_command};

async fn command(bench: &Bench, command: &str) -> (UserBash, Vec<String>) {
    let mut deltas = Vec::new();
    let result = run_user_command(&bench.workbench, command, &bench.cancel, |delta| {
        deltas.push(delta.to_owned());
        true
    })
    .await;
    (result.expect("the shell can be started"), deltas)
}

#[test]
fn output_is_plain_text_and_any_exit_is_a_result() {
    run(async {
        let bench = Bench::new();
        let (result, deltas) = command(&bench, r"printf '\033[31mred\033[0m\r\nx\0y\377z\n'; exit 4").await;
        let expected = UserBash {
            output: "red\nxy\u{fffd}z\n".to_owned(),
            exit_code: Some(4),
            total_lines: 3,
            total_bytes: 11,
            output_lines: 3,
            output_bytes: 11,
            ..UserBash::default()
        };
        assert_eq!((result, deltas.concat()), (expected, "red\nxy\u{fffd}z\n".to_owned()));
        let (result, deltas) = command(&bench, "exit 7").await;
        assert_eq!(result, UserBash { exit_code: Some(7), ..UserBash::default() });
        assert!(deltas.is_empty());
        assert_eq!(command(&bench, "kill -9 $$").await.0.exit_code, Some(137));
        let (result, deltas) = command(&bench, r"printf '\357\273\277a'").await;
        assert_eq!((result.output.as_str(), deltas.concat().as_str()), ("a", "a")); // without the byte order mark
    });
}

#[test]
fn long_output_is_cut_and_the_log_is_complete() {
    run(async {
        let bench = Bench::new();
        let (result, deltas) = command(&bench, "seq 1 5000").await;
        let all: String = (1..=5000).map(|n| format!("{n}\n")).collect();
        assert!(result.truncated && result.output.starts_with("3001\n") && result.output.ends_with("\n5000"));
        assert_eq!((result.total_bytes, result.output_bytes, result.output_lines), (23_893, 9999, 2000));
        assert_eq!(std::fs::read_to_string(result.full_output_path.unwrap()).unwrap(), all);
        assert_eq!(deltas.concat(), all);
    });
}

#[test]
fn deltas_are_collected_for_fifty_milliseconds() {
    run(async {
        let bench = Bench::new();
        let started = Instant::now();
        let (_, deltas) = command(&bench, "for i in $(seq 100); do echo $i; sleep 0.002; done").await;
        let most = started.elapsed().as_millis() / 50 + 2;
        assert!(deltas.len() > 1 && deltas.len() as u128 <= most, "{} pieces", deltas.len());
    });
}

#[test]
fn a_large_output_arrives_whole() {
    run(async {
        let bench = Bench::new();
        let mut bytes = 0;
        let count = |delta: &str| {
            bytes += delta.len();
            true
        };
        run_user_command(&bench.workbench, "yes | head -c 5000000", &bench.cancel, count).await.unwrap();
        assert_eq!(bytes, 5_000_000);
    });
}

#[test]
fn a_cancelled_command_has_no_exit_code() {
    run(async {
        let bench = Bench::new();
        let (workbench, cancel) = (bench.workbench.clone(), bench.cancel.clone());
        let call = tokio::spawn(async move {
            run_user_command(&workbench, "echo begun; touch begun; sleep 30; echo never", &cancel, |_| true).await
        });
        eventually_async(Duration::from_secs(60), "it runs", || bench.path("begun").exists()).await;
        bench.cancel.cancel();
        let result = call.await.unwrap().unwrap();
        assert!(result.cancelled && result.exit_code.is_none() && !result.truncated);
        assert_eq!(result.output, "begun\n");
    });
}

#[test]
fn session_variables_are_not_for_the_host() {
    run(async {
        let bench = Bench::new();
        bench.workbench.update_call_options(|call_options| {
            call_options.env.common = vec![("PI_CODING_AGENT".to_owned(), "true".to_owned())];
            call_options.env.session = vec![("PI_SESSION_ID".to_owned(), "s1".to_owned())];
        });
        let (result, _) = command(&bench, "echo $PI_CODING_AGENT ${PI_SESSION_ID:-none}").await;
        assert_eq!(result.output, "true none\n");
    });
}

#[test]
fn only_a_missing_shell_is_a_failure() {
    run(async {
        let bench = Bench::with(|options| options.shell.path = Some("/no/shell".into()));
        let failure = run_user_command(&bench.workbench, "true", &bench.cancel, |_| true).await.unwrap_err();
        assert_eq!(failure, "Custom shell path not found: /no/shell");
    });
}
