//! Reads an extension's request to a model into an [`LlmCall`].

use std::sync::Arc;

use pith_agent::CallOverrides;
use pith_ai::Registry;
use pith_ext::outgoing::ModelRequest;
use pith_protocol::{Block, CacheRetention, Content, LlmCall, Message, Model, ThinkingLevel, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Reads the call, and the key and headers the extension passes for it.
pub(super) fn read(request: &ModelRequest, registry: &Registry) -> Result<(LlmCall, CallOverrides), String> {
    let mut model = model(&request.model, registry)?;
    let options = &request.options;
    if let Some(temperature) = options.get("temperature").filter(|value| value.is_number()) {
        let params = Arc::make_mut(&mut model).sampling_params.get_or_insert_default();
        params.insert("temperature".to_owned(), temperature.clone());
    }
    let mut context = Context::default();
    context.read(&request.context)?;
    let level = options.get("reasoning").and_then(Value::as_str).and_then(ThinkingLevel::parse);
    let overrides = CallOverrides {
        api_key: text(options, "apiKey").filter(|key| !key.is_empty()),
        headers: headers(request.model.get("headers")).into_iter().chain(headers(options.get("headers"))).collect(),
    };
    let call = LlmCall {
        thinking: model.clamp_thinking(level.unwrap_or(ThinkingLevel::Off)),
        model,
        system_prompt: context.prompts.join("\n\n").into(),
        messages: context.messages,
        tools: context.tools.into(),
        search_tool: None,
        max_tokens: options.get("maxTokens").and_then(Value::as_f64).filter(|n| *n >= 1.0).map(|n| n as u64),
        session_id: text(options, "sessionId").map(Arc::from),
        cache: match options.get("cacheRetention").and_then(Value::as_str) {
            Some("none") => CacheRetention::None,
            Some("long") => CacheRetention::Long,
            _ => CacheRetention::Short,
        },
        block_images: false,
        hooks: None,
    };
    Ok((call, overrides))
}

/// Finds the model an extension asks for.
pub(super) fn model(value: &Value, registry: &Registry) -> Result<Arc<Model>, String> {
    let named = named(value)?;
    let (provider, id) = (named.provider.clone(), named.id.clone());
    found(named, registry).ok_or_else(|| format!("Model not found: {provider}/{id}"))
}

/// Reads a model as an extension names it: a whole description, or just provider and id.
pub(super) fn named(value: &Value) -> Result<Model, String> {
    let model = Model::deserialize(value).map_err(|error| format!("this is not a model: {error}"))?;
    if model.provider.is_empty() || model.id.is_empty() {
        return Err("this is not a model: provider and id are missing".to_owned());
    }
    Ok(model)
}

/// The model of that name; `None` if it is unknown and only its name was given.
pub(super) fn found(named: Model, registry: &Registry) -> Option<Arc<Model>> {
    match registry.find(&named.provider, &named.id) {
        Some(known) if named.api.is_empty() || *known == named => Some(known),
        None if named.api.is_empty() => None,
        Some(_) | None => Some(Arc::new(named)),
    }
}

/// What the model is to see.
#[derive(Default)]
struct Context {
    prompts: Vec<String>,
    tools: Vec<ToolSpec>,
    messages: Vec<Arc<Message>>,
}

impl Context {
    fn read(&mut self, context: &Value) -> Result<(), String> {
        self.prompt(context.get("systemPrompt"))?;
        self.take_tools(context.get("tools"))?;
        let messages = match context.get("messages") {
            None | Some(Value::Null) => &[],
            Some(Value::Array(messages)) => messages.as_slice(),
            Some(_) => return Err("context.messages: expected an array".to_owned()),
        };
        for (at, message) in messages.iter().enumerate() {
            let wrong = |why: String| format!("context.messages[{at}]: {why}");
            if message.get("role").and_then(Value::as_str) == Some("system") {
                self.prompt(message.get("content")).map_err(wrong)?;
                self.take_tools(message.get("tools")).map_err(wrong)?;
                continue;
            }
            let message = Message::deserialize(message).map_err(|error| wrong(error.to_string()))?;
            self.messages.push(Arc::new(message));
        }
        Ok(())
    }

    /// Adds a system prompt, in either form of the API: a text, or the content of a message.
    fn prompt(&mut self, prompt: Option<&Value>) -> Result<(), String> {
        let Some(prompt) = prompt.filter(|prompt| !prompt.is_null()) else { return Ok(()) };
        let content = Content::deserialize(prompt).map_err(|error| format!("the system prompt: {error}"))?;
        let text = match content {
            Content::Text(text) => text,
            Content::Blocks(blocks) => blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n"),
        };
        // Both forms may carry the same text.
        if !text.is_empty() && !self.prompts.contains(&text) {
            self.prompts.push(text);
        }
        Ok(())
    }

    /// Replaces the tools by those of this list, if there is one.
    fn take_tools(&mut self, tools: Option<&Value>) -> Result<(), String> {
        let Some(tools) = tools.filter(|tools| !tools.is_null()) else { return Ok(()) };
        let Some(tools) = tools.as_array() else { return Err("tools: expected an array".to_owned()) };
        self.tools = tools.iter().map(tool).collect::<Result<_, _>>()?;
        Ok(())
    }
}

fn tool(tool: &Value) -> Result<ToolSpec, String> {
    let text = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("name").is_empty() {
        return Err("tools: a tool needs a name".to_owned());
    }
    let parameters = tool.get("parameters").filter(|parameters| parameters.is_object()).cloned();
    Ok(ToolSpec {
        name: text("name").into(),
        description: text("description").into(),
        parameters: parameters.unwrap_or_else(|| json!({ "type": "object", "properties": {} })).into(),
        prefer_strict: false,
    })
}

fn text(options: &Map<String, Value>, key: &str) -> Option<String> {
    options.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn headers(object: Option<&Value>) -> Vec<(String, Option<String>)> {
    let object = object.and_then(Value::as_object).into_iter().flatten();
    object.map(|(name, value)| (name.clone(), value.as_str().map(str::to_owned))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(context: Value) -> Result<(Vec<String>, Vec<String>, usize), String> {
        let mut read = Context::default();
        read.read(&context)?;
        Ok((read.prompts, read.tools.iter().map(|tool| tool.name.to_string()).collect(), read.messages.len()))
    }

    #[test]
    fn prompts_and_tools_come_from_both_generations_of_contexts() {
        let user = json!({"role": "user", "content": "hi"});
        let tool = |name: &str| json!({"name": name, "description": "d", "parameters": {"type": "object"}});
        let check = |request: Value, prompts: &[&str], tools: &[&str], n_messages: usize| {
            let expected = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
            assert_eq!(context(request), Ok((expected(prompts), expected(tools), n_messages)));
        };
        check(json!({}), &[], &[], 0);
        check(json!({"systemPrompt": "be good", "messages": [user], "tools": [tool("a")]}), &["be good"], &["a"], 1);
        let system = json!({"role": "system", "content": [{"type": "text", "text": "be good"}], "tools": [tool("b")]});
        check(json!({"messages": [system, user]}), &["be good"], &["b"], 1);
        check(
            json!({"systemPrompt": "be good", "messages": [system, user], "tools": [tool("a")]}),
            &["be good"],
            &["b"],
            1,
        );
    }

    #[test]
    fn wrong_contexts_are_named() {
        let check = |request: Value, expected: &str| {
            let failure = context(request).expect_err("refused");
            assert!(failure.starts_with(expected), "{failure}");
        };
        check(json!({"messages": 7}), "context.messages: expected an array");
        check(json!({"messages": [{"role": "user", "content": 7}]}), "context.messages[0]: ");
        check(json!({"messages": [{"role": "system", "content": "x", "tools": 1}]}), "context.messages[0]: tools");
        check(json!({"tools": [{"description": "d"}]}), "tools: a tool needs a name");
    }
}
