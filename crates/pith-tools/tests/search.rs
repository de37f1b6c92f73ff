//! `grep`, `find` and `ls` on a small tree.

mod common;

use std::os::unix::fs::symlink;

use common::{Bench, run};
use serde_json::{Value, json};

fn tree() -> Bench {
    let bench = Bench::new();
    for (name, contents) in [
        ("a.txt", "alpha\nbeta\na.b\n"),
        ("b.md", "Alpha\nbeta\n"),
        ("sub/c.txt", "beta\n"),
        ("sub/deep/d.ts", "const beta = 1\nfoo(bar)\n"),
        ("sub.txt", "none\n"),
        (".hidden/h.txt", "beta\n"),
        ("ignored/x.txt", "beta\n"),
        ("UP.TXT", "end\r\n"),
        (".gitignore", "ignored/\n"),
        (".git/config", "beta\n"),
    ] {
        bench.file(name, contents);
    }
    bench
}

async fn check(bench: &Bench, tool: &str, arguments: Value, expected: &str) {
    assert_eq!(bench.ok(tool, arguments.clone()).await, expected, "{tool} {arguments}");
}

#[test]
fn grep_finds_lines_in_order() {
    run(async {
        let bench = tree();
        let all =
            ".hidden/h.txt:1: beta\na.txt:2: beta\nb.md:2: beta\nsub/c.txt:1: beta\nsub/deep/d.ts:1: const beta = 1";
        check(&bench, "grep", json!({"pattern": "beta"}), all).await;
        check(&bench, "grep", json!({"pattern": "al.ha"}), "a.txt:1: alpha").await;
        check(&bench, "grep", json!({"pattern": "ALPHA", "ignoreCase": true, "glob": "*.md"}), "b.md:1: Alpha").await;
        check(&bench, "grep", json!({"pattern": "a.b", "literal": true}), "a.txt:3: a.b").await;
        check(&bench, "grep", json!({"pattern": "^beta$", "path": "sub"}), "c.txt:1: beta").await;
        check(&bench, "grep", json!({"pattern": "beta", "path": "ignored/x.txt"}), "x.txt:1: beta").await;
        check(&bench, "grep", json!({"pattern": "beta", "path": ".git"}), "config:1: beta").await;
        check(
            &bench,
            "grep",
            json!({"pattern": "beta", "glob": "sub/**", "path": "sub"}),
            "c.txt:1: beta\ndeep/d.ts:1: const beta = 1",
        )
        .await;
        check(&bench, "grep", json!({"pattern": "beta", "glob": "./sub/deep/*"}), "sub/deep/d.ts:1: const beta = 1")
            .await;
        let outside = json!({"pattern": "beta", "glob": "!./sub/**", "path": "./sub"});
        check(&bench, "grep", outside, "No matches found").await;
        check(&bench, "grep", json!({"pattern": "beta", "glob": "ignored/**"}), "No matches found").await;
        check(&bench, "grep", json!({"pattern": "nothing-like-it"}), "No matches found").await;
    });
}

#[test]
fn grep_has_limits_and_context() {
    run(async {
        let bench = tree();
        let arguments = json!({"pattern": "beta", "context": 1, "limit": 1, "glob": "{a,sub/c}.txt"});
        let output = bench.call("grep", arguments).await;
        let expected = "a.txt-1- alpha\na.txt:2: beta\na.txt-3- a.b\n\n\
            [1 matches limit reached. Use limit=2 for more, or refine pattern]";
        assert_eq!((common::text(&output).as_str(), output.details), (expected, Some(json!({"matchLimitReached": 1}))));
        for limit in [json!(0), json!(-3), json!(0.5)] {
            assert_eq!(
                bench.call("grep", json!({"pattern": "beta", "limit": limit})).await.details,
                Some(json!({"matchLimitReached": 1})),
                "{limit}"
            );
        }
        check(&bench, "grep", json!({"pattern": "alpha", "limit": 1}), "a.txt:1: alpha").await;
        bench.file("long.txt", format!("needle{}\n", "x".repeat(600)));
        let output = bench.call("grep", json!({"pattern": "needle"})).await;
        let notice = "... [truncated]\n\n[Some lines truncated to 500 chars. Use read tool to see full lines]";
        assert!(common::text(&output).ends_with(notice));
        assert_eq!(output.details, Some(json!({"linesTruncated": true})));
    });
}

#[test]
fn grep_refuses_bad_patterns_and_paths() {
    run(async {
        let bench = tree();
        let missing = format!("Path not found: {}", bench.path("none").display());
        assert_eq!(bench.fails("grep", json!({"pattern": "x", "path": "none"})).await, missing);
        let bad = bench.fails("grep", json!({"pattern": "foo(bar"})).await;
        assert!(bad.starts_with("rg: regex parse error:\n") && bad.ends_with("error: unclosed group"), "{bad}");
        let bad = bench.fails("grep", json!({"pattern": "x", "glob": "{a"})).await;
        assert!(bad.starts_with("rg: error parsing glob '{a': unclosed alternate group"), "{bad}");
    });
}

#[test]
fn no_program_is_needed() {
    let bench = tree();
    for (call, expected) in
        [(r#"["grep",{"pattern":"alpha"}]"#, "a.txt:1: alpha\n"), (r#"["find",{"pattern":"*.ts"}]"#, "sub/deep/d.ts\n")]
    {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_test-agent"))
            .args(["call", bench.workbench.base.cwd.to_str().unwrap(), call])
            .env("PATH", "")
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }
}

#[test]
fn the_same_call_gets_the_same_answer() {
    run(async {
        let bench = Bench::new();
        for n in 0..200 {
            bench.file(&format!("{}/{n}.txt", n % 7), "needle\n");
        }
        let arguments = json!({"pattern": "needle", "limit": 50});
        let first = bench.ok("grep", arguments.clone()).await;
        for _ in 0..5 {
            assert_eq!(bench.ok("grep", arguments.clone()).await, first);
        }
    });
}

#[test]
fn find_matches_names_and_paths() {
    run(async {
        let bench = tree();
        check(&bench, "find", json!({"pattern": "*.txt"}), ".hidden/h.txt\nUP.TXT\na.txt\nsub/c.txt\nsub.txt").await;
        check(&bench, "find", json!({"pattern": "*.TXT"}), "UP.TXT").await;
        check(&bench, "find", json!({"pattern": "deep/*.ts"}), "sub/deep/d.ts").await;
        check(&bench, "find", json!({"pattern": "**/*.ts"}), "sub/deep/d.ts").await;
        check(&bench, "find", json!({"pattern": "sub/**"}), "sub/c.txt\nsub/deep/\nsub/deep/d.ts").await;
        check(&bench, "find", json!({"pattern": "{a,sub}.txt"}), "a.txt\nsub.txt").await;
        check(&bench, "find", json!({"pattern": "*", "path": "sub"}), "c.txt\ndeep/\ndeep/d.ts").await;
        check(&bench, "find", json!({"pattern": "", "path": "sub"}), "c.txt\ndeep/\ndeep/d.ts").await;
        check(&bench, "find", json!({"pattern": "*.zip"}), "No files found matching pattern").await;
        check(&bench, "find", json!({"pattern": "./sub/*.txt"}), "sub/c.txt").await;
        check(&bench, "find", json!({"pattern": "././*.ts", "path": "./sub"}), "deep/d.ts").await;
        check(&bench, "find", json!({"pattern": "*.ts", "limit": 1}), "sub/deep/d.ts").await;
        assert_eq!(
            bench.call("find", json!({"pattern": "*.txt", "limit": 0})).await.details,
            Some(json!({"resultLimitReached": 1}))
        );
        symlink("sub", bench.path("zlink")).unwrap();
        check(&bench, "find", json!({"pattern": "zl*"}), "zlink").await;
        let output = bench.call("find", json!({"pattern": "*.txt", "limit": 2})).await;
        let expected = ".hidden/h.txt\nUP.TXT\n\n[2 results limit reached. Use limit=4 for more, or refine pattern]";
        assert_eq!(
            (common::text(&output).as_str(), output.details),
            (expected, Some(json!({"resultLimitReached": 2})))
        );
    });
}

#[test]
fn find_refuses_bad_patterns_and_paths() {
    run(async {
        let bench = tree();
        let expected = format!(
            "[fd error]: Search path '{}' is not a directory.\n[fd error]: No valid search paths given.",
            bench.path("none").display()
        );
        assert_eq!(bench.fails("find", json!({"pattern": "*", "path": "none"})).await, expected);
        let bad = bench.fails("find", json!({"pattern": "[x"})).await;
        assert_eq!(bad, "[fd error]: error parsing glob '[x': unclosed character class; missing ']'");
    });
}

#[test]
fn ls_shows_everything() {
    run(async {
        let bench = tree();
        symlink("gone", bench.path("broken")).unwrap();
        symlink("sub", bench.path("zlink")).unwrap();
        let all = ".git/\n.gitignore\n.hidden/\na.txt\nb.md\nbroken -> gone (broken)\nignored/\nsub/\nsub.txt\n\
            UP.TXT\nzlink/";
        check(&bench, "ls", json!({}), all).await;
        check(&bench, "ls", json!({"path": "sub", "limit": 2}), "c.txt\ndeep/").await;
        let output = bench.call("ls", json!({"limit": 2})).await;
        let expected = ".git/\n.gitignore\n\n[2 entries limit reached. Use limit=4 for more]";
        assert_eq!((common::text(&output).as_str(), output.details), (expected, Some(json!({"entryLimitReached": 2}))));
        std::fs::create_dir(bench.path("empty")).unwrap();
        check(&bench, "ls", json!({"path": "empty"}), "(empty directory)").await;
        let path = |name: &str| bench.path(name).display().to_string();
        assert_eq!(bench.fails("ls", json!({"path": "none"})).await, format!("Path not found: {}", path("none")));
        assert_eq!(bench.fails("ls", json!({"path": "a.txt"})).await, format!("Not a directory: {}", path("a.txt")));
        assert_eq!(bench.call("ls", json!({"limit": 0})).await.details, Some(json!({"entryLimitReached": 1})));
        check(
            &bench,
            "ls",
            json!({"path": "sub", "limit": -2.5}),
            "c.txt\n\n[1 entries limit reached. Use limit=2 for more]",
        )
        .await;
    });
}

#[test]
fn tools_have_a_fixed_order_and_complete_schemas() {
    let bench = Bench::new();
    let tools = pith_tools::builtin_tools(&bench.workbench);
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.spec().name).collect();
    assert_eq!(names, ["read", "bash", "edit", "write", "grep", "find", "ls"]);
    for tool in &tools {
        let spec = tool.spec();
        assert_eq!(spec.parameters["type"], "object");
        assert!(spec.parameters.get("additionalProperties").is_none());
        let properties = spec.parameters["properties"].as_object().unwrap();
        assert!(properties.values().all(|property| property["description"].is_string()));
        assert!(spec.prefer_strict, "{}", spec.name);
        assert!(tool.snippet().is_some() && !tool.is_sequential() && !spec.description.is_empty());
    }
}
