//! Reads the input of a protocol on a thread of its own. Decodes, but decides nothing: bad lines take the same path as
//! good ones, so answers are sent in the order of the lines. If a host sends commands without reading, no more commands
//! are read before their answers fill the memory.

use std::cell::Cell;
use std::io::{self, Read};

use pith_protocol::inbound::{Announcement, Inbound, decode, too_long};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;

use super::Line;
use super::lines::LineSplitter;
use super::writer::Backpressure;
use crate::debug;

/// How many lines are decoded ahead of the session.
const BACKLOG: usize = 64;
const CHUNK: usize = 64 * 1024;

/// Starts reading stdin. The channel closes at the end of input. It waits for a `host` that does not read.
pub fn start(max_line: usize, host: Backpressure) -> io::Result<mpsc::Receiver<Inbound>> {
    start_on(io::stdin(), max_line, host, has_hung_up)
}

/// Like [`start`], for another protocol: `decode` turns a line into a frame, `None` for a blank one.
pub fn start_decoding<T: Send + 'static>(
    max_line: usize,
    host: Backpressure,
    decode: impl Fn(Line<'_>) -> Option<T> + Send + 'static,
) -> io::Result<mpsc::Receiver<T>> {
    spawn(io::stdin(), max_line, host, has_hung_up, move |line, send| {
        if let Some(frame) = decode(line) {
            send(frame);
        }
    })
}

/// Like [`start`], for any input. `has_hung_up` returns whether the other end of it is closed.
pub fn start_on(
    input: impl Read + Send + 'static,
    max_line: usize,
    host: Backpressure,
    has_hung_up: fn() -> bool,
) -> io::Result<mpsc::Receiver<Inbound>> {
    let mut is_first = true;
    spawn(input, max_line, host, has_hung_up, move |line, send| {
        if std::mem::take(&mut is_first)
            && let Line::Whole(bytes) = line
            && let Some(announced) = Announcement::read(bytes)
        {
            send(Inbound::Announced(announced));
        }
        let inbound = match line {
            Line::Whole(bytes) => decode(bytes),
            Line::TooLong => Some(too_long(max_line)),
        };
        if let Some(inbound) = inbound {
            send(inbound);
        }
    })
}

/// Starts the thread that reads. `take` decodes a line and passes on what it found.
fn spawn<T: Send + 'static>(
    input: impl Read + Send + 'static,
    max_line: usize,
    host: Backpressure,
    has_hung_up: fn() -> bool,
    take: impl FnMut(Line<'_>, &mut dyn FnMut(T)) + Send + 'static,
) -> io::Result<mpsc::Receiver<T>> {
    let (inbox, lines) = mpsc::channel(BACKLOG);
    let send = move |inbound| {
        let is_backlogged = || inbox.capacity() < inbox.max_capacity() && !inbox.is_closed();
        let is_wanted = host.wait(is_backlogged, has_hung_up);
        // A closed inbox means that the session has ended.
        is_wanted && inbox.blocking_send(inbound).is_ok()
    };
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || read(input, max_line, send, take))?;
    Ok(lines)
}

/// Whether the other end of stdin is closed; there may still be data to read.
fn has_hung_up() -> bool {
    let stdin = rustix::stdio::stdin();
    // A half-closed socket must be asked for; where that is not possible, only a full close is noticed.
    let half_close = if cfg!(target_os = "linux") { PollFlags::RDHUP } else { PollFlags::empty() };
    let mut ends = [PollFd::new(&stdin, half_close)];
    poll(&mut ends, Some(&Timespec::default())).is_ok_and(|n_ready| n_ready > 0)
}

/// Reads until the end of input, or until `send` returns false.
fn read<T>(
    mut input: impl Read,
    max_line: usize,
    send: impl Fn(T) -> bool,
    mut take: impl FnMut(Line<'_>, &mut dyn FnMut(T)),
) {
    let mut splitter = LineSplitter::new(max_line);
    let is_over = Cell::new(false);
    let mut take = |line: Line<'_>| {
        if !is_over.get() {
            debug::line_in(&line);
            take(line, &mut |frame| is_over.set(is_over.get() || !send(frame)));
        }
    };
    let mut chunk = vec![0; CHUNK];
    while !is_over.get() {
        match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(n_bytes) => splitter.push(&chunk[..n_bytes], &mut take),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    splitter.finish(&mut take);
}
