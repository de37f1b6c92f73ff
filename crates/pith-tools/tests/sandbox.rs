//! Tools of a session that is confined.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use common::{Bench, enforced, eventually, run};
use pith_sandbox::{Profile, Support};
use pith_testkit::has;
use pith_tools::process::CommandLine;
use pith_tools::sandbox::{CurrentSandbox, Sandbox, Variables};
use serde_json::{Value, json};

/// A bench whose directory `work` is confined by these settings; `outside` is beside it.
fn confined(settings: &Value) -> Bench {
    Bench::with(|options| {
        let root = options.temp.canonicalize().expect("it exists");
        for name in ["outside", "home", "agent", "tmp"] {
            fs::create_dir(root.join(name)).expect("new");
        }
        fs::write(root.join("outside/file"), "before").expect("written");
        options.sandbox = Some(Arc::new(Sandbox::Enforced(enforced(&root, settings))));
    })
}

fn workspace() -> Value {
    json!({"profile": "workspace-write"})
}

#[test]
fn a_command_works_inside_and_is_told_what_stopped_it_outside() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    run(async {
        let bench = confined(&workspace());
        assert_eq!(bench.ok("bash", json!({"command": "echo x > a && cat a"})).await, "x\n");
        let text = bench.fails("bash", json!({"command": "echo x > ../outside/file"})).await;
        assert!(text.contains("Permission denied"), "{text}");
        assert!(text.contains("Command exited with code 1\n[Sandbox workspace-write: writing is limited to"), "{text}");
        assert!(text.ends_with("network is off.]"), "{text}");
        assert_eq!(fs::read(bench.dir.path().join("outside/file")).unwrap(), b"before");
    });
}

#[test]
fn a_command_gets_its_own_temporary_directory_and_no_keys() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    run(async {
        let bench = confined(&workspace());
        bench.workbench.update_call_options(|options| {
            let variables = [("PATH", "/usr/bin:/bin"), ("SOME_API_KEY", "secret"), ("TMPDIR", "/tmp")];
            let own = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
            options.env.inherited = Some(own.to_vec());
        });
        let command = "echo $TMPDIR $XDG_RUNTIME_DIR; echo key=$SOME_API_KEY; mktemp > name";
        let text = bench.ok("bash", json!({ "command": command })).await;
        let temp = bench.dir.path().canonicalize().unwrap().join("tmp");
        assert_eq!(text, format!("{0} {0}\nkey=\n", temp.display()));
    });
}

#[test]
fn file_tools_obey_the_kernel() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    run(async {
        let bench = confined(&workspace());
        bench.ok("write", json!({"path": "new", "content": "x"})).await;
        bench.ok("read", json!({"path": "../outside/file"})).await;
        let outside = bench.dir.path().canonicalize().unwrap().join("outside");
        let refused = |text: String| {
            assert!(text.starts_with("EACCES: not allowed by the sandbox (workspace-write), "), "{text}");
        };
        refused(bench.fails("write", json!({"path": "../outside/new", "content": "x"})).await);
        let edit = json!({"path": "../outside/file", "edits": [{"oldText": "before", "newText": "after"}]});
        refused(bench.fails("edit", edit).await);
        std::os::unix::fs::symlink(&outside, bench.path("door")).unwrap();
        refused(bench.fails("write", json!({"path": "door/new", "content": "x"})).await);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "nothing new is there");
    });
}

#[test]
fn file_tools_leave_protected_paths_alone() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    run(async {
        let bench = confined(&json!({"profile": "workspace-write", "filesystem": {"denyWrite": ["Makefile"]}}));
        for path in [".git/hooks/pre-commit", ".pi/settings.json", ".PI/settings.json", "Makefile", ".envrc"] {
            let text = bench.fails("write", json!({"path": path, "content": "x"})).await;
            assert!(text.starts_with("EACCES: protected path, open '"), "{path}: {text}");
            assert!(!bench.path(path).exists(), "{path}");
        }
        fs::create_dir_all(bench.path(".git/hooks")).unwrap();
        std::os::unix::fs::symlink(bench.path(".git/hooks"), bench.path("h")).unwrap();
        bench.fails("write", json!({"path": "h/pre-commit", "content": "x"})).await;
    });
}

#[test]
fn what_is_denied_is_not_read() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    run(async {
        // A pattern stands for what exists when the policy is made.
        let bench = Bench::with(|options| {
            let root = options.temp.canonicalize().unwrap();
            for name in ["home", "agent", "tmp"] {
                fs::create_dir(root.join(name)).unwrap();
            }
            for (name, text) in [("secret", "s"), ("key.pem", "k"), ("open", "o")] {
                fs::write(root.join("work").join(name), text).unwrap();
            }
            let settings = json!({"profile": "read-only", "filesystem": {"denyRead": ["secret", "later", "*.pem"]}});
            options.sandbox = Some(Arc::new(Sandbox::Enforced(enforced(&root, &settings))));
        });
        bench.ok("read", json!({"path": "open"})).await;
        for path in ["secret", "key.pem"] {
            bench.fails("read", json!({"path": path})).await;
            bench.fails("bash", json!({"command": format!("cat {path}")})).await;
        }
        let found = bench.ok("grep", json!({"pattern": "."})).await;
        assert!(found.contains("open") && !found.contains("key.pem"), "{found}");
        bench.fails("write", json!({"path": "new", "content": "x"})).await;
        bench.file("later", "l");
        bench.fails("bash", json!({"command": "cat later"})).await;
        bench.fails("read", json!({"path": "later"})).await;
    });
}

#[test]
fn what_is_denied_in_the_project_is_closed_once_it_is_there() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    run(async {
        let bench = confined(&json!({"profile": "workspace-write", "filesystem": {"denyRead": ["later"]}}));
        bench.ok("bash", json!({"command": "echo x > new && cat new"})).await;
        bench.file("later", "l");
        bench.fails("bash", json!({"command": "cat later"})).await;
        bench.fails("read", json!({"path": "later"})).await;
    });
}

#[test]
fn a_sandbox_that_cannot_be_had_runs_nothing() {
    run(async {
        let why = "sandbox \"read-only\" cannot be enforced: this kernel offers no Landlock";
        let bench = Bench::with(|options| {
            options.sandbox =
                Some(Arc::new(Sandbox::Unavailable { profile: Some(Profile::ReadOnly), why: why.to_owned() }))
        });
        bench.file("a", "x");
        for (tool, arguments) in [
            ("bash", json!({"command": "echo x > new"})),
            ("read", json!({"path": "a"})),
            ("write", json!({"path": "new", "content": "x"})),
            ("ls", json!({})),
        ] {
            assert_eq!(bench.fails(tool, arguments).await, why, "{tool}");
        }
        assert!(!bench.path("new").exists());
    });
}

#[test]
fn an_aborted_command_leaves_nothing_though_it_is_confined() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    run(async {
        let bench = confined(&workspace());
        let call = bench.start("bash", json!({"command": "(setsid sleep 100 &) ; echo $$ > pid; sleep 100"}));
        let task = tokio::spawn(call);
        let pid = bench.path("pid");
        while fs::read_to_string(&pid).map_or(true, |text| text.trim().is_empty()) {
            tokio::task::yield_now().await;
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        bench.cancel.cancel();
        let output = task.await.unwrap();
        assert!(common::text(&output).contains("Command aborted"));
        bench.workbench.jobs.shutdown_all(std::time::Duration::ZERO).await;
        assert_eq!(bench.workbench.jobs.count(), 0);
    });
}

#[test]
fn a_command_that_was_too_quick_to_be_stopped_is_stopped_as_soon_as_it_can_be() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    run(async {
        let bench = confined(&workspace());
        let current = CurrentSandbox::default();
        current.set(bench.workbench.sandbox.clone());
        let command = CommandLine {
            program: "/bin/sleep".into(),
            arguments: vec!["1000".into()],
            cwd: bench.path("."),
            environment: Vec::new(),
            confinement: None,
        };
        let jobs = &bench.workbench.jobs;
        let command = current.confine(command, jobs, Variables::Filtered).unwrap();
        // As if the command had done it before pith had noted that it runs.
        fs::write(bench.path(".envrc"), "x").unwrap();
        eventually(Duration::from_secs(60), "it is put back", || !bench.path(".envrc").exists());
        let watch = command.confinement.as_ref().and_then(|confinement| confinement.watch.clone()).unwrap();
        eventually(Duration::from_secs(60), "it is known", || watch.knows_change());
        let job = jobs.spawn_to(command, Stdio::null(), Stdio::null()).unwrap();
        assert_ne!(job.exited().await.unwrap().code(), 0);
    });
}

#[test]
fn a_command_that_changes_a_protected_path_is_stopped_and_the_path_put_back() {
    if !has(Support::check_this_kernel()) {
        return;
    }
    run(async {
        let bench = Bench::with(|options| {
            let root = options.temp.canonicalize().unwrap();
            for name in ["home", "agent", "tmp", "work/.git/hooks"] {
                fs::create_dir_all(root.join(name)).unwrap();
            }
            fs::write(root.join("work/.git/hooks/sample"), "as it was").unwrap();
            options.sandbox = Some(Arc::new(Sandbox::Enforced(enforced(&root, &workspace()))));
        });
        for (command, told) in [
            ("echo x > .git/hooks/pre-commit; sleep 100", ".git/hooks/pre-commit"),
            ("echo x > .git/hooks/sample", ".git/hooks/sample"),
            ("rm -r .git/hooks; sleep 100", ".git/hooks"),
            ("mv .git other; mkdir -p .git/hooks; echo x > .git/hooks/x; sleep 100", ".git/hooks"),
            ("mkdir .pi; echo {} > .pi/settings.json; sleep 100", ".pi"),
            ("git config core.hooksPath h 2>/dev/null || echo x > .git/config; sleep 100", ".git/config"),
        ] {
            let text = bench.fails("bash", json!({"command": command})).await;
            assert!(text.starts_with(&format!("Changed a protected path: {told}")), "{command}: {text}");
            assert!(text.ends_with("It was put back and the command was stopped."), "{text}");
            assert_eq!(bench.contents(".git/hooks/sample"), b"as it was", "{command}");
            assert_eq!(fs::read_dir(bench.path(".git/hooks")).unwrap().count(), 1, "{command}");
            assert!(!bench.path(".pi").exists());
        }
        // What the user changes while nothing runs is nobody's business.
        bench.workbench.jobs.shutdown_all(Duration::ZERO).await;
        fs::write(bench.path(".git/hooks/mine"), "x").unwrap();
        bench.ok("bash", json!({"command": "echo fine > a"})).await;
        assert!(bench.path(".git/hooks/mine").exists());
    });
}
