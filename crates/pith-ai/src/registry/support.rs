//! Which models pith can talk to, and what is missing for the others.

use pith_protocol::Model;

use super::provider::Provider;
use super::{Registry, Tables};
use crate::wire;

const AZURE: &str = "Azure OpenAI: resource addresses and deployment names";

/// APIs of catalogue models that need more than a key.
const UNSUPPORTED: [(&str, &str); 5] = [
    ("bedrock-converse-stream", "Amazon Bedrock: AWS request signing and its binary event stream"),
    ("google-vertex", "Google Vertex AI: Google Cloud credentials and regional addresses"),
    ("azure-openai-responses", AZURE),
    ("openai-codex-responses", "the ChatGPT subscription login"),
    ("pi-messages", "the Radius gateway of another agent"),
];

/// An API of the catalogue whose servers speak completions as well.
pub(super) const MISTRAL: &str = "mistral-conversations";

/// Whether nothing in pith knows the API, not even by name.
pub(super) fn is_unknown(api: &str) -> bool {
    wire::for_api(api).is_none() && api != MISTRAL && UNSUPPORTED.iter().all(|(name, _)| *name != api)
}

/// Returns what is missing for this model, as the end of a sentence.
fn missing(tables: &Tables, provider: Option<&Provider>, model: &Model) -> Option<String> {
    let api = model.api.as_str();
    let name = || format!("{}/{}", model.provider, model.id);
    let service = provider.and_then(Provider::service);
    if service.is_some_and(|service| service.answers.covers(api)) {
        return None;
    }
    let lacks = |what: &str| Some(format!("Model {} cannot be used: pith does not support {what}", name()));
    if model.provider == "azure" && model.base_url.is_empty() {
        return lacks(AZURE);
    }
    if wire::for_api(api).is_none() && !tables.apis.iter().any(|known| known == api) {
        let known = UNSUPPORTED.iter().find(|(name, _)| *name == api);
        return match known {
            Some((_, what)) => lacks(what),
            None => Some(format!("No API provider registered for api: {api}")),
        };
    }
    // Its models speak ordinary APIs, but the address and the token come from a login.
    let has_own_key = provider.is_some_and(|provider| provider.configs().any(|config| config.api_key.is_some()))
        || service.is_some_and(|service| service.logs_in);
    if model.provider == "github-copilot" && !has_own_key { lacks("the GitHub Copilot login") } else { None }
}

impl Registry {
    /// Fails with the reason when pith cannot talk to the model at all.
    pub fn check_support(&self, model: &Model) -> Result<(), String> {
        let tables = self.tables();
        let provider = tables.provider(&model.provider).map(AsRef::as_ref);
        missing(&tables, provider, model).map_or(Ok(()), Err)
    }
}

impl Tables {
    /// Whether pith can talk to the model.
    pub(super) fn supports(&self, provider: &Provider, model: &Model) -> bool {
        missing(self, Some(provider), model).is_none()
    }
}
