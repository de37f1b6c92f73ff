//! Requests refused because of their output limit, and what would have fitted.
//!
//! A model whose entry says nothing about its sizes is asked for more than a
//! small server can give. The server's refusal has the numbers; the wordings of
//! the servers are the table below. A refusal because the input alone is too
//! long is not among them: only a shorter conversation helps there.

use std::sync::{Arc, LazyLock};

use pith_protocol::{LlmCall, Model};
use regex::{Captures, Regex};
use serde_json::Value;

use super::ANSWER_TOKENS;

/// How servers say that the output limit is too large. What the groups mean:
/// `output` is the largest limit allowed, `above` the smallest one not allowed, `window` what input and output share,
/// `input` what the input takes of it, `total` what input and output together would take.
/// The first pattern that matches counts.
const WORDINGS: &[&str] = &[
    // OpenAI, Azure, older vLLM, llama-cpp-python, OpenRouter
    r"maximum context length is N<window> tokens.{0,40}requested (about )?N<total> tokens",
    // vLLM
    r"maximum context length is N<window> tokens and your request has N<input> input tokens",
    r"passed N<input> input tokens and requested N output tokens.{0,40}context length is only N<window> tokens",
    // counts no further than it needs to
    r"maximum context length is N<window> tokens.{0,40}requested N output tokens and your prompt contains at least",
    // SGLang
    r"maximum context length of N<window> tokens.{0,20}requested a total of N<total> tokens",
    // Text Generation Inference, Together
    r"tokens \+ `?max_new_tokens`? must be <= N<window>\. Given: N<input> ",
    // Anthropic
    r"`?max_tokens`? exceed context limit: N<input> \+ N > N<window>",
    r"max_tokens: N > N<output>, which is the maximum allowed",
    // OpenAI, Azure
    r"supports at most N<output> (completion|output) tokens",
    r"max_(output|completion)_tokens'?: integer above maximum value\. Expected a value <= N<output>",
    // Groq, Cohere, validators of Python servers
    r#"max[_ ](completion_|output_|new_)?tokens.{0,60}less than or equal to [`'"]?N<output>"#,
    // DeepSeek, Qwen
    r"range of max_tokens (is|should be) \[\d+, ?N<output>\]",
    // Cerebras
    r"Current length is N<total> while limit is N<window>",
    // Moonshot
    r"exceeded model token limit:? N<window> \(requested:? N<total>\)",
    // Bedrock behind a gateway
    r"maximum tokens you requested exceeds the model limit of N<output>",
    // Gemini
    r"maxOutputTokens value of N but the supported range is from N \(inclusive\) to N<above> \(exclusive\)",
];

/// How servers name their window when the conversation alone is too long.
const WINDOWS: &[&str] = &[
    r"maximum context length (is|of) N<window>",
    r"maximum prompt length is N<window>",
    r"exceeds the available context size \(N<window> tokens",
    r"prompt is too long: N tokens > N<window> maximum",
    r"configured context size is N<window> tokens",
    r"model's context length (is only |\()N<window> tokens",
    r"context limit: N \+ N > N<window>",
    r"too large for model with N<window> maximum context length",
];

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| patterns(WORDINGS));
static WINDOW_PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| patterns(WINDOWS));

fn patterns(wordings: &[&str]) -> Vec<Regex> {
    let number = Regex::new(r"\bN\b(<\w+>)?").expect("the pattern is a constant");
    let pattern = |wording: &&str| {
        let numbered = number.replace_all(wording, |found: &Captures<'_>| match found.get(1) {
            Some(name) => format!(r"(?{}[\d,]+)", name.as_str()),
            None => r"[\d,]+".to_owned(),
        });
        Regex::new(&format!("(?is){numbered}")).expect("the patterns are constants")
    };
    wordings.iter().map(pattern).collect()
}

/// Returns the numbers that the first matching pattern finds.
fn numbers<'t>(patterns: &[Regex], text: &'t str) -> Option<impl Fn(&str) -> Option<u64> + use<'t>> {
    let found = patterns.iter().find_map(|pattern| pattern.captures(text))?;
    Some(move |name: &str| found.name(name)?.as_str().replace(',', "").parse().ok())
}

/// What a server has said about the sizes of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LearnedLimits {
    /// What input and output share.
    pub window: Option<u64>,
    /// The largest output limit.
    pub output: Option<u64>,
}

impl LearnedLimits {
    /// Reads a refusal of a request that asked for `asked` tokens of output and has an input of about `estimate`.
    /// Returns the limit that fits, or nothing if it is about something else or no useful limit does.
    pub fn learn(&mut self, refusal: &str, asked: u64, estimate: u64) -> Option<u64> {
        let Some(number) = numbers(&PATTERNS, refusal) else {
            // Compaction has to know how much fits.
            let window = numbers(&WINDOW_PATTERNS, refusal).and_then(|number| number("window"));
            self.window = window.or(self.window);
            return None;
        };
        let output = number("output").or_else(|| number("above").map(|above| above.saturating_sub(1)));
        let window = number("window");
        let input = number("input").or_else(|| number("total").map(|total| total.saturating_sub(asked)));
        let fitting = match (output, window) {
            (Some(output), _) => output,
            (None, Some(window)) => {
                let free = window.saturating_sub(input.unwrap_or(estimate));
                // If too little is left for an answer, it is the conversation that is too long.
                if free < ANSWER_TOKENS.min(window / 8) {
                    self.window = Some(window);
                    return None;
                }
                free
            }
            (None, None) => return None,
        };
        if fitting == 0 || fitting >= asked {
            return None;
        }
        self.window = window.or(self.window);
        self.output = output.or(self.output);
        Some(fitting)
    }

    /// Returns the call with the model as its server has described it; `None` if that is as configured.
    pub fn correct(&self, call: &LlmCall) -> Option<LlmCall> {
        let model = &*call.model;
        let lower = |configured: u64, learned: Option<u64>| learned.filter(|n| configured == 0 || *n < configured);
        let (window, output) = (lower(model.context_window, self.window), lower(model.max_tokens, self.output));
        let limit = output.or(window)?;
        let model = Model {
            context_window: window.unwrap_or(model.context_window),
            max_tokens: output.unwrap_or(model.max_tokens),
            ..model.clone()
        };
        Some(limited(call, model, limit))
    }
}

/// Returns the call with the output limit that the server has computed for this request.
pub fn with_exact_limit(call: &LlmCall, limit: u64) -> LlmCall {
    // Without a window nothing is taken off for the error of an estimate.
    let model = Model { context_window: 0, max_tokens: limit, ..(*call.model).clone() };
    limited(call, model, limit)
}

fn limited(call: &LlmCall, mut model: Model, limit: u64) -> LlmCall {
    // `samplingParams` go over everything, so a limit in them has to be taken away.
    if let Some(params) = &mut model.sampling_params {
        params.retain(|name, value| !FIELDS.contains(&name.as_str()) || value.as_u64().is_some_and(|n| n <= limit));
    }
    let max_tokens = call.max_tokens.map(|wanted| wanted.min(limit));
    LlmCall { model: Arc::new(model), max_tokens, ..call.clone() }
}

/// Returns the output limit in the body of a request.
pub fn asked_for(body: &[u8]) -> Option<u64> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let named = FIELDS.iter().find_map(|field| body.get(field)?.as_u64());
    named.or_else(|| body.pointer("/generationConfig/maxOutputTokens")?.as_u64())
}

const FIELDS: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use serde_json::json;

    /// A refusal of 16384 tokens of output, for an input that is taken to be 1000 tokens.
    fn check(text: &str, expected: Option<(u64, Option<u64>, Option<u64>)>) {
        let mut learned = LearnedLimits::default();
        let fitting = learned.learn(text, 16384, 1000);
        assert_eq!(fitting.map(|fitting| (fitting, learned.window, learned.output)), expected, "{text}");
    }

    #[test]
    fn refusals_of_servers_say_what_fits() {
        let window = |fitting, window| Some((fitting, Some(window), None));
        let output = |output| Some((output, None, Some(output)));
        // vLLM, newest last
        check(
            "This model's maximum context length is 8192 tokens. However, you requested 20396 tokens (4012 in the \
             messages, 16384 in the completion). Please reduce the length of the messages or completion.",
            window(4180, 8192),
        );
        check(
            "'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is 8192 \
             tokens and your request has 4012 input tokens (16384 > 8192 - 4012).",
            window(4180, 8192),
        );
        check(
            "You passed 4012 input tokens and requested 16384 output tokens. However, the model's context length is \
             only 8192 tokens, resulting in a maximum input length of 1 tokens. Please reduce the length.",
            window(4180, 8192),
        );
        check(
            "This model's maximum context length is 8192 tokens. However, you requested 16384 output tokens and your \
             prompt contains at least 1 input tokens, for a total of at least 16385 tokens. Please reduce it.",
            window(7192, 8192),
        );
        // OpenAI and Azure
        check(
            "This model's maximum context length is 16,385 tokens. However, you requested 20,396 tokens (3,912 in the \
             messages, 100 in the functions, and 16,384 in the completion).",
            window(12373, 16385),
        );
        check(
            "max_tokens is too large: 16384. This model supports at most 4096 completion tokens, whereas you provided \
             16384.",
            output(4096),
        );
        check(
            "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 8192, but got 16384 instead.",
            output(8192),
        );
        // OpenRouter
        check(
            "This endpoint's maximum context length is 8192 tokens. However, you requested about 20396 tokens (3900 of \
             text input, 112 of tool input, 16384 in the output). Please reduce the length of either one.",
            window(4180, 8192),
        );
        // LiteLLM quotes the server behind it
        check(
            r#"{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: Hosted_vllmException - 'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is 8192 tokens and your request has 4012 input tokens (16384 > 8192 - 4012). None. Received Model Group=m","type":null,"param":null,"code":"400"}}"#,
            window(4180, 8192),
        );
        // SGLang
        check(
            "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of \
             20396 tokens: 4012 tokens from the input messages and 16384 tokens for the completion.",
            window(4180, 8192),
        );
        // Text Generation Inference, Together
        check(
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 4012 `inputs` tokens \
             and 16384 `max_new_tokens`",
            window(4181, 8193),
        );
        // Anthropic
        check(
            "input length and `max_tokens` exceed context limit: 190000 + 16384 > 200000, decrease input length or \
             `max_tokens` and try again",
            window(10000, 200_000),
        );
        check(
            "max_tokens: 16384 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku",
            output(8192),
        );
        // Groq, Cohere, a Python validator
        check(
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the \
             `context_window` for this model",
            output(8192),
        );
        check("too many tokens: max tokens must be less than or equal to 4096 - received 16384.", output(4096));
        check(
            r#"{"detail":[{"loc":["body","max_tokens"],"msg":"Input should be less than or equal to 8192"}]}"#,
            output(8192),
        );
        // DeepSeek and Qwen
        check("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", output(8192));
        check("<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]", output(8192));
        // Cerebras, Moonshot, Bedrock, Gemini
        check(
            "Please reduce the length of the messages or completion. Current length is 20396 while limit is 8192",
            window(4180, 8192),
        );
        check("Invalid request: Your request exceeded model token limit: 8192 (requested: 20396)", window(4180, 8192));
        check(
            "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value \
             that is lower than 4096.",
            output(4096),
        );
        check(
            "Unable to submit request because it has a maxOutputTokens value of 16384 but the supported range is from \
             1 (inclusive) to 8193 (exclusive). Update the value and try again.",
            output(8192),
        );
    }

    #[test]
    fn a_conversation_that_is_too_long_is_not_a_limit_that_is_too_large() {
        for text in [
            "This model's maximum context length is 8192 tokens. However, you requested 25384 tokens (9000 in the \
             messages, 16384 in the completion).",
            "This model's maximum context length is 8192 tokens. However, you requested 24084 tokens (7700 in the \
             messages, 16384 in the completion).",
            "the request exceeds the available context size (8192 tokens), try increasing it",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 199900 + 16384 > 200000",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "max_tokens: 16384 > 32000, which is the maximum allowed number of output tokens",
            "max_tokens must be an integer",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn a_conversation_that_is_too_long_tells_the_window() {
        for (text, window) in [
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9012 tokens.",
                8192,
            ),
            ("request (9012 tokens) exceeds the available context size (8192 tokens), try increasing it", 8192),
            ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
            ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072),
            ("input (9012 tokens) is longer than the model's context length (8192 tokens)", 8192),
            ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32768),
            ("input length and `max_tokens` exceed context limit: 199900 + 16384 > 200000", 200_000),
        ] {
            let mut learned = LearnedLimits::default();
            assert_eq!((learned.learn(text, 16384, 1000), learned.window), (None, Some(window)), "{text}");
        }
    }

    #[test]
    fn limits_a_server_named_win_over_configured_ones() {
        let params = json!({"temperature": 0.5, "max_tokens": 16384});
        let model = Model {
            context_window: 128_000,
            max_tokens: 16384,
            sampling_params: params.as_object().cloned(),
            ..Model::default()
        };
        let mut call = testing::call(model, vec![]);
        call.max_tokens = Some(12_000);
        let corrected = |window, output| {
            let call = LearnedLimits { window, output }.correct(&call)?;
            assert_eq!(call.model.sampling_params, json!({"temperature": 0.5}).as_object().cloned());
            Some((call.model.context_window, call.model.max_tokens, call.max_tokens))
        };
        assert_eq!(corrected(None, None), None);
        assert_eq!(corrected(Some(200_000), None), None);
        assert_eq!(corrected(Some(8192), None), Some((8192, 16384, Some(8192))));
        assert_eq!(corrected(None, Some(4096)), Some((128_000, 4096, Some(4096))));
        let exact = with_exact_limit(&call, 400);
        assert_eq!((exact.model.context_window, exact.model.max_tokens, exact.max_tokens), (0, 400, Some(400)));
    }

    #[test]
    fn every_api_has_its_name_for_the_limit() {
        assert_eq!(asked_for(br#"{"max_completion_tokens": 5}"#), Some(5));
        assert_eq!(asked_for(br#"{"generationConfig": {"maxOutputTokens": 6}}"#), Some(6));
        assert_eq!(asked_for(br#"{"model": "m"}"#), None);
    }
}
