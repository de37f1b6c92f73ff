//! Names of providers in the words of the conventions.

/// Returns the conventions' name of a provider, else its own.
pub(crate) fn provider_name(provider: &str) -> &str {
    match provider {
        "amazon-bedrock" => "aws.bedrock",
        "azure" | "azure-openai-responses" | "azure-openai" => "azure.ai.openai",
        "google" => "gcp.gemini",
        "google-vertex" => "gcp.vertex_ai",
        "mistral" => "mistral_ai",
        "moonshotai" | "moonshotai-cn" => "moonshot_ai",
        "openai-codex" => "openai",
        "xai" => "x_ai",
        own => own,
    }
}
