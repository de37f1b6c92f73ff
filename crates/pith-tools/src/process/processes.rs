//! What a supervisor does to all processes of its command: signals, stopping them, killing them.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgid, getpid, kill_process_group};

use super::cgroup::{Cgroup, own_directory};
use super::limits::ProcessLimits;
use super::tree;

/// How long to send SIGKILL to processes that do not end.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// How often to look for processes that were started while others were stopped.
const FREEZE_PASSES: usize = 50;

/// The processes of a command: everything below its supervisor.
#[derive(Clone)]
pub(super) struct Processes {
    /// The first one, which is also the id of their process group.
    pub shell: Pid,
    /// Set if they are in one of their own.
    pub cgroup: Arc<OnceLock<Cgroup>>,
}

/// What processes were stopped by.
pub(super) enum Frozen {
    Cgroup,
    Signals,
}

impl Processes {
    /// Stops them: in their cgroup, or in one that is made for them, which they do not notice; by signals elsewhere.
    pub fn freeze(&self) -> Frozen {
        match self.cgroup.get().or_else(|| self.gather()).map(Cgroup::freeze) {
            Some(Ok(())) => Frozen::Cgroup,
            Some(Err(_)) | None => {
                self.stop();
                Frozen::Signals
            }
        }
    }

    /// Lets them go on if they were stopped. What is stopped hears other signals only then.
    pub fn thaw(&self, frozen: Option<Frozen>) {
        match (frozen, self.cgroup.get()) {
            (Some(Frozen::Cgroup), Some(cgroup)) => cgroup.thaw(),
            (Some(_), _) => self.signal(Signal::CONT),
            (None, _) => {}
        }
    }

    /// Moves them to a new cgroup; in several passes, because something may fork meanwhile.
    fn gather(&self) -> Option<&Cgroup> {
        let cgroup = Cgroup::create(&own_directory()?, &ProcessLimits::default()).ok()?;
        let mut known = HashSet::new();
        for _ in 0..FREEZE_PASSES {
            let n_known = known.len();
            for process in tree::descendants(getpid()) {
                if cgroup.take(process).is_err() {
                    cgroup.remove();
                    return None;
                }
                known.insert(process);
            }
            if known.len() == n_known {
                break;
            }
        }
        Some(self.cgroup.get_or_init(|| cgroup))
    }

    /// Stops them by signals; in several passes, because something may fork meanwhile.
    fn stop(&self) {
        let mut n_known = 0;
        for _ in 0..FREEZE_PASSES {
            self.signal(Signal::STOP);
            let n_found = tree::descendants(getpid()).len();
            if n_found == n_known {
                return;
            }
            n_known = n_found;
        }
    }

    /// Ends a command that has passed a limit. Processes that stand still cannot multiply while they are killed.
    pub fn stop_and_kill(&self) -> ! {
        if self.cgroup.get().is_none() {
            self.stop();
        }
        self.kill()
    }

    /// Kills until nothing is left; in several passes, because something may fork meanwhile.
    pub fn kill(&self) -> ! {
        let mut pause = Duration::from_millis(5);
        while pause < KILL_LIMIT {
            if let Some(cgroup) = self.cgroup.get() {
                cgroup.kill();
            }
            self.signal(Signal::KILL);
            thread::sleep(pause);
            pause *= 2;
        }
        // Processes of another user, or stuck in the kernel, cannot be killed.
        std::process::exit(1);
    }

    pub fn signal(&self, signal: Signal) {
        let (in_group, others): (Vec<Pid>, Vec<Pid>) =
            tree::descendants(getpid()).into_iter().partition(|pid| getpgid(Some(*pid)) == Ok(self.shell));
        // Signals the group in one call, so that a shell has no time to start its next command. The id of an empty
        // group may belong to another process by now.
        if !in_group.is_empty() || !cfg!(target_os = "linux") {
            let _ = kill_process_group(self.shell, signal);
        }
        for pid in others {
            tree::send(pid, signal);
        }
    }
}
