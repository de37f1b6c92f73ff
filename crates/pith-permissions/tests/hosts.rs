//! Rules about hosts that commands connect to.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::path::Path;

use pith_permissions::{Action, Bases, Origin, Policy, Rule, ToolUse, Verdict, suggest};
use pith_sandbox::domains;

fn rules(texts: &[&str]) -> Vec<Rule> {
    let bases = Bases { cwd: "/work".into(), home: "/home/u".into(), settings: "/work".into() };
    texts.iter().map(|text| Rule::parse(text, Origin::Host, &bases).unwrap()).collect()
}

/// What is decided about a connection, and the rule that would allow it in the project.
fn judge(policy: &Policy, host: &str, port: u16) -> (Verdict, String) {
    let host = domains::host(host).unwrap();
    let action = Action::Connect(&host, port);
    let (workspace, home) = (Path::new("/work"), Path::new("/home/u"));
    let call = ToolUse { tool: "network", action, workspace, home, is_confined: true };
    let [rule] = &*suggest(&call).narrow.unwrap() else { panic!("one rule") };
    (policy.judge(&call).verdict, rule.clone())
}

#[test]
fn deny_comes_before_ask_and_ask_before_allow() {
    let policy = Policy {
        deny: rules(&["network(domain:*.bad.example)"]),
        ask: rules(&["network(domain:sometimes.example)", "WebFetch(domain:a.bad.example)"]),
        granted: rules(&["network(domain:granted.example:8443)"]),
        allow: rules(&["network(domain:*.good.example)", "network(domain:sometimes.example)", "*", "bash", "read(x)"]),
        ..Policy::default()
    };
    for (host, port, expected) in [
        ("a.bad.example", 443, Verdict::Deny),
        // What is forbidden is so on every port; what is allowed, on the usual ones.
        ("a.bad.example", 22, Verdict::Deny),
        ("sometimes.example", 443, Verdict::Ask),
        ("SOMETIMES.example.", 9000, Verdict::Ask),
        ("granted.example", 8443, Verdict::Allow),
        ("granted.example", 443, Verdict::Deny),
        ("www.good.example", 80, Verdict::Allow),
        ("www.good.example", 22, Verdict::Deny),
        // A rule for all tools says nothing about hosts, and neither does the mode, which is to allow.
        ("unknown.example", 443, Verdict::Deny),
    ] {
        assert_eq!(judge(&policy, host, port).0, expected, "{host}:{port}");
    }
    let every = Policy { allow: rules(&["network"]), ..Policy::default() };
    assert_eq!(judge(&every, "unknown.example", 22).0, Verdict::Allow);
    let all_ask = Policy { ask: rules(&["*"]), allow: rules(&["network"]), ..Policy::default() };
    assert_eq!(judge(&all_ask, "unknown.example", 443).0, Verdict::Ask);
}

#[test]
fn an_answer_for_the_project_is_about_this_host_and_port() {
    let policy = Policy { ask: rules(&["network"]), ..Policy::default() };
    for (host, port, expected) in [
        ("Example.org", 443, "network(domain:example.org)"),
        ("example.org", 8443, "network(domain:example.org:8443)"),
        ("[::1]", 8080, "network(domain:[::1]:8080)"),
    ] {
        let (_, rule) = judge(&policy, host, port);
        assert_eq!(rule, expected);
        let granted = Policy { granted: rules(&[&rule]), ..policy.clone() };
        assert_eq!(judge(&granted, host, port).0, Verdict::Allow, "{rule}");
        assert_eq!(judge(&granted, "other.example", port).0, Verdict::Ask, "{rule}");
    }
}
