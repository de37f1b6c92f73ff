//! One client connection: reads requests and plays the answers selected for them.

use std::io::{self, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use serde_json::{Map, Value, json};

use super::http::{self, Incoming};
use super::log::{Log, Outcome, Request};
use super::play::ScriptPlayer;
use super::script::{Fault, Turn};
use super::wire::Api;

/// How often a held answer checks whether it may continue.
const HOLD_TICK: Duration = Duration::from_millis(5);

pub(super) struct Connection {
    /// The only strong handle: dropping it closes the socket.
    stream: Arc<TcpStream>,
    log: Arc<Log>,
}

/// Whether the connection can take another request.
enum Next {
    Keep,
    Close,
}

impl Connection {
    pub(super) fn new(stream: Arc<TcpStream>, log: Arc<Log>) -> Self {
        Connection { stream, log }
    }

    /// Serves until the client or a fault ends the connection.
    pub(super) fn serve(self, play: &std::sync::Mutex<ScriptPlayer>) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        let mut reader = BufReader::with_capacity(1 << 16, &*self.stream);
        while let Some(incoming) = http::read(&mut reader)? {
            let body = serde_json::from_slice(&incoming.body)
                .unwrap_or_else(|_| json!({"unparsed": String::from_utf8_lossy(&incoming.body)}));
            let api = Api::of_path(&incoming.path).filter(|_| incoming.method == "POST");
            let Some(api) = api else {
                self.log.add_other(request(incoming, body, None, "none"));
                http::write_json(&mut &*self.stream, 404, &json!({"error": {"message": "not found"}}), &Map::new())?;
                continue;
            };
            let conversation = conversation(&incoming.path);
            let choice = play.lock().expect("choosing does not panic").choose(&conversation, &body);
            let index = self.log.add(request(incoming, body, Some(api), &choice.route));
            let answered = self.answer(index, &choice.turn, api);
            let outcome = answered.as_ref().map_or(Outcome::ClientClosed, |(_, outcome)| *outcome);
            self.log.finish(index, outcome);
            match answered? {
                (Next::Keep, _) => {}
                (Next::Close, _) => break,
            }
        }
        Ok(())
    }

    fn answer(&self, index: usize, turn: &Turn, api: Api) -> io::Result<(Next, Outcome)> {
        self.pause(Duration::from_millis(turn.first_byte_ms))?;
        if let Some(Fault::Http { status, body, headers }) = &turn.fault {
            http::write_json(&mut &*self.stream, *status, body, headers)?;
            return Ok((Next::Keep, Outcome::Sent));
        }
        (&*self.stream).write_all(http::STREAM_HEAD)?;
        self.events(index, turn, api)?;
        match turn.fault {
            Some(Fault::Hang { seconds, .. }) => {
                self.pause(Duration::from_secs_f64(seconds))?;
                Ok((Next::Close, Outcome::HangOver))
            }
            Some(Fault::Reset { .. }) => {
                // Closing with a linger time of zero sends a reset instead of an end.
                sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO))?;
                Ok((Next::Close, Outcome::Broken))
            }
            Some(Fault::Cut { .. }) => Ok((Next::Close, Outcome::Broken)),
            _ => {
                (&*self.stream).write_all(http::STREAM_END)?;
                Ok((Next::Keep, Outcome::Sent))
            }
        }
    }

    fn events(&self, index: usize, turn: &Turn, api: Api) -> io::Result<()> {
        let rendered = turn.render(api);
        let delay = Duration::from_millis(turn.delay_ms);
        let mut hold = turn.hold_after;
        if delay.is_zero() && hold.is_none() {
            return (&*self.stream).write_all(&rendered.bytes);
        }
        let (mut start, mut n_deltas) = (0, 0);
        for (end, is_delta) in &rendered.events {
            // Not after the end of the last block: the client would go on.
            if (*is_delta || n_deltas > 0) && hold == Some(n_deltas) {
                self.hold(index)?;
                hold = None;
            }
            if *is_delta {
                self.pause(delay)?;
                n_deltas += 1;
            }
            (&*self.stream).write_all(&rendered.bytes[start..*end])?;
            start = *end;
        }
        if hold.is_some() { self.hold(index) } else { Ok(()) }
    }

    /// Waits until the test releases the answer.
    fn hold(&self, index: usize) -> io::Result<()> {
        self.log.mark_held(index);
        while !self.log.is_released(index) {
            self.pause(HOLD_TICK)?;
        }
        Ok(())
    }

    /// Pauses; fails as soon as the client hangs up.
    fn pause(&self, pause: Duration) -> io::Result<()> {
        let deadline = Instant::now() + pause;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.stream.set_read_timeout(Some(left))?;
            let seen = self.stream.peek(&mut [0]);
            self.stream.set_read_timeout(None)?;
            match seen {
                Ok(0) => return Err(io::ErrorKind::ConnectionAborted.into()),
                // The next request came early; the client is still there.
                Ok(_) => std::thread::sleep(left),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn request(incoming: Incoming, body: Value, api: Option<Api>, route: &str) -> Request {
    Request {
        method: incoming.method,
        path: incoming.path,
        query: incoming.query,
        headers: incoming.headers,
        body,
        api,
        route: route.to_owned(),
    }
}

/// `/c/<name>/…` separates conversations on one server.
fn conversation(path: &str) -> String {
    path.strip_prefix("/c/").and_then(|rest| rest.split('/').next()).unwrap_or("default").to_owned()
}
