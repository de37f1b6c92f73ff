//! Token counts and what they cost.

use serde::{Deserialize, Deserializer, Serialize};

/// Tokens of one model answer. `input` excludes cached tokens, `output` includes reasoning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    #[serde(deserialize_with = "count")]
    pub input: u64,
    #[serde(deserialize_with = "count")]
    pub output: u64,
    #[serde(deserialize_with = "count")]
    pub cache_read: u64,
    #[serde(deserialize_with = "count")]
    pub cache_write: u64,
    #[serde(deserialize_with = "count")]
    pub total_tokens: u64,
    pub cost: Cost,
    /// Part of `cache_write` kept for an hour.
    #[serde(rename = "cacheWrite1h", skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<u64>,
    /// Part of `output` spent on reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// The provider sent no usage; the numbers are ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated: Option<bool>,
}

/// US dollars.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
    pub total: f64,
    /// Whether the total is what the provider has billed. Otherwise it follows from the prices of the catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_from_provider: Option<bool>,
}

impl Usage {
    /// No count is believed to be larger, so that sums over a session stay sums.
    pub const MAX_COUNT: u64 = 1_000_000_000_000;

    /// Tokens the conversation occupied when this answer was complete.
    pub fn context_tokens(&self) -> u64 {
        if self.total_tokens > 0 {
            self.total_tokens
        } else {
            self.input + self.output + self.cache_read + self.cache_write
        }
    }

    /// Adds the tokens and the cost of another answer.
    pub fn add(&mut self, more: &Usage) {
        self.input += more.input;
        self.output += more.output;
        self.cache_read += more.cache_read;
        self.cache_write += more.cache_write;
        self.total_tokens += more.context_tokens();
        self.cost.input += more.cost.input;
        self.cost.output += more.cost.output;
        self.cost.cache_read += more.cost.cache_read;
        self.cost.cache_write += more.cost.cache_write;
        self.cost.total += more.cost.total;
        if let Some(hour) = more.cache_write_1h {
            *self.cache_write_1h.get_or_insert(0) += hour;
        }
        if let Some(reasoning) = more.reasoning {
            *self.reasoning.get_or_insert(0) += reasoning;
        }
    }
}

/// Other agents write counts as floats now and then.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    Ok(if value.is_finite() { value.clamp(0.0, Usage::MAX_COUNT as f64) as u64 } else { 0 })
}
