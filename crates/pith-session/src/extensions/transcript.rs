//! Shows extensions what the model is about to read: the conversation (`context`), then the conversation with the
//! system prompt (`context_with_system`).

use std::sync::Arc;

use pith_ext::{EventName, ExtensionHandle};
use pith_protocol::{Block, Content, LlmCall, Message, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::observer::AbortGrace;

const NO_SYSTEM: &str = "Handler removed the leading system message; the request has no prompt and no tools. \
                         Keep that message at index 0.";

/// Lets handlers change the request.
pub(super) async fn apply_context_handlers(handle: &ExtensionHandle, grace: &mut AbortGrace, call: &mut LlmCall) {
    if handle.listens(EventName::Context) {
        let visible: Vec<&Arc<Message>> = call.messages.iter().filter(|message| message.role() != "system").collect();
        let changed = grace.wait(handle.context(EventName::Context, &visible)).await.flatten();
        if let Some(messages) = changed.and_then(|changed| read(handle, EventName::Context, changed)) {
            call.messages = messages;
        }
    }
    if handle.listens(EventName::ContextWithSystem) {
        let mut whole = vec![system_message(call)];
        whole.extend(call.messages.iter().map(|message| json!(message)));
        let changed = grace.wait(handle.context(EventName::ContextWithSystem, &whole)).await.flatten();
        if let Some(messages) = changed.and_then(|changed| read(handle, EventName::ContextWithSystem, changed)) {
            apply_system_messages(handle, call, messages);
        }
    }
}

/// Reads messages that a handler returned; a list with an invalid one is reported and not used.
fn read(handle: &ExtensionHandle, event: EventName, changed: Vec<Value>) -> Option<Vec<Arc<Message>>> {
    let read = changed.into_iter().enumerate().map(|(at, value)| match serde_json::from_value(value) {
        Ok(message) => Ok(Arc::new(message)),
        Err(error) => Err(format!("messages[{at}] cannot be used: {error}")),
    });
    let read: Result<Vec<_>, _> = read.collect();
    read.map_err(|error| handle.report("<runtime>", event, error)).ok()
}

/// The system prompt and the tools as a system message.
pub(super) fn system_message(call: &LlmCall) -> Value {
    let tool =
        |tool: &ToolSpec| json!({ "name": tool.name, "description": tool.description, "parameters": tool.parameters });
    json!({
        "role": "system",
        "content": &*call.system_prompt,
        "toolsAdded": call.tools.iter().map(tool).collect::<Vec<_>>(),
        "timestamp": 0,
    })
}

/// Applies a list that contains system messages: the first is the prompt, later ones are appended to it.
fn apply_system_messages(handle: &ExtensionHandle, call: &mut LlmCall, messages: Vec<Arc<Message>>) {
    let is_led = messages.first().is_some_and(|message| message.role() == "system");
    if !is_led {
        handle.report("<runtime>", EventName::ContextWithSystem, NO_SYSTEM);
    }
    let (mut prompts, mut tools) = (Vec::new(), Vec::new());
    call.messages.clear();
    for message in messages {
        match &*message {
            Message::Other(system) if message.role() == "system" => {
                prompts.extend(text(system));
                change_tools(&mut tools, system);
            }
            _ => call.messages.push(message),
        }
    }
    call.system_prompt = prompts.join("\n\n").into();
    let known = call.tools.clone();
    let find = |name: &String| known.iter().find(|tool| *tool.name == **name).cloned();
    call.tools = tools.iter().filter_map(find).collect();
}

/// The text of a system message: its content, then its sections.
fn text(system: &Map<String, Value>) -> Option<String> {
    let content = system.get("content").and_then(|content| Content::deserialize(content).ok());
    let sections = system.get("sections").and_then(Value::as_object);
    let sections = sections.into_iter().flat_map(Map::values).filter_map(Value::as_str);
    let content = match content {
        Some(Content::Text(text)) => text,
        Some(Content::Blocks(blocks)) => blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n"),
        None => String::new(),
    };
    let parts: Vec<&str> = [content.as_str()].into_iter().chain(sections).filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Applies the tools that a system message adds and removes. Only tools pith can run are kept.
fn change_tools(tools: &mut Vec<String>, system: &Map<String, Value>) {
    let listed = |key: &str| system.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let name = |tool: &Value| tool.get("name").unwrap_or(tool).as_str().map(str::to_owned);
    let removed: Vec<String> = listed("toolsRemoved").iter().filter_map(name).collect();
    tools.retain(|tool| !removed.contains(tool));
    for added in listed("toolsAdded").iter().filter_map(name) {
        if !tools.contains(&added) {
            tools.push(added);
        }
    }
}
