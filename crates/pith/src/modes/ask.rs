//! Asks the prompts of a command, one after the other, and says what came of them.

use pith_ai::{NO_KEY, NO_MODEL};
use pith_protocol::limits::LIMIT_REACHED;
use pith_protocol::{ResultError, ResultRecord, StopReason};
use serde_json::{Value, json};

use super::answer_schema::AnswerSchema;
use super::client::{Client, Failure, Notice, Settled, is_busy, is_handled};
use crate::sessions::{SessionName, in_use_advice};

/// What came of all prompts.
#[derive(Default)]
pub struct Outcome {
    /// The last answer.
    pub last: Settled,
    /// What went wrong, in the order it happened.
    pub problems: Vec<Problem>,
    /// The last answer as a value, if it had to fit a schema and does.
    pub value: Option<Value>,
    /// The session at the end; `None` if it has ended before.
    pub session: Option<SessionName>,
    n_asked: usize,
}

/// Something that went wrong with a prompt.
pub struct Problem {
    /// Which prompt, from one.
    pub n_prompt: usize,
    pub kind: ProblemKind,
}

/// Why a prompt was not answered as it should be.
pub enum ProblemKind {
    /// It was refused.
    Refused(String),
    /// Its answer says why.
    Failed(Failure),
    /// The answer was cut off because it is too long.
    Cut,
    /// The answer does not fit the schema.
    Misfit(String),
    /// A tool call was not allowed; the model has gone on without it.
    NotAllowed(String),
    /// The session has ended.
    Ended,
}

/// What is said of an answer that ended in `length`.
const CUT: &str = "the answer was cut off at the model's limit of output tokens (stop reason length)";

impl ProblemKind {
    /// The text for people; empty if they know.
    pub fn text(&self) -> &str {
        match self {
            ProblemKind::Refused(text) | ProblemKind::Misfit(text) | ProblemKind::NotAllowed(text) => text,
            ProblemKind::Failed(failure) => &failure.text,
            ProblemKind::Cut => CUT,
            ProblemKind::Ended => "",
        }
    }

    /// Whether further prompts make no sense: the session cannot take them, or they would break a limit.
    fn is_final(&self) -> bool {
        match self {
            ProblemKind::Refused(_) | ProblemKind::Ended => true,
            ProblemKind::Failed(failure) => failure.is_limit(),
            ProblemKind::Cut | ProblemKind::Misfit(_) | ProblemKind::NotAllowed(_) => false,
        }
    }
}

impl Outcome {
    /// Whether a limit of the session has ended the work, or refused a prompt.
    pub fn is_limited(&self) -> bool {
        let is_refused = |problem: &Problem| match &problem.kind {
            ProblemKind::Refused(text) => text.starts_with(LIMIT_REACHED),
            _ => false,
        };
        self.last.is_limited || self.problems.iter().any(is_refused)
    }

    /// The last line of `--mode json`. `opened` is the session it began with.
    pub fn record(&self, opened: &SessionName) -> ResultRecord {
        let SessionName { id, file } = self.session.as_ref().unwrap_or(opened).clone();
        let mut problems = self.problems.iter().filter(|problem| !matches!(problem.kind, ProblemKind::NotAllowed(_)));
        let error = problems.next().map(|problem| {
            let cause = match &problem.kind {
                ProblemKind::Failed(failure) => failure.cause.as_ref(),
                _ => None,
            };
            let text = match problem.kind.text() {
                "" => "pith was stopped",
                text => text,
            };
            ResultError {
                message: text.to_owned(),
                kind: cause.map(|cause| cause.kind),
                status: cause.and_then(|cause| cause.status),
            }
        });
        let Settled { text, stop_reason, totals, .. } = self.last.clone();
        ResultRecord {
            text,
            stop_reason,
            output: self.value.clone(),
            error,
            cost: totals.usage.cost.total,
            usage: totals.usage,
            turns: totals.n_turns,
            session_id: id,
            session_file: file,
        }
    }
}

/// Sends the prompts in turn, and has the last answer mended until it fits the schema.
pub async fn ask_all(client: &mut Client, prompts: Vec<Value>, schema: Option<&AnswerSchema>) -> Outcome {
    let mut outcome = Outcome::default();
    for prompt in prompts {
        outcome.ask(client, prompt).await;
        if outcome.problems.last().is_some_and(|problem| problem.kind.is_final()) {
            break;
        }
    }
    if let Some(schema) = schema.filter(|_| outcome.problems.is_empty()) {
        outcome.fit(client, schema).await;
    }
    if let Some(refused) = outcome.last.totals.refused.clone() {
        outcome.add(ProblemKind::NotAllowed(refused));
    }
    outcome.session = session_name(client).await;
    outcome
}

/// Asks which session it is; `None` if it has ended.
async fn session_name(client: &mut Client) -> Option<SessionName> {
    let sent = client.send(json!({"type": "get_state"})).await;
    loop {
        if let Notice::Answer { id, result } = client.next().await?
            && id == sent
        {
            let state = result.ok()?;
            let text = |key: &str| state[key].as_str().map(str::to_owned);
            return Some(SessionName { id: text("sessionId")?, file: text("sessionFile") });
        }
    }
}

impl Outcome {
    async fn ask(&mut self, client: &mut Client, prompt: Value) {
        self.n_asked += 1;
        // Nothing of an earlier answer is left if this prompt gets none.
        let totals = std::mem::take(&mut self.last).totals;
        match ask(client, prompt).await {
            Ok(Some(settled)) => {
                match (&settled.failure, settled.stop_reason) {
                    (Some(failure), _) => self.add(ProblemKind::Failed(failure.clone())),
                    (None, Some(StopReason::Length)) => self.add(ProblemKind::Cut),
                    (None, _) => {}
                }
                self.last = settled;
            }
            Ok(None) => self.last.totals = totals,
            Err(kind) => {
                self.last.totals = totals;
                self.add(kind);
            }
        }
    }

    fn add(&mut self, kind: ProblemKind) {
        self.problems.push(Problem { n_prompt: self.n_asked, kind });
    }

    /// Checks the answer; while it does not fit, tells the model why and lets it answer again.
    async fn fit(&mut self, client: &mut Client, schema: &AnswerSchema) {
        let mut n_mended = 0;
        while self.problems.is_empty() {
            match schema.check(&self.last.text) {
                Ok(fitting) => {
                    self.last.text = fitting.text;
                    self.value = Some(fitting.value);
                    return;
                }
                Err(problems) if n_mended == schema.n_tries => {
                    let (path, why) = (schema.path().display(), problems.join("\n  "));
                    self.add(ProblemKind::Misfit(format!(
                        "the answer does not fit the schema {path}, also after {n_mended} tries to mend it:\n  {why}"
                    )));
                }
                Err(problems) => {
                    n_mended += 1;
                    self.ask(client, json!({"type": "prompt", "message": schema.mend(&problems)})).await;
                }
            }
        }
    }
}

/// Asks once; `None` if an extension has handled the prompt and nothing was asked.
async fn ask(client: &mut Client, prompt: Value) -> Result<Option<Settled>, ProblemKind> {
    let sent = client.send(prompt).await;
    // Set after an extension has handled the prompt: it may have started a run.
    let mut asked = None;
    while let Some(notice) = client.next().await {
        match notice {
            Notice::Answer { result: Err(text), .. } if text == NO_MODEL => {
                return Err(ProblemKind::Refused(NO_KEY.to_owned()));
            }
            Notice::Answer { result: Err(text), .. } => return Err(ProblemKind::Refused(in_use_advice(&text))),
            Notice::Answer { id, result: Ok(data) } if id == sent && is_handled(&data) => {
                asked = Some(client.send(json!({"type": "get_state"})).await);
            }
            Notice::Answer { id, result: Ok(state) } if Some(id) == asked && !is_busy(&state) => {
                return Ok(None);
            }
            Notice::Answer { result: Ok(_), .. } => {}
            Notice::Settled(settled) => return Ok(Some(settled)),
        }
    }
    Err(ProblemKind::Ended)
}
