//! The channel between pith and a supervisor: frames of one letter and one number.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream as BlockingStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pith_sandbox::confine::Step;
use rustix::process::Pid;
use tokio::net::UnixStream;

use super::exit::Exit;
use super::limits::Exceeded;
use super::{confinement, tree};

const FRAME: usize = 5;

/// An order from pith to a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// SIGTERM to everything that is left, SIGKILL after `grace`.
    End { grace: Duration },
    /// SIGSTOP to everything.
    Freeze,
    /// SIGCONT to everything.
    Thaw,
}

/// A report from a supervisor to pith.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The command could not be started; the system's error number.
    Failed(i32),
    /// The sandbox could not be set up, so the command was not started; the system's error number.
    Unconfined { step: Step, errno: i32 },
    /// The command has exited.
    Exited(Exit),
    /// The command has passed a limit and is being killed.
    Limited(Exceeded),
    /// The command and everything it started have ended.
    Gone,
}

impl Order {
    pub fn encode(self) -> [u8; FRAME] {
        match self {
            Order::End { grace } => frame(b'T', u32::try_from(grace.as_millis()).unwrap_or(u32::MAX)),
            Order::Freeze => frame(b'S', 0),
            Order::Thaw => frame(b'C', 0),
        }
    }

    /// Waits for the next order; `None` when pith has closed the channel.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Order>> {
        let mut bytes = [0; FRAME];
        match from.read_exact(&mut bytes) {
            Ok(()) => Ok(Order::decode(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn decode(bytes: [u8; FRAME]) -> Option<Order> {
        let (letter, number) = parts(bytes);
        match letter {
            b'T' => Some(Order::End { grace: Duration::from_millis(number.into()) }),
            b'S' => Some(Order::Freeze),
            b'C' => Some(Order::Thaw),
            _ => None,
        }
    }
}

impl Report {
    pub fn encode(self) -> [u8; FRAME] {
        match self {
            Report::Failed(errno) => frame(b'F', errno as u32),
            Report::Unconfined { step, errno } => frame(letter_of(step), errno as u32),
            Report::Exited(Exit::Code(code)) => frame(b'E', code as u32),
            Report::Exited(Exit::Signal(number)) => frame(b'K', number as u32),
            Report::Limited(Exceeded::Processes(used)) => frame(b'P', used),
            Report::Limited(Exceeded::Memory(used)) => frame(b'M', used),
            Report::Gone => frame(b'G', 0),
        }
    }

    /// Sends the report; ignored if the other side is gone.
    pub fn send(self, to: &BlockingStream) {
        Report::send_all(&[self], to);
    }

    /// Sends reports that arrive together.
    pub fn send_all(reports: &[Report], mut to: &BlockingStream) {
        let bytes: Vec<u8> = reports.iter().flat_map(|report| report.encode()).collect();
        let _ = to.write_all(&bytes);
    }

    fn decode(bytes: [u8; FRAME]) -> Option<Report> {
        let (letter, number) = parts(bytes);
        match letter {
            b'F' => Some(Report::Failed(number as i32)),
            b'E' => Some(Report::Exited(Exit::Code(number as i32))),
            b'K' => Some(Report::Exited(Exit::Signal(number as i32))),
            b'P' => Some(Report::Limited(Exceeded::Processes(number))),
            b'M' => Some(Report::Limited(Exceeded::Memory(number))),
            b'G' => Some(Report::Gone),
            _ => step_of(letter).map(|step| Report::Unconfined { step, errno: number as i32 }),
        }
    }
}

fn letter_of(step: Step) -> u8 {
    match step {
        Step::Namespaces => b'n',
        Step::Capabilities => b'c',
        Step::Landlock => b'l',
        Step::Seccomp => b's',
    }
}

fn step_of(letter: u8) -> Option<Step> {
    [Step::Namespaces, Step::Capabilities, Step::Landlock, Step::Seccomp]
        .into_iter()
        .find(|step| letter_of(*step) == letter)
}

fn frame(letter: u8, number: u32) -> [u8; FRAME] {
    let [a, b, c, d] = number.to_le_bytes();
    [letter, a, b, c, d]
}

fn parts([letter, a, b, c, d]: [u8; FRAME]) -> (u8, u32) {
    (letter, u32::from_le_bytes([a, b, c, d]))
}

/// Makes one end of a channel readable for the runtime.
pub(super) fn nonblocking(stream: BlockingStream) -> io::Result<UnixStream> {
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// pith's end of the channel. Closing it makes the supervisor end everything.
pub(super) struct Channel {
    stream: UnixStream,
    /// The supervisor process, which is also the id of the session it leads.
    session: Option<Pid>,
    received: Mutex<Received>,
}

/// Why a command did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotStarted {
    Failed(i32),
    Unconfined { step: Step, errno: i32 },
}

impl From<NotStarted> for io::Error {
    fn from(cause: NotStarted) -> io::Error {
        match cause {
            NotStarted::Failed(errno) => io::Error::from_raw_os_error(errno),
            NotStarted::Unconfined { step, errno } => confinement::refusal(step, errno),
        }
    }
}

#[derive(Default)]
struct Received {
    partial: Vec<u8>,
    outcome: Option<Result<Exit, NotStarted>>,
    exceeded: Option<Exceeded>,
    gone: bool,
    closed: bool,
}

impl Channel {
    pub fn new(stream: UnixStream, session: Option<Pid>) -> Self {
        Channel { stream, session, received: Mutex::default() }
    }

    /// Gives the supervisor an order.
    pub fn order(&self, order: Order) {
        // Not through the runtime: until it has looked at the socket, it takes a new one for full. A few bytes never fill
        // it; if it is closed, everything has ended already.
        let _ = rustix::io::write(&self.stream, &order.encode());
    }

    /// Ends everything below the supervisor.
    pub fn end(&self, grace: Duration) {
        self.order(Order::End { grace });
    }

    /// Returns the limit that the command has passed, if it has.
    pub fn exceeded(&self) -> Option<Exceeded> {
        self.receive();
        self.received().exceeded
    }

    /// Waits for the end of the command.
    pub async fn exited(&self) -> io::Result<Exit> {
        loop {
            // A report may arrive with the end, so the end is checked before the outcome.
            let is_over = self.is_over();
            if let Some(outcome) = self.received().outcome {
                return outcome.map_err(io::Error::from);
            }
            if is_over {
                return Err(io::Error::other("the supervisor of the command was killed"));
            }
            self.wait_readable().await;
        }
    }

    /// Waits until nothing of the command is left.
    pub async fn gone(&self) {
        while !self.is_over() {
            self.wait_readable().await;
        }
    }

    /// Returns whether the command has exited, whatever it left running.
    pub fn has_exited(&self) -> bool {
        self.receive();
        self.received().outcome.is_some()
    }

    /// Returns whether nothing of the command is left, without waiting.
    pub fn is_over(&self) -> bool {
        self.receive();
        let received = self.received();
        received.gone || received.closed
    }

    async fn wait_readable(&self) {
        // An error means that the channel is closed, which `receive` notices.
        let _ = self.stream.readable().await;
        self.receive();
    }

    fn receive(&self) {
        let mut received = self.received();
        let mut bytes = [0; 64];
        while !received.closed {
            match self.stream.try_read(&mut bytes) {
                Ok(0) => received.closed = true,
                Ok(n) => received.take(&bytes[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => received.closed = true,
            }
            // The supervisor itself was killed; processes in its session can still be found.
            if let (true, false, Some(session)) = (received.closed, received.gone, self.session) {
                tree::kill_session(session);
            }
        }
    }

    fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Received {
    fn take(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        while let Some((frame, rest)) = self.partial.split_first_chunk::<FRAME>() {
            match Report::decode(*frame) {
                Some(Report::Failed(errno)) => self.outcome = Some(Err(NotStarted::Failed(errno))),
                Some(Report::Unconfined { step, errno }) => {
                    self.outcome = Some(Err(NotStarted::Unconfined { step, errno }));
                }
                Some(Report::Exited(exit)) => self.outcome = Some(Ok(exit)),
                Some(Report::Limited(exceeded)) => self.exceeded = Some(exceeded),
                Some(Report::Gone) => self.gone = true,
                None => {}
            }
            self.partial = rest.to_vec();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_decode_to_what_was_encoded() {
        let ends = [Order::End { grace: Duration::ZERO }, Order::End { grace: Duration::from_millis(500) }];
        for order in ends.into_iter().chain([Order::Freeze, Order::Thaw]) {
            assert_eq!(Order::read(&mut order.encode().as_slice()).unwrap(), Some(order));
        }
        let unconfined = Report::Unconfined { step: Step::Landlock, errno: 1 };
        let limited = [Exceeded::Processes(7), Exceeded::Memory(8)].map(Report::Limited);
        for report in limited {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
        let exits = [Exit::Code(137), Exit::Code(0), Exit::Signal(9)].map(Report::Exited);
        for report in [unconfined, Report::Failed(2), Report::Gone].into_iter().chain(exits) {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
        assert_eq!(Order::read(&mut [].as_slice()).unwrap(), None);
    }

    #[test]
    fn reports_may_arrive_in_any_pieces() {
        let bytes = [Report::Exited(Exit::Code(3)).encode(), Report::Gone.encode()].concat();
        for cut in 0..bytes.len() {
            let mut received = Received::default();
            received.take(&bytes[..cut]);
            received.take(&bytes[cut..]);
            assert!(received.outcome == Some(Ok(Exit::Code(3))) && received.gone, "cut at {cut}");
        }
    }
}
