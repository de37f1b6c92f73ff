//! The terminal of the process: raw mode, what is written to stderr meanwhile, and putting everything back, however the
//! process ends.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, Once, PoisonError};

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::termios::{OptionalActions, OutputModes, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::frames::Happening;

/// Pasted text arrives in one piece.
const ENTER: &str = "\x1b[?2004h";

/// Ends what may be open: paste mode, a hidden cursor, a style, an unfinished drawing.
const LEAVE: &str = "\x1b[?2004l\x1b[?2026l\x1b[?25h\x1b[0m";

/// A longer line of stderr is shown as several.
const MAX_PRINTED: u64 = 8 << 10;

/// What has to be put back; `None` while the terminal is as it was.
static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

/// Where lines that are written to stderr go while the chat is on the screen.
static PIPE: Mutex<Option<OwnedFd>> = Mutex::new(None);

struct Kept {
    modes: Termios,
    stderr: Option<OwnedFd>,
}

/// Takes the terminal: keys arrive one by one, and stderr goes to the chat. Does nothing if it is taken.
pub fn enter() -> io::Result<()> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let stdin = rustix::stdio::stdin();
    if kept.is_none() {
        let modes = tcgetattr(stdin)?;
        *kept = Some(Kept { modes, stderr: redirect_stderr() });
    }
    // crossterm takes Ctrl-J for Enter unless it has set raw mode itself. What counts is set below, and put back by `leave`.
    crossterm::terminal::enable_raw_mode()?;
    let mut modes = kept.as_ref().expect("kept above").modes.clone();
    modes.make_raw();
    // Line ends keep their meaning for whatever else is written.
    modes.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
    tcsetattr(stdin, OptionalActions::Now, &modes)?;
    leave_at_exit();
    write(ENTER)
}

/// Puts the terminal back. Does nothing if that has been done.
pub fn leave() {
    // Nobody else holds it for long; at exit a thread that died with it must not block.
    let Ok(mut kept) = KEPT.try_lock() else { return };
    let Some(kept) = kept.take() else { return };
    let _ = write(LEAVE);
    // If this fails there is nothing left to do.
    let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &kept.modes);
    if let Some(stderr) = kept.stderr {
        let _ = rustix::stdio::dup2_stderr(&stderr);
    }
}

/// Columns and rows.
pub fn size() -> (u16, u16) {
    let size = tcgetwinsize(rustix::stdio::stdout()).ok();
    let known = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    known.map_or((80, 24), |size| (size.ws_col, size.ws_row))
}

/// Stops the process, and those started with it, as Ctrl-Z does for programs that read lines. Returns when it is
/// continued.
#[allow(unsafe_code, reason = "the stop must take effect in this thread before anything else is drawn")]
pub fn suspend() {
    // SAFETY: no handler is involved: the signal is ignored while others in the process group are sent it, then it has
    // its default action again, and the thread sends it to itself.
    unsafe {
        libc::signal(libc::SIGTSTP, libc::SIG_IGN);
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        libc::signal(libc::SIGTSTP, libc::SIG_DFL);
        libc::raise(libc::SIGTSTP);
    }
}

/// Starts to collect lines that are written to stderr; the thread ends with the process.
pub fn collect_stderr(happenings: Sender<Happening>) -> io::Result<()> {
    let (reader, writer) = rustix::pipe::pipe()?;
    fcntl_setfd(&reader, FdFlags::CLOEXEC)?;
    fcntl_setfd(&writer, FdFlags::CLOEXEC)?;
    *PIPE.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
    std::thread::Builder::new().name("stderr".to_owned()).spawn(move || {
        let mut reader = BufReader::new(File::from(reader));
        let mut line = Vec::new();
        while (&mut reader).take(MAX_PRINTED).read_until(b'\n', &mut line).is_ok_and(|n_bytes| n_bytes > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if happenings.send(Happening::Printed(text)).is_err() {
                break;
            }
            line.clear();
        }
    })?;
    Ok(())
}

/// Points stderr at the chat and returns the one that was there.
fn redirect_stderr() -> Option<OwnedFd> {
    let pipe = PIPE.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3).ok()?;
    rustix::stdio::dup2_stderr(pipe.as_ref()?).ok()?;
    Some(kept)
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Puts the terminal back whoever ends the process: a second signal, the watchdog, a panic.
#[allow(unsafe_code, reason = "nothing safe runs at every exit")]
fn leave_at_exit() {
    extern "C" fn at_exit() {
        leave();
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a plain function that lives as long as the program.
        unsafe { libc::atexit(at_exit) };
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // The session catches panics of its own work; the terminal stays the chat's then.
            if std::thread::current().name() == Some(super::THREAD) {
                leave();
            }
            before(panic);
        }));
    });
}
