//! `--provider` and `--model`.

use std::sync::Arc;

use pith_config::{near, suggestion};
use pith_protocol::{Model, ThinkingLevel};

use super::level::valid_levels;
use super::pattern::{self, Found, Match, split_level};
use crate::registry::Registry;

/// A model someone named.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub model: Arc<Model>,
    /// From a `:level` suffix.
    pub level: Option<ThinkingLevel>,
    /// The id is not known and is used as it was written.
    pub is_custom: bool,
    pub warning: Option<String>,
}

impl From<Arc<Model>> for Choice {
    fn from(model: Arc<Model>) -> Choice {
        Choice { model, level: None, is_custom: false, warning: None }
    }
}

impl From<Found> for Choice {
    fn from(found: Found) -> Choice {
        Choice { level: found.level, ..found.model.into() }
    }
}

/// Returns the model meant by `--provider` and `--model`, among all known ones. A provider alone means its default.
pub fn by_name(registry: &Registry, provider: Option<&str>, model: Option<&str>) -> Result<Option<Choice>, String> {
    let choice = match (provider, model) {
        (None, None) => return Ok(None),
        (Some(provider), None) => provider_default(registry, &known(registry, provider)?)?.into(),
        (Some(provider), Some(text)) => within_named(registry, &known(registry, provider)?, text.trim())?,
        (None, Some(text)) => anywhere(registry, text.trim())?,
    };
    registry.check_support(&choice.model)?;
    Ok(Some(choice))
}

fn known(registry: &Registry, provider: &str) -> Result<String, String> {
    let unknown = || {
        let ids = registry.provider_ids();
        let near = hint(provider, ids.iter().map(String::as_str));
        format!("Unknown provider \"{provider}\"{near} Use --list-models to see available providers/models.")
    };
    registry.provider_named(provider.trim()).ok_or_else(unknown)
}

/// Returns `; did you mean "x"?`, or a full stop.
fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    Some(suggestion(name, known)).filter(|near| !near.is_empty()).unwrap_or_else(|| ".".to_owned())
}

/// Says that there is no such model, and which one may be meant.
fn not_found(text: &str, near: &str) -> String {
    format!("Model \"{text}\" not found{near} Use --list-models to see available models.")
}

/// Suggests a model for a name that no provider has: the provider may be mistyped, or the id.
fn nearest_anywhere(registry: &Registry, all: &[Arc<Model>], text: &str) -> String {
    let ids = registry.provider_ids();
    let named = text.split_once('/').and_then(|(head, rest)| Some((near(head, ids.iter().map(String::as_str))?, rest)));
    match named {
        Some((provider, rest)) => format!("; did you mean \"{provider}/{rest}\"?"),
        None => hint(text, all.iter().map(|model| &*model.id)),
    }
}

fn provider_default(registry: &Registry, provider: &str) -> Result<Arc<Model>, String> {
    let suggested = registry.default_model_id(provider).and_then(|id| registry.find(provider, id));
    let first = || registry.models_of(provider).into_iter().next();
    suggested.or_else(first).ok_or_else(|| format!("Provider \"{provider}\" has no models"))
}

/// Finds a model of the provider that `--provider` names. The id may repeat the provider as `provider/id`.
fn within_named(registry: &Registry, provider: &str, text: &str) -> Result<Choice, String> {
    let rest = match text.split_once('/') {
        Some((head, rest)) if head.eq_ignore_ascii_case(provider) => rest,
        _ => text,
    };
    let models = registry.models_of(provider);
    // The id itself may begin with the provider's name.
    let found = match pattern::find(&models, rest) {
        Match::Nothing if rest != text => pattern::find(&models, text),
        found => found,
    };
    choose(registry, provider, &models, rest, found)
}

fn anywhere(registry: &Registry, text: &str) -> Result<Choice, String> {
    let inferred = text.split_once('/').and_then(|(head, rest)| Some((registry.provider_named(head)?, rest)));
    let Some((provider, rest)) = inferred else { return without_provider(registry, text) };
    let models = registry.models_of(&provider);
    let found = pattern::find(&models, rest);
    if !registry.is_authenticated(&provider)
        && let Some(choice) = gateway_model(registry, text)
    {
        return Ok(choice);
    }
    if found == Match::Nothing {
        // The slash may belong to the id of some other provider's model.
        let all = registry.models();
        let (bare, level) = split_level(text);
        for (text, level) in [(text, None), (bare, level)] {
            if let Some(model) = pattern::exact(&all, text) {
                return Ok(Choice { level, ..model.into() });
            }
        }
        if let Match::Found(found) = fuzzy(registry, &all, text) {
            return Ok(found.into());
        }
    }
    choose(registry, &provider, &models, rest, found)
}

/// Finds the only usable model whose id is the whole text, such as `openai/gpt-4o` at a gateway.
fn gateway_model(registry: &Registry, text: &str) -> Option<Choice> {
    let available = registry.available();
    let (bare, level) = split_level(text);
    [(text, None), (bare, level)].into_iter().find_map(|(text, level)| {
        let mut same = available.iter().filter(|model| model.id.eq_ignore_ascii_case(text));
        let model = same.next().filter(|_| same.next().is_none())?.clone();
        Some(Choice { level, ..model.into() })
    })
}

fn without_provider(registry: &Registry, text: &str) -> Result<Choice, String> {
    let all = registry.models();
    let (bare, level) = split_level(text);
    for (text, level) in [(text, None), (bare, level)] {
        let same = |model: &&Arc<Model>| model.id.eq_ignore_ascii_case(text) || pattern::is_full_name(model, text);
        let exact: Vec<Arc<Model>> = all.iter().filter(same).cloned().collect();
        if !exact.is_empty() {
            let model = the_usable_one(registry, text, exact)?;
            return Ok(Choice { level, ..model.into() });
        }
    }
    match fuzzy(registry, &all, text) {
        Match::Found(found) => Ok(found.into()),
        Match::BadLevel { suffix, .. } => Err(bad_level(&suffix, text)),
        Match::Nothing => Err(not_found(text, &nearest_anywhere(registry, &all, text))),
    }
}

fn the_usable_one(registry: &Registry, text: &str, mut exact: Vec<Arc<Model>>) -> Result<Arc<Model>, String> {
    if exact.len() == 1 {
        return Ok(exact.remove(0));
    }
    let mut usable = exact.iter().filter(|model| registry.is_usable(model));
    let reason = match (usable.next(), usable.next()) {
        (Some(model), None) => return Ok(model.clone()),
        (None, _) => "No matching provider is authenticated.",
        (Some(_), Some(_)) => "More than one matching provider is authenticated.",
    };
    let names: Vec<String> = exact.iter().map(|model| format!("{}/{}", model.provider, model.id)).collect();
    let names = names.join(", ");
    Err(format!("Model \"{text}\" is ambiguous across providers: {names}. {reason} Use --provider or provider/model."))
}

/// Matches a partial name: first among usable models, then among those pith can talk to, then among all.
fn fuzzy(registry: &Registry, all: &[Arc<Model>], text: &str) -> Match {
    let supported = || all.iter().filter(|model| registry.check_support(model).is_ok()).cloned().collect();
    let tiers: [&dyn Fn() -> Vec<Arc<Model>>; 3] = [&|| registry.available(), &supported, &|| all.to_vec()];
    let mut closest = Match::Nothing;
    for tier in tiers {
        match pattern::find(&tier(), text) {
            Match::Found(found) => return Match::Found(found),
            bad @ Match::BadLevel { .. } if closest == Match::Nothing => closest = bad,
            Match::BadLevel { .. } | Match::Nothing => {}
        }
    }
    closest
}

/// Turns a match inside a known provider into a choice. An unknown id becomes a custom model.
fn choose(
    registry: &Registry,
    provider: &str,
    models: &[Arc<Model>],
    text: &str,
    found: Match,
) -> Result<Choice, String> {
    match found {
        Match::Found(found) => Ok(found.into()),
        // Where ids have tags (`model:free`, `model:7b`) an unknown one is as good as a known one.
        Match::BadLevel { suffix, .. } if !models.iter().any(|model| model.id.contains(':')) => {
            Err(bad_level(&suffix, text))
        }
        Match::BadLevel { .. } | Match::Nothing => custom(registry, provider, text),
    }
}

fn bad_level(suffix: &str, text: &str) -> String {
    format!("Invalid thinking level \"{suffix}\" in \"{text}\". {}", valid_levels())
}

/// Makes a model that the catalogue does not know, modelled on the provider's default one.
fn custom(registry: &Registry, provider: &str, text: &str) -> Result<Choice, String> {
    let (id, level) = split_level(text);
    let like = provider_default(registry, provider).ok().or_else(|| registry.blank_model(provider, id));
    let Some(like) = like.filter(|_| !id.is_empty() && registry.is_listed(provider)) else {
        let models = registry.models_of(provider);
        let near = hint(text, models.iter().map(|model| &*model.id));
        return Err(not_found(&format!("{provider}/{text}"), &near));
    };
    let thinks = level.is_some_and(|level| level != ThinkingLevel::Off);
    let model = Model { id: id.into(), name: id.into(), reasoning: like.reasoning || thinks, ..Model::clone(&like) };
    let models = registry.models_of(provider);
    let near = hint(id, models.iter().map(|model| &*model.id));
    let warning = format!("Model \"{id}\" not found for provider \"{provider}\"{near} Using custom model id.");
    Ok(Choice { model: Arc::new(model), level, is_custom: true, warning: Some(warning) })
}
