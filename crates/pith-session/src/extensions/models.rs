//! Models and providers that extensions choose, bring along or talk to.

use pith_ai::registry::{Answers, Registry, Service};
use pith_ext::outgoing::{Answer, ModelAuth, ModelReply, ModelRequest, ProviderRegistration};
use serde_json::Value;

use crate::session::Session;

/// Makes the models of an extension's provider known. Before the session exists too: it has to be told as well,
/// because only it can let the extension answer.
///
/// An error is for `extension_error` with event `register_provider`; what made sense may be registered all the same.
pub fn register_provider(registry: &Registry, registration: &ProviderRegistration) -> Result<(), String> {
    let name = &registration.name;
    let api = registration.config.get("api").and_then(Value::as_str);
    let answers = match (registration.streams, api) {
        (false, _) => Answers::Nothing,
        (true, Some(api)) => Answers::Api(api.to_owned()),
        (true, None) => Answers::Everything,
    };
    let service = Service { answers, logs_in: registration.oauth.is_some() };
    let ignored = registry.register_entry(name, &registration.config, service)?;
    match ignored.is_empty() {
        true => Ok(()),
        false => Err(format!("Provider {name}: some values were ignored: {}", ignored.join("; "))),
    }
}

impl Session {
    pub(crate) fn register_provider(&mut self, _registration: ProviderRegistration) {}

    pub(crate) fn unregister_provider(&mut self, _name: &str) {}

    pub(crate) fn set_model_from_extension(&mut self, _model: Value, _answer: Answer<bool>) {}

    pub(crate) fn set_level_from_extension(&mut self, _level: &str) {}

    pub(crate) fn model_auth(&mut self, _provider: String, _model: Option<Value>, _answer: Answer<ModelAuth>) {}

    pub(crate) fn refresh_models(&mut self, _answer: Answer<()>) {}

    pub(crate) fn stream_for_extension(&mut self, _request: ModelRequest, _reply: ModelReply) {}
}
