//! How the process ends: for which reason, with which exit code, and within a time limit. Commands need no signal here:
//! their supervisors notice that pith is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use pith_config::Environment;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The process ends at the latest this long after it should.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

/// The exit code after an interrupt.
pub const INTERRUPTED: i32 = 130;

/// The exit code after a hangup.
const HUNG_UP: i32 = 129;

/// A signal that ends the process, with its exit code.
type EndingSignal = (fn() -> SignalKind, i32);

/// All ending signals.
const SIGNALS: [EndingSignal; 3] =
    [(SignalKind::terminate, 143), (SignalKind::interrupt, INTERRUPTED), (SignalKind::hangup, HUNG_UP)];

/// Makes a write beyond the file size limit (`ulimit -f`) fail like a write to a full disk; otherwise the kernel would
/// kill the process with SIGXFSZ.
#[allow(unsafe_code, reason = "rustix and tokio have no safe name for it outside of a runtime")]
pub fn outlive_file_size_limit() {
    // A handler instead of `SIG_IGN`: programs that pith starts get the default action.
    extern "C" fn write_fails(_signal: libc::c_int) {}
    let handler = write_fails as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does nothing, so it may run at any moment, and the signal number is valid.
    let before = unsafe { libc::signal(libc::SIGXFSZ, handler) };
    if before == libc::SIG_IGN {
        // The parent process wants it ignored, also by programs that pith starts.
        // SAFETY: this puts the disposition back that the process was started with.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    }
}

/// Makes memory and environment of this process unreadable for others of the same user, who would find keys there. What
/// it starts is not concerned. `PITH_DUMPABLE=1` leaves it open, for debuggers and core dumps.
#[cfg(target_os = "linux")]
pub fn close_memory(environment: &Environment) {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if environment.get("PITH_DUMPABLE").as_deref() != Some("1") {
        // A kernel that does not know it leaves everything as it was.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Only Linux has a way to do this.
#[cfg(not(target_os = "linux"))]
pub fn close_memory(_environment: &Environment) {}

/// Decides the exit code and fires the stop token.
#[derive(Clone, Default)]
pub struct Ending {
    /// Ends the session; fired once.
    pub stop: CancellationToken,
    code: Arc<AtomicI32>,
}

impl Ending {
    /// Called when the host has closed its end of stdout.
    pub fn host_gone(&self) {
        self.end(1);
    }

    /// Called with the exit status that an extension asked for, if any.
    pub fn end_with(&self, status: Option<u8>) {
        if let Some(status) = status {
            self.end(i32::from(status));
        }
    }

    /// The exit code.
    pub fn code(&self) -> i32 {
        self.code.load(Ordering::Acquire)
    }

    /// Ends the process; the first reason decides the exit code.
    fn end(&self, code: i32) {
        if !self.stop.is_cancelled() {
            self.code.store(code, Ordering::Release);
            self.stop.cancel();
        }
    }

    /// Ends the process in order on the first signal, at once on a second one. A hangup is never the second one: a window
    /// that is closed sends several, by the kernel, the shell and whatever was around it.
    pub fn watch_signals(&self) {
        self.watch(&SIGNALS);
    }

    /// Like [`Self::watch_signals`], but without the interrupt, which the chat handles itself.
    pub fn watch_all_but_interrupt(&self) {
        let others: Vec<_> = SIGNALS.into_iter().filter(|(_, code)| *code != INTERRUPTED).collect();
        self.watch(&others);
    }

    fn watch(&self, signals: &[EndingSignal]) {
        for &(kind, code) in signals {
            // A signal that cannot be caught keeps its default action, which also ends the process.
            let Ok(mut stream) = signal(kind()) else { continue };
            let ending = self.clone();
            tokio::spawn(async move {
                while stream.recv().await.is_some() {
                    if !ending.stop.is_cancelled() {
                        ending.end(code);
                    } else if code != HUNG_UP {
                        std::process::exit(code);
                    }
                }
            });
        }
    }

    /// Starts the time limit once something has asked for the end.
    pub async fn limit_when_stopped(self) {
        self.stop.cancelled().await;
        self.limit();
    }

    /// Ends the process after [`SHUTDOWN_LIMIT`], whatever hangs.
    pub fn limit(&self) {
        let ending = self.clone();
        let watchdog = move || {
            std::thread::sleep(SHUTDOWN_LIMIT);
            std::process::exit(ending.code());
        };
        // If no thread can be started there is no watchdog.
        let _ = std::thread::Builder::new().name("shutdown".to_owned()).spawn(watchdog);
    }
}
