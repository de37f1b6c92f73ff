//! What a watch of a policy makes of directories that nobody makes by accident: it begins, finds what is new near the
//! top, and says when there is more than it can watch.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pith_sandbox::policy::Places;
use pith_sandbox::watch::{CommandWatch, PutBack, Watch};
use pith_sandbox::{Policy, SandboxSettings, Support};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

struct Ground {
    _dir: tempfile::TempDir,
    work: PathBuf,
}

impl Ground {
    fn new() -> Ground {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["work", "home", "agent", "temp"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        Ground { _dir: dir, work: root.join("work") }
    }

    fn watch(&self) -> Arc<Watch> {
        let root = self.work.parent().unwrap();
        let places = Places {
            cwd: self.work.clone(),
            home: Some(root.join("home")),
            agent_dir: root.join("agent"),
            temp: root.join("temp"),
        };
        let settings = SandboxSettings::read(&json!({"profile": "workspace-write"})).unwrap();
        let support = Support { landlock_abi: 7, seccomp: true, namespaces: false };
        let policy = Policy::resolve(&settings, &places, support).unwrap().unwrap();
        Arc::new(Watch::of_policy(&policy, &policy.protected, Box::new(|_| {})).unwrap())
    }
}

/// Makes something that git takes for a repository, with these lines of configuration.
fn repository(path: &Path, configuration: &str) {
    fs::create_dir_all(path.join("objects")).unwrap();
    fs::create_dir(path.join("refs")).unwrap();
    fs::write(path.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(path.join("config"), configuration).unwrap();
}

const EVIL: &str = "[core]\nfsmonitor = x\n";

fn paths(put_back: &[PutBack]) -> Vec<&Path> {
    put_back.iter().map(|it| it.path.as_path()).collect()
}

#[test]
fn more_repositories_than_can_be_remembered_are_a_known_gap() {
    let ground = Ground::new();
    for n in 0..2_100 {
        let directory = ground.work.join(format!("{}/{}/.git", n / 100, n % 100));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }
    let watch = ground.watch();
    assert!(watch.is_partial());
    let command = CommandWatch::new(Arc::clone(&watch)).unwrap();
    repository(&ground.work.join("new/.git"), EVIL);
    assert_eq!(paths(&command.changes().put_back), [ground.work.join("new/.git/config")]);
}

#[test]
fn strange_things_are_not_waited_for() {
    let ground = Ground::new();
    let fifo =
        |path: &str| mknodat(CWD, ground.work.join(path), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    for name in ["a", "b", "c", "d", "e/.git", "closed"] {
        fs::create_dir_all(ground.work.join(name)).unwrap();
    }
    fifo("a/.git");
    symlink(".git", ground.work.join("b/.git")).unwrap();
    fs::write(ground.work.join("c/.git"), vec![b'x'; 3 << 20]).unwrap();
    fs::write(ground.work.join("d/.git"), "gitdir: .git").unwrap();
    fifo("e/.git/HEAD");
    fifo("e/.git/config");
    fs::set_permissions(ground.work.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let watch = ground.watch();
    assert!(!watch.is_partial());
    let command = CommandWatch::new(Arc::clone(&watch)).unwrap();
    fifo("new");
    fs::create_dir(ground.work.join("n")).unwrap();
    fifo("n/.git");
    fifo("n/.envrc");
    fs::create_dir(ground.work.join("looped")).unwrap();
    repository(&ground.work.join("looped/.git"), "[include]\npath = config\n");
    let put_back = command.changes().put_back;
    let expected = [ground.work.join("looped/.git/config"), ground.work.join("n/.envrc")];
    let mut found = paths(&put_back);
    found.sort();
    assert_eq!(found, expected);
    assert!(ground.work.join("looped/.git/config.put-aside").exists(), "nothing is lost");
    fs::set_permissions(ground.work.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn nothing_outside_is_touched_wherever_links_lead() {
    let ground = Ground::new();
    let outside = ground.work.parent().unwrap().join("outside");
    repository(&outside, EVIL);
    fs::create_dir(outside.join("hooks")).unwrap();
    fs::write(outside.join("hooks/pre-commit"), "x").unwrap();
    fs::set_permissions(outside.join("hooks/pre-commit"), fs::Permissions::from_mode(0o755)).unwrap();
    let watch = ground.watch();
    let command = CommandWatch::new(Arc::clone(&watch)).unwrap();
    for name in ["a", "b", "d"] {
        fs::create_dir(ground.work.join(name)).unwrap();
    }
    symlink(&outside, ground.work.join("a/.git")).unwrap();
    fs::write(ground.work.join("b/.git"), format!("gitdir: {}\n", outside.display())).unwrap();
    repository(&ground.work.join("c/.git"), "");
    fs::remove_file(ground.work.join("c/.git/config")).unwrap();
    symlink(outside.join("config"), ground.work.join("c/.git/config")).unwrap();
    symlink(outside.join("hooks"), ground.work.join("c/.git/hooks")).unwrap();
    repository(&ground.work.join("d/.git"), "");
    fs::write(ground.work.join("d/.git/commondir"), outside.as_os_str().as_encoded_bytes()).unwrap();
    let put_back = command.changes().put_back;
    for way in ["a/.git", "b/.git", "c/.git/config", "c/.git/hooks", "d/.git/commondir"] {
        let way = ground.work.join(way);
        assert!(way.symlink_metadata().is_err(), "{}: {put_back:?}", way.display());
    }
    assert_eq!(fs::read_to_string(outside.join("config")).unwrap(), EVIL);
    assert_eq!(fs::read_to_string(outside.join("hooks/pre-commit")).unwrap(), "x");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 5, "nothing is new there");
}
