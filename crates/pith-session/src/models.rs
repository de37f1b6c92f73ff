//! The model in use, how hard it thinks, and what else could be chosen.

use std::sync::Arc;

use pith_protocol::{Model, ThinkingLevel};

/// Where models come from. Answers without network or running commands.
pub trait ModelSource: Send + Sync {
    /// Models whose provider has a credential, in order of preference.
    fn available(&self) -> Vec<Arc<Model>>;

    /// One of the available models.
    fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>>;

    /// Why a prompt to this model cannot work, if that is known already.
    fn problem(&self, model: &Model) -> Option<String>;
}

/// A model of the `--models` scope, with the level it was given there.
#[derive(Clone, Debug)]
pub struct ScopedModel {
    pub model: Arc<Model>,
    pub level: Option<ThinkingLevel>,
}

/// The current choice.
pub(crate) struct Models {
    source: Arc<dyn ModelSource>,
    current: Option<Arc<Model>>,
    /// What was last asked for; models that cannot do it get what they can.
    wanted: ThinkingLevel,
    scope: Vec<ScopedModel>,
}

/// What a change of model changed.
#[derive(Debug)]
pub(crate) struct Changed {
    pub model: Arc<Model>,
    /// The effective level, if it is another one now.
    pub level: Option<ThinkingLevel>,
}

impl Models {
    pub fn new(source: Arc<dyn ModelSource>, current: Option<Arc<Model>>, wanted: ThinkingLevel, scope: Vec<ScopedModel>) -> Self {
        Models { source, current, wanted, scope }
    }

    pub fn current(&self) -> Option<&Arc<Model>> {
        self.current.as_ref()
    }

    /// The effective level.
    pub fn level(&self) -> ThinkingLevel {
        self.current.as_ref().map_or(ThinkingLevel::Off, |model| model.clamp_thinking(self.wanted))
    }

    pub fn available(&self) -> Vec<Arc<Model>> {
        self.source.available()
    }

    /// The current model if a prompt to it can work.
    pub fn usable(&self) -> Result<&Arc<Model>, String> {
        let model = self.current.as_ref().ok_or_else(|| crate::prompt::NO_MODEL.to_owned())?;
        match self.source.problem(model) {
            Some(problem) => Err(problem),
            None => Ok(model),
        }
    }

    pub fn select(&mut self, provider: &str, id: &str) -> Result<Changed, String> {
        let model = self.source.find(provider, id).ok_or_else(|| format!("Model not found: {provider}/{id}"))?;
        Ok(self.change(model, None))
    }

    /// The next model of the scope, or of all; `None` with fewer than two.
    pub fn cycle(&mut self) -> Option<(Changed, IsScoped)> {
        let is_scoped = IsScoped(!self.scope.is_empty());
        let choices = if self.scope.is_empty() {
            self.available().into_iter().map(|model| ScopedModel { model, level: None }).collect()
        } else {
            self.scope.clone()
        };
        if choices.len() < 2 {
            return None;
        }
        let is_current = |choice: &ScopedModel| {
            self.current.as_ref().is_some_and(|model| model.provider == choice.model.provider && model.id == choice.model.id)
        };
        let next = choices.iter().position(is_current).map_or(0, |at| (at + 1) % choices.len());
        let ScopedModel { model, level } = choices[next].clone();
        Some((self.change(model, level), is_scoped))
    }

    /// Sets the level; returns the effective one if it changed.
    pub fn set_level(&mut self, wanted: ThinkingLevel) -> Option<ThinkingLevel> {
        let before = self.level();
        self.wanted = wanted;
        let after = self.level();
        // Remember what the model made of it, so that the next model starts from there.
        if self.current.is_some() {
            self.wanted = after;
        }
        (after != before).then_some(after)
    }

    /// The level after the current one, wrapping; `None` for models that do not think.
    pub fn next_level(&self) -> Option<ThinkingLevel> {
        let model = self.current.as_ref().filter(|model| model.reasoning)?;
        let levels = model.thinking_levels();
        let at = levels.iter().position(|level| *level == self.level())?;
        Some(levels[(at + 1) % levels.len()])
    }

    pub fn levels(&self) -> Vec<ThinkingLevel> {
        self.current.as_ref().map_or_else(|| vec![ThinkingLevel::Off], |model| model.thinking_levels())
    }

    fn change(&mut self, model: Arc<Model>, level: Option<ThinkingLevel>) -> Changed {
        let before = self.level();
        self.current = Some(model.clone());
        if let Some(level) = level {
            self.wanted = level;
        }
        let after = self.level();
        Changed { model, level: (after != before).then_some(after) }
    }
}

/// Whether cycling stayed within `--models`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IsScoped(pub bool);
