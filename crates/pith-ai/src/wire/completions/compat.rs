//! What a chat-completions server understands: explicit `compat` keys first,
//! then what is known about the vendor, then caution.

use pith_protocol::Model;
use serde_json::{Map, Value};

use crate::wire::Refused;
use crate::wire::common::{Affinity, compat, flag, is_host, is_openrouter};

/// The switches of one server.
pub(super) struct Compat<'a> {
    pub store: bool,
    pub developer_role: bool,
    pub reasoning_effort: bool,
    pub usage_in_streaming: bool,
    pub max_tokens_field: &'static str,
    pub tool_result_name: bool,
    pub assistant_after_tool_result: bool,
    pub thinking_as_text: bool,
    pub reasoning_content_required: bool,
    pub thinking_format: &'a str,
    pub anthropic_cache_control: bool,
    /// Headers that keep a session on one machine.
    pub affinity: Option<Affinity>,
    pub long_cache: bool,
    pub strict: bool,
    pub tool_stream: bool,
    /// A history with calls needs a list of tools, even if it is empty.
    pub tools_with_history: bool,
    pub merge_users: bool,
    /// Tool-call ids must be nine letters or digits.
    pub short_ids: bool,
    pub vendor: Vendor,
}

/// Vendors whose servers differ from OpenAI's in known ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vendor {
    OpenAi,
    /// Known to take what OpenAI takes.
    Faithful,
    OpenRouter,
    Nvidia,
    Cerebras,
    Xai,
    Together,
    Chutes,
    Deepseek,
    Zai,
    Moonshot,
    Opencode,
    CloudflareGateway,
    CloudflareWorkers,
    AntLing,
    Mistral,
    /// Any other host: a local server or a proxy of unknown manners.
    Unknown,
}

/// Provider ids and hosts, first match wins.
const VENDORS: [(Vendor, &[&str], &[&str]); 15] = [
    (Vendor::OpenRouter, &["openrouter"], &["openrouter.ai"]),
    (Vendor::Nvidia, &["nvidia"], &["nvidia.com"]),
    (Vendor::Cerebras, &["cerebras"], &["cerebras.ai"]),
    (Vendor::Xai, &["xai"], &["x.ai"]),
    (Vendor::Together, &["together"], &["together.ai", "together.xyz"]),
    (Vendor::Chutes, &["chutes"], &["chutes.ai"]),
    (Vendor::Deepseek, &["deepseek"], &["deepseek.com"]),
    (Vendor::Zai, &["zai", "zai-coding-cn"], &["z.ai", "bigmodel.cn"]),
    (Vendor::Moonshot, &["moonshotai", "moonshotai-cn"], &["moonshot.ai", "moonshot.cn"]),
    (Vendor::Opencode, &["opencode", "opencode-go"], &["opencode.ai"]),
    (Vendor::CloudflareGateway, &["cloudflare-ai-gateway"], &["gateway.ai.cloudflare.com"]),
    (Vendor::CloudflareWorkers, &["cloudflare-workers-ai"], &["api.cloudflare.com"]),
    (Vendor::AntLing, &["ant-ling"], &["ant-ling.com"]),
    (Vendor::Mistral, &["mistral"], &["mistral.ai"]),
    (Vendor::OpenAi, &[], &["api.openai.com"]),
];

/// Hosts beside OpenAI's that are known to take what it takes.
const FAITHFUL_HOSTS: [&str; 9] = [
    "groq.com",
    "huggingface.co",
    "fireworks.ai",
    "baseten.co",
    "aliyuncs.com",
    "xiaomimimo.com",
    "githubcopilot.com",
    "openai.azure.com",
    "vercel.sh",
];

impl Vendor {
    /// Returns the vendor whose server a model is on.
    pub(super) fn of(model: &Model) -> Vendor {
        let is_vendor = |(_, ids, hosts): &&(Vendor, &[&str], &[&str])| {
            ids.contains(&model.provider.as_str()) || hosts.iter().any(|host| is_host(model, host))
        };
        match VENDORS.iter().find(is_vendor) {
            Some((vendor, ..)) => *vendor,
            None if FAITHFUL_HOSTS.iter().any(|host| is_host(model, host)) => Vendor::Faithful,
            None => Vendor::Unknown,
        }
    }

    fn takes_openai_extras(self) -> bool {
        matches!(self, Vendor::OpenAi | Vendor::Faithful | Vendor::OpenRouter)
    }

    fn takes_reasoning_effort(self) -> bool {
        !matches!(
            self,
            Vendor::Xai
                | Vendor::Zai
                | Vendor::Moonshot
                | Vendor::Together
                | Vendor::CloudflareGateway
                | Vendor::Nvidia
                | Vendor::AntLing
        )
    }

    fn max_tokens_field(self) -> &'static str {
        match self {
            Vendor::OpenAi
            | Vendor::Faithful
            | Vendor::OpenRouter
            | Vendor::Cerebras
            | Vendor::Xai
            | Vendor::Opencode
            | Vendor::CloudflareWorkers => "max_completion_tokens",
            Vendor::Nvidia
            | Vendor::Together
            | Vendor::Chutes
            | Vendor::Deepseek
            | Vendor::Zai
            | Vendor::Moonshot
            | Vendor::CloudflareGateway
            | Vendor::AntLing
            | Vendor::Mistral
            | Vendor::Unknown => "max_tokens",
        }
    }

    fn thinking_format(self) -> &'static str {
        match self {
            Vendor::Deepseek => "deepseek",
            Vendor::Zai => "zai",
            Vendor::Together => "together",
            Vendor::AntLing => "ant-ling",
            Vendor::OpenRouter => "openrouter",
            _ => "openai",
        }
    }

    fn keeps_caches_long(self) -> bool {
        !matches!(
            self,
            Vendor::Together | Vendor::CloudflareGateway | Vendor::CloudflareWorkers | Vendor::Nvidia | Vendor::AntLing
        )
    }
}

impl<'a> Compat<'a> {
    /// Makes the switches for requests to `model`, without what its server has refused.
    pub(super) fn of(model: &'a Model, refused: &Refused) -> Self {
        let vendor = Vendor::of(model);
        let is_router = is_openrouter(model);
        let is_relayed = model.id.starts_with("anthropic/") || model.id.starts_with("openai/");
        let developer_role = vendor.takes_openai_extras() && (!is_router || is_relayed);
        let text = |key: &str, default: &'static str| compat(model, key).and_then(Value::as_str).unwrap_or(default);
        let cache_format = if is_router && model.id.starts_with("anthropic/") { "anthropic" } else { "" };
        let is_allowed = |field: &str| !refused.contains(field);
        Compat {
            store: flag(model, "supportsStore", vendor.takes_openai_extras()),
            developer_role: flag(model, "supportsDeveloperRole", developer_role) && is_allowed("developer"),
            reasoning_effort: flag(model, "supportsReasoningEffort", vendor.takes_reasoning_effort()),
            usage_in_streaming: flag(model, "supportsUsageInStreaming", true),
            max_tokens_field: max_tokens_field(text("maxTokensField", vendor.max_tokens_field()), refused),
            tool_result_name: flag(model, "requiresToolResultName", vendor == Vendor::Mistral),
            assistant_after_tool_result: flag(model, "requiresAssistantAfterToolResult", false),
            thinking_as_text: flag(model, "requiresThinkingAsText", false),
            reasoning_content_required: flag(
                model,
                "requiresReasoningContentOnAssistantMessages",
                vendor == Vendor::Deepseek,
            ) && is_allowed("reasoning_content"),
            thinking_format: text("thinkingFormat", vendor.thinking_format()),
            anthropic_cache_control: text("cacheControlFormat", cache_format) == "anthropic"
                && is_allowed("cache_control"),
            affinity: flag(model, "sendSessionAffinityHeaders", is_router).then(|| Affinity::of(model)),
            long_cache: flag(model, "supportsLongCacheRetention", vendor.keeps_caches_long()),
            strict: flag(model, "supportsStrictMode", false) && is_allowed("strict"),
            tool_stream: flag(model, "zaiToolStream", false),
            tools_with_history: flag(model, "requiresToolsWithToolHistory", false),
            merge_users: flag(model, "requiresAlternation", false),
            short_ids: vendor == Vendor::Mistral,
            vendor,
        }
    }

    /// Returns a compat key that holds an object.
    pub(super) fn object(model: &'a Model, key: &str) -> Option<&'a Map<String, Value>> {
        compat(model, key).and_then(Value::as_object)
    }
}

/// Returns the name of the output limit, the other one if a server has refused the wanted one.
fn max_tokens_field(wanted: &str, refused: &Refused) -> &'static str {
    let (first, second) = match wanted {
        "max_completion_tokens" => ("max_completion_tokens", "max_tokens"),
        _ => ("max_tokens", "max_completion_tokens"),
    };
    if refused.contains(first) { second } else { first }
}
