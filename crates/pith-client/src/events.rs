//! What pith says without being asked.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use pith_protocol::events::{Ready, Step};
use pith_protocol::host::{HostToolFrame, UiRequest};
use pith_protocol::permissions::PermissionFrame;
use pith_protocol::{Event, Frame};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};

use crate::{Error, Exited};

/// A frame that answers no command.
#[allow(clippy::large_enum_variant, reason = "nearly all of them are events, which hosts match on")]
#[derive(Clone, Debug)]
pub enum Told {
    Event(Event<'static>),
    /// An extension asks or shows something. Dialogs are answered by the handler of the builder.
    UiRequest(UiRequest),
    /// A call of a host tool, or its withdrawal; both are dealt with already.
    HostTool(HostToolFrame),
    /// A question whether a tool call may run, or its withdrawal, for hosts that accept them in their `hello`.
    Permission(Box<PermissionFrame>),
    /// The greeting of the xcsh dialect.
    Ready(Ready<'static>),
    /// A frame that this version of the client has no type for.
    Other(Map<String, Value>),
}

impl Told {
    /// Reads a line; `None` if it is no JSON object.
    pub(crate) fn read(line: &str) -> Option<Told> {
        let other = |line| serde_json::from_str(line).ok().map(Told::Other);
        match Frame::read(line) {
            Ok(Frame::Event(event)) => Some(Told::Event(*event)),
            Ok(Frame::UiRequest(request)) => Some(Told::UiRequest(request)),
            Ok(Frame::HostTool(frame)) => Some(Told::HostTool(frame)),
            Ok(Frame::Permission(frame)) => Some(Told::Permission(frame)),
            Ok(Frame::Ready(ready)) => Some(Told::Ready(ready)),
            Ok(Frame::Response(_) | Frame::Header(_) | Frame::Result(_)) | Err(_) => other(line),
        }
    }

    /// Returns the `type` of the frame.
    pub fn kind(&self) -> &str {
        match self {
            Told::Event(event) => event.name(),
            Told::UiRequest(_) => "extension_ui_request",
            Told::HostTool(HostToolFrame::HostToolCall { .. }) => "host_tool_call",
            Told::HostTool(HostToolFrame::HostToolCancel { .. }) => "host_tool_cancel",
            Told::Permission(frame) => match **frame {
                PermissionFrame::PermissionRequest { .. } => "permission_request",
                PermissionFrame::PermissionCancelled { .. } => "permission_cancelled",
            },
            Told::Ready(_) => "ready",
            Told::Other(frame) => frame.get("type").and_then(Value::as_str).unwrap_or_default(),
        }
    }

    /// Returns what is new in the text of an answer that grows.
    pub fn text_delta(&self) -> Option<&str> {
        match self {
            Told::Event(Event::MessageUpdate(update)) => match &update.assistant_message_event.step {
                Step::TextDelta { delta } => Some(delta),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A subscription. It misses nothing from the moment it exists, and keeps what was not taken yet; drop it to end it.
#[derive(Debug)]
pub struct Events {
    /// From the connection; closed when pith has ended.
    told: mpsc::UnboundedReceiver<Told>,
    /// How pith has ended.
    ended: watch::Receiver<Option<Exited>>,
}

impl Events {
    pub(crate) fn new(told: mpsc::UnboundedReceiver<Told>, ended: watch::Receiver<Option<Exited>>) -> Self {
        Events { told, ended }
    }

    /// Returns the next frame; `None` when pith has ended.
    pub async fn next(&mut self) -> Option<Told> {
        self.told.recv().await
    }

    /// Returns the next frame of that type.
    pub async fn wait(&mut self, kind: &str) -> Result<Told, Error> {
        self.find(|told| (told.kind() == kind).then_some(told)).await
    }

    /// Returns the first thing that `select` finds.
    pub async fn find<T>(&mut self, mut select: impl FnMut(Told) -> Option<T>) -> Result<T, Error> {
        while let Some(told) = self.told.recv().await {
            if let Some(found) = select(told) {
                return Ok(found);
            }
        }
        Err(Error::Exited(end(self.ended.clone()).await))
    }
}

impl Stream for Events {
    type Item = Told;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Told>> {
        self.told.poll_recv(context)
    }
}

/// Waits for the end of pith.
pub(crate) async fn end(mut ended: watch::Receiver<Option<Exited>>) -> Exited {
    let exited = ended.wait_for(Option::is_some).await.ok().and_then(|exited| exited.clone());
    // Nobody says how it ended when the runtime was shut down first.
    exited.unwrap_or(Exited { status: None, stderr: String::new() })
}
