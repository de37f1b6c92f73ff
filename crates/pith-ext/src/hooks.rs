//! The events that the session raises, and their results.
//!
//! One method per event. Each returns at once if no extension listens. Errors in handlers are reported separately; the
//! results here are always usable.

use std::time::Instant;

use pith_protocol::Block;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::events::EventName;
use crate::handle::{EngineWait, ExtensionHandle, read};

/// Whether an event is delivered after earlier events of the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EventOrder {
    InOrder,
    AtOnce,
}

/// A handler's decision about trusting the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct TrustDecision {
    pub trusted: bool,
    pub remember: bool,
}

/// Paths of resources that extensions provide, each with its extension.
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

/// What `input` handlers decided about a prompt.
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
    /// The edited options; `None` if no handler edited them.
    pub system_prompt_options: Option<Value>,
}

/// Drafts and a continuation that handlers propose at the end of a turn or run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Boundary {
    pub entries: Vec<Value>,
    /// The extension that proposed the entries.
    pub proposer: Option<String>,
    #[serde(rename = "continue")]
    pub continues: bool,
}

/// Whether a tool call may run.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolCallVerdict {
    /// Run it with these arguments, which handlers may have changed.
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

/// Who runs a shell command of the host.
#[derive(Clone, Debug, PartialEq)]
pub enum UserBash {
    /// No extension took it: the session runs it.
    Local,
    /// These operations of an extension run it; see [`ExtensionHandle::run_operations`].
    Operations(u64),
    /// An extension has run it: `{output, exitCode, cancelled, truncated, fullOutputPath?}`.
    Result(Value),
    /// The command fails with this text and is not run.
    Failed(String),
}

impl ExtensionHandle {
    /// Raises `project_trust`, before a session exists. `None` if no handler decided.
    pub async fn project_trust(&self, cwd: &str) -> Option<TrustDecision> {
        self.emit(EventName::ProjectTrust, json!({ "cwd": cwd }), EventOrder::AtOnce).await
    }

    /// Raises `session_start` and, for extensions that know only those, the older names for it.
    pub async fn session_start(&self, reason: &str, previous_session_file: Option<&str>) {
        let legacy = [EventName::SessionSwitch, EventName::SessionFork];
        if self.listens(EventName::SessionStart) || legacy.into_iter().any(|event| self.listens(event)) {
            let payload = json!({ "reason": reason, "previousSessionFile": previous_session_file });
            let _: Option<Value> = self.deliver(EventName::SessionStart, payload, EventOrder::AtOnce, None).await;
        }
    }

    /// Raises `resources_discover`; `reason` is `startup` or `reload`.
    pub async fn resources_discover(&self, cwd: &str, reason: &str) -> DiscoveredResources {
        let payload = json!({ "cwd": cwd, "reason": reason });
        self.emit(EventName::ResourcesDiscover, payload, EventOrder::AtOnce).await.unwrap_or_default()
    }

    /// Raises `session_shutdown`, with a limit of its own when the process is about to end.
    pub async fn session_shutdown(&self, reason: &str, target_session_file: Option<&str>) {
        let payload = json!({ "reason": reason, "targetSessionFile": target_session_file });
        let done = self.emit::<Value>(EventName::SessionShutdown, payload, EventOrder::AtOnce);
        if reason == "quit" {
            let _ = tokio::time::timeout(self.limits.shutdown, done).await;
        } else {
            done.await;
        }
    }

    /// Called when the process ends: raises `session_shutdown`, then stops the engine, both within one limit.
    pub async fn quit(&self) {
        let shutdown = async {
            self.session_shutdown("quit", None).await;
            self.close().await;
        };
        if tokio::time::timeout(self.limits.shutdown, shutdown).await.is_err() {
            self.stop();
        }
    }

    /// Raises an event whose handlers can cancel what it announces: `session_before_switch`, `_fork`, `_compact`,
    /// `_tree`. Returns what the last handler returned; `cancel: true` in it refuses.
    pub async fn session_before(&self, event: EventName, payload: Value, cancel: &CancellationToken) -> Option<Value> {
        if !self.listens(event) {
            return None;
        }
        self.deliver(event, payload, EventOrder::AtOnce, Some(cancel)).await
    }

    /// Raises `input`, for prompts and queued messages alike.
    pub async fn input(&self, text: &str, images: &[Block], source: &str, behavior: Option<&str>) -> InputVerdict {
        if !self.listens(EventName::Input) {
            return InputVerdict::Continue;
        }
        let images = (!images.is_empty()).then_some(images);
        let payload = json!({ "text": text, "images": images, "source": source, "streamingBehavior": behavior });
        self.deliver(EventName::Input, payload, EventOrder::AtOnce, None).await.unwrap_or(InputVerdict::Continue)
    }

    /// Raises `before_agent_start` with `prompt`, `images`, `systemPrompt` and `systemPromptOptions` in the payload.
    pub async fn before_agent_start(&self, payload: Value) -> AgentStart {
        self.emit(EventName::BeforeAgentStart, payload, EventOrder::InOrder).await.unwrap_or_default()
    }

    /// Raises `context` or `context_with_system`; returns the messages to use instead, if handlers changed them.
    pub async fn context(&self, event: EventName, messages: &impl Serialize) -> Option<Vec<Value>> {
        #[derive(Deserialize)]
        struct Changed {
            messages: Vec<Value>,
        }
        if !self.listens(event) {
            return None;
        }
        let changed: Option<Changed> = self.emit(event, json!({ "messages": messages }), EventOrder::InOrder).await;
        changed.map(|changed| changed.messages)
    }

    /// Raises `before_provider_headers`; returns the headers to send, in which `null` removes one.
    pub async fn before_provider_headers(&self, headers: Map<String, Value>) -> Map<String, Value> {
        if !self.listens(EventName::BeforeProviderHeaders) {
            return headers;
        }
        let payload = json!({ "headers": headers });
        let changed: Option<Map<String, Value>> =
            self.emit(EventName::BeforeProviderHeaders, payload, EventOrder::InOrder).await;
        match changed.and_then(|mut changed| changed.remove("headers")) {
            Some(Value::Object(headers)) => headers,
            _ => headers,
        }
    }

    /// Raises `before_provider_request`; returns the payload to send.
    pub async fn before_provider_request(&self, payload: Value) -> Value {
        if !self.listens(EventName::BeforeProviderRequest) {
            return payload;
        }
        let event = json!({ "payload": payload });
        let changed: Option<Map<String, Value>> =
            self.emit(EventName::BeforeProviderRequest, event, EventOrder::InOrder).await;
        changed.and_then(|mut changed| changed.remove("payload")).unwrap_or(payload)
    }

    /// Raises `message_end`; returns the message to store and show instead, if handlers replaced it.
    pub async fn message_end(&self, message: &impl Serialize) -> Option<Value> {
        if !self.listens(EventName::MessageEnd) {
            return None;
        }
        let replaced: Option<Map<String, Value>> =
            self.emit(EventName::MessageEnd, json!({ "message": message }), EventOrder::InOrder).await;
        replaced.and_then(|mut replaced| replaced.remove("message"))
    }

    /// Raises `turn_end` or `agent_before_settle`. `None` if no handler proposed anything.
    pub async fn boundary(&self, event: EventName, payload: Value) -> Option<Boundary> {
        self.emit(event, payload, EventOrder::InOrder).await
    }

    /// Raises `tool_call`. If handlers cannot decide, the call does not run.
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
        let args = json!({ "event": event, "inOrder": true });
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

    /// Raises `tool_result`; returns what handlers changed. The payload has `toolCallId`, `toolName`, `input`,
    /// `content`, `details`, `isError` and `usage`.
    pub async fn tool_result(&self, payload: Value) -> Option<ToolResultPatch> {
        self.emit(EventName::ToolResult, payload, EventOrder::InOrder).await
    }

    /// Raises `user_bash`.
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

    /// Raises `cache_warming_decision`; returns `warm`, `stop`, or `None` for no opinion.
    pub async fn cache_warming_decision(&self, payload: Value) -> Option<String> {
        let decided: Option<Map<String, Value>> =
            self.emit(EventName::CacheWarmingDecision, payload, EventOrder::AtOnce).await;
        decided?.get("action")?.as_str().map(str::to_owned)
    }

    /// Raises an event without a result. Handlers see events of a run in order. Returns when they have handled it;
    /// dropping the future does not take the event back.
    pub async fn notify(&self, event: EventName, payload: Value) {
        if self.listens(event) {
            let order = if in_order(event) { EventOrder::InOrder } else { EventOrder::AtOnce };
            let _: Option<Value> = self.deliver(event, payload, order, None).await;
        }
    }

    /// Raises an event without a result and without waiting for handlers.
    pub fn announce(&self, event: EventName, payload: Value) {
        if self.listens(event) {
            let args = json!({ "event": with_type(event, payload), "inOrder": in_order(event) });
            self.tell("event", &args);
        }
    }

    /// Raises `message_update` or `tool_execution_update`: while handlers are busy only the newest of each `key` is
    /// kept. `payload` is called only if an extension listens.
    pub fn observe_update(&self, event: EventName, key: &str, payload: impl FnOnce() -> Value) {
        if self.listens(event) {
            self.observe(&format!("{}:{key}", event.as_str()), with_type(event, payload()).to_string());
        }
    }

    /// Like [`Self::observe_update`], with a whole event that is JSON already.
    pub fn observe_text(&self, event: EventName, key: &str, text: impl FnOnce() -> String) {
        if self.listens(event) {
            self.observe(&format!("{}:{key}", event.as_str()), text());
        }
    }

    async fn emit<T: serde::de::DeserializeOwned>(
        &self,
        event: EventName,
        payload: Value,
        order: EventOrder,
    ) -> Option<T> {
        if self.listens(event) { self.deliver(event, payload, order, None).await } else { None }
    }

    async fn deliver<T: serde::de::DeserializeOwned>(
        &self,
        event: EventName,
        payload: Value,
        order: EventOrder,
        cancel: Option<&CancellationToken>,
    ) -> Option<T> {
        let args = json!({ "event": with_type(event, payload), "inOrder": order == EventOrder::InOrder });
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

/// The event as handlers get it, with its name as first member.
fn with_type(event: EventName, mut payload: Value) -> Value {
    if let Value::Object(fields) = &mut payload {
        fields.shift_insert(0, "type".to_owned(), event.as_str().into());
    }
    payload
}

/// Whether an event belongs to a run and keeps its order there.
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
