//! Sends each model call to pith's own clients, or to the extension that registered the provider.
#![expect(clippy::disallowed_types, reason = "the task of a run asks as well which extensions answer as models")]

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use pith_agent::{CallOverrides, ModelClient};
use pith_ai::{Credentials, Logins, Registry};
use pith_ext::{ExtensionHandle, ExtensionModels, ProviderAction};
use pith_protocol::{AssistantEvent, LlmCall, Model};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The model client of the session.
pub(crate) struct Router {
    native: Arc<dyn ModelClient>,
    registry: Arc<Registry>,
    /// The extensions that implement providers. Locked for one line at a time.
    extensions: Mutex<Option<ExtensionHandle>>,
}

impl Router {
    pub fn new(native: Arc<dyn ModelClient>, registry: Arc<Registry>) -> Self {
        Router { native, registry, extensions: Mutex::default() }
    }

    /// Uses these extensions for the providers they implement, and for turning logins into keys.
    pub fn connect(&self, handle: Option<&ExtensionHandle>) {
        let logins = handle.map(|handle| Arc::new(ExtensionLogins(handle.clone())) as Arc<dyn Logins>);
        self.registry.set_logins(logins);
        *self.extensions.lock().unwrap_or_else(PoisonError::into_inner) = handle.cloned();
    }

    /// pith's own clients.
    pub fn native(&self) -> &Arc<dyn ModelClient> {
        &self.native
    }

    fn extension_for(&self, model: &Model) -> Option<ExtensionHandle> {
        let answers = self.registry.service(&model.provider).answers;
        let is_served = answers.covers(&model.api);
        is_served.then(|| self.extensions.lock().unwrap_or_else(PoisonError::into_inner).clone()).flatten()
    }
}

impl ModelClient for Router {
    fn stream(&self, call: LlmCall, cancel: CancellationToken) -> mpsc::Receiver<AssistantEvent> {
        self.stream_with(call, CallOverrides::default(), cancel)
    }

    fn stream_with(
        &self,
        call: LlmCall,
        overrides: CallOverrides,
        cancel: CancellationToken,
    ) -> mpsc::Receiver<AssistantEvent> {
        let Some(handle) = self.extension_for(&call.model) else {
            return self.native.stream_with(call, overrides, cancel);
        };
        let (registry, model) = (self.registry.clone(), call.model.clone());
        let options = async move {
            let credentials = match overrides.api_key {
                Some(key) => Credentials { api_key: Some(key), ..Credentials::default() },
                None => registry.resolve_credentials(&model).await?,
            };
            Ok(options(credentials, overrides.headers))
        };
        ExtensionModels::new(handle).stream_with_options(call, options, cancel)
    }
}

/// The options that a provider's `stream` gets: key and headers.
fn options(credentials: Credentials, overrides: Vec<(String, Option<String>)>) -> Map<String, Value> {
    let headers = header_object(&credentials, overrides);
    let mut options = Map::new();
    if let Some(key) = credentials.api_key {
        options.insert("apiKey".to_owned(), Value::String(key));
    }
    if let Some(headers) = headers {
        options.insert("headers".to_owned(), headers);
    }
    options
}

/// The headers of the credentials, overridden by others, as an object; `None` if there are none.
pub(crate) fn header_object(credentials: &Credentials, overrides: Vec<(String, Option<String>)>) -> Option<Value> {
    let mut headers = Map::new();
    let own = credentials.headers.iter().cloned();
    for (name, value) in own.chain(overrides) {
        headers.retain(|known, _| !known.eq_ignore_ascii_case(&name));
        if let Some(value) = value {
            headers.insert(name, Value::String(value));
        }
    }
    if let Some(key) = credentials.api_key.as_ref().filter(|_| credentials.auth_header) {
        headers.insert("Authorization".to_owned(), json!(format!("Bearer {key}")));
    }
    (!headers.is_empty()).then_some(Value::Object(headers))
}

/// Logins of providers that extensions implement.
struct ExtensionLogins(ExtensionHandle);

impl Logins for ExtensionLogins {
    fn key(&self, provider: &str, credentials: Value) -> BoxFuture<'static, Result<String, String>> {
        let (handle, provider) = (self.0.clone(), provider.to_owned());
        Box::pin(async move {
            let key = handle.provider_action(&provider, ProviderAction::ApiKey { credentials }).await?;
            match key {
                Value::String(key) => Ok(key),
                _ => Err(format!("Provider {provider}: getApiKey did not return a string")),
            }
        })
    }

    fn refresh(&self, provider: &str, credentials: Value) -> BoxFuture<'static, Result<Value, String>> {
        let (handle, provider) = (self.0.clone(), provider.to_owned());
        Box::pin(async move { handle.provider_action(&provider, ProviderAction::RefreshToken { credentials }).await })
    }
}
