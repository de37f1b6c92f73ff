//! The current model and thinking level, what else can be selected, and the client that calls them.

mod router;
mod select;

use pith_protocol::{CommandError, ErrorCode};
use std::sync::Arc;

use pith_agent::ModelClient;
use pith_ai::select::{self as selection, Scoped};
use pith_ai::{NO_MODEL, Registry};
use pith_config::Settings;
use pith_protocol::{Model, ThinkingLevel};
use pith_store::BranchSettings;

pub(crate) use router::{Router, header_object};
pub(crate) use select::{ModelAnswer, Selection};

/// The current selection.
pub(crate) struct Models {
    registry: Arc<Registry>,
    /// The client for every call of the session.
    router: Arc<Router>,
    /// The same client, as the agent loop's trait object.
    client: Arc<dyn ModelClient>,
    settings: Arc<Settings>,
    current: Option<Arc<Model>>,
    /// Always a level the current model has; `off` without a model.
    level: ThinkingLevel,
    /// `--models`; empty means all.
    scope: Vec<Scoped>,
    /// The model the process started with.
    initial: Option<Arc<Model>>,
}

/// A change of model.
#[derive(Debug)]
pub(crate) struct Changed {
    pub model: Arc<Model>,
    /// The model used before.
    pub previous: Option<Arc<Model>>,
    pub previous_level: ThinkingLevel,
    /// The effective level, if it has changed.
    pub level: Option<ThinkingLevel>,
    pub is_scoped: bool,
}

impl Models {
    pub fn new(registry: Arc<Registry>, router: Arc<Router>, settings: Arc<Settings>, start: selection::Start) -> Self {
        Models {
            client: router.clone(),
            router,
            registry,
            settings,
            initial: start.model.clone(),
            current: start.model,
            level: start.thinking,
            scope: start.scope.models,
        }
    }

    pub fn current(&self) -> Option<&Arc<Model>> {
        self.current.as_ref()
    }

    /// The model's context window, with corrections its server reported.
    pub fn window(&self, model: &Model) -> u64 {
        self.registry.context_window(model)
    }

    /// The client for every call of the session.
    pub fn client(&self) -> &Arc<dyn ModelClient> {
        &self.client
    }

    pub fn router(&self) -> &Arc<Router> {
        &self.router
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Replaces the settings; the current selection stays.
    pub fn set_settings(&mut self, settings: Arc<Settings>) {
        self.settings = settings;
    }

    /// The models to cycle through; empty means all.
    pub fn scope(&self) -> &[Scoped] {
        &self.scope
    }

    pub fn level(&self) -> ThinkingLevel {
        self.level
    }

    pub fn available(&self) -> Vec<Arc<Model>> {
        self.registry.available()
    }

    /// The current model, if its provider and credentials are configured. Sends no request.
    pub fn usable(&self) -> Result<&Arc<Model>, CommandError> {
        let model = self.current.as_ref().ok_or_else(|| CommandError::new(ErrorCode::NoModel, NO_MODEL))?;
        self.registry.check(model).map_err(|why| CommandError::new(ErrorCode::ModelUnusable, why))?;
        Ok(model)
    }

    pub fn select(&mut self, provider: &str, id: &str) -> Result<Changed, CommandError> {
        let refused = |why| CommandError::new(ErrorCode::ModelNotFound, why);
        let model = self.registry.select(provider, id).map_err(refused)?;
        Ok(self.change(model, None, false))
    }

    /// Selects a model that the caller has checked.
    pub fn choose(&mut self, model: Arc<Model>) -> Changed {
        self.change(model, None, false)
    }

    /// Called after a provider's model list changed. Keeps the selected model if it still exists; `true` if its
    /// description has changed.
    pub fn refresh(&mut self, provider: &str) -> bool {
        for scoped in self.scope.iter_mut().filter(|scoped| scoped.model.provider == provider) {
            if let Some(model) = self.registry.find(provider, &scoped.model.id) {
                scoped.model = model;
            }
        }
        let newest = |model: &Option<Arc<Model>>| {
            let model = model.as_ref().filter(|model| model.provider == provider)?;
            self.registry.find(provider, &model.id).filter(|newest| newest != model)
        };
        let (initial, current) = (newest(&self.initial), newest(&self.current));
        self.initial = initial.or(self.initial.take());
        let Some(current) = current else { return false };
        self.level = current.clamp_thinking(self.level);
        self.current = Some(current);
        true
    }

    /// Selects the model a session was last used with. If it cannot be used, selects the model the process started with
    /// and returns a warning.
    pub fn restore(&mut self, recorded: &BranchSettings) -> Option<String> {
        let wanted = recorded.model.as_ref();
        let found = wanted
            .map(|(provider, id)| self.registry.find(provider, id).filter(|model| self.registry.is_usable(model)));
        let warning = match (wanted, &found) {
            (Some((provider, id)), Some(None)) => Some(format!("Could not restore model {provider}/{id}")),
            _ => None,
        };
        match found {
            Some(Some(model)) => self.current = Some(model),
            Some(None) => self.current = self.initial.clone(),
            None => {}
        }
        let level = recorded.thinking_level.as_deref().and_then(ThinkingLevel::parse).unwrap_or(self.level);
        self.level = self.current.as_ref().map_or(ThinkingLevel::Off, |model| model.clamp_thinking(level));
        warning
    }

    /// Selects the next model in scope, or of all; `None` with fewer than two.
    pub fn cycle(&mut self) -> Option<Changed> {
        let next = selection::next_model(&self.registry, &self.scope, self.current.as_deref())?;
        Some(self.change(next.model, next.level, next.is_scoped))
    }

    /// Sets the level; returns the effective one if it changed.
    pub fn set_level(&mut self, wanted: ThinkingLevel) -> Option<ThinkingLevel> {
        let model = self.current.as_ref()?;
        let before = std::mem::replace(&mut self.level, model.clamp_thinking(wanted));
        (self.level != before).then_some(self.level)
    }

    /// The level after the current one; `None` for models that do not think.
    pub fn next_level(&self) -> Option<ThinkingLevel> {
        selection::next_level(self.current.as_ref()?, self.level)
    }

    pub fn levels(&self) -> Vec<ThinkingLevel> {
        self.current.as_ref().map_or_else(|| vec![ThinkingLevel::Off], |model| model.thinking_levels())
    }

    fn change(&mut self, model: Arc<Model>, level: Option<ThinkingLevel>, is_scoped: bool) -> Changed {
        let after = selection::after_switch(&self.settings, &model, level, self.level);
        let before = std::mem::replace(&mut self.level, after);
        let previous = self.current.replace(model.clone());
        Changed { model, previous, previous_level: before, level: (after != before).then_some(after), is_scoped }
    }
}
