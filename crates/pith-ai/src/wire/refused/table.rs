//! What the refusal of a request may teach, for each API, and in which words.
//!
//! Everything else that a server says about a request is about this request
//! alone. What is learned holds for one model at one address.

/// A field or value of a request that a server may do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalField {
    pub name: &'static str,
    /// An error that points elsewhere is not about the field.
    pub place: Place,
    /// What servers call it that speak another API behind their gateway.
    pub aliases: &'static [&'static str],
    /// What servers say about it without naming it, in lower case.
    pub phrases: &'static [&'static str],
}

/// Where in a request a field stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Setting,
    Tool,
    Message,
    Anywhere,
}

const fn setting(name: &'static str) -> OptionalField {
    also_called(name, &[])
}

const fn also_called(name: &'static str, aliases: &'static [&'static str]) -> OptionalField {
    OptionalField { name, place: Place::Setting, aliases, phrases: &[] }
}

const fn at(place: Place, name: &'static str) -> OptionalField {
    OptionalField { name, place, aliases: &[], phrases: &[] }
}

/// What servers call the wish for more or less thinking.
const THINKING: &[&str] =
    &["reasoning.effort", "reasoning_effort", "reasoningEffort", "reasoning", "thinking", "enable_thinking"];

/// The limits of Anthropic's for the strict tools of a request. Each tool alone may be fine, so all of them are sent
/// as ordinary ones.
const TOO_STRICT: &[&str] = &[
    "the compiled grammar is too large",
    "too many strict tools (",
    "schemas contains too many parameters with union types (",
];

const STRICT: OptionalField = OptionalField { name: "strict", place: Place::Tool, aliases: &[], phrases: TOO_STRICT };

/// What servers that speak `anthropic-messages` may do without.
pub const ANTHROPIC: &[OptionalField] = &[
    at(Place::Tool, "eager_input_streaming"),
    STRICT,
    setting("display"),
    setting("block_binding"),
    also_called("output_config", &["output_config.effort", "effort"]),
    at(Place::Anywhere, "cache_control"),
    at(Place::Tool, "defer_loading"),
    at(Place::Anywhere, "ttl"),
    setting("fallbacks"),
    also_called("thinking", THINKING),
];

/// What servers that speak `openai-completions` may do without.
pub const COMPLETIONS: &[OptionalField] = &[
    at(Place::Message, "developer"),
    setting("store"),
    setting("stream_options"),
    STRICT,
    setting("max_tokens"),
    setting("max_completion_tokens"),
    also_called("reasoning_effort", THINKING),
    also_called("reasoning", THINKING),
    also_called("thinking", THINKING),
    also_called("enable_thinking", THINKING),
    also_called("chat_template_kwargs", THINKING),
    also_called("chat_template_args", THINKING),
    setting("thinking_token_budget"),
    setting("thinking_budget"),
    setting("thinking_budget_tokens"),
    setting("prompt_cache_key"),
    setting("prompt_cache_retention"),
    setting("tool_stream"),
    setting("priority"),
    at(Place::Anywhere, "cache_control"),
    at(Place::Message, "reasoning_content"),
];

/// What servers that speak `openai-responses` may do without.
pub const RESPONSES: &[OptionalField] = &[
    at(Place::Message, "developer"),
    setting("store"),
    STRICT,
    setting("max_output_tokens"),
    setting("prompt_cache_key"),
    setting("prompt_cache_retention"),
    setting("prompt_cache_options"),
    also_called("summary", &["reasoning.summary", "reasoning summaries"]),
    also_called("reasoning", THINKING),
    also_called("include", &["encrypted_content", "encrypted content"]),
];

/// What servers that speak `google-generative-ai` may do without.
pub const GOOGLE: &[OptionalField] =
    &[also_called("thinkingConfig", &["thinking_config", "thinking", "thinking_budget"])];

/// How servers complain about a field.
pub(super) const COMPLAINTS: &[&str] = &[
    // OpenAI, Azure: Unrecognized request argument supplied; Unsupported parameter; Unsupported value
    "unrecogni[sz]ed",
    "unsupported",
    // LiteLLM: doesn't support `reasoning.effort`; does not support parameters: ['reasoning_effort']
    // Ollama: "m" does not support thinking
    "n[o']t support",
    "not (be )?supported",
    // vLLM, Mistral, Fireworks: Extra inputs are not permitted; Bedrock: extraneous key [store] is not permitted
    "not permitted",
    "extra (inputs?|fields?|param)",
    "extra_forbidden",
    // Azure: Additional properties are not allowed ('strict' was unexpected)
    "not allowed",
    "additional propert",
    "unexpected",
    // Go, Rust and Google servers: unknown field, unknown variant, Unknown name
    "unknown",
    "cannot unmarshal",
    "failed to deserialize",
    // Ollama: invalid reasoning value; Azure: Invalid value
    "invalid",
    "not one of",
    "not a valid",
    // vLLM: Priority scheduling is not enabled
    "not enabled",
    // OpenRouter: Reasoning is mandatory for this endpoint and cannot be disabled
    "mandatory",
    "cannot be disabled",
    // Anthropic: `temperature` is deprecated for this model
    "deprecated",
];

/// Classes of errors, which say nothing about the error itself.
pub(super) const CLASSES: [&str; 3] = ["invalid_request_error", "unsupportedparamserror", "invalid_argument"];

/// How servers refuse thinking that a request gives back: it was signed for another conversation, key or model, or
/// has become too old. Such an error teaches nothing; the thinking is left out of the conversation.
pub(super) const ABOUT_THINKING: &[&str] = &[
    // Anthropic: Invalid `signature` in `thinking` block; `thinking` blocks in the latest assistant message cannot be
    // modified. That a message must start with a thinking block is no reason to send fewer.
    "invalid `?(signature|data)`? in `?(redacted_)?thinking`? block",
    "thinking`? blocks? .{0,60}(cannot|can't|can not|must not) be modified",
    "thinking`? blocks? must contain",
    // OpenAI: The encrypted content ... could not be verified; Item 'rs_1' of type 'reasoning' was provided without
    // its required following item; Item with id 'rs_1' not found
    "invalid_encrypted_content",
    "encrypted content .{0,200}could not be (verified|decrypted|parsed)",
    "of type 'reasoning' was provided without",
    "without its required 'reasoning' item",
    "item with id 'rs_[^']*' not found",
    // Gemini: Thought signature is not valid
    "(invalid|corrupted|not valid|failed|cannot decode|decoding) .{0,60}thought.?signature",
    "thought.?signature .{0,60}(invalid|corrupted|not valid|failed|cannot be)",
];
