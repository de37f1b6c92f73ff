//! Any frame that pith writes, read back: what a host written in Rust needs, and what holds every frame of our tests
//! against the types it was made of.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Error, Value};

use crate::commands::AnyAnswer;
use crate::events::Ready;
use crate::host::{HostToolFrame, UiRequest};
use crate::permissions::PermissionFrame;
use crate::{Event, Response, ResultRecord, SessionHeader, json};

/// A frame of stdout.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Frame {
    Response(Response<'static>),
    Event(Box<Event<'static>>),
    UiRequest(UiRequest),
    HostTool(HostToolFrame),
    Permission(Box<PermissionFrame>),
    Ready(Ready<'static>),
    /// The first line of `--mode json`.
    Header(SessionHeader),
    /// The last line of `--mode json`.
    Result(Box<ResultRecord>),
}

impl Frame {
    /// Reads one line.
    pub fn read(line: &str) -> Result<Frame, Error> {
        #[derive(Deserialize)]
        struct Kind {
            r#type: String,
        }
        let kind: Kind = serde_json::from_str(line)?;
        Ok(match kind.r#type.as_str() {
            "response" => Frame::Response(serde_json::from_str(line)?),
            "extension_ui_request" => Frame::UiRequest(serde_json::from_str(line)?),
            "host_tool_call" | "host_tool_cancel" => Frame::HostTool(serde_json::from_str(line)?),
            "permission_request" | "permission_cancelled" => Frame::Permission(serde_json::from_str(line)?),
            "ready" => Frame::Ready(serde_json::from_str(line)?),
            "session" => Frame::Header(serde_json::from_str(line)?),
            "result" => Frame::Result(serde_json::from_str(line)?),
            _ => Frame::Event(serde_json::from_str(line)?),
        })
    }

    /// Says what is wrong with a line; nothing if its type holds all of it, no more and no less.
    pub fn problem(line: &str) -> Option<String> {
        let value = |text: &str| serde_json::from_str::<Value>(text).map(without_placeholder);
        let rewritten = Frame::read(line).and_then(|frame| frame.rewrite()).and_then(|text| value(&text));
        match (rewritten, value(line)) {
            (Ok(rewritten), Ok(given)) if rewritten == given => None,
            (Ok(rewritten), _) => Some(format!("its type makes of it {rewritten}")),
            (Err(error), _) => Some(error.to_string()),
        }
    }

    /// Writes the frame again, the data of a response from its type.
    pub fn rewrite(&self) -> Result<String, Error> {
        let Frame::Response(response) = self else { return Ok(json::to_string(self)) };
        let Some(data) = &response.data else { return Ok(json::to_string(response)) };
        let answer = AnyAnswer::read(&response.command, data.get())
            .ok_or_else(|| Error::custom(format!("no command {} has an answer", response.command)))??;
        let data = RawValue::from_string(json::to_string(&answer))?;
        let mut response = response.clone();
        response.data = Some(Cow::Owned(data));
        Ok(json::to_string(&response))
    }
}

/// An answer that has just begun is `pending` for hosts that read deltas, and `stop` in our types.
fn without_placeholder(mut frame: Value) -> Value {
    if let Some(reason) = frame.pointer_mut("/message/stopReason").filter(|reason| *reason == "pending") {
        *reason = Value::from("stop");
    }
    frame
}
