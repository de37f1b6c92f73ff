//! Prompts from the command line, one after the other, and then the end.

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

/// `-p`: the answer on stdout, and what goes on on a terminal's stderr.
pub fn print(cli: Cli, dialect: &'static Dialect) -> anyhow::Result<u8> {
    let asked_for = cli.print;
    let words = Words::of(&cli);
    let has_messages = !words.messages.is_empty();
    let abilities = (Abilities::of(&std::io::stdout()), Abilities::of(&std::io::stderr()));
    let stdout = take_stdout()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = runtime
        .block_on(open::open(&Shared::default(), OpenRequest::of_process(cli, dialect, pith_ext::Mode::Print)?))?;
    let prompts = words.prompts(start.image_rules())?;
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
            // A reader that has seen enough is no failure to talk about.
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
    leave(&ending, outcome.err().map(Undone::into_text))
}

/// `--mode json`: the session's header, then every event, a line each.
pub fn json(cli: Cli, dialect: &'static Dialect) -> anyhow::Result<u8> {
    let asked_for = cli.print;
    let words = Words::of(&cli);
    let has_messages = !words.messages.is_empty();
    let stdout = take_stdout()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = runtime
        .block_on(open::open(&Shared::default(), OpenRequest::of_process(cli, dialect, pith_ext::Mode::Json)?))?;
    let prompts = words.prompts(start.image_rules())?;
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
    leave(
        &ending,
        match outcome {
            // Whoever reads the events sees what stopped the run. It did what it was told, as a benchmark with a
            // limit on turns counts on.
            Ok(_) | Err(Undone::Told(Failure::Stopped(_))) => None,
            Err(Undone::Told(Failure::Failed(_)) | Undone::Ended) => Some(String::new()),
            // There is no event for that.
            Err(Undone::Refused(text)) => Some(text),
        },
    )
}

/// Why the work is not done.
enum Undone {
    /// A prompt was refused.
    Refused(String),
    /// The last answer says it.
    Told(Failure),
    /// The session has ended.
    Ended,
}

impl Undone {
    fn into_text(self) -> String {
        match self {
            Undone::Refused(text) => text,
            Undone::Told(failure) => failure.into_text(),
            Undone::Ended => String::new(),
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
) -> Result<Settled, Undone> {
    runtime.block_on(async {
        ending.watch_signals();
        let parts = start.into_parts(outbox);
        drive(parts, notices, None, ending, async |client| ask_all(client, prompts).await).await
    })
}

/// One after the other; the last answer decides. What cannot even be sent ends it.
async fn ask_all(client: &mut Client, prompts: Vec<Value>) -> Result<Settled, Undone> {
    let mut last = Ok(Settled::default());
    for prompt in prompts {
        last = ask(client, prompt).await;
        if matches!(last, Err(Undone::Refused(_) | Undone::Ended)) {
            break;
        }
    }
    last
}

async fn ask(client: &mut Client, prompt: Value) -> Result<Settled, Undone> {
    let sent = client.send(prompt).await;
    // Asked after an extension has dealt with the prompt: it may have set something going.
    let mut asked = None;
    while let Some(notice) = client.next().await {
        match notice {
            Notice::Answer { result: Err(text), .. } if text == NO_MODEL => {
                return Err(Undone::Refused(NO_KEY.to_owned()));
            }
            Notice::Answer { result: Err(text), .. } => return Err(Undone::Refused(in_use_advice(&text))),
            Notice::Answer { id, result: Ok(data) } if id == sent && is_handled(&data) => {
                asked = Some(client.send(json!({"type": "get_state"})).await);
            }
            Notice::Answer { id, result: Ok(state) } if Some(id) == asked && !is_busy(&state) => {
                return Ok(Settled::default());
            }
            Notice::Answer { result: Ok(_), .. } | Notice::Ui(_) => {}
            Notice::Settled(Settled { failure: Some(failure), .. }) => return Err(Undone::Told(failure)),
            Notice::Settled(settled) => return Ok(settled),
        }
    }
    Err(Undone::Ended)
}

/// Says what failed, if there is anything to say, and ends the process, because a blocked read of stdin would keep it.
fn leave(ending: &Ending, failure: Option<String>) -> anyhow::Result<u8> {
    if ending.stop.is_cancelled() {
        std::process::exit(ending.code());
    }
    let Some(text) = failure else { return Ok(0) };
    if !text.is_empty() {
        warn(&text);
    }
    Ok(1)
}

/// Nothing at all is no failure, but maybe not what was meant; an empty message is a script's variable that is not set.
fn nothing_to_do(asked_for: bool, has_messages: bool) -> anyhow::Result<u8> {
    anyhow::ensure!(!has_messages, "the message is empty; give some text, as in pith -p \"What is this?\", or pipe it");
    if !asked_for {
        warn("nothing to do: give a message, pipe some text, or use --mode rpc; see pith --help");
    }
    Ok(0)
}

/// What the command line wants to be said.
struct Words {
    messages: Vec<String>,
    files: Vec<String>,
}

impl Words {
    fn of(cli: &Cli) -> Self {
        Words { messages: cli.messages.clone(), files: cli.files.clone() }
    }

    /// Piped text, files and the first message make the first prompt.
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

/// Events only: the answers to the driver's own commands are nobody else's business.
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
