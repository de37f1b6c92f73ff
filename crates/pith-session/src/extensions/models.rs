//! Models and providers that extensions choose, bring along or talk to.

use pith_ext::outgoing::{Answer, ModelAuth, ModelReply, ModelRequest, ProviderRegistration};
use serde_json::Value;

use crate::session::Session;

impl Session {
    pub(crate) fn register_provider(&mut self, _registration: ProviderRegistration) {}

    pub(crate) fn unregister_provider(&mut self, _name: &str) {}

    pub(crate) fn set_model_from_extension(&mut self, _model: Value, _answer: Answer<bool>) {}

    pub(crate) fn set_level_from_extension(&mut self, _level: &str) {}

    pub(crate) fn model_auth(&mut self, _provider: String, _model: Option<Value>, _answer: Answer<ModelAuth>) {}

    pub(crate) fn refresh_models(&mut self, _answer: Answer<()>) {}

    pub(crate) fn stream_for_extension(&mut self, _request: ModelRequest, _reply: ModelReply) {}
}
