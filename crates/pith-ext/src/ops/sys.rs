//! Signals by name.

use rustix::process::Signal;

/// Returns the signal of a name such as `SIGTERM`.
pub fn signal(name: &str) -> Option<Signal> {
    Some(match name.strip_prefix("SIG").unwrap_or(name) {
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "QUIT" => Signal::QUIT,
        "ABRT" => Signal::ABORT,
        "KILL" => Signal::KILL,
        "USR1" => Signal::USR1,
        "USR2" => Signal::USR2,
        "PIPE" => Signal::PIPE,
        "ALRM" => Signal::ALARM,
        "TERM" => Signal::TERM,
        "CHLD" => Signal::CHILD,
        "CONT" => Signal::CONT,
        "STOP" => Signal::STOP,
        "TSTP" => Signal::TSTP,
        "WINCH" => Signal::WINCH,
        _ => return None,
    })
}

/// Returns the name of a signal number.
pub fn signal_name(number: i32) -> String {
    let names = ["HUP", "INT", "QUIT", "ABRT", "KILL", "USR1", "USR2", "PIPE", "ALRM", "TERM", "CHLD", "CONT", "STOP"];
    let known = names.into_iter().find(|name| signal(name).is_some_and(|found| found.as_raw() == number));
    match (known, number) {
        (Some(name), _) => format!("SIG{name}"),
        (None, 11) => "SIGSEGV".to_owned(),
        (None, 4) => "SIGILL".to_owned(),
        (None, 8) => "SIGFPE".to_owned(),
        (None, 7) => "SIGBUS".to_owned(),
        (None, other) => format!("SIG{other}"),
    }
}
