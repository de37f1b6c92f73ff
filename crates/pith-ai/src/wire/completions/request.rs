//! The request of a chat-completions call.

use pith_protocol::{Block, CacheRetention, LlmCall, Message, ToolSpec};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::compat::{Compat, Vendor};
use super::messages::{CacheControl, messages};
use super::thinking;
use crate::failure::Fault;
use crate::limits::output_limit;
use crate::prepare::{IdRule, PrepareOptions, prepare, sanitise, short_hash, shorten};
use crate::wire::body::Body;
use crate::wire::common::{Affinity, KeyStyle, base_url, compat as compat_key, headers, session_id, strict_schema};
use crate::wire::{Headers, HttpRequest, RequestInput};

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Parameters<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Parameters<'a> {
    Plain(&'a Value),
    Strict(Value),
}

/// Builds the request.
pub(super) fn build(input: &RequestInput<'_>) -> Result<HttpRequest, Fault> {
    let RequestInput { call, options, refused, .. } = *input;
    let model = &*call.model;
    let compat = Compat::of(model, refused);
    let options = PrepareOptions {
        ids: id_rule(&compat),
        foreign_thinking: options.foreign_thinking,
        merge_users: compat.merge_users,
    };
    let is_long = call.cache == CacheRetention::Long && compat.long_cache;
    let cache =
        (compat.anthropic_cache_control && call.cache != CacheRetention::None).then(|| CacheControl::new(is_long));
    let turns = prepare(call, options);
    let max_tokens = output_limit(call, input.input_tokens);

    let mut body = Body::new(model, refused);
    body.field("model", &model.id);
    // Most servers refuse an empty list; for some it says that the calls in the history were no accident.
    if !call.tools.is_empty() || (compat.tools_with_history && has_calls(call)) {
        body.field("tools", &tools(call, &compat, cache));
    }
    body.field("messages", &messages(call, turns, &compat, cache));
    body.field("stream", &true);
    if compat.usage_in_streaming {
        body.field("stream_options", &json!({"include_usage": true}));
    }
    if compat.store {
        body.field("store", &false);
    }
    body.field(compat.max_tokens_field, &max_tokens);
    if compat.tool_stream && !call.tools.is_empty() {
        body.field("tool_stream", &true);
    }
    if let Some(id) = session_id(call).filter(|_| compat.vendor == Vendor::OpenAi || is_long) {
        body.field("prompt_cache_key", &id.chars().take(64).collect::<String>());
    }
    if is_long {
        body.field("prompt_cache_retention", "24h");
    }
    thinking::write(&mut body, input, &compat, max_tokens);
    body.optional("priority", compat_key(model, "vllmPriority"));
    body.optional("provider", compat_key(model, "openRouterRouting"));
    body.optional("providerOptions", gateway_options(Compat::object(model, "vercelGatewayRouting")));

    let mut headers = headers(input, KeyStyle::Bearer);
    add_affinity(&mut headers, call, &compat);
    headers.apply(&input.credentials.headers);
    let url = format!("{}/chat/completions", base_url(model)?);
    Ok(HttpRequest { url, headers, body: body.finish().into() })
}

fn id_rule(compat: &Compat<'_>) -> IdRule {
    if compat.short_ids {
        let foreign = |id: &str, _: &pith_protocol::Model| {
            let is_legal = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if is_legal { id.to_owned() } else { format!("c{}", short_hash(id)) }
        };
        return IdRule { max: 9, foreign, has_items: false };
    }
    IdRule {
        max: 40,
        foreign: |id, model| match id.split_once('|') {
            Some((call, _)) if id.len() > 40 => {
                let call = sanitise(call);
                let stem = &call[..call.len().min(31)];
                format!("{stem}_{}", short_hash(id))
            }
            Some(_) => sanitise(id),
            None if model.provider == "openai" => shorten(id, id, 40),
            None => id.to_owned(),
        },
        has_items: false,
    }
}

fn has_calls(call: &LlmCall) -> bool {
    call.messages.iter().any(|message| match &**message {
        Message::Assistant(message) => message.content.iter().any(|block| matches!(block, Block::ToolCall(_))),
        Message::ToolResult(_) => true,
        _ => false,
    })
}

fn tools<'a>(call: &'a LlmCall, compat: &Compat<'_>, cache: Option<CacheControl>) -> Vec<Tool<'a>> {
    let tool = |tool: &'a ToolSpec| {
        let strict = strict_schema(tool, compat.strict);
        let function = Function {
            name: &tool.name,
            description: &tool.description,
            strict: compat.strict.then_some(strict.is_some()),
            parameters: strict.map_or(Parameters::Plain(&tool.parameters), Parameters::Strict),
        };
        Tool { r#type: "function", function, cache_control: None }
    };
    let mut tools: Vec<_> = call.tools.iter().map(tool).collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = cache;
    }
    tools
}

fn gateway_options(routing: Option<&Map<String, Value>>) -> Option<Value> {
    let routing = routing?;
    let chosen = |key: &str| routing.get(key).map(|value| (key.to_owned(), value.clone()));
    let gateway: Map<String, Value> = ["only", "order"].into_iter().filter_map(chosen).collect();
    (!gateway.is_empty()).then(|| json!({"gateway": gateway}))
}

fn add_affinity(headers: &mut Headers, call: &LlmCall, compat: &Compat<'_>) {
    let (Some(id), Some(affinity)) = (session_id(call), compat.affinity) else { return };
    let names: &[&str] = match affinity {
        Affinity::Router => &["x-session-id"],
        Affinity::Session => &["session_id", "x-client-request-id", "x-session-affinity"],
        Affinity::NoSession => &["x-client-request-id", "x-session-affinity"],
    };
    names.iter().for_each(|name| headers.set(name, id));
}
