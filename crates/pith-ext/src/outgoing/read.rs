//! Parses what the JavaScript side sends into a [`FromExtension`].

use std::sync::mpsc::SyncSender;

use pith_protocol::host::{UiMethod, UiRequest};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    Answer, CustomDraft, ExtensionError, FetchReply, ForkPosition, FromExtension, ModelReply, Navigation,
    ProviderRegistration, Query, QueryReply, ToolReply, UserDraft,
};
use crate::engine::inbox::Inbox;
use crate::modules::stack::mapped;

/// Parses a message that is not answered.
pub(crate) fn read_send(kind: &str, text: &str) -> Result<FromExtension, String> {
    Ok(match kind {
        "error" => {
            let mut error: ExtensionError = parse(text)?;
            error.stack = error.stack.filter(|stack| !stack.is_empty()).map(|stack| mapped(&stack));
            FromExtension::Error(error)
        }
        "ui" => FromExtension::Display(ui_request(text)?),
        "ui_withdrawn" => FromExtension::DialogWithdrawn { id: field(text, "id")? },
        "registry_changed" => FromExtension::RegistryChanged,
        "register_provider" => FromExtension::RegisterProvider(parse::<ProviderRegistration>(text)?),
        "unregister_provider" => FromExtension::UnregisterProvider { name: field(text, "name")? },
        "append_entry" => {
            FromExtension::AppendEntry { custom_type: field(text, "customType")?, data: field(text, "data")? }
        }
        "set_session_name" => FromExtension::SetSessionName { name: field(text, "name")? },
        "set_label" => FromExtension::SetLabel { entry_id: field(text, "entryId")?, label: field(text, "label")? },
        "set_active_tools" => FromExtension::SetActiveTools { names: field(text, "names")? },
        "set_thinking_level" => FromExtension::SetThinkingLevel { level: field(text, "level")? },
        "abort" => FromExtension::Abort,
        "shutdown" => FromExtension::Shutdown { status: field(text, "status")? },
        other => return Err(format!("unknown message {other}")),
    })
}

/// Parses a request that is answered later.
pub(crate) fn read_ask(
    op: u64,
    kind: &str,
    text: &str,
    inbox: Inbox,
    cancel: CancellationToken,
) -> Result<FromExtension, String> {
    Ok(match kind {
        "ui" => FromExtension::Dialog { request: ui_request(text)?, answer: Answer::new(op, inbox) },
        "send_message" => {
            FromExtension::SendMessage { message: parse::<CustomDraft>(text)?, answer: Answer::new(op, inbox) }
        }
        "send_user_message" => {
            FromExtension::SendUserMessage { message: parse::<UserDraft>(text)?, answer: Answer::new(op, inbox) }
        }
        "set_model" => FromExtension::SetModel { model: field(text, "model")?, answer: Answer::new(op, inbox) },
        "compact" => FromExtension::Compact {
            custom_instructions: field(text, "customInstructions")?,
            answer: Answer::new(op, inbox),
        },
        "wait_for_idle" => FromExtension::WaitForIdle { answer: Answer::new(op, inbox) },
        "new_session" => FromExtension::NewSession {
            parent_session: field(text, "parentSession")?,
            entries: field(text, "entries")?,
            answer: Answer::new(op, inbox),
        },
        "fork" => FromExtension::Fork {
            entry_id: field(text, "entryId")?,
            position: field::<ForkPosition>(text, "position")?,
            answer: Answer::new(op, inbox),
        },
        "switch_session" => FromExtension::SwitchSession { path: field(text, "path")?, answer: Answer::new(op, inbox) },
        "navigate_tree" => {
            FromExtension::NavigateTree { navigation: parse::<Navigation>(text)?, answer: Answer::new(op, inbox) }
        }
        "reload" => FromExtension::Reload { answer: Answer::new(op, inbox) },
        "model_auth" => FromExtension::ModelAuth {
            provider: field(text, "provider")?,
            model: field(text, "model")?,
            answer: Answer::new(op, inbox),
        },
        "refresh_models" => FromExtension::RefreshModels { answer: Answer::new(op, inbox) },
        "stream" => FromExtension::Stream { request: parse(text)?, reply: ModelReply::new(op, inbox, cancel) },
        "fetch" => FromExtension::Fetch { request: parse(text)?, reply: FetchReply::new(op, inbox, cancel) },
        "run_tool" => FromExtension::RunTool { request: parse(text)?, reply: ToolReply::new(op, inbox, cancel) },
        other => return Err(format!("unknown request {other}")),
    })
}

/// Parses a query for which the engine's thread waits.
pub(crate) fn read_query(kind: &str, text: &str, reply: SyncSender<String>) -> Result<FromExtension, String> {
    Ok(FromExtension::Query(match kind {
        "state" => Query::State(QueryReply::new(reply)),
        "session" => Query::Session {
            session_id: field(text, "sessionId")?,
            from: field(text, "from")?,
            reply: QueryReply::new(reply),
        },
        "system_prompt" => Query::SystemPrompt(QueryReply::new(reply)),
        "build_prompt" => Query::BuildPrompt { options: parse(text)?, reply: QueryReply::new(reply) },
        "boundary" => Query::Boundary {
            event: field(text, "event")?,
            entries: field(text, "entries")?,
            reply: QueryReply::new(reply),
        },
        "tools" => Query::Tools(QueryReply::new(reply)),
        "commands" => Query::Commands(QueryReply::new(reply)),
        "model" => {
            Query::Model { provider: field(text, "provider")?, id: field(text, "id")?, reply: QueryReply::new(reply) }
        }
        "models" => Query::Models { only_available: field(text, "available")?, reply: QueryReply::new(reply) },
        "provider" => Query::Provider { provider: field(text, "provider")?, reply: QueryReply::new(reply) },
        other => return Err(format!("unknown query {other}")),
    }))
}

/// `serde` cannot parse an internally tagged enum that is also flattened, so the two parts are parsed separately.
fn ui_request(text: &str) -> Result<UiRequest, String> {
    #[derive(Deserialize)]
    #[serde(tag = "method", rename_all = "camelCase", rename_all_fields = "camelCase")]
    enum Method {
        Select {
            title: String,
            options: Vec<String>,
            timeout: Option<f64>,
        },
        Confirm {
            title: String,
            message: String,
            timeout: Option<f64>,
        },
        Input {
            title: String,
            placeholder: Option<String>,
            timeout: Option<f64>,
        },
        Editor {
            title: String,
            prefill: Option<String>,
        },
        Notify {
            message: String,
            notify_type: Option<String>,
        },
        SetStatus {
            status_key: String,
            status_text: Option<String>,
        },
        SetWidget {
            widget_key: String,
            widget_lines: Option<Vec<String>>,
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
    let whole = |timeout: Option<f64>| timeout.map(|limit| limit.max(0.0) as u64);
    let method = match parse::<Method>(text)? {
        Method::Select { title, options, timeout } => UiMethod::Select { title, options, timeout: whole(timeout) },
        Method::Confirm { title, message, timeout } => {
            UiMethod::Confirm { title, message, timeout: whole(timeout), page: None }
        }
        Method::Input { title, placeholder, timeout } => {
            UiMethod::Input { title, placeholder, timeout: whole(timeout) }
        }
        Method::Editor { title, prefill } => UiMethod::Editor { title, prefill },
        Method::Notify { message, notify_type } => UiMethod::Notify { message, notify_type },
        Method::SetStatus { status_key, status_text } => UiMethod::SetStatus { status_key, status_text },
        Method::SetWidget { widget_key, widget_lines, widget_placement } => {
            UiMethod::SetWidget { widget_key, widget_lines, widget_placement }
        }
        Method::SetTitle { title } => UiMethod::SetTitle { title },
        Method::SetEditorText { text } => UiMethod::SetEditorText { text },
    };
    Ok(UiRequest { id: field(text, "id")?, method, tool_call_id: field(text, "toolCallId")? })
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    crate::json::parse(text)
}

/// One member of an object; a missing one counts as `null`.
fn field<T: DeserializeOwned>(text: &str, name: &str) -> Result<T, String> {
    let mut value: Value = parse(text)?;
    let field = value.get_mut(name).map(Value::take).unwrap_or_default();
    serde_json::from_value(field).map_err(|error| format!("{name}: {error}"))
}
