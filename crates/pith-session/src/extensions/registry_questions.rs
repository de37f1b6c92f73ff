//! Questions of extensions that the model registry alone can answer, with or without a session.

use std::sync::Arc;

use pith_ai::Registry;
use pith_ext::Query;
use pith_ext::outgoing::{ModelAuth, ProviderView};
use pith_protocol::Model;
use serde_json::{Value, json};

use super::model_request;
use crate::models::header_object;

/// Answers a question about models and providers. Returns any other, which only a session can answer.
pub fn answer_from_registry(registry: &Registry, query: Query) -> Option<Query> {
    match query {
        Query::Model { provider, id, reply } => {
            reply.send(registry.find(&provider, &id).map(|model| json!(model)));
            None
        }
        Query::Models { only_available, reply } => {
            let models = if only_available { registry.available() } else { registry.models() };
            reply.send(models.iter().map(|model| json!(model)).collect());
            None
        }
        Query::Provider { provider, reply } => {
            reply.send(provider_view(registry, provider.as_deref()));
            None
        }
        Query::State(_)
        | Query::Session { .. }
        | Query::SystemPrompt(_)
        | Query::BuildPrompt { .. }
        | Query::Boundary { .. }
        | Query::Tools(_)
        | Query::Commands(_) => Some(query),
    }
}

/// Returns key and headers for a model, or for a provider alone.
pub async fn model_auth(registry: &Registry, provider: String, model: Option<Value>) -> ModelAuth {
    let refusal = |error: String| ModelAuth { error: Some(error), ..ModelAuth::default() };
    let model = match model.map(|model| model_request::model(&model, registry)) {
        Some(Ok(model)) => model,
        Some(Err(error)) => return refusal(error),
        None => {
            let any = registry.models_of(&provider).into_iter().next();
            any.unwrap_or_else(|| Arc::new(Model { provider, ..Model::default() }))
        }
    };
    match registry.credentials_if_any(&model).await {
        Ok(found) if found.api_key.is_none() && found.auth_header => {
            refusal(format!("No API key found for \"{}\"", model.provider))
        }
        Ok(found) => ModelAuth {
            ok: true,
            headers: header_object(&found, Vec::new()),
            api_key: found.api_key,
            ..ModelAuth::default()
        },
        Err(error) => refusal(error),
    }
}

fn provider_view(registry: &Registry, provider: Option<&str>) -> ProviderView {
    let error = registry.models_error();
    let Some(id) = provider else { return ProviderView { error, ..ProviderView::default() } };
    let origin = registry.credential_origin(id);
    ProviderView {
        name: Some(registry.display_name(id)),
        has_auth: origin.is_some(),
        is_o_auth: origin.as_ref().is_some_and(|origin| origin.is_login),
        source: origin.as_ref().map(|origin| origin.source.to_owned()),
        label: origin.and_then(|origin| origin.label),
        error,
    }
}
