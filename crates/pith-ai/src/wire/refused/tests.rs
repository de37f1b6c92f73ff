use super::*;
use crate::wire::anthropic::Anthropic;
use crate::wire::completions::Completions;
use crate::wire::google::Google;
use crate::wire::responses::Responses;

fn check(wire: &dyn Wire, request: &str, status: u16, body: &str, expected: &[&str]) {
    let mut refused = Refused::default();
    refused.learn(wire, request.as_bytes(), status, body);
    assert_eq!(refused.0, expected, "{body}");
}

const COMPLETIONS: &str = r#"{"messages":[{"role":"developer"}],"store":false,"max_tokens":5,"stream_options":{},
    "tools":[{"function":{"strict":true}}],"reasoning_effort":"low","prompt_cache_key":"k","priority":5}"#;
const MESSAGES: &str = r#"{"max_tokens":5,"thinking":{"type":"enabled","budget_tokens":1024,"display":"summarized"},
    "tools":[{"eager_input_streaming":true,"cache_control":{"type":"ephemeral"}}]}"#;
const RESPONSES: &str = r#"{"store":false,"reasoning":{"effort":"low","summary":"auto"},"prompt_cache_key":"k",
    "include":["reasoning.encrypted_content"],"max_output_tokens":16}"#;

#[test]
fn litellm() {
    let unsupported = "litellm.UnsupportedParamsError: openai does not support parameters: ['reasoning_effort'], \
        for model=gpt-4o. To drop these, set `litellm.drop_params=True` or for proxy:\n\n`litellm_settings:\n \
        drop_params: true`\n. \n If you want to use these params dynamically send \
        allowed_openai_params=['reasoning_effort'] in your request.";
    let lacking = "litellm.UnsupportedParamsError: tiny doesn't support `reasoning.effort` (its model cost map \
        entry lacks `supports_reasoning`). To drop unsupported params set `litellm.drop_params = True`";
    check(&Completions, COMPLETIONS, 400, unsupported, &["reasoning_effort"]);
    check(&Responses, RESPONSES, 400, unsupported, &["reasoning"]);
    check(&Anthropic, MESSAGES, 400, unsupported, &["thinking"]);
    check(&Completions, COMPLETIONS, 400, lacking, &["reasoning_effort"]);
    check(&Responses, RESPONSES, 400, lacking, &["reasoning"]);
    check(&Anthropic, MESSAGES, 400, lacking, &["thinking"]);
}

#[test]
fn openai_and_azure() {
    let check = |body: &str, expected: &[&str]| check(&Completions, COMPLETIONS, 400, body, expected);
    check("Unrecognized request argument supplied: stream_options", &["stream_options"]);
    check(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        &["max_tokens"],
    );
    check(
        "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: \
         'low', 'medium', and 'high'.",
        &["reasoning_effort"],
    );
    check("Unsupported value: 'messages[0].role' does not support 'developer' with this model.", &["developer"]);
    check("Additional properties are not allowed ('strict' was unexpected) - 'tools.0.function'", &["strict"]);
    super::tests::check(
        &Responses,
        RESPONSES,
        400,
        "Your organization must be verified to generate reasoning summaries: Unsupported value: 'reasoning.summary'",
        &["summary"],
    );
    super::tests::check(
        &Responses,
        RESPONSES,
        400,
        "Encrypted content is not supported with this model.",
        &["include"],
    );
}

#[test]
fn vllm_and_servers_in_python() {
    let check = |status, body: &str, expected: &[&str]| check(&Completions, COMPLETIONS, status, body, expected);
    check(
        400,
        r#"{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'store'), 'msg': 'Extra inputs are not permitted', 'input': False}]","type":"BadRequestError","param":null,"code":400}"#,
        &["store"],
    );
    check(422, r#"{"detail":[{"loc":["body","store"],"msg":"Extra inputs are not permitted"}]}"#, &["store"]);
    check(400, "Extra inputs are not permitted, field: 'prompt_cache_key', value: 'k'", &["prompt_cache_key"]);
    check(400, "Got priority 5 but Priority scheduling is not enabled.", &["priority"]);
    check(400, "Unexpected message role.", &["developer"]);
}

#[test]
fn ollama_and_llama_cpp() {
    let check = |body: &str, expected: &[&str]| check(&Completions, COMPLETIONS, 400, body, expected);
    check(r#"{"error":{"message":"\"qwen2.5:0.5b\" does not support thinking"}}"#, &["reasoning_effort"]);
    check(
        r#"{"error":{"message":"invalid reasoning value: 'minimal' (must be \"high\", \"medium\", \"low\", or \"none\")"}}"#,
        &["reasoning_effort"],
    );
    check(
        "json: cannot unmarshal string into Go struct field ChatCompletionRequest.reasoning_effort of type bool",
        &["reasoning_effort"],
    );
    check(r#"{"error":{"code":400,"message":"Unsupported param: store","type":"invalid_request_error"}}"#, &["store"]);
}

#[test]
fn openrouter_and_others() {
    let check = |body: &str, expected: &[&str]| check(&Completions, COMPLETIONS, 400, body, expected);
    check(
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"Unrecognized request argument supplied: prompt_cache_key"}}}"#,
        &["prompt_cache_key"],
    );
    check("Reasoning is mandatory for this endpoint and cannot be disabled.", &["reasoning_effort"]);
    check("property 'store' is unsupported", &["store"]);
    check("Argument not supported on this model: reasoningEffort", &["reasoning_effort"]);
    check("extraneous key [store] is not permitted", &["store"]);
    check("messages[0].role: unknown variant `developer`, expected one of `system`, `user`", &["developer"]);
    super::tests::check(
        &Google,
        r#"{"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}"#,
        400,
        r#"Invalid JSON payload received. Unknown name "thinkingConfig" at 'generation_config': Cannot find field."#,
        &["thinkingConfig"],
    );
    super::tests::check(
        &Anthropic,
        MESSAGES,
        400,
        "tools.0.custom.eager_input_streaming: Extra inputs are not permitted",
        &["eager_input_streaming"],
    );
}

#[test]
fn other_errors_refuse_no_field() {
    let check = |status, body: &str| check(&Completions, COMPLETIONS, status, body, &[]);
    check(400, "unknown model: storefront");
    check(400, "chat_template_kwargs is not supported");
    check(500, "Unknown field: store");
    check(400, "the store is closed");
    check(400, r#"{"error":{"type":"invalid_request_error","message":"the store is closed"}}"#);
    super::tests::check(
        &Anthropic,
        MESSAGES,
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"When `thinking` is enabled, a final `assistant` message must start with a thinking block"}}"#,
        &[],
    );
}

#[test]
fn what_is_said_of_the_conversation_teaches_nothing() {
    let request = r#"{"messages":[{"role":"developer","reasoning_content":"","cache_control":{"ttl":"1h"}}],
        "tools":[{"strict":true,"eager_input_streaming":true,"defer_loading":true}],"thinking":{"display":"summarized",
        "block_binding":{}},"output_config":{},"fallbacks":[],"store":false,"max_tokens":5,"stream_options":{},
        "reasoning_effort":"low","reasoning":{"summary":"auto"},"include":[],"prompt_cache_key":"k","priority":5,
        "thinkingConfig":{}}"#;
    let wires: [&dyn Wire; 4] = [&Anthropic, &Completions, &Responses, &Google];
    for text in [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.1.content.0: Invalid `data` in `redacted_thinking` block",
        "Invalid signature in thinking block",
        "messages.5.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be \
         modified. These blocks must remain as they were in the original response.",
        "messages.3.content.0.thinking: each thinking block must contain thinking: invalid",
        "messages.3.content.0.type: unexpected value; expected `thinking`, not `reasoning`",
        "The encrypted content gAAA could not be verified. Reason: invalid_encrypted_content",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item: unexpected",
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false. Unknown item.",
        "Unable to submit request because Thought signature is not valid: thinking",
        "Invalid value: input[4].content: `thinking` is unsupported there",
        "Invalid value at 'contents[1].parts[0]': thinking",
        r#"{"detail":[{"loc":["body","messages",2,"content"],"msg":"Input should be a valid string","input":"unknown store"}]}"#,
        "[{'loc': ('body', 'messages', 2, 'content'), 'msg': 'unexpected', 'input': 'tell me of the store and thinking'}]",
    ] {
        wires.iter().for_each(|wire| check(*wire, request, 400, text, &[]));
    }
    // What stands in messages or tools can still be refused there, and nothing else.
    for text in ["messages.0.cache_control: Extra inputs are not permitted, thinking", "tools.0.cache_control: unknown"]
    {
        check(&Anthropic, request, 400, text, &["cache_control"]);
    }
    check(
        &Completions,
        request,
        400,
        "messages.0.reasoning_content: Extra inputs are not permitted",
        &["reasoning_content"],
    );
    check(&Completions, request, 400, "Invalid schema for function 'reasoning': unexpected 'store'", &[]);
    check(&Anthropic, request, 400, "tools.2.input_schema.thinking: unexpected", &[]);
}

#[test]
fn the_last_member_of_a_path_is_meant() {
    let request = r#"{"thinking":{"type":"adaptive","display":"summarized","block_binding":{}}}"#;
    let refused = |member: &str| format!("thinking.adaptive.{member}: Extra inputs are not permitted");
    check(&Anthropic, request, 400, &refused("display"), &["display"]);
    check(&Anthropic, request, 400, &refused("block_binding"), &["block_binding"]);
    check(&Anthropic, request, 400, "thinking.type: adaptive is not supported", &["thinking"]);
}

#[test]
fn a_set_of_tools_that_is_too_strict_is_sent_as_ordinary_ones() {
    let request = r#"{"tools":[{"strict":true}],"thinking":{"type":"adaptive"}}"#;
    for text in [
        "The compiled grammar is too large, which would cause performance issues.",
        "Too many strict tools (21). The maximum number of strict tools supported is 20.",
        "Schemas contains too many parameters with union types (17 parameters with type arrays or anyOf)",
    ] {
        check(&Anthropic, request, 400, text, &["strict"]);
    }
}
