//! The `bash` tool.

use std::sync::Arc;
use std::time::Duration;

use pith_agent::control::with_limit;
use pith_agent::{BoxFuture, Effect, Tool, ToolContext, ToolOutput, ToolUpdate, TraceContext};
use pith_protocol::{Block, LimitUse, ToolSpec};
use pith_sandbox::watch::{CommandWatch, PutBack};
use pith_secrets::Stream;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::arguments::Arguments;
use crate::command::capture::{Capture, Captured};
use crate::command::decode::Decoder;
use crate::command::environment::{Caller, with_trace};
use crate::command::follow::{Ending, Listener, ShellExit, follow};
use crate::command::limits::CommandLimits;
use crate::denied;
use crate::process::{CommandNamespaces, Exit, ProcessLimits, Running, not_run};
use crate::proxy::RefusedHost;
use crate::sandbox::{Enforced, Sandbox};
use crate::terminal;
use crate::tool::{Outcome, output, spec};
use crate::truncate::Limits;
use crate::workbench::Workbench;

/// The longest timeout that hosts with 32-bit millisecond timers can represent.
const MAX_TIMEOUT: f64 = 2_147_483.647;
/// How much of the output an update shows.
const UPDATE: Limits = Limits { lines: Limits::RESULT.lines, bytes: 16 * 1024 };
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);
/// The interval once the output is too large to be read as it is produced.
const SLOW_UPDATE_INTERVAL: Duration = Duration::from_millis(250);
const LARGE_OUTPUT: usize = 1 << 20;

/// Runs shell commands for the model.
pub struct Bash {
    spec: ToolSpec,
    workbench: Arc<Workbench>,
}

/// What the sandbox did not let a command do, though the command itself may have succeeded.
#[derive(Default)]
struct Refused {
    hosts: Vec<RefusedHost>,
    put_back: Vec<PutBack>,
}

impl Bash {
    /// Creates the tool of one session.
    pub fn new(workbench: Arc<Workbench>) -> Self {
        let parameters = if workbench.allows_unsandboxed() { with_unsandboxed(parameters()) } else { parameters() };
        Bash { spec: spec("bash", DESCRIPTION, parameters), workbench }
    }

    async fn run_command(&self, arguments: &Arguments, context: &ToolContext, refused: &mut Refused) -> Outcome {
        (context.update)(ToolOutput::default());
        let timeout = arguments.number("timeout")?.map(timeout).transpose()?;
        if context.cancel.is_cancelled() {
            return Err("Command aborted".to_owned());
        }
        let command = arguments.text("command")?;
        let limits = self.workbench.call_options().limits;
        // An editor holds the commands in its terminals to no limits.
        if limits.is_empty()
            && let Some(outcome) = terminal::run(&self.workbench, command, timeout, context).await
        {
            return outcome;
        }
        // The gate has asked the user; without the setting the model cannot leave the sandbox.
        let start = if self.unsandboxed(&arguments.0).is_some() { start_outside } else { start };
        let Started { running, watch, namespaces } =
            start(&self.workbench, command, Caller::Model, context.trace.as_deref())?;
        let mut progress = Progress::new(&self.workbench, context.update.clone());
        let followed = follow(running, &mut progress, &context.cancel, timeout, &limits).await;
        let ending = followed.map_err(|error| not_run(&error))?;
        refused.hosts = namespaces.map(|namespaces| namespaces.refused_hosts()).unwrap_or_default();
        if let Some(watch) = watch {
            let changes = watch.changes();
            refused.put_back = changes.put_back;
            if let Some(path) = changes.protected {
                return Err(denied::changed(path.strip_prefix(&self.workbench.base.cwd).unwrap_or(&path)));
            }
        }
        progress.finish(ending, timeout)
    }
}

impl Bash {
    /// Why a call asks to leave the sandbox, if it does and may ask.
    fn unsandboxed(&self, arguments: &Map<String, Value>) -> Option<String> {
        let asks = arguments.get("unsandboxed") == Some(&Value::Bool(true)) && self.workbench.allows_unsandboxed();
        asks.then(|| arguments.get("reason").and_then(Value::as_str).unwrap_or("none given").to_owned())
    }
}

/// A command that runs, and what guards the protected paths from it.
pub(crate) struct Started {
    pub running: Running,
    pub watch: Option<CommandWatch>,
    /// What it runs in.
    pub namespaces: Option<CommandNamespaces>,
}

/// Starts `command` in the configured shell.
pub(crate) fn start(
    workbench: &Workbench,
    command: &str,
    caller: Caller,
    trace: Option<&TraceContext>,
) -> Result<Started, String> {
    let sandbox = workbench.sandbox.as_ref().map(|sandbox| sandbox.for_commands_of(caller)).transpose()?.flatten();
    start_in(workbench, sandbox, command, caller, trace)
}

/// Starts a command that the user lets out of the sandbox.
fn start_outside(
    workbench: &Workbench,
    command: &str,
    caller: Caller,
    trace: Option<&TraceContext>,
) -> Result<Started, String> {
    start_in(workbench, None, command, caller, trace)
}

fn start_in(
    workbench: &Workbench,
    sandbox: Option<&Enforced>,
    command: &str,
    caller: Caller,
    trace: Option<&TraceContext>,
) -> Result<Started, String> {
    let mut env = workbench.call_options().env;
    let environment = match env.inherited.take() {
        Some(own) => env.apply(own.into_iter().map(|(name, value)| (name.into(), value.into())), caller),
        None => env.apply(std::env::vars_os(), caller),
    };
    let environment = match sandbox {
        Some(sandbox) => sandbox.filter(environment),
        None => environment,
    };
    let environment = with_trace(environment, trace);
    let confinement = sandbox.map(|sandbox| sandbox.for_command(&workbench.jobs)).transpose()?;
    let watch = confinement.as_ref().and_then(|confinement| confinement.watch.clone());
    let namespaces = confinement.as_ref().and_then(|confinement| confinement.namespaces.clone());
    let command_line = workbench.shell.command_line(command, &workbench.base.cwd, environment)?;
    let limits = match caller {
        Caller::Model => workbench.call_options().limits.processes,
        Caller::Host => ProcessLimits::default(),
    };
    let running = workbench.jobs.spawn_limited(command_line.confined_to(confinement), limits);
    let running = running.map_err(|error| not_run(&error))?;
    Ok(Started { running, watch, namespaces })
}

/// The result of a command that has passed a limit.
fn limited(text: &str, reached: &LimitUse) -> ToolOutput {
    let LimitUse { name, max, .. } = reached;
    let status = format!("Command ended: limits.{name} ({max})");
    let shown = if text.is_empty() { status } else { format!("{text}\n\n{status}") };
    with_limit(ToolOutput::error(shown), reached)
}

/// Says why a command was still running although its shell had ended.
fn still_writing(shell: ShellExit) -> String {
    let seconds = (shell.after.as_secs_f64() * 10.0).round() / 10.0;
    format!(
        ". The shell exited with code {} after {seconds} seconds, but background processes it started kept writing \
         output until the timeout.",
        shell.code
    )
}

/// Says which signal has ended a command.
pub(crate) fn with_signal(mut output: ToolOutput, signal: &str) -> ToolOutput {
    output.details.get_or_insert_with(|| json!({}))["signal"] = json!(signal);
    output
}

fn timeout(seconds: f64) -> Result<Duration, String> {
    if !(seconds.is_finite() && seconds > 0.0) {
        return Err("Invalid timeout: must be a finite number of seconds".to_owned());
    }
    if seconds > MAX_TIMEOUT {
        return Err(format!("Invalid timeout: maximum is {MAX_TIMEOUT} seconds"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Collects the output and sends updates to the host.
pub(crate) struct Progress<'a> {
    sandbox: Option<&'a Sandbox>,
    limits: CommandLimits,
    /// The output without secrets.
    masked: Stream,
    decoder: Decoder,
    capture: Capture<'a>,
    update: ToolUpdate,
    last_update: Instant,
    has_unsent: bool,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(workbench: &'a Workbench, update: ToolUpdate) -> Self {
        Progress {
            sandbox: workbench.sandbox.as_deref(),
            limits: workbench.call_options().limits,
            masked: Stream::new(workbench.secrets.clone()),
            decoder: Decoder::without_mark(),
            capture: Capture::new(&workbench.output_dir),
            update,
            last_update: Instant::now(),
            has_unsent: false,
        }
    }

    /// Takes output that the host is not told of before the end.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        let (capture, decoder) = (&mut self.capture, &mut self.decoder);
        self.masked.push(bytes, |bytes| capture.take(decoder, bytes));
    }

    pub(crate) fn finish(self, ending: Ending, timeout: Option<Duration>) -> Outcome {
        let status = match ending {
            Ending::Exited(Exit::Code(0)) => {
                let captured = self.complete();
                let text = captured.annotated();
                let shown = if text.is_empty() { "(no output)".to_owned() } else { text };
                return Ok(ToolOutput { details: captured.details(), ..ToolOutput::text(shown) });
            }
            Ending::Exited(exit) => {
                let code = exit.code();
                let (sandbox, limits) = (self.sandbox, self.limits);
                let text = self.complete().annotated();
                if let Some(reached) = limits.of_failure(code, &text) {
                    return Ok(limited(&text, &reached));
                }
                let shown = if text.is_empty() { "(no output)" } else { &text };
                let remark = sandbox.and_then(|sandbox| sandbox.remark(shown));
                let remark = remark.map(|remark| format!("\n{remark}")).unwrap_or_default();
                let text = format!("{shown}\n\nCommand exited with code {code}{remark}");
                return match exit.signal() {
                    Some(signal) => Ok(with_signal(denied::failed(text), &signal)),
                    None => Err(text),
                };
            }
            Ending::TimedOut { shell } => {
                let text = format!("Command timed out after {} seconds", timeout.unwrap_or_default().as_secs_f64());
                text + &shell.map(still_writing).unwrap_or_default()
            }
            Ending::Cancelled => "Command aborted".to_owned(),
            Ending::Limited(reached) => return Ok(limited(&self.complete().annotated(), &reached)),
        };
        Err(self.failed(&status))
    }

    /// The output, then why there is no more of it.
    pub(crate) fn failed(self, status: &str) -> String {
        let text = self.complete().annotated();
        if text.is_empty() { status.to_owned() } else { format!("{text}\n\n{status}") }
    }

    fn complete(mut self) -> Captured {
        let (capture, decoder) = (&mut self.capture, &mut self.decoder);
        self.masked.finish(|bytes| capture.take(decoder, bytes));
        let tail = &mut self.capture.tail;
        self.decoder.finish(|text| tail.push(text));
        if self.has_unsent {
            self.flush();
        }
        self.capture.finish()
    }
}

impl Listener for Progress<'_> {
    fn output(&mut self, bytes: &[u8]) {
        self.keep(bytes);
        self.has_unsent = true;
    }

    fn flush_at(&self) -> Option<Instant> {
        let interval =
            if self.capture.tail.total().bytes > LARGE_OUTPUT { SLOW_UPDATE_INTERVAL } else { UPDATE_INTERVAL };
        self.has_unsent.then(|| self.last_update + interval)
    }

    fn flush(&mut self) {
        let (text, truncation) = self.capture.tail.cut(UPDATE);
        let details = self.capture.details(truncation.as_ref());
        (self.update)(ToolOutput { content: vec![Block::text(text)], details: Some(details), ..ToolOutput::default() });
        self.has_unsent = false;
        self.last_update = Instant::now();
    }
}

impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn snippet(&self) -> Option<&str> {
        Some("Run bash commands")
    }

    fn runs_programs(&self) -> bool {
        true
    }

    fn effect(&self, arguments: &Map<String, Value>) -> Effect {
        let command = arguments.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
        Effect::Command { command, unsandboxed: self.unsandboxed(arguments) }
    }

    fn rules(&self) -> Vec<&str> {
        vec!["Facts about this session are in the PI_* environment variables of bash commands"]
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move {
            let mut refused = Refused::default();
            let outcome = self.run_command(&Arguments(arguments), &context, &mut refused).await;
            let output = denied::with_put_back(output(outcome), &refused.put_back, &self.workbench.base.cwd);
            denied::with_hosts(output, &refused.hosts)
        })
    }
}

const DESCRIPTION: &str = "Run a bash command in the working directory. Returns stdout and stderr together. \
    Long output keeps only its last 2000 lines or 50KB, whichever is less; the full output is then saved to a file \
    named in the result. A timeout in seconds is optional; without one the command may run as long as it takes.";

fn parameters() -> Value {
    json!({
        "type": "object",
        "required": ["command"],
        "properties": {
            "command": {"type": "string", "description": "The bash command to run"},
            "timeout": {"type": "number", "description": "Seconds after which the command is ended (none by default)"},
        },
    })
}

/// Adds how the model asks to leave the sandbox.
fn with_unsandboxed(mut parameters: Value) -> Value {
    parameters["properties"]["unsandboxed"] = json!({
        "type": "boolean",
        "description": "Run the command outside the sandbox. The user is asked each time; use it only for what the \
            sandbox does not let through",
    });
    parameters["properties"]["reason"] =
        json!({"type": "string", "description": "With unsandboxed: why the command cannot run inside, for the user"});
    parameters
}
