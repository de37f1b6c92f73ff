//! Events that the protocol has no words for, as notifications of pith's own.

use pith_protocol::Event;
use pith_protocol::host::UiMethod;
use serde_json::{Value, json};

use super::channel::Channel;

/// Tells an event, if it is one of these.
pub fn tell(event: &Event<'_>, channel: &Channel) {
    let method = match event {
        Event::AgentStart => return channel.own("_pith/turn", json!({"running": true})),
        Event::AgentSettled { .. } => return channel.own("_pith/turn", json!({"running": false})),
        Event::QueueUpdate { .. } => "_pith/queue",
        Event::BashExecutionUpdate { .. } => "_pith/bash_update",
        Event::EntryAppended { .. } => "_pith/entry",
        _ => return,
    };
    channel.own(method, fields(json!(event), "type"));
}

/// Tells what an extension displays, if it is a status or a widget.
pub fn tell_display(method: &UiMethod, channel: &Channel) {
    let name = match method {
        UiMethod::SetStatus { .. } => "_pith/status",
        UiMethod::SetWidget { .. } => "_pith/widget",
        _ => return,
    };
    channel.own(name, fields(json!(method), "method"));
}

/// A frame without the word that says what it is.
fn fields(mut frame: Value, tag: &str) -> Value {
    if let Value::Object(fields) = &mut frame {
        fields.remove(tag);
    }
    frame
}
