//! The thread that file tools run on.

use std::fs;
use std::path::{Path, PathBuf};

use std::sync::Arc;

use pith_sandbox::Worker;
use pith_sandbox::confine::Restrictions;

use crate::ground::{Ground, Who, is_ready, write};

#[test]
fn file_tools_on_the_worker_are_held_by_the_kernel() {
    if !is_ready() {
        return;
    }
    let ground = Ground::new(Who::User);
    let restrictions = Restrictions::new(&ground.policy(&write())).expect("made");
    let worker = Worker::start(Arc::new(restrictions)).expect("confined");
    let on_worker = |work: Box<dyn FnOnce() -> std::io::Result<()> + Send>| {
        let (done, result) = std::sync::mpsc::channel();
        worker.run(work, move |outcome| done.send(outcome).unwrap()).unwrap();
        result.recv().unwrap()
    };
    let write_to = |path: PathBuf| on_worker(Box::new(move || fs::write(path, "x"))).unwrap();
    write_to(ground.root.join("home/work/new")).expect("inside");
    let refused = write_to(ground.root.join("outside/new")).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    std::os::unix::fs::symlink(ground.root.join("outside"), ground.root.join("home/work/door")).unwrap();
    write_to(ground.root.join("home/work/door/new")).unwrap_err();
    assert!(on_worker(Box::new(|| panic!("a tool's bug"))).is_err(), "a panic is reported");
    write_to(ground.root.join("home/work/after")).expect("and the worker lives on");
    fs::write(ground.root.join("outside/new"), "x").expect("this thread is free");
    assert!(!Path::new("/nonexistent").exists());
}
