//! One provider: what the catalogue, the user's file and a registration say about it.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::offers::{self, Offer};
use super::registration::Service;
use crate::catalogue::BuiltIn;
use crate::config_value::Variables;
use crate::models_file::{ModelConfig, ProviderConfig};

/// Who gets to see a registered provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Listed and searched like any other.
    Listed,
    /// Found only by its exact name.
    ByNameOnly,
}

/// A registration made while running.
#[derive(Clone)]
pub(super) struct Registered {
    pub config: ProviderConfig,
    pub visibility: Visibility,
    /// What it was read from, if the next registration is to be laid over it.
    pub entry: Option<Map<String, Value>>,
    pub service: Service,
}

impl Registered {
    pub fn new(config: ProviderConfig, visibility: Visibility) -> Registered {
        Registered { config, visibility, entry: None, service: Service::default() }
    }

    /// Whether it says which models there are, even if there are none.
    pub fn lists_models(&self) -> bool {
        let has_list = self.entry.as_ref().is_some_and(|entry| entry.contains_key("models"));
        has_list || !self.config.models.is_empty()
    }
}

/// A provider with its layers, lowest first.
pub(super) struct Provider {
    pub id: String,
    pub built_in: Option<&'static BuiltIn>,
    pub file: Option<ProviderConfig>,
    pub registered: Option<Registered>,
    /// What its server said it has.
    pub discovered: Vec<ModelConfig>,
    /// Put together on first use.
    offers: OnceLock<Vec<Offer>>,
}

impl Provider {
    fn empty(id: &str) -> Provider {
        Provider {
            id: id.to_owned(),
            built_in: None,
            file: None,
            registered: None,
            discovered: vec![],
            offers: OnceLock::new(),
        }
    }

    pub fn built_in(built_in: &'static BuiltIn) -> Provider {
        Provider { built_in: Some(built_in), ..Provider::empty(built_in.id) }
    }

    pub fn from_file(config: ProviderConfig) -> Provider {
        Provider { file: Some(config.clone()), ..Provider::empty(&config.id) }
    }

    pub fn registered(registered: Registered) -> Provider {
        let id = registered.config.id.clone();
        Provider { registered: Some(registered), ..Provider::empty(&id) }
    }

    /// Returns the provider with changed layers. Its offers are computed again when they are next asked for.
    pub fn changed(&self, edit: impl FnOnce(&mut Provider)) -> Arc<Provider> {
        let mut provider = Provider {
            built_in: self.built_in,
            file: self.file.clone(),
            registered: self.registered.clone(),
            discovered: self.discovered.clone(),
            ..Provider::empty(&self.id)
        };
        edit(&mut provider);
        Arc::new(provider)
    }

    /// Whether any layer is left.
    pub fn exists(&self) -> bool {
        self.built_in.is_some() || self.file.is_some() || self.registered.is_some()
    }

    pub fn is_listed(&self) -> bool {
        !matches!(self.registered, Some(Registered { visibility: Visibility::ByNameOnly, .. }))
    }

    pub fn name(&self) -> &str {
        let configured = self.configs().find_map(|config| config.name.as_deref());
        configured.or(self.built_in.map(|built_in| built_in.name)).unwrap_or(&self.id)
    }

    /// Returns what the extension that registered it does for it.
    pub fn service(&self) -> Option<&Service> {
        self.registered.as_ref().map(|registered| &registered.service)
    }

    /// Returns the configured layers, the one that wins first.
    pub fn configs(&self) -> impl Iterator<Item = &ProviderConfig> {
        self.registered.as_ref().map(|registered| &registered.config).into_iter().chain(&self.file)
    }

    /// Whether the offers have been needed yet.
    #[cfg(test)]
    pub fn was_asked(&self) -> bool {
        self.offers.get().is_some()
    }

    /// Returns the models on offer. `names` fill the placeholders of addresses.
    pub fn offers(&self, names: &Variables<'_>) -> &[Offer] {
        self.offers.get_or_init(|| offers::merge_layers(self, names))
    }
}
