//! Reads stdin on a thread of its own. Decodes, decides nothing: bad lines
//! travel the same way as good ones, so answers leave in the order lines came.

use std::io::{self, Read};

use pith_protocol::inbound::{Inbound, announces_ui, decode, too_long};
use tokio::sync::mpsc;

use super::lines::{Line, LineSplitter};

/// Lines decoded ahead of the session.
const BACKLOG: usize = 64;
const CHUNK: usize = 64 * 1024;

/// Starts reading. The channel closes at end of input.
pub fn start(max_line: usize) -> io::Result<mpsc::Receiver<Inbound>> {
    let (inbox, lines) = mpsc::channel(BACKLOG);
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || read(io::stdin().lock(), max_line, &inbox))?;
    Ok(lines)
}

fn read(mut input: impl Read, max_line: usize, inbox: &mpsc::Sender<Inbound>) {
    let mut splitter = LineSplitter::new(max_line);
    let mut is_first = true;
    let mut take = |line: Line<'_>| {
        if std::mem::take(&mut is_first) && matches!(line, Line::Whole(bytes) if announces_ui(bytes)) {
            let _ = inbox.blocking_send(Inbound::UiAnnounced);
        }
        let inbound = match line {
            Line::Whole(bytes) => decode(bytes),
            Line::TooLong => Some(too_long(max_line)),
        };
        if let Some(inbound) = inbound {
            // A closed inbox means the session has ended; what is still read is read in vain.
            let _ = inbox.blocking_send(inbound);
        }
    };
    let mut chunk = vec![0; CHUNK];
    loop {
        match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(n_bytes) => splitter.push(&chunk[..n_bytes], &mut take),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    splitter.finish(&mut take);
}
