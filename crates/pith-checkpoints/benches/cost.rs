//! What checkpoints cost: one before an edit, and a walk before a command. `cargo bench -p pith-checkpoints`
//!
//! `PITH_BENCH_FILES=100000` walks a larger project.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints figures")]

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use pith_checkpoints::{Bounds, CallInfo, Mode, Recorder, StorePlace};

fn main() {
    let scratch = tempfile::tempdir().unwrap();
    let project = scratch.path().join("project");
    let n_files = std::env::var("PITH_BENCH_FILES").ok().and_then(|n| n.parse().ok()).unwrap_or(5_000);
    fill(&project, n_files);
    edits(scratch.path(), &project);
    walks(scratch.path(), &project, n_files);
}

fn fill(project: &Path, n_files: usize) {
    for n in 0..n_files {
        let directory = project.join(format!("d{}", n / 50));
        if n % 50 == 0 {
            fs::create_dir_all(&directory).unwrap();
        }
        fs::write(directory.join(format!("f{n}.rs")), format!("fn f{n}() {{}}\n").repeat(40)).unwrap();
    }
}

fn call(n: usize) -> CallInfo {
    CallInfo { id: format!("call-{n}"), tool: "edit".to_owned() }
}

fn recorder(root: &Path, project: &Path, mode: Mode) -> Recorder {
    let bounds = Bounds { max_files: 1 << 20, ..Bounds::default() };
    let place = StorePlace { root: root.to_owned(), cwd: project.to_owned(), bounds, unwalked: Vec::new() };
    Recorder::new(place, mode)
}

fn edits(scratch: &Path, project: &Path) {
    let recorder = recorder(&scratch.join("files"), project, Mode::Files);
    let path = fs::canonicalize(project).unwrap().join("d0/f1.rs");
    let mut times = Vec::new();
    for n in 0..500 {
        fs::write(&path, format!("// {n}\n").repeat(2000)).unwrap();
        let begun = Instant::now();
        recorder.before_change(call(n), &path);
        times.push(begun.elapsed());
        recorder.after(&format!("call-{n}"));
        recorder.flush();
    }
    assert_eq!(recorder.take_problem(), None);
    show("edit of a file of 14 KB, added", times);
}

fn walks(scratch: &Path, project: &Path, n_files: usize) {
    let recorder = recorder(&scratch.join("workspace"), project, Mode::Workspace);
    let begun = Instant::now();
    recorder.begin_walk();
    recorder.flush();
    println!("first walk of {n_files} files, in the background: {:.0?}", begun.elapsed());
    // What was written just now is read again once, because its times prove nothing yet.
    before_command(&recorder, usize::MAX);
    let times = (0..20).map(|n| before_command(&recorder, n)).collect();
    show(&format!("walk of {n_files} files before a command, added"), times);
}

fn before_command(recorder: &Recorder, n: usize) -> Duration {
    let begun = Instant::now();
    let (told, done) = mpsc::channel();
    recorder.before_command(call(n), move |_| told.send(()).unwrap());
    done.recv().unwrap();
    let took = begun.elapsed();
    recorder.after(&format!("call-{n}"));
    recorder.flush();
    took
}

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort();
    println!("{what}: median {:.2?}, slowest tenth {:.2?}", times[times.len() / 2], times[times.len() * 9 / 10]);
}
