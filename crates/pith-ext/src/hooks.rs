//! Events as the session raises them, and what becomes of them.
//!
//! One method per hook. Each returns at once when nobody listens. Whatever goes
//! wrong in a handler is reported by itself; results here are always usable.

use std::time::Instant;

use pith_protocol::Block;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::events::EventName;
use crate::handle::{EngineWait, ExtensionHandle, read};

/// Whether an event waits its turn behind earlier events of the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    InOrder,
    AtOnce,
}

/// A decision about the project, made by a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct TrustDecision {
    pub trusted: bool,
    pub remember: bool,
}

/// Paths extensions bring along, with the extension each comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveredResources {
    pub skill_paths: Vec<DiscoveredPath>,
    pub prompt_paths: Vec<DiscoveredPath>,
    pub theme_paths: Vec<DiscoveredPath>,
}

/// One such path.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveredPath {
    pub path: String,
    pub extension_path: String,
}

/// What became of a prompt.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "action", rename_all = "camelCase")]
pub enum InputVerdict {
    Continue,
    Transform { text: String, images: Option<Vec<Block>> },
    Handled,
}

/// What handlers add to a run before it starts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStart {
    /// `{customType, content, display, details?}` messages that follow the user's.
    pub messages: Vec<Value>,
    /// Replaces the whole system prompt for this run.
    pub system_prompt: Option<String>,
    /// The options as edited; `None` if nobody touched them.
    pub system_prompt_options: Option<Value>,
}

/// Drafts and a continuation proposed at the end of a turn or run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Boundary {
    pub entries: Vec<Value>,
    /// The extension whose entries these are.
    pub proposer: Option<String>,
    #[serde(rename = "continue")]
    pub continues: bool,
}

/// Whether a tool call may run.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolCallVerdict {
    /// With these arguments, which handlers may have changed.
    Allow(Map<String, Value>),
    Block {
        reason: String,
        terminate: bool,
    },
}

/// A tool result as handlers left it; absent parts are unchanged.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultPatch {
    pub content: Option<Vec<Block>>,
    pub details: Option<Value>,
    pub is_error: Option<bool>,
    pub usage: Option<Value>,
}

/// Who runs a command of the person at the keyboard.
#[derive(Clone, Debug, PartialEq)]
pub enum UserBash {
    /// Nobody took it: run it here.
    Local,
    /// These operations of an extension run it; see [`ExtensionHandle::run_operations`].
    Operations(u64),
    /// It has been run: `{output, exitCode, cancelled, truncated, fullOutputPath?}`.
    Result(Value),
    /// The command fails with this text; nothing is run.
    Failed(String),
}

impl ExtensionHandle {
    /// `project_trust`, before a session exists. `None` if no handler decided.
    pub async fn project_trust(&self, cwd: &str) -> Option<TrustDecision> {
        self.emit(EventName::ProjectTrust, json!({ "cwd": cwd }), Turn::AtOnce).await
    }

    /// `session_start` and, for extensions that know only those, the older names for it.
    pub async fn session_start(&self, reason: &str, previous_session_file: Option<&str>) {
        let legacy = [EventName::SessionSwitch, EventName::SessionFork];
        if self.listens(EventName::SessionStart) || legacy.into_iter().any(|event| self.listens(event)) {
            let payload = json!({ "reason": reason, "previousSessionFile": previous_session_file });
            let _: Option<Value> = self.deliver(EventName::SessionStart, payload, Turn::AtOnce, None).await;
        }
    }

    /// `resources_discover`; `reason` is `startup` or `reload`.
    pub async fn resources_discover(&self, cwd: &str, reason: &str) -> DiscoveredResources {
        let payload = json!({ "cwd": cwd, "reason": reason });
        self.emit(EventName::ResourcesDiscover, payload, Turn::AtOnce).await.unwrap_or_default()
    }

    /// `session_shutdown`, with a limit of its own when the process is about to end.
    pub async fn session_shutdown(&self, reason: &str, target_session_file: Option<&str>) {
        let payload = json!({ "reason": reason, "targetSessionFile": target_session_file });
        let done = self.emit::<Value>(EventName::SessionShutdown, payload, Turn::AtOnce);
        if reason == "quit" {
            let _ = tokio::time::timeout(self.limits.shutdown, done).await;
        } else {
            done.await;
        }
    }

    /// The process ends: `session_shutdown`, then the end of the engine, both within the one limit.
    pub async fn quit(&self) {
        let farewell = async {
            self.session_shutdown("quit", None).await;
            self.close().await;
        };
        if tokio::time::timeout(self.limits.shutdown, farewell).await.is_err() {
            self.stop();
        }
    }

    /// An event whose handlers can cancel what it announces: `session_before_switch`, `_fork`, `_compact`, `_tree`.
    /// The result is what the last handler returned; `cancel: true` in it stops everything.
    pub async fn session_before(&self, event: EventName, payload: Value, cancel: &CancellationToken) -> Option<Value> {
        if !self.listens(event) {
            return None;
        }
        self.deliver(event, payload, Turn::AtOnce, Some(cancel)).await
    }

    /// `input`, for prompts and queued messages alike.
    pub async fn input(&self, text: &str, images: &[Block], source: &str, behavior: Option<&str>) -> InputVerdict {
        if !self.listens(EventName::Input) {
            return InputVerdict::Continue;
        }
        let images = (!images.is_empty()).then_some(images);
        let payload = json!({ "text": text, "images": images, "source": source, "streamingBehavior": behavior });
        self.deliver(EventName::Input, payload, Turn::AtOnce, None).await.unwrap_or(InputVerdict::Continue)
    }

    /// `before_agent_start`: `prompt`, `images`, `systemPrompt` and `systemPromptOptions` in the payload.
    pub async fn before_agent_start(&self, payload: Value) -> AgentStart {
        self.emit(EventName::BeforeAgentStart, payload, Turn::InOrder).await.unwrap_or_default()
    }

    /// `context` or `context_with_system`: the messages to use instead, if handlers changed them.
    pub async fn context(&self, event: EventName, messages: &impl Serialize) -> Option<Vec<Value>> {
        #[derive(Deserialize)]
        struct Changed {
            messages: Vec<Value>,
        }
        if !self.listens(event) {
            return None;
        }
        let changed: Option<Changed> = self.emit(event, json!({ "messages": messages }), Turn::InOrder).await;
        changed.map(|changed| changed.messages)
    }

    /// `before_provider_headers`: the headers to send; `null` removes one.
    pub async fn before_provider_headers(&self, headers: Map<String, Value>) -> Map<String, Value> {
        if !self.listens(EventName::BeforeProviderHeaders) {
            return headers;
        }
        let payload = json!({ "headers": headers });
        let changed: Option<Map<String, Value>> =
            self.emit(EventName::BeforeProviderHeaders, payload, Turn::InOrder).await;
        match changed.and_then(|mut changed| changed.remove("headers")) {
            Some(Value::Object(headers)) => headers,
            _ => headers,
        }
    }

    /// `before_provider_request`: the payload to send.
    pub async fn before_provider_request(&self, payload: Value) -> Value {
        if !self.listens(EventName::BeforeProviderRequest) {
            return payload;
        }
        let event = json!({ "payload": payload });
        let changed: Option<Map<String, Value>> =
            self.emit(EventName::BeforeProviderRequest, event, Turn::InOrder).await;
        changed.and_then(|mut changed| changed.remove("payload")).unwrap_or(payload)
    }

    /// `message_end`: the message to store and show instead, if handlers replaced it.
    pub async fn message_end(&self, message: &impl Serialize) -> Option<Value> {
        if !self.listens(EventName::MessageEnd) {
            return None;
        }
        let replaced: Option<Map<String, Value>> =
            self.emit(EventName::MessageEnd, json!({ "message": message }), Turn::InOrder).await;
        replaced.and_then(|mut replaced| replaced.remove("message"))
    }

    /// `turn_end` or `agent_before_settle`. `None` if no handler proposed anything.
    pub async fn boundary(&self, event: EventName, payload: Value) -> Option<Boundary> {
        self.emit(event, payload, Turn::InOrder).await
    }

    /// `tool_call`. Whatever keeps handlers from deciding also keeps the call from running.
    pub async fn tool_call(&self, call_id: &str, name: &str, input: Map<String, Value>) -> ToolCallVerdict {
        if !self.listens(EventName::ToolCall) {
            return ToolCallVerdict::Allow(input);
        }
        #[derive(Deserialize)]
        struct Verdict {
            block: bool,
            #[serde(default)]
            reason: String,
            #[serde(default)]
            terminate: bool,
            input: Option<Map<String, Value>>,
        }
        let event = json!({ "type": "tool_call", "toolName": name, "toolCallId": call_id, "input": input });
        let args = json!({ "event": event, "lane": true });
        match self.call::<Verdict>("event", &args, EngineWait::Handler).await {
            Ok(Verdict { block: false, input: Some(input), .. }) => ToolCallVerdict::Allow(input),
            Ok(Verdict { block: true, reason, terminate, .. }) => ToolCallVerdict::Block { reason, terminate },
            Ok(Verdict { block: false, input: None, .. }) => {
                self.blocked("an extension replaced the arguments by nothing")
            }
            Err(error) => self.blocked(&error.to_string()),
        }
    }

    fn blocked(&self, why: &str) -> ToolCallVerdict {
        self.shared.report("<runtime>", "tool_call", why);
        ToolCallVerdict::Block { reason: format!("Extension failed, blocking execution: {why}"), terminate: false }
    }

    /// `tool_result`: what handlers changed. The payload has `toolCallId`, `toolName`, `input`, `content`,
    /// `details`, `isError` and `usage`.
    pub async fn tool_result(&self, payload: Value) -> Option<ToolResultPatch> {
        self.emit(EventName::ToolResult, payload, Turn::InOrder).await
    }

    /// `user_bash`.
    pub async fn user_bash(&self, command: &str, exclude_from_context: bool, cwd: &str) -> UserBash {
        #[derive(Deserialize)]
        struct Taken {
            operations: Option<u64>,
            result: Option<Value>,
            error: Option<String>,
        }
        if !self.listens(EventName::UserBash) {
            return UserBash::Local;
        }
        let payload = json!({ "command": command, "excludeFromContext": exclude_from_context, "cwd": cwd });
        let event = with_type(EventName::UserBash, payload);
        match self.call::<Option<Taken>>("event", &json!({ "event": event }), EngineWait::Handler).await {
            Ok(None) => UserBash::Local,
            Ok(Some(Taken { error: Some(error), .. })) => UserBash::Failed(error),
            Ok(Some(Taken { operations: Some(operations), .. })) => UserBash::Operations(operations),
            Ok(Some(Taken { result: Some(result), .. })) => UserBash::Result(result),
            Ok(Some(_)) => UserBash::Failed("The extension gave no result".to_owned()),
            Err(error) => UserBash::Failed(error.to_string()),
        }
    }

    /// `cache_warming_decision`: `warm`, `stop`, or `None` for no opinion.
    pub async fn cache_warming_decision(&self, payload: Value) -> Option<String> {
        let decided: Option<Map<String, Value>> =
            self.emit(EventName::CacheWarmingDecision, payload, Turn::AtOnce).await;
        decided?.get("action")?.as_str().map(str::to_owned)
    }

    /// A notification. Handlers see those of a run in order, after everything the run raised before.
    /// Returns when they have seen it; dropping the future does not take it back.
    pub async fn notify(&self, event: EventName, payload: Value) {
        if self.listens(event) {
            let turn = if in_order(event) { Turn::InOrder } else { Turn::AtOnce };
            let _: Option<Value> = self.deliver(event, payload, turn, None).await;
        }
    }

    /// A notification nobody waits for.
    pub fn announce(&self, event: EventName, payload: Value) {
        if self.listens(event) {
            let args = json!({ "event": with_type(event, payload), "lane": in_order(event) });
            self.tell("event", &args);
        }
    }

    /// `message_update` or `tool_execution_update`: while handlers are busy only the newest of each `key` is kept.
    /// `payload` is called only if somebody listens.
    pub fn observe_update(&self, event: EventName, key: &str, payload: impl FnOnce() -> Value) {
        if self.listens(event) {
            self.observe(&format!("{}:{key}", event.as_str()), with_type(event, payload()).to_string());
        }
    }

    /// The same with a whole event that is JSON already.
    pub fn observe_text(&self, event: EventName, key: &str, text: impl FnOnce() -> String) {
        if self.listens(event) {
            self.observe(&format!("{}:{key}", event.as_str()), text());
        }
    }

    async fn emit<T: serde::de::DeserializeOwned>(&self, event: EventName, payload: Value, turn: Turn) -> Option<T> {
        if self.listens(event) { self.deliver(event, payload, turn, None).await } else { None }
    }

    async fn deliver<T: serde::de::DeserializeOwned>(
        &self,
        event: EventName,
        payload: Value,
        turn: Turn,
        cancel: Option<&CancellationToken>,
    ) -> Option<T> {
        let args = json!({ "event": with_type(event, payload), "lane": turn == Turn::InOrder });
        let start = Instant::now();
        let call = self.open("event", &args, None);
        let outcome = match cancel {
            Some(cancel) => call.finish_or_abort(cancel).await,
            None => call.finish(EngineWait::Handler).await,
        };
        let (name, is_ok) = (event.as_str(), outcome.is_ok());
        debug!(target: "pith::extension", event = name, is_ok, took = ?start.elapsed(), "handlers");
        match outcome.and_then(|text| read::<Option<T>>(&text)) {
            Ok(result) => result,
            Err(error) => {
                self.shared.report("<runtime>", event.as_str(), error.to_string());
                None
            }
        }
    }
}

/// The event as handlers get it: its name comes first when somebody prints it.
fn with_type(event: EventName, mut payload: Value) -> Value {
    if let Value::Object(fields) = &mut payload {
        fields.shift_insert(0, "type".to_owned(), event.as_str().into());
    }
    payload
}

/// Events that happen inside a run and keep their order there.
fn in_order(event: EventName) -> bool {
    use EventName::*;
    matches!(
        event,
        AgentStart
            | AgentEnd
            | AgentSettled
            | TurnStart
            | TurnEnd
            | MessageStart
            | MessageEnd
            | ToolExecutionStart
            | ToolExecutionEnd
            | AfterProviderResponse
    )
}
