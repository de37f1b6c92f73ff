//! `models.json`: the user's own providers and changes to built-in ones.
//!
//! A file that is not JSON, or has another shape, is ignored as a whole. Of a file
//! with a wrong provider only that provider is ignored, and of a provider with a
//! wrong value only that key.

mod fields;
mod parse;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use pith_config::{Diagnostic, document};
use pith_protocol::{ModelCost, PriceTier, PromptCache, ThinkingLevel};
use serde_json::{Map, Value};

pub(crate) use parse::described;

/// Header names and values; `None` suppresses a default. Values may be templates.
pub type Headers = Vec<(String, Option<String>)>;

/// What a file says about one provider. Extensions register the same shape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderConfig {
    pub id: String,
    /// Name for people.
    pub name: Option<String>,
    pub base_url: Option<String>,
    pub api: Option<String>,
    /// A literal, a template or a command.
    pub api_key: Option<String>,
    /// Also send the key as `Authorization: Bearer`.
    pub auth_header: bool,
    /// `"auth": "none"`: the server wants no credential.
    pub keyless: bool,
    pub headers: Headers,
    pub compat: Option<Map<String, Value>>,
    pub models: Vec<ModelConfig>,
    /// Changes to existing models, by id.
    pub overrides: Vec<(String, ModelFields)>,
    /// How to ask the server for its models.
    pub discovery: Option<Discovery>,
    /// How long the output of an `apiKey` command may be reused.
    pub key_command_ttl: Option<Duration>,
}

/// A model defined by a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelConfig {
    pub id: String,
    pub api: Option<String>,
    pub base_url: Option<String>,
    pub fields: ModelFields,
}

/// Properties of a model; absent ones keep what was there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelFields {
    pub name: Option<String>,
    pub reasoning: Option<bool>,
    pub thinking_level_map: BTreeMap<ThinkingLevel, Option<String>>,
    pub input: Option<Vec<String>>,
    /// Merged deeply, so it stays a tree.
    pub input_limits: Option<Map<String, Value>>,
    pub cost: CostFields,
    pub prompt_cache: Option<PromptCache>,
    pub context_window: Option<u64>,
    pub max_tokens: Option<u64>,
    pub sampling_params: Option<Map<String, Value>>,
    pub headers: Headers,
    pub compat: Option<Map<String, Value>>,
}

/// Prices; absent ones keep what was there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostFields {
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
    pub tiers: Option<Vec<PriceTier>>,
}

/// Which listing a local server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discovery {
    OpenAi,
    Ollama,
    LlamaCpp,
    LmStudio,
}

/// The content of a file.
#[derive(Clone, Debug, Default)]
pub struct ModelsFile {
    pub providers: Vec<ProviderConfig>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the file. `is_built_in` tells which providers need no address of their own.
pub fn load(file: &Path, is_built_in: impl Fn(&str) -> bool) -> ModelsFile {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or("models.json");
    match document::read(file) {
        Ok(None) => ModelsFile::default(),
        Ok(Some(document)) => parse::providers(&document, file, name, &is_built_in),
        Err(reason) => {
            let message = format!("Failed to parse {name}: {reason}\n\nFile: {}", file.display());
            ModelsFile { providers: vec![], diagnostics: vec![Diagnostic::error("models_file", file, message)] }
        }
    }
}

impl CostFields {
    /// Puts the given prices over existing ones.
    pub fn apply(&self, cost: &mut ModelCost) {
        for (new, old) in [
            (self.input, &mut cost.input),
            (self.output, &mut cost.output),
            (self.cache_read, &mut cost.cache_read),
            (self.cache_write, &mut cost.cache_write),
        ] {
            *old = new.unwrap_or(*old);
        }
        if let Some(tiers) = &self.tiers {
            cost.tiers.clone_from(tiers);
        }
    }
}

#[cfg(test)]
mod tests;
