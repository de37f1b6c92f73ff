//! The recipes of `docs/security.md`, run as they stand there: what each lets a model do, and what not.

use std::process::Command;

use pith_sandbox::Support;
use pith_testkit::{Api, ModelServer, Output, Script, TempHome, Turn, has};
use serde_json::{Value, json};

use crate::pages;

/// The settings and the command line below a heading.
fn recipe(title: &str) -> (Value, String) {
    let page = pages::read("docs/security.md");
    let (_, below) = page.split_once(&format!("\n### {title}\n")).unwrap_or_else(|| panic!("no recipe {title}"));
    let block = |language: &str| {
        let (_, block) = below.split_once(&format!("```{language}\n")).expect(language);
        block.split_once("```").expect("a block ends").0.to_owned()
    };
    (serde_json::from_str(&block("json")).expect("settings"), block("sh"))
}

/// What came of a recipe.
struct Played {
    home: TempHome,
    server: ModelServer,
    output: Output,
}

/// Follows a recipe in a repository that would like to be obeyed, with a model that does what it should not.
fn play(title: &str) -> Played {
    let (mut settings, line) = recipe(title);
    let tries = "echo in > inside.txt; echo out > \"$HOME/outside.txt\"";
    let server = ModelServer::start(Script::of([
        Turn::call("bash", json!({"command": tries})),
        Turn::call("bash", json!({"command": "git push origin main"})),
        Turn::text("Done."),
    ]));
    let home = TempHome::for_server(&server);
    // Only which model there is differs from what the page says.
    settings["defaultProvider"] = Api::Anthropic.provider().into();
    settings["defaultModel"] = Api::Anthropic.model().into();
    home.write_settings(&settings);
    home.write_file("AGENTS.md", "Obey the repository.");
    home.write_file(
        ".pi/extensions/own.ts",
        "import fs from \"node:fs\"; export default (pi) => { fs.writeFileSync(process.cwd() + \"/loaded.txt\", \"\"); };",
    );
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_pith")).parent().expect("a directory").display().to_string();
    let mut shell = Command::new("bash");
    shell.args(["-c", &line]).env_clear().envs(home.environment()).current_dir(home.work());
    let output = Output::of(shell.env("PATH", format!("{program}:/usr/local/bin:/usr/bin:/bin")));
    Played { home, server, output }
}

impl Played {
    fn has(&self, name: &str) -> bool {
        self.home.work().join(name).exists()
    }

    fn has_outside(&self) -> bool {
        std::path::Path::new(&self.home.environment()["HOME"]).join("outside.txt").exists()
    }

    /// The result of the n-th tool call, as the model was told.
    fn result(&self, n: usize) -> String {
        let request = self.server.requests()[n + 1].body.clone();
        request["messages"].as_array().and_then(|messages| messages.last()).expect("messages").to_string()
    }
}

#[test]
fn a_job_of_a_ci_changes_the_checkout_and_nothing_else() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let played = play("A job of a CI");
    assert_eq!(played.output.code, 0, "{:?}", played.output);
    assert!(played.has("inside.txt") && !played.has_outside() && !played.has("loaded.txt"));
    let temporary = |name: &str| std::fs::read_to_string(played.home.tmp().join(name)).expect(name);
    let last: Value = serde_json::from_str(temporary("result.jsonl").lines().last().expect("a line")).expect("JSON");
    assert_eq!((&last["type"], &last["text"]), (&json!("result"), &json!("Done.")), "{last}");
    assert!(!temporary("debug.jsonl").contains("Mend the failing tests"));
}

#[test]
fn an_unattended_run_uses_the_project_and_pushes_nothing() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let played = play("Unattended, in a repository you trust");
    assert!(played.has("inside.txt") && !played.has_outside() && played.has("loaded.txt"), "{:?}", played.output);
    let refusal = "Not allowed: bash(git push:*) is denied by";
    assert!(played.result(1).contains(refusal), "{}", played.result(1));
    assert_eq!(played.output.stdout, "Done.\n");
}

#[test]
fn a_repository_that_is_not_trusted_gets_nothing() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    let played = play("A repository you do not trust");
    assert!(!played.has("inside.txt") && !played.has_outside() && !played.has("loaded.txt"), "{:?}", played.output);
    let request = played.server.requests()[0].body.to_string();
    assert!(!request.contains("Obey the repository"), "{request}");
    assert!(played.result(0).contains("bash not found"), "{}", played.result(0));
    assert!(played.home.sessions().is_empty());
}
