//! Settings that would open the sandbox.

use std::collections::BTreeMap;

use pith_sandbox::{SandboxSettings, Support};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::json;

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
fn a_kernel_without_landlock_is_not_taken_for_a_sandbox() {
    if !is_ready() {
        return;
    }
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let unknown = BTreeMap::from([(libc::SYS_landlock_create_ruleset, Vec::new())]);
    let answer = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let filter: BpfProgram =
        SeccompFilter::new(unknown, SeccompAction::Allow, answer, arch).unwrap().try_into().unwrap();
    // What a thread cannot call, the threads it starts cannot call either.
    let check = std::thread::spawn(move || {
        seccompiler::apply_filter(&filter).unwrap();
        Support::check_this_kernel()
    });
    let refusal = check.join().unwrap().unwrap_err();
    let text = "sandbox \"workspace-write\" cannot be enforced: this kernel offers no Landlock. \
                Start with --sandbox off, or set sandbox.require to \"best-effort\"";
    assert_eq!(refusal, text);
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
