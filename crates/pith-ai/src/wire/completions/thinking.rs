//! The many ways of telling a chat-completions server to think.

use pith_protocol::{Model, ThinkingLevel};
use serde_json::{Map, Value, json};

use super::compat::Compat;
use crate::limits::ANSWER_TOKENS;
use crate::wire::Order;
use crate::wire::body::Body;
use crate::wire::common::{compat as compat_key, flag};

/// What is asked of the model, in the terms of its level map.
struct Wish<'a> {
    is_on: bool,
    /// The server's word for the level; for `off` only where the map has one.
    word: Option<&'a str>,
    /// The map says there is no such level.
    is_unavailable: bool,
    budget: u64,
}

impl<'a> Wish<'a> {
    fn of(model: &'a Model, level: ThinkingLevel, budget: u64) -> Self {
        let is_on = level != ThinkingLevel::Off;
        let mapped = model.thinking_level_map.as_ref().and_then(|map| map.get(&level));
        Wish {
            is_on,
            word: mapped.and_then(Option::as_deref).or(is_on.then_some(level.as_str())),
            is_unavailable: mapped == Some(&None),
            budget,
        }
    }
}

/// Adds the thinking fields of a reasoning model.
pub(super) fn write(body: &mut Body<'_>, order: &Order<'_>, compat: &Compat<'_>, max_tokens: u64) {
    let model = &*order.call.model;
    if !model.reasoning {
        return;
    }
    let level = order.call.thinking;
    let budget = order.taste.budgets.of(level).min(max_tokens.saturating_sub(ANSWER_TOKENS));
    let wish = Wish::of(model, level, budget);
    write_format(body, model, compat, &wish);
    if let Some(field) = budget_field(model).filter(|_| wish.is_on) {
        body.field(field, &wish.budget);
    }
}

fn write_format(body: &mut Body<'_>, model: &Model, compat: &Compat<'_>, wish: &Wish<'_>) {
    let effort = wish.word.filter(|_| compat.reasoning_effort);
    let effort_when_on = effort.filter(|_| wish.is_on);
    match compat.thinking_format {
        "openrouter" if wish.is_on || !wish.is_unavailable => {
            body.field("reasoning", &json!({"effort": wish.word.unwrap_or("none")}));
        }
        "openrouter" => {}
        "deepseek" if wish.is_on => {
            body.field("thinking", &json!({"type": "enabled"}));
            body.optional("reasoning_effort", effort_when_on);
        }
        "deepseek" if wish.is_unavailable => {}
        "zai" if wish.is_on => {
            body.field("thinking", &json!({"type": "enabled", "clear_thinking": false}));
            body.optional("reasoning_effort", effort_when_on);
        }
        "deepseek" | "zai" => body.field("thinking", &json!({"type": "disabled"})),
        "together" => {
            body.field("reasoning", &json!({"enabled": wish.is_on}));
            body.optional("reasoning_effort", effort_when_on);
        }
        "qwen" => {
            body.field("enable_thinking", &wish.is_on);
            body.optional("reasoning_effort", effort_when_on);
        }
        "qwen-chat-template" => {
            let kwargs = json!({"enable_thinking": wish.is_on, "preserve_thinking": true});
            body.field("chat_template_kwargs", &kwargs);
        }
        "chat-template" => body.optional("chat_template_kwargs", template(model, "chatTemplateKwargs", wish)),
        "baseten" => {
            body.optional("chat_template_args", template(model, "chatTemplateArgs", wish));
            body.optional("reasoning_effort", effort);
        }
        "string-thinking" if wish.is_on || !wish.is_unavailable => {
            body.field("thinking", wish.word.unwrap_or("none"));
        }
        "string-thinking" => {}
        "ant-ling" => {
            let mapped = wish.word.filter(|_| wish.is_on && is_mapped(model, wish));
            body.optional("reasoning", mapped.map(|word| json!({"effort": word})));
        }
        // `openai`, and names of formats yet to come.
        _ => body.optional("reasoning_effort", effort),
    }
}

fn is_mapped(model: &Model, wish: &Wish<'_>) -> bool {
    let words = model.thinking_level_map.iter().flat_map(|map| map.values());
    words.flatten().any(|word| Some(word.as_str()) == wish.word)
}

/// Template arguments: scalars, or what the level says about a `$var`.
fn template(model: &Model, key: &str, wish: &Wish<'_>) -> Option<Map<String, Value>> {
    let configured = Compat::object(model, key)?;
    let mut arguments = Map::new();
    for (name, value) in configured {
        let Some(variable) = value.get("$var").and_then(Value::as_str) else {
            if !value.is_object() {
                arguments.insert(name.clone(), value.clone());
            }
            continue;
        };
        if !wish.is_on && value["omitWhenOff"] == Value::Bool(true) {
            continue;
        }
        let value = match variable {
            "thinking.enabled" => Some(json!(wish.is_on)),
            "thinking.effort" => wish.word.map(|word| json!(word)),
            "thinking.budget" => wish.is_on.then(|| json!(wish.budget)),
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
