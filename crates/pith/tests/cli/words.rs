//! Texts that say what to do, and the commands they point at.

use std::os::unix::fs::PermissionsExt;

use pith_testkit::{Api, TempHome, Terminal, Turn};
use serde_json::{Value, json};

use super::support::{PITH, model, run, run_with, scene};

fn auth_file(home: &TempHome) -> Value {
    let text = std::fs::read_to_string(home.agent().join("auth.json")).expect("auth.json is there");
    serde_json::from_str(&text).expect("JSON")
}

fn mode(home: &TempHome) -> u32 {
    std::fs::metadata(home.agent().join("auth.json")).expect("there").permissions().mode() & 0o777
}

// Failed model calls.

#[test]
fn a_refused_key_is_one_sentence_and_advice() {
    let provider = Api::Anthropic.provider();
    let (home, _server) = scene([Turn::status(401), Turn::status(401)]);
    let output = run(&home, model().into_iter().chain(["-p", "hi"]));
    assert_eq!(output.code, 1);
    assert!(output.stderr.starts_with(&format!("{provider}: 401 ")), "{}", output.stderr);
    assert!(output.stderr.ends_with(&format!("run pith auth set {provider}\n")), "{}", output.stderr);
    assert!(output.stderr.lines().count() == 1 && !output.stderr.contains('{'), "{}", output.stderr);
    let verbose = run(&home, model().into_iter().chain(["--verbose", "-p", "hi"]));
    assert!(verbose.stderr.contains("{\""), "the body is there: {}", verbose.stderr);
}

#[test]
fn retries_are_told_on_a_pipe() {
    let (home, _server) = scene([Turn::overloaded(), Turn::text("at last")]);
    home.write_settings(&json!({"retry": {"baseDelayMs": 1}}));
    let output = run(&home, model().into_iter().chain(["-p", "hi"]));
    assert_eq!((output.stdout.as_str(), output.code), ("at last\n", 0));
    assert!(output.stderr.starts_with("pith: trying again in 1s (1/3): "), "{}", output.stderr);
    assert!(output.stderr.contains(&format!("{}: 529 ", Api::Anthropic.provider())), "{}", output.stderr);
}

// Names.

#[test]
fn near_names_are_suggested() {
    let (home, _server) = scene([]);
    run(&home, ["--provider", "antropic", "-p", "hi"])
        .refused("Error: Unknown provider \"antropic\"; did you mean \"anthropic\"? Use --list-models to see available providers/models.\n");
    let output = run(&home, ["--model", "claude-sonet-4-5", "-p", "hi"]);
    let begin = "Error: Model \"claude-sonet-4-5\" not found; did you mean \"claude-sonnet-4-5\"? Use --list-models";
    assert!(output.code == 1 && output.stderr.starts_with(begin), "{}", output.stderr);
    let output = run(&home, ["--model", "antropic/claude-x", "-p", "hi"]);
    assert!(output.stderr.contains("did you mean \"anthropic/claude-x\"?"), "{}", output.stderr);
    run(&home, ["--model", "nothing-like-it", "-p", "hi"])
        .refused("Error: Model \"nothing-like-it\" not found. Use --list-models to see available models.\n");
}

#[test]
fn every_model_can_be_listed_with_the_key_it_needs() {
    let (home, _server) = scene([]);
    let usable = run(&home, ["--list-models"]).quiet();
    let all = run(&home, ["--list-models", "--all"]).quiet();
    assert!(all.lines().count() > 10 * usable.lines().count(), "{usable}");
    assert!(all.lines().next().is_some_and(|head| head.ends_with("  key")), "{all}");
    let row = |provider: &str, id: &str| {
        let is_it = |line: &&str| line.split_whitespace().take(2).eq([provider, id]);
        all.lines().find(is_it).unwrap_or_else(|| panic!("no {provider}/{id}")).to_owned()
    };
    assert!(row("openai", "gpt-4o").ends_with("  OPENAI_API_KEY"));
    assert!(row(Api::Anthropic.provider(), Api::Anthropic.model()).ends_with("  ready"));
    let found = run(&home, ["--list-models", "gpt-4o-mini", "--all"]).quiet();
    assert!(found.contains("gpt-4o-mini") && !found.contains("claude"), "{found}");
    let empty = run(&TempHome::new(), ["--list-models"]).quiet();
    assert!(empty.contains("--list-models --all"), "{empty}");
}

// Keys.

#[test]
fn a_key_is_stored_from_a_pipe() {
    let home = TempHome::new();
    home.write_agent_file("auth.json", r#"{"openai":{"type":"api_key","key":"kept"}}"#);
    let path = home.agent().join("auth.json");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("chmod");
    let output = run_with(&home, ["auth", "set", "Anthropic"], b"sk-secret\n").quiet();
    assert_eq!(output, format!("The key of anthropic is in {}\n", path.display()));
    assert_eq!(auth_file(&home)["anthropic"], json!({"type": "api_key", "key": "sk-secret"}));
    assert_eq!((&auth_file(&home)["openai"]["key"], mode(&home)), (&json!("kept"), 0o600));
    assert_eq!(run(&home, ["auth", "print-api-key", "--provider", "anthropic"]).quiet(), "sk-secret\n");
    run(&home, ["auth", "remove", "anthropic"]).quiet();
    assert_eq!(auth_file(&home), json!({"openai": {"type": "api_key", "key": "kept"}}));
    run(&home, ["auth", "remove", "opnai"])
        .refused(&format!("Error: {} has no key of opnai; did you mean \"openai\"?\n", path.display()));
}

#[test]
fn a_key_typed_on_a_terminal_is_not_shown() {
    let home = TempHome::new();
    let mut terminal = Terminal::spawn(PITH, &["auth", "set", "anthropic"], &home);
    terminal.wait("Key of anthropic: ");
    terminal.type_keys("sk-typed\r");
    terminal.wait("The key of anthropic is in ");
    assert!(!terminal.screen().contains("sk-typed"), "{}", terminal.screen());
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!((&auth_file(&home)["anthropic"]["key"], mode(&home)), (&json!("sk-typed"), 0o600));

    let mut terminal = Terminal::spawn(PITH, &["auth", "set", "anthropic"], &home);
    terminal.wait("Key of anthropic: ");
    terminal.type_keys("other\u{3}");
    terminal.wait("nothing was changed");
    assert_eq!(terminal.exit_code(), 1);
    assert_eq!(auth_file(&home)["anthropic"]["key"], "sk-typed");
}

#[test]
fn a_key_that_cannot_be_stored_is_refused() {
    let home = TempHome::new();
    let check = |arguments: &[&str], stdin: &[u8], error: &str| {
        let output = run_with(&home, arguments, stdin);
        assert!(output.code == 1 && output.stderr.starts_with(error), "{}", output.stderr);
        assert!(!home.agent().join("auth.json").exists());
    };
    check(&["auth", "set", "antropic"], b"k", "Error: there is no provider \"antropic\"; did you mean \"anthropic\"?");
    check(
        &["auth", "set", "zzzzzz"],
        b"k",
        "Error: there is no provider \"zzzzzz\"; pith --list-models --all lists them",
    );
    check(&["auth", "set", "anthropic"], b" \n", "Error: no key was given\n");
    check(&["auth", "set", "anthropic"], b"a\nb\n", "Error: the key has spaces or more than one line\n");
    check(&["auth", "set", "anthropic", "sk-1"], b"", "Error: a key on the command line can be seen by others");
    check(&["auth", "set"], b"", "Error: auth set requires a provider, as in pith auth set anthropic\n");
    home.write_agent_file("auth.json", "{ half");
    let output = run_with(&home, ["auth", "set", "anthropic"], b"k");
    assert!(output.code == 1 && output.stderr.ends_with("; repair or remove it first\n"), "{}", output.stderr);
    assert_eq!(std::fs::read_to_string(home.agent().join("auth.json")).expect("there"), "{ half");
}

// Trust.

#[test]
fn a_refused_trust_is_said_and_can_be_undone() {
    let (home, _server) = scene([Turn::text("one"), Turn::text("two")]);
    home.write_file(".pi/SYSTEM.md", "Answer in French.");
    let work = home.work().canonicalize().expect("there");
    let state = |arguments: &[&str]| run(&home, [&["trust"], arguments].concat()).quiet();
    assert_eq!(state(&["--show"]), format!("{}: undecided\n", work.display()));
    assert_eq!(state(&["--no"]), format!("{}: not trusted\n", work.display()));
    let arguments: Vec<&str> = model().into_iter().chain(["-p", "hi"]).collect();
    let mut terminal = Terminal::spawn(PITH, &arguments, &home);
    terminal.wait("are not used: it is not trusted (pith trust)");
    terminal.wait("one");
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(state(&[]), format!("{}: trusted\n", work.display()));
    assert_eq!(state(&["--forget"]), format!("{}: undecided\n", work.display()));
    run(&home, ["trust", "no/where"]).refused(&format!(
        "Error: there is no directory {}/no/where: No such file or directory (os error 2)\n",
        work.display()
    ));
    run(&home, ["trust", "--maybe"])
        .refused("Error: unexpected argument: --maybe; use pith trust [--no|--forget|--show] [DIR]\n");
}

#[test]
fn a_mistyped_setting_is_said_on_a_terminal() {
    let (home, _server) = scene([Turn::text("fine")]);
    home.write_settings(&json!({"maxTurn": 3}));
    let arguments: Vec<&str> = model().into_iter().chain(["-p", "hi"]).collect();
    let mut terminal = Terminal::spawn(PITH, &arguments, &home);
    terminal.wait("unknown key maxTurn; did you mean \"maxTurns\"?");
    assert_eq!(terminal.exit_code(), 0);
}
