//! Bringing the tables up to date: the models file, and what local servers have.

use std::path::Path;
use std::sync::Arc;

use pith_config::Diagnostic;
use tokio::task::JoinSet;

use super::provider::Provider;
use super::{Registry, Tables, support};
use crate::catalogue;
use crate::discovery::{self, Fetch};
use crate::models_file::{self, ModelConfig, ProviderConfig};
use crate::wire;

impl Registry {
    /// Reads the models file again. Registrations, given keys and discovered models stay.
    pub fn reload(&self) {
        self.change(|tables| tables.read_file(&self.models_file));
    }

    /// Asks every provider with `discovery` for its models, all at once and two seconds at most. Servers
    /// that do not answer keep what is known of them and are reported. Callers leave this out when offline.
    pub async fn discover(&self, fetch: &Fetch) -> Vec<Diagnostic> {
        let mut asked = JoinSet::new();
        for (id, kind, base_url) in self.discoverable() {
            let fetch = fetch.clone();
            // A server that wants a key is asked with it.
            let headers = self.discovery_headers(&id).await;
            asked.spawn(async move { (id, discovery::discover(kind, &base_url, &headers, &fetch).await) });
        }
        let mut found = Vec::new();
        // A task that panicked is a bug of its fetch; the others still count.
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok((id, Ok(models))) => self.change(|tables| tables.set_discovered(&id, &models)),
                Ok((id, Err(reason))) => {
                    let message = format!("Provider \"{id}\": no models discovered: {reason}");
                    found.push(Diagnostic::warning("models_discovery", &self.models_file, message));
                }
                Err(_) => {}
            }
        }
        found
    }

    /// Whether any provider wants to be asked.
    pub fn has_discovery(&self) -> bool {
        !self.discoverable().is_empty()
    }

    fn discoverable(&self) -> Vec<(String, models_file::Discovery, String)> {
        let tables = self.tables();
        let configs = tables.providers.iter().flat_map(|provider| provider.configs());
        configs.filter_map(|config| Some((config.id.clone(), config.discovery?, config.base_url.clone()?))).collect()
    }

    async fn discovery_headers(&self, provider: &str) -> models_file::Headers {
        let Some(model) = self.blank_model(provider, "") else { return vec![] };
        let Ok(credentials) = self.resolve_credentials(&model).await else { return vec![] };
        let key = credentials.api_key.map(|key| ("Authorization".to_owned(), Some(format!("Bearer {key}"))));
        key.into_iter().chain(credentials.headers).collect()
    }
}

impl Tables {
    /// Puts the file's layer under the registrations. Providers only an older file knew are gone.
    pub(super) fn read_file(&mut self, file: &Path) {
        let mut read = models_file::load(file, |id| catalogue::provider(catalogue::current_id(id)).is_some());
        for config in &mut read.providers {
            config.id = catalogue::current_id(&config.id).to_owned();
        }
        self.diagnostics = read.diagnostics;
        self.diagnostics.extend(unknown_apis(&read.providers, file));
        for provider in self.providers.iter_mut().filter(|provider| provider.file.is_some()) {
            *provider = provider.changed(|layers| layers.file = None);
        }
        for config in read.providers {
            match self.providers.iter_mut().find(|provider| provider.id == config.id) {
                Some(provider) => *provider = provider.changed(|layers| layers.file = Some(config)),
                None => self.providers.push(Arc::new(Provider::from_file(config))),
            }
        }
        self.providers.retain(|provider| provider.exists());
    }

    fn set_discovered(&mut self, id: &str, models: &[ModelConfig]) {
        for provider in self.providers.iter_mut().filter(|provider| provider.id == id) {
            *provider = provider.changed(|layers| layers.discovered = models.to_vec());
        }
    }
}

/// Reports APIs that pith does not know, so that a user learns of them before the first prompt.
fn unknown_apis(configs: &[ProviderConfig], file: &Path) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for config in configs {
        let apis = config.models.iter().filter_map(|model| model.api.as_ref()).chain(&config.api);
        let mut unknown: Vec<&str> = apis.map(String::as_str).filter(|api| support::is_unknown(api)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        for api in unknown {
            let known = wire::api_names().join(", ");
            let message = format!("Provider \"{}\": unknown api \"{api}\"; known are {known}", config.id);
            found.push(Diagnostic::warning("models_api", file, message));
        }
    }
    found
}
