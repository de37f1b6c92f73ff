//! Common mistakes of users, and the texts that tell what to do.

use std::fs::File;
use std::process::{Command, Stdio};

use pith_testkit::{TempHome, Terminal, Turn};
use serde_json::json;

use super::support::{PITH, finish, model, run, scene, start};

fn ask<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    [&model()[..], flags, &["-p", "hi"]].concat()
}

#[test]
fn a_session_in_a_directory_that_is_not_there_needs_create() {
    let (home, _server) = scene([Turn::text("fine")]);
    let path = home.work().join("no/where/s.jsonl");
    let session = path.to_str().expect("UTF-8");
    let directory = home.work().join("no/where");
    run(&home, ask(&["--session", session])).refused(&format!(
        "Error: There is no directory {} for the session. Check the path, or add --create to make it\n",
        directory.display()
    ));
    assert!(!directory.exists());
    assert_eq!(run(&home, ask(&["--session", session, "--create"])).quiet(), "fine\n");
    assert!(path.exists());
}

#[test]
fn a_session_whose_directory_is_gone_can_be_forked() {
    let (home, _server) = scene([Turn::text("fine")]);
    let header = json!({"type": "session", "version": 3, "id": "x", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/no/where"});
    home.write_file("moved.jsonl", header.to_string());
    let path = home.work().join("moved.jsonl").display().to_string();
    let output = run(&home, ask(&["--session", &path]));
    let advice = format!("\nUse --fork {path} to go on with a copy of it here.\n");
    assert!(output.code == 1 && output.stderr.ends_with(&advice), "{}", output.stderr);
    assert_eq!(run(&home, ask(&["--fork", &path])).quiet(), "fine\n");
}

#[test]
fn a_session_in_use_can_be_forked() {
    let (home, server) = scene([Turn::text("one"), Turn::silent(), Turn::text("fine")]);
    run(&home, ask(&[])).quiet();
    let path = home.sessions()[0].path.display().to_string();
    let mut busy = start(&home, ask(&["--session", &path]));
    drop(busy.stdin.take());
    server.wait_request(1);
    let output = run(&home, ask(&["--session", &path]));
    let advice = format!("{path}. Wait until it is done, or use --fork with that path to go on in a copy\n");
    assert!(output.code == 1 && output.stderr.ends_with(&advice), "{}", output.stderr);
    assert_eq!(run(&home, ask(&["--fork", &path])).quiet(), "fine\n");
    busy.kill().expect("it runs");
    finish(busy);
}

#[test]
fn a_deleted_working_directory_is_named() {
    let home = TempHome::new();
    for arguments in ["-p hi", "config check", "--list-models"] {
        let script = format!("mkdir gone && cd gone && rmdir ../gone && exec {PITH} {arguments}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env_clear().envs(home.environment()).current_dir(home.work());
        let output = command.stdin(Stdio::null()).output().expect("sh runs");
        let text = String::from_utf8_lossy(&output.stderr);
        let expected = "Error: the current directory has been deleted; change to another one and start pith again\n";
        assert_eq!((&*text, output.status.code()), (expected, Some(1)), "{arguments}");
    }
}

#[test]
fn every_subcommand_has_help() {
    let home = TempHome::new();
    for name in ["tour", "config", "doctor", "completions", "man"] {
        for flag in ["-h", "--help"] {
            let help = run(&home, [name, flag]).quiet();
            assert!(help.starts_with(&format!("Usage: pith {name}")) && help.lines().count() == 3, "{help}");
        }
    }
    assert!(run(&home, ["config", "check", "-h"]).quiet().starts_with("Usage: pith config check\n"));
    assert!(run(&home, ["auth", "-h"]).quiet().contains("print-api-key"));
    assert!(run(&home, ["rpc", "-h"]).quiet().contains("--mode"));
}

#[test]
fn an_empty_message_is_refused() {
    let (home, server) = scene([]);
    let empty = [&model()[..], &["-p", ""]].concat();
    run(&home, empty)
        .refused("Error: the message is empty; give some text, as in pith -p \"What is this?\", or pipe it\n");
    assert!(server.requests().is_empty());
}

#[test]
fn a_typed_file_that_is_not_there_is_named() {
    let (home, _server) = scene([Turn::text("fine")]);
    let mut terminal = Terminal::spawn(PITH, &model(), &home);
    terminal.wait("›");
    terminal.type_keys("look at @nothing.txt\r");
    terminal.wait("! there is no file nothing.txt; @nothing.txt is sent as text");
    terminal.wait("fine");
    terminal.wait("›");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn an_unwritable_stdout_is_a_failure_with_a_reason() {
    let (home, _server) = scene([Turn::text("fine"), Turn::text("fine"), Turn::text("fine")]);
    let pith = |stdout: Stdio| {
        let mut command = Command::new(PITH);
        command.args(ask(&[])).env_clear().envs(home.environment()).current_dir(home.work());
        command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
        finish(command.spawn().expect("pith starts"))
    };
    let full = pith(File::options().write(true).open("/dev/full").expect("Linux has it").into());
    assert_eq!(full.code, 1);
    assert!(full.stderr.starts_with("Error: cannot write the answer to stdout: No space left"), "{}", full.stderr);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let gone = pith(writer.into());
    assert_eq!((gone.stderr.as_str(), gone.code), ("", 1));
    let script = format!("exec {PITH} {} >&-", ask(&[]).join(" "));
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env_clear().envs(home.environment()).current_dir(home.work());
    let closed = command.stdin(Stdio::null()).output().expect("sh runs");
    assert!(!String::from_utf8_lossy(&closed.stderr).contains("panicked"), "{closed:?}");
}
