//! The request of a Responses call.

use std::borrow::Cow;

use pith_protocol::{CacheRetention, LlmCall, Model, ThinkingLevel, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::failure::Fault;
use crate::limits::output_limit;
use crate::prepare::{
    Answer, CallResult, IdRule, Part, PrepareOptions, PreparedBlock, PreparedMessage, gather, is_blank, prepare,
    sanitise, short_hash, shorten,
};
use crate::wire::body::Body;
use crate::wire::common::{Affinity, KeyStyle, base_url, flag, headers, joined_text, session_id, strict_schema};
use crate::wire::{Headers, HttpRequest, Refused, RequestInput, arguments_text};

/// The API accepts no smaller limit.
const MIN_OUTPUT_TOKENS: u64 = 16;

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Instruction { role: &'static str, content: &'a str },
    User { role: &'static str, content: Vec<Input<'a>> },
    Reasoning(&'a RawValue),
    Typed(Typed<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Typed<'a> {
    Message {
        role: &'static str,
        status: &'static str,
        id: Cow<'a, str>,
        content: [OutputText<'a>; 1],
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        call_id: String,
        name: &'a str,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: String,
        output: Output<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Input<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { detail: &'static str, image_url: String },
}

#[derive(Serialize)]
struct OutputText<'a> {
    r#type: &'static str,
    text: Cow<'a, str>,
    annotations: [(); 0],
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(String),
    Parts(Vec<Input<'a>>),
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// What a `textSignature` holds: the id of the message item, and its phase.
#[derive(Default, Deserialize)]
struct TextSignature {
    id: String,
    #[serde(default)]
    phase: Option<String>,
}

/// Builds the request.
pub(super) fn build(input: &RequestInput<'_>) -> Result<HttpRequest, Fault> {
    let RequestInput { call, options, refused, .. } = *input;
    let model = &*call.model;
    let ids = IdRule { max: 64, foreign: foreign_id, has_items: true };
    let merge_users = flag(model, "requiresAlternation", false);
    let turns = prepare(call, PrepareOptions { ids, foreign_thinking: options.foreign_thinking, merge_users });

    let mut body = Body::new(model, refused);
    body.field("model", &model.id);
    if !call.tools.is_empty() {
        body.field("tools", &tools(call, refused));
    }
    body.field("input", &items(call, turns, refused));
    body.field("stream", &true);
    body.field("store", &false);
    write_caching(&mut body, call);
    if flag(model, "supportsMaxOutputTokens", true) {
        body.field("max_output_tokens", &output_limit(call, input.input_tokens).max(MIN_OUTPUT_TOKENS));
    }
    write_thinking(&mut body, call, refused);

    let url = format!("{}/responses", base_url(model)?);
    let mut headers = headers(input, KeyStyle::Bearer);
    add_affinity(&mut headers, call);
    headers.apply(&input.credentials.headers);
    Ok(HttpRequest { url, headers, body: body.finish().into() })
}

fn write_caching(body: &mut Body<'_>, call: &LlmCall) {
    if let Some(id) = session_id(call) {
        body.field("prompt_cache_key", &id.chars().take(64).collect::<String>());
    }
    let is_explicit = flag(&call.model, "supportsExplicitPromptCacheMode", false);
    match call.cache {
        CacheRetention::None if is_explicit => body.field("prompt_cache_options", &json!({"mode": "explicit"})),
        CacheRetention::Long if is_explicit => body.field("prompt_cache_options", &json!({"ttl": "30m"})),
        CacheRetention::Long if flag(&call.model, "supportsLongCacheRetention", true) => {
            body.field("prompt_cache_retention", "24h");
        }
        CacheRetention::None | CacheRetention::Short | CacheRetention::Long => {}
    }
}

fn write_thinking(body: &mut Body<'_>, call: &LlmCall, refused: &Refused) {
    let (model, level) = (&call.model, call.thinking);
    let is_on = model.reasoning && level != ThinkingLevel::Off;
    if model.reasoning {
        let mapped = model.thinking_level_map.as_ref().and_then(|map| map.get(&level));
        let word = mapped.and_then(Option::as_deref);
        if is_on {
            let mut reasoning = json!({"effort": word.unwrap_or(level.as_str())});
            if !refused.contains("summary") {
                reasoning["summary"] = json!("auto");
            }
            body.field("reasoning", &reasoning);
        } else if mapped != Some(&None) {
            body.field("reasoning", &json!({"effort": word.unwrap_or("none")}));
        }
    }
    if is_on || model.provider == "xai" {
        body.field("include", &["reasoning.encrypted_content"]);
    }
}

fn add_affinity(headers: &mut Headers, call: &LlmCall) {
    let Some(id) = session_id(call) else { return };
    let names: &[&str] = match Affinity::of(&call.model) {
        Affinity::Router => &["x-session-id"],
        Affinity::Session => &["session-id", "x-client-request-id"],
        Affinity::NoSession => &["x-client-request-id"],
    };
    names.iter().for_each(|name| headers.set(name, id));
}

/// Ids of other models. OpenAI's own hosts keep the two parts, others get one.
fn foreign_id(id: &str, model: &Model) -> String {
    let clean = |part: &str| {
        let part = sanitise(part);
        shorten(&part, id, 64).trim_end_matches('_').to_owned()
    };
    match id.split_once('|') {
        Some((call, _)) if matches!(model.provider.as_str(), "openai" | "openai-codex" | "opencode") => {
            format!("{}|fc_{}", clean(call), short_hash(id))
        }
        _ => clean(id),
    }
}

fn items<'a>(call: &'a LlmCall, turns: Vec<PreparedMessage<'a>>, refused: &Refused) -> Vec<Item<'a>> {
    let mut items = Vec::with_capacity(turns.len() + 1);
    if !call.system_prompt.is_empty() {
        let is_developer =
            call.model.reasoning && flag(&call.model, "supportsDeveloperRole", true) && !refused.contains("developer");
        let role = if is_developer { "developer" } else { "system" };
        items.push(Item::Instruction { role, content: &call.system_prompt });
    }
    for (at, turn) in turns.into_iter().enumerate() {
        match turn {
            PreparedMessage::User(parts) => {
                let content = gather(parts.len(), parts.into_iter().map(input));
                if !content.is_empty() {
                    items.push(Item::User { role: "user", content });
                }
            }
            PreparedMessage::Assistant(answer) => push_answer(&mut items, at, answer),
            PreparedMessage::Result(result) => items.push(Item::Typed(output(result))),
        }
    }
    items
}

fn input(part: Part<'_>) -> Input<'_> {
    match part {
        Part::Text(text) => Input::InputText { text },
        Part::Image(image) => {
            let image_url = format!("data:{};base64,{}", image.mime_type, image.data);
            Input::InputImage { detail: "auto", image_url }
        }
    }
}

fn push_answer<'a>(items: &mut Vec<Item<'a>>, at: usize, answer: Answer<'a>) {
    let mut n_texts = 0;
    for piece in answer.pieces {
        match piece {
            PreparedBlock::Text { text, .. } if is_blank(&text) => {}
            PreparedBlock::Text { text, signature, .. } => {
                let (id, phase) = message_id(signature, at, n_texts);
                n_texts += 1;
                let content = [OutputText { r#type: "output_text", text, annotations: [] }];
                let message = Typed::Message { role: "assistant", status: "completed", id, content, phase };
                items.push(Item::Typed(message));
            }
            // Only the item the API gave us can be given back.
            PreparedBlock::Thinking { signature, .. } => {
                let item = signature.and_then(|signature| serde_json::from_str::<&RawValue>(signature).ok());
                items.extend(item.filter(|item| item.get().starts_with('{')).map(Item::Reasoning));
            }
            PreparedBlock::Call { id, name, arguments, .. } => {
                let (call_id, item) = id.split_once('|').unwrap_or((&id, ""));
                // The ids of another model's items are bound to reasoning that is not sent.
                let is_known = item.starts_with("fc_") && (answer.same_model || !answer.same_provider);
                items.push(Item::Typed(Typed::FunctionCall {
                    id: is_known.then(|| item.to_owned()),
                    call_id: call_id.to_owned(),
                    name,
                    arguments: arguments_text(arguments),
                }));
            }
        }
    }
}

/// Returns the id of a message item: the one it came with, else one made from its place.
fn message_id(signature: Option<&str>, at: usize, n_texts: usize) -> (Cow<'_, str>, Option<String>) {
    let place = || match n_texts {
        0 => format!("msg_pi_{at}"),
        n => format!("msg_pi_{at}_{n}"),
    };
    let Some(signature) = signature.filter(|signature| !signature.is_empty()) else { return (place().into(), None) };
    let known = if signature.starts_with('{') {
        serde_json::from_str::<TextSignature>(signature).unwrap_or_default()
    } else {
        TextSignature { id: signature.to_owned(), phase: None }
    };
    let id = match known.id {
        id if id.is_empty() => place(),
        id if id.len() > 64 => format!("msg_{}", short_hash(&id)),
        id => id,
    };
    (id.into(), known.phase)
}

fn output(result: CallResult<'_>) -> Typed<'_> {
    let call_id = result.id.split('|').next().unwrap_or_default().to_owned();
    let has_images = result.parts.iter().any(|part| matches!(part, Part::Image(_)));
    let output = if has_images {
        let has_content = |part: &Part<'_>| !matches!(part, Part::Text(text) if is_blank(text));
        Output::Parts(result.parts.into_iter().filter(has_content).map(input).collect())
    } else {
        let text = joined_text(&result.parts);
        Output::Text(if is_blank(&text) { "(no tool output)".to_owned() } else { text })
    };
    Typed::FunctionCallOutput { call_id, output }
}

fn tools<'a>(call: &'a LlmCall, refused: &Refused) -> Vec<Tool<'a>> {
    let is_strict = flag(&call.model, "supportsStrictMode", false) && !refused.contains("strict");
    let tool = |tool: &'a ToolSpec| {
        let strict = strict_schema(tool, is_strict);
        Tool {
            r#type: "function",
            name: &tool.name,
            description: &tool.description,
            strict: is_strict.then_some(strict.is_some()),
            parameters: strict.map_or(Cow::Borrowed(&*tool.parameters), Cow::Owned),
        }
    };
    call.tools.iter().map(tool).collect()
}
