//! Rules, modes and verdicts.

use std::path::Path;

use pith_permissions::{Action, Bases, Mode, Origin, Policy, Reason, Rule, ToolUse, Verdict};

const CWD: &str = "/work/app";

fn policy(mode: Mode, deny: &[&str], ask: &[&str], allow: &[&str]) -> Policy {
    let bases = Bases { cwd: CWD.into(), home: "/home/u".into(), settings: CWD.into() };
    let rules = |texts: &[&str]| {
        let rule = |text: &&str| Rule::parse(text, Origin::Host, &bases).expect("a rule");
        texts.iter().map(rule).collect()
    };
    Policy { mode, deny: rules(deny), ask: rules(ask), allow: rules(allow), ..Policy::default() }
}

fn using<'a>(tool: &'a str, action: Action<'a>) -> ToolUse<'a> {
    ToolUse { tool, action, workspace: Path::new(CWD), home: Path::new("/home/u"), is_confined: false }
}

fn command(policy: &Policy, script: &str) -> Verdict {
    policy.judge(&using("bash", Action::Command(script))).verdict
}

#[test]
fn modes_decide_where_no_rule_does() {
    let inside = Path::new("/work/app/src/a.rs");
    let outside = Path::new("/etc/passwd");
    let hook = Path::new("/work/app/.git/hooks/pre-commit");
    for (mode, verdicts) in [
        (Mode::Allow, ["allow", "allow", "allow", "allow", "allow", "allow"]),
        (Mode::Write, ["allow", "allow", "ask", "ask", "ask", "ask"]),
        (Mode::Ask, ["allow", "ask", "ask", "ask", "ask", "ask"]),
        (Mode::Deny, ["deny", "deny", "deny", "deny", "deny", "deny"]),
    ] {
        let policy = policy(mode, &[], &[], &[]);
        let uses = [
            using("read", Action::Read(outside)),
            using("edit", Action::Change(inside)),
            using("edit", Action::Change(outside)),
            using("write", Action::Change(hook)),
            using("bash", Action::Command("ls")),
            using("mcp__x__y", Action::Other),
        ];
        let found = uses.map(|call| policy.judge(&call).verdict.as_str());
        assert_eq!(found, verdicts, "{mode:?}");
    }
}

#[test]
fn deny_comes_before_ask_and_ask_before_allow() {
    let policy = policy(Mode::Ask, &["bash(git push --force:*)"], &["bash(git push:*)"], &["bash(git:*)"]);
    assert_eq!(command(&policy, "git push --force x"), Verdict::Deny);
    assert_eq!(command(&policy, "git push x"), Verdict::Ask);
    assert_eq!(command(&policy, "git diff"), Verdict::Allow);
}

#[test]
fn every_part_must_be_allowed() {
    let policy = policy(Mode::Ask, &["bash(rm:*)"], &[], &["bash(git diff:*)", "bash(echo:*)"]);
    for (script, verdict) in [
        ("git diff && echo x", Verdict::Allow),
        ("git diff | less", Verdict::Ask),
        ("git diff; rm x", Verdict::Deny),
        ("echo $(rm x)", Verdict::Deny),
        ("echo `curl x`", Verdict::Ask),
        ("echo \"${x:-$(rm y)}\"", Verdict::Deny),
        ("echo <<E\n$(rm x)\nE", Verdict::Deny),
        ("echo <<'E'\n$(rm x)\nE", Verdict::Allow),
        ("/bin/rm x", Verdict::Deny),
        ("\\rm x", Verdict::Deny),
        ("'r'm x", Verdict::Deny),
        ("$RM x", Verdict::Ask),
        ("eval 'echo x'", Verdict::Ask),
        ("timeout 5 git diff", Verdict::Allow),
        ("timeout 5 rm x", Verdict::Deny),
        ("timeout $t git diff", Verdict::Ask),
        ("bash -c 'git diff; rm x'", Verdict::Deny),
        ("bash -c 'git diff'", Verdict::Allow),
        ("echo 'git diff' | bash", Verdict::Ask),
        ("sudo git diff", Verdict::Ask),
        ("env PATH=/x git diff", Verdict::Ask),
        ("PATH=/x git diff", Verdict::Ask),
        ("PATH=/x; git diff", Verdict::Ask),
        ("RUST_LOG=x git diff", Verdict::Allow),
        ("x=1; git diff $x", Verdict::Allow),
        ("for x in a; do git diff $x; done", Verdict::Allow),
        ("for PATH in /x; do git diff; done", Verdict::Ask),
        ("printf -v PATH /x; git diff", Verdict::Ask),
        ("find . -exec rm {} +", Verdict::Deny),
        ("ls | xargs rm", Verdict::Deny),
        ("ls | xargs git diff", Verdict::Ask),
        ("echo x > a.txt", Verdict::Ask),
        ("echo x > /dev/null 2>&1", Verdict::Allow),
        ("echo < a.txt", Verdict::Allow),
        ("echo < /dev/tcp/x/1", Verdict::Ask),
        ("git diff &", Verdict::Allow),
        ("coproc git diff", Verdict::Ask),
        ("select x in a; do git diff; done", Verdict::Ask),
        ("git() { rm x; }; git diff", Verdict::Deny),
        ("echo $((x))", Verdict::Ask),
        ("echo ${x@P}", Verdict::Ask),
        ("[ -v 'x[$(rm y)]' ]", Verdict::Ask),
        ("echo 'unbalanced", Verdict::Ask),
    ] {
        assert_eq!(command(&policy, script), verdict, "{script}");
    }
}

#[test]
fn a_computed_word_that_could_be_forbidden_asks() {
    let policy = policy(Mode::Allow, &["bash(rm -rf *)"], &[], &[]);
    assert_eq!(command(&policy, "rm $flags x"), Verdict::Ask);
    assert_eq!(command(&policy, "rm -rf x"), Verdict::Deny);
    assert_eq!(command(&policy, "ls $flags"), Verdict::Allow);
    assert_eq!(command(&policy, "eval x"), Verdict::Ask, "what is not understood asks");
}

#[test]
fn redirections_are_changes_of_files() {
    let write = policy(Mode::Write, &["edit(secret/**)", "read(.env)"], &[], &["bash(echo:*)", "bash(cat:*)"]);
    assert_eq!(command(&write, "echo x > src/a"), Verdict::Allow);
    assert_eq!(command(&write, "echo x > ../a"), Verdict::Ask);
    assert_eq!(command(&write, "echo x >> secret/a"), Verdict::Deny);
    assert_eq!(command(&write, "cat < .env"), Verdict::Deny);
    assert_eq!(command(&write, "cd / && echo x > etc/a"), Verdict::Ask);
    assert_eq!(command(&write, "echo x > ~/a"), Verdict::Ask);
    assert_eq!(command(&write, "echo x > $f"), Verdict::Ask);
    assert_eq!(command(&write, "echo x >& a; echo &> ../b"), Verdict::Ask);
}

#[test]
fn a_sandbox_may_answer_for_the_user() {
    let mut policy = policy(Mode::Ask, &["bash(rm:*)"], &["bash(git push:*)"], &[]);
    policy.trusts_sandbox = true;
    let judged =
        |script, is_confined| policy.judge(&ToolUse { is_confined, ..using("bash", Action::Command(script)) }).verdict;
    assert_eq!(judged("make", true), Verdict::Allow);
    assert_eq!(judged("make", false), Verdict::Ask);
    assert_eq!(judged("git push", true), Verdict::Ask);
    assert_eq!(judged("rm x", true), Verdict::Deny);
}

#[cfg(unix)]
#[test]
fn links_that_lead_out_are_seen() {
    let directory = tempfile::tempdir().expect("temp dir");
    let workspace = directory.path().join("work");
    std::fs::create_dir_all(workspace.join("src")).expect("directory");
    std::os::unix::fs::symlink(directory.path(), workspace.join("src/out")).expect("link");
    std::os::unix::fs::symlink(directory.path().join("not-there"), workspace.join("src/new")).expect("link");
    let policy = Policy { mode: Mode::Write, ..Policy::default() };
    let judged = |path: &str| {
        let path = workspace.join(path);
        let call = ToolUse { workspace: &workspace, ..using("write", Action::Change(&path)) };
        policy.judge(&call).verdict
    };
    assert_eq!(judged("src/a"), Verdict::Allow);
    assert_eq!(judged("src/out/a"), Verdict::Ask);
    assert_eq!(judged("src/new"), Verdict::Ask);
}

#[test]
fn a_verdict_names_its_rule() {
    let policy = policy(Mode::Allow, &["Bash(git push:*)"], &[], &[]);
    let judged = policy.judge(&using("bash", Action::Command("ls; git push")));
    assert_eq!(judged.reason, Reason::Rule { rule: "Bash(git push:*)".into(), origin: "set_permissions".into() });
    assert_eq!(judged.parts.len(), 2);
}

#[test]
fn an_answer_comes_before_the_rule_that_asked() {
    let mut policy = policy(Mode::Allow, &["bash(git push --force:*)"], &["bash(git push:*)"], &[]);
    let call = using("bash", Action::Command("git push origin main"));
    let judged = policy.judge(&call);
    assert_eq!((judged.verdict, judged.rule()), (Verdict::Ask, Some("bash(git push:*)")));
    let bases = Bases { cwd: CWD.into(), home: "/home/u".into(), settings: CWD.into() };
    policy.granted = vec![Rule::parse("bash(git push:*)", Origin::Session, &bases).expect("a rule")];
    assert_eq!(policy.judge(&call).verdict, Verdict::Allow);
    assert_eq!(command(&policy, "git push --force x"), Verdict::Deny);
    assert_eq!(command(&policy, "PATH=/x git push"), Verdict::Ask);
}
