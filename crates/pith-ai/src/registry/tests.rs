//! A registry over a temporary agent directory.

mod credentials;
mod models;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pith_config::Layout;
use pith_protocol::ThinkingLevel;
use serde_json::{Value, json};

use super::*;
use crate::credentials::Credentials;
use crate::models_file;

/// A registry over a temporary agent directory. Credentials are read lazily, so keep it alive.
struct Setup {
    directory: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl Setup {
    fn new() -> Setup {
        Setup { directory: tempfile::tempdir().expect("temp dir"), variables: vec![] }
    }

    fn variable(mut self, name: &str, value: &str) -> Setup {
        self.variables.push((name.into(), value.into()));
        self
    }

    fn models(self, providers: Value) -> Setup {
        self.file("models.json", &json!({ "providers": providers }).to_string())
    }

    fn auth(self, entries: Value) -> Setup {
        self.file("auth.json", &entries.to_string())
    }

    fn file(self, name: &str, text: &str) -> Setup {
        fs::write(self.path(name), text).expect("write");
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn registry(&self) -> Registry {
        let variables = self.variables.clone();
        let environment = Environment::new(self.directory.path(), move |name| {
            variables.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        });
        Registry::load(&AgentDir::at(self.directory.path(), Layout::Pi), environment, &Settings::default())
    }
}

fn custom(extra: Value) -> Value {
    let mut provider = json!({"baseUrl": "https://host/v1", "api": "openai-completions", "apiKey": "key-12345", "models": [{"id": "m"}]});
    provider.as_object_mut().expect("object").extend(extra.as_object().expect("object").clone());
    json!({ "p": provider })
}

fn resolve(registry: &Registry, provider: &str, id: &str) -> Result<Credentials, String> {
    let model = registry.find(provider, id).expect("model");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(registry.resolve_credentials(&model))
}

fn ids(models: &[Arc<Model>]) -> Vec<String> {
    models.iter().map(|model| format!("{}/{}", model.provider, model.id)).collect()
}

fn header(credentials: &Credentials, name: &str) -> Option<Option<String>> {
    credentials.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
}
