//! Published third-party packages with the real binary: they load, and what they register can be used. Runs like the
//! examples.

use std::fmt::Write as _;

use pith_testkit::packages::{Expected, Packages, THIRD_PARTY, entries};
use pith_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::published::publish;
use crate::stage::Stage;

/// What a package registered, or why it could not be loaded.
fn load(root: &std::path::Path) -> Result<(usize, usize, Vec<String>), String> {
    let files = entries(root);
    let configure =
        |builder: pith_testkit::HostBuilder| files.iter().fold(builder, |builder, file| builder.arg("-e").arg(file));
    let furnish = |home: &pith_testkit::TempHome, _: &_| {
        home.write_settings(&json!({"extensionLimits": {"executionMs": 20000}}));
    };
    let mut stage = Stage::furnished(Script::of([Turn::text("fine")]), furnish, configure);
    stage.host.send(json!({"id": "first", "type": "get_commands"}));
    let first = stage.host.find_within(0, pith_testkit::timeout(), |frame| frame["id"] == "first");
    let Some(commands) = first else {
        let stderr = stage.host.wait_stderr(|text| text.contains("Failed to load extension"));
        let (_, why) = stderr.split_once("Failed to load extension").unwrap_or_default();
        return Err(why.to_owned());
    };
    let is_own = |command: &&Value| command["source"] == "extension";
    let n_commands = commands["data"]["commands"].as_array().into_iter().flatten().filter(is_own).count();
    stage.run("hello");
    let builtin = ["bash", "read", "write", "edit", "grep", "find", "ls"];
    let offered = stage.server.wait_request(0).body["tools"].clone();
    let names = offered.as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str());
    let n_tools = names.filter(|name| !builtin.contains(name)).count();
    let frames = stage.host.frames();
    let errors = frames.iter().filter(|frame| frame["type"] == "extension_error");
    let errors = errors.map(|frame| format!("{}: {}", frame["event"], frame["error"])).collect();
    stage.finish("a published package");
    Ok((n_commands, n_tools, errors))
}

#[test]
fn published_packages_load_and_register_what_they_offer() {
    let Some(packages) = Packages::find() else { return pith_testkit::skip("PITH_EXT_PACKAGES is not set") };
    let mut table = "| package | result | commands | tools | reports |\n|---|---|---|---|---|\n".to_owned();
    let mut surprises = Vec::new();
    for (package, expected) in THIRD_PARTY {
        let Some(root) = packages.third_party(package) else {
            writeln!(table, "| {package} | not to be had | | | |").expect("a string takes any text");
            continue;
        };
        let loaded = std::panic::catch_unwind(|| load(&root)).unwrap_or_else(|_| Err("the run failed".to_owned()));
        let is_expected = match (&loaded, expected) {
            (Ok(_), Expected::Loads) => true,
            (Err(why), Expected::Fails(part)) => why.contains(part),
            _ => false,
        };
        let line = match &loaded {
            Ok((commands, tools, errors)) => {
                format!("| {package} | loads | {commands} | {tools} | {} |", errors.join("; "))
            }
            Err(why) => {
                let words = why.split_whitespace().skip(1).take(14).collect::<Vec<_>>().join(" ");
                format!("| {package} | fails: {words} | | | |")
            }
        };
        writeln!(table, "{line}").expect("a string takes any text");
        if !is_expected {
            surprises.push(line);
        }
    }
    publish("third-party.md", &table);
    assert!(surprises.is_empty(), "not as expected:\n{}", surprises.join("\n"));
}
