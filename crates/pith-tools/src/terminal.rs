//! Commands of the model in terminals of an editor, whose user watches them there.
//!
//! Only where nothing is promised that an editor does not keep: commands that a sandbox holds, or that must not see
//! credentials, run here.

use std::path::PathBuf;
use std::time::Duration;

use pith_agent::{ToolContext, ToolOutput};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::bash::{Progress, with_signal};
use crate::command::environment::Caller;
use crate::command::follow::Ending;
use crate::denied;
use crate::process::{CommandLine, Exit};
use crate::tool::Outcome;
use crate::workbench::Workbench;

/// What the model is told when the editor has dropped the beginning of the output.
const TRUNCATED: &str = "\n[The editor has kept only the end of the output.]";

/// A command for a terminal of the editor.
pub struct TerminalCommand<'a> {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub cwd: PathBuf,
    /// Set beside the variables that the editor gives its terminals.
    pub env: Vec<(String, String)>,
    /// Fired when the command is to be ended.
    pub stop: &'a CancellationToken,
    /// Called with the id of the terminal.
    pub started: &'a (dyn Fn(&str) + Send + Sync),
}

/// A command that ran in a terminal.
pub struct InTerminal {
    pub output: String,
    /// Whether the beginning of the output is missing.
    pub is_truncated: bool,
    pub end: TerminalEnd,
}

impl InTerminal {
    /// A command that was told to stop and has shown nothing.
    pub fn stopped() -> Self {
        InTerminal { output: String::new(), is_truncated: false, end: TerminalEnd::Stopped }
    }
}

/// How a command in a terminal ended.
pub enum TerminalEnd {
    Exited(i32),
    /// By a signal, with its name as the editor tells it.
    Signalled(String),
    /// It was told to stop.
    Stopped,
}

/// Why a command has no result.
pub enum TerminalFailure {
    /// The editor has not started it.
    NotStarted,
    /// It may have run, at least in part.
    Lost(String),
}

/// Runs a command in a terminal of the editor; `None` if it is to be run here.
pub(crate) async fn run(
    workbench: &Workbench,
    command: &str,
    timeout: Option<Duration>,
    context: &ToolContext,
) -> Option<Outcome> {
    let bridge = workbench.bridge()?;
    let env = workbench.call_options().env;
    if env.inherited.is_some() || !env.hidden.is_empty() {
        return None;
    }
    let CommandLine { program, arguments, cwd, .. } =
        workbench.shell.command_line(command, &workbench.base.cwd, Vec::new()).ok()?;
    let arguments = arguments.into_iter().map(|argument| argument.into_string().ok()).collect::<Option<_>>()?;
    let (stop, has_started) = (context.cancel.child_token(), CancellationToken::new());
    let started = |id: &str| {
        has_started.cancel();
        (context.update)(ToolOutput { details: Some(json!({"terminalId": id})), ..ToolOutput::default() });
    };
    let mut env = env.own(Caller::Model);
    env.extend(context.trace.iter().flat_map(|trace| trace.variables()));
    let mut running =
        bridge.run_terminal(TerminalCommand { program, arguments, cwd, env, stop: &stop, started: &started })?;
    let time_limit = async {
        match timeout {
            // The editor may ask its user first; that time is not the command's.
            Some(timeout) => {
                has_started.cancelled().await;
                tokio::time::sleep(timeout).await;
            }
            None => std::future::pending().await,
        }
    };
    let ran = tokio::select! {
        biased;
        ran = &mut running => ran,
        () = time_limit => {
            stop.cancel();
            running.await
        }
    };
    match ran {
        Ok(ran) => Some(finish(workbench, ran, timeout, context)),
        Err(TerminalFailure::NotStarted) => None,
        Err(TerminalFailure::Lost(why)) => Some(Err(format!("The terminal of the editor failed: {why}"))),
    }
}

/// Turns what a terminal has shown into a result, as that of a command that ran here.
fn finish(workbench: &Workbench, ran: InTerminal, timeout: Option<Duration>, context: &ToolContext) -> Outcome {
    let mut progress = Progress::new(workbench, context.update.clone());
    // A report of it would take the place of the one that names the terminal.
    progress.keep(ran.output.as_bytes());
    if ran.is_truncated {
        progress.keep(TRUNCATED.as_bytes());
    }
    let ending = match ran.end {
        TerminalEnd::Exited(code) => Ending::Exited(Exit::Code(code)),
        TerminalEnd::Stopped if context.cancel.is_cancelled() => Ending::Cancelled,
        TerminalEnd::Stopped => Ending::TimedOut { shell: None },
        TerminalEnd::Signalled(signal) => {
            let text = progress.failed(&format!("Command was ended by {signal}"));
            return Ok(with_signal(denied::failed(text), &signal));
        }
    };
    progress.finish(ending, timeout)
}
