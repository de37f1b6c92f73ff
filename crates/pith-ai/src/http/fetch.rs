//! Small JSON questions to servers: what models they have.

use std::time::Duration;

use serde_json::Value;

use super::Clients;
use crate::discovery::Question;

/// Enough for a list of models, not for a flood.
const MAX_ANSWER: usize = 4 << 20;

/// Asks and reads the JSON answer, or says why there is none.
pub async fn fetch_json(clients: &Clients, question: Question, connect: Duration) -> Result<Value, String> {
    let client = clients.get(&question.url, connect).map_err(|fault| fault.text)?;
    let mut request = match &question.body {
        Some(body) => client.post(&question.url).header("content-type", "application/json").body(body.to_string()),
        None => client.get(&question.url),
    };
    for (name, value) in &question.headers {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    let mut response = request.send().await.map_err(|error| error.without_url().to_string())?;
    if !response.status().is_success() {
        return Err(format!("status {}", response.status().as_u16()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| error.without_url().to_string())? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ANSWER {
            return Err(format!("the answer exceeds {MAX_ANSWER} bytes"));
        }
    }
    serde_json::from_slice(&body).map_err(|error| format!("the answer is not JSON: {error}"))
}
