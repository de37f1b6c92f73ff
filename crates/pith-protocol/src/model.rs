//! A model a provider offers, and how hard it may think.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Cost, Usage};

/// A model with everything needed to call and price it. Secrets are not in here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Model {
    pub id: String,
    pub name: String,
    pub api: String,
    pub provider: String,
    pub base_url: String,
    pub reasoning: bool,
    /// `text`, `image`.
    pub input: Vec<String>,
    pub cost: ModelCost,
    pub context_window: u64,
    pub max_tokens: u64,
    /// Differences of this server from the standard of its API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compat: Option<Map<String, Value>>,
    /// The provider's word for a level; `null` marks a level it does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<BTreeMap<String, Option<String>>>"))]
    pub thinking_level_map: Option<BTreeMap<ThinkingLevel, Option<String>>>,
    /// Merged last into the request body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_params: Option<Map<String, Value>>,
    /// What the provider takes at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_limits: Option<InputLimits>,
    /// How long the provider keeps a prompt prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_cache: Option<PromptCache>,
}

/// Limits on what one request may carry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct InputLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_request_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<ImageLimits>,
}

/// Limits on pictures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ImageLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_message: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_request: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize: Option<ImageResize>,
}

/// The largest picture sent as it is; bigger ones are scaled down to this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ImageResize {
    pub max_width: u32,
    pub max_height: u32,
    /// Of the base64 text.
    pub max_bytes: u64,
    pub jpeg_quality: u8,
}

impl Default for ImageResize {
    fn default() -> Self {
        ImageResize { max_width: 2000, max_height: 2000, max_bytes: 4_718_592, jpeg_quality: 80 }
    }
}

/// Lifetimes of cached prompt prefixes, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PromptCache {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long: Option<u64>,
}

/// US dollars per million tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ModelCost {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<PriceTier>,
}

/// Prices that apply above an input size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PriceTier {
    pub input_tokens_above: u64,
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

/// How much a model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    #[default]
    Off,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl ThinkingLevel {
    /// All levels, weakest first.
    pub const ALL: [ThinkingLevel; 7] = [
        ThinkingLevel::Off,
        ThinkingLevel::Minimal,
        ThinkingLevel::Low,
        ThinkingLevel::Medium,
        ThinkingLevel::High,
        ThinkingLevel::Xhigh,
        ThinkingLevel::Max,
    ];

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            ThinkingLevel::Off => "off",
            ThinkingLevel::Minimal => "minimal",
            ThinkingLevel::Low => "low",
            ThinkingLevel::Medium => "medium",
            ThinkingLevel::High => "high",
            ThinkingLevel::Xhigh => "xhigh",
            ThinkingLevel::Max => "max",
        }
    }

    /// The level of a wire name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }
}

impl Model {
    /// Whether pictures may be sent to it.
    pub fn sees_images(&self) -> bool {
        self.input.iter().any(|kind| kind == "image")
    }

    /// Levels the model has. `xhigh` and `max` exist only where the map names them.
    pub fn thinking_levels(&self) -> Vec<ThinkingLevel> {
        if !self.reasoning {
            return vec![ThinkingLevel::Off];
        }
        let map = self.thinking_level_map.as_ref();
        ThinkingLevel::ALL
            .into_iter()
            .filter(|level| match map.and_then(|map| map.get(level)) {
                Some(entry) => entry.is_some(),
                None => *level < ThinkingLevel::Xhigh,
            })
            .collect()
    }

    /// The first level at or above the wanted one, else the nearest below.
    pub fn clamp_thinking(&self, wanted: ThinkingLevel) -> ThinkingLevel {
        let levels = self.thinking_levels();
        let above = levels.iter().find(|level| **level >= wanted);
        above.or(levels.last()).copied().unwrap_or_default()
    }

    /// Whether it is known what the model costs. Catalogues say "depends" with prices below zero, and nothing with zeros.
    pub fn has_prices(&self) -> bool {
        let ModelCost { input, output, cache_read, cache_write, tiers } = &self.cost;
        let is_known = |prices: [f64; 4]| prices.iter().all(|price| *price >= 0.0);
        let known = |tier: &PriceTier| is_known([tier.input, tier.output, tier.cache_read, tier.cache_write]);
        (*input > 0.0 || *output > 0.0)
            && is_known([*input, *output, *cache_read, *cache_write])
            && tiers.iter().all(known)
    }

    /// Prices a usage, choosing the tier by the size of the input. What has no known price costs nothing.
    pub fn price(&self, usage: &Usage) -> Cost {
        let size = usage.input + usage.cache_read + usage.cache_write;
        let tier = self
            .cost
            .tiers
            .iter()
            .filter(|tier| tier.input_tokens_above < size)
            .max_by_key(|tier| tier.input_tokens_above);
        let (input, output, read, write) = match tier {
            Some(tier) => (tier.input, tier.output, tier.cache_read, tier.cache_write),
            None => (self.cost.input, self.cost.output, self.cost.cache_read, self.cost.cache_write),
        };
        let [input, output, read, write] = [input, output, read, write].map(|price| price.max(0.0));
        let long = usage.cache_write_1h.unwrap_or(0).min(usage.cache_write);
        let mut cost = Cost {
            input: input * usage.input as f64 / 1e6,
            output: output * usage.output as f64 / 1e6,
            cache_read: read * usage.cache_read as f64 / 1e6,
            cache_write: (write * (usage.cache_write - long) as f64 + 2.0 * input * long as f64) / 1e6,
            ..Cost::default()
        };
        cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(reasoning: bool) -> Model {
        let cost = ModelCost { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75, tiers: vec![] };
        Model { reasoning, cost, ..Model::default() }
    }

    #[test]
    fn levels_are_clamped_up_then_down() {
        assert_eq!(model(true).clamp_thinking(ThinkingLevel::Xhigh), ThinkingLevel::High);
        assert_eq!(model(true).clamp_thinking(ThinkingLevel::Low), ThinkingLevel::Low);
        assert_eq!(model(false).clamp_thinking(ThinkingLevel::High), ThinkingLevel::Off);
        let mut odd = model(true);
        odd.thinking_level_map = Some([(ThinkingLevel::Off, None), (ThinkingLevel::Minimal, None)].into());
        assert_eq!(odd.clamp_thinking(ThinkingLevel::Off), ThinkingLevel::Low);
    }

    #[test]
    fn a_price_below_zero_is_none() {
        let usage = Usage { input: 1_000_000, output: 1, cache_read: 1, cache_write: 2, ..Usage::default() };
        let usage = Usage { cache_write_1h: Some(1), ..usage };
        let mut odd = model(true);
        assert!(odd.has_prices());
        let set = |cost: &mut ModelCost, at: usize| {
            let prices = [&mut cost.input, &mut cost.output, &mut cost.cache_read, &mut cost.cache_write];
            *prices.into_iter().nth(at).expect("four prices") = -1_000_000.0;
        };
        let known = odd.price(&usage).total;
        for at in 0..4 {
            let mut one = odd.clone();
            set(&mut one.cost, at);
            assert!(!one.has_prices() && (0.0..known).contains(&one.price(&usage).total), "price {at}");
        }
        (0..4).for_each(|at| set(&mut odd.cost, at));
        assert_eq!(odd.price(&usage), Cost::default());
        let tier = PriceTier { input_tokens_above: 5, input: -1.0, ..PriceTier::default() };
        let tiered = Model { cost: ModelCost { tiers: vec![tier], ..model(true).cost }, ..model(true) };
        assert!(!tiered.has_prices());
        assert!(!Model::default().has_prices());
    }

    #[test]
    fn prices_follow_the_table() {
        let usage = Usage { input: 12, output: 42, cache_write: 300, ..Usage::default() };
        assert!((model(true).price(&usage).total - 0.001791).abs() < 1e-12);
    }
}
