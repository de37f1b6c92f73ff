//! Calls that would undo the sandbox or reach the machine.

use serde_json::json;

use crate::ground::{Attempt, Expected, Rights, call, make, write};

const CALLS: &[Attempt] = &[
    call("a user namespace", "$TRY user-namespace"),
    call("a user namespace by clone", "$TRY clone-user-namespace"),
    call("a user namespace by clone3", "$TRY clone3-user-namespace"),
    call("a user namespace by a program", "unshare -Ur true"),
    call("io_uring", "$TRY io-uring"),
    call("a key of the kernel", "$TRY key"),
    call("a keyring of the kernel", "$TRY request-key"),
    call("performance events", "$TRY perf"),
    call("page faults of others", "$TRY fault-handler"),
    call("events of all files", "$TRY fanotify"),
    call("a key pushed into a terminal", "$TRY push-key"),
    call("calls of i386", "$TRY i386"),
    call("calls of x32", "$TRY x32-socket"),
    call("a bind mount", "mkdir m && $TRY bind $ROOT/outside m").by(Rights::OfRoot),
    call("a mount as a descriptor", "$TRY open-tree $ROOT/outside").by(Rights::OfRoot),
    call("another root", "$TRY chroot $ROOT/outside").by(Rights::OfRoot),
    call("a namespace of another process", "$TRY set-namespace").by(Rights::OfRoot),
    call("a program in the kernel", "$TRY bpf").by(Rights::OfRoot),
    call("the log of the kernel", "$TRY kernel-log").by(Rights::OfRoot),
    call("the name of the machine", "$TRY host-name").by(Rights::OfRoot),
    call("ports of the machine", "$TRY io-ports").by(Rights::OfRoot),
];

#[test]
fn programs_of_root_run_as_whoever_starts_them() {
    let as_root = call("a program that runs as root", "test $($ROOT/outside/of-root -u) = 0").by(Rights::OfUser);
    make(&write(), Expected::Closed, &[as_root]);
}

#[test]
fn a_root_that_is_everything_has_no_devices() {
    let everything = json!({"profile": "workspace-write", "filesystem": {"allowWrite": ["/"]}});
    make(&everything, Expected::Closed, &[call("a device below /", "echo pith > /dev/kmsg").by(Rights::OfRoot)]);
    make(&everything, Expected::Allowed, &[call("work: elsewhere below /", "echo x > $ROOT/outside/new")]);
}

#[test]
fn calls_that_undo_the_sandbox_are_refused() {
    make(&write(), Expected::Closed, CALLS);
}
