//! Which secrets the configuration holds, whether or not a request needs them.

use std::sync::Arc;

use pith_secrets::{Secrets, is_secret_name};

use super::Registry;
use crate::auth_file::Stored;
use crate::config_value::{self, Variables};
use crate::http::without_scheme;
use crate::network;

impl Registry {
    /// Tells these secrets every credential from now on, in place of those of its own.
    pub fn telling(self, secrets: &Arc<Secrets>) -> Arc<Registry> {
        let registry = Arc::new(Registry { secrets: secrets.clone(), ..self });
        let known = Arc::downgrade(&registry);
        secrets.ask(move || known.upgrade().map_or_else(Vec::new, |registry| registry.configured_secrets()));
        registry
    }

    /// Returns what files and variables hold. Runs no command: what those print is known when a request needs it.
    fn configured_secrets(&self) -> Vec<String> {
        let mut secrets = self.auth.tokens();
        let entries = self.auth.entries();
        for (provider, stored) in entries.iter() {
            match stored {
                Stored::ApiKey { key, env } => {
                    secrets.extend(key.as_deref().and_then(|key| plain(key, self.variables_of(provider, &entries))));
                    secrets.extend(env.iter().filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value.clone()));
                }
                Stored::Token { access, .. } => secrets.push(access.clone()),
                Stored::Unreadable(_) => {}
            }
        }
        secrets.extend(self.credential_variables().iter().filter_map(|name| self.environment.get(name)));
        for provider in &self.tables().providers {
            let names = self.variables_of(&provider.id, &entries);
            for config in provider.configs() {
                let models = config.models.iter().flat_map(|model| &model.fields.headers);
                let headers = config.headers.iter().chain(models).filter(|(name, _)| is_secret_name(name));
                let headers = headers.filter_map(|(_, value)| plain(value.as_deref()?, names));
                secrets.extend(headers.map(|value| without_scheme(&value).to_owned()));
                secrets.extend(config.api_key.as_deref().and_then(|key| plain(key, names)));
                secrets.extend(config.base_url.iter().flat_map(|address| network::address_secrets(address)));
            }
        }
        secrets.extend(self.proxy.iter().flat_map(|address| network::address_secrets(address)));
        secrets
    }
}

/// Returns a configured value as far as no command has to run for it.
fn plain(value: &str, names: Variables<'_>) -> Option<String> {
    if value.starts_with('!') { None } else { config_value::expand(value, names).ok() }
}
