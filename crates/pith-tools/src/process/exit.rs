//! How a command came to its end.

use rustix::process::Signal;

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It has returned this code.
    Code(i32),
    /// The signal of this number has ended it.
    Signal(i32),
}

/// Names of the signals that may end a command; rustix has none.
const NAMES: [(Signal, &str); 18] = [
    (Signal::HUP, "SIGHUP"),
    (Signal::INT, "SIGINT"),
    (Signal::QUIT, "SIGQUIT"),
    (Signal::ILL, "SIGILL"),
    (Signal::TRAP, "SIGTRAP"),
    (Signal::ABORT, "SIGABRT"),
    (Signal::BUS, "SIGBUS"),
    (Signal::FPE, "SIGFPE"),
    (Signal::KILL, "SIGKILL"),
    (Signal::USR1, "SIGUSR1"),
    (Signal::SEGV, "SIGSEGV"),
    (Signal::USR2, "SIGUSR2"),
    (Signal::PIPE, "SIGPIPE"),
    (Signal::ALARM, "SIGALRM"),
    (Signal::TERM, "SIGTERM"),
    (Signal::XCPU, "SIGXCPU"),
    (Signal::XFSZ, "SIGXFSZ"),
    (Signal::SYS, "SIGSYS"),
];

impl Exit {
    /// Returns the exit code as shells tell it: 128 plus the signal number if a signal ended the command.
    pub fn code(self) -> i32 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(number) => 128 + number,
        }
    }

    /// Returns the name of the signal that ended the command.
    pub fn signal(self) -> Option<String> {
        let Exit::Signal(number) = self else { return None };
        let named = NAMES.iter().find(|(signal, _)| signal.as_raw() == number);
        Some(named.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned()))
    }
}
