//! What servers of the newer era want to know before they answer a request: instead of a result they send questions,
//! and the request is sent again with the answers.
#![expect(deprecated, reason = "roots are deprecated in the newest revision only, and servers ask for them")]

use std::sync::Arc;

use rmcp::model::{InputResponses, Root};
use serde_json::{Value, json};

use crate::questions::Questions;

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

/// Who answers.
pub struct Inputs {
    pub questions: Arc<Questions>,
    pub root: Root,
}

impl Inputs {
    /// Answers the questions of a result, one after the other.
    pub async fn answer(&self, result: &Value) -> Result<Given, String> {
        let mut responses = InputResponses::new();
        for (id, request) in result.get("inputRequests").and_then(Value::as_object).into_iter().flatten() {
            let response = match request.get("method").and_then(Value::as_str) {
                Some("elicitation/create") => {
                    let params = request.get("params").unwrap_or(&Value::Null);
                    self.questions.elicit(params).await.result()
                }
                Some("roots/list") => json!({"roots": [self.root]}),
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
