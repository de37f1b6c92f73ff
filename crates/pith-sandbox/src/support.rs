//! What this kernel can enforce.

use serde::Serialize;

use crate::settings::{Profile, Require};

/// The oldest level of Landlock that keeps files outside from being emptied.
const NEEDED_LEVEL: u32 = 3;
/// The first level that keeps commands from signalling processes outside.
const SIGNALS_LEVEL: u32 = 6;
/// The first level that checks the ioctls of devices.
const DEVICES_LEVEL: u32 = 5;

/// What only namespaces close.
pub const WITHOUT_NAMESPACES: [&str; 3] = [
    "metadata of files outside the writable roots",
    "files of other processes in /dev/shm",
    "other terminals of the same user",
];

/// What no kernel lets pith close, so that `strict` does not ask for it.
pub const NEVER_CLOSED: [&str; 1] = ["locks (flock, fcntl) on files outside that can be read"];

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Support {
    /// The level of Landlock; 0 if there is none.
    pub landlock_abi: u32,
    pub seccomp: bool,
    /// Whether user, mount and network namespaces can be made. Asking takes a process, so it is asked where they are
    /// wanted.
    pub namespaces: bool,
}

impl Support {
    /// Asks the kernel, on a thread that ends afterwards.
    #[cfg(target_os = "linux")]
    pub fn of_this_kernel() -> Support {
        let probe = std::thread::spawn(|| {
            use landlock::LandlockStatus;
            match crate::confine::probe_landlock() {
                Some(LandlockStatus::Available { effective_abi, kernel_abi }) => {
                    kernel_abi.map_or(effective_abi as u32, i32::unsigned_abs)
                }
                _ => 0,
            }
        });
        let landlock_abi = probe.join().unwrap_or(0);
        let seccomp = std::path::Path::new("/proc/sys/kernel/seccomp/actions_avail").exists();
        Support { landlock_abi, seccomp, namespaces: false }
    }

    #[cfg(not(target_os = "linux"))]
    pub fn of_this_kernel() -> Support {
        Support { landlock_abi: 0, seccomp: false, namespaces: false }
    }

    /// Refuses a kernel that cannot enforce `workspace-write`.
    pub fn check_this_kernel() -> Result<(), String> {
        Support::of_this_kernel().check(Profile::WorkspaceWrite, Require::Full)
    }

    /// Refuses a profile that cannot be enforced as far as is required.
    pub fn check(self, profile: Profile, require: Require) -> Result<(), String> {
        let refusal = |why: String| Err(format!("sandbox \"{profile}\" cannot be enforced: {why}"));
        if cfg!(not(target_os = "linux")) {
            return Err(format!("sandbox \"{profile}\" cannot be enforced on this system; only \"off\" is available"));
        }
        if require == Require::BestEffort {
            return Ok(());
        }
        if self.landlock_abi == 0 {
            return refusal(
                "this kernel offers no Landlock. Start with --sandbox off, or set sandbox.require to \"best-effort\""
                    .to_owned(),
            );
        }
        if self.landlock_abi < NEEDED_LEVEL {
            let found = self.landlock_abi;
            return refusal(format!("Landlock ABI {found} found, {NEEDED_LEVEL} needed (Linux 6.2)"));
        }
        if !self.seccomp {
            return refusal("this kernel offers no seccomp filters".to_owned());
        }
        let missing = self.missing();
        if require == Require::Strict && !missing.is_empty() {
            return refusal(format!("known gaps: {}", missing.join("; ")));
        }
        Ok(())
    }

    /// The gaps that stay open on this kernel.
    pub fn missing(self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if !self.namespaces {
            missing.extend(WITHOUT_NAMESPACES);
        }
        if self.landlock_abi < SIGNALS_LEVEL {
            missing.push("signals to processes outside");
        }
        if self.landlock_abi < DEVICES_LEVEL {
            missing.push("ioctls of devices");
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_enforced_is_refused_before_anything_runs() {
        let check = |landlock_abi, require, expected: Option<&str>| {
            let support = Support { landlock_abi, seccomp: true, namespaces: landlock_abi == 6 };
            match (support.check(Profile::WorkspaceWrite, require), expected) {
                (Ok(()), None) => {}
                (Err(text), Some(expected)) => assert!(text.contains(expected), "{text}"),
                (result, expected) => panic!("{result:?} instead of {expected:?}"),
            }
        };
        check(0, Require::Full, Some("cannot be enforced: this kernel offers no Landlock. Start with --sandbox off"));
        check(2, Require::Full, Some("Landlock ABI 2 found, 3 needed (Linux 6.2)"));
        check(3, Require::Full, None);
        check(7, Require::Full, None);
        check(7, Require::Strict, Some("metadata of files"));
        check(6, Require::Strict, None);
        check(0, Require::BestEffort, None);
    }
}
