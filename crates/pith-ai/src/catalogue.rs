//! The models pith knows without being told: 42 providers and their models.
//!
//! The tables are text inside the program, one per provider. Nothing is parsed
//! until a provider's models are asked for, and then only that provider's.

mod providers;

use pith_protocol::{InputLimits, Model, ModelCost, PriceTier, PromptCache, ThinkingLevel};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A built-in provider.
#[derive(Debug)]
pub struct BuiltIn {
    pub id: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Variables that may hold its credential, in order of preference. `A+B` needs both.
    pub variables: &'static [&'static str],
    pub default_model: &'static str,
    /// Of the source models; see `tools/catalogue.py`.
    #[cfg(test)]
    checksum: u64,
    table: &'static str,
}

/// A model of the catalogue and the headers its provider wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub model: Model,
    pub headers: Vec<(String, String)>,
}

/// Returns all built-in providers, in catalogue order.
pub fn providers() -> &'static [BuiltIn] {
    &providers::PROVIDERS
}

/// Providers in the order they are asked for a default model.
pub fn default_order() -> &'static [&'static str] {
    &providers::DEFAULT_ORDER
}

/// Providers that had another id before, which files of users and sessions still name.
const FORMER_IDS: [(&str, &str); 1] = [("azure-openai-responses", "azure")];

/// Returns the id of today for one that a provider may have had before.
pub fn current_id(id: &str) -> &str {
    FORMER_IDS.iter().find(|(former, _)| *former == id).map_or(id, |(_, current)| current)
}

/// Returns a `provider/model` with the provider's id of today.
pub fn current_name(name: &str) -> Cow<'_, str> {
    match name.split_once('/') {
        Some((provider, rest)) if current_id(provider) != provider => format!("{}/{rest}", current_id(provider)).into(),
        _ => name.into(),
    }
}

/// Returns the built-in provider of that id.
pub fn provider(id: &str) -> Option<&'static BuiltIn> {
    providers().iter().find(|provider| provider.id == id)
}

impl BuiltIn {
    /// Parses this provider's models, in catalogue order.
    pub fn models(&self) -> Vec<Listed> {
        let table: Table = serde_json::from_str(self.table).expect("the embedded tables are tested");
        let Table { profiles, models } = table;
        models.into_iter().map(|row| row.expand(self.id, &profiles)).collect()
    }
}

#[derive(Deserialize)]
struct Table {
    profiles: Vec<Profile>,
    models: Vec<Row>,
}

/// What models of one provider have in common.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Profile {
    api: String,
    base_url: String,
    reasoning: bool,
    thinking_level_map: Option<BTreeMap<ThinkingLevel, Option<String>>>,
    input: Vec<String>,
    input_limits: Option<InputLimits>,
    prompt_cache: Option<PromptCache>,
    #[serde(default)]
    headers: Map<String, Value>,
    compat: Option<Map<String, Value>>,
}

/// Id, name, profile, context window, output limit, prices.
#[derive(Deserialize)]
struct Row(String, String, usize, u64, u64, Vec<f64>);

impl Row {
    fn expand(self, provider: &str, profiles: &[Profile]) -> Listed {
        let Row(id, name, profile, context_window, max_tokens, prices) = self;
        let profile = &profiles[profile];
        let model = Model {
            id,
            name,
            api: profile.api.clone(),
            provider: provider.to_owned(),
            base_url: profile.base_url.clone(),
            reasoning: profile.reasoning,
            input: profile.input.clone(),
            cost: cost(&prices),
            context_window,
            max_tokens,
            compat: profile.compat.clone(),
            thinking_level_map: profile.thinking_level_map.clone(),
            sampling_params: None,
            input_limits: profile.input_limits.clone(),
            prompt_cache: profile.prompt_cache,
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let headers = profile.headers.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        Listed { model, headers }
    }
}

fn cost(prices: &[f64]) -> ModelCost {
    let (base, tiers) = prices.split_at(4);
    let tiers = tiers.chunks_exact(5).map(|tier| PriceTier {
        input_tokens_above: tier[0] as u64,
        input: tier[1],
        output: tier[2],
        cache_read: tier[3],
        cache_write: tier[4],
    });
    ModelCost { input: base[0], output: base[1], cache_read: base[2], cache_write: base[3], tiers: tiers.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text `tools/catalogue.py` takes the checksum of.
    fn canonical(value: &Value, out: &mut String) {
        match value {
            Value::Null => out.push_str("null"),
            Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Value::Number(number) => out.push_str(&format!("#{}", number.as_f64().expect("number").to_bits())),
            Value::String(text) => out.push_str(&format!("{}:{text}", text.len())),
            Value::Array(items) => {
                out.push('[');
                for (n, item) in items.iter().enumerate() {
                    out.push_str(if n > 0 { "," } else { "" });
                    canonical(item, out);
                }
                out.push(']');
            }
            Value::Object(members) => {
                let mut names: Vec<&String> = members.keys().collect();
                names.sort();
                out.push('{');
                for (n, name) in names.into_iter().enumerate() {
                    out.push_str(if n > 0 { "," } else { "" });
                    canonical(&Value::String(name.clone()), out);
                    out.push('=');
                    canonical(&members[name], out);
                }
                out.push('}');
            }
        }
    }

    fn fnv(text: &str) -> u64 {
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    }

    /// The source object of a model, rebuilt from what the table gave.
    fn source(listed: &Listed) -> Value {
        let mut value = serde_json::to_value(&listed.model).expect("models serialize");
        if !listed.headers.is_empty() {
            let headers = listed.headers.iter().map(|(name, value)| (name.clone(), value.clone().into()));
            value["headers"] = Value::Object(headers.collect());
        }
        value
    }

    #[test]
    fn every_model_equals_its_source() {
        for provider in providers() {
            let mut text = String::new();
            for (n, listed) in provider.models().iter().enumerate() {
                text.push_str(if n > 0 { "\n" } else { "" });
                canonical(&source(listed), &mut text);
            }
            assert_eq!(fnv(&text), provider.checksum, "{}", provider.id);
        }
    }

    #[test]
    fn counts() {
        let all: Vec<Listed> = providers().iter().flat_map(BuiltIn::models).collect();
        let count = |test: fn(&Model) -> bool| all.iter().filter(|listed| test(&listed.model)).count();
        assert_eq!(providers().len(), 42);
        assert_eq!(all.len(), 1643);
        assert_eq!(count(|model| !model.cost.tiers.is_empty()), 277);
        assert_eq!(count(|model| model.reasoning), 1403);
        assert_eq!(count(Model::sees_images), 1216);
        assert_eq!(count(|model| model.api == "openai-completions"), 728);
        assert_eq!(all.iter().filter(|listed| !listed.headers.is_empty()).count(), 47);
    }

    #[test]
    fn defaults_exist() {
        assert_eq!(default_order().len(), providers().len());
        for id in default_order() {
            let provider = provider(id).expect(id);
            assert!(provider.models().iter().any(|listed| listed.model.id == provider.default_model), "{id}");
        }
        assert!(provider("nope").is_none());
    }

    #[test]
    fn no_price_is_below_zero() {
        for listed in providers().iter().flat_map(BuiltIn::models) {
            let ModelCost { input, output, cache_read, cache_write, tiers } = listed.model.cost;
            let tiers = tiers.iter().flat_map(|tier| [tier.input, tier.output, tier.cache_read, tier.cache_write]);
            let prices = [input, output, cache_read, cache_write].into_iter().chain(tiers);
            prices.for_each(|price| assert!(price >= 0.0, "{}", listed.model.id));
        }
    }

    #[test]
    fn models_are_where_their_servers_are() {
        let all: Vec<Model> = providers().iter().flat_map(BuiltIn::models).map(|listed| listed.model).collect();
        let find = |provider: &str, id: &str| {
            let is_meant = |model: &&Model| model.provider == provider && model.id == id;
            all.iter().find(is_meant).unwrap_or_else(|| panic!("{provider}/{id}"))
        };
        for model in all.iter().filter(|model| model.provider.starts_with("opencode")) {
            assert!(model.base_url.starts_with("https://opencode.ai/inference/"), "{}", model.base_url);
        }
        let kimi = find("kimi-coding", "kimi-for-coding");
        assert_eq!((&*kimi.api, &*kimi.base_url), ("openai-completions", "https://api.kimi.com/coding/v1"));
        assert_eq!(find("anthropic", "claude-sonnet-4-5").context_window, 200_000);
        find("google", "gemini-4-argon");
    }

    #[test]
    fn the_tables_stay_small() {
        let total: usize = providers().iter().map(|provider| provider.table.len()).sum();
        assert!(total < 600_000, "{total} bytes");
    }
}
