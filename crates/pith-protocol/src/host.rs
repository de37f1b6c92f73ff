//! Frames of the sub-protocols in which pith asks the host something: dialogs of extensions, and tools the host offers.
//! Questions about tool calls are in [`crate::permissions`].

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::permissions::OptionId;

/// What a host sends back. Never answered; unknown ids are ignored.
#[derive(Clone, Debug, PartialEq)]
pub enum HostReply {
    Ui {
        id: Option<String>,
        answer: UiAnswer,
    },
    /// The answer to a `permission_request`. `option` is `None` if it names none that there is.
    Permission {
        id: Option<String>,
        option: Option<OptionId>,
        message: Option<String>,
    },
    ToolUpdate {
        id: Option<String>,
        partial_result: Option<Value>,
    },
    ToolResult {
        id: Option<String>,
        result: Option<Value>,
        is_error: bool,
    },
}

/// The answer to a dialog, already reduced to the kinds a dialog can take.
#[derive(Clone, Debug, PartialEq)]
pub enum UiAnswer {
    Value(String),
    Confirmed(bool),
    Cancelled,
    /// Not one of the above; treated as cancelled, with a warning.
    Malformed(String),
}

impl HostReply {
    /// Frame types that are replies, not commands.
    pub const NAMES: &[&str] =
        &["extension_ui_response", "permission_response", "host_tool_update", "host_tool_result"];

    pub(crate) fn read(name: &str, id: Option<Value>, mut fields: Map<String, Value>) -> HostReply {
        let id = match id {
            Some(Value::String(id)) => Some(id),
            _ => None,
        };
        let text = |fields: &Map<String, Value>, key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        match name {
            "permission_response" => HostReply::Permission {
                id,
                option: text(&fields, "optionId").and_then(|word| OptionId::parse(&word)),
                message: text(&fields, "message"),
            },
            "host_tool_update" => HostReply::ToolUpdate { id, partial_result: fields.remove("partialResult") },
            "host_tool_result" => HostReply::ToolResult {
                id,
                result: fields.remove("result"),
                is_error: fields.get("isError") == Some(&Value::Bool(true)),
            },
            _ => HostReply::Ui { id, answer: UiAnswer::read(fields) },
        }
    }
}

impl UiAnswer {
    fn read(mut fields: Map<String, Value>) -> UiAnswer {
        if fields.get("cancelled") == Some(&Value::Bool(true)) {
            return UiAnswer::Cancelled;
        }
        match (fields.remove("value"), fields.remove("confirmed")) {
            (Some(Value::String(value)), _) => UiAnswer::Value(value),
            (None, Some(Value::Bool(confirmed))) => UiAnswer::Confirmed(confirmed),
            (Some(other), _) => UiAnswer::Malformed(format!("value {other} is not a string")),
            (None, Some(other)) => UiAnswer::Malformed(format!("confirmed {other} is not a boolean")),
            (None, None) => UiAnswer::Malformed("no value, confirmed or cancelled".to_owned()),
        }
    }
}

/// As a host writes it.
impl Serialize for HostReply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut frame = serializer.serialize_map(None)?;
        let (name, id) = match self {
            HostReply::Ui { id, .. } => ("extension_ui_response", id),
            HostReply::Permission { id, .. } => ("permission_response", id),
            HostReply::ToolUpdate { id, .. } => ("host_tool_update", id),
            HostReply::ToolResult { id, .. } => ("host_tool_result", id),
        };
        frame.serialize_entry("type", name)?;
        optional(&mut frame, "id", id.as_ref())?;
        match self {
            HostReply::Ui { answer: UiAnswer::Value(value), .. } => frame.serialize_entry("value", value)?,
            HostReply::Ui { answer: UiAnswer::Confirmed(is), .. } => frame.serialize_entry("confirmed", is)?,
            // What is no answer counts as none.
            HostReply::Ui { answer: UiAnswer::Cancelled | UiAnswer::Malformed(_), .. } => {
                frame.serialize_entry("cancelled", &true)?;
            }
            HostReply::Permission { option, message, .. } => {
                optional(&mut frame, "optionId", option.map(OptionId::as_str))?;
                optional(&mut frame, "message", message.as_ref())?;
            }
            HostReply::ToolUpdate { partial_result, .. } => {
                optional(&mut frame, "partialResult", partial_result.as_ref())?;
            }
            HostReply::ToolResult { result, is_error, .. } => {
                optional(&mut frame, "isError", is_error.then_some(&true))?;
                optional(&mut frame, "result", result.as_ref())?;
            }
        }
        frame.end()
    }
}

fn optional<M: SerializeMap, T: Serialize>(frame: &mut M, key: &'static str, value: Option<T>) -> Result<(), M::Error> {
    match value {
        Some(value) => frame.serialize_entry(key, &value),
        None => Ok(()),
    }
}

impl From<&str> for UiAnswer {
    fn from(value: &str) -> Self {
        UiAnswer::Value(value.to_owned())
    }
}

impl From<String> for UiAnswer {
    fn from(value: String) -> Self {
        UiAnswer::Value(value)
    }
}

impl From<bool> for UiAnswer {
    fn from(confirmed: bool) -> Self {
        UiAnswer::Confirmed(confirmed)
    }
}

impl<T: Into<UiAnswer>> From<Option<T>> for UiAnswer {
    fn from(answer: Option<T>) -> Self {
        answer.map_or(UiAnswer::Cancelled, Into::into)
    }
}

/// `extension_ui_request`: a question or a display change of an extension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "extension_ui_request")]
pub struct UiRequest {
    pub id: String,
    #[serde(flatten)]
    pub method: UiMethod,
    /// The tool call that the asking handler decides about. Frames do not carry it.
    #[serde(skip)]
    pub tool_call_id: Option<String>,
}

impl UiRequest {
    /// Creates a request that is about no tool call.
    pub fn new(id: impl Into<String>, method: UiMethod) -> Self {
        UiRequest { id: id.into(), method, tool_call_id: None }
    }
}

impl UiMethod {
    /// The `method` of every request.
    pub const NAMES: &[&str] = &[
        "select",
        "confirm",
        "input",
        "editor",
        "cancel",
        "notify",
        "setStatus",
        "setWidget",
        "setTitle",
        "set_editor_text",
    ];
}

/// The methods of [`UiRequest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "method", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum UiMethod {
    Select {
        title: String,
        options: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    Confirm {
        title: String,
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
        /// The page that a yes opens; the message names it, too. Frames do not carry it.
        #[serde(skip)]
        page: Option<Page>,
    },
    /// All fields of a form at once, as a JSON schema of an object. No frame has this method: only those who show whole
    /// forms are asked. The answer is the JSON of the object, or a refusal (`Confirmed(false)`).
    #[serde(skip)]
    Form {
        message: String,
        schema: Value,
    },
    Input {
        title: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        placeholder: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    Editor {
        title: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        prefill: Option<String>,
    },
    Cancel {
        target_id: String,
    },
    Notify {
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        notify_type: Option<String>,
    },
    SetStatus {
        status_key: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        status_text: Option<String>,
    },
    SetWidget {
        widget_key: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        widget_lines: Option<Vec<String>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        widget_placement: Option<String>,
    },
    SetTitle {
        title: String,
    },
    #[serde(rename = "set_editor_text")]
    SetEditorText {
        text: String,
    },
}

/// A page that the user is asked to open.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// What whoever asked calls it, to say later that it has done its work.
    pub id: String,
    pub url: String,
}

/// A tool call handed to the host, and its withdrawal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum HostToolFrame {
    HostToolCall { id: String, tool_call_id: String, tool_name: String, arguments: Map<String, Value> },
    HostToolCancel { id: String, target_id: String },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbound::{Inbound, decode};
    use crate::json::to_string;

    #[test]
    fn dialog_frames_have_the_documented_shape() {
        let request = |method| to_string(&UiRequest::new("u1", method));
        assert_eq!(
            request(UiMethod::Select { title: "Pick".into(), options: vec!["A".into()], timeout: Some(300) }),
            r#"{"type":"extension_ui_request","id":"u1","method":"select","title":"Pick","options":["A"],"timeout":300}"#
        );
        assert_eq!(
            request(UiMethod::SetStatus { status_key: "k".into(), status_text: None }),
            r#"{"type":"extension_ui_request","id":"u1","method":"setStatus","statusKey":"k"}"#
        );
        assert_eq!(
            request(UiMethod::SetEditorText { text: "ed".into() }),
            r#"{"type":"extension_ui_request","id":"u1","method":"set_editor_text","text":"ed"}"#
        );
        let cancel = HostToolFrame::HostToolCancel { id: "a".into(), target_id: "b".into() };
        assert_eq!(to_string(&cancel), r#"{"type":"host_tool_cancel","id":"a","targetId":"b"}"#);
    }

    #[test]
    fn answers_of_the_wrong_type_are_not_taken_for_consent() {
        let answer =
            |rest: &str| match decode(format!("{{\"type\":\"extension_ui_response\",\"id\":\"x\",{rest}}}").as_bytes())
            {
                Some(Inbound::Reply(HostReply::Ui { answer, .. })) => answer,
                other => panic!("{other:?}"),
            };
        assert_eq!(answer("\"confirmed\":true"), UiAnswer::Confirmed(true));
        assert_eq!(answer("\"cancelled\":true"), UiAnswer::Cancelled);
        assert_eq!(answer("\"value\":\"B\""), UiAnswer::Value("B".into()));
        assert!(matches!(answer("\"confirmed\":\"no\""), UiAnswer::Malformed(_)));
        assert!(matches!(answer("\"cancelled\":false"), UiAnswer::Malformed(_)));
    }
}
