//! The system calls that confined commands are refused for what they ask: to reach a process, a terminal or a socket
//! outside, or to leave a program that runs as somebody else.

use super::program::{Case, Refusal, Table, Test};
use crate::policy::NetworkRule;
use Test::{HasAny, Is, IsGiven, IsNot, MaskedIs, MaskedIsNot};

const CLONE_NEWUSER: u32 = 0x1000_0000;
/// `chmod` that takes flags (Linux 6.6); the library does not name it everywhere.
const FCHMODAT2: libc::c_long = 452;

/// The requests that reach beyond the process that makes them: keys pushed into a terminal, the screen of the machine,
/// a terminal kept for oneself, its messages taken, everybody sent away from it, and what the kernel takes it for.
const TERMINAL_REQUESTS: [u32; 6] = [0x5412, 0x541C, 0x540C, 0x541D, 0x5437, 0x5423];

/// Set-user-id and set-group-id.
const RUNS_AS_OTHERS: u32 = 0o6000;
const O_CREAT: u32 = libc::O_CREAT.unsigned_abs();
/// What `O_TMPFILE` has beside `O_DIRECTORY`.
const O_TMPFILE: u32 = 0o20_000_000;

const F_SETLEASE: u32 = 1024;
/// A lease on a directory (Linux 6.19).
const F_SETDELEG: u32 = 1040;

/// Of `setpriority` and `ioprio_set`: what is named is a process.
const PRIO_PROCESS: u32 = 0;
const IOPRIO_WHO_PROCESS: u32 = 1;
/// The caller itself, where a process is named.
const ITSELF: u32 = 0;

/// The low bits of a socket's type; the others are flags.
const SOCKET_TYPE: u32 = 0xF;

/// What is refused for its arguments.
pub(super) fn table(network: NetworkRule) -> Table {
    let new_user_namespace = || vec![HasAny(0, CLONE_NEWUSER)];
    let mut table: Table = [
        (libc::SYS_unshare, vec![new_user_namespace()]),
        (libc::SYS_clone, vec![new_user_namespace()]),
        (libc::SYS_ioctl, TERMINAL_REQUESTS.map(|request| vec![Is(1, request)]).into()),
        // A lease on a file that can be read keeps others from writing it.
        (libc::SYS_fcntl, [F_SETLEASE, F_SETDELEG].map(|command| vec![Is(1, command)]).into()),
        (libc::SYS_socketpair, pairs(network)),
    ]
    .map(|(number, cases)| (number, Refusal::If(cases)))
    .into();
    table.extend(processes().map(|(number, cases)| (number, Refusal::If(cases))));
    table.extend(modes().map(|(number, cases)| (number, Refusal::If(cases))));
    table.insert(libc::SYS_socket, sockets(network));
    if !network.has_internet_sockets() && !network.unix {
        // What a pair of sockets has no use for: a name.
        table.insert(libc::SYS_bind, Refusal::Always(libc::EPERM));
    }
    table
}

/// Calls that change how a process is served. Landlock is not asked about them, and a filter does not know whose process
/// a number is, so they are for the caller itself.
fn processes() -> impl Iterator<Item = (libc::c_long, Vec<Case>)> {
    let of_another = |number| (number, vec![vec![IsNot(0, ITSELF)]]);
    let scheduling =
        [libc::SYS_sched_setaffinity, libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setattr];
    scheduling.map(of_another).into_iter().chain([
        // Limits of others may be asked for.
        (libc::SYS_prlimit64, vec![vec![IsNot(0, ITSELF), IsGiven(2)]]),
        (libc::SYS_setpriority, vec![vec![IsNot(0, PRIO_PROCESS)], vec![IsNot(1, ITSELF)]]),
        (libc::SYS_ioprio_set, vec![vec![IsNot(0, IOPRIO_WHO_PROCESS)], vec![IsNot(1, ITSELF)]]),
    ])
}

/// Calls that give a file a mode. A mode means something only where a file is made; elsewhere the argument is what
/// happens to be there.
fn modes() -> impl Iterator<Item = (libc::c_long, Vec<Case>)> {
    let given = |position| vec![vec![HasAny(position, RUNS_AS_OTHERS)]];
    let made =
        |flags, mode| [O_CREAT, O_TMPFILE].map(|flag| vec![HasAny(flags, flag), HasAny(mode, RUNS_AS_OTHERS)]).into();
    let all = [
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, given(1)),
        (libc::SYS_fchmod, given(1)),
        (libc::SYS_fchmodat, given(2)),
        (FCHMODAT2, given(2)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, given(1)),
        (libc::SYS_mknodat, given(2)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_creat, given(1)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, made(1, 2)),
        (libc::SYS_openat, made(2, 3)),
    ];
    all.into_iter()
}

/// Which sockets cannot be made.
fn sockets(network: NetworkRule) -> Refusal {
    let mut allowed = Vec::new();
    if network.has_internet_sockets() {
        allowed.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    if network.unix {
        allowed.push(libc::AF_UNIX);
    }
    if allowed.is_empty() {
        return Refusal::Always(libc::EPERM);
    }
    let mut refused = vec![allowed.iter().map(|family| IsNot(0, family.unsigned_abs())).collect()];
    if network.has_internet_sockets() {
        let raw = libc::SOCK_RAW.unsigned_abs();
        for internet in [libc::AF_INET, libc::AF_INET6] {
            refused.push(vec![Is(0, internet.unsigned_abs()), MaskedIs(1, SOCKET_TYPE, raw)]);
        }
        let routes = libc::NETLINK_ROUTE.unsigned_abs();
        refused.push(vec![Is(0, libc::AF_NETLINK.unsigned_abs()), IsNot(2, routes)]);
    }
    Refusal::If(refused)
}

/// Which pairs of sockets cannot be made. One of datagrams, which raw ones are too, sends to whatever has a name.
fn pairs(network: NetworkRule) -> Vec<Case> {
    let mut refused = vec![vec![IsNot(0, libc::AF_UNIX.unsigned_abs())]];
    if !network.unix {
        let connected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET];
        refused.push(connected.map(|kind| MaskedIsNot(1, SOCKET_TYPE, kind.unsigned_abs())).into());
    }
    refused
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::confine::program::tests::{call, errno, run};
    use crate::confine::program::{self};
    use crate::settings::NetworkMode;

    pub fn network(mode: NetworkMode, unix: bool) -> NetworkRule {
        NetworkRule { mode, unix, local: false }
    }

    /// Holds calls, by their first arguments, against a filter.
    fn check(network: NetworkRule, is_refused: bool, calls: &[(libc::c_long, &[i64])]) {
        let program = program::of(&table(network));
        let expected = if is_refused { errno(libc::EPERM) } else { libc::SECCOMP_RET_ALLOW };
        for (number, given) in calls {
            let arguments =
                std::array::from_fn(|position| given.get(position).map_or(0o6000, |value| value.cast_unsigned()));
            assert_eq!(run(&program, call(*number, arguments)), expected, "{number} {given:?}");
        }
    }

    const OFF: NetworkRule = NetworkRule { mode: NetworkMode::Off, unix: false, local: false };
    const CREATES: i64 = libc::O_CREAT as i64 | libc::O_WRONLY as i64;
    const CLOSES_ON_EXEC: i64 = libc::SOCK_CLOEXEC as i64;

    #[test]
    fn processes_are_named_by_nobody_but_themselves() {
        let pointer = 1 << 40;
        check(
            OFF,
            true,
            &[
                (libc::SYS_prlimit64, &[77, 0, pointer]),
                (libc::SYS_prlimit64, &[77, 0, 8]),
                (libc::SYS_setpriority, &[0, 77]),
                (libc::SYS_setpriority, &[1, 0]),
                // Everything of the user.
                (libc::SYS_setpriority, &[2, 0]),
                (libc::SYS_ioprio_set, &[1, 77]),
                (libc::SYS_ioprio_set, &[2, 0]),
                (libc::SYS_ioprio_set, &[3, 0]),
                (libc::SYS_sched_setaffinity, &[77]),
                (libc::SYS_sched_setscheduler, &[77]),
                (libc::SYS_sched_setparam, &[77]),
                (libc::SYS_sched_setattr, &[77]),
            ],
        );
        check(
            OFF,
            false,
            &[
                (libc::SYS_prlimit64, &[0, 0, pointer]),
                (libc::SYS_prlimit64, &[77, 0, 0, pointer]),
                (libc::SYS_setpriority, &[0, 0]),
                // The kernel takes 32 bits of a number.
                (libc::SYS_setpriority, &[0, 1 << 32]),
                (libc::SYS_ioprio_set, &[1, 0]),
                (libc::SYS_sched_setaffinity, &[0]),
                (libc::SYS_getpriority, &[0, 77]),
                (libc::SYS_sched_getaffinity, &[77]),
            ],
        );
    }

    #[test]
    fn no_mode_makes_a_program_run_as_somebody_else() {
        for mode in [0o4755, 0o2755, 0o6000, 0o104_755, -1] {
            check(
                OFF,
                true,
                &[
                    #[cfg(target_arch = "x86_64")]
                    (libc::SYS_chmod, &[0, mode]),
                    (libc::SYS_fchmod, &[0, mode]),
                    (libc::SYS_fchmodat, &[0, 0, mode]),
                    (FCHMODAT2, &[0, 0, mode]),
                    #[cfg(target_arch = "x86_64")]
                    (libc::SYS_mknod, &[0, mode]),
                    (libc::SYS_mknodat, &[0, 0, mode]),
                    #[cfg(target_arch = "x86_64")]
                    (libc::SYS_creat, &[0, mode]),
                    #[cfg(target_arch = "x86_64")]
                    (libc::SYS_open, &[0, CREATES, mode]),
                    (libc::SYS_openat, &[0, 0, CREATES, mode]),
                    (libc::SYS_openat, &[0, 0, i64::from(libc::O_TMPFILE), mode]),
                ],
            );
        }
        check(
            OFF,
            false,
            &[
                (libc::SYS_fchmod, &[0, 0o1777]),
                (libc::SYS_fchmodat, &[0, 0, 0o755]),
                (libc::SYS_openat, &[0, 0, CREATES, 0o1777]),
                (libc::SYS_openat, &[0, 0, i64::from(libc::O_RDONLY | libc::O_DIRECTORY), 0o6755]),
            ],
        );
    }

    #[test]
    fn a_pair_of_sockets_sends_to_itself() {
        let (unix, stream, packets) =
            (libc::AF_UNIX.into(), i64::from(libc::SOCK_STREAM), i64::from(libc::SOCK_SEQPACKET));
        let (datagrams, raw) = (libc::SOCK_DGRAM.into(), libc::SOCK_RAW.into());
        for open in [OFF, network(NetworkMode::On, false)] {
            check(
                open,
                true,
                &[
                    (libc::SYS_socketpair, &[unix, datagrams]),
                    (libc::SYS_socketpair, &[unix, raw]),
                    (libc::SYS_socketpair, &[unix, i64::from(libc::SOCK_DGRAM) | CLOSES_ON_EXEC]),
                    (libc::SYS_socketpair, &[30, stream]),
                ],
            );
            check(
                open,
                false,
                &[(libc::SYS_socketpair, &[unix, stream]), (libc::SYS_socketpair, &[unix, packets | CLOSES_ON_EXEC])],
            );
        }
        check(OFF, true, &[(libc::SYS_bind, &[3])]);
        check(network(NetworkMode::On, false), false, &[(libc::SYS_bind, &[3])]);
        check(network(NetworkMode::Off, true), false, &[(libc::SYS_socketpair, &[unix, datagrams])]);
    }
}
