//! The request of an Anthropic call.

use std::borrow::Cow;
use std::collections::HashSet;

use pith_protocol::{CacheRetention, LlmCall, Model, ThinkingLevel, ToolSpec};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::messages::{Block, CacheControl, Kind, mark_last_user_turns, messages};
use crate::failure::Fault;
use crate::limits::{ANSWER_TOKENS, limit_with_budget, output_limit};
use crate::prepare::{IdRule, PrepareOptions, PreparedMessage, prepare, sanitise, shorten};
use crate::schema;
use crate::wire::body::Body;
use crate::wire::common::{
    KeyStyle, base_url, compat, flag, headers, is_host, is_openrouter, session_id, strict_schema,
};
use crate::wire::{HttpRequest, Refused, RequestInput};

const VERSION: &str = "2023-06-01";

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    eager_input_streaming: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
    input_schema: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    defer_loading: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// How the model is told to think.
struct Thinking {
    thinking: Option<Value>,
    effort: Option<String>,
    max_tokens: u64,
    is_budgeted: bool,
}

/// Builds the request. System prompt and tools come before the messages, so that consecutive requests share the
/// longest prefix.
pub(super) fn build(input: &RequestInput<'_>) -> Result<HttpRequest, Fault> {
    let RequestInput { call, options, refused, .. } = *input;
    let model = &*call.model;
    let cache = cache_control(call, refused);
    let thinking = thinking(input);
    let ids = IdRule { max: 64, foreign: |id, _| shorten(&sanitise(id), id, 64), has_items: false };
    let options = PrepareOptions {
        ids,
        foreign_thinking: options.foreign_thinking,
        merge_users: flag(model, "requiresAlternation", false),
    };
    let turns = prepare(call, options);
    let deferred = deferred(call, refused, &turns);
    let mut messages = messages(turns, &deferred, flag(model, "allowEmptySignature", false));
    mark_last_user_turns(&mut messages, cache);

    let mut body = Body::new(model, refused);
    body.field("model", &model.id);
    if !call.system_prompt.is_empty() {
        let kind = Kind::Text { text: Cow::Borrowed(&call.system_prompt) };
        body.field("system", &[Block { kind, cache_control: cache }]);
    }
    if !call.tools.is_empty() {
        body.field("tools", &tools(call, refused, cache, &deferred));
    }
    body.field("messages", &messages);
    body.field("max_tokens", &thinking.max_tokens);
    body.field("stream", &true);
    let betas = betas(call, &thinking);
    body.optional("thinking", thinking.thinking);
    body.optional("output_config", thinking.effort.map(|effort| json!({"effort": effort})));
    body.optional("fallbacks", fallbacks(model));

    let base = base_url(model)?;
    let url = if base.ends_with("/v1") { format!("{base}/messages") } else { format!("{base}/v1/messages") };
    let mut headers = headers(input, KeyStyle::Header("x-api-key"));
    headers.set("anthropic-version", VERSION);
    if !betas.is_empty() {
        headers.set("anthropic-beta", &betas.join(","));
    }
    if let Some(id) = session_id(call).filter(|_| flag(model, "sendSessionAffinityHeaders", is_openrouter(model))) {
        headers.set(if is_openrouter(model) { "x-session-id" } else { "x-session-affinity" }, id);
    }
    headers.apply(&input.credentials.headers);
    Ok(HttpRequest { url, headers, body: body.finish().into() })
}

fn betas(call: &LlmCall, thinking: &Thinking) -> Vec<&'static str> {
    let mut betas = Vec::new();
    if !call.tools.is_empty() && !flag(&call.model, "supportsEagerToolInputStreaming", true) {
        betas.push("fine-grained-tool-streaming-2025-05-14");
    }
    if thinking.is_budgeted {
        betas.push("interleaved-thinking-2025-05-14");
    }
    if thinking.thinking.as_ref().is_some_and(|thinking| thinking.get("block_binding").is_some()) {
        betas.push("thinking-binding-controls-2026-08-01");
    }
    if fallbacks(&call.model).is_some() {
        betas.push("server-side-fallback-2026-07-01");
    }
    betas
}

fn fallbacks(model: &Model) -> Option<Value> {
    let models = compat(model, "allowedFallbackModels")?.as_array().filter(|models| !models.is_empty())?;
    // Catalogues also say where the model is and what it costs.
    let id = |model: &'_ Value| model.get("model").unwrap_or(model).clone();
    Some(models.iter().map(|model| json!({"model": id(model)})).collect())
}

fn cache_control(call: &LlmCall, refused: &Refused) -> Option<CacheControl> {
    if call.cache == CacheRetention::None || refused.contains("cache_control") {
        return None;
    }
    let is_long = call.cache == CacheRetention::Long
        && flag(&call.model, "supportsLongCacheRetention", true)
        && !refused.contains("ttl");
    Some(CacheControl { r#type: "ephemeral", ttl: is_long.then_some("1h") })
}

/// Returns the tools that a result in the conversation refers to. The server takes their definitions from there, so that
/// they do not stand before everything else, and a tool that is found leaves the cached prefix as it is.
fn deferred<'a>(call: &'a LlmCall, refused: &Refused, turns: &[PreparedMessage<'_>]) -> HashSet<&'a str> {
    // Anthropic's own server, from the fourth generation of its models on.
    let is_known = is_host(&call.model, "api.anthropic.com") && !call.model.id.contains("claude-3");
    if !flag(&call.model, "supportsDeferredTools", is_known) || refused.contains("defer_loading") {
        return HashSet::new();
    }
    let is_found = |name: &str| {
        turns.iter().any(|turn| matches!(turn, PreparedMessage::Result(result) if result.found.contains(&name)))
    };
    let deferred: HashSet<_> = call.tools.iter().map(|tool| &*tool.name).filter(|name| is_found(name)).collect();
    // The server refuses a request in which every tool is deferred.
    if deferred.len() < call.tools.len() { deferred } else { HashSet::new() }
}

fn tools<'a>(
    call: &'a LlmCall,
    refused: &Refused,
    cache: Option<CacheControl>,
    deferred: &HashSet<&str>,
) -> Vec<Tool<'a>> {
    let model = &call.model;
    let is_eager = flag(model, "supportsEagerToolInputStreaming", true) && !refused.contains("eager_input_streaming");
    let is_strict = flag(model, "supportsStrictTools", false) && !refused.contains("strict");
    let tool = |tool: &'a ToolSpec| {
        let strict = strict_schema(tool, is_strict).and_then(takes_strict);
        Tool {
            name: &tool.name,
            description: &tool.description,
            eager_input_streaming: is_eager.then_some(true),
            strict: strict.is_some().then_some(true),
            input_schema: strict.map_or_else(|| input_schema(&tool.parameters), complete),
            defer_loading: deferred.contains(&*tool.name).then_some(true),
            cache_control: None,
        }
    };
    let mut tools: Vec<_> = call.tools.iter().map(tool).collect();
    // A deferred tool is outside of what can be cached.
    let last = tools.iter_mut().rfind(|tool| tool.defer_loading.is_none());
    if let Some(last) = last.filter(|_| flag(model, "supportsCacheControlOnTools", true)) {
        last.cache_control = cache;
    }
    tools
}

/// What strict sampling cannot keep to. One schema with any of it makes the server refuse the whole request.
const NOT_STRICT: [&str; 11] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "maxItems",
    "uniqueItems",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
];

/// The formats of texts that strict sampling knows.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// Returns a strict schema if strict sampling can keep to it.
fn takes_strict(mut schema: Value) -> Option<Map<String, Value>> {
    let mut is_kept = true;
    schema::walk(&mut schema, &mut |object| {
        is_kept &= object.iter().all(|(keyword, value)| match keyword.as_str() {
            "minItems" => *value == 0 || *value == 1,
            "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
            keyword => !NOT_STRICT.contains(&keyword),
        });
    });
    match schema {
        Value::Object(schema) if is_kept => Some(schema),
        _ => None,
    }
}

/// Returns the schema of an ordinary tool. The API refuses a choice at its root, so nothing else is sent from there.
fn input_schema(parameters: &Value) -> Map<String, Value> {
    let sent = ["type", "properties", "required", "$defs", "definitions"];
    let member = |name: &str| Some((name.to_owned(), parameters.get(name)?.clone()));
    complete(sent.into_iter().filter_map(member).collect())
}

/// Returns the schema with the three keys that the API demands.
fn complete(mut schema: Map<String, Value>) -> Map<String, Value> {
    schema.insert("type".to_owned(), json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    schema.entry("required").or_insert_with(|| json!([]));
    schema
}

fn thinking(input: &RequestInput<'_>) -> Thinking {
    let (call, model, level) = (input.call, &*input.call.model, input.call.thinking);
    let max_tokens = output_limit(call, input.input_tokens);
    let plain = Thinking { thinking: None, effort: None, max_tokens, is_budgeted: false };
    if !model.reasoning {
        return plain;
    }
    let mapped = model.thinking_level_map.as_ref().and_then(|map| map.get(&level));
    let is_adaptive = flag(model, "forceAdaptiveThinking", false);
    let disabled = || Thinking { thinking: Some(json!({"type": "disabled"})), ..plain };
    match level {
        // `null` says that this model cannot be told to stop.
        ThinkingLevel::Off if is_adaptive && mapped == Some(&None) => {
            let thinking = binds_blocks(input).then(|| thinking_of("adaptive", input));
            Thinking { thinking, effort: None, max_tokens, is_budgeted: false }
        }
        ThinkingLevel::Off => disabled(),
        _ if is_adaptive => {
            let effort = mapped.cloned().flatten().unwrap_or_else(|| effort(level).to_owned());
            let thinking = thinking_of("adaptive", input);
            Thinking { thinking: Some(thinking), effort: Some(effort), max_tokens, is_budgeted: false }
        }
        _ => {
            let (max_tokens, budget) = limit_with_budget(call, input.input_tokens, input.options.budgets.of(level));
            // The API refuses budgets this small.
            if budget < ANSWER_TOKENS {
                return disabled();
            }
            let mut thinking = thinking_of("enabled", input);
            thinking["budget_tokens"] = json!(budget);
            Thinking { thinking: Some(thinking), effort: None, max_tokens, is_budgeted: true }
        }
    }
}

fn thinking_of(kind: &str, input: &RequestInput<'_>) -> Value {
    let mut thinking = json!({"type": kind});
    if !input.refused.contains("display") {
        thinking["display"] = json!("summarized");
    }
    if kind == "adaptive" && binds_blocks(input) {
        // Otherwise a change of the tools or the prompt would make the server refuse all earlier thinking.
        thinking["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
    }
    thinking
}

/// Whether the model checks that its thinking comes back behind the same beginning.
fn binds_blocks(input: &RequestInput<'_>) -> bool {
    flag(&input.call.model, "supportsMidConvoEffort", false) && !input.refused.contains("block_binding")
}

fn effort(level: ThinkingLevel) -> &'static str {
    match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => "high",
    }
}
