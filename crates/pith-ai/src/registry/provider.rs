//! One provider: what the catalogue, the user's file and a registration say about it.

use std::sync::OnceLock;

use super::offers::{self, Offer};
use crate::catalogue::BuiltIn;
use crate::models_file::ProviderConfig;
use crate::values::Names;

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
}

/// A provider with its layers, lowest first.
pub(super) struct Provider {
    pub id: String,
    pub built_in: Option<&'static BuiltIn>,
    pub file: Option<ProviderConfig>,
    pub registered: Option<Registered>,
    /// Put together on first use.
    offers: OnceLock<Vec<Offer>>,
}

impl Provider {
    pub fn built_in(built_in: &'static BuiltIn) -> Provider {
        let id = built_in.id.to_owned();
        Provider { id, built_in: Some(built_in), file: None, registered: None, offers: OnceLock::new() }
    }

    pub fn from_file(config: ProviderConfig) -> Provider {
        let id = config.id.clone();
        Provider { id, built_in: None, file: Some(config), registered: None, offers: OnceLock::new() }
    }

    pub fn registered(registered: Registered) -> Provider {
        let id = registered.config.id.clone();
        Provider { id, built_in: None, file: None, registered: Some(registered), offers: OnceLock::new() }
    }

    /// The same with another top layer.
    pub fn with(&self, registered: Option<Registered>) -> Provider {
        let (id, file) = (self.id.clone(), self.file.clone());
        Provider { id, built_in: self.built_in, file, registered, offers: OnceLock::new() }
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

    /// The configured layers, the one that wins first.
    pub fn configs(&self) -> impl Iterator<Item = &ProviderConfig> {
        self.registered.as_ref().map(|registered| &registered.config).into_iter().chain(&self.file)
    }

    /// The models on offer. `names` fill the placeholders of addresses.
    pub fn offers(&self, names: &Names<'_>) -> &[Offer] {
        self.offers.get_or_init(|| offers::put_together(self, names))
    }
}
