//! The model and the level a session starts with.

use std::sync::Arc;

use pith_config::Settings;
use pith_protocol::{Model, ThinkingLevel};

use super::level::of_model;
use super::named::{Choice, by_name};
use super::scope::{Scope, resolve_scope};
use crate::registry::Registry;

/// What the command line asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    pub provider: Option<&'a str>,
    pub model: Option<&'a str>,
    /// `--models`, split at commas.
    pub scope: &'a [String],
    pub thinking: Option<ThinkingLevel>,
    pub api_key: Option<&'a str>,
    /// Which of these only say what a new session begins with.
    pub defaults: Defaults,
}

/// What a session with messages may remember otherwise than the command line says, and then keeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Defaults {
    pub model: bool,
    pub thinking: bool,
}

/// What a session with messages remembers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded<'a> {
    /// Provider and id used last.
    pub model: Option<(&'a str, &'a str)>,
    pub thinking: Option<ThinkingLevel>,
}

/// The decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Start {
    /// `None` when no model can be used; the session starts without one.
    pub model: Option<Arc<Model>>,
    /// Clamped to the model; `off` without one.
    pub thinking: ThinkingLevel,
    pub scope: Scope,
    /// For people, without a prefix. Those of the scope are in here too.
    pub warnings: Vec<String>,
}

/// Chooses model and level. A key given on the command line goes to the provider of the chosen model.
pub fn start(
    registry: &Registry,
    wanted: &Wanted<'_>,
    settings: &Settings,
    recorded: Option<&Recorded<'_>>,
) -> Result<Start, String> {
    let scope = match (wanted.scope, &settings.enabled_models) {
        ([], Some(patterns)) => resolve_scope(registry, patterns),
        (patterns, _) => resolve_scope(registry, patterns),
    };
    let mut warnings = scope.warnings.clone();
    let named = by_name(registry, wanted.provider, wanted.model)?;
    // Given before the choice, which may fall on a model that the session remembers and only this key opens.
    let mut ungiven = wanted.api_key;
    if let Some((named, key)) = named.as_ref().zip(ungiven) {
        registry.give_key(&named.model.provider, key);
        ungiven = None;
    }
    let choice = choose(registry, wanted, named, settings, recorded, &scope, &mut warnings);
    if let Some(key) = ungiven {
        let is_named = wanted.provider.is_some() || wanted.model.is_some() || !wanted.scope.is_empty();
        let choice = choice.as_ref().filter(|_| is_named);
        registry.give_key(&choice.ok_or(KEY_WITHOUT_MODEL)?.model.provider, key);
    }
    let Some(choice) = choice else { return Ok(Start { scope, warnings, ..Start::default() }) };
    warnings.extend(choice.warning);
    let kept = recorded.and_then(|recorded| recorded.thinking).filter(|_| wanted.defaults.thinking);
    let level =
        kept.or(wanted.thinking).or(choice.level).unwrap_or_else(|| usual_level(&choice.model, settings, recorded));
    let mut model = choice.model;
    if choice.is_custom && wanted.thinking.is_some_and(|level| level != ThinkingLevel::Off) {
        // The model has no description; a user who asks it to think knows that it can.
        Arc::make_mut(&mut model).reasoning = true;
    }
    let thinking = model.clamp_thinking(level);
    Ok(Start { model: Some(model), thinking, scope, warnings })
}

const KEY_WITHOUT_MODEL: &str =
    "--api-key requires a model to be specified via --model, --provider/--model, or --models";

fn choose(
    registry: &Registry,
    wanted: &Wanted<'_>,
    named: Option<Choice>,
    settings: &Settings,
    recorded: Option<&Recorded<'_>>,
    scope: &Scope,
    warnings: &mut Vec<String>,
) -> Option<Choice> {
    let usable = |(provider, id)| registry.find(provider, id).filter(|model| registry.is_usable(model));
    let last = recorded.and_then(|recorded| recorded.model);
    if let Some(named) = named {
        let Some(last) = last.filter(|_| wanted.defaults.model) else { return Some(named) };
        let is_named = *named.model.provider == *last.0 && *named.model.id == *last.1;
        if let Some(model) = usable(last).filter(|_| !is_named) {
            return Some(model.into());
        }
        warnings.extend((!is_named).then(|| not_restored(last, Some(&named.model))));
        return Some(named);
    }
    let saved = settings.default_provider.as_deref().zip(settings.default_model.as_deref());
    if recorded.is_none() {
        let preferred = saved.and_then(|(provider, id)| scope.find(provider, id));
        if let Some(scoped) = preferred.or(scope.models.first()) {
            return Some(Choice { level: scoped.level, ..scoped.model.clone().into() });
        }
    }
    let model = last.and_then(usable).or_else(|| {
        let instead = saved.and_then(usable).or_else(|| registry.suggested()).or_else(|| first_available(registry));
        warnings.extend(last.map(|last| not_restored(last, instead.as_deref())));
        instead
    });
    model.map(Choice::from)
}

fn not_restored((provider, id): (&str, &str), instead: Option<&Model>) -> String {
    match instead {
        Some(model) => format!("Could not restore model {provider}/{id}. Using {}/{}", model.provider, model.id),
        None => format!("Could not restore model {provider}/{id}. No model is available"),
    }
}

fn first_available(registry: &Registry) -> Option<Arc<Model>> {
    registry.available().into_iter().next()
}

/// Returns the level when neither a flag nor a pattern gave one.
fn usual_level(model: &Model, settings: &Settings, recorded: Option<&Recorded<'_>>) -> ThinkingLevel {
    let usual = settings.default_thinking_level.unwrap_or(ThinkingLevel::Medium);
    match recorded {
        Some(recorded) => recorded.thinking.unwrap_or(usual),
        None => of_model(settings, model).unwrap_or(usual),
    }
}
