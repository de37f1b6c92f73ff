//! The built-in providers. Written by `tools/catalogue.py`; change its source data instead.

use super::BuiltIn;

/// Every built-in provider, in catalogue order.
pub(super) static PROVIDERS: [BuiltIn; 41] = [
    BuiltIn {
        id: "amazon-bedrock",
        name: "Amazon Bedrock",
        variables: &[
            "AWS_PROFILE",
            "AWS_ACCESS_KEY_ID+AWS_SECRET_ACCESS_KEY",
            "AWS_BEARER_TOKEN_BEDROCK",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
        ],
        default_model: "us.anthropic.claude-opus-4-6-v1",
        #[cfg(test)]
        checksum: 0x38306904ba11fb49,
        table: include_str!("../../data/amazon-bedrock.json"),
    },
    BuiltIn {
        id: "ant-ling",
        name: "Ant Ling",
        variables: &["ANT_LING_API_KEY"],
        default_model: "Ring-2.6-1T",
        #[cfg(test)]
        checksum: 0xe22f59b6f1805ba6,
        table: include_str!("../../data/ant-ling.json"),
    },
    BuiltIn {
        id: "anthropic",
        name: "Anthropic",
        variables: &["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY"],
        default_model: "claude-opus-4-8",
        #[cfg(test)]
        checksum: 0x1f029be1592540a2,
        table: include_str!("../../data/anthropic.json"),
    },
    BuiltIn {
        id: "azure",
        name: "Azure OpenAI",
        variables: &["AZURE_OPENAI_API_KEY"],
        default_model: "gpt-5.4",
        #[cfg(test)]
        checksum: 0x34b9e319b5d3d1c4,
        table: include_str!("../../data/azure.json"),
    },
    BuiltIn {
        id: "baseten",
        name: "Baseten",
        variables: &["BASETEN_API_KEY"],
        default_model: "zai-org/GLM-5.2",
        #[cfg(test)]
        checksum: 0x1c9b40313d6de568,
        table: include_str!("../../data/baseten.json"),
    },
    BuiltIn {
        id: "cerebras",
        name: "Cerebras",
        variables: &["CEREBRAS_API_KEY"],
        default_model: "gpt-oss-120b",
        #[cfg(test)]
        checksum: 0xdceaa9a9e7295aaf,
        table: include_str!("../../data/cerebras.json"),
    },
    BuiltIn {
        id: "cloudflare-ai-gateway",
        name: "Cloudflare AI Gateway",
        variables: &["CLOUDFLARE_API_KEY"],
        default_model: "workers-ai/@cf/moonshotai/kimi-k2.6",
        #[cfg(test)]
        checksum: 0xbdd1726b95ba3017,
        table: include_str!("../../data/cloudflare-ai-gateway.json"),
    },
    BuiltIn {
        id: "cloudflare-workers-ai",
        name: "Cloudflare Workers AI",
        variables: &["CLOUDFLARE_API_KEY"],
        default_model: "@cf/moonshotai/kimi-k2.6",
        #[cfg(test)]
        checksum: 0x630991cbe2701c55,
        table: include_str!("../../data/cloudflare-workers-ai.json"),
    },
    BuiltIn {
        id: "deepseek",
        name: "DeepSeek",
        variables: &["DEEPSEEK_API_KEY"],
        default_model: "deepseek-v4-pro",
        #[cfg(test)]
        checksum: 0xd479d1c44d6e36f5,
        table: include_str!("../../data/deepseek.json"),
    },
    BuiltIn {
        id: "fireworks",
        name: "Fireworks",
        variables: &["FIREWORKS_API_KEY"],
        default_model: "accounts/fireworks/models/kimi-k2p6",
        #[cfg(test)]
        checksum: 0xae74e83efac5223b,
        table: include_str!("../../data/fireworks.json"),
    },
    BuiltIn {
        id: "github-copilot",
        name: "GitHub Copilot",
        variables: &["COPILOT_GITHUB_TOKEN"],
        default_model: "gpt-5.4",
        #[cfg(test)]
        checksum: 0x61ff3fc215510159,
        table: include_str!("../../data/github-copilot.json"),
    },
    BuiltIn {
        id: "google",
        name: "Google",
        variables: &["GEMINI_API_KEY"],
        default_model: "gemini-3.1-pro-preview",
        #[cfg(test)]
        checksum: 0x42582fdaf901f2c7,
        table: include_str!("../../data/google.json"),
    },
    BuiltIn {
        id: "google-vertex",
        name: "Google Vertex AI",
        variables: &["GOOGLE_CLOUD_API_KEY"],
        default_model: "gemini-3.1-pro-preview",
        #[cfg(test)]
        checksum: 0x0f52551c540dd0f6,
        table: include_str!("../../data/google-vertex.json"),
    },
    BuiltIn {
        id: "groq",
        name: "Groq",
        variables: &["GROQ_API_KEY"],
        default_model: "openai/gpt-oss-120b",
        #[cfg(test)]
        checksum: 0x33303cdfb6c8bdb8,
        table: include_str!("../../data/groq.json"),
    },
    BuiltIn {
        id: "huggingface",
        name: "Hugging Face",
        variables: &["HF_TOKEN"],
        default_model: "moonshotai/Kimi-K2.6",
        #[cfg(test)]
        checksum: 0xf289e83eb42ac367,
        table: include_str!("../../data/huggingface.json"),
    },
    BuiltIn {
        id: "kimi-coding",
        name: "Kimi For Coding",
        variables: &["KIMI_API_KEY"],
        default_model: "kimi-for-coding",
        #[cfg(test)]
        checksum: 0xaac2c4cf4768cef8,
        table: include_str!("../../data/kimi-coding.json"),
    },
    BuiltIn {
        id: "meta",
        name: "Meta",
        variables: &["META_API_KEY"],
        default_model: "muse-spark-1.3",
        #[cfg(test)]
        checksum: 0xd80b582be3ebff06,
        table: include_str!("../../data/meta.json"),
    },
    BuiltIn {
        id: "minimax",
        name: "MiniMax",
        variables: &["MINIMAX_API_KEY"],
        default_model: "MiniMax-M2.7",
        #[cfg(test)]
        checksum: 0x4446f6e3bea1c78e,
        table: include_str!("../../data/minimax.json"),
    },
    BuiltIn {
        id: "minimax-cn",
        name: "MiniMax CN",
        variables: &["MINIMAX_CN_API_KEY"],
        default_model: "MiniMax-M2.7",
        #[cfg(test)]
        checksum: 0x1ec148f05e8cfca4,
        table: include_str!("../../data/minimax-cn.json"),
    },
    BuiltIn {
        id: "mistral",
        name: "Mistral",
        variables: &["MISTRAL_API_KEY"],
        default_model: "devstral-medium-latest",
        #[cfg(test)]
        checksum: 0xabf8f9e678d036f9,
        table: include_str!("../../data/mistral.json"),
    },
    BuiltIn {
        id: "moonshotai",
        name: "Moonshot AI",
        variables: &["MOONSHOT_API_KEY"],
        default_model: "kimi-k2.6",
        #[cfg(test)]
        checksum: 0x1f8e3f333f5deae0,
        table: include_str!("../../data/moonshotai.json"),
    },
    BuiltIn {
        id: "moonshotai-cn",
        name: "Moonshot AI CN",
        variables: &["MOONSHOT_API_KEY"],
        default_model: "kimi-k2.6",
        #[cfg(test)]
        checksum: 0x62eb089efde892c4,
        table: include_str!("../../data/moonshotai-cn.json"),
    },
    BuiltIn {
        id: "nvidia",
        name: "NVIDIA",
        variables: &["NVIDIA_API_KEY"],
        default_model: "nvidia/nemotron-3-super-120b-a12b",
        #[cfg(test)]
        checksum: 0x9420cf7cf10502ff,
        table: include_str!("../../data/nvidia.json"),
    },
    BuiltIn {
        id: "openai",
        name: "OpenAI",
        variables: &["OPENAI_API_KEY"],
        default_model: "gpt-5.5",
        #[cfg(test)]
        checksum: 0xc3991985967df380,
        table: include_str!("../../data/openai.json"),
    },
    BuiltIn {
        id: "openai-codex",
        name: "OpenAI Codex",
        variables: &[],
        default_model: "gpt-5.5",
        #[cfg(test)]
        checksum: 0xcf15aed6bc3fefae,
        table: include_str!("../../data/openai-codex.json"),
    },
    BuiltIn {
        id: "opencode",
        name: "OpenCode Zen",
        variables: &["OPENCODE_API_KEY"],
        default_model: "kimi-k2.6",
        #[cfg(test)]
        checksum: 0x769bf94e3e369803,
        table: include_str!("../../data/opencode.json"),
    },
    BuiltIn {
        id: "opencode-go",
        name: "OpenCode Go",
        variables: &["OPENCODE_API_KEY"],
        default_model: "kimi-k2.6",
        #[cfg(test)]
        checksum: 0x8c04d860e813bb10,
        table: include_str!("../../data/opencode-go.json"),
    },
    BuiltIn {
        id: "openrouter",
        name: "OpenRouter",
        variables: &["OPENROUTER_API_KEY"],
        default_model: "moonshotai/kimi-k2.6",
        #[cfg(test)]
        checksum: 0xbefb7f30ab724b6a,
        table: include_str!("../../data/openrouter.json"),
    },
    BuiltIn {
        id: "qwen-token-plan",
        name: "Qwen Token Plan",
        variables: &["QWEN_TOKEN_PLAN_API_KEY"],
        default_model: "qwen3.7-max",
        #[cfg(test)]
        checksum: 0xe716e5b535d02219,
        table: include_str!("../../data/qwen-token-plan.json"),
    },
    BuiltIn {
        id: "qwen-token-plan-cn",
        name: "Qwen Token Plan CN",
        variables: &["QWEN_TOKEN_PLAN_CN_API_KEY"],
        default_model: "qwen3.7-max",
        #[cfg(test)]
        checksum: 0x8e577121e52bc413,
        table: include_str!("../../data/qwen-token-plan-cn.json"),
    },
    BuiltIn {
        id: "qwen-token-plan-individual",
        name: "Qwen Token Plan Individual",
        variables: &["QWEN_TOKEN_PLAN_API_KEY"],
        default_model: "qwen3.8-max",
        #[cfg(test)]
        checksum: 0x807d69d302790bfa,
        table: include_str!("../../data/qwen-token-plan-individual.json"),
    },
    BuiltIn {
        id: "radius",
        name: "Radius",
        variables: &["RADIUS_API_KEY"],
        default_model: "balanced",
        #[cfg(test)]
        checksum: 0x212b55a15b598ecb,
        table: include_str!("../../data/radius.json"),
    },
    BuiltIn {
        id: "together",
        name: "Together",
        variables: &["TOGETHER_API_KEY"],
        default_model: "moonshotai/Kimi-K2.6",
        #[cfg(test)]
        checksum: 0x897bcfc601740ae4,
        table: include_str!("../../data/together.json"),
    },
    BuiltIn {
        id: "vercel-ai-gateway",
        name: "Vercel AI Gateway",
        variables: &["AI_GATEWAY_API_KEY"],
        default_model: "zai/glm-5.1",
        #[cfg(test)]
        checksum: 0x3316c0c8cf0c06c9,
        table: include_str!("../../data/vercel-ai-gateway.json"),
    },
    BuiltIn {
        id: "xai",
        name: "xAI",
        variables: &["XAI_API_KEY"],
        default_model: "grok-4.7",
        #[cfg(test)]
        checksum: 0xf902146804627f03,
        table: include_str!("../../data/xai.json"),
    },
    BuiltIn {
        id: "xiaomi",
        name: "Xiaomi",
        variables: &["XIAOMI_API_KEY"],
        default_model: "mimo-v2.5-pro",
        #[cfg(test)]
        checksum: 0xfbe062aedc52c831,
        table: include_str!("../../data/xiaomi.json"),
    },
    BuiltIn {
        id: "xiaomi-token-plan-ams",
        name: "Xiaomi Token Plan AMS",
        variables: &["XIAOMI_TOKEN_PLAN_AMS_API_KEY"],
        default_model: "mimo-v2.5-pro",
        #[cfg(test)]
        checksum: 0x5e98155abaf9f293,
        table: include_str!("../../data/xiaomi-token-plan-ams.json"),
    },
    BuiltIn {
        id: "xiaomi-token-plan-cn",
        name: "Xiaomi Token Plan CN",
        variables: &["XIAOMI_TOKEN_PLAN_CN_API_KEY"],
        default_model: "mimo-v2.5-pro",
        #[cfg(test)]
        checksum: 0x6d96e1a879770d3f,
        table: include_str!("../../data/xiaomi-token-plan-cn.json"),
    },
    BuiltIn {
        id: "xiaomi-token-plan-sgp",
        name: "Xiaomi Token Plan SGP",
        variables: &["XIAOMI_TOKEN_PLAN_SGP_API_KEY"],
        default_model: "mimo-v2.5-pro",
        #[cfg(test)]
        checksum: 0x9df2b69525237977,
        table: include_str!("../../data/xiaomi-token-plan-sgp.json"),
    },
    BuiltIn {
        id: "zai",
        name: "Z.AI",
        variables: &["ZAI_API_KEY"],
        default_model: "glm-5.3",
        #[cfg(test)]
        checksum: 0x6fd6f676f30fa579,
        table: include_str!("../../data/zai.json"),
    },
    BuiltIn {
        id: "zai-coding-cn",
        name: "Z.AI Coding CN",
        variables: &["ZAI_CODING_CN_API_KEY"],
        default_model: "glm-5.3",
        #[cfg(test)]
        checksum: 0x96c12e5c03fa4b48,
        table: include_str!("../../data/zai-coding-cn.json"),
    },
];

/// The providers asked for a default model, first one first.
pub(super) static DEFAULT_ORDER: [&str; 41] = [
    "amazon-bedrock",
    "ant-ling",
    "anthropic",
    "openai",
    "azure",
    "openai-codex",
    "radius",
    "nvidia",
    "deepseek",
    "google",
    "google-vertex",
    "github-copilot",
    "openrouter",
    "vercel-ai-gateway",
    "xai",
    "groq",
    "cerebras",
    "zai",
    "zai-coding-cn",
    "mistral",
    "minimax",
    "minimax-cn",
    "moonshotai",
    "moonshotai-cn",
    "huggingface",
    "fireworks",
    "together",
    "baseten",
    "opencode",
    "opencode-go",
    "kimi-coding",
    "meta",
    "cloudflare-workers-ai",
    "cloudflare-ai-gateway",
    "qwen-token-plan",
    "qwen-token-plan-cn",
    "qwen-token-plan-individual",
    "xiaomi",
    "xiaomi-token-plan-cn",
    "xiaomi-token-plan-ams",
    "xiaomi-token-plan-sgp",
];
