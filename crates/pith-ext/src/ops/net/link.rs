//! What connects an operation of JavaScript with the task that carries it out.

use std::io;

use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::errno::Failure;
use super::http::ResponseHead;
use super::websocket::Frame;
use crate::engine::inbox::{Inbox, Payload, ToEngine};

/// What JavaScript wants of something open. It asks for one piece at a time, in either direction.
pub(super) enum Order {
    /// Deliver the next piece.
    Read,
    Write(Vec<u8>),
    /// Nothing more will be written.
    End,
    /// Send the head of the response: only for requests.
    Respond(ResponseHead),
    /// Send a message: only for WebSockets.
    Send(Frame),
}

/// The engine's side. Dropping it ends the task.
pub(super) struct Link {
    /// Closed when the task has ended.
    reads: UnboundedSender<()>,
    writes: UnboundedSender<Order>,
    _cancel: DropGuard,
}

impl Link {
    /// Passes an order on; returns false if the task has ended.
    pub fn order(&self, order: Order) -> bool {
        match order {
            Order::Read => self.reads.send(()).is_ok(),
            order => self.writes.send(order).is_ok(),
        }
    }
}

/// The task's side.
pub(super) struct Ends {
    pub reads: UnboundedReceiver<()>,
    pub writes: UnboundedReceiver<Order>,
    pub cancel: CancellationToken,
    pub outlet: Outlet,
}

/// Makes both sides of operation `op`.
pub(super) fn pair(op: u64, inbox: Inbox) -> (Link, Ends) {
    let (reads, wanted) = mpsc::unbounded_channel();
    let (writes, orders) = mpsc::unbounded_channel();
    let cancel = CancellationToken::new();
    let ends = Ends { reads: wanted, writes: orders, cancel: cancel.clone(), outlet: Outlet { op, inbox } };
    (Link { reads, writes, _cancel: cancel.drop_guard() }, ends)
}

/// Where a task reports to. The engine may have ended: then nobody wants to know.
#[derive(Clone)]
pub(super) struct Outlet {
    op: u64,
    inbox: Inbox,
}

impl Outlet {
    pub fn new(op: u64, inbox: Inbox) -> Self {
        Outlet { op, inbox }
    }

    pub fn say(&self, event: &Value) {
        let _ = self.inbox.send(ToEngine::Push { op: self.op, payload: Payload::json(event) });
    }

    pub fn deliver(&self, bytes: Vec<u8>) {
        let _ = self.inbox.send(ToEngine::Push { op: self.op, payload: Payload::Bytes(bytes) });
    }

    /// Reports an error with the members that Node gives it; `place` adds to them.
    pub fn fail(&self, error: &io::Error, syscall: &str, place: Value) {
        let failure = Failure::new(error, syscall, None);
        let address = match (&place["address"], &place["port"]) {
            (Value::String(address), Value::Number(port)) => format!(" {address}:{port}"),
            (Value::String(address), _) => format!(" {address}"),
            _ => String::new(),
        };
        let message = format!("{syscall} {}{address}", failure.code);
        let mut event = json!({ "event": "error", "message": message });
        let facts = json!({ "code": failure.code, "errno": failure.errno, "syscall": syscall });
        event["facts"] = merged(facts, place);
        self.say(&event);
    }

    /// Reports that a name does not lead to an address.
    pub fn fail_lookup(&self, host: &str) {
        self.say(&json!({
            "event": "error",
            "message": format!("getaddrinfo ENOTFOUND {host}"),
            "facts": { "code": "ENOTFOUND", "errno": -3008, "syscall": "getaddrinfo", "hostname": host },
        }));
    }

    /// Ends the operation.
    pub fn settle(&self) {
        let _ = self.inbox.send(ToEngine::Settle { op: self.op, outcome: Ok(Payload::Nothing) });
    }
}

fn merged(mut facts: Value, more: Value) -> Value {
    if let (Value::Object(facts), Value::Object(more)) = (&mut facts, more) {
        facts.extend(more);
    }
    facts
}
