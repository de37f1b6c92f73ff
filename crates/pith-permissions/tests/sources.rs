//! Rules from settings, the command line and grants.

use std::path::PathBuf;

use pith_config::{AgentDir, Layout};
use pith_permissions::{Action, GrantFile, LoadedPolicy, Mode, RuleFlags, Sources, ToolUse, Unattended, Verdict};
use tempfile::TempDir;

struct Place {
    directory: TempDir,
}

impl Place {
    fn new(user: &str, project: &str) -> Place {
        let directory = tempfile::tempdir().expect("temp dir");
        for (path, text) in [("agent/settings.json", user), ("work/.pi/settings.json", project)] {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().expect("parent")).expect("directory");
            std::fs::write(path, text).expect("write");
        }
        Place { directory }
    }

    fn cwd(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    fn sources(&self, is_trusted: bool) -> Sources {
        Sources {
            agent_dir: AgentDir::at(self.directory.path().join("agent"), Layout::Pi),
            cwd: self.cwd(),
            home: self.directory.path().to_owned(),
            is_trusted,
            flags: RuleFlags::default(),
        }
    }

    fn load(&self, is_trusted: bool) -> LoadedPolicy {
        self.sources(is_trusted).load()
    }

    fn command(&self, loaded: &LoadedPolicy, script: &str) -> Verdict {
        let (cwd, home) = (self.cwd(), self.directory.path());
        let action = Action::Command(script);
        loaded.policy.judge(&ToolUse { tool: "bash", action, workspace: &cwd, home, is_confined: false }).verdict
    }
}

#[test]
fn without_settings_everything_runs() {
    let place = Place::new("{}", "{}");
    let loaded = place.load(true);
    assert!(loaded.policy.is_open() && loaded.diagnostics.is_empty());
}

#[test]
fn a_project_allows_only_if_it_is_trusted() {
    let project = r#"{"permissions": {"defaultMode": "allow", "allow": ["bash(ls:*)"], "deny": ["bash(rm:*)"], "unattended": "allow"}}"#;
    let place = Place::new(r#"{"permissions": {"defaultMode": "ask"}}"#, project);
    let (untrusted, trusted) = (place.load(false), place.load(true));
    assert_eq!((untrusted.policy.mode, trusted.policy.mode), (Mode::Ask, Mode::Allow));
    assert_eq!(untrusted.policy.unattended, Unattended::Deny);
    assert_eq!(place.command(&untrusted, "ls"), Verdict::Ask);
    assert_eq!(place.command(&untrusted, "rm x"), Verdict::Deny);
    assert_eq!(place.command(&trusted, "ls"), Verdict::Allow);
    assert!(untrusted.diagnostics[0].message.contains("the project is not trusted"), "{:?}", untrusted.diagnostics);
}

#[test]
fn a_rule_that_is_not_understood_makes_its_tool_ask() {
    let check = |permissions: &str, script: &str, verdict: Verdict| {
        let place = Place::new(&format!(r#"{{"permissions": {permissions}}}"#), "{}");
        let loaded = place.load(true);
        assert_eq!(loaded.diagnostics.len(), 1, "{permissions}: {:?}", loaded.diagnostics);
        assert_eq!(place.command(&loaded, script), verdict, "{permissions}");
    };
    check(r#"{"deny": ["bash(rm"]}"#, "ls", Verdict::Ask);
    check(r#"{"deny": ["bash()"]}"#, "ls", Verdict::Ask);
    check(r#"{"ask": [""]}"#, "ls", Verdict::Ask);
    check(r#"{"deny": ["todo(x)"]}"#, "ls", Verdict::Allow);
    check(r#"{"allow": ["bash(rm"]}"#, "ls", Verdict::Allow);
    check(r#"{"deny": "bash"}"#, "ls", Verdict::Ask);
    check(r#"{"defaultMode": "sometimes"}"#, "ls", Verdict::Ask);
    check(r#"[1]"#, "ls", Verdict::Ask);
    check(r#"{"deny": ["network(domain:*.com)"]}"#, "ls", Verdict::Allow);
}

#[test]
fn rules_against_domains_are_told_where_nobody_sees_domains() {
    let user = r#"{"permissions": {"deny": ["network(domain:a.example)"], "ask": ["WebFetch"], "allow": ["network"]}}"#;
    let loaded = Place::new(user, "{}").load(true);
    assert_eq!(loaded.diagnostics.len(), 0, "{:?}", loaded.diagnostics);
    let told: Vec<String> = loaded.unenforced().into_iter().map(|found| found.message).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("The rule \"network(domain:a.example)\" of "), "{told:?}");
    assert!(told.iter().all(|text| text.ends_with("only where sandbox.network.mode is \"domains\"")), "{told:?}");
}

#[test]
fn a_mode_has_several_names_that_must_agree() {
    let check = |user: &str, expected: Mode, told: Option<&str>| {
        let place = Place::new(user, "{}");
        let loaded = place.load(true);
        assert_eq!(loaded.policy.mode, expected, "{user}");
        let messages: Vec<&str> = loaded.diagnostics.iter().map(|found| found.message.as_str()).collect();
        assert_eq!(messages.len(), usize::from(told.is_some()), "{user}: {messages:?}");
        assert!(messages.iter().all(|message| message.starts_with(told.unwrap_or_default())), "{messages:?}");
    };
    check(r#"{"approvalMode": "full"}"#, Mode::Allow, None);
    check(r#"{"approvalMode": "read-only"}"#, Mode::ReadOnly, None);
    check(r#"{"approvalMode": "ask", "permissions": {"defaultMode": "ask"}}"#, Mode::Ask, None);
    let both = "permissions.defaultMode and approvalMode contradict each other; the mode is write. File: ";
    check(r#"{"approvalMode": "full", "permissions": {"defaultMode": "write"}}"#, Mode::Write, Some(both));
    check(r#"{"approvalMode": "write", "permissions": {"defaultMode": "allow"}}"#, Mode::Write, Some(both));
    let theirs = "approvalMode and tools.approvalMode contradict each other; the mode is ask. File: ";
    check(r#"{"approvalMode": "ask", "tools": {"approvalMode": "yolo"}}"#, Mode::Ask, Some(theirs));
    let expected = "Invalid approvalMode setting: \"allow\". Expected full, write, ask or read-only. File: ";
    check(r#"{"approvalMode": "allow"}"#, Mode::Ask, Some(expected));
    // A project that is not trusted may only be stricter.
    let place = Place::new(r#"{"approvalMode": "ask"}"#, r#"{"approvalMode": "full"}"#);
    assert_eq!((place.load(false).policy.mode, place.load(true).policy.mode), (Mode::Ask, Mode::Allow));
    let place = Place::new("{}", r#"{"approvalMode": "read-only"}"#);
    assert_eq!(place.load(false).policy.mode, Mode::ReadOnly);
}

#[test]
fn keys_of_omp_are_read() {
    let user = r#"{"tools": {"approvalMode": "write", "approval": {"bash": "prompt", "read": "deny"}},
        "bash": {"patterns": [{"pattern": "git *", "approval": "allow"}, {"pattern": "rm *", "approval": "deny"}]}}"#;
    let place = Place::new(user, "{}");
    let loaded = place.load(true);
    assert_eq!((loaded.policy.mode, loaded.diagnostics.len()), (Mode::Write, 0));
    assert_eq!(place.command(&loaded, "ls"), Verdict::Ask);
    assert_eq!((loaded.policy.deny.len(), loaded.policy.ask.len(), loaded.policy.allow.len()), (2, 1, 1));
}

#[test]
fn flags_and_grants_count() {
    let place = Place::new(r#"{"permissions": {"defaultMode": "ask", "ask": ["bash(git push:*)"]}}"#, "{}");
    let flags = RuleFlags {
        mode: Some(Mode::Allow),
        allowed: vec!["bash(ls:*)".into()],
        disallowed: vec!["bash(rm:*)".into()],
        ..RuleFlags::default()
    };
    let loaded = Sources { flags, ..place.sources(true) }.load();
    assert_eq!(place.command(&loaded, "make"), Verdict::Allow);
    assert_eq!(place.command(&loaded, "rm x"), Verdict::Deny);
    assert_eq!(place.command(&loaded, "git push"), Verdict::Ask);
    let grants = GrantFile::in_agent_dir(&place.directory.path().join("agent"));
    grants.add(&place.cwd(), &["bash(git push:*)".to_owned()]).expect("add");
    assert_eq!(place.command(&place.load(true), "git push"), Verdict::Allow);
}
