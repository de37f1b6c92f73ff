//! Optional fields a server does not accept, in the words of the servers.
//!
//! A refusal is understood when it complains and names a field that was sent,
//! by its own name or by one that a gateway gave it on the way.

use std::sync::LazyLock;

use regex::RegexSet;

use super::Wire;

/// A field or value of a request that a server may do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalField {
    pub name: &'static str,
    /// What servers call it that speak another API behind their gateway.
    pub aliases: &'static [&'static str],
}

/// Makes a field that every server calls by its name.
pub(crate) const fn field(name: &'static str) -> OptionalField {
    OptionalField { name, aliases: &[] }
}

/// What servers call the wish for more or less thinking.
pub(crate) const THINKING: &[&str] =
    &["reasoning.effort", "reasoning_effort", "reasoningEffort", "reasoning", "thinking", "enable_thinking"];

/// How servers complain about a field.
const COMPLAINTS: &[&str] = &[
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

static COMPLAINT: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(COMPLAINTS.iter().map(|complaint| format!("(?i){complaint}"))).expect("the patterns are constants")
});

/// Classes of errors, which say nothing about the error itself.
const CLASSES: [&str; 3] = ["invalid_request_error", "unsupportedparamserror", "invalid_argument"];

/// The optional fields one server has refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused(Vec<&'static str>);

impl Refused {
    /// Whether the field is to be left out.
    pub fn contains(&self, field: &str) -> bool {
        self.0.contains(&field)
    }

    /// Adds the optional fields of `request` that an error answer complains about. False if it is about something else.
    pub fn learn(&mut self, wire: &dyn Wire, request: &[u8], status: u16, body: &str) -> bool {
        let body = CLASSES.iter().fold(body.to_ascii_lowercase(), |body, class| body.replace(class, ""));
        if !matches!(status, 400 | 422) || !COMPLAINT.is_match(&body) {
            return false;
        }
        let is_sent = |name: &str| memchr::memmem::find(request, format!("\"{name}\"").as_bytes()).is_some();
        let new = wire.optional_fields().iter().filter(|field| is_sent(field.name) && !self.contains(field.name));
        let new: Vec<_> = new.collect();
        let by_name =
            |field: &&OptionalField| names(&body, field.name) || (field.name == "developer" && names(&body, "role"));
        let by_alias = |field: &&OptionalField| field.aliases.iter().any(|alias| names(&body, alias));
        // A field that is called by its name is the one that is meant.
        let mut meant: Vec<_> = new.iter().copied().filter(by_name).map(|field| field.name).collect();
        if meant.is_empty() {
            meant = new.iter().copied().filter(by_alias).map(|field| field.name).collect();
        }
        // `reasoning.summary` is about the summary only.
        let is_path = |name: &str| meant.iter().any(|member| names(&body, &format!("{name}.{member}")));
        self.0.extend(meant.iter().filter(|name| !is_path(name)));
        !meant.is_empty()
    }
}

/// Whether `text`, which is in lower case, has `word` standing alone.
fn names(text: &str, word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    text.match_indices(&word).any(|(at, _)| {
        let (before, after) = (at.checked_sub(1), at + word.len());
        !is_part(before.and_then(|before| text.as_bytes().get(before))) && !is_part(text.as_bytes().get(after))
    })
}

#[cfg(test)]
mod tests {
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
        check(
            r#"{"error":{"code":400,"message":"Unsupported param: store","type":"invalid_request_error"}}"#,
            &["store"],
        );
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
}
