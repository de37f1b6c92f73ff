//! The built-in providers. Written by `tools/catalogue.py`; change `tools/providers.json` instead.

use super::BuiltIn;

/// Every built-in provider, in catalogue order.
pub(super) static PROVIDERS: [BuiltIn; 42] = [
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
        default_model: "us.anthropic.claude-opus-5-5",
        #[cfg(test)]
        checksum: 0xa7e88a9e9b50d809,
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
        default_model: "claude-opus-5-5",
        #[cfg(test)]
        checksum: 0x1ba553cae20dc87c,
        table: include_str!("../../data/anthropic.json"),
    },
    BuiltIn {
        id: "azure",
        name: "Azure OpenAI",
        variables: &["AZURE_OPENAI_API_KEY"],
        default_model: "gpt-6.1-sol",
        #[cfg(test)]
        checksum: 0x80e88611a627ba16,
        table: include_str!("../../data/azure.json"),
    },
    BuiltIn {
        id: "baseten",
        name: "Baseten",
        variables: &["BASETEN_API_KEY"],
        default_model: "zai-org/GLM-5.3",
        #[cfg(test)]
        checksum: 0x547459496f63d15f,
        table: include_str!("../../data/baseten.json"),
    },
    BuiltIn {
        id: "cerebras",
        name: "Cerebras",
        variables: &["CEREBRAS_API_KEY"],
        default_model: "gpt-oss-120b",
        #[cfg(test)]
        checksum: 0x2c0afdc4a444caa7,
        table: include_str!("../../data/cerebras.json"),
    },
    BuiltIn {
        id: "cloudflare-ai-gateway",
        name: "Cloudflare AI Gateway",
        variables: &["CLOUDFLARE_API_KEY"],
        default_model: "workers-ai/@cf/moonshotai/kimi-k2.7-code",
        #[cfg(test)]
        checksum: 0x9f5d6473138eb942,
        table: include_str!("../../data/cloudflare-ai-gateway.json"),
    },
    BuiltIn {
        id: "cloudflare-workers-ai",
        name: "Cloudflare Workers AI",
        variables: &["CLOUDFLARE_API_KEY"],
        default_model: "@cf/moonshotai/kimi-k2.7-code",
        #[cfg(test)]
        checksum: 0xfa0565e0d08d198a,
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
        default_model: "accounts/fireworks/models/kimi-k3",
        #[cfg(test)]
        checksum: 0x6758d36eebb4a91b,
        table: include_str!("../../data/fireworks.json"),
    },
    BuiltIn {
        id: "github-copilot",
        name: "GitHub Copilot",
        variables: &["COPILOT_GITHUB_TOKEN"],
        default_model: "gpt-6.1-sol",
        #[cfg(test)]
        checksum: 0xc48ed9aa179696f9,
        table: include_str!("../../data/github-copilot.json"),
    },
    BuiltIn {
        id: "google",
        name: "Google",
        variables: &["GEMINI_API_KEY"],
        default_model: "gemini-4-argon",
        #[cfg(test)]
        checksum: 0xc3cfcebd24f5437d,
        table: include_str!("../../data/google.json"),
    },
    BuiltIn {
        id: "google-vertex",
        name: "Google Vertex AI",
        variables: &["GOOGLE_CLOUD_API_KEY"],
        default_model: "gemini-4-argon",
        #[cfg(test)]
        checksum: 0x485e570c61600730,
        table: include_str!("../../data/google-vertex.json"),
    },
    BuiltIn {
        id: "groq",
        name: "Groq",
        variables: &["GROQ_API_KEY"],
        default_model: "openai/gpt-oss-120b",
        #[cfg(test)]
        checksum: 0x543ff7d9d7116466,
        table: include_str!("../../data/groq.json"),
    },
    BuiltIn {
        id: "huggingface",
        name: "Hugging Face",
        variables: &["HF_TOKEN"],
        default_model: "moonshotai/Kimi-K2.7-Code",
        #[cfg(test)]
        checksum: 0xddbb6933a41b839f,
        table: include_str!("../../data/huggingface.json"),
    },
    BuiltIn {
        id: "kimi-coding",
        name: "Kimi For Coding",
        variables: &["KIMI_API_KEY"],
        default_model: "kimi-for-coding",
        #[cfg(test)]
        checksum: 0x289db5e938eadf23,
        table: include_str!("../../data/kimi-coding.json"),
    },
    BuiltIn {
        id: "meta",
        name: "Meta",
        variables: &["META_API_KEY"],
        default_model: "muse-spark-1.3",
        #[cfg(test)]
        checksum: 0x1abd8811e1b9c5c3,
        table: include_str!("../../data/meta.json"),
    },
    BuiltIn {
        id: "minimax",
        name: "MiniMax",
        variables: &["MINIMAX_API_KEY"],
        default_model: "MiniMax-M3",
        #[cfg(test)]
        checksum: 0xd831b9eeae64a50c,
        table: include_str!("../../data/minimax.json"),
    },
    BuiltIn {
        id: "minimax-cn",
        name: "MiniMax CN",
        variables: &["MINIMAX_CN_API_KEY"],
        default_model: "MiniMax-M3",
        #[cfg(test)]
        checksum: 0x56ccf0a1da31a9eb,
        table: include_str!("../../data/minimax-cn.json"),
    },
    BuiltIn {
        id: "mistral",
        name: "Mistral",
        variables: &["MISTRAL_API_KEY"],
        default_model: "devstral-medium-latest",
        #[cfg(test)]
        checksum: 0xf55ab4a7e000d15a,
        table: include_str!("../../data/mistral.json"),
    },
    BuiltIn {
        id: "moonshotai",
        name: "Moonshot AI",
        variables: &["MOONSHOT_API_KEY"],
        default_model: "kimi-k2.7-code",
        #[cfg(test)]
        checksum: 0x198a90905b10d7de,
        table: include_str!("../../data/moonshotai.json"),
    },
    BuiltIn {
        id: "moonshotai-cn",
        name: "Moonshot AI CN",
        variables: &["MOONSHOT_API_KEY"],
        default_model: "kimi-k2.7-code",
        #[cfg(test)]
        checksum: 0xd28cfa5c920ca0a0,
        table: include_str!("../../data/moonshotai-cn.json"),
    },
    BuiltIn {
        id: "nvidia",
        name: "NVIDIA",
        variables: &["NVIDIA_API_KEY"],
        default_model: "nvidia/nemotron-3.5-super-vl-120b-a12b",
        #[cfg(test)]
        checksum: 0x7504691d56ccabb9,
        table: include_str!("../../data/nvidia.json"),
    },
    BuiltIn {
        id: "openai",
        name: "OpenAI",
        variables: &["OPENAI_API_KEY"],
        default_model: "gpt-6.1-sol",
        #[cfg(test)]
        checksum: 0xdc79ca084359a2c7,
        table: include_str!("../../data/openai.json"),
    },
    BuiltIn {
        id: "openai-codex",
        name: "OpenAI Codex",
        variables: &[],
        default_model: "gpt-6.1-sol",
        #[cfg(test)]
        checksum: 0xcf1a0cf1aaf3e2d3,
        table: include_str!("../../data/openai-codex.json"),
    },
    BuiltIn {
        id: "opencode",
        name: "OpenCode Zen",
        variables: &["OPENCODE_API_KEY"],
        default_model: "kimi-k2.7-code",
        #[cfg(test)]
        checksum: 0x9ad39e798d6d079b,
        table: include_str!("../../data/opencode.json"),
    },
    BuiltIn {
        id: "opencode-go",
        name: "OpenCode Go",
        variables: &["OPENCODE_API_KEY"],
        default_model: "kimi-k3.1-pro",
        #[cfg(test)]
        checksum: 0x24e2e10b394bb5a4,
        table: include_str!("../../data/opencode-go.json"),
    },
    BuiltIn {
        id: "openrouter",
        name: "OpenRouter",
        variables: &["OPENROUTER_API_KEY"],
        default_model: "moonshotai/kimi-k2.7-code",
        #[cfg(test)]
        checksum: 0xae07cad7265eee3d,
        table: include_str!("../../data/openrouter.json"),
    },
    BuiltIn {
        id: "qwen-token-plan",
        name: "Qwen Token Plan",
        variables: &["QWEN_TOKEN_PLAN_API_KEY"],
        default_model: "qwen3.8-max",
        #[cfg(test)]
        checksum: 0xac31ace59a17e4aa,
        table: include_str!("../../data/qwen-token-plan.json"),
    },
    BuiltIn {
        id: "qwen-token-plan-cn",
        name: "Qwen Token Plan CN",
        variables: &["QWEN_TOKEN_PLAN_CN_API_KEY"],
        default_model: "qwen3.8-max",
        #[cfg(test)]
        checksum: 0xb036886923c97dfa,
        table: include_str!("../../data/qwen-token-plan-cn.json"),
    },
    BuiltIn {
        id: "qwen-token-plan-individual",
        name: "Qwen Token Plan Individual",
        variables: &["QWEN_TOKEN_PLAN_API_KEY"],
        default_model: "qwen3.8-max",
        #[cfg(test)]
        checksum: 0x48da0b1ff4160abb,
        table: include_str!("../../data/qwen-token-plan-individual.json"),
    },
    BuiltIn {
        id: "qwen-token-plan-individual-cn",
        name: "Qwen Token Plan Individual CN",
        variables: &["QWEN_TOKEN_PLAN_CN_API_KEY"],
        default_model: "qwen3.8-max",
        #[cfg(test)]
        checksum: 0x44b4abd4a5a716a3,
        table: include_str!("../../data/qwen-token-plan-individual-cn.json"),
    },
    BuiltIn {
        id: "radius",
        name: "Radius",
        variables: &["RADIUS_API_KEY"],
        default_model: "balanced",
        #[cfg(test)]
        checksum: 0x4a8a0dc8657e7b2d,
        table: include_str!("../../data/radius.json"),
    },
    BuiltIn {
        id: "together",
        name: "Together",
        variables: &["TOGETHER_API_KEY"],
        default_model: "moonshotai/Kimi-K3",
        #[cfg(test)]
        checksum: 0x7563412a26e54424,
        table: include_str!("../../data/together.json"),
    },
    BuiltIn {
        id: "vercel-ai-gateway",
        name: "Vercel AI Gateway",
        variables: &["AI_GATEWAY_API_KEY"],
        default_model: "zai/glm-5.3",
        #[cfg(test)]
        checksum: 0xe0c777d212d30501,
        table: include_str!("../../data/vercel-ai-gateway.json"),
    },
    BuiltIn {
        id: "xai",
        name: "xAI",
        variables: &["XAI_API_KEY"],
        default_model: "grok-4.7",
        #[cfg(test)]
        checksum: 0xb20b017212101053,
        table: include_str!("../../data/xai.json"),
    },
    BuiltIn {
        id: "xiaomi",
        name: "Xiaomi",
        variables: &["XIAOMI_API_KEY"],
        default_model: "mimo-v2.6-pro",
        #[cfg(test)]
        checksum: 0x179e2445c05c9065,
        table: include_str!("../../data/xiaomi.json"),
    },
    BuiltIn {
        id: "xiaomi-token-plan-ams",
        name: "Xiaomi Token Plan AMS",
        variables: &["XIAOMI_TOKEN_PLAN_AMS_API_KEY"],
        default_model: "mimo-v2.6-pro",
        #[cfg(test)]
        checksum: 0x598aac83461d6067,
        table: include_str!("../../data/xiaomi-token-plan-ams.json"),
    },
    BuiltIn {
        id: "xiaomi-token-plan-cn",
        name: "Xiaomi Token Plan CN",
        variables: &["XIAOMI_TOKEN_PLAN_CN_API_KEY"],
        default_model: "mimo-v2.6-pro",
        #[cfg(test)]
        checksum: 0xb025c01c1ec0130d,
        table: include_str!("../../data/xiaomi-token-plan-cn.json"),
    },
    BuiltIn {
        id: "xiaomi-token-plan-sgp",
        name: "Xiaomi Token Plan SGP",
        variables: &["XIAOMI_TOKEN_PLAN_SGP_API_KEY"],
        default_model: "mimo-v2.6-pro",
        #[cfg(test)]
        checksum: 0x4c79fd13792fecd7,
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
        checksum: 0xed58acef9f98189e,
        table: include_str!("../../data/zai-coding-cn.json"),
    },
];

/// The providers asked for a default model, first one first.
pub(super) static DEFAULT_ORDER: [&str; 42] = [
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
    "qwen-token-plan-individual-cn",
    "xiaomi",
    "xiaomi-token-plan-cn",
    "xiaomi-token-plan-ams",
    "xiaomi-token-plan-sgp",
];
