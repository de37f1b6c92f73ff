//! The examples in the documentation, run as they are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pith_testkit::{Api, Host, TempHome, Turn};
use serde_json::{Value, json};

use super::cli::{PITH, once, run, scene};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect(path)
}

/// The fenced blocks of a language.
fn blocks(document: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let rest = document.split(&fence).skip(1);
    rest.map(|rest| rest.split("\n```").next().expect("a block ends").to_owned()).collect()
}

fn example(name: &str) -> String {
    root().join("examples/extensions").join(name).display().to_string()
}

fn host(home: &TempHome, arguments: &[&str]) -> Host {
    let agent = home.agent().display().to_string();
    Host::builder(PITH).rpc(Api::Anthropic).home(home).env("PITH_AGENT_DIR", &agent).args(arguments).spawn()
}

#[test]
fn the_command_of_the_documentation_says_hello() {
    let guide = blocks(&read("docs/extensions.md"), "sh").swap_remove(0);
    assert!(blocks(&read("README.md"), "sh").contains(&guide), "README and guide show the same command");
    let home = TempHome::new();
    let path = format!("{}:/usr/bin:/bin", Path::new(PITH).parent().expect("a directory").display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &guide]).env_clear().envs(home.environment()).env("PATH", path).current_dir(root());
    let output = shell.stderr(Stdio::piped()).output().expect("sh runs");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    let frames: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON lines")).collect();
    let shown = frames.iter().find(|frame| frame["method"] == "notify").expect("a notification");
    assert_eq!((&shown["message"], &shown["notifyType"]), (&json!("Hello you"), &json!("info")), "{lines}");
    assert!(frames.iter().any(|frame| frame["command"] == "prompt" && frame["success"] == true), "{lines}");
}

#[test]
fn the_listed_extensions_load_and_work() {
    let guide = blocks(&read("docs/extensions.md"), "ts");
    let turns =
        [Turn::call("roll", json!({"sides": 6})), Turn::call("bash", json!({"command": "rm -f x"})), Turn::text("ok")];
    let (home, _server) = scene(turns);
    let mut arguments = Vec::new();
    for source in &guide {
        let name = source.lines().next().and_then(|line| line.strip_prefix("// ")).expect("a file name");
        home.write_file(name, source);
        arguments.extend(["-e", name]);
    }
    assert_eq!(arguments, ["-e", "hello.ts", "-e", "gate.ts", "-e", "dice.ts"]);
    let mut host = host(&home, &arguments);
    host.data(json!({"type": "prompt", "message": "play"}));
    let asked = host.wait(|frame| frame["method"] == "confirm");
    assert_eq!((&asked["title"], &asked["message"]), (&json!("Delete?"), &json!("rm -f x")));
    host.send(json!({"type": "extension_ui_response", "id": asked["id"], "confirmed": false}));
    host.wait_type("agent_settled");
    let ends: Vec<Value> = host.frames().into_iter().filter(|frame| frame["type"] == "tool_execution_end").collect();
    let text = |end: &Value| end["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
    assert!(text(&ends[0]).starts_with("Rolled ") && ends[0]["isError"] == false, "{}", ends[0]);
    assert_eq!((text(&ends[1]).as_str(), &ends[1]["isError"]), ("The user did not allow it", &json!(true)));
}

#[test]
fn every_example_loads() {
    let home = TempHome::new();
    let directory = std::fs::read_dir(root().join("examples/extensions")).expect("the examples");
    let files: Vec<PathBuf> = directory.map(|entry| entry.expect("readable").path()).collect();
    let guide = read("docs/extensions.md");
    for file in &files {
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(guide.contains(&format!("../examples/extensions/{name}")), "{name} is not mentioned");
        let checked = run(&home, ["config", "check", "-e", &file.display().to_string()]);
        let expected = format!("{}:\n  extension: ", file.display());
        assert!(checked.code == 0 && checked.stdout.contains(&expected), "{}{}", checked.stdout, checked.stderr);
    }
    assert!(files.len() >= 4);
}

#[test]
fn the_flag_of_an_example_limits_the_tools() {
    let (home, server) = scene([Turn::text("looked")]);
    let answer = run(&home, once(&["-e", &example("read-only.ts"), "-p", "--read-only", "--no-session", "look"]));
    assert_eq!((answer.stdout.as_str(), answer.code), ("looked\n", 0), "{}", answer.stderr);
    let body = server.requests()[0].body.clone();
    let mut names: Vec<&str> =
        body["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["find", "grep", "ls", "read"]);
}
