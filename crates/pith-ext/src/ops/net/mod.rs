//! Sockets and servers of extensions: `net`, `http` and `http2`.
//!
//! One thread with a runtime of its own drives them all. The first extension that opens one starts it, and it ends with
//! the engine; the agent's thread has nothing to do with it. Everything is pulled: a socket is read, a connection is
//! accepted and a request is taken when JavaScript asks for the next one, so nothing gathers that nobody wants.

mod http;
mod http2;
mod link;
mod listen;
mod socket;
mod tls;
mod websocket;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use rquickjs::function::Func;
use rquickjs::{Ctx, Object};
use rustix::process::{Resource, getrlimit};
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::link::{Ends, Link, Order};
use self::listen::Listening;
use self::websocket::Frame;
use super::text::{Packed, Text};
use crate::engine::inbox::Inbox;
use crate::engine::{State, throw};

/// So many connections to servers are open at a time, and so many from elsewhere to servers of extensions: an extension
/// that asks for one more gets `EMFILE`, and those from elsewhere wait. Each kind has its own, because an extension may
/// connect to itself.
const MAX_CONNECTIONS: usize = 500;
const MAX_SERVERS: usize = 64;
const STACK: usize = 512 << 10;

/// Where a socket or server belongs: a file, or a port of an address.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Place {
    pub path: Option<String>,
    pub host: Option<String>,
    pub port: u16,
}

/// The sockets and servers of one engine.
pub struct Network {
    inbox: Inbox,
    thread: RefCell<Option<Thread>>,
    /// What is open, by operation.
    links: RefCell<HashMap<u64, Link>>,
    servers: RefCell<HashMap<u64, Listening>>,
    /// Clients of HTTP/2; their streams are links.
    sessions: RefCell<HashMap<u64, http2::Session>>,
    /// Room for connections that extensions make.
    made: Arc<Semaphore>,
    /// Room for connections that their servers accept.
    accepted: Arc<Semaphore>,
}

struct Thread {
    runtime: Handle,
    /// Dropping it ends the runtime, and with it everything that is open.
    _stop: DropGuard,
}

impl Network {
    /// Creates a network without a thread.
    pub fn new(inbox: Inbox) -> Self {
        // Half of the files that the process may open is left for the agent.
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 4;
        let room = usize::try_from(files).unwrap_or(usize::MAX).min(MAX_CONNECTIONS);
        Network {
            inbox,
            thread: RefCell::default(),
            links: RefCell::default(),
            servers: RefCell::default(),
            sessions: RefCell::default(),
            made: Arc::new(Semaphore::new(room)),
            accepted: Arc::new(Semaphore::new(room)),
        }
    }

    fn runtime(&self) -> io::Result<Handle> {
        let mut thread = self.thread.borrow_mut();
        if let Some(thread) = &*thread {
            return Ok(thread.runtime.clone());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        std::thread::Builder::new().name("pith-ext-net".to_owned()).stack_size(STACK).spawn(move || {
            runtime.block_on(stopped.cancelled());
            // A name that is being looked up must not hold up the end.
            runtime.shutdown_background();
        })?;
        *thread = Some(Thread { runtime: handle.clone(), _stop: stop.drop_guard() });
        Ok(handle)
    }

    /// Makes both sides of something that is about to open.
    fn open(&self, op: u64) -> Ends {
        let (link, ends) = link::pair(op, self.inbox.clone());
        self.links.borrow_mut().insert(op, link);
        ends
    }

    fn connect(&self, op: u64, place: Place) -> io::Result<()> {
        let runtime = self.runtime()?;
        let ends = self.open(op);
        runtime.spawn(socket::connect(place, ends, self.made.clone()));
        Ok(())
    }

    fn open_session(&self, op: u64, target: http2::Target) -> io::Result<()> {
        let runtime = self.runtime()?;
        let (session, ends) = http2::pair(op, self.inbox.clone());
        self.sessions.borrow_mut().insert(op, session);
        runtime.spawn(http2::connect(target, ends, self.made.clone()));
        Ok(())
    }

    fn open_websocket(&self, op: u64, target: websocket::Target) -> io::Result<()> {
        let runtime = self.runtime()?;
        let ends = self.open(op);
        runtime.spawn(websocket::connect(target, ends, self.made.clone()));
        Ok(())
    }

    /// Operation `op` becomes a stream of a session. If that has ended, the stream's task has too.
    fn request(&self, session: u64, op: u64, head: http2::RequestHead) {
        if let Some(session) = self.sessions.borrow().get(&session) {
            session.wish(http2::Wish::Request(Box::new(head), self.open(op)));
        }
    }

    fn listen(&self, op: u64, place: Place, speaks_http: bool) -> io::Result<()> {
        if self.servers.borrow().len() >= MAX_SERVERS {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error()));
        }
        let runtime = self.runtime()?;
        let (slots, waiting) = mpsc::unbounded_channel();
        let (listening, server) = listen::pair(op, slots, self.inbox.clone(), self.accepted.clone());
        self.servers.borrow_mut().insert(op, listening);
        runtime.spawn(async move {
            if speaks_http {
                http::listen(place, waiting, server).await
            } else {
                listen::run(place, waiting, server).await
            }
        });
        Ok(())
    }

    /// The next connection, or request, of a server becomes operation `op`.
    fn accept(&self, server: u64, op: u64) {
        if let Some(listening) = self.servers.borrow().get(&server) {
            listening.accept(self.open(op));
        }
    }

    fn ping(&self, session: u64) -> bool {
        self.sessions.borrow().get(&session).is_some_and(|session| session.wish(http2::Wish::Ping))
    }

    fn order(&self, op: u64, order: Order) -> bool {
        self.links.borrow().get(&op).is_some_and(|link| link.order(order))
    }

    /// Called when an operation has ended.
    pub fn forget(&self, op: u64) {
        self.links.borrow_mut().remove(&op);
        self.servers.borrow_mut().remove(&op);
        self.sessions.borrow_mut().remove(&op);
    }

    /// Closes everything and ends the thread.
    pub fn close(&self) {
        self.links.borrow_mut().clear();
        self.servers.borrow_mut().clear();
        self.sessions.borrow_mut().clear();
        *self.thread.borrow_mut() = None;
    }
}

pub(super) fn install<'js>(group: &Object<'js>, state: &Rc<State>) -> rquickjs::Result<()> {
    let opened = |ctx: &Ctx<'js>, result: io::Result<()>, syscall: &str| {
        result.map_err(|error| super::errno::Failure::new(&error, syscall, None).throw(ctx))
    };
    let here = state.clone();
    group.set(
        "connect",
        Func::from(move |ctx: Ctx<'js>, op: f64, place: Text| {
            opened(&ctx, here.network.connect(op as u64, read(&ctx, &place)?), "connect")
        }),
    )?;
    let here = state.clone();
    group.set(
        "listen",
        Func::from(move |ctx: Ctx<'js>, op: f64, place: Text, speaks_http: bool| {
            opened(&ctx, here.network.listen(op as u64, read(&ctx, &place)?, speaks_http), "listen")
        }),
    )?;
    let here = state.clone();
    group.set("accept", Func::from(move |server: f64, op: f64| here.network.accept(server as u64, op as u64)))?;
    let here = state.clone();
    group.set("read", Func::from(move |op: f64| here.network.order(op as u64, Order::Read)))?;
    let here = state.clone();
    group
        .set("write", Func::from(move |op: f64, bytes: Packed| here.network.order(op as u64, Order::Write(bytes.0))))?;
    let here = state.clone();
    group.set("end", Func::from(move |op: f64| here.network.order(op as u64, Order::End)))?;
    let here = state.clone();
    group.set(
        "respond",
        Func::from(move |ctx: Ctx<'js>, op: f64, head: Text| {
            let head = http::response(&head.0).map_err(|why| throw(&ctx, "ERR_INVALID_CHAR", &why))?;
            Ok::<bool, rquickjs::Error>(here.network.order(op as u64, Order::Respond(head)))
        }),
    )?;
    let here = state.clone();
    group.set(
        "connectHttp2",
        Func::from(move |ctx: Ctx<'js>, op: f64, target: Text| {
            opened(&ctx, here.network.open_session(op as u64, read(&ctx, &target)?), "connect")
        }),
    )?;
    let here = state.clone();
    group.set(
        "requestHttp2",
        Func::from(move |ctx: Ctx<'js>, session: f64, op: f64, head: Text| {
            let head = http2::request(&head.0).map_err(|why| throw(&ctx, "ERR_INVALID_CHAR", &why))?;
            here.network.request(session as u64, op as u64, head);
            Ok::<(), rquickjs::Error>(())
        }),
    )?;
    let here = state.clone();
    group.set(
        "connectWebSocket",
        Func::from(move |ctx: Ctx<'js>, op: f64, target: Text| {
            opened(&ctx, here.network.open_websocket(op as u64, read(&ctx, &target)?), "connect")
        }),
    )?;
    let here = state.clone();
    group.set(
        "sendText",
        Func::from(move |op: f64, text: Text| here.network.order(op as u64, Order::Send(Frame::Text(text.0)))),
    )?;
    let here = state.clone();
    group.set(
        "sendBytes",
        Func::from(move |op: f64, bytes: Packed| here.network.order(op as u64, Order::Send(Frame::Binary(bytes.0)))),
    )?;
    let here = state.clone();
    group.set(
        "sendClose",
        Func::from(move |op: f64, code: Option<u16>, reason: Text| {
            here.network.order(op as u64, Order::Send(Frame::Close(code, reason.0)))
        }),
    )?;
    let here = state.clone();
    group.set("ping2", Func::from(move |session: f64| here.network.ping(session as u64)))?;
    let here = state.clone();
    group.set("close", Func::from(move |op: f64| here.network.forget(op as u64)))?;
    let here = state.clone();
    group.set(
        "lookup",
        Func::from(move |ctx: Ctx<'js>, op: f64, name: Text| {
            let runtime = here.network.runtime();
            let started =
                runtime.map(|runtime| drop(runtime.spawn(socket::lookup(op as u64, name.0, here.inbox.clone()))));
            opened(&ctx, started, "getaddrinfo")
        }),
    )?;
    // The bytes of an address as a number in hexadecimal, and its family: what JavaScript needs to compare addresses.
    group.set(
        "address",
        Func::from(|text: Text| match text.0.parse().ok()? {
            IpAddr::V4(address) => Some(format!("4 {:x}", address.to_bits())),
            IpAddr::V6(address) => Some(format!("6 {:x}", address.to_bits())),
        }),
    )
}

fn read<T: for<'a> Deserialize<'a>>(ctx: &Ctx<'_>, text: &Text) -> rquickjs::Result<T> {
    crate::json::parse(&text.0).map_err(|why| throw(ctx, "ERR_INVALID_ARG_VALUE", &why))
}
