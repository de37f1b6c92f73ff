//! Attempts on what belongs to others: their processes, memory, queues, terminals and sockets. Each suite that has a way
//! to confine a command makes all of them.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, kill_process};

/// Names the program that makes attempts where it cannot be compiled: a user without rights takes that of another.
pub const PROGRAM: &str = "PITH_TEST_OTHERS";

/// What the sandbox cannot keep an attempt from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// It has no effect.
    None,
    WithoutNamespaces,
    /// On no machine.
    Everywhere,
}

/// An attempt.
pub struct Row {
    pub name: &'static str,
    /// Run by a shell in the project. `$ROOT` is the ground, `$OTHERS` the program that makes attempts, `$VICTIM` the
    /// process that has what is attempted, `$TERMINAL` its terminal.
    pub script: &'static str,
    /// A shell command, run outside afterwards, that succeeds if the attempt had its effect. Empty: the script succeeded.
    pub effect: &'static str,
    pub gap: Gap,
}

const fn row(name: &'static str, script: &'static str) -> Row {
    Row { name, script, effect: "", gap: Gap::None }
}

impl Row {
    const fn seen_by(self, effect: &'static str) -> Row {
        Row { effect, ..self }
    }

    const fn gap(self, gap: Gap) -> Row {
        Row { gap, ..self }
    }
}

pub const ROWS: &[Row] = &[
    row("limits of a process", "$OTHERS limit $VICTIM"),
    row("priority of a process", "$OTHERS priority $VICTIM"),
    row("priority of a group", "$OTHERS priority-of-group $VICTIM"),
    row("priority of a user", "$OTHERS priority-of-user"),
    row("processors of a process", "$OTHERS affinity $VICTIM"),
    row("scheduler of a process", "$OTHERS scheduler $VICTIM"),
    row("parameters of a process' scheduler", "$OTHERS scheduler-parameters $VICTIM"),
    row("attributes of a process' scheduler", "$OTHERS scheduler-attributes $VICTIM"),
    row("priority of a process' files", "$OTHERS io-priority $VICTIM"),
    row("priority of a group's files", "$OTHERS io-priority-of-group $VICTIM"),
    row("limits of a process by a program", "prlimit --nofile=99 --pid $VICTIM")
        .seen_by("grep -q 'files  *99 ' /proc/$VICTIM/limits"),
    row("System V memory read", "$OTHERS memory-read"),
    row("System V memory written", "$OTHERS memory-write"),
    row("System V memory removed", "$OTHERS memory-remove"),
    row("System V memory left behind", "$OTHERS memory-make").seen_by("$OTHERS memory-left"),
    row("System V semaphores changed", "$OTHERS semaphores-change"),
    row("System V semaphores changed in time", "$OTHERS semaphores-wait"),
    row("System V semaphores removed", "$OTHERS semaphores-remove"),
    row("System V semaphores left behind", "$OTHERS semaphores-make").seen_by("$OTHERS semaphores-left"),
    row("System V queue read", "$OTHERS queue-read"),
    row("System V queue written", "$OTHERS queue-write"),
    row("System V queue removed", "$OTHERS queue-remove"),
    row("System V queue left behind", "$OTHERS queue-make").seen_by("$OTHERS queue-left"),
    row("POSIX queue read", "$OTHERS posix-queue-read"),
    row("POSIX queue written", "$OTHERS posix-queue-write"),
    row("POSIX queue removed", "$OTHERS posix-queue-remove"),
    row("POSIX queue left behind", "$OTHERS posix-queue-make").seen_by("$OTHERS posix-queue-left"),
    row("shared file read", "$OTHERS shared-file-read").gap(Gap::WithoutNamespaces),
    row("shared file written", "$OTHERS shared-file-write").gap(Gap::WithoutNamespaces),
    row("shared file removed", "$OTHERS shared-file-remove").gap(Gap::WithoutNamespaces),
    row("shared file left behind", "$OTHERS shared-file-make")
        .seen_by("$OTHERS shared-file-left")
        .gap(Gap::WithoutNamespaces),
    row("datagram to a name", "$OTHERS datagram $ROOT/outside/datagrams"),
    row("datagram of a raw socket", "$OTHERS datagram-of-raw $ROOT/outside/datagrams"),
    row("datagram of a connected socket", "$OTHERS datagram-connected $ROOT/outside/datagrams"),
    row("datagram with a descriptor", "$OTHERS datagram-with-descriptor $ROOT/outside/datagrams"),
    row("name of a socket taken", "$OTHERS take-name"),
    row("terminal written", "$OTHERS terminal-write $TERMINAL").gap(Gap::WithoutNamespaces),
    row("terminal read", "$OTHERS terminal-read $TERMINAL").gap(Gap::WithoutNamespaces),
    row("terminal without echo", "$OTHERS terminal-silence $TERMINAL").gap(Gap::WithoutNamespaces),
    row("terminal of another size", "$OTHERS terminal-size $TERMINAL").gap(Gap::WithoutNamespaces),
    row("terminal stopped", "$OTHERS terminal-stop $TERMINAL").gap(Gap::WithoutNamespaces),
    row("terminal that forgets what was typed", "$OTHERS terminal-forget $TERMINAL").gap(Gap::WithoutNamespaces),
    row("terminal kept for oneself", "$OTHERS terminal-keep $TERMINAL"),
    row("terminal taken for something else", "$OTHERS terminal-discipline $TERMINAL"),
    row("terminal by the shell", "echo x > $TERMINAL").gap(Gap::WithoutNamespaces),
    row("program of its owner, by open", "$OTHERS mode-open").seen_by("test -u left"),
    row("program of its owner, by openat2", "$OTHERS mode-openat2").seen_by("test -u left"),
    row("program of its owner, by creat", "$OTHERS mode-creat").seen_by("test -u left"),
    row("program of its owner, by mknod", "$OTHERS mode-mknod").seen_by("test -u left"),
    row("program of its owner, without a name at first", "$OTHERS mode-unnamed").seen_by("test -u left"),
    row("program of its owner, by chmod", "$OTHERS mode-chmod").seen_by("test -u left"),
    row("program of its owner, by fchmod", "$OTHERS mode-fchmod").seen_by("test -u left"),
    row("program of its owner, by fchmodat", "$OTHERS mode-fchmodat").seen_by("test -u left"),
    row("program of its owner, by fchmodat2", "$OTHERS mode-fchmodat2").seen_by("test -u left"),
    row("program of its owner, by a program", "cp /bin/true left; chmod u+s left").seen_by("test -u left"),
    row("program of its group, by a program", "cp /bin/true left; chmod g+s left").seen_by("test -g left"),
    row("program of its owner, installed", "install -m 4755 /bin/true left").seen_by("test -u left"),
    row("lease on a file", "$OTHERS lease $ROOT/outside/file"),
    row("lock on a file", "$OTHERS lock $ROOT/outside/file").gap(Gap::Everywhere),
    row("lock on a part of a file", "$OTHERS lock-range $ROOT/outside/file").gap(Gap::Everywhere),
];

/// What must go on, wherever there is a sandbox that lets the project be written.
pub const WORK: &[(&str, &str)] = &[
    ("work: a lower priority", "nice -n 3 true"),
    ("work: fewer processors", "taskset -c 0 true"),
    ("work: files in idle time", "ionice -c 3 true"),
    ("work: lower limits", "ulimit -n 100 && prlimit --nofile=90 true"),
    ("work: modes", "touch a b && chmod 755 a && chmod +t . && install -m 700 a c && mkdir -m 777 d"),
    ("work: locks", "touch l && flock l true"),
    ("work: a terminal of one's own", "script -qec 'stty size && echo x > /dev/tty' /dev/null"),
    ("work: semaphores", "python3 -c 'import multiprocessing as m; m.Semaphore().acquire(); m.Pool(2).map(abs, [1])'"),
    (
        "work: shared memory",
        "python3 -c 'from multiprocessing.shared_memory import SharedMemory as M; m = M(create=True, size=9); m.unlink()'",
    ),
];

/// What goes on in namespaces only.
#[allow(dead_code, reason = "the suite without namespaces does not make these")]
pub const WORK_OF_NAMESPACES: &[(&str, &str)] = &[
    ("work: System V memory", "$OTHERS memory-make && $OTHERS memory-left"),
    ("work: System V semaphores", "$OTHERS semaphores-make && $OTHERS semaphores-left"),
    ("work: a System V queue", "$OTHERS queue-make && $OTHERS queue-left"),
];

/// A process that has something to be taken.
pub struct Victim {
    process: Child,
    terminal: String,
}

impl Victim {
    /// Starts it below a directory with `outside` and `temp`, as the user of the calling thread.
    pub fn start(root: &Path) -> Victim {
        let _ = std::fs::remove_file(root.join("temp/terminal"));
        let mut process = Command::new(program().expect("a compiler"));
        // A group of its own, in which nobody belongs to another user.
        let process = process.arg("outside").env("ROOT", root).process_group(0).spawn();
        let mut victim = Victim { process: process.expect("started"), terminal: String::new() };
        pith_testkit::eventually("the victim waits", || root.join("temp/terminal").exists());
        victim.terminal = std::fs::read_to_string(root.join("temp/terminal")).expect("readable");
        victim
    }

    /// What the variables of a row stand for.
    pub fn variables(&self, root: &Path) -> [(&'static str, String); 4] {
        let program = program().expect("a compiler");
        [
            ("$ROOT", root.display().to_string()),
            ("$OTHERS", format!("env ROOT={} {}", root.display(), program.display())),
            ("$VICTIM", self.process.id().to_string()),
            ("$TERMINAL", self.terminal.clone()),
        ]
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // It takes away what it has made.
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
    }
}

/// Replaces the variables of a script.
pub fn filled_in(script: &str, variables: &[(&str, String)]) -> String {
    variables.iter().fold(script.to_owned(), |script, (name, value)| script.replace(name, value))
}

/// The program that makes attempts, compiled once; the error says why there is none.
pub fn program() -> Result<&'static Path, String> {
    static COMPILED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let compile = || {
        if let Some(program) = std::env::var_os(PROGRAM) {
            return Ok(PathBuf::from(program));
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pith-sandbox/tests/others/others.c");
        // One for all runs of the suites: whoever compiles it again puts the same in its place.
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (program, made) = (directory.join("others"), directory.join(format!("others-{}", std::process::id())));
        let output = Command::new("cc").arg("-o").arg(&made).arg(&source).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("no C compiler: {error}"))?;
        if !output.status.success() {
            return Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr)));
        }
        std::fs::rename(made, &program).map_err(|error| error.to_string())?;
        Ok(program)
    };
    COMPILED.get_or_init(compile).as_deref().map_err(Clone::clone)
}
