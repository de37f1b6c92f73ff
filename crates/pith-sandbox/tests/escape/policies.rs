//! Settings that would open the sandbox.

use serde_json::json;

use pith_sandbox::SandboxSettings;

use crate::ground::{Ground, Who, is_ready, write};

#[test]
fn a_project_cannot_open_what_the_user_closed() {
    for project in [
        json!({"profile": "off"}),
        json!({"profile": "custom"}),
        json!({"enabled": false}),
        json!({"filesystem": {"allowWrite": ["/"]}}),
        json!({"network": {"mode": "on"}}),
        json!({"network": {"allowAllUnixSockets": true}}),
        json!({"env": {"pass": ["SOME_TOKEN"]}}),
        json!({"require": "best-effort"}),
    ] {
        let mut settings = SandboxSettings::read(&write()).unwrap();
        let before = settings.clone();
        let ignored = settings.tighten(SandboxSettings::read(&project).unwrap());
        assert_eq!(ignored.len(), 1, "{project}");
        assert_eq!(settings, before, "{project}");
        println!("{:<56} {:<16} {:<5} closed", format!("a project that says {project}"), "workspace-write", "any");
    }
}

#[test]
fn a_directory_that_is_a_link_stands_for_what_it_leads_to() {
    if !is_ready() {
        return;
    }
    let ground = Ground::new(Who::User);
    std::os::unix::fs::symlink(ground.root.join("outside"), ground.root.join("home/work/door")).unwrap();
    let listed = json!({"profile": "workspace-write", "filesystem": {"denyWrite": ["door/file"]}});
    let policy = ground.policy(&listed);
    assert!(policy.is_protected(&ground.root.join("outside/file")), "the file itself is protected");
    assert!(!policy.writable.contains(&ground.root.join("outside")));
}
