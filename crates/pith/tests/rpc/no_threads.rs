//! A system on which pith can start no further thread.

use std::io::{self, Write};
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use pith_testkit::{Api, Block, Host, HostBuilder, ModelServer, Script, TempHome, Turn};
use rustix::process::{Pid, Resource, Rlimit, getuid, prlimit};
use serde_json::json;

use crate::support::{Scene, builder, of_type, texts};

/// pith itself, and the threads that read stdin and write stdout.
const THREADS: u64 = 3;

/// A user without processes: the limit counts all processes of a user, and does not apply to root.
fn nobody() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    61_000 + (std::process::id() * 8 + COUNT.fetch_add(1, Ordering::Relaxed)) % 4_000
}

fn give_to(user: u32, path: &Path) -> io::Result<()> {
    chown(path, Some(user), Some(user))?;
    if path.is_dir() {
        for entry in path.read_dir()? {
            give_to(user, &entry?.path())?;
        }
    }
    Ok(())
}

/// Configures pith with no more threads than it starts with; `None` where that is not possible.
fn limited(home: &TempHome) -> Option<HostBuilder> {
    if !getuid().is_root() {
        return Some(builder());
    }
    let (user, limit) = (nobody(), format!("--nproc={THREADS}:{THREADS}"));
    let name = user.to_string();
    let as_user = ["--reuid", &name, "--regid", &name, "--clear-groups", "--"];
    let words: Vec<&str> = as_user.into_iter().chain(["prlimit", &limit, "--", env!("CARGO_BIN_EXE_pith")]).collect();
    let can_start = Command::new("setpriv").args(&words).arg("--version").output();
    let root = home.work().parent().map(Path::to_owned).expect("a home has a root");
    if can_start.is_ok_and(|output| output.status.success()) && give_to(user, &root).is_ok() {
        return Some(Host::builder("setpriv").args(words));
    }
    let _ = writeln!(io::stderr(), "SKIPPED: pith cannot be run as user {user}");
    None
}

/// Starts a pith that can start no further thread.
fn scene(turns: impl IntoIterator<Item = Turn>, arguments: &[&str]) -> Option<Scene> {
    let server = ModelServer::start(Script::of(turns));
    let home = TempHome::for_server(&server);
    let mut host = limited(&home)?.rpc(Api::Anthropic).home(&home).args(arguments).spawn();
    host.data(json!({"type": "get_state"}));
    if !getuid().is_root() {
        // The developer has an unknown number of other processes: the limit is exceeded from here on.
        let limit = Rlimit { current: Some(1), maximum: Some(1) };
        prlimit(Pid::from_raw(host.pid()), Resource::Nproc, limit).expect("one's own limits can be lowered");
    }
    Some(Scene { host, home, server })
}

#[test]
fn without_threads_files_are_read_and_written() {
    let calls = [
        Block::call("write", json!({"path": "note.txt", "content": "one\n"})),
        Block::call("read", json!({"path": "other.txt"})),
        Block::call("bash", json!({"command": "true"})),
    ];
    let turns = [Turn::blocks(calls), Turn::text("done"), Turn::text("again")];
    let Some(mut scene) = scene(turns, &["--no-session"]) else { return };
    scene.home.write_file("other.txt", "two\n");
    let frames = scene.run("go");
    let results: Vec<_> = of_type(&frames, "message_end")
        .into_iter()
        .filter(|frame| frame["message"]["role"] == "toolResult")
        .map(|frame| (texts(&frame["message"]["content"]), frame["message"]["isError"] == true))
        .collect();
    assert_eq!(scene.home.read_file("note.txt").as_deref(), Some("one\n"), "{results:?}");
    assert!(!results[0].1, "{results:?}");
    assert_eq!(results[1], ("two\n".to_owned(), false));
    // A command needs a process of its own, and none can be started.
    assert!(results[2].1 && results[2].0.starts_with("Could not run the shell: "), "{results:?}");
    scene.run("go on");
    scene.finish();
}

#[test]
fn without_threads_sessions_are_written_listed_and_exported() {
    let Some(mut scene) = scene([Turn::text("one"), Turn::text("two")], &[]) else { return };
    scene.run("first");
    let sessions = scene.command(json!({"type": "list_sessions"}));
    assert_eq!(sessions["data"]["sessions"].as_array().map(Vec::len), Some(1), "{sessions}");
    let file = scene.state()["sessionFile"].clone();
    scene.command(json!({"type": "export_html", "outputPath": "page.html"}));
    scene.command(json!({"type": "new_session"}));
    scene.command(json!({"type": "switch_session", "sessionPath": file}));
    assert_eq!(scene.messages().len(), 2);
    scene.run("second");
    scene.finish();
}
