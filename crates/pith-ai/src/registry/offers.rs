//! A provider's models, merged from the catalogue, the user's file and registrations.

use std::sync::Arc;

use pith_config::document;
use pith_protocol::{InputLimits, Model};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::provider::Provider;
use super::support::MISTRAL;
use crate::config_value::Variables;
use crate::models_file::{Headers, ModelConfig, ModelFields, ProviderConfig};
use crate::wire::OPENAI_COMPLETIONS;

/// A model and the headers its requests carry.
pub(super) struct Offer {
    pub model: Arc<Model>,
    /// From the catalogue; anything configured wins over them.
    pub base_headers: Headers,
    /// From overrides and the model's own entry; they win over the provider's.
    pub headers: Headers,
}

/// A model while layers are being applied.
struct Draft {
    model: Model,
    base_headers: Headers,
    override_headers: Headers,
    headers: Headers,
}

/// Objects inside `compat` that merge instead of replacing each other.
const DEEP_COMPAT: [&str; 4] = ["openRouterRouting", "vercelGatewayRouting", "chatTemplateKwargs", "chatTemplateArgs"];

/// Returns the models of a provider, with the layers applied from the lowest to the highest.
pub(super) fn merge_layers(provider: &Provider, names: &Variables<'_>) -> Vec<Offer> {
    let mut drafts = built_in(provider);
    if let Some(config) = &provider.file {
        apply_provider(&mut drafts, config);
        add_models(&mut drafts, config);
    }
    if let Some(registered) = &provider.registered {
        let config = &registered.config;
        apply_provider(&mut drafts, config);
        if registered.lists_models() {
            // Models that name no API or address take those of the models they replace.
            let covered = std::mem::take(&mut drafts);
            drafts = config.models.iter().map(|model| define(config, model, &covered)).collect();
        }
    }
    if let Some(config) = provider.configs().next() {
        for model in &provider.discovered {
            if drafts.iter().all(|draft| draft.model.id != model.id) {
                drafts.push(define(config, model, &drafts));
            }
        }
    }
    for (id, fields) in provider.configs().flat_map(|config| &config.overrides) {
        for draft in drafts.iter_mut().filter(|draft| draft.model.id == *id) {
            apply_fields(&mut draft.model, fields);
            draft.override_headers.extend(fields.headers.iter().cloned());
        }
    }
    drafts.into_iter().map(|draft| finish(draft, names)).collect()
}

/// Returns a model without a description, at a configured address.
pub(super) fn blank(provider: &Provider, id: &str) -> Option<Model> {
    let config = provider.configs().find(|config| config.base_url.is_some())?;
    let entry = ModelConfig { id: id.to_owned(), ..ModelConfig::default() };
    Some(define(config, &entry, &[]).model).filter(|model| !model.api.is_empty())
}

fn built_in(provider: &Provider) -> Vec<Draft> {
    let listed = provider.built_in.map(|built_in| built_in.models()).unwrap_or_default();
    let drafts = listed.into_iter().map(|listed| Draft {
        model: listed.model,
        base_headers: listed.headers.into_iter().map(|(name, value)| (name, Some(value))).collect(),
        override_headers: vec![],
        headers: vec![],
    });
    drafts.collect()
}

/// Applies the provider's own address and compat to every model that is already there.
fn apply_provider(drafts: &mut [Draft], config: &ProviderConfig) {
    for draft in drafts {
        if let Some(base_url) = &config.base_url {
            draft.model.base_url.clone_from(base_url);
        }
        merge_compat(&mut draft.model.compat, config.compat.as_ref());
    }
}

/// Adds the models of a provider; an entry with a known id replaces that model.
fn add_models(drafts: &mut Vec<Draft>, config: &ProviderConfig) {
    for model in &config.models {
        let draft = define(config, model, drafts);
        match drafts.iter_mut().find(|old| old.model.id == model.id) {
            Some(old) => *old = draft,
            None => drafts.push(draft),
        }
    }
}

fn define(config: &ProviderConfig, entry: &ModelConfig, others: &[Draft]) -> Draft {
    let twin = others.iter().find(|draft| draft.model.id == entry.id).map(|draft| &draft.model);
    let any = others.first().map(|draft| &draft.model);
    let api = entry.api.clone().or_else(|| config.api.clone()).or_else(|| Some(twin.or(any)?.api.clone()));
    // Servers that list their models also serve the common chat API.
    let api = api.or_else(|| config.discovery.map(|_| OPENAI_COMPLETIONS.to_owned())).unwrap_or_default();
    let same_api = others.iter().map(|draft| &draft.model).find(|model| model.api == api);
    let configured = entry.base_url.clone().or_else(|| config.base_url.clone());
    let base_url = configured.or_else(|| Some(twin.or(same_api).or(any)?.base_url.clone())).unwrap_or_default();
    let mut model = Model {
        id: entry.id.clone(),
        name: entry.id.clone(),
        api,
        provider: config.id.clone(),
        base_url,
        input: vec!["text".into()],
        context_window: 128_000,
        max_tokens: 16_384,
        compat: config.compat.clone(),
        ..Model::default()
    };
    apply_fields(&mut model, &entry.fields);
    Draft { model, base_headers: vec![], override_headers: vec![], headers: entry.fields.headers.clone() }
}

fn apply_fields(model: &mut Model, fields: &ModelFields) {
    if let Some(name) = &fields.name {
        model.name.clone_from(name);
    }
    if let Some(reasoning) = fields.reasoning {
        model.reasoning = reasoning;
    }
    if !fields.thinking_level_map.is_empty() {
        let map = model.thinking_level_map.get_or_insert_default();
        map.extend(fields.thinking_level_map.iter().map(|(level, word)| (*level, word.clone())));
    }
    if let Some(input) = &fields.input {
        model.input.clone_from(input);
    }
    if let Some(limits) = &fields.input_limits {
        model.input_limits = merged_limits(model.input_limits.as_ref(), limits);
    }
    fields.cost.apply(&mut model.cost);
    if let Some(cache) = fields.prompt_cache {
        let old = model.prompt_cache.unwrap_or_default();
        let (short, long) = (cache.short.or(old.short), cache.long.or(old.long));
        model.prompt_cache = Some(pith_protocol::PromptCache { short, long });
    }
    model.context_window = fields.context_window.unwrap_or(model.context_window);
    model.max_tokens = fields.max_tokens.unwrap_or(model.max_tokens);
    if let Some(params) = &fields.sampling_params {
        let all = model.sampling_params.get_or_insert_default();
        all.extend(params.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    merge_compat(&mut model.compat, fields.compat.as_ref());
}

fn merged_limits(old: Option<&InputLimits>, new: &Map<String, Value>) -> Option<InputLimits> {
    let mut tree = serde_json::to_value(old).expect("limits serialize");
    document::merge(&mut tree, Value::Object(new.clone()));
    InputLimits::deserialize(&tree).ok()
}

/// Merges compat keys; later ones win, and a few objects merge one level deeper.
fn merge_compat(below: &mut Option<Map<String, Value>>, above: Option<&Map<String, Value>>) {
    let Some(above) = above else { return };
    let merged = below.get_or_insert_default();
    for (name, value) in above {
        match (merged.get_mut(name), value) {
            (Some(Value::Object(old)), Value::Object(new)) if DEEP_COMPAT.contains(&name.as_str()) => {
                old.extend(new.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            _ => drop(merged.insert(name.clone(), value.clone())),
        }
    }
}

fn finish(mut draft: Draft, names: &Variables<'_>) -> Offer {
    speak_completions_to_mistral(&mut draft.model);
    fill_placeholders(&mut draft.model.base_url, names);
    let mut headers = draft.override_headers;
    headers.extend(draft.headers);
    Offer { model: Arc::new(draft.model), base_headers: draft.base_headers, headers }
}

/// Uses `openai-completions` for Mistral's models: its hosts serve both APIs.
fn speak_completions_to_mistral(model: &mut Model) {
    if model.api != MISTRAL {
        return;
    }
    model.api = OPENAI_COMPLETIONS.into();
    let address = model.base_url.trim_end_matches('/');
    if !address.ends_with("/v1") {
        model.base_url = format!("{address}/v1");
    }
    let own = model.compat.take();
    let known = json!({"supportsDeveloperRole": false, "supportsStore": false, "maxTokensField": "max_tokens"});
    model.compat = known.as_object().cloned();
    merge_compat(&mut model.compat, own.as_ref());
}

/// Replaces `{NAME}` by the variable where it is set.
fn fill_placeholders(address: &mut String, names: &Variables<'_>) {
    for name in placeholders(address) {
        if let Some(value) = names.get(&name) {
            *address = address.replace(&format!("{{{name}}}"), &value);
        }
    }
}

/// Returns the variables an address still needs.
pub(super) fn placeholders(address: &str) -> Vec<String> {
    let parts = address.split('{').skip(1).filter_map(|part| part.split_once('}'));
    let is_name = |name: &&str| {
        name.starts_with(|first: char| first.is_ascii_uppercase())
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    parts.map(|(name, _)| name).filter(is_name).map(str::to_owned).collect()
}
