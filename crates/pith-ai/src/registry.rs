//! All models pith can name: the catalogue, the user's file, and what is
//! registered while running; and who may use them.
//!
//! Loading costs an existence check when there is nothing to read. A provider's
//! models are merged when they are first asked for.

mod address;
mod auth;
mod disclosure;
mod listing;
mod logins;
mod offers;
mod provider;
mod refresh;
mod registration;
mod status;
mod support;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use pith_config::{AgentDir, Diagnostic, Environment, Settings};
use pith_protocol::Model;
use pith_secrets::Secrets;

use crate::auth_file::{AuthFile, Entries, Stored};
use crate::catalogue;
use crate::config_value;
use crate::key_command::Commands;
use crate::models_file::ProviderConfig;
use crate::network;
use crate::renewals::Renewals;

pub use auth::{NO_KEY, NO_MODEL, key_variable};
pub use listing::{model_catalogue, model_table};
pub use logins::Logins;
pub use provider::Visibility;
use provider::{Provider, Registered};
pub use registration::{Answers, Service};
pub use status::{AuthStatus, CredentialOrigin};

/// The models and the credentials for them.
pub struct Registry {
    environment: Environment,
    auth: Arc<AuthFile>,
    commands: Commands,
    secrets: Arc<Secrets>,
    /// Keys given for this process only, by provider.
    given_keys: Mutex<HashMap<String, String>>,
    /// Replaced as a whole on registration; readers keep the one they have.
    tables: RwLock<Arc<Tables>>,
    models_file: PathBuf,
    /// Who understands the logins of registered providers.
    logins: Mutex<Option<Arc<dyn Logins>>>,
    renewals: Arc<Renewals>,
    /// Context windows that servers have named in this process, by provider and model.
    windows: Mutex<HashMap<(String, String), u64>>,
    /// The proxy of the settings.
    proxy: Option<String>,
}

#[derive(Clone, Default)]
struct Tables {
    /// Built-in providers in catalogue order, then others in the order they came.
    providers: Vec<Arc<Provider>>,
    /// APIs someone registered besides the built-in ones.
    apis: Vec<String>,
    /// About the models file.
    diagnostics: Vec<Diagnostic>,
}

impl Registry {
    /// Reads `models.json`. Nothing else is touched until it is needed.
    pub fn load(agent: &AgentDir, environment: Environment, settings: &Settings) -> Registry {
        let models_file = agent.models_file();
        let built_in = catalogue::providers().iter().map(|built_in| Arc::new(Provider::built_in(built_in)));
        let mut tables = Tables { providers: built_in.collect(), ..Tables::default() };
        tables.read_file(&models_file);
        Registry {
            environment,
            auth: Arc::new(AuthFile::new(agent.auth_file(), settings.api_keys.clone())),
            commands: Commands::default(),
            secrets: Arc::default(),
            given_keys: Mutex::default(),
            tables: RwLock::new(Arc::new(tables)),
            models_file,
            logins: Mutex::default(),
            renewals: Arc::default(),
            windows: Mutex::default(),
            proxy: settings.http_proxy.clone(),
        }
    }

    /// Returns what was wrong with the files.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut all = self.tables().diagnostics.clone();
        if let Some(problem) = self.auth.problem() {
            all.push(Diagnostic::warning("auth_file", self.auth.path(), problem));
        }
        all.extend(network::diagnostics(&self.environment, self.proxy.as_deref()));
        all
    }

    /// Returns the errors about `models.json` as one text, for people.
    pub fn models_error(&self) -> Option<String> {
        let tables = self.tables();
        let texts: Vec<&str> = tables.diagnostics.iter().map(|found| found.message.as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    /// Returns every model of every listed provider.
    pub fn models(&self) -> Vec<Arc<Model>> {
        let tables = self.tables();
        let entries = self.auth.entries();
        let providers = tables.providers.iter().filter(|provider| provider.is_listed());
        providers.flat_map(|provider| self.models_in(provider, &entries)).collect()
    }

    /// Returns the models that can be used now: they have credentials and pith speaks their API.
    pub fn available(&self) -> Vec<Arc<Model>> {
        let tables = self.tables();
        let entries = self.auth.entries();
        let providers = tables.providers.iter().filter(|provider| provider.is_listed());
        let may_work = providers.filter(|provider| self.may_have_credential(provider, &entries));
        let models = may_work.flat_map(|provider| {
            let models = self.models_in(provider, &entries).into_iter();
            models.filter(|model| self.is_usable_with(&tables, provider, model, &entries))
        });
        models.collect()
    }

    /// Returns the models of one provider, also of one that is not listed.
    pub fn models_of(&self, provider: &str) -> Vec<Arc<Model>> {
        match self.provider(provider) {
            Some(provider) => self.models_in(&provider, &self.auth.entries()),
            None => vec![],
        }
    }

    /// Returns the model of that provider and id, whether usable or not.
    pub fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let (provider, entries) = (self.provider(provider)?, self.auth.entries());
        let offers = provider.offers(&self.variables_of(&provider.id, &entries));
        offers.iter().find(|offer| offer.model.id == id).map(|offer| offer.model.clone())
    }

    /// Whether the model can be used now.
    pub fn is_usable(&self, model: &Model) -> bool {
        let tables = self.tables();
        let Some(provider) = tables.provider(&model.provider) else { return false };
        self.is_usable_with(&tables, provider, model, &self.auth.entries())
    }

    /// Returns the model a host asks for. The error is the answer to it.
    pub fn select(&self, provider: &str, id: &str) -> Result<Arc<Model>, String> {
        let not_found = || format!("Model not found: {provider}/{id}");
        let model = self.find(provider, id).ok_or_else(not_found)?;
        self.check_support(&model)?;
        match self.check_credential(&model) {
            Ok(()) => Ok(model),
            Err(auth::Missing::Nothing) => Err(not_found()),
            Err(missing) => Err(missing.text(provider)),
        }
    }

    /// Whether a request to this model has a chance, without running or asking anything.
    pub fn check(&self, model: &Model) -> Result<(), String> {
        self.check_support(model)?;
        self.check_credential(model).map_err(|missing| missing.text(&model.provider))
    }

    /// Returns the context window of a model: what its server has said about it, if that is less than its entry says.
    pub fn context_window(&self, model: &Model) -> u64 {
        let windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let said = windows.get(&(model.provider.clone(), model.id.clone())).copied();
        said.filter(|said| model.context_window == 0 || *said < model.context_window).unwrap_or(model.context_window)
    }

    /// Ids of all listed providers, in order.
    pub fn provider_ids(&self) -> Vec<String> {
        let tables = self.tables();
        tables.providers.iter().filter(|provider| provider.is_listed()).map(|provider| provider.id.clone()).collect()
    }

    /// Returns the id of a provider written in any case. Unlisted ones are found by their exact name.
    pub fn provider_named(&self, name: &str) -> Option<String> {
        let (tables, name) = (self.tables(), catalogue::current_id(name));
        let exact = tables.providers.iter().find(|provider| provider.id == name);
        let found = exact.or_else(|| {
            let mut listed = tables.providers.iter().filter(|provider| provider.is_listed());
            listed.find(|provider| provider.id.eq_ignore_ascii_case(name))
        });
        found.map(|provider| provider.id.clone())
    }

    /// Returns the provider's name for people.
    pub fn display_name(&self, id: &str) -> String {
        self.provider(id).map_or_else(|| id.to_owned(), |provider| provider.name().to_owned())
    }

    /// Returns the id of the model a built-in provider suggests.
    pub fn default_model_id(&self, provider: &str) -> Option<&'static str> {
        catalogue::provider(provider).map(|built_in| built_in.default_model)
    }

    /// Returns the default model of the first provider that has a credential. No other provider's table is read.
    pub fn suggested(&self) -> Option<Arc<Model>> {
        let tables = self.tables();
        let entries = self.auth.entries();
        catalogue::default_order().iter().find_map(|id| {
            let provider = tables.provider(id).filter(|provider| self.may_have_credential(provider, &entries))?;
            let offers = provider.offers(&self.variables_of(id, &entries));
            let offer = offers.iter().find(|offer| Some(offer.model.id.as_str()) == self.default_model_id(id))?;
            self.is_usable_with(&tables, provider, &offer.model, &entries).then(|| offer.model.clone())
        })
    }

    /// Returns a model without a description, at the address configured for the provider.
    pub fn blank_model(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        offers::blank(&*self.provider(provider)?, id).map(Arc::new)
    }

    /// Whether the provider appears in lists.
    pub fn is_listed(&self, provider: &str) -> bool {
        self.provider(provider).is_some_and(|provider| provider.is_listed())
    }

    /// Whether the provider has a credential that needs nothing but to be read.
    pub fn is_authenticated(&self, provider: &str) -> bool {
        let entries = self.auth.entries();
        self.provider(provider).is_some_and(|provider| self.may_have_credential(&provider, &entries))
    }

    /// Uses a key for a provider until the process ends (`--api-key`).
    pub fn give_key(&self, provider: &str, key: &str) {
        self.secrets.remember(key);
        let mut given = self.given_keys.lock().unwrap_or_else(PoisonError::into_inner);
        given.insert(provider.to_owned(), key.to_owned());
    }

    /// Adds a provider or changes an existing one until [`Registry::unregister`]. Given models replace
    /// the provider's own; anything else is laid over what was there.
    pub fn register(&self, config: ProviderConfig, visibility: Visibility) {
        self.change(|tables| tables.put(Registered::new(config, visibility)));
    }

    /// Undoes a registration; what it covered is back.
    pub fn unregister(&self, id: &str) {
        let id = catalogue::current_id(id);
        self.change(|tables| {
            for provider in tables.providers.iter_mut().filter(|provider| provider.id == id) {
                *provider = provider.changed(|layers| layers.registered = None);
            }
            tables.providers.retain(|provider| provider.exists());
        });
    }

    /// Declares that requests of this API can be answered.
    pub fn support_api(&self, api: &str) {
        self.change(|tables| {
            if !tables.apis.iter().any(|known| known == api) {
                tables.apis.push(api.to_owned());
            }
        });
    }

    /// Variables that may hold credentials, for environments that must not have them.
    pub fn credential_variables(&self) -> Vec<String> {
        let tables = self.tables();
        let mut names: Vec<String> = Vec::new();
        for provider in &tables.providers {
            let built_in = provider.built_in.iter().flat_map(|built_in| built_in.variables.iter());
            names.extend(built_in.flat_map(|name| name.split('+')).map(str::to_owned));
            for config in provider.configs() {
                let headers = config.headers.iter().filter_map(|(_, value)| value.as_deref());
                names.extend(config.api_key.as_deref().into_iter().chain(headers).flat_map(config_value::variables));
            }
        }
        for stored in self.auth.entries().values() {
            if let Stored::ApiKey { key: Some(key), .. } = stored {
                names.extend(config_value::variables(key));
            }
        }
        names.sort();
        names.dedup();
        names
    }

    /// Returns the secrets seen so far, for callers that write texts others may read.
    pub fn secrets(&self) -> Arc<Secrets> {
        self.secrets.clone()
    }

    /// Returns the renewals of logins. Whoever ends what they need has them wait for it.
    pub fn renewals(&self) -> &Arc<Renewals> {
        &self.renewals
    }

    /// Returns the stored credentials.
    pub fn auth_file(&self) -> &AuthFile {
        &self.auth
    }

    fn tables(&self) -> Arc<Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, edit: impl FnOnce(&mut Tables)) {
        let mut slot = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let mut tables = Tables::clone(&slot);
        edit(&mut tables);
        *slot = Arc::new(tables);
    }

    fn provider(&self, id: &str) -> Option<Arc<Provider>> {
        self.tables().provider(id).cloned()
    }

    fn models_in(&self, provider: &Provider, entries: &Entries) -> Vec<Arc<Model>> {
        let offers = provider.offers(&self.variables_of(&provider.id, entries));
        offers.iter().map(|offer| offer.model.clone()).collect()
    }
}

impl Tables {
    fn provider(&self, id: &str) -> Option<&Arc<Provider>> {
        let id = catalogue::current_id(id);
        self.providers.iter().find(|provider| provider.id == id)
    }

    fn put(&mut self, mut registered: Registered) {
        registered.config.id = catalogue::current_id(&registered.config.id).to_owned();
        let id = &registered.config.id;
        match self.providers.iter_mut().find(|provider| provider.id == *id) {
            Some(provider) => *provider = provider.changed(|layers| layers.registered = Some(registered)),
            None => self.providers.push(Arc::new(Provider::registered(registered))),
        }
    }
}

#[cfg(test)]
mod tests;
