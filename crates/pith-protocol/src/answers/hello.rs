//! The handshake: what a host says about itself, and what it is told about pith.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::fields::{Field, FieldError, Place};
use crate::host::UiMethod;
use crate::{Command, Event, StreamUpdates, inbound};

/// What a host can live with beyond what its dialect says. Keys and words pith does not know are left out of the
/// answer's `accepted`.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "camelCase"))]
pub struct Accept {
    /// `agent_settled` also follows a prompt that is `handled` while nothing runs.
    pub settled_when_handled: Option<bool>,
    /// As `set_stream_updates`.
    pub stream_updates: Option<StreamUpdates>,
    /// Questions whether tool calls may run come as `permission_request`.
    pub permission_request: Option<bool>,
}

/// Who is speaking. Nothing depends on it.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Client {
    pub name: Option<String>,
    pub version: Option<String>,
}

/// Answer of `hello`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Greeting {
    /// Grows with every change that could break a host; additions do not count.
    pub protocol_version: u32,
    /// `pi` or `xcsh`.
    pub dialect: String,
    pub server: Server,
    pub capabilities: Capabilities,
    /// The keys of `accept` that are in force.
    pub accepted: Vec<String>,
}

/// Which program it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Server {
    /// Always `pith`, whatever name it was started under.
    pub name: String,
    pub version: String,
}

/// What can be sent and what can come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    pub commands: Vec<String>,
    pub events: Vec<String>,
    pub ui_methods: Vec<String>,
    pub stream_updates: Vec<StreamUpdates>,
    pub limits: Limits,
}

/// Bounds of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Of a line of input.
    pub max_line_bytes: u64,
    /// Of arrays and objects in a line of input.
    pub max_depth: u64,
}

/// What a greeting tells about the wire; a session passes it on and does not use it.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    pub dialect: &'static str,
    pub hidden_events: &'static [&'static str],
    pub max_line_bytes: u64,
}

impl Greeting {
    /// The answer to a host that accepts something.
    pub fn new(wire: Wire, version: &str, accept: &Accept) -> Greeting {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let is_shown = |name: &&&str| !wire.hidden_events.contains(*name);
        Greeting {
            protocol_version: PROTOCOL_VERSION,
            dialect: wire.dialect.to_owned(),
            server: Server { name: "pith".to_owned(), version: version.to_owned() },
            capabilities: Capabilities {
                commands: owned(Command::NAMES),
                events: Event::NAMES.iter().filter(is_shown).map(|name| (*name).to_owned()).collect(),
                ui_methods: owned(UiMethod::NAMES),
                stream_updates: vec![StreamUpdates::Full, StreamUpdates::Delta],
                limits: Limits { max_line_bytes: wire.max_line_bytes, max_depth: inbound::MAX_DEPTH as u64 },
            },
            accepted: accept.names(),
        }
    }
}

/// The version in [`Greeting`].
pub const PROTOCOL_VERSION: u32 = 1;

impl Accept {
    /// The keys that say something pith understands.
    pub fn names(&self) -> Vec<String> {
        let settled = self.settled_when_handled.map(|_| "settledWhenHandled");
        let streams = self.stream_updates.map(|_| "streamUpdates");
        let questions = self.permission_request.map(|_| "permissionRequest");
        settled.into_iter().chain(streams).chain(questions).map(str::to_owned).collect()
    }
}

/// An object whose members are read one by one; what cannot be read is as good as absent, so that hosts of later
/// versions are understood as far as possible.
fn object(value: Option<Value>, place: &Place) -> Result<Map<String, Value>, FieldError> {
    match value {
        Some(Value::Object(object)) => Ok(object),
        Some(other) => Err(place.expected("object", &other)),
        None => Err(place.missing()),
    }
}

impl Field for Accept {
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Accept>()
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        let mut members = object(value, place)?;
        Ok(Accept {
            settled_when_handled: members.get("settledWhenHandled").and_then(Value::as_bool),
            stream_updates: members.remove("streamUpdates").and_then(|word| serde_json::from_value(word).ok()),
            permission_request: members.get("permissionRequest").and_then(Value::as_bool),
        })
    }
}

impl Field for Client {
    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Client>()
    }

    fn read(value: Option<Value>, place: &Place) -> Result<Self, FieldError> {
        let members = object(value, place)?;
        let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
        Ok(Client { name: text("name"), version: text("version") })
    }
}

impl Serialize for Accept {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        self.settled_when_handled.write("settledWhenHandled", &mut members)?;
        self.stream_updates.write("streamUpdates", &mut members)?;
        self.permission_request.write("permissionRequest", &mut members)?;
        members.end()
    }
}

impl Serialize for Client {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        self.name.write("name", &mut members)?;
        self.version.write("version", &mut members)?;
        members.end()
    }
}
