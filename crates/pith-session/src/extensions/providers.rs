//! Models that extensions select and call, and providers they register.

use std::collections::BTreeMap;

use pith_ai::{Answers, Registry, Service};
use pith_ext::outgoing::{Answer, ModelAuth, ProviderRegistration};
use pith_ext::{ExtensionError, ExtensionHandle, ProviderAction};
use pith_protocol::ThinkingLevel;
use serde_json::{Value, json};

use super::model_request;
use super::registry_questions::model_auth;
use crate::jobs::{Job, JobEnd};
use crate::log::{log_line, with_same_name};
use crate::models::Selection;
use crate::session::Session;

/// The providers that extensions have registered, by name.
pub(crate) type Providers = BTreeMap<String, Provider>;

/// A provider that an extension has registered.
#[derive(Clone)]
pub(crate) struct Provider {
    extension_path: String,
    /// Whether it can fetch a newer list of models.
    refreshes: bool,
    /// Whether its login changes the list of models.
    modifies: bool,
}

/// The result of asking providers for their current models.
pub(crate) struct RefreshedModels {
    /// The provider, the extension that registered it, and the error, if any.
    refreshed: Vec<(String, String, Result<(), String>)>,
    /// Answered when it is done.
    answer: Option<Answer<()>>,
}

/// Adds the models of an extension's provider to the registry; works before there is a session, too. The session must
/// be told of the registration as well: only it can route calls to the extension.
///
/// An error is for `extension_error` with event `register_provider`; the valid part may be registered nevertheless.
pub fn register_provider(registry: &Registry, registration: &ProviderRegistration) -> Result<(), String> {
    let name = &registration.name;
    let api = registration.config.get("api").and_then(Value::as_str);
    let answers = match (registration.streams, api) {
        (false, _) => Answers::Nothing,
        (true, Some(api)) => Answers::Api(api.to_owned()),
        (true, None) => Answers::Everything,
    };
    let service = Service { answers, logs_in: registration.oauth.is_some(), lacks_key: registration.lacks_key };
    let ignored = registry.register_entry(name, &registration.config, service)?;
    if !ignored.is_empty() {
        return Err(format!("Provider {name}: some values were ignored: {}", ignored.join("; ")));
    }
    Ok(())
}

impl Session {
    pub(crate) fn register_provider(&mut self, registration: ProviderRegistration) {
        self.models.router().connect(self.extension_handle());
        let known = register_provider(self.models.registry(), &registration);
        let ProviderRegistration { name, extension_path, refreshes, oauth, .. } = registration;
        if let Err(error) = known {
            self.tell_provider_error(&extension_path, error);
        }
        let modifies = oauth.is_some_and(|oauth| oauth.modifies);
        let provider = self.extensions.providers.entry(name.clone()).or_insert_with(|| Provider {
            extension_path: extension_path.clone(),
            refreshes: false,
            modifies: false,
        });
        provider.extension_path = extension_path;
        provider.refreshes |= refreshes;
        provider.modifies |= modifies;
        self.on_models_changed(&name);
        if refreshes || modifies {
            self.refresh_provider_models(vec![name], None);
        }
    }

    pub(crate) fn unregister_provider(&mut self, name: &str) {
        self.models.registry().unregister(name);
        self.extensions.providers.remove(name);
        self.on_models_changed(name);
    }

    /// Removes everything that extensions registered, because they are gone.
    pub(crate) fn forget_providers(&mut self) {
        for name in std::mem::take(&mut self.extensions.providers).into_keys() {
            self.models.registry().unregister(&name);
            self.on_models_changed(&name);
        }
        self.models.router().connect(None);
    }

    fn tell_provider_error(&mut self, path: &str, error: String) {
        let event = "register_provider".to_owned();
        self.tell_extension_error(&ExtensionError { path: path.to_owned(), event, error, stack: None });
    }

    /// Called after a provider's model list changed.
    fn on_models_changed(&mut self, provider: &str) {
        if self.models.refresh(provider) {
            self.update_call_options();
        }
        self.out.options_changed();
    }

    /// Asks extensions for the current models of their providers, then sends `answer`.
    fn refresh_provider_models(&mut self, names: Vec<String>, answer: Option<Answer<()>>) {
        let Some(handle) = self.extension_handle().cloned() else {
            return self.on_models_refreshed(RefreshedModels { refreshed: Vec::new(), answer });
        };
        let registry = self.models.registry().clone();
        let known: Vec<(String, Provider)> = names
            .into_iter()
            .filter_map(|name| Some((name.clone(), self.extensions.providers.get(&name)?.clone())))
            .collect();
        self.jobs.spawn(Job::Background, async move {
            let mut refreshed = Vec::new();
            for (name, provider) in known {
                let outcome = newest_models(&handle, &registry, &name, &provider).await;
                refreshed.push((name, provider.extension_path, outcome));
            }
            JobEnd::ModelsRefreshed(RefreshedModels { refreshed, answer })
        });
    }

    pub(crate) fn on_models_refreshed(&mut self, models: RefreshedModels) {
        for (name, path, outcome) in models.refreshed {
            // The models known so far stay, so no host needs to be told; the log is.
            if let Err(error) = outcome {
                log_line(&format!("{path}: Provider {name}: its models could not be refreshed: {error}"));
            }
            self.on_models_changed(&name);
        }
        if let Some(answer) = models.answer {
            answer.send(());
        }
    }

    pub(crate) fn set_model_from_extension(&mut self, model: Value, answer: Answer<bool>) {
        let registry = self.models.registry();
        let model = match model_request::named(&model) {
            Ok(named) => model_request::found(named, registry).filter(|model| registry.check(model).is_ok()),
            Err(error) => return answer.fail(error),
        };
        let Some(model) = model else { return answer.send(false) };
        let changed = self.models.choose(model);
        self.record_model(&changed, Selection::Set);
        answer.send(true);
    }

    pub(crate) fn set_level_from_extension(&mut self, level: &str) {
        match ThinkingLevel::parse(level) {
            Some(level) => self.set_level(level),
            None => self.tell_extension_error(&ExtensionError {
                path: "<runtime>".to_owned(),
                event: "set_thinking_level".to_owned(),
                error: format!("Unknown thinking level: {level}"),
                stack: None,
            }),
        }
    }

    pub(crate) fn model_auth(&mut self, provider: String, model: Option<Value>, answer: Answer<ModelAuth>) {
        let registry = self.models.registry().clone();
        self.jobs.spawn(Job::Background, async move {
            answer.send(model_auth(&registry, provider, model).await);
            JobEnd::Done
        });
    }

    pub(crate) fn refresh_models(&mut self, answer: Answer<()>) {
        let registry = self.models.registry().clone();
        registry.reload();
        let fetch = self.extensions.web.fetch();
        let discovery = async move {
            if registry.has_discovery() {
                for found in registry.discover(&fetch).await {
                    log_line(&found.message);
                }
            }
            JobEnd::ModelsDiscovered(answer)
        };
        self.jobs.spawn(Job::Background, with_same_name(discovery));
    }

    /// Called when local servers were asked for their models. Asks the providers of extensions next.
    pub(crate) fn on_models_discovered(&mut self, answer: Answer<()>) {
        let names = self.extensions.providers.keys().cloned().collect();
        self.refresh_provider_models(names, Some(answer));
    }
}

/// Asks an extension for the current models of a provider and puts them into the registry.
async fn newest_models(
    handle: &ExtensionHandle,
    registry: &Registry,
    name: &str,
    provider: &Provider,
) -> Result<(), String> {
    if provider.refreshes {
        let models = handle.provider_action(name, ProviderAction::RefreshModels).await?;
        registry.replace_models(name, models)?;
    }
    if provider.modifies
        && let Some(credentials) = registry.auth_file().login(name)
    {
        let models = json!(registry.models_of(name));
        let models = handle.provider_action(name, ProviderAction::ModifyModels { models, credentials }).await?;
        registry.replace_models(name, models)?;
    }
    Ok(())
}
