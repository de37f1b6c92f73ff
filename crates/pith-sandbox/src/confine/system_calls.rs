//! The system calls that confined commands are refused, as seccomp filters.
//!
//! What is listed answers `EPERM`. `clone3` answers `ENOSYS` instead, so that the C library falls back to `clone`, whose
//! flags a filter can see. Calls by the tables of other processor modes end the process.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

use crate::policy::NetworkRule;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Result<T> = std::result::Result<T, seccompiler::Error>;

/// The bytes of an instruction.
const INSTRUCTION: usize = 8;
const CLONE_NEWUSER: u64 = 0x1000_0000;
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541C;
/// The low bits of a socket's type; the others are flags.
const SOCKET_TYPE: u64 = 0xF;

/// Refused whatever their arguments are.
const REFUSED: &[libc::c_long] = &[
    // other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // work in the kernel that filters do not see
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // mounts and namespaces
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_chroot,
    libc::SYS_setns,
    // keys of the kernel
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // watching and programming the kernel
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_syslog,
    // the machine
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_acct,
    libc::SYS_quotactl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
];

/// The filters of a policy, which another process can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filters([BpfProgram; 2]);

impl Filters {
    pub(super) fn new(network: NetworkRule) -> Result<Filters> {
        let refused = filter(with_other_numbers(refused(network)?), libc::EPERM)?;
        let unknown = filter(with_other_numbers(BTreeMap::from([(libc::SYS_clone3, Vec::new())])), libc::ENOSYS)?;
        Ok(Filters([refused, unknown]))
    }

    /// Restricts the calling thread. Needs `no_new_privs`.
    pub(super) fn apply(&self) -> Result<()> {
        self.0.iter().try_for_each(|program| seccompiler::apply_filter(program))
    }

    /// The filters for another process: the length of the first in instructions, then the instructions of both.
    pub fn to_bytes(&self) -> Vec<u8> {
        let n_first = (self.0[0].len() as u32).to_le_bytes();
        let instructions = self.0.iter().flatten().flat_map(|instruction| {
            let [code_low, code_high] = instruction.code.to_le_bytes();
            let [a, b, c, d] = instruction.k.to_le_bytes();
            [code_low, code_high, instruction.jt, instruction.jf, a, b, c, d]
        });
        n_first.into_iter().chain(instructions).collect()
    }

    /// Reads what [`Filters::to_bytes`] has written; `None` if it has not.
    pub fn from_bytes(bytes: &[u8]) -> Option<Filters> {
        let (n_first, instructions) = bytes.split_first_chunk::<4>()?;
        let (instructions, []) = instructions.as_chunks::<INSTRUCTION>() else { return None };
        let (first, second) = instructions.split_at_checked(u32::from_le_bytes(*n_first) as usize)?;
        if first.is_empty() || second.is_empty() {
            return None;
        }
        let program = |instructions: &[[u8; INSTRUCTION]]| -> BpfProgram {
            let decoded = instructions.iter().map(|[code_low, code_high, jt, jf, a, b, c, d]| sock_filter {
                code: u16::from_le_bytes([*code_low, *code_high]),
                jt: *jt,
                jf: *jf,
                k: u32::from_le_bytes([*a, *b, *c, *d]),
            });
            decoded.collect()
        };
        Some(Filters([program(first), program(second)]))
    }
}

fn filter(rules: Rules, answer: i32) -> Result<BpfProgram> {
    let answer = SeccompAction::Errno(answer.unsigned_abs());
    let arch = if cfg!(target_arch = "aarch64") { TargetArch::aarch64 } else { TargetArch::x86_64 };
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, answer, arch)?.try_into()?)
}

fn refused(network: NetworkRule) -> Result<Rules> {
    let mut rules: Rules = REFUSED.iter().map(|number| (*number, Vec::new())).collect();
    let new_user_namespace = || rule([argument(0, SeccompCmpOp::MaskedEq(CLONE_NEWUSER), CLONE_NEWUSER)]);
    rules.insert(libc::SYS_unshare, vec![new_user_namespace()?]);
    rules.insert(libc::SYS_clone, vec![new_user_namespace()?]);
    let request = |value| rule([argument(1, SeccompCmpOp::Eq, value)]);
    rules.insert(libc::SYS_ioctl, vec![request(TIOCSTI)?, request(TIOCLINUX)?]);
    rules.insert(libc::SYS_socket, sockets(network)?);
    Ok(rules)
}

/// Which calls of `socket` are refused; an empty list refuses all.
fn sockets(network: NetworkRule) -> Result<Vec<SeccompRule>> {
    let family = |operation, value: i32| argument(0, operation, u64::from(value.unsigned_abs()));
    let mut allowed = Vec::new();
    if network.has_internet_sockets() {
        allowed.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    if network.unix {
        allowed.push(libc::AF_UNIX);
    }
    if allowed.is_empty() {
        return Ok(Vec::new());
    }
    let mut refused = vec![rule(allowed.iter().map(|allowed| family(SeccompCmpOp::Ne, *allowed)))?];
    if network.has_internet_sockets() {
        let raw = u64::from(libc::SOCK_RAW.unsigned_abs());
        for internet in [libc::AF_INET, libc::AF_INET6] {
            let is_raw = argument(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), raw);
            refused.push(rule([family(SeccompCmpOp::Eq, internet), is_raw])?);
        }
        let not_routes = argument(2, SeccompCmpOp::Ne, u64::from(libc::NETLINK_ROUTE.unsigned_abs()));
        refused.push(rule([family(SeccompCmpOp::Eq, libc::AF_NETLINK), not_routes])?);
    }
    Ok(refused)
}

fn argument(index: u8, operation: SeccompCmpOp, value: u64) -> Result<SeccompCondition> {
    Ok(SeccompCondition::new(index, SeccompCmpArgLen::Dword, operation, value)?)
}

fn rule(conditions: impl IntoIterator<Item = Result<SeccompCondition>>) -> Result<SeccompRule> {
    Ok(SeccompRule::new(conditions.into_iter().collect::<Result<_>>()?)?)
}

/// Adds the second number each call has on x86-64, in the mode with short pointers.
fn with_other_numbers(rules: Rules) -> Rules {
    const X32: i64 = 0x4000_0000;
    if cfg!(not(target_arch = "x86_64")) {
        return rules;
    }
    let other: Rules = rules.iter().map(|(number, rules)| (number | X32, rules.clone())).collect();
    rules.into_iter().chain(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::NetworkMode;

    #[test]
    fn filters_arrive_as_they_were_sent() {
        for (mode, unix) in [(NetworkMode::Off, false), (NetworkMode::On, true)] {
            let filters = Filters::new(NetworkRule { mode, unix, local: false }).unwrap();
            let bytes = filters.to_bytes();
            assert_eq!(Filters::from_bytes(&bytes), Some(filters));
            for broken in [&bytes[..3], &bytes[..4], &bytes[..bytes.len() - 1], &[0xFF; 20]] {
                assert_eq!(Filters::from_bytes(broken), None);
            }
        }
    }
}
