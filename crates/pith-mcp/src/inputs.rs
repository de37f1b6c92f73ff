//! What servers of the newer era want to know before they answer a request: instead of a result they send questions,
//! and the request is sent again with the answers.
#![expect(deprecated, reason = "roots are deprecated in the newest revision only, and servers ask for them")]

use pith_protocol::Usage;
use rmcp::model::{InputResponses, Root};
use serde_json::{Value, json};

use crate::config::ServerConfig;
use crate::handler::root_of;
use crate::launch::Launch;
use crate::questions::Questions;
use crate::sampling::{Denial, Sampling};

/// How often a server may ask before it has to answer.
pub const MAX_ROUNDS: usize = 10;

/// Answers to the questions of a result, and what the server wants back with them.
pub struct Given {
    responses: InputResponses,
    state: Option<String>,
}

impl Given {
    /// The two members of a request; nothing in the first round.
    pub fn parts(given: Option<Self>) -> (Option<InputResponses>, Option<String>) {
        given.map_or((None, None), |given| (Some(given.responses), given.state))
    }
}

/// Who answers what a server asks a session, in either era.
pub struct Inputs {
    pub questions: Questions,
    /// `None` if the server may not ask the model.
    pub sampling: Option<Sampling>,
    pub roots: Vec<Root>,
}

impl Inputs {
    pub fn of(config: &ServerConfig, launch: &Launch) -> Self {
        Inputs {
            questions: Questions::of(&config.name, launch.user.clone()),
            sampling: Sampling::of(config, launch),
            roots: [&launch.cwd].into_iter().chain(&launch.additional_roots).map(|root| root_of(root)).collect(),
        }
    }

    /// Asks the model for a server.
    pub async fn sample(&self, params: &Value) -> Result<Value, Denial> {
        match &self.sampling {
            Some(sampling) => sampling.create(params, &self.questions).await,
            None => Err(Denial::not_offered()),
        }
    }

    /// Returns what the server's requests to the model have cost since this was last called.
    pub fn take_usage(&self) -> Option<Usage> {
        self.sampling.as_ref()?.take_usage()
    }

    /// Answers the questions of the result of a call, one after the other.
    pub async fn answer(&self, result: &Value, call: Option<&str>) -> Result<Given, String> {
        let mut responses = InputResponses::new();
        for (id, request) in result.get("inputRequests").and_then(Value::as_object).into_iter().flatten() {
            let response = match request.get("method").and_then(Value::as_str) {
                Some("elicitation/create") => {
                    let params = request.get("params").unwrap_or(&Value::Null);
                    self.questions.elicit(params, call).await.result()
                }
                Some("sampling/createMessage") => {
                    let params = request.get("params").unwrap_or(&Value::Null);
                    self.sample(params).await.map_err(|denial| format!("asked the model: {}", denial.why))?
                }
                Some("roots/list") => json!({"roots": self.roots}),
                other => return Err(format!("asks for {}, which pith does not answer", other.unwrap_or("nothing"))),
            };
            responses.insert(id.clone(), response);
        }
        let state = result.get("requestState").and_then(Value::as_str).map(str::to_owned);
        if responses.is_empty() && state.is_none() {
            return Err("asks for input without a question".to_owned());
        }
        Ok(Given { responses, state })
    }
}
