//! Files outside: changing them, and reading what is denied.

use serde_json::json;

use crate::ground::{Attempt, Expected, Rights, attempt, call, make, write};

#[test]
fn work_in_the_project_goes_on() {
    make(
        &write(),
        Expected::Allowed,
        &[
            call("work: files of the project", "echo b > b && mv b c && ln c d && mkdir -p e/f && rm -r e && cat a c"),
            call("work: temporary files", "t=$(mktemp) && echo x > $t && cp $t there"),
            call(
                "work: devices",
                "echo x > /dev/null && head -c 4 /dev/urandom | wc -c && cat < /dev/zero | head -c 1",
            ),
            call("work: reading the system", "cat /etc/passwd && ls /usr/bin /etc /dev"),
            call("work: reading beside the project", "cat $ROOT/home/notes"),
            call("work: own processes", "(sleep 0.01 & wait) && kill -0 $$ && cat /proc/self/status"),
            call("work: the helper of this suite", "$TRY nothing"),
            call("work: standard streams by name", "echo x | cat /dev/stdin > /dev/stdout"),
        ],
    );
}

const OUTSIDE: &[Attempt] = &[
    attempt("write a new file", "echo x > $ROOT/outside/new", "test -e $ROOT/outside/new"),
    attempt("append to a file", "echo x >> $ROOT/outside/file", "grep -q x $ROOT/outside/file"),
    attempt("empty a file by opening it", ": > $ROOT/outside/file", "test ! -s $ROOT/outside/file"),
    attempt("empty a file by its descriptor", "truncate -s 0 $ROOT/outside/file", "test ! -s $ROOT/outside/file"),
    attempt("empty a file by its name", "$TRY truncate $ROOT/outside/file", "test ! -s $ROOT/outside/file"),
    attempt("remove a file", "rm -f $ROOT/outside/file", "test ! -e $ROOT/outside/file"),
    attempt("make a directory", "mkdir $ROOT/outside/dir", "test -d $ROOT/outside/dir"),
    attempt("remove a directory", "rmdir $ROOT/outside/empty", "test ! -e $ROOT/outside/empty"),
    attempt("make a pipe", "mkfifo $ROOT/outside/pipe", "test -p $ROOT/outside/pipe"),
    attempt("make a link", "ln -s x $ROOT/outside/link", "test -L $ROOT/outside/link"),
    attempt("move a file out", "mv a $ROOT/outside/a", "test -e $ROOT/outside/a"),
    attempt("move a file in", "mv $ROOT/outside/file here", "test ! -e $ROOT/outside/file"),
    attempt("exchange two files", "$TRY exchange a $ROOT/outside/file", "grep -q a $ROOT/outside/file"),
    attempt("hard link of an own file outside", "ln a $ROOT/outside/hard", "test -e $ROOT/outside/hard"),
    attempt(
        "hard link of a foreign file inside",
        "ln $ROOT/outside/file h; echo x > h",
        "grep -q x $ROOT/outside/file",
    ),
    attempt("hard link by descriptor", "$TRY link-descriptor $ROOT/outside/file h", "grep -q x $ROOT/outside/file"),
    attempt("link to a file", "ln -s $ROOT/outside/file s; echo x > s", "grep -q x $ROOT/outside/file"),
    attempt("link to a directory", "ln -s $ROOT/outside d; echo x > d/new", "test -e $ROOT/outside/new"),
    attempt("link that is swapped meanwhile", SWAPPED, "test -e $ROOT/outside/new"),
    attempt("copy a program", "cp /bin/true $ROOT/outside/true", "test -e $ROOT/outside/true"),
    attempt("the root of an own process", "echo x > /proc/self/root$ROOT/outside/new", "test -e $ROOT/outside/new"),
    attempt("the root of another process", "echo x > /proc/$VICTIM/root$ROOT/outside/new", "test -e $ROOT/outside/new"),
    attempt("the directory of another process", "echo x > /proc/$VICTIM/cwd/new", "test -e $ROOT/outside/new"),
    attempt("a descriptor of another process", "$TRY write-descriptor $VICTIM", "grep -q x $ROOT/outside/file"),
    attempt(
        "a descriptor opened to read",
        "exec 3< $ROOT/outside/file; echo x > /proc/self/fd/3",
        "grep -q x $ROOT/outside/file",
    ),
    attempt("a descriptor opened to nothing", "$TRY reopen $ROOT/outside/file", "grep -q x $ROOT/outside/file"),
    attempt("a file mapped into memory", "$TRY map $ROOT/outside/file", "grep -q x $ROOT/outside/file"),
    attempt("a program that is in memory only", IN_MEMORY, "test -e $ROOT/outside/new"),
    attempt(
        "the project replaced by a link",
        "mv $ROOT/home/work $ROOT/home/w; ln -s $ROOT/outside $ROOT/home/work",
        "test -L $ROOT/home/work",
    ),
    attempt("give a file away", "chown 65534 $ROOT/outside/file", "test $(stat -c %u $ROOT/outside/file) = 65534")
        .by(Rights::OfRoot),
    attempt("make a device", "mknod device b 7 0", "test -b device").by(Rights::OfRoot),
    attempt("a file by its handle", "$TRY handle $ROOT/outside/file $ROOT/outside", "grep -q x $ROOT/outside/file")
        .by(Rights::OfRoot),
    attempt(
        "a directory of another user",
        "mkdir $ROOT/home/work/sub/x; chmod 700 $ROOT/home/work/sub; chown 65534 sub",
        "test $(stat -c %u sub) = 65534",
    )
    .by(Rights::OfRoot),
];

/// The name leads inside when it is looked at and outside when it is written, or the other way round.
const SWAPPED: &str = "ln -s sub door; for i in $(seq 200); do ln -sfn $ROOT/outside door; ln -sfn sub door; done & \
                       for i in $(seq 400); do echo x > door/new; done; wait; ln -sfn $ROOT/outside door; echo x > door/new";
const IN_MEMORY: &str = "$TRY run-in-memory sh -c 'echo x > $ROOT/outside/new'";

#[test]
fn files_outside_cannot_be_changed() {
    make(&write(), Expected::Closed, OUTSIDE);
}

#[test]
fn mode_bits_and_times_outside_are_a_known_gap() {
    let gaps = [
        attempt("change mode bits", "chmod 600 $ROOT/outside/file", "test $(stat -c %a $ROOT/outside/file) = 600"),
        attempt("change times", "touch -d @7 $ROOT/outside/file", "test $(stat -c %Y $ROOT/outside/file) = 7"),
    ];
    make(&write(), Expected::KnownGap, &gaps);
}

#[test]
fn nothing_can_be_changed_in_the_profile_that_reads() {
    let attempts = [
        attempt("change a file of the project", "echo x > a", "grep -q x a"),
        attempt("remove a file of the project", "rm -f a", "test ! -e a"),
        attempt("make a directory in the project", "mkdir b", "test -d b"),
        attempt("rename a file of the project", "mv a b", "test -e b"),
        attempt("write outside", "echo x > $ROOT/outside/file", "grep -q x $ROOT/outside/file"),
        attempt("write in the home", "echo x > $ROOT/home/.bashrc", "test -e $ROOT/home/.bashrc"),
    ];
    let read_only = json!({"profile": "read-only"});
    make(&read_only, Expected::Closed, &attempts);
    make(&read_only, Expected::Allowed, &[call("work: reading, temporary files", "cat a && echo x > $TMPDIR/x")]);
}

#[test]
fn what_is_denied_cannot_be_read() {
    let attempts = [
        attempt("read a key", "cat $ROOT/home/.ssh/id > got", "grep -q key got"),
        attempt("read a key through a link", "ln -s $ROOT/home/.ssh d; cat d/id > got", "grep -q key got"),
        attempt(
            "read a key through the root of a process",
            "cat /proc/self/root$ROOT/home/.ssh/id > got",
            "grep -q key got",
        ),
        attempt(
            "read a key from its directory",
            "cd $ROOT/home/.ssh && cat id > $ROOT/home/work/got",
            "grep -q key got",
        ),
        attempt("copy the directory of keys", "cp -r $ROOT/home/.ssh copy", "grep -q key copy/id"),
        attempt("pack the directory of keys", "tar -cf got -C $ROOT/home .ssh", "tar -xOf got .ssh/id | grep -q key"),
        attempt("move the directory of keys", "mv $ROOT/home/.ssh ssh; cat ssh/id > got", "grep -q key got"),
        attempt("hard link of a key", "ln $ROOT/home/.ssh/id here; cat here > got", "grep -q key got"),
        attempt(
            "put a key into the place of another file",
            "$TRY exchange a $ROOT/home/.ssh/id; cp a got",
            "grep -q key got",
        ),
        call("list the directory of keys", "ls $ROOT/home/.ssh"),
        call("list the home", "ls -A $ROOT/home"),
        attempt("find keys", "find / -path $ROOT/home/.ssh/id > got", "grep -q id got"),
        attempt("find keys by the root of a process", "ls /proc/self/root$ROOT/home/.ssh > got", "grep -q id got"),
        attempt("read a key that nobody knows", "cat $ROOT/home/.unknown > got", "grep -q key got"),
        attempt("read the passwords of the system", "cat /etc/shadow > got", "test -s got").by(Rights::OfRoot),
        attempt("read what pith knows of accounts", "cat $ROOT/home/agent/auth.json > got", "grep -q key got"),
        attempt("read other sessions", "cat $ROOT/home/agent/sessions/one.jsonl > got", "grep -q key got"),
        attempt("read a key as a program", "/bin/sh $ROOT/home/.ssh/id 2> got; grep key got", "grep -q key got"),
        call("read a device that is not listed", ": < /dev/kmsg").by(Rights::OfRoot),
        attempt("read a disk past its files", DISK, "test -s got").by(Rights::OfRoot),
    ];
    make(&write(), Expected::Closed, &attempts);
    let listed = json!({"profile": "workspace-write", "filesystem": {"denyRead": ["*.pem"]}});
    let attempts = [
        attempt("read a file that a pattern denies", "cat server.pem > got", "grep -q key got"),
        attempt("rename a file that a pattern denies", "mv server.pem s; cat s > got", "grep -q key got"),
    ];
    make(&listed, Expected::Closed, &attempts);
    make(&listed, Expected::Allowed, &[call("work: beside a file that is denied", "cat a > b")]);
}

const DISK: &str = "for disk in /sys/block/*; do $TRY read-device /dev/${disk##*/} && echo x > got; done";
