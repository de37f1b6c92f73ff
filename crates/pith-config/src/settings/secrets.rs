//! `secrets`: where the values of credentials are hidden.

use serde::Deserialize;

/// Where the values of credentials are hidden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretsSettings {
    pub redact: Redact,
    /// What xcsh calls `"all"`.
    pub enabled: bool,
}

impl SecretsSettings {
    /// Returns where they are hidden.
    pub fn redact(self) -> Redact {
        if self.enabled { Redact::All } else { self.redact }
    }
}

/// Where the values of credentials are hidden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Redact {
    /// In what people and programs beside the host read: stderr, logs, errors, recordings, exported pages.
    #[default]
    Logs,
    /// Also in results of tools and output of commands, before anybody reads them.
    All,
}

impl Redact {
    /// The words a settings file may use.
    pub const WORDS: &'static [&'static str] = &["logs", "all"];
}
