//! A private `PATH`: stand-ins for the denied programs, and those that run others.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Programs that are taken from the system, if it has them.
const REAL: &[&str] = &[
    "awk", "base64", "bash", "cat", "chmod", "choom", "chrt", "cp", "dash", "date", "dd", "echo", "env", "false",
    "find", "flock", "grep", "head", "id", "install", "ionice", "ln", "ls", "make", "mkdir", "mv", "nice", "node",
    "nohup", "perl", "printf", "prlimit", "python3", "rbash", "rev", "script", "sed", "setarch", "setsid", "sg", "sh",
    "sleep", "sort", "stdbuf", "strace", "tail", "tar", "taskset", "tee", "test", "timeout", "touch", "tr", "true",
    "unshare", "wc", "which", "xargs", "xxd",
];

/// Stand-ins for programs that need rights, a network or are seldom installed: they run what they are given.
const STAND_INS: &[(&str, &str)] = &[
    ("sudo", "while :; do case $1 in -u|-g|-p) shift 2;; -*|*=*) shift;; *) break;; esac; done; exec \"$@\""),
    ("doas", "while :; do case $1 in -u) shift 2;; -*) shift;; *) break;; esac; done; exec \"$@\""),
    (
        "ssh",
        "while :; do case $1 in -o|-p|-i|-l) shift 2;; -*) shift;; *) break;; esac; done; shift; [ \"$1\" = -- ] && shift; exec sh -c \"$*\"",
    ),
    ("su", "while [ $# -gt 0 ]; do [ \"$1\" = -c ] && exec sh -c \"$2\"; shift; done"),
    ("busybox", "exec \"$@\""),
    ("parallel", "sh -c \"${2:-$1}\""),
    ("ksh", "exec dash \"$@\""),
    ("zsh", "exec bash \"$@\""),
    ("unbuffer", "exec \"$@\""),
    ("newwrapper", "[ \"$1\" = -x ] && shift 2; exec \"$@\""),
];

/// Each counts as run if its words are those that rules name, as the real program would take them.
const DENIED: &[(&str, &str)] = &[
    ("git", "for a; do case $a in push|alias.*=push) ran;; alias.*=!*) sh -c \"${a#*=!}\";; esac; done"),
    ("npm", "for a; do [ \"$a\" = publish ] && ran; done"),
    ("kubectl", "for a; do [ \"$a\" = delete ] && ran; done"),
    ("docker", "for a; do [ \"$a\" = run ] && ran; done"),
    ("curl", "ran"),
    (
        "rm",
        "for a; do case $a in --recursive) r=1;; --force) f=1;; --*) ;; -*r*f*|-*f*r*|-*R*f*) r=1 f=1;; -*[rR]*) r=1;; -*f*) f=1;; esac; done; [ \"$r$f\" = 11 ] && ran",
    ),
];

/// Makes the directory of programs and returns it.
pub fn install(directory: &Path) -> PathBuf {
    let bin = directory.join("bin");
    fs::create_dir(&bin).expect("directory");
    let script = |name: &str, body: &str| {
        fs::write(bin.join(name), format!("#!/bin/sh\nran() {{ : >\"$PITH_RECORD\"; }}\n{body}\n")).expect("write");
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).expect("chmod");
    };
    STAND_INS.iter().chain(DENIED).for_each(|(name, body)| script(name, body));
    for name in REAL {
        let found = ["/usr/bin", "/bin", "/usr/local/bin"].map(|place| Path::new(place).join(name));
        if let Some(path) = found.iter().find(|path| path.exists()) {
            symlink(path, bin.join(name)).expect("link");
        }
    }
    bin
}
