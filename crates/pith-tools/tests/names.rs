//! Files that other programs run or obey cannot be left behind, in whichever directory: every row of the table, by
//! commands and by file tools, with namespaces and without.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use common::{Bench, enforced_with, run, supervisor, text};
use pith_sandbox::Support;
use pith_sandbox::names::TABLE;
use pith_testkit::has;
use pith_tools::Denied;
use pith_tools::process::probe_namespaces;
use pith_tools::sandbox::Sandbox;
use serde_json::{Value, json};

fn is_ready() -> bool {
    has(Support::check_this_kernel())
}

/// With and without namespaces, as far as there are any.
fn tiers() -> Vec<bool> {
    if has(probe_namespaces(&supervisor())) { vec![true, false] } else { vec![false] }
}

/// A project in which something of the table exists already, opened as settings say.
fn ground(namespaces: bool, allow_write: &Value) -> Bench {
    Bench::with(|options| {
        let root = options.temp.canonicalize().unwrap();
        for name in ["home", "agent", "tmp", "work/sub/.vscode", "work/.husky"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for file in ["sub/.vscode/tasks.json", ".husky/pre-commit", "sub/.envrc", "plain"] {
            fs::write(root.join("work").join(file), "before").unwrap();
        }
        symlink("../plain", root.join("work/sub/.npmrc")).unwrap();
        let settings = json!({"profile": "workspace-write", "filesystem": {"allowWrite": allow_write}});
        options.sandbox = Some(Arc::new(Sandbox::Enforced(enforced_with(&root, &settings, namespaces))));
    })
}

async fn bash(bench: &Bench, script: &str) -> Vec<Denied> {
    let output = bench.call("bash", json!({ "command": script })).await;
    let denied = Denied::of(&output);
    assert_eq!(
        denied.iter().any(|it| it.target.is_some() && it.reason.is_some()),
        text(&output).contains("[Put back: ")
    );
    denied
}

#[test]
fn no_row_of_the_table_can_be_left_behind() {
    if !is_ready() {
        return;
    }
    for namespaces in tiers() {
        run(async {
            let bench = ground(namespaces, &json!([]));
            let rows = TABLE.iter().map(|row| row.name.replace('*', "x"));
            let paths: Vec<String> =
                rows.flat_map(|name| [format!("new/{name}"), format!("sub/deep/{name}")]).collect();
            let make = |path: &String| format!("mkdir -p $(dirname {path}); echo x > {path}\n");
            bash(&bench, &paths.iter().map(make).collect::<String>()).await;
            for path in &paths {
                assert!(!bench.path(path).exists(), "namespaces {namespaces}: {path} by a command");
                let refusal = bench.fails("write", json!({"path": path, "content": "x"})).await;
                assert!(refusal.starts_with("EACCES: protected path, open '"), "{refusal}");
                assert!(!bench.path(path).exists(), "namespaces {namespaces}: {path} by write");
            }
        });
    }
}

#[test]
fn what_is_there_is_put_back_and_the_call_says_so() {
    if !is_ready() {
        return;
    }
    for namespaces in tiers() {
        run(async {
            let bench = ground(namespaces, &json!([]));
            let before = |file: &str| {
                assert_eq!(bench.contents(file), b"before", "namespaces {namespaces}: {file}");
            };
            for script in [
                "echo x > sub/.vscode/tasks.json",
                "rm -r sub/.vscode",
                "mv sub/.vscode sub/v",
                "chmod 700 sub/.vscode/tasks.json",
                "mv sub/.vscode v; mkdir sub/.vscode; echo x > sub/.vscode/tasks.json",
            ] {
                let denied = bash(&bench, script).await;
                before("sub/.vscode/tasks.json");
                let shown: Vec<_> = denied.iter().filter_map(|it| it.reason.as_deref()).collect();
                assert!(shown.iter().any(|reason| reason.starts_with("VS Code: ")), "{script}: {denied:?}");
            }
            bash(&bench, "ln sub/.envrc c").await;
            bench.call("write", json!({"path": "c", "content": "x"})).await;
            before("sub/.envrc");
            bash(&bench, "rm -f c; mv sub other; mkdir sub; cp -r other/.envrc sub/.envrc; echo x >> sub/.envrc").await;
            before("sub/.envrc");
            bash(&bench, "echo x > .husky/pre-commit").await;
            before(".husky/pre-commit");
        });
    }
}

#[test]
fn what_the_user_changes_between_calls_stays() {
    if !is_ready() {
        return;
    }
    for namespaces in tiers() {
        run(async {
            let bench = ground(namespaces, &json!([]));
            bash(&bench, "true").await;
            bench.file("sub/.vscode/tasks.json", "mine");
            bench.file("new/.idea/x", "mine");
            assert_eq!(bash(&bench, "true").await, []);
            bash(&bench, "echo x > sub/.vscode/tasks.json; rm -r new/.idea").await;
            assert_eq!(bench.contents("sub/.vscode/tasks.json"), b"mine");
            assert_eq!(bench.contents("new/.idea/x"), b"mine");
        });
    }
}

#[test]
fn a_row_can_be_opened_and_work_needs_no_opening() {
    if !is_ready() {
        return;
    }
    for namespaces in tiers() {
        run(async {
            let bench = ground(namespaces, &json!([".vscode", "sub/.envrc"]));
            let script =
                "mkdir -p new/.vscode .github/workflows; echo y | tee new/.vscode/a sub/.vscode/tasks.json sub/.envrc";
            assert_eq!(bash(&bench, script).await, []);
            assert_eq!(bench.contents("new/.vscode/a"), b"y\n");
            assert_eq!(bench.contents("sub/.envrc"), b"y\n");
            bench.ok("write", json!({"path": "sub/.vscode/tasks.json", "content": "z"})).await;
            bench.fails("write", json!({"path": "new/.envrc", "content": "z"})).await;
            let work = [
                "Makefile",
                "package.json",
                "build.rs",
                ".github/workflows/ci.yml",
                "src/main.c",
                "node_modules/x/.vscode/a",
            ];
            for path in work {
                assert_eq!(bash(&bench, &format!("mkdir -p $(dirname {path}); echo x > {path}")).await, [], "{path}");
                bench.ok("write", json!({"path": path, "content": "z"})).await;
            }
        });
    }
}

#[test]
fn what_a_protected_link_leads_to_is_protected() {
    if !is_ready() {
        return;
    }
    for namespaces in tiers() {
        run(async {
            let bench = Bench::with(|options| {
                let root = options.temp.canonicalize().unwrap();
                for name in ["home", "agent", "tmp", "work/real"] {
                    fs::create_dir_all(root.join(name)).unwrap();
                }
                symlink("real", root.join("work/.claude")).unwrap();
                let settings = json!({"profile": "workspace-write"});
                options.sandbox = Some(Arc::new(Sandbox::Enforced(enforced_with(&root, &settings, namespaces))));
            });
            bash(&bench, "echo x > real/settings.json").await;
            assert!(!bench.path("real/settings.json").exists(), "namespaces {namespaces}");
            bench.fails("write", json!({"path": "real/settings.json", "content": "x"})).await;
            assert!(!bench.path("real/settings.json").exists(), "namespaces {namespaces}");
        });
    }
}
