//! The system calls that confined commands are refused, as seccomp filters.
//!
//! What is listed answers `EPERM`. `clone3` answers `ENOSYS` instead, so that the C library falls back to `clone`, whose
//! flags a filter can see. Calls by the tables of other processor modes end the process; those of x32, which share a
//! table, answer `ENOSYS`, as on a kernel without them.
//!
//! The kernel runs each filter for every call there is when the filter is set, which is for each command. So the list is
//! searched by halves: a chain of comparisons, as the library makes it, takes 0.4 ms of each command.

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

/// Where the kernel shows a filter the number of a call and the table it is from; see seccomp(2).
const NUMBER: u32 = 0;
const TABLE: u32 = 4;
/// The table of this processor.
const OWN_TABLE: u32 = if cfg!(target_arch = "aarch64") { 0xC000_00B7 } else { 0xC000_003E };
/// Calls from here on are those of the mode with short pointers on x86-64. No other processor has such numbers.
const X32: u32 = 0x4000_0000;

/// `open_tree` that changes attributes too (Linux 6.15), which the library has no name for.
const OPEN_TREE_ATTR: libc::c_long = 467;

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
    OPEN_TREE_ATTR,
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
    libc::SYS_quotactl_fd,
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
        let arch = if cfg!(target_arch = "aarch64") { TargetArch::aarch64 } else { TargetArch::x86_64 };
        let answer = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let by_arguments = SeccompFilter::new(refused(network)?, SeccompAction::Allow, answer, arch)?.try_into()?;
        Ok(Filters([by_number(), by_arguments]))
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

/// The filter of the calls that are refused whatever their arguments are.
fn by_number() -> BpfProgram {
    let errno = |errno: i32| libc::SECCOMP_RET_ERRNO | errno.unsigned_abs();
    let refused = REFUSED.iter().map(|number| (*number, errno(libc::EPERM)));
    let mut answers: Vec<(u32, u32)> = refused
        .chain([(libc::SYS_clone3, errno(libc::ENOSYS))])
        .map(|(number, answer)| (number as u32, answer))
        .collect();
    answers.sort_unstable();
    let mut program = vec![
        load(TABLE),
        jump(libc::BPF_JEQ, OWN_TABLE, 1, 0),
        answer(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
        jump(libc::BPF_JGE, X32, 0, 1),
        answer(errno(libc::ENOSYS)),
    ];
    program.extend(search(&answers));
    program
}

/// Finds the answer to a call by halves; what is not in the list is let through. The list is sorted.
fn search(answers: &[(u32, u32)]) -> Vec<sock_filter> {
    match answers {
        [] => vec![answer(libc::SECCOMP_RET_ALLOW)],
        [(number, found)] => {
            vec![jump(libc::BPF_JEQ, *number, 0, 1), answer(*found), answer(libc::SECCOMP_RET_ALLOW)]
        }
        more => {
            let (low, high) = more.split_at(more.len() / 2);
            let (first_high, mut low) = (high[0].0, search(low));
            let skipped = u8::try_from(low.len()).expect("half of the list is less than 256 instructions");
            low.insert(0, jump(libc::BPF_JGE, first_high, skipped, 0));
            low.extend(search(high));
            low
        }
    }
}

fn load(offset: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

fn jump(comparison: u32, value: u32, if_so: u8, if_not: u8) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | comparison | libc::BPF_K) as u16, jt: if_so, jf: if_not, k: value }
}

fn answer(value: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: value }
}

/// What is refused by its arguments.
fn refused(network: NetworkRule) -> Result<Rules> {
    let mut rules = Rules::new();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::NetworkMode;

    /// What a filter answers, run as the kernel runs it.
    fn run(program: &[sock_filter], table: u32, number: u32) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            let jumped = |is_so: bool| at + 1 + usize::from(if is_so { jt } else { jf });
            at = match code {
                0x20 => {
                    value = if k == TABLE { table } else { number };
                    at + 1
                }
                0x15 => jumped(value == k),
                0x35 => jumped(value >= k),
                0x06 => return k,
                other => panic!("{other:#x}"),
            };
        }
    }

    #[test]
    fn the_list_is_refused_and_nothing_beside_it() {
        let program = by_number();
        let errno = |number: i32| libc::SECCOMP_RET_ERRNO | number.unsigned_abs();
        for number in 0..1000 {
            let expected = match number {
                libc::SYS_clone3 => errno(libc::ENOSYS),
                number if REFUSED.contains(&number) => errno(libc::EPERM),
                _ => libc::SECCOMP_RET_ALLOW,
            };
            assert_eq!(run(&program, OWN_TABLE, number as u32), expected, "{number}");
            assert_eq!(run(&program, OWN_TABLE, X32 | number as u32), errno(libc::ENOSYS), "{number} of x32");
            assert_eq!(run(&program, 0x4000_0003, number as u32), libc::SECCOMP_RET_KILL_PROCESS, "{number} of i386");
        }
    }

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
