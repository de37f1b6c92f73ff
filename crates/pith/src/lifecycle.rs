//! How the process ends: for which reason, with which code, and within bounds.
//! Commands need no farewell here: their supervisors notice that pith is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Nothing may keep the process longer than this once it should end.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

/// The exit code after an interrupt.
pub const INTERRUPTED: i32 = 130;

/// A signal that ends the process, with its exit code.
type EndingSignal = (fn() -> SignalKind, i32);

/// All of them.
const SIGNALS: [EndingSignal; 3] =
    [(SignalKind::terminate, 143), (SignalKind::interrupt, INTERRUPTED), (SignalKind::hangup, 129)];

/// Makes a write beyond the file size limit (`ulimit -f`) fail like a write to a full disk, where the kernel would
/// otherwise end the process with SIGXFSZ.
#[allow(unsafe_code, reason = "rustix and tokio have no safe name for it outside of a runtime")]
pub fn outlive_file_size_limit() {
    // A handler instead of `SIG_IGN`: programs that pith starts get the default back with it.
    extern "C" fn write_fails(_signal: libc::c_int) {}
    let handler = write_fails as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does nothing, so it may run at any moment, and the signal number is valid.
    let before = unsafe { libc::signal(libc::SIGXFSZ, handler) };
    if before == libc::SIG_IGN {
        // Whoever started pith wants it ignored, by programs that pith starts too.
        // SAFETY: this puts the disposition back that the process was started with.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    }
}

/// Decides the exit code and fires the stop token.
#[derive(Clone, Default)]
pub struct Ending {
    /// Ends the session; fired once.
    pub stop: CancellationToken,
    code: Arc<AtomicI32>,
}

impl Ending {
    /// The host has closed its end of stdout.
    pub fn host_gone(&self) {
        self.end(1);
    }

    /// An extension may have said with which status the process is to end.
    pub fn asked_for(&self, status: Option<u8>) {
        if let Some(status) = status {
            self.end(i32::from(status));
        }
    }

    /// The code to leave with.
    pub fn code(&self) -> i32 {
        self.code.load(Ordering::Acquire)
    }

    /// The first reason to end decides the code.
    fn end(&self, code: i32) {
        if !self.stop.is_cancelled() {
            self.code.store(code, Ordering::Release);
            self.stop.cancel();
        }
    }

    /// Turns signals into an orderly end; a second one ends the process at once.
    pub fn watch_signals(&self) {
        self.watch(&SIGNALS);
    }

    /// The same for all signals but the interrupt, which means something else to whoever calls this.
    pub fn watch_all_but_interrupt(&self) {
        let others: Vec<_> = SIGNALS.into_iter().filter(|(_, code)| *code != INTERRUPTED).collect();
        self.watch(&others);
    }

    fn watch(&self, signals: &[EndingSignal]) {
        for &(kind, code) in signals {
            // A signal that cannot be caught keeps its default, which also ends the process.
            let Ok(mut stream) = signal(kind()) else { continue };
            let ending = self.clone();
            tokio::spawn(async move {
                while stream.recv().await.is_some() {
                    if ending.stop.is_cancelled() {
                        std::process::exit(code);
                    }
                    ending.end(code);
                }
            });
        }
    }

    /// Starts the limit once something asked for the end.
    pub async fn limit_when_stopped(self) {
        self.stop.cancelled().await;
        self.limit();
    }

    /// Makes sure that the end comes, whatever hangs.
    pub fn limit(&self) {
        let ending = self.clone();
        let watchdog = move || {
            std::thread::sleep(SHUTDOWN_LIMIT);
            std::process::exit(ending.code());
        };
        // Without a thread there is only no watchdog.
        let _ = std::thread::Builder::new().name("shutdown".to_owned()).spawn(watchdog);
    }
}
