//! Prepares a tool call: finds its tool, corrects and checks its arguments, asks the hook.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pith_protocol::audit::PermissionBy;
use pith_protocol::{AssistantMessage, StopReason, ToolCall};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::link::{Call, Turn};
use crate::{CallControl, Tool, ToolCallHook, ToolContext, ToolOutput, ToolUpdate, TraceContext, Verdict};

/// What is said of a call that was aborted, whoever runs it.
pub const ABORTED: &str = "Operation aborted";
/// How many bytes of arguments that are no JSON are quoted, of their beginning and of their end.
const QUOTED: usize = 1000;
const SKIPPED: &str = "Skipped due to queued user message.";

/// How long a hook may take to amend a result once the run is being stopped.
const AMEND_GRACE: Duration = Duration::from_millis(500);

/// The reasons for which calls do not run.
#[derive(Clone)]
pub(crate) struct Stop {
    /// The run was aborted.
    pub cancel: CancellationToken,
    /// The rest of the batch is skipped; fires with `cancel` too.
    pub interrupt: CancellationToken,
}

impl Stop {
    /// The text for a call that has not started, if it must not start.
    pub fn text(&self) -> Option<&'static str> {
        if self.cancel.is_cancelled() {
            Some(ABORTED)
        } else if self.interrupt.is_cancelled() {
            Some(SKIPPED)
        } else {
            None
        }
    }

    /// The same reasons for one call, which can be stopped on its own.
    pub fn of_one_call(&self) -> Stop {
        Stop { cancel: self.cancel.clone(), interrupt: self.interrupt.child_token() }
    }

    /// Waits for something before the call; fails as soon as the call must not start any more.
    async fn unless_stopped<T>(&self, wait: impl Future<Output = T>) -> Result<T, ToolOutput> {
        tokio::select! {
            biased;
            () = self.interrupt.cancelled() => Err(self.output()),
            done = wait => Ok(done),
        }
    }

    fn output(&self) -> ToolOutput {
        ToolOutput::error(self.text().unwrap_or(ABORTED))
    }
}

/// A call that may be run: its tool, and what was decided about it.
pub(crate) struct Prepared {
    tool: Arc<dyn Tool>,
    verdict: Verdict,
    hook: Option<Arc<dyn ToolCallHook>>,
}

/// A call that may run, with valid arguments.
pub(crate) struct Allowed {
    tool: Arc<dyn Tool>,
    arguments: Map<String, Value>,
    hook: Option<Arc<dyn ToolCallHook>>,
    /// Who has allowed it; `None` if nobody decides about it.
    pub by: Option<PermissionBy>,
}

/// A call that is not run.
pub(crate) struct NotRun {
    pub output: ToolOutput,
    /// Who has refused it; `None` if it is not run for another reason.
    pub by: Option<PermissionBy>,
}

impl From<ToolOutput> for NotRun {
    fn from(output: ToolOutput) -> NotRun {
        NotRun { output, by: None }
    }
}

impl Prepared {
    pub fn runs_programs(&self) -> bool {
        self.tool.runs_programs()
    }

    pub fn is_remote(&self) -> bool {
        self.tool.origin().is_some()
    }

    /// Waits until it is decided whether the call may run.
    pub async fn decided(self, stop: &Stop) -> Result<Allowed, NotRun> {
        let Prepared { tool, mut verdict, hook } = self;
        loop {
            verdict = match verdict {
                Verdict::Run { arguments, by } => return Ok(Allowed { tool, arguments, hook, by }),
                Verdict::Refuse { output, by } => return Err(NotRun { output, by: Some(by) }),
                // A decision that stops the run as well is told as it was made.
                Verdict::Later(pending) => tokio::select! {
                    biased;
                    verdict = pending => verdict,
                    () = stop.interrupt.cancelled() => return Err(stop.output().into()),
                },
            }
        }
    }
}

impl Allowed {
    /// Waits until nothing is paused and the hook lets the call start. `Err` is its result.
    pub async fn can_start(&self, call: &Call, stop: &Stop, control: &CallControl) -> Result<(), ToolOutput> {
        stop.unless_stopped(control.until_resumed()).await?;
        let Some(hook) = &self.hook else { return Ok(()) };
        stop.unless_stopped(hook.before_start(call, &*self.tool, &self.arguments)).await??;
        // A pause may have begun while the hook took its time.
        stop.unless_stopped(control.until_resumed()).await
    }
}

/// Prepares a call to run.
pub(crate) async fn prepare(
    turn: &Turn,
    answer: &AssistantMessage,
    call: &ToolCall,
    shown: &Call,
    stop: &Stop,
) -> Result<Prepared, NotRun> {
    if let Some(text) = stop.text() {
        return Err(ToolOutput::error(text).into());
    }
    let (tool, arguments) =
        stop.unless_stopped(find_and_check(turn, answer, call)).await?.map_err(ToolOutput::error)?;
    let hook = turn.hook.clone();
    let verdict = match &hook {
        Some(hook) => stop.unless_stopped(hook.admit(shown, &*tool, arguments)).await?,
        None => Verdict::Run { arguments, by: None },
    };
    match verdict {
        Verdict::Refuse { output, by } => Err(NotRun { output, by: Some(by) }),
        verdict => Ok(Prepared { tool, verdict, hook }),
    }
}

/// Finds the tool and corrects and checks the arguments; `Err` is what the model reads.
async fn find_and_check(
    turn: &Turn,
    answer: &AssistantMessage,
    call: &ToolCall,
) -> Result<(Arc<dyn Tool>, Map<String, Value>), String> {
    if answer.stop_reason == StopReason::Length {
        return Err(format!(
            "Tool call \"{}\" was not executed: the response hit the output token limit, so its arguments may be \
             truncated. Re-issue the tool call with complete arguments.",
            call.name
        ));
    }
    let Some((tool, schema)) = turn.tools.get(&call.name) else {
        return Err(format!("Tool {} not found", call.name));
    };
    if call.arguments_truncated == Some(true) {
        return Err(incomplete(answer, call));
    }
    let arguments = match tool.prepare(&call.arguments) {
        Some(prepared) => prepared.await?,
        None => call.arguments.clone(),
    };
    let arguments = schema.check(&call.name, &tool.adapt(arguments))?;
    Ok((tool.clone(), arguments))
}

/// What the model reads about arguments that could not be parsed. Such calls are never repaired and run.
fn incomplete(answer: &AssistantMessage, call: &ToolCall) -> String {
    let note = answer.diagnostics.as_ref().and_then(|notes| notes.get("toolCalls")?.get(&call.id));
    let noted = |member: &str| note.and_then(|note| note.get(member)?.as_str());
    let problem = match noted("kind") {
        Some(kind) => format!("its arguments must be a JSON object, got {kind}. Issue the call again with an object."),
        None => format!(
            "its arguments are not valid JSON ({}). Issue the call again with complete arguments.",
            noted("error").unwrap_or("the argument text is not complete JSON")
        ),
    };
    let received = noted("raw").map(|raw| format!("\n\nReceived arguments:\n{}", cut(raw))).unwrap_or_default();
    format!("Tool call \"{}\" was not executed: {problem}{received}", call.name)
}

/// Returns a text with its middle left out if it is long.
fn cut(text: &str) -> Cow<'_, str> {
    let n_left_out = text.len().saturating_sub(2 * QUOTED);
    if n_left_out == 0 {
        return text.into();
    }
    let (start, end) = (text.floor_char_boundary(QUOTED), text.ceil_char_boundary(text.len() - QUOTED));
    format!("{}\n[{} bytes left out]\n{}", &text[..start], end - start, &text[end..]).into()
}

impl Allowed {
    /// Runs the call and shows its result to the hook.
    pub async fn run(
        self,
        call: &Call,
        update: ToolUpdate,
        trace: Option<Arc<TraceContext>>,
        stop: &Stop,
    ) -> ToolOutput {
        let Allowed { tool, arguments, hook, .. } = self;
        let context = ToolContext { call_id: call.id.clone(), cancel: stop.interrupt.clone(), update, trace };
        let Some(hook) = hook.filter(|hook| hook.amends()) else { return tool.run(arguments, context).await };
        let input = arguments.clone();
        let output = tool.run(arguments, context).await;
        let given_up = async {
            stop.interrupt.cancelled().await;
            tokio::time::sleep(AMEND_GRACE).await;
        };
        let amended = tokio::select! {
            biased;
            amended = hook.amend(call, input, &output) => amended,
            () = given_up => None,
        };
        amended.unwrap_or(output)
    }
}
