//! Asking a local server which models it has.
//!
//! The questions and the reading of answers are here; the caller sends the
//! requests.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::models_file::{Discovery, Headers, ModelConfig, ModelFields};

/// How long a server may take to answer all questions.
pub const LIMIT: Duration = Duration::from_secs(2);
/// A server with more models than this is not asked about each.
const MAX_DETAILS: usize = 64;

/// One question to a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub url: String,
    /// Sent as JSON with POST; without a body the request is a GET.
    pub body: Option<Value>,
    pub headers: Headers,
}

/// Sends a question and returns the JSON answer, or a reason.
pub type Fetch = Arc<dyn Fn(Question) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// Returns the models a server offers, in its order.
pub async fn discover(
    kind: Discovery,
    base_url: &str,
    headers: &Headers,
    fetch: &Fetch,
) -> Result<Vec<ModelConfig>, String> {
    let server = Server { base_url: base_url.trim_end_matches('/'), headers, fetch };
    let asked = async {
        match kind {
            Discovery::OpenAi => server.openai().await,
            Discovery::Ollama => server.ollama().await,
            Discovery::LlamaCpp => server.llama_cpp().await,
            Discovery::LmStudio => server.lm_studio().await,
        }
    };
    match tokio::time::timeout(LIMIT, asked).await {
        Ok(models) => models,
        Err(_) => Err(format!("no answer within {} s", LIMIT.as_secs())),
    }
}

struct Server<'a> {
    base_url: &'a str,
    headers: &'a Headers,
    fetch: &'a Fetch,
}

impl Server<'_> {
    async fn ask(&self, url: String, body: Option<Value>) -> Result<Value, String> {
        (self.fetch)(Question { url, body, headers: self.headers.clone() }).await
    }

    /// Returns the address without the version that the chat API has.
    fn root(&self) -> &str {
        self.base_url.strip_suffix("/v1").unwrap_or(self.base_url)
    }

    async fn openai(&self) -> Result<Vec<ModelConfig>, String> {
        self.ask(format!("{}/models", self.base_url), None).await.map(|answer| openai_models(&answer))
    }

    async fn ollama(&self) -> Result<Vec<ModelConfig>, String> {
        let tags = self.ask(format!("{}/api/tags", self.root()), None).await?;
        let mut models = Vec::new();
        for name in ollama_names(&tags) {
            // Without details the model can still be used.
            let details = if models.len() < MAX_DETAILS {
                self.ask(format!("{}/api/show", self.root()), Some(json!({"model": name}))).await.ok()
            } else {
                None
            };
            models.push(ollama_model(&name, details.as_ref()));
        }
        Ok(models)
    }

    async fn llama_cpp(&self) -> Result<Vec<ModelConfig>, String> {
        let mut models = self.ask(format!("{}/v1/models", self.root()), None).await.map(|list| openai_models(&list))?;
        if let Ok(props) = self.ask(format!("{}/props", self.root()), None).await {
            for model in &mut models {
                apply_props(&mut model.fields, &props);
            }
        }
        Ok(models)
    }

    async fn lm_studio(&self) -> Result<Vec<ModelConfig>, String> {
        match self.ask(format!("{}/api/v0/models", self.root()), None).await {
            Ok(answer) => Ok(lm_studio_models(&answer)),
            Err(_) => self.openai().await,
        }
    }
}

fn config(id: &str, fields: ModelFields) -> ModelConfig {
    ModelConfig { id: id.to_owned(), fields, ..ModelConfig::default() }
}

fn images() -> Option<Vec<String>> {
    Some(vec!["text".into(), "image".into()])
}

/// Returns the first of these members that is a number above zero.
fn size(object: &Value, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|pointer| object.pointer(pointer)?.as_u64().filter(|size| *size > 0))
}

/// Reads `GET /v1/models`. Servers disagree on the name of the context size.
pub fn openai_models(answer: &Value) -> Vec<ModelConfig> {
    const SIZES: [&str; 6] = [
        "/max_model_len",
        "/context_length",
        "/context_window",
        "/max_context_length",
        "/meta/n_ctx",
        "/meta/n_ctx_train",
    ];
    let entries = answer.get("data").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let models = entries.iter().filter_map(|entry| {
        let fields = ModelFields { context_window: size(entry, &SIZES), ..ModelFields::default() };
        Some(config(entry.get("id")?.as_str()?, fields))
    });
    models.collect()
}

/// Reads `GET /api/tags` of Ollama.
pub fn ollama_names(answer: &Value) -> Vec<String> {
    let entries = answer.get("models").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let names = entries.iter().filter_map(|entry| entry.get("model").or_else(|| entry.get("name"))?.as_str());
    names.map(str::to_owned).collect()
}

/// Reads `POST /api/show` of Ollama.
pub fn ollama_model(name: &str, details: Option<&Value>) -> ModelConfig {
    let Some(details) = details else { return config(name, ModelFields::default()) };
    let can = |what: &str| {
        let known = details.get("capabilities").and_then(Value::as_array);
        known.is_some_and(|known| known.iter().any(|capability| capability == what))
    };
    // The size the server loads the model with, else the one it was trained for.
    let loaded = details.get("parameters").and_then(Value::as_str).and_then(|parameters| {
        let line = parameters.lines().find_map(|line| line.trim().strip_prefix("num_ctx"))?;
        line.trim().parse().ok()
    });
    let trained = details.get("model_info").and_then(Value::as_object).and_then(|known| {
        known.iter().find(|(key, _)| key.ends_with(".context_length")).and_then(|(_, value)| value.as_u64())
    });
    let fields = ModelFields {
        context_window: loaded.or(trained).filter(|size| *size > 0),
        reasoning: can("thinking").then_some(true),
        input: if can("vision") { images() } else { None },
        ..ModelFields::default()
    };
    config(name, fields)
}

/// Reads `GET /props` of the llama.cpp server, which serves one model at a time.
pub fn apply_props(fields: &mut ModelFields, props: &Value) {
    const SIZES: [&str; 2] = ["/default_generation_settings/n_ctx", "/n_ctx"];
    fields.context_window = size(props, &SIZES).or(fields.context_window);
    if props.pointer("/modalities/vision") == Some(&Value::Bool(true)) {
        fields.input = images();
    }
}

/// Reads `GET /api/v0/models` of LM Studio, without the models for embeddings.
pub fn lm_studio_models(answer: &Value) -> Vec<ModelConfig> {
    let entries = answer.get("data").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let models = entries.iter().filter_map(|entry| {
        let kind = entry.get("type").and_then(Value::as_str).unwrap_or("llm");
        if kind == "embeddings" {
            return None;
        }
        let fields = ModelFields {
            context_window: size(entry, &["/loaded_context_length", "/max_context_length"]),
            input: if kind == "vlm" { images() } else { None },
            ..ModelFields::default()
        };
        Some(config(entry.get("id")?.as_str()?, fields))
    });
    models.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that knows these addresses.
    fn server(answers: &[(&str, Value)]) -> Fetch {
        let answers: Vec<(String, Value)> =
            answers.iter().map(|(url, answer)| ((*url).into(), answer.clone())).collect();
        Arc::new(move |question| {
            let model = question.body.as_ref().and_then(|body| body["model"].as_str()).unwrap_or_default();
            let asked = format!("{}{}{model}", question.url, if model.is_empty() { "" } else { "#" });
            let answer = answers.iter().find(|(url, _)| *url == asked).map(|(_, answer)| answer.clone());
            Box::pin(async move { answer.ok_or_else(|| format!("404 {asked}")) })
        })
    }

    fn check(kind: Discovery, answers: &[(&str, Value)], expected: &[(&str, Option<u64>, bool, bool)]) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        let found = runtime.block_on(discover(kind, "http://h:1/v1/", &vec![], &server(answers))).expect("models");
        let shown: Vec<_> = found
            .iter()
            .map(|model| {
                let fields = &model.fields;
                let images = fields.input.as_ref().is_some_and(|input| input.len() == 2);
                (model.id.as_str(), fields.context_window, images, fields.reasoning == Some(true))
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn openai_style_servers() {
        let list = json!({"data": [{"id": "a", "max_model_len": 32768}, {"id": "b"}, {"nothing": 1}]});
        check(
            Discovery::OpenAi,
            &[("http://h:1/v1/models", list)],
            &[("a", Some(32768), false, false), ("b", None, false, false)],
        );
    }

    #[test]
    fn ollama() {
        let answers = [
            (
                "http://h:1/api/tags",
                json!({"models": [{"name": "q:7b", "model": "q:7b"}, {"name": "v"}, {"name": "odd"}]}),
            ),
            (
                "http://h:1/api/show#q:7b",
                json!({"model_info": {"qwen2.context_length": 32768}, "parameters": "stop \"x\"\nnum_ctx   8192",
                       "capabilities": ["completion", "tools", "thinking"]}),
            ),
            (
                "http://h:1/api/show#v",
                json!({"model_info": {"llama.context_length": 4096}, "capabilities": ["vision"]}),
            ),
        ];
        let expected = [("q:7b", Some(8192), false, true), ("v", Some(4096), true, false), ("odd", None, false, false)];
        check(Discovery::Ollama, &answers, &expected);
    }

    #[test]
    fn llama_cpp() {
        let list = ("http://h:1/v1/models", json!({"data": [{"id": "g", "meta": {"n_ctx_train": 131072}}]}));
        let props = json!({"default_generation_settings": {"n_ctx": 16384}, "modalities": {"vision": true}});
        check(Discovery::LlamaCpp, &[list.clone(), ("http://h:1/props", props)], &[("g", Some(16384), true, false)]);
        check(Discovery::LlamaCpp, &[list], &[("g", Some(131072), false, false)]);
    }

    #[test]
    fn lm_studio() {
        let own = json!({"data": [{"id": "t", "type": "llm", "max_context_length": 8192, "loaded_context_length": 4096},
            {"id": "e", "type": "embeddings"}, {"id": "v", "type": "vlm", "max_context_length": 2048}]});
        check(
            Discovery::LmStudio,
            &[("http://h:1/api/v0/models", own)],
            &[("t", Some(4096), false, false), ("v", Some(2048), true, false)],
        );
        let list = ("http://h:1/v1/models", json!({"data": [{"id": "old"}]}));
        check(Discovery::LmStudio, &[list], &[("old", None, false, false)]);
    }

    #[test]
    fn silent_servers_are_given_up_on() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("runtime");
        let silent: Fetch = Arc::new(|_| Box::pin(std::future::pending()));
        let outcome = runtime.block_on(discover(Discovery::Ollama, "http://h", &vec![], &silent));
        assert_eq!(outcome, Err("no answer within 2 s".into()));
    }
}
