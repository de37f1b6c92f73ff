//! Processes outside: reading them, changing them, ending them.

use crate::ground::{Expected, attempt, call, make, write};

#[test]
fn other_processes_are_out_of_reach() {
    // What is killed stays as a zombie until the suite looks after it.
    const DEAD: &str = "grep -q 'State:.Z' /proc/$VICTIM/status";
    let attempts = [
        attempt("kill a process", "kill -9 $VICTIM; sleep 0.05", DEAD),
        attempt("kill a process by descriptor", "$TRY pidfd-kill $VICTIM; sleep 0.05", DEAD),
        attempt("kill a process by a queued signal", "$TRY queue-signal $VICTIM; sleep 0.05", DEAD),
        attempt("read an environment", "tr '\\0' '\\n' < /proc/$VICTIM/environ > got", "grep -q SECRET got"),
        attempt("read a map of memory", "cat /proc/$VICTIM/maps > got", "test -s got"),
        call("read memory by its file", "$TRY mem-file $VICTIM $(cat $ROOT/temp/address)"),
        call("read memory by a call", "$TRY read-memory $VICTIM $(cat $ROOT/temp/address)"),
        call("write memory by a call", "$TRY write-memory $VICTIM $(cat $ROOT/temp/address)"),
        call("attach as a debugger", "$TRY attach $VICTIM"),
        call("compare with a process", "$TRY compare $VICTIM"),
        attempt("take a descriptor", "$TRY take-descriptor $VICTIM", "grep -q x $ROOT/outside/file"),
        call("see what a process has open", "readlink /proc/$VICTIM/fd/3"),
        call("see where a process works", "readlink /proc/$VICTIM/cwd"),
    ];
    make(&write(), Expected::Closed, &attempts);
}
