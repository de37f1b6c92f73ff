//! The system calls that confined commands are refused, as a seccomp filter.
//!
//! What is listed answers `EPERM`. Calls whose arguments a filter cannot see answer `ENOSYS` instead, so that programs
//! fall back to older ones, whose arguments it can; so do calls that are newer than the list. Calls by the tables of
//! other processor modes end the process; those of x32, which share a table, answer `ENOSYS`, as on a kernel without
//! them.

use seccompiler::{BpfProgram, sock_filter};

use super::arguments;
use super::program::{self, Refusal, Table};
use crate::policy::{NetworkRule, Policy};

/// The bytes of an instruction.
const INSTRUCTION: usize = 8;

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

/// Calls whose arguments lie in memory.
const UNSEEN: [libc::c_long; 2] = [libc::SYS_clone3, libc::SYS_openat2];

/// System V memory, semaphores and queues, and POSIX queues: without a namespace of their own those of everybody. They
/// are known by number and name, so it takes no file to reach them.
const SHARED: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// The filter of a policy, which another process can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(BpfProgram);

impl Filter {
    pub(super) fn new(policy: &Policy) -> Filter {
        // They come with the other namespaces.
        let has_own_ipc = policy.namespaces;
        Filter(program::of(&table(policy.network, has_own_ipc)))
    }

    /// Restricts the calling thread. Needs `no_new_privs`.
    pub(super) fn apply(&self) -> Result<(), seccompiler::Error> {
        seccompiler::apply_filter(&self.0)
    }

    /// The instructions, for another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        let instructions = self.0.iter().flat_map(|instruction| {
            let [code_low, code_high] = instruction.code.to_le_bytes();
            let [a, b, c, d] = instruction.k.to_le_bytes();
            [code_low, code_high, instruction.jt, instruction.jf, a, b, c, d]
        });
        instructions.collect()
    }

    /// Reads what [`Filter::to_bytes`] has written; `None` if it has not.
    pub fn from_bytes(bytes: &[u8]) -> Option<Filter> {
        let (instructions @ [_, ..], []) = bytes.as_chunks::<INSTRUCTION>() else { return None };
        let decoded = instructions.iter().map(|[code_low, code_high, jt, jf, a, b, c, d]| sock_filter {
            code: u16::from_le_bytes([*code_low, *code_high]),
            jt: *jt,
            jf: *jf,
            k: u32::from_le_bytes([*a, *b, *c, *d]),
        });
        Some(Filter(decoded.collect()))
    }
}

/// Everything that is refused to commands.
fn table(network: NetworkRule, has_own_ipc: bool) -> Table {
    let mut table = arguments::table(network);
    let shared = if has_own_ipc { &[] } else { SHARED };
    table.extend(REFUSED.iter().chain(shared).map(|number| (*number, Refusal::Always(libc::EPERM))));
    table.extend(UNSEEN.map(|number| (number, Refusal::Always(libc::ENOSYS))));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::arguments::tests::network;
    use crate::confine::program::tests::{call, errno, run};
    use crate::settings::NetworkMode;

    #[test]
    fn the_list_is_refused_and_nothing_beside_it() {
        for (has_own_ipc, number_of_shared) in [(false, errno(libc::EPERM)), (true, libc::SECCOMP_RET_ALLOW)] {
            let mut table = table(network(NetworkMode::Off, false), has_own_ipc);
            table.retain(|_, refusal| matches!(refusal, Refusal::Always(_)));
            let program = program::of(&table);
            for number in 0..1000 {
                let expected = match number {
                    472.. => errno(libc::ENOSYS),
                    number if UNSEEN.contains(&number) => errno(libc::ENOSYS),
                    number if REFUSED.contains(&number) => errno(libc::EPERM),
                    number if SHARED.contains(&number) => number_of_shared,
                    libc::SYS_socket | libc::SYS_bind => errno(libc::EPERM),
                    _ => libc::SECCOMP_RET_ALLOW,
                };
                assert_eq!(run(&program, call(number, [0; 6])), expected, "{number}");
            }
        }
    }

    #[test]
    fn filters_arrive_as_they_were_sent() {
        for (mode, unix) in [(NetworkMode::Off, false), (NetworkMode::On, true)] {
            let filter = Filter(program::of(&table(network(mode, unix), false)));
            let bytes = filter.to_bytes();
            assert_eq!(Filter::from_bytes(&bytes), Some(filter));
            for broken in [&bytes[..3], &[], &bytes[..bytes.len() - 1]] {
                assert_eq!(Filter::from_bytes(broken), None);
            }
        }
    }
}
