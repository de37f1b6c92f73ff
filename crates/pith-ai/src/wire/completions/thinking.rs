//! The many ways of telling a chat-completions server to think.

use pith_protocol::{Model, ThinkingLevel};
use serde_json::{Map, Value, json};

use super::compat::Compat;
use crate::limits::ANSWER_TOKENS;
use crate::wire::RequestInput;
use crate::wire::body::Body;
use crate::wire::common::{compat as compat_key, flag};

/// What is asked of the model, in the terms of its level map.
struct RequestedLevel<'a> {
    is_on: bool,
    /// The server's word for the level; for `off` only where the map has one.
    word: Option<&'a str>,
    /// The map says there is no such level.
    is_unavailable: bool,
    budget: u64,
}

impl<'a> RequestedLevel<'a> {
    fn of(model: &'a Model, level: ThinkingLevel, budget: u64) -> Self {
        let is_on = level != ThinkingLevel::Off;
        let mapped = model.thinking_level_map.as_ref().and_then(|map| map.get(&level));
        RequestedLevel {
            is_on,
            word: mapped.and_then(Option::as_deref).or(is_on.then_some(level.as_str())),
            is_unavailable: mapped == Some(&None),
            budget,
        }
    }
}

/// Adds the thinking fields of a reasoning model.
pub(super) fn write(body: &mut Body<'_>, input: &RequestInput<'_>, compat: &Compat<'_>, max_tokens: u64) {
    let model = &*input.call.model;
    if !model.reasoning {
        return;
    }
    let level = input.call.thinking;
    let budget = input.options.budgets.of(level).min(max_tokens.saturating_sub(ANSWER_TOKENS));
    let requested = RequestedLevel::of(model, level, budget);
    write_format(body, model, compat, &requested);
    if let Some(field) = budget_field(model).filter(|_| requested.is_on) {
        body.field(field, &requested.budget);
    }
}

fn write_format(body: &mut Body<'_>, model: &Model, compat: &Compat<'_>, requested: &RequestedLevel<'_>) {
    let effort = requested.word.filter(|_| compat.reasoning_effort);
    let effort_when_on = effort.filter(|_| requested.is_on);
    match compat.thinking_format {
        "openrouter" if requested.is_on || !requested.is_unavailable => {
            body.field("reasoning", &json!({"effort": requested.word.unwrap_or("none")}));
        }
        "openrouter" => {}
        "deepseek" if requested.is_on => {
            body.field("thinking", &json!({"type": "enabled"}));
            body.optional("reasoning_effort", effort_when_on);
        }
        "deepseek" if requested.is_unavailable => {}
        "zai" if requested.is_on => {
            body.field("thinking", &json!({"type": "enabled", "clear_thinking": false}));
            body.optional("reasoning_effort", effort_when_on);
        }
        "deepseek" | "zai" => body.field("thinking", &json!({"type": "disabled"})),
        "together" => {
            body.field("reasoning", &json!({"enabled": requested.is_on}));
            body.optional("reasoning_effort", effort_when_on);
        }
        "qwen" => {
            body.field("enable_thinking", &requested.is_on);
            body.optional("reasoning_effort", effort_when_on);
        }
        "qwen-chat-template" => {
            let kwargs = json!({"enable_thinking": requested.is_on, "preserve_thinking": true});
            body.field("chat_template_kwargs", &kwargs);
        }
        "chat-template" => body.optional("chat_template_kwargs", template(model, "chatTemplateKwargs", requested)),
        "baseten" => {
            body.optional("chat_template_args", template(model, "chatTemplateArgs", requested));
            body.optional("reasoning_effort", effort);
        }
        "string-thinking" if requested.is_on || !requested.is_unavailable => {
            body.field("thinking", requested.word.unwrap_or("none"));
        }
        "string-thinking" => {}
        "ant-ling" => {
            let mapped = requested.word.filter(|_| requested.is_on && is_mapped(model, requested));
            body.optional("reasoning", mapped.map(|word| json!({"effort": word})));
        }
        // `openai`, and names of formats yet to come.
        _ => body.optional("reasoning_effort", effort),
    }
}

fn is_mapped(model: &Model, requested: &RequestedLevel<'_>) -> bool {
    let words = model.thinking_level_map.iter().flat_map(|map| map.values());
    words.flatten().any(|word| Some(word.as_str()) == requested.word)
}

/// Returns the template arguments: scalars, or what the level says about a `$var`.
fn template(model: &Model, key: &str, requested: &RequestedLevel<'_>) -> Option<Map<String, Value>> {
    let configured = Compat::object(model, key)?;
    let mut arguments = Map::new();
    for (name, value) in configured {
        let Some(variable) = value.get("$var").and_then(Value::as_str) else {
            if !value.is_object() {
                arguments.insert(name.clone(), value.clone());
            }
            continue;
        };
        if !requested.is_on && value["omitWhenOff"] == Value::Bool(true) {
            continue;
        }
        let value = match variable {
            "thinking.enabled" => Some(json!(requested.is_on)),
            "thinking.effort" => requested.word.map(|word| json!(word)),
            "thinking.budget" => requested.is_on.then(|| json!(requested.budget)),
            _ => None,
        };
        if let Some(value) = value {
            arguments.insert(name.clone(), value);
        }
    }
    (!arguments.is_empty()).then_some(arguments)
}

fn budget_field(model: &Model) -> Option<&'static str> {
    match compat_key(model, "thinkingTokenBudgetField").and_then(Value::as_str) {
        Some("thinking_token_budget") => Some("thinking_token_budget"),
        Some("thinking_budget") => Some("thinking_budget"),
        Some("thinking_budget_tokens") => Some("thinking_budget_tokens"),
        Some(_) | None => flag(model, "supportsThinkingTokenBudget", false).then_some("thinking_token_budget"),
    }
}
