//! Small JSON questions to servers: what models they have.

use std::time::{Duration, Instant};

use reqwest::{Method, Url};
use serde_json::Value;

use super::redirect::Target;
use super::{Clients, fault, header_map, traced, unreachable};
use crate::discovery::Question;

/// Enough for a list of models, not for a flood.
const MAX_ANSWER: usize = 4 << 20;

/// Sends the request and reads the JSON answer, or returns why there is none.
pub async fn fetch_json(clients: &Clients, question: Question, connect: Duration) -> Result<Value, String> {
    let url = Url::parse(&question.url).map_err(|error| fault::bad_url(&question.url, &error.to_string()).text)?;
    let own = question.body.is_some().then_some(("content-type", "application/json"));
    let configured = question.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_deref()?)));
    let headers = header_map(own.into_iter().chain(configured)).map_err(|fault| fault.text)?;
    let method = if question.body.is_some() { Method::POST } else { Method::GET };
    let body = question.body.map(|body| body.to_string());
    let mut target = Target::new(method, url, headers, &[]);
    let mut response = loop {
        let client = clients.get(target.url.as_str(), connect).map_err(|fault| fault.text)?;
        let mut request = client.request(target.method.clone(), target.url.clone()).headers(target.headers.clone());
        if let Some(body) = &body {
            request = request.body(body.clone());
        }
        traced::request(&target.method, &target.url, &target.headers);
        let start = Instant::now();
        let response = request.send().await.map_err(|error| unreachable(clients, &target.url, &error).text)?;
        traced::response(&response, start.elapsed());
        if !target.follow(response.status(), response.headers()).map_err(|fault| fault.text)? {
            break response;
        }
    };
    if !response.status().is_success() {
        return Err(format!("status {}", response.status().as_u16()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| fault::lost(&error).text)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ANSWER {
            return Err(format!("the answer exceeds {MAX_ANSWER} bytes"));
        }
    }
    serde_json::from_slice(&body).map_err(|error| format!("the answer is not JSON: {error}"))
}
