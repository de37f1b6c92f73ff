//! File tools run in pith's process, so what `/proc` says of it is closed to them, with and without a sandbox.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::os::unix::fs::symlink;

use common::{Bench, run};
use serde_json::json;

#[test]
fn no_file_tool_looks_into_pith() {
    run(async {
        let bench = Bench::new();
        let work = bench.path(".");
        let pid = std::process::id();
        let thread = fs::read_dir("/proc/self/task").unwrap().flatten().last().unwrap().file_name();
        let thread = thread.to_str().unwrap();
        symlink("/proc/self", work.join("direct")).unwrap();
        symlink("direct/environ", work.join("chain")).unwrap();
        symlink("/proc/self/cwd", work.join("here")).unwrap();
        symlink("/dev/fd", work.join("open")).unwrap();
        symlink(format!("/proc/{pid}/root"), work.join("root")).unwrap();
        bench.file("mine.txt", "key");
        let mut directories = vec![
            "/proc/self".to_owned(),
            "/proc/thread-self".to_owned(),
            format!("/proc/{pid}"),
            format!("/proc/{pid}/task/{pid}"),
            format!("/proc/{thread}"),
            format!("/proc/self/task/{thread}"),
            "/proc/self/root/proc/self".to_owned(),
            "direct".to_owned(),
        ];
        let files: Vec<String> = directories
            .iter()
            .flat_map(|directory| {
                ["environ", "mem", "maps", "cmdline", "status"].map(|name| format!("{directory}/{name}"))
            })
            .chain(
                ["chain", "here/mine.txt", "root/etc/passwd", "open/0", "/dev/fd/0", "/dev/stdin"].map(str::to_owned),
            )
            .collect();
        directories.extend(["/dev/fd", "open", "here", "root/etc"].map(str::to_owned));
        let refused = |text: &str| text.starts_with("EACCES: tools cannot look into pith's own process, ");
        for file in &files {
            for (tool, arguments) in [
                ("read", json!({"path": file})),
                ("grep", json!({"path": file, "pattern": "."})),
                ("write", json!({"path": file, "content": "x"})),
                ("edit", json!({"path": file, "edits": [{"oldText": "a", "newText": "b"}]})),
            ] {
                let error = bench.fails(tool, arguments).await;
                assert!(refused(&error), "{tool} {file}: {error}");
            }
        }
        for directory in &directories {
            for (tool, arguments) in [
                ("ls", json!({"path": directory})),
                ("find", json!({"path": directory, "pattern": "*"})),
                ("grep", json!({"path": directory, "pattern": "."})),
            ] {
                let error = bench.fails(tool, arguments).await;
                assert!(refused(&error), "{tool} {directory}: {error}");
            }
        }
        assert_eq!(fs::read_to_string(work.join("mine.txt")).unwrap(), "key");
    });
}

#[test]
fn what_the_system_says_can_be_read_and_searched() {
    run(async {
        let bench = Bench::new();
        symlink("/proc/cpuinfo", bench.path("processors")).unwrap();
        bench.file("12345/notes", "a number is a name like others");
        for file in ["/proc/version", "/proc/1/status", "/proc/sys/kernel/ostype", "processors", "12345/notes"] {
            bench.ok("read", json!({"path": file})).await;
        }
        let own = std::process::id().to_string();
        let listed = bench.ok("find", json!({"path": "/proc", "pattern": "status", "limit": 100_000})).await;
        assert!(listed.lines().any(|line| line == "1/status"), "{listed}");
        assert!(!listed.lines().any(|line| line.split('/').next() == Some(&own)), "its own process is left out");
    });
}
