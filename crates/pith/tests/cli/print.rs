//! `-p`: one answer, and nothing else on stdout.

use std::os::unix::ffi::OsStrExt;

use pith_testkit::process;
use pith_testkit::{TempHome, Terminal, Turn};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::support::{PITH, PIXEL, finish, model, run, run_with, scene, start};

/// What was sent to the model, message by message.
fn asked(body: &Value) -> Vec<String> {
    let text = |content: &Value| match content.as_array() {
        Some(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        None => content.as_str().unwrap_or_default().to_owned(),
    };
    body["messages"].as_array().expect("messages").iter().map(|message| text(&message["content"])).collect()
}

#[test]
fn the_tour_needs_no_key() {
    let home = TempHome::new();
    let output = run(&home, ["-p", "--model", "scripted/tour", "hi"]).quiet();
    assert!(output.starts_with("That was the tour") && output.ends_with(".\n"), "{output}");
    assert!(home.read_file("pith-tour.txt").is_some(), "the tools are real");
}

#[test]
fn only_the_last_answer_is_printed() {
    let turns = [Turn::call("bash", json!({"command": "echo noise"})), Turn::text("done"), Turn::text("again")];
    let (home, server) = scene(turns);
    let output = run(&home, model().into_iter().chain(["-p", "first", "second"])).quiet();
    assert_eq!(output, "again\n");
    let log = server.requests();
    assert_eq!(asked(&log.last().expect("requests").body).last().map(String::as_str), Some("second"));
}

#[test]
fn piped_text_files_and_message_make_one_prompt() {
    let (home, server) = scene([Turn::text("read it")]);
    home.write_file("notes.txt", "line one");
    home.write_file("pixel.png", PIXEL);
    home.write_file("empty.txt", "");
    let arguments = model().into_iter().chain(["-p", "@notes.txt", "@pixel.png", "@empty.txt", "What is this?"]);
    assert_eq!(run_with(&home, arguments, b"  piped text\n").quiet(), "read it\n");
    let request = server.requests().remove(0).body;
    let work = home.work().canonicalize().expect("work directory");
    let expected = format!(
        "piped text\n<file name=\"{0}/notes.txt\">\nline one\n</file>\n<file name=\"{0}/pixel.png\"></file>\nWhat is this?",
        work.display()
    );
    assert_eq!(asked(&request), [expected]);
    let blocks = request["messages"][0]["content"].as_array().expect("blocks");
    assert!(
        blocks.iter().any(|block| block["type"] == "image" && block["source"]["media_type"] == "image/png"),
        "{blocks:?}"
    );
}

#[test]
fn text_alone_may_come_from_a_pipe() {
    let (home, server) = scene([Turn::text("ok")]);
    // Neither -p nor a message: a redirected stdin is enough.
    assert_eq!(run_with(&home, model(), b"explain this\n").quiet(), "ok\n");
    assert_eq!(asked(&server.requests()[0].body), ["explain this"]);
}

#[test]
fn an_empty_prompt_does_nothing() {
    let home = TempHome::new();
    assert_eq!(run(&home, ["-p"]).quiet(), "");
    let output = run(&home, [] as [&str; 0]);
    assert!(output.code == 0 && output.stderr.starts_with("nothing to do: "), "{}", output.stderr);
}

#[test]
fn a_failed_answer_fails_the_command() {
    let (home, _server) = scene([Turn::status(401)]);
    let output = run(&home, model().into_iter().chain(["-p", "hi"]));
    assert_eq!((output.stdout.as_str(), output.code), ("", 1));
    assert!(output.stderr.contains("401"), "{}", output.stderr);
}

#[test]
fn without_a_model_it_says_what_to_do() {
    let output = run(&TempHome::new(), ["-p", "hi"]);
    assert_eq!((output.stdout.as_str(), output.code), ("", 1));
    assert!(output.stderr.starts_with("No API key found for the selected model.\n"), "{}", output.stderr);
}

#[test]
fn files_that_cannot_be_sent_are_named() {
    let home = TempHome::new();
    let work = home.work().canonicalize().expect("work directory");
    home.write_file("binary", [0, 1, 2, 3]);
    let check = |file: &str, error: String| run(&home, ["-p", "--model", "scripted/tour", file]).refused(&error);
    check("@missing", format!("Error: File not found: {}/missing\n", work.display()));
    check("@binary", format!("Error: File is neither text nor an image: {}/binary\n", work.display()));
    check("@.", format!("Error: Not a file: {}/.\n", work.display()));
}

#[test]
fn bad_arguments_are_refused() {
    let home = TempHome::new();
    run(&home, ["--modle", "x"]).refused("Error: Unknown option: --modle (did you mean --model?)\n");
    run(&home, ["-z"]).refused("Error: Unknown option: -z\n");
    run(&home, ["--mode", "bogus"]).refused("Error: Invalid mode \"bogus\". Valid values: text, json, rpc, acp\n");
    run(&home, ["--mode", "rpc", "@x"]).refused("Error: @file arguments are not supported in RPC mode\n");
    let bad = std::ffi::OsStr::from_bytes(b"caf\xe9");
    run(&home, [std::ffi::OsStr::new("-p"), bad]).refused("Error: argument is not valid UTF-8: caf\u{fffd}\n");
}

#[test]
fn templates_and_skills_work_from_the_command_line() {
    let (home, server) = scene([Turn::text("ok")]);
    home.write_file("prompts/fix.md", "Fix $1 in $2.");
    let arguments = model().into_iter().chain(["--prompt-template", "prompts/fix.md", "-p", "/fix 'a bug' main.rs"]);
    run(&home, arguments).quiet();
    assert_eq!(asked(&server.requests()[0].body), ["Fix a bug in main.rs."]);
}

#[test]
fn an_interrupt_ends_the_work_and_what_it_started() {
    let sleep = format!("sleep 4100.{}", std::process::id());
    let (home, _server) = scene([Turn::call("bash", json!({"command": sleep}))]);
    let child = start(&home, model().into_iter().chain(["-p", "go"]));
    let pid = Pid::from_child(&child);
    let mut child = child;
    drop(child.stdin.take());
    process::wait_for(&sleep, pith_testkit::timeout());
    kill_process(pid, Signal::INT).expect("pith is running");
    let output = finish(child);
    assert_eq!((output.stdout.as_str(), output.code), ("", 130));
    process::no_process_with(&sleep, pith_testkit::timeout());
    let session = home.sessions().remove(0);
    assert!(
        session.messages().iter().any(|message| message["role"] == "toolResult"),
        "the file is complete: {session:?}"
    );
}

#[test]
fn progress_is_shown_on_a_terminal() {
    let (home, _server) = scene([Turn::call("bash", json!({"command": "echo checking"})), Turn::text("All is well.")]);
    let arguments: Vec<&str> = model().into_iter().chain(["-p", "check it"]).collect();
    let mut terminal = Terminal::spawn(PITH, &arguments, &home);
    terminal.wait("✓ $ echo checking");
    terminal.wait("All is well.");
    terminal.wait("2 requests");
    assert_eq!(terminal.exit_code(), 0);
}
