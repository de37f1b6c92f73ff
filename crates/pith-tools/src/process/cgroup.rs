//! Control groups (version 2), where the system lets pith make some: the kernel then holds a command with all it has
//! started to what it may use, and stops and kills all of it at once. Elsewhere its supervisor does that.
//!
//! pith finds the directory to make them in, the supervisor of a command makes one and removes it again. A supervisor is
//! never in it, because it would be stopped too.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{Access, AtFlags};
use rustix::process::{Pid, getpid, getppid};

use super::limits::{Exceeded, ProcessLimits};

const MIB: u64 = 1024 * 1024;

/// How often to try to remove a cgroup whose last process has just ended.
const REMOVALS: u32 = 20;

/// The names of cgroups begin with it, and with the id of pith's process.
const PREFIX: &str = "pith-";

/// What cgroups are of use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupUse {
    /// pith may make none.
    None,
    /// To stop and kill all of a command at once.
    Freezing,
    /// Also to limit its processes and memory.
    Limits,
}

/// Returns the directory of the calling process' cgroup, if others may be made in it.
pub(super) fn own_directory() -> Option<PathBuf> {
    let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let directory = directory(&membership, &mounts)?;
    let may_write = |path: &Path| rustix::fs::access(path, Access::WRITE_OK).is_ok();
    (may_write(&directory) && may_write(&directory.join("cgroup.procs"))).then_some(directory)
}

/// Finds the directory in what `/proc` says of a process.
fn directory(membership: &str, mounts: &str) -> Option<PathBuf> {
    let path = membership.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = Path::new(path).strip_prefix(root).ok().filter(|_| kind.starts_with("cgroup2 "))?;
        Some(Path::new(point).join(below))
    })
}

/// Returns the directory in which the cgroups of commands with these limits are made; `None` if the kernel cannot hold
/// them to it there.
pub(super) fn directory_for(limits: &ProcessLimits) -> Option<PathBuf> {
    let own = own_directory()?;
    let leaf = leaf_name(getpid());
    let base = if own.file_name().is_some_and(|name| *name == *leaf) { own.parent()?.to_owned() } else { own };
    provide_controllers(&base, &controllers(limits), getpid()).then_some(base)
}

/// The controllers that limits need.
fn controllers(limits: &ProcessLimits) -> Vec<&'static str> {
    let pids = limits.processes.map(|_| "pids");
    pids.into_iter().chain(limits.memory_mb.map(|_| "memory")).collect()
}

/// Says what cgroups are of use for here, without making any.
pub fn probe_cgroups() -> CgroupUse {
    let Some(base) = own_directory() else { return CgroupUse::None };
    let has_all = |file: &str| has_words(&base.join(file), &["pids", "memory"]);
    // The topmost one may have processes.
    let may_enable = !base.join("cgroup.type").exists() || is_alone(&base, getpid());
    if has_all("cgroup.subtree_control") || has_all("cgroup.controllers") && may_enable {
        CgroupUse::Limits
    } else {
        CgroupUse::Freezing
    }
}

/// Makes controllers available to the cgroups in a directory.
fn provide_controllers(base: &Path, controllers: &[&str], pith: Pid) -> bool {
    if has_words(&base.join("cgroup.subtree_control"), controllers) {
        return true;
    }
    if !has_words(&base.join("cgroup.controllers"), controllers) {
        return false;
    }
    let enabled: Vec<String> = controllers.iter().map(|controller| format!("+{controller}")).collect();
    let enable = || write(&base.join("cgroup.subtree_control"), &enabled.join(" "));
    match enable() {
        Ok(()) => true,
        // Only a cgroup without processes has controllers for those in it. Others than pith are not moved.
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            let leaf = base.join(leaf_name(pith));
            is_alone(base, pith)
                && fs::create_dir(&leaf).is_ok()
                && write(&leaf.join("cgroup.procs"), &pith.as_raw_nonzero().to_string()).is_ok()
                && enable().is_ok()
        }
        Err(_) => false,
    }
}

/// Returns whether a file has all of these words.
fn has_words(file: &Path, words: &[&str]) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    words.iter().all(|word| text.split_ascii_whitespace().any(|other| other == *word))
}

/// Returns whether a process is the only one of a cgroup.
fn is_alone(directory: &Path, process: Pid) -> bool {
    let id = process.as_raw_nonzero().to_string();
    fs::read_to_string(directory.join("cgroup.procs")).is_ok_and(|ids| ids.trim() == id)
}

/// The name of the cgroup that pith itself moves to.
fn leaf_name(pith: Pid) -> String {
    format!("{PREFIX}{}", pith.as_raw_nonzero())
}

/// Writes to a file of a cgroup. They are never created.
fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(path)?.write_all_at(text.as_bytes(), 0)
}

/// The cgroup of one command. Its files stay open, because a supervisor may move to where it could not open them.
#[derive(Debug)]
pub(super) struct Cgroup {
    parent: File,
    name: String,
    processes: File,
    freeze: File,
    /// Older kernels have none.
    kill: Option<File>,
    /// What tells that a limit was passed, with the word that counts it.
    events: Vec<(File, &'static str, Exceeded)>,
}

impl Cgroup {
    /// Makes a cgroup with these limits. Called by a supervisor.
    pub fn create(base: &Path, limits: &ProcessLimits) -> io::Result<Cgroup> {
        remove_left(base);
        let (pith, own) = (getppid().unwrap_or_else(getpid), getpid());
        let name = format!("{}-{}", leaf_name(pith), own.as_raw_nonzero());
        let directory = base.join(&name);
        fs::create_dir(&directory)?;
        Cgroup::open(base, name, limits).inspect_err(|_| drop(fs::remove_dir(&directory)))
    }

    /// Opens a cgroup that was just made.
    fn open(base: &Path, name: String, limits: &ProcessLimits) -> io::Result<Cgroup> {
        let directory = base.join(&name);
        let file = |name: &str| fs::OpenOptions::new().write(true).open(directory.join(name));
        let mut events = Vec::new();
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        if let Some(max) = limits.processes {
            write(&directory.join("pids.max"), &max.to_string())?;
            let refused = Exceeded::Processes(number(max.saturating_add(1)));
            events.push((File::open(directory.join("pids.events"))?, "max", refused));
        }
        if let Some(max) = limits.memory_mb {
            write(&directory.join("memory.max"), &max.saturating_mul(MIB).to_string())?;
            // There may be no swap; and half a command is of no use.
            let _ = write(&directory.join("memory.swap.max"), "0");
            let _ = write(&directory.join("memory.oom.group"), "1");
            events.push((File::open(directory.join("memory.events"))?, "oom_kill", Exceeded::Memory(number(max))));
        }
        Ok(Cgroup {
            parent: File::open(base)?,
            name,
            processes: file("cgroup.procs")?,
            freeze: file("cgroup.freeze")?,
            kill: file("cgroup.kill").ok(),
            events,
        })
    }

    /// Where a process that writes `0` is moved to the cgroup.
    pub fn entrance(&self) -> io::Result<File> {
        self.processes.try_clone()
    }

    /// Moves a process, and what it starts from now on; one that has ended is no error.
    pub fn take(&self, process: Pid) -> io::Result<()> {
        let taken = self.processes.write_all_at(process.as_raw_nonzero().to_string().as_bytes(), 0);
        let is_gone = |error: &io::Error| error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error());
        taken.or_else(|error| if is_gone(&error) { Ok(()) } else { Err(error) })
    }

    /// Returns the limit that was passed, if one was.
    pub fn exceeded(&self) -> Option<Exceeded> {
        let has_happened = |(file, word, _): &&(File, &'static str, Exceeded)| {
            let mut text = [0; 1024];
            let n = file.read_at(&mut text, 0).unwrap_or(0);
            let text = String::from_utf8_lossy(&text[..n]);
            let count = text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' ')?.parse::<u64>().ok());
            count.is_some_and(|count| count > 0)
        };
        self.events.iter().find(has_happened).map(|(.., exceeded)| *exceeded)
    }

    pub fn freeze(&self) -> io::Result<()> {
        self.freeze.write_all_at(b"1", 0)
    }

    pub fn thaw(&self) {
        // It has no processes if this fails.
        let _ = self.freeze.write_all_at(b"0", 0);
    }

    /// Kills every process in it.
    pub fn kill(&self) {
        let _ = self.kill.as_ref().map(|kill| kill.write_all_at(b"1", 0));
    }

    /// Removes it. Its processes have ended.
    pub fn remove(&self) {
        for _ in 0..REMOVALS {
            match rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR) {
                Err(rustix::io::Errno::BUSY) => thread::sleep(Duration::from_millis(2)),
                Ok(()) | Err(_) => return,
            }
        }
    }
}

/// Removes cgroups whose supervisor, or whose pith, was killed.
fn remove_left(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let id = name.strip_prefix(PREFIX).and_then(|ids| ids.rsplit('-').next()?.parse().ok()).and_then(Pid::from_raw);
        if id.is_some_and(|id| rustix::process::test_kill_process(id) == Err(rustix::io::Errno::SRCH)) {
            // One with processes stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
                          39 31 0:36 / /sys/fs/cgroup/pids rw shared:3 - cgroup cgroup rw,pids\n";

    #[test]
    fn the_directory_is_found_by_what_the_kernel_says() {
        let check = |membership: &str, mount: &str, found: Option<&str>| {
            let mounts = format!("{MOUNTS}{mount}\n");
            assert_eq!(directory(membership, &mounts).as_deref(), found.map(Path::new), "{membership} {mount}");
        };
        let hybrid = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
        check("8:pids:/a\n0::/user.slice/x.scope\n", hybrid, Some("/sys/fs/cgroup/unified/user.slice/x.scope"));
        check("0::/\n", hybrid, Some("/sys/fs/cgroup/unified"));
        // A container without a namespace of its own sees a part of the hierarchy.
        let part = "41 31 0:38 /docker/1 /sys/fs/cgroup ro,nosuid shared:1 master:2 - cgroup2 cgroup rw";
        check("0::/docker/1/a\n", part, Some("/sys/fs/cgroup/a"));
        check("0::/docker/2\n", part, None);
        check("8:pids:/\n", hybrid, None);
        check("0::/\n", "", None);
    }

    /// A directory with the files of a cgroup.
    fn cgroup(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        files.iter().for_each(|(name, text)| fs::write(directory.path().join(name), text).expect("written"));
        directory
    }

    #[test]
    fn controllers_are_used_or_enabled_where_there_are_any() {
        let check = |available: &str, enabled: &str, expected: (bool, &str)| {
            let base = cgroup(&[("cgroup.controllers", available), ("cgroup.subtree_control", enabled)]);
            let is_provided = provide_controllers(base.path(), &["pids", "memory"], getpid());
            let written = fs::read_to_string(base.path().join("cgroup.subtree_control")).expect("a file");
            assert_eq!((is_provided, written.as_str()), expected, "{available} {enabled}");
        };
        check("cpu memory pids", "memory pids", (true, "memory pids"));
        check("cpu memory pids", "", (true, "+pids +memory"));
        check("cpu memory", "", (false, ""));
        check("", "", (false, ""));
    }

    #[test]
    fn a_limit_that_was_passed_is_told() {
        let files = ["cgroup.procs", "cgroup.freeze", "cgroup.kill", "pids.max", "memory.max", "memory.oom.group"];
        let base = cgroup(&[]);
        let directory = base.path().join("one");
        fs::create_dir(&directory).expect("made");
        let put = |name: &str, text: &str| fs::write(directory.join(name), text).expect("written");
        files.iter().for_each(|name| put(name, ""));
        put("pids.events", "max 0\n");
        put("memory.events", "low 0\noom 3\noom_kill 0\noom_group_kill 0\n");
        let limits = ProcessLimits { processes: Some(20), memory_mb: Some(3), file_mb: None };
        let cgroup = Cgroup::open(base.path(), "one".to_owned(), &limits).expect("opened");
        let get = |name: &str| fs::read_to_string(directory.join(name)).expect("a file");
        let written = ["pids.max", "memory.max", "memory.oom.group"].map(get);
        assert_eq!(written, ["20", "3145728", "1"].map(str::to_owned));
        assert_eq!(cgroup.exceeded(), None);
        put("memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 1\n");
        assert_eq!(cgroup.exceeded(), Some(Exceeded::Memory(3)));
        put("pids.events", "max 1\n");
        assert_eq!(cgroup.exceeded(), Some(Exceeded::Processes(21)));
        fs::remove_file(directory.join("memory.max")).expect("removed");
        assert!(Cgroup::open(base.path(), "one".to_owned(), &limits).is_err(), "a limit that is not held");
    }
}
