//! Rules about tool calls as a user meets them: flags, one answer, and what a command would come to.

use pith_testkit::{TempHome, Turn};
use serde_json::json;

use super::support::{model, run, run_with, scene};

/// Output and exit code of `pith permissions check`.
fn check(home: &TempHome, arguments: &[&str]) -> (String, i32) {
    let output = run(home, [&["permissions", "check"], arguments].concat());
    (output.stdout, output.code)
}

#[test]
fn a_command_is_judged_part_by_part() {
    let home = TempHome::new();
    home.write_settings(&json!({"permissions": {"allow": ["bash(git diff:*)"], "deny": ["bash(rm -rf *)"]}}));
    let file = home.agent().join("settings.json");
    let (text, code) = check(&home, &["git diff && rm -rf x"]);
    let expected = format!(
        "allow  git diff  (bash(git diff:*) of {0})\ndeny   rm -rf x  (bash(rm -rf *) of {0})\nverdict: deny (bash(rm -rf *) of {0})\n",
        file.display()
    );
    assert_eq!((text.as_str(), code), (expected.as_str(), 1));
    assert_eq!(check(&home, &["git diff"]).1, 0);
    let (text, code) = check(&home, &["make > log", "--permission-mode", "ask"]);
    assert_eq!((text.as_str(), code), ("ask    make  (mode ask)\nwrites log\nverdict: ask (mode ask)\n", 2));
    assert_eq!(
        check(&home, &["--permission-mode", "deny", "make"]).0,
        "deny   make  (mode deny)\nverdict: deny (mode deny)\n"
    );
    let (text, code) = check(&TempHome::new(), &["git diff && rm -rf x"]);
    let expected = "allow  git diff  (mode allow)\nallow  rm -rf x  (mode allow)\nverdict: allow (mode allow)\n";
    assert_eq!((text.as_str(), code), (expected, 0));
    let unquoted = run(&home, ["permissions", "check", "git", "push"].to_vec());
    assert!(unquoted.stderr.contains("unexpected argument: push"), "{}", unquoted.stderr);
    assert_eq!((unquoted.stdout.as_str(), unquoted.code), ("", 1));
}

#[test]
fn a_mention_of_a_denied_program_asks_and_says_so() {
    let home = TempHome::new();
    home.write_settings(&json!({"permissions": {"deny": ["bash(git push:*)"]}}));
    let rule = "bash(git push:*)";
    let (text, code) = check(&home, &["ls && ionice git push"]);
    let expected = format!(
        "allow  ls  (mode allow)\nask    ionice git push  (mentions `git push`, see {rule})\nverdict: ask (mentions `git push`, see {rule})\n"
    );
    assert_eq!((text.as_str(), code), (expected.as_str(), 2));
    let (text, code) = check(&home, &["PS4='$(git push)'; set -x; :"]);
    assert!(text.contains("ask    $(git push)  (mentions `git push`"), "{text}");
    assert_eq!(code, 2);
    assert_eq!(check(&home, &["git -C . push"]).1, 1);
    assert_eq!(check(&home, &["grep -rn 'git push' docs"]).1, 0);
}

#[test]
fn one_answer_names_the_first_refusal_and_fails() {
    let (home, server) = scene([Turn::call("bash", json!({"command": "echo ran > out.txt"})), Turn::text("Then not.")]);
    let output = run(&home, [&model()[..], &["-p", "--permission-mode", "ask", "go"]].concat());
    assert_eq!((output.stdout.as_str(), output.code), ("Then not.\n", 1));
    let refusal = "bash was not run. Nobody could be asked; permissions.unattended is \"deny\".";
    assert!(output.stderr.contains(refusal), "{}", output.stderr);
    assert_eq!(home.read_file("out.txt"), None);
    // A redirection writes a file, which is another thing than the command; allowed both, it runs.
    for (rules, code) in [("bash(echo:*)", 1), ("edit,bash(echo:*)", 0)] {
        server.push(Turn::call("bash", json!({"command": "echo ran > out.txt"})));
        server.push(Turn::text("Done."));
        let flags = ["-p", "--permission-mode", "ask", "--allowed-tools", rules, "go"];
        let output = run(&home, [&model()[..], &flags].concat());
        assert_eq!((output.stdout.as_str(), output.code), ("Done.\n", code), "{rules}: {}", output.stderr);
    }
    assert_eq!(home.read_file("out.txt").as_deref(), Some("ran\n"));
}

#[test]
fn a_wrong_value_is_reported_once() {
    let (home, _server) = scene([Turn::call("ls", json!({})), Turn::text("hi")]);
    home.write_settings(&json!({
        "permissions": {"defaultMode": "loud", "deny": "rm", "timeoutSeconds": -1, "unattended": 1},
        "tools": {"approvalMode": "loud", "approval": 5}, "bash": {"patterns": "rm"},
    }));
    let once = |place: &str, text: &str| {
        let own = ["defaultMode", "deny", "timeoutSeconds", "unattended"].map(|name| format!("permissions.{name}"));
        let others = ["tools.approvalMode", "tools.approval", "bash.patterns"].map(str::to_owned);
        for key in own.iter().chain(&others) {
            let n_reports = text.matches(&format!("Invalid {key} setting:")).count();
            assert_eq!(n_reports, 1, "{key} in {place}:\n{text}");
        }
    };
    once("stderr", &run(&home, [&model()[..], &["-p", "hi"]].concat()).stderr);
    once("config check", &run(&home, ["config", "check"]).stdout);
    let asked = b"{\"type\":\"get_diagnostics\"}\n";
    once("get_diagnostics", &run_with(&home, [&model()[..], &["--mode", "rpc"]].concat(), asked).stdout);
}
