//! Sends the prompts of the command line, one after the other, then ends.

use std::io::IsTerminal;

use pith_ai::{NO_KEY, NO_MODEL};
use pith_protocol::{AssistantEvent, AssistantMessage, Event, Id, Response, StreamUpdates};
use pith_session::{Outbox, Room};
use pith_tools::image::Rules;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::attach::{Draft, piped, resolve};
use super::client::{Client, Failure, Notice, Settled, is_busy, is_handled};
use super::drive;
use super::follow::Follower;
use super::screen::{Screen, Show, Streams};
use super::screen_outbox::ScreenOutbox;
use super::terminal::Abilities;
use crate::cli::Cli;
use crate::dialect::Dialect;
use crate::lifecycle::Ending;
use crate::open::{OpenRequest, OpenedSession, Shared};
use crate::outbox::WireOutbox;
use crate::sessions::in_use_advice;
use crate::transport::writer::FrameQueue;
use crate::transport::{finish, take_stdout};
use crate::{open, warn};

/// `-p`: prints the answer on stdout, and progress on stderr if that is a terminal.
pub fn print(cli: Cli, dialect: &'static Dialect) -> anyhow::Result<u8> {
    let asked_for = cli.print;
    let input = CommandLineInput::of(&cli);
    let has_messages = !input.messages.is_empty();
    let abilities = (Abilities::of(&std::io::stdout()), Abilities::of(&std::io::stderr()));
    let stdout = take_stdout()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = runtime
        .block_on(open::open(&Shared::default(), OpenRequest::of_process(cli, dialect, pith_ext::Mode::Print)?))?;
    let prompts = input.prompts(start.image_rules())?;
    if prompts.is_empty() {
        return nothing_to_do(asked_for, has_messages);
    }
    let problems = start.resource_problems();
    let ending = Ending::default();
    let on_broken = ending.clone();
    let (screen, painter) = Screen::start(Streams {
        answers: Box::new(stdout),
        answers_on: abilities.0,
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
    let outcome = run(&runtime, start, Box::new(outbox), notices, &ending, prompts);
    if let Ok(settled) = &outcome
        && !abilities.0.is_terminal
        && !settled.text.is_empty()
    {
        screen.show(Show::Say(settled.text.clone()));
    }
    screen.show(Show::Totals);
    drop(screen);
    finish(painter);
    end_process(&ending, outcome.err().map(NotDone::into_text))
}

/// `--mode json`: prints the session's header, then every event, one per line.
pub fn json(cli: Cli, dialect: &'static Dialect) -> anyhow::Result<u8> {
    let asked_for = cli.print;
    let input = CommandLineInput::of(&cli);
    let has_messages = !input.messages.is_empty();
    let stdout = take_stdout()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = runtime
        .block_on(open::open(&Shared::default(), OpenRequest::of_process(cli, dialect, pith_ext::Mode::Json)?))?;
    let prompts = input.prompts(start.image_rules())?;
    let ending = Ending::default();
    let on_broken = ending.clone();
    let (queue, writer) = FrameQueue::start(stdout, move || on_broken.host_gone())?;
    let (follower, notices) = Follower::new();
    let outbox = EventOutbox { wire: WireOutbox::without_greeting(queue.clone(), dialect), follower };
    queue.push(|out| out.extend_from_slice(start.header()));
    if prompts.is_empty() {
        queue.close();
        finish(writer);
        return nothing_to_do(asked_for, has_messages);
    }
    let outcome = run(&runtime, start, Box::new(outbox), notices, &ending, prompts);
    queue.close();
    finish(writer);
    end_process(
        &ending,
        match outcome {
            // The events say what stopped the run. It did what it was told, which benchmarks with a limit on turns rely
            // on.
            Ok(_) | Err(NotDone::Failed(Failure::Stopped(_))) => None,
            Err(NotDone::Failed(Failure::Failed(_)) | NotDone::Ended) => Some(String::new()),
            // There is no event for that.
            Err(NotDone::Refused(text)) => Some(text),
        },
    )
}

/// Why the work was not completed.
enum NotDone {
    /// A prompt was refused.
    Refused(String),
    /// The last answer says why.
    Failed(Failure),
    /// The session has ended.
    Ended,
}

impl NotDone {
    fn into_text(self) -> String {
        match self {
            NotDone::Refused(text) => text,
            NotDone::Failed(failure) => failure.into_text(),
            NotDone::Ended => String::new(),
        }
    }
}

fn run(
    runtime: &Runtime,
    start: OpenedSession,
    outbox: Box<dyn Outbox>,
    notices: mpsc::UnboundedReceiver<Notice>,
    ending: &Ending,
    prompts: Vec<Value>,
) -> Result<Settled, NotDone> {
    runtime.block_on(async {
        ending.watch_signals();
        let parts = start.into_parts(outbox);
        drive(parts, notices, ending, async |client| ask_all(client, prompts).await).await
    })
}

/// Sends the prompts in turn; the last answer decides. A prompt that cannot be sent ends the run.
async fn ask_all(client: &mut Client, prompts: Vec<Value>) -> Result<Settled, NotDone> {
    let mut last = Ok(Settled::default());
    for prompt in prompts {
        last = ask(client, prompt).await;
        if matches!(last, Err(NotDone::Refused(_) | NotDone::Ended)) {
            break;
        }
    }
    last
}

async fn ask(client: &mut Client, prompt: Value) -> Result<Settled, NotDone> {
    let sent = client.send(prompt).await;
    // Set after an extension has handled the prompt: it may have started a run.
    let mut asked = None;
    while let Some(notice) = client.next().await {
        match notice {
            Notice::Answer { result: Err(text), .. } if text == NO_MODEL => {
                return Err(NotDone::Refused(NO_KEY.to_owned()));
            }
            Notice::Answer { result: Err(text), .. } => return Err(NotDone::Refused(in_use_advice(&text))),
            Notice::Answer { id, result: Ok(data) } if id == sent && is_handled(&data) => {
                asked = Some(client.send(json!({"type": "get_state"})).await);
            }
            Notice::Answer { id, result: Ok(state) } if Some(id) == asked && !is_busy(&state) => {
                return Ok(Settled::default());
            }
            Notice::Answer { result: Ok(_), .. } => {}
            Notice::Settled(Settled { failure: Some(failure), .. }) => return Err(NotDone::Failed(failure)),
            Notice::Settled(settled) => return Ok(settled),
        }
    }
    Err(NotDone::Ended)
}

/// Prints the failure, if any, and ends the process, because a blocked read of stdin would keep it alive.
fn end_process(ending: &Ending, failure: Option<String>) -> anyhow::Result<u8> {
    if ending.stop.is_cancelled() {
        std::process::exit(ending.code());
    }
    let Some(text) = failure else { return Ok(0) };
    if !text.is_empty() {
        warn(&text);
    }
    Ok(1)
}

/// Nothing to do is no failure, but possibly a mistake; an empty message is probably an unset variable of a script.
fn nothing_to_do(asked_for: bool, has_messages: bool) -> anyhow::Result<u8> {
    anyhow::ensure!(!has_messages, "the message is empty; give some text, as in pith -p \"What is this?\", or pipe it");
    if !asked_for {
        warn("nothing to do: give a message, pipe some text, or use --mode rpc; see pith --help");
    }
    Ok(0)
}

/// The messages and files of the command line.
struct CommandLineInput {
    messages: Vec<String>,
    files: Vec<String>,
}

impl CommandLineInput {
    fn of(cli: &Cli) -> Self {
        CommandLineInput { messages: cli.messages.clone(), files: cli.files.clone() }
    }

    /// Makes the prompts; piped text, files and the first message make the first one.
    fn prompts(self, rules: Rules) -> anyhow::Result<Vec<Value>> {
        let cwd = crate::current_dir()?;
        let home = std::env::home_dir().unwrap_or_default();
        let mut first = Draft::default();
        if !std::io::stdin().is_terminal() {
            first.push(&piped(std::io::stdin().lock())?);
        }
        for file in &self.files {
            first.attach(&resolve(file, &cwd, &home), rules)?;
        }
        let mut messages = self.messages.into_iter();
        first.push(&messages.next().unwrap_or_default());
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
