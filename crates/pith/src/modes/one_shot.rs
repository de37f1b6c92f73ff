//! Sends the prompts of the command line, one after the other, then ends.

use std::io::IsTerminal;

use pith_protocol::{AssistantEvent, AssistantMessage, Event, Id, Response, StreamUpdates, json};
use pith_resources::PromptText;
use pith_session::{Outbox, Room};
use pith_tools::image::Rules;
use pith_visible::visible;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::answer_schema::AnswerSchema;
use super::ask::{Outcome, Problem, ProblemKind, ask_all};
use super::attach::{Draft, piped, resolve};
use super::client::Notice;
use super::drive;
use super::follow::Follower;
use super::output_file::{OutputFile, RecordFile};
use super::screen::{Screen, Show, Streams};
use super::screen_outbox::ScreenOutbox;
use super::terminal::Abilities;
use crate::cli::Cli;
use crate::dialect::Dialect;
use crate::lifecycle::Ending;
use crate::open::{OpenRequest, OpenedSession, Shared};
use crate::outbox::WireOutbox;
use crate::transport::writer::FrameQueue;
use crate::transport::{finish, take_stdout};
use crate::{debug, open, warn};

/// The exit code of work that a limit of the session has ended.
const LIMITED: u8 = 4;

/// `-p`: prints the answer on stdout, and progress on stderr if that is a terminal.
pub fn print(mut cli: Cli, dialect: &'static Dialect) -> anyhow::Result<u8> {
    let assignment = Assignment::of(&mut cli)?;
    let is_verbose = cli.verbose;
    let abilities = (Abilities::of(&std::io::stdout()), Abilities::of(&std::io::stderr()));
    let stdout = take_stdout()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shared = Shared::default();
    let start = runtime.block_on(open::open(&shared, OpenRequest::of_process(cli, dialect, pith_ext::Mode::Print)?))?;
    let prompts = assignment.input.prompts(start.image_rules())?;
    if prompts.is_empty() {
        return assignment.nothing_to_do();
    }
    let problems = start.resource_problems();
    let ending = Ending::default();
    let on_broken = ending.clone();
    // An answer for a program is shown when it is known to be right.
    let is_streamed = assignment.schema.is_none() && assignment.output.is_none() && abilities.0.is_terminal;
    let (screen, painter) = Screen::start(Streams {
        answers: Box::new(stdout),
        answers_on: if is_streamed { abilities.0 } else { Abilities::default() },
        activity_on: abilities.1,
        on_broken: Box::new(move |error| {
            // A reader that has closed the pipe is no error worth a message.
            if error.kind() != std::io::ErrorKind::BrokenPipe {
                warn(&format!("Error: cannot write the answer to stdout: {error}"));
            }
            on_broken.host_gone();
        }),
    })?;
    problems.into_iter().for_each(|problem| screen.show(Show::Note(problem)));
    let (follower, notices) = Follower::new();
    let outbox = ScreenOutbox::new(screen.clone(), follower);
    let outbox = if abilities.1.is_terminal { outbox } else { outbox.warning_on_pipe() };
    let outbox = debug::watched(Box::new(outbox), dialect)?;
    let n_prompts = prompts.len();
    let outcome = run(&runtime, start, outbox, notices, &ending, prompts, assignment.schema.as_ref());
    let answer = final_answer(&outcome, assignment.schema.is_some());
    let mut written = Ok(());
    match (answer, assignment.output) {
        (Some(text), Some(file)) => written = file.write(&format!("{text}\n")),
        (Some(text), None) if !is_streamed => {
            screen.show(Show::Say(if abilities.0.is_terminal { visible(text).into_owned() } else { text.to_owned() }));
        }
        (Some(_), None) | (None, _) => {}
    }
    screen.show(Show::Totals);
    drop(screen);
    finish(painter);
    shared.end();
    written?;
    end_process(&ending, failures(&outcome, n_prompts, is_verbose), &outcome)
}

/// The text to print; `None` if the last prompt has no answer, or not the one that was asked for.
fn final_answer(outcome: &Outcome, has_schema: bool) -> Option<&str> {
    let is_right = outcome.last.failure.is_none() && (!has_schema || outcome.value.is_some());
    Some(outcome.last.text.as_str()).filter(|text| is_right && !text.is_empty())
}

/// What to print on stderr about prompts that failed; `None` if none did.
fn failures(outcome: &Outcome, n_prompts: usize, is_verbose: bool) -> Option<String> {
    let describe = |problem: &Problem| {
        let text = match &problem.kind {
            kind @ ProblemKind::Cut => format!("Error: {}", kind.text()),
            kind @ ProblemKind::Misfit(_) => {
                format!("Error: {}\nThe last answer was:\n{}", kind.text(), outcome.last.text)
            }
            ProblemKind::Failed(failure) => {
                let text = failure.clone().into_text();
                if is_verbose && text != failure.text { format!("{text}\n{}", failure.text) } else { text }
            }
            kind => kind.text().to_owned(),
        };
        let is_one_of_many = n_prompts > 1 && !text.is_empty();
        if is_one_of_many { format!("message {}: {text}", problem.n_prompt) } else { text }
    };
    let texts: Vec<String> = outcome.problems.iter().map(describe).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// `--mode json`: prints the session's header, then every event, one per line, then the result.
pub fn json(mut cli: Cli, dialect: &'static Dialect) -> anyhow::Result<u8> {
    let mut assignment = Assignment::of(&mut cli)?;
    let stdout = take_stdout()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shared = Shared::default();
    let start = runtime.block_on(open::open(&shared, OpenRequest::of_process(cli, dialect, pith_ext::Mode::Json)?))?;
    let prompts = assignment.input.prompts(start.image_rules())?;
    let ending = Ending::default();
    let on_broken = ending.clone();
    let records = match assignment.output.take() {
        Some(file) => file.into_records()?,
        None => RecordFile::stdout(stdout),
    };
    let (queue, writer) = FrameQueue::start(records, move || on_broken.host_gone())?;
    let (follower, notices) = Follower::new();
    let outbox = EventOutbox { wire: WireOutbox::without_greeting(queue.clone(), dialect), follower };
    queue.push(|out| out.extend_from_slice(start.header()));
    let opened = start.session_name();
    let outcome = if prompts.is_empty() {
        Outcome::default()
    } else {
        run(&runtime, start, Box::new(outbox), notices, &ending, prompts.clone(), assignment.schema.as_ref())
    };
    queue.push(|out| json::append(out, &outcome.record(&opened)));
    queue.close();
    finish(writer);
    shared.end();
    if prompts.is_empty() {
        return assignment.nothing_to_do();
    }
    end_process(&ending, silent_failures(&outcome), &outcome)
}

/// What stderr says of a failed run whose events were printed; `None` if it counts as a success.
///
/// The events say what stopped the run. It did what it was told, which benchmarks with a limit on turns rely on; an
/// answer that was cut off is an answer.
fn silent_failures(outcome: &Outcome) -> Option<String> {
    let texts = outcome.problems.iter().filter_map(|problem| match &problem.kind {
        ProblemKind::Failed(failure) if failure.is_on_purpose => None,
        ProblemKind::Cut | ProblemKind::NotAllowed(_) => None,
        ProblemKind::Failed(_) | ProblemKind::Ended => Some(String::new()),
        // There is no event for these.
        ProblemKind::Refused(text) => Some(text.clone()),
        kind @ ProblemKind::Misfit(_) => Some(format!("Error: {}", kind.text())),
    });
    texts.reduce(|all, text| if all.is_empty() { text } else { all })
}

fn run(
    runtime: &Runtime,
    start: OpenedSession,
    outbox: Box<dyn Outbox>,
    notices: mpsc::UnboundedReceiver<Notice>,
    ending: &Ending,
    prompts: Vec<Value>,
    schema: Option<&AnswerSchema>,
) -> Outcome {
    runtime.block_on(async {
        ending.watch_signals();
        let parts = start.into_parts(outbox);
        drive(parts, notices, ending, async |client| ask_all(client, prompts, schema).await).await
    })
}

/// What the command line asks for.
struct Assignment {
    input: CommandLineInput,
    /// Whether `-p` was given.
    is_asked_for: bool,
    schema: Option<AnswerSchema>,
    output: Option<OutputFile>,
}

impl Assignment {
    /// Reads the schema and prepares the file, before anything else is done.
    fn of(cli: &mut Cli) -> anyhow::Result<Self> {
        let output = std::mem::take(&mut cli.output);
        let schema = output.schema.map(|path| AnswerSchema::load(&path, output.n_tries)).transpose()?;
        cli.append_system_prompt.extend(schema.as_ref().map(|schema| PromptText::Literal(schema.instruction())));
        Ok(Assignment {
            input: CommandLineInput { messages: cli.messages.clone(), files: cli.files.clone() },
            is_asked_for: cli.print,
            schema,
            output: output.file.as_deref().map(OutputFile::prepare).transpose()?,
        })
    }

    /// Nothing to do is no failure, but possibly a mistake; an empty message is probably an unset variable of a script.
    fn nothing_to_do(&self) -> anyhow::Result<u8> {
        anyhow::ensure!(
            self.input.messages.is_empty(),
            "the message is empty; give some text, as in pith -p \"What is this?\", or pipe it"
        );
        if !self.is_asked_for {
            warn("nothing to do: give a message, pipe some text, or use --mode rpc; see pith --help");
        }
        Ok(0)
    }
}

/// Prints the failure, if any, and ends the process, because a blocked read of stdin would keep it alive.
fn end_process(ending: &Ending, failure: Option<String>, outcome: &Outcome) -> anyhow::Result<u8> {
    if ending.stop.is_cancelled() {
        std::process::exit(ending.code());
    }
    let code = match failure {
        _ if outcome.is_limited() => LIMITED,
        Some(_) => 1,
        None => 0,
    };
    if let Some(text) = failure.filter(|text| !text.is_empty()) {
        warn(&text);
    }
    Ok(code)
}

/// The messages and files of the command line.
struct CommandLineInput {
    messages: Vec<String>,
    files: Vec<String>,
}

impl CommandLineInput {
    /// Makes the prompts; piped text, files and the first message make the first one.
    fn prompts(&self, rules: Rules) -> anyhow::Result<Vec<Value>> {
        let cwd = crate::current_dir()?;
        let home = std::env::home_dir().unwrap_or_default();
        let mut first = Draft::default();
        if !std::io::stdin().is_terminal() {
            first.push(&piped(std::io::stdin().lock())?);
        }
        for file in &self.files {
            first.attach(&resolve(file, &cwd, &home), rules)?;
        }
        let mut messages = self.messages.iter();
        first.push(messages.next().map_or("", String::as_str));
        let rest = messages.map(|message| json!({"type": "prompt", "message": message}));
        Ok(first.into_prompt().into_iter().chain(rest).collect())
    }
}

/// Sends only events; answers to the client's own commands are not printed.
struct EventOutbox {
    wire: WireOutbox,
    follower: Follower,
}

impl Outbox for EventOutbox {
    fn respond(&mut self, response: &Response<'_>) {
        self.follower.respond(response);
    }

    fn respond_unknown(&mut self, _id: &Id, _name: &str) {}

    fn event(&mut self, event: &Event<'_>) {
        self.wire.event(event);
        self.follower.event(event);
    }

    fn open_answer(&mut self, mode: StreamUpdates, start: &AssistantMessage) {
        self.wire.open_answer(mode, start);
    }

    fn stream(&mut self, event: &AssistantEvent) {
        self.wire.stream(event);
    }

    fn room(&self) -> Room {
        self.wire.room()
    }
}
