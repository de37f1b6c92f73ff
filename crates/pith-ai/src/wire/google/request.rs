//! The request of a Gemini call.

use std::borrow::Cow;
use std::sync::LazyLock;

use pith_config::settings::ThinkingBudgets;
use pith_protocol::{LlmCall, ThinkingLevel};
use regex::Regex;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::schema::without_const;
use crate::failure::Fault;
use crate::limits::output_limit;
use crate::prepare::{
    self, Answer, CallResult, IdRule, PrepareOptions, PreparedBlock, PreparedMessage, prepare, sanitise, shorten,
};
use crate::wire::common::{KeyStyle, base_url, flag, headers, joined_text, strict_schema};
use crate::wire::{HttpRequest, RequestInput};

const SEE_IMAGE: &str = "(see attached image)";
const RESULT_IMAGE: &str = "Tool result image:";

/// Fields of the body; any other sampling parameter belongs in `generationConfig`.
const BODY_FIELDS: [&str; 6] =
    ["contents", "systemInstruction", "tools", "toolConfig", "safetySettings", "cachedContent"];

#[derive(Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    thought: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<InlineData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    name: &'a str,
    args: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    name: &'a str,
    response: Outcome,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Output(String),
    Error(String),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    contents: Vec<Content<'a>>,
    generation_config: Map<String, Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// What a model id says about the model.
struct Traits {
    /// Pictures may stand inside a function response. Only models known to be too old cannot take them there.
    nests_images: bool,
    /// Calls and responses carry ids.
    sends_ids: bool,
    takes_strict: bool,
    /// Thinks by level instead of by budget.
    has_levels: bool,
}

static VERSION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"gemini-(?:live-)?(\d+)").expect("the pattern is a constant"));
static LEVELS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"gemini-3(\.\d+)?-(pro|flash)|gemini-([4-9]|[1-9]\d)|gemini-flash(-lite)?-latest|gemma-?4")
        .expect("the pattern is a constant")
});

impl Traits {
    fn of(id: &str) -> Self {
        let id = id.to_ascii_lowercase();
        let version = VERSION.captures(&id).and_then(|found| found[1].parse::<u32>().ok());
        let is_new = version.is_some_and(|version| version >= 3);
        Traits {
            nests_images: version.is_none_or(|version| version >= 3),
            sends_ids: is_new || id.starts_with("claude-") || id.starts_with("gpt-oss-"),
            takes_strict: is_new,
            has_levels: LEVELS.is_match(&id),
        }
    }
}

/// Builds the request.
pub(super) fn build(input: &RequestInput<'_>) -> Result<HttpRequest, Fault> {
    let RequestInput { call, options, refused, .. } = *input;
    let model = &*call.model;
    let traits = Traits::of(&model.id);
    let ids = IdRule { max: 64, foreign: |id, _| shorten(&sanitise(id), id, 64), has_items: false };
    let merge_users = flag(model, "requiresAlternation", false);
    let turns = prepare(call, PrepareOptions { ids, foreign_thinking: options.foreign_thinking, merge_users });

    let (tools, tool_config) = tools(call, traits.takes_strict);
    let mut generation_config = Map::new();
    generation_config.insert("maxOutputTokens".to_owned(), json!(output_limit(call, input.input_tokens)));
    let config = thinking(call, &traits, &options.budgets).filter(|_| !refused.contains("thinkingConfig"));
    if let Some(config) = config {
        generation_config.insert("thinkingConfig".to_owned(), config);
    }
    let mut extra = Map::new();
    for (name, value) in model.sampling_params.iter().flatten() {
        let target = if BODY_FIELDS.contains(&name.as_str()) { &mut extra } else { &mut generation_config };
        target.insert(name.clone(), value.clone());
    }
    let body = Body {
        system_instruction: (!call.system_prompt.is_empty())
            .then(|| Content { role: "user", parts: vec![text(Cow::Borrowed(&call.system_prompt))] }),
        tools: tools.filter(|_| !extra.contains_key("tools")),
        tool_config: tool_config.filter(|_| !extra.contains_key("toolConfig")),
        contents: contents(turns, &traits),
        generation_config,
        extra,
    };
    let url = format!("{}/models/{}:streamGenerateContent?alt=sse", base_url(model)?, model.id);
    let mut headers = headers(input, KeyStyle::Header("x-goog-api-key"));
    headers.apply(&input.credentials.headers);
    let mut bytes = Vec::new();
    pith_protocol::json::append(&mut bytes, &body);
    Ok(HttpRequest { url, headers, body: bytes.into() })
}

/// The conversation as it grows.
struct Conversation<'a> {
    contents: Vec<Content<'a>>,
    /// Responses to the calls of one answer share a content.
    responses: Vec<Part<'a>>,
    /// Their pictures follow in a content of their own where the model cannot take them inside. Between two
    /// responses they would break the row.
    images: Vec<Part<'a>>,
}

impl<'a> Conversation<'a> {
    fn push(&mut self, role: &'static str, parts: Vec<Part<'a>>) {
        if !parts.is_empty() {
            self.contents.push(Content { role, parts });
        }
    }

    fn end_responses(&mut self) {
        let (responses, mut images) = (std::mem::take(&mut self.responses), std::mem::take(&mut self.images));
        if !images.is_empty() {
            images.insert(0, text(Cow::Borrowed(RESULT_IMAGE)));
        }
        self.push("user", responses);
        self.push("user", images);
    }
}

fn contents<'a>(turns: Vec<PreparedMessage<'a>>, traits: &Traits) -> Vec<Content<'a>> {
    let contents = Vec::with_capacity(turns.len());
    let mut conversation = Conversation { contents, responses: Vec::new(), images: Vec::new() };
    for turn in turns {
        match turn {
            PreparedMessage::User(parts) => {
                conversation.end_responses();
                conversation.push("user", prepare::gather(parts.len(), parts.into_iter().map(part)));
            }
            PreparedMessage::Assistant(answer) => {
                conversation.end_responses();
                conversation.push("model", answer_parts(answer, traits));
            }
            PreparedMessage::Result(result) => {
                let response = response(result, traits, &mut conversation.images);
                conversation.responses.push(response);
            }
        }
    }
    conversation.end_responses();
    if conversation.contents.is_empty() {
        // The API refuses a request without contents.
        conversation.push("user", vec![text(Cow::Borrowed(""))]);
    }
    conversation.contents
}

fn text(text: Cow<'_, str>) -> Part<'_> {
    Part { text: Some(text), ..Part::default() }
}

fn part(part: prepare::Part<'_>) -> Part<'_> {
    match part {
        prepare::Part::Text(piece) => text(piece),
        prepare::Part::Image(image) => {
            let inline_data = Some(InlineData { mime_type: &image.mime_type, data: &image.data });
            Part { inline_data, ..Part::default() }
        }
    }
}

fn answer_parts<'a>(answer: Answer<'a>, traits: &Traits) -> Vec<Part<'a>> {
    let mut parts = Vec::with_capacity(answer.pieces.len());
    for piece in answer.pieces {
        let part = match piece {
            PreparedBlock::Text { text, signature, .. } => {
                let thought_signature = signature.filter(|signature| is_base64(signature));
                if prepare::is_blank(&text) && thought_signature.is_none() {
                    continue;
                }
                Part { text: Some(text), thought_signature, ..Part::default() }
            }
            PreparedBlock::Thinking { text, signature, .. } => {
                let thought_signature = signature.filter(|signature| is_base64(signature));
                if prepare::is_blank(text) && thought_signature.is_none() {
                    continue;
                }
                Part { thought: Some(true), text: Some(Cow::Borrowed(text)), thought_signature, ..Part::default() }
            }
            PreparedBlock::Call { id, name, arguments, signature } => Part {
                function_call: Some(FunctionCall { id: traits.sends_ids.then_some(id), name, args: arguments }),
                thought_signature: signature.filter(|signature| is_base64(signature)),
                ..Part::default()
            },
        };
        parts.push(part);
    }
    parts
}

fn response<'a>(result: CallResult<'a>, traits: &Traits, images: &mut Vec<Part<'a>>) -> Part<'a> {
    let mut shown = joined_text(&result.parts);
    let pictures = result.parts.into_iter().filter(|part| matches!(part, prepare::Part::Image(_))).map(part);
    let pictures: Vec<_> = pictures.collect();
    if prepare::is_blank(&shown) {
        shown = if pictures.is_empty() { String::new() } else { SEE_IMAGE.to_owned() };
    }
    let parts = if traits.nests_images {
        pictures
    } else {
        images.extend(pictures);
        Vec::new()
    };
    let function_response = FunctionResponse {
        id: traits.sends_ids.then_some(result.id),
        name: result.name,
        response: if result.is_error { Outcome::Error(shown) } else { Outcome::Output(shown) },
        parts,
    };
    Part { function_response: Some(function_response), ..Part::default() }
}

/// Signatures of other servers end up in histories; this API refuses what is not base64.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !body.is_empty() && text.len().is_multiple_of(4) && text.len() - body.len() <= 2 && body.bytes().all(is_digit)
}

fn tools(call: &LlmCall, takes_strict: bool) -> (Option<Value>, Option<Value>) {
    if call.tools.is_empty() {
        return (None, None);
    }
    let mut has_strict = false;
    let declarations: Vec<Value> = call
        .tools
        .iter()
        .map(|tool| {
            let strict = strict_schema(tool, takes_strict);
            has_strict |= strict.is_some();
            let schema = without_const(strict.unwrap_or_else(|| (*tool.parameters).clone()));
            json!({"name": &*tool.name, "description": &*tool.description, "parametersJsonSchema": schema})
        })
        .collect();
    let config = has_strict.then(|| json!({"functionCallingConfig": {"mode": "VALIDATED"}}));
    (Some(json!([{"functionDeclarations": declarations}])), config)
}

fn thinking(call: &LlmCall, traits: &Traits, budgets: &ThinkingBudgets) -> Option<Value> {
    let (model, level) = (&*call.model, call.thinking);
    if !model.reasoning {
        return None;
    }
    let word = |level: ThinkingLevel| {
        let mapped = model.thinking_level_map.as_ref().and_then(|map| map.get(&level)).cloned().flatten();
        mapped.map_or(level_word(level).to_owned(), |word| word.to_ascii_uppercase())
    };
    Some(match (level, traits.has_levels) {
        // Models that cannot stop thinking; the lowest level comes nearest.
        (ThinkingLevel::Off, true) if !model.thinking_levels().contains(&ThinkingLevel::Off) => {
            let lowest = model.thinking_levels().first().copied();
            json!({"thinkingLevel": word(lowest.unwrap_or(ThinkingLevel::Low))})
        }
        (ThinkingLevel::Off, _) => json!({"thinkingBudget": 0}),
        (level, true) => json!({"includeThoughts": true, "thinkingLevel": word(level)}),
        (level, false) => json!({"includeThoughts": true, "thinkingBudget": budget(&model.id, level, budgets)}),
    })
}

fn level_word(level: ThinkingLevel) -> &'static str {
    match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal => "MINIMAL",
        ThinkingLevel::Low => "LOW",
        ThinkingLevel::Medium => "MEDIUM",
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => "HIGH",
    }
}

/// Returns the user's budget where it was changed, else what is known of the model, else the model's own choice.
fn budget(id: &str, level: ThinkingLevel, budgets: &ThinkingBudgets) -> i64 {
    let wanted = budgets.of(level);
    if wanted != ThinkingBudgets::default().of(level) {
        return i64::try_from(wanted).unwrap_or(i64::MAX);
    }
    let (minimal, high) = if id.contains("2.5-pro") {
        (128, 32768)
    } else if id.contains("2.5-flash-lite") {
        (512, 24576)
    } else if id.contains("2.5-flash") {
        (128, 24576)
    } else {
        return -1;
    };
    match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal => minimal,
        ThinkingLevel::Low => 2048,
        ThinkingLevel::Medium => 8192,
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => high,
    }
}
