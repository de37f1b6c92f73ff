use super::*;
use crate::process::{no_process_with, wait_for, with_marker};
use crate::timeout;
use serde_json::json;

/// A host played by a shell script.
fn shell(script: &str) -> HostBuilder {
    Host::builder("/bin/sh").args(["-c", script])
}

fn panic_text(run: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(run).expect_err("panics");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn frames_are_waited_for_in_order() {
    let mut host = shell("cat").spawn();
    host.send_all([json!({"type": "a", "n": 1}), json!({"type": "b"}), json!({"type": "a", "n": 2})]);
    assert_eq!(host.wait_type("a")["n"], 1);
    assert_eq!(host.wait_type("a")["n"], 2);
    assert_eq!(host.frames().len(), 3);
    let (frames, code) = host.finish();
    assert_eq!((frames.len(), code), (3, 0));
}

#[test]
fn responses_are_found_wherever_they_are() {
    let mut host = shell("cat").spawn();
    host.send(json!({"type": "response", "id": "x", "n": 1}));
    host.send(json!({"type": "later"}));
    host.wait_type("later");
    assert_eq!(host.response("x")["n"], 1);
    // The echo of the command is taken for an answer.
    let answer = host.ask(json!({"type": "response", "success": true, "data": 5}));
    assert_eq!(answer["data"], 5);
    assert_eq!(host.data(json!({"type": "response", "success": true, "data": 6})), 6);
}

#[test]
fn a_line_that_is_not_json_and_a_last_line_without_newline_are_kept() {
    let mut host = shell(r#"printf 'noise\n{"type":"x"}'"#).spawn();
    let (frames, _) = host.finish();
    assert_eq!(frames, [json!("noise"), json!({"type": "x"})]);
    assert_eq!(host.lines(), [b"noise".to_vec(), br#"{"type":"x"}"#.to_vec()]);
}

#[test]
fn a_missing_frame_fails_with_the_whole_exchange() {
    let text = panic_text(|| {
        let mut host =
            shell(r#"echo '{"type":"seen"}'; echo trouble >&2; cat"#).timeout(Duration::from_millis(200)).spawn();
        host.wait_type("seen");
        host.wait_type("never");
    });
    assert!(text.contains("a frame of type never"), "{text}");
    assert!(text.contains(r#"  {"type":"seen"}"#), "{text}");
    assert!(text.contains("trouble"), "{text}");
}

#[test]
fn a_host_that_ended_fails_at_once() {
    let text = panic_text(|| {
        let mut host = shell("exit 3").timeout(Duration::from_secs(3600)).spawn();
        host.wait_type("never");
    });
    assert!(text.contains("frame of type never"), "{text}");
}

#[test]
fn exit_codes_and_signals_are_returned() {
    assert_eq!(shell("exit 7").spawn().exit_code(), 7);
    let host = shell("echo ready; exec cat").spawn();
    host.try_frame(0).expect("is up");
    host.signal(Signal::TERM);
    assert_eq!(host.exit_code(), -15);
    let host = shell("trap 'exit 143' TERM; echo ready; while :; do sleep 0.01; done").spawn();
    host.try_frame(0).expect("is up");
    host.signal(Signal::TERM);
    assert_eq!(host.exit_code(), 143);
    let host = shell("exec cat").spawn();
    host.kill();
    assert!(host.has_exited());
}

#[test]
fn a_stalled_reader_blocks_the_host_and_loses_nothing() {
    let mut host = shell("read go; seq 1 200000; echo end").spawn();
    host.stop_reading();
    host.send(json!("go"));
    // Only the start of the megabyte fits into the pipe, so `seq` waits.
    let seq = wait_for_blocked_writer(host.marker());
    assert!(host.n_bytes() < 1_000_000);
    assert!(seq.command.starts_with("seq"));
    host.resume_reading();
    host.wait(|frame| frame == "end");
    assert_eq!(host.frames().len(), 200_001);
    assert_eq!(host.exit_code(), 0);
}

fn wait_for_blocked_writer(marker: &str) -> process::Process {
    loop {
        let blocked = with_marker(marker).into_iter().find(|process| {
            let place = std::fs::read_to_string(format!("/proc/{}/wchan", process.pid)).unwrap_or_default();
            place.contains("pipe_write")
        });
        match blocked {
            Some(process) => return process,
            None => thread::yield_now(),
        }
    }
}

#[test]
fn hanging_up_closes_the_pipe() {
    // `yes` ends only because its output has nowhere to go.
    let host = shell("echo ready; read -r go; exec yes").spawn();
    host.try_frame(0).expect("is up");
    host.hang_up(json!("go"));
    assert_eq!(host.exit_code(), -13);
}

#[test]
fn sending_to_a_host_that_does_not_read_never_blocks() {
    let host = shell("exec sleep 1000").spawn();
    host.send_raw(vec![b'x'; 10 << 20]);
    host.kill();
}

#[test]
fn the_environment_is_the_homes_alone() {
    let home = TempHome::new();
    let mut host = shell("env; pwd").env("EXTRA", "1").home(&home).spawn();
    let (frames, _) = host.finish();
    let lines: Vec<&str> = frames.iter().filter_map(Value::as_str).collect();
    assert!(lines.contains(&format!("HOME={}", home.home().display()).as_str()));
    assert!(lines.contains(&"EXTRA=1"));
    assert!(lines.contains(&format!("{MARKER}={}", host.marker()).as_str()));
    assert!(!lines.iter().any(|line| line.starts_with("CARGO")));
    assert_eq!(lines.last(), Some(&home.work().display().to_string().as_str()));
}

#[test]
fn descendants_are_found_by_marker_and_do_not_outlive_the_host() {
    let host = shell("setsid sleep 1000 & exec cat").spawn();
    let marker = host.marker().to_owned();
    wait_for(&marker, timeout());
    while !with_marker(&marker).iter().any(|process| process.command == "sleep 1000") {
        thread::yield_now();
    }
    let text = panic_text({
        let marker = marker.clone();
        move || no_process_with(&marker, Duration::ZERO)
    });
    assert!(text.contains("sleep 1000"), "{text}");
    drop(host);
    no_process_with(&marker, timeout());
}

#[test]
fn stderr_is_waited_for() {
    let host = shell("echo one >&2; echo two >&2; exec cat").spawn();
    assert_eq!(host.wait_stderr(|text| text.contains("two")), "one\ntwo\n");
}

#[test]
fn memory_is_reported() {
    let host = shell("echo ready; read line").spawn();
    host.try_frame(0).expect("is up");
    let memory = host.memory();
    assert!(memory > 0);
    // Read later, so it covers the earlier moment.
    assert!(host.peak_memory() >= memory);
}
