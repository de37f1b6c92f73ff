//! From a JSON tree to provider configurations.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use pith_config::Diagnostic;
use pith_protocol::{InputLimits, PriceTier, PromptCache, ThinkingLevel};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::fields::Fields;
use super::{CostFields, Discovery, ModelConfig, ModelFields, ModelsFile, ProviderConfig};
use crate::network;

/// One of these gives a provider entry a meaning.
const MEANINGFUL: [&str; 9] =
    ["baseUrl", "headers", "compat", "modelOverrides", "models", "apiKey", "authHeader", "auth", "discovery"];

/// Reads all providers of a document.
pub(super) fn providers(
    document: &Value,
    file: &Path,
    file_name: &str,
    is_built_in: &dyn Fn(&str) -> bool,
) -> ModelsFile {
    let mut read = ModelsFile::default();
    let entries = match (document, document.get("providers")) {
        (Value::Object(_), Some(Value::Object(entries))) => entries,
        (Value::Object(_), None) => return refused(file, file_name, "/providers: required"),
        (Value::Object(_), Some(_)) => return refused(file, file_name, "/providers: expected an object"),
        (_, _) => return refused(file, file_name, "root: expected an object"),
    };
    for (id, entry) in entries {
        let mut problems = Vec::new();
        match provider(id, entry, &mut problems, is_built_in) {
            Ok(provider) => {
                let bad = bad_addresses(&provider).map(|message| Diagnostic::warning("models_url", file, message));
                read.diagnostics.extend(bad);
                read.providers.push(provider);
            }
            Err(reason) => {
                let message = format!("Provider \"{id}\": {reason}");
                read.diagnostics.push(Diagnostic::error("models_provider", file, message));
            }
        }
        read.diagnostics.extend(problems.into_iter().map(|problem| {
            let message = format!("Ignored a value in {file_name}: {problem}. File: {}", file.display());
            Diagnostic::warning("models_key", file, message)
        }));
    }
    read
}

/// Returns the addresses of a provider that no request can be sent to.
fn bad_addresses(provider: &ProviderConfig) -> impl Iterator<Item = String> {
    let of_models = provider.models.iter().filter_map(|model| model.base_url.as_deref());
    let addresses = provider.base_url.as_deref().into_iter().chain(of_models);
    addresses.filter_map(|address| {
        // A placeholder may stand for any part of an address but its scheme.
        let filled = address.trim().replace(['{', '}'], "x");
        let is_placeholder = address.trim().starts_with('{');
        let reason = network::parse_address(&filled).err().filter(|_| !is_placeholder)?;
        let shown = network::without_credentials(address);
        Some(format!("Provider \"{}\": baseUrl \"{shown}\": {reason}", provider.id))
    })
}

fn refused(file: &Path, file_name: &str, reason: &str) -> ModelsFile {
    let message = format!("Invalid {file_name} schema:\n  - {reason}\n\nFile: {}", file.display());
    ModelsFile { providers: vec![], diagnostics: vec![Diagnostic::error("models_file", file, message)] }
}

/// Reads one entry. An error leaves the provider out.
pub(crate) fn provider(
    id: &str,
    entry: &Value,
    problems: &mut Vec<String>,
    is_built_in: &dyn Fn(&str) -> bool,
) -> Result<ProviderConfig, String> {
    if entry.as_object().is_some_and(|object| !MEANINGFUL.iter().any(|key| object.contains_key(*key))) {
        return Err(format!("Provider {id}: must specify at least one of {}", MEANINGFUL.join(", ")));
    }
    let provider = described(id, entry, problems)?;
    if !is_built_in(id) {
        complete(&provider)?;
    }
    Ok(provider)
}

/// Reads one entry without asking whether it says enough.
pub(crate) fn described(id: &str, entry: &Value, problems: &mut Vec<String>) -> Result<ProviderConfig, String> {
    let Value::Object(object) = entry else { return Err(format!("Provider {id}: expected an object")) };
    let mut fields = Fields::new(object, format!("/providers/{id}"), problems);
    Ok(ProviderConfig {
        id: id.to_owned(),
        name: fields.text("name"),
        base_url: fields.text("baseUrl"),
        api: fields.text("api"),
        api_key: fields.text("apiKey"),
        auth_header: fields.flag("authHeader").unwrap_or(false),
        keyless: fields.text("auth").as_deref() == Some("none"),
        headers: fields.headers("headers"),
        compat: fields.object("compat").cloned(),
        models: models(id, &mut fields)?,
        overrides: overrides(&mut fields),
        discovery: discovery(&mut fields),
        key_command_ttl: fields.positive("keyCommandTtlMs").map(Duration::from_millis),
    })
}

/// Checks that a provider that only this file defines has an address and an API for each model.
fn complete(provider: &ProviderConfig) -> Result<(), String> {
    let id = &provider.id;
    let addressed = provider.base_url.is_some() || provider.models.iter().all(|model| model.base_url.is_some());
    let offers = !provider.models.is_empty() || provider.discovery.is_some();
    if offers && (!addressed || (provider.discovery.is_some() && provider.base_url.is_none())) {
        return Err(format!("Provider {id}: \"baseUrl\" is required when defining custom models."));
    }
    if provider.api.is_some() {
        return Ok(());
    }
    match provider.models.iter().find(|model| model.api.is_none()) {
        Some(model) => {
            let model = &model.id;
            Err(format!("Provider {id}, model {model}: no \"api\" specified. Set at provider or model level."))
        }
        None => Ok(()),
    }
}

fn models(id: &str, provider: &mut Fields<'_>) -> Result<Vec<ModelConfig>, String> {
    let Some(entries) = provider.array("models") else { return Ok(vec![]) };
    let mut models = Vec::with_capacity(entries.len());
    for (n, entry) in entries.iter().enumerate() {
        let Value::Object(object) = entry else { return Err(format!("Provider {id}, model {n}: expected an object")) };
        let mut fields = provider.inside(&format!("models/{n}"), object);
        let Some(model_id) = fields.text("id") else { return Err(format!("Provider {id}, model {n}: missing \"id\"")) };
        models.push(ModelConfig {
            id: model_id,
            api: fields.text("api"),
            base_url: fields.text("baseUrl"),
            fields: model_fields(&mut fields),
        });
    }
    Ok(models)
}

fn overrides(provider: &mut Fields<'_>) -> Vec<(String, ModelFields)> {
    let Some(entries) = provider.object("modelOverrides") else { return vec![] };
    let mut inner = provider.inside("modelOverrides", entries);
    let mut overrides = Vec::with_capacity(entries.len());
    for (id, entry) in entries {
        match entry {
            Value::Object(object) => overrides.push((id.clone(), model_fields(&mut inner.inside(id, object)))),
            _ => inner.complain(id, "an object"),
        }
    }
    overrides
}

fn model_fields(fields: &mut Fields<'_>) -> ModelFields {
    ModelFields {
        name: fields.text("name"),
        reasoning: fields.flag("reasoning"),
        thinking_level_map: levels(fields),
        input: fields.take("input", "an array of \"text\" and \"image\"", input),
        input_limits: fields.take("inputLimits", "an object of limits", limits),
        cost: cost(fields),
        prompt_cache: fields
            .take("promptCache", "an object with seconds", |value| PromptCache::deserialize(value).ok()),
        context_window: fields.positive("contextWindow"),
        max_tokens: fields.positive("maxTokens"),
        sampling_params: fields.object("samplingParams").cloned(),
        headers: fields.headers("headers"),
        compat: fields.object("compat").cloned(),
    }
}

fn input(value: &Value) -> Option<Vec<String>> {
    let kinds = value.as_array()?.iter().map(|kind| kind.as_str().filter(|kind| matches!(*kind, "text" | "image")));
    kinds.map(|kind| kind.map(str::to_owned)).collect()
}

fn limits(value: &Value) -> Option<Map<String, Value>> {
    InputLimits::deserialize(value).ok()?;
    value.as_object().cloned()
}

fn levels(fields: &mut Fields<'_>) -> BTreeMap<ThinkingLevel, Option<String>> {
    let Some(object) = fields.object("thinkingLevelMap") else { return BTreeMap::new() };
    let mut inner = fields.inside("thinkingLevelMap", object);
    let mut map = BTreeMap::new();
    for (name, word) in object {
        match (ThinkingLevel::parse(name), word) {
            (Some(level), Value::String(word)) => drop(map.insert(level, Some(word.clone()))),
            (Some(level), Value::Null) => drop(map.insert(level, None)),
            (Some(_), _) => inner.complain(name, "a string or null"),
            (None, _) => inner.complain(name, "a thinking level as key"),
        }
    }
    map
}

fn cost(fields: &mut Fields<'_>) -> CostFields {
    let Some(object) = fields.object("cost") else { return CostFields::default() };
    let mut inner = fields.inside("cost", object);
    CostFields {
        input: inner.price("input"),
        output: inner.price("output"),
        cache_read: inner.price("cacheRead"),
        cache_write: inner.price("cacheWrite"),
        tiers: inner.take("tiers", "an array of prices", |value| Vec::<PriceTier>::deserialize(value).ok()),
    }
}

fn discovery(provider: &mut Fields<'_>) -> Option<Discovery> {
    let object = provider.object("discovery")?;
    provider.inside("discovery", object).take("type", "openai, ollama, llama.cpp or lm-studio", |value| {
        match value.as_str()? {
            "openai" | "openai-models-list" => Some(Discovery::OpenAi),
            "ollama" => Some(Discovery::Ollama),
            "llama.cpp" => Some(Discovery::LlamaCpp),
            "lm-studio" => Some(Discovery::LmStudio),
            _ => None,
        }
    })
}
