//! The chat: one line at a time on a terminal, on the same session that serves hosts.

mod commands;
mod editor;
mod sessions;

use std::path::{Path, PathBuf};

use pith_config::Environment;
use pith_protocol::host::UiAnswer;
use pith_tools::image::Rules;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::commands::AfterLine;
use self::editor::{LineEditor, Typed};
use super::attach::{Draft, resolve};
use super::client::{Client, Notice, is_busy, is_handled};
use super::drive;
use super::follow::Follower;
use super::questions::{Questions, Shown, Typing};
use super::screen::{Screen, Show, Streams};
use super::screen_outbox::ScreenOutbox;
use super::terminal::{Abilities, KeptTerminal};
use crate::cli::Cli;
use crate::dialect::Dialect;
use crate::lifecycle::Ending;
use crate::open::{self, OpenRequest, Shared};
use crate::sessions::in_use_advice;
use crate::transport::finish;
use crate::warn;

/// The history of typed lines, in the agent directory. Not named like a session file.
const HISTORY: &str = "pith-history";

/// Opens the chat and returns the exit code.
pub fn chat(mut cli: Cli, dialect: &'static Dialect) -> anyhow::Result<u8> {
    // The chat shows a list to choose from.
    let wants_list = cli.sessions.resume.take_if(|id| id.is_empty()).is_some();
    let (messages, files) = (cli.messages.clone(), cli.files.clone());
    let environment = Environment::of_process();
    let agent_dir = open::agent_dir(dialect, &environment);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let request = OpenRequest {
        ask: Some(Box::new(sessions::ask)),
        ..OpenRequest::of_process(cli, dialect, pith_ext::Mode::Tui)?
    };
    let start = runtime.block_on(open::open(&Shared::default(), request))?;
    let problems = start.resource_problems();
    let terminal = KeptTerminal::of_stdin();
    let on = Abilities::of(&std::io::stdout());
    let ending = Ending::default();
    let on_broken = ending.clone();
    let (screen, painter) = Screen::start(Streams {
        answers: Box::new(std::io::stdout()),
        answers_on: on,
        activity_on: on,
        on_broken: Box::new(move |_| on_broken.host_gone()),
    })?;
    std::fs::create_dir_all(agent_dir.path())?;
    let mut chat = Chat {
        screen: screen.clone(),
        lines: LineEditor::start(agent_dir.path().join(HISTORY), on.has_colour)?,
        cwd: start.cwd().to_owned(),
        home: environment.home().to_owned(),
        sessions: start.sessions().map(Path::to_owned),
        rules: start.image_rules(),
        ending: ending.clone(),
        has_hinted: false,
    };
    let (follower, notices) = Follower::new();
    let result: anyhow::Result<()> = runtime.block_on(async {
        ending.watch_all_but_interrupt();
        let mut interrupts = signal(SignalKind::interrupt())?;
        let parts = start.into_parts(Box::new(ScreenOutbox::new(screen.clone(), follower)));
        let questions = Questions::new(on_screen(screen.clone()));
        drive(parts, notices, Some(questions), &ending, async |client| {
            problems.into_iter().for_each(|problem| screen.show(Show::Note(problem)));
            chat.greet(client).await;
            if wants_list {
                chat.list_sessions(client).await;
            }
            let first = chat.draft(&messages.join("\n"), &files)?;
            chat.talk(client, &mut interrupts, first).await;
            anyhow::Ok(())
        })
        .await
    });
    drop((chat, screen));
    finish(painter);
    drop(terminal);
    if let Err(error) = result {
        warn(&format!("Error: {error:#}"));
        std::process::exit(1);
    }
    // The editor thread may still be waiting for a key.
    std::process::exit(ending.code());
}

struct Chat {
    screen: Screen,
    lines: LineEditor,
    cwd: PathBuf,
    home: PathBuf,
    sessions: Option<PathBuf>,
    rules: Rules,
    ending: Ending,
    /// Whether the user was told how to leave.
    has_hinted: bool,
}

impl Chat {
    async fn greet(&mut self, client: &mut Client) {
        let state = client.call(json!({"type": "get_state"})).await.unwrap_or_default();
        let model = commands::model_line(&state);
        self.say(&format!("pith {} · {model} · {}", env!("CARGO_PKG_VERSION"), self.cwd.display()));
        self.say("Enter sends, Alt-Enter or a final \\ starts a new line, Ctrl-C stops, /help lists commands.");
        match state["messageCount"].as_u64() {
            Some(n_messages) if n_messages > 0 => self.show_last_answer(client, n_messages).await,
            _ => self.mention_last_session(client).await,
        }
        self.learn_commands(client).await;
    }

    /// Serves prompts and commands until the user leaves.
    async fn talk(&mut self, client: &mut Client, interrupts: &mut Signal, first: Option<Value>) {
        if let Some(prompt) = first {
            self.turn(client, interrupts, prompt, json!({"type": "abort"})).await;
        }
        loop {
            let typed = self.typed(client).await;
            if let Some(answered) = answer_of(client, &typed) {
                if let Some((id, answer)) = answered {
                    client.answer(&id, &answer).await;
                }
                continue;
            }
            let line = match typed {
                Typed::End => break,
                Typed::Interrupted if std::mem::replace(&mut self.has_hinted, true) => break,
                Typed::Interrupted => {
                    self.say("Ctrl-C again, Ctrl-D or /quit leaves.");
                    continue;
                }
                Typed::Line(line) => line,
            };
            self.has_hinted = false;
            match self.take(client, line.trim_end()).await {
                AfterLine::Nothing => {}
                AfterLine::Leave => break,
                AfterLine::Turn { command, stop } => self.turn(client, interrupts, command, stop).await,
            }
        }
    }

    /// Waits for the next line. If an extension asks something meanwhile, the line is the answer.
    async fn typed(&mut self, client: &mut Client) -> Typed {
        let mut draft = String::new();
        if let Some(extension_ui) = client.extension_ui() {
            if let Some(text) = extension_ui.panel.changed_text() {
                self.screen.show(Show::Say(text.to_owned()));
            }
            draft = extension_ui.panel.take_draft();
            extension_ui.questions.set_typing(Typing::Elsewhere);
        }
        self.screen.flush().await;
        let typed = tokio::select! {
            biased;
            () = self.ending.stop.cancelled() => Typed::End,
            typed = self.lines.next(draft) => typed,
            () = ended(client) => Typed::End,
        };
        if let Some(extension_ui) = client.extension_ui() {
            extension_ui.questions.set_typing(Typing::Here);
        }
        typed
    }

    /// Sends a command that makes the agent work, and waits until it has stopped.
    async fn turn(&mut self, client: &mut Client, interrupts: &mut Signal, command: Value, stop: Value) {
        let is_prompt = command["type"] == "prompt";
        forget(interrupts).await;
        let sent = client.send(command).await;
        // Set after an extension has handled the prompt: it may have started a run.
        let mut asked = None;
        loop {
            let notice = tokio::select! {
                notice = client.next() => notice,
                _ = interrupts.recv() => {
                    // An open question takes the interrupt; the work goes on.
                    match client.extension_ui().and_then(|extension_ui| extension_ui.questions.decline()) {
                        Some((id, answer)) => client.answer(&id, &answer).await,
                        None => drop(client.send(stop.clone()).await),
                    }
                    continue;
                }
            };
            match notice {
                None => return,
                Some(Notice::Answer { id, result: Err(error) }) if id == sent => return self.complain(&error),
                Some(Notice::Answer { id, result: Ok(data) }) if id == sent && !is_prompt => {
                    self.say(&commands::work_done(&data));
                    return;
                }
                Some(Notice::Answer { id, result: Ok(data) }) if id == sent && is_handled(&data) => {
                    asked = Some(client.send(json!({"type": "get_state"})).await);
                }
                Some(Notice::Answer { id, result: Ok(state) }) if Some(id) == asked && !is_busy(&state) => {
                    return self.learn_commands(client).await;
                }
                Some(Notice::Settled(settled)) if is_prompt => {
                    if let Some(failure) = settled.failure {
                        self.complain(&failure.into_text());
                    }
                    return self.screen.show(Show::Totals);
                }
                Some(Notice::Answer { .. } | Notice::Settled(_) | Notice::Ui(_)) => {}
            }
        }
    }

    /// Makes a prompt from a message and files; `None` if it is empty.
    fn draft(&self, message: &str, files: &[String]) -> anyhow::Result<Option<Value>> {
        let mut draft = Draft::default();
        for file in files {
            draft.attach(&resolve(file, &self.cwd, &self.home), self.rules)?;
        }
        draft.push(message);
        Ok(draft.into_prompt())
    }

    fn say(&self, text: &str) {
        self.screen.show(Show::Say(text.to_owned()));
    }

    fn complain(&self, text: &str) {
        self.say(&format!("✗ {}", in_use_advice(text)));
    }
}

/// What a line, or a Ctrl-C, answers to a question; `None` if there is no question.
fn answer_of(client: &mut Client, typed: &Typed) -> Option<Option<(String, UiAnswer)>> {
    let questions = &mut client.extension_ui().filter(|extension_ui| extension_ui.questions.is_open())?.questions;
    match typed {
        Typed::Line(line) => Some(questions.typed(line)),
        Typed::Interrupted => Some(questions.decline()),
        Typed::End => None,
    }
}

/// Returns when the session has ended.
async fn ended(client: &mut Client) {
    while client.next().await.is_some() {}
}

/// Shows questions of extensions.
fn on_screen(screen: Screen) -> impl Fn(Shown) + Send {
    move |shown| match shown {
        Shown::Question(text, typing) => {
            screen.show(Show::Question { text, replaces_editor: typing == Typing::Elsewhere });
        }
        Shown::Done => screen.show(Show::QuestionOver),
        Shown::Declined => screen.show(Show::Note("no answer".to_owned())),
        Shown::Withdrawn => screen.show(Show::Note("the question was withdrawn".to_owned())),
    }
}

/// Drops interrupts from before a turn, which are not meant for it.
async fn forget(interrupts: &mut Signal) {
    loop {
        tokio::select! {
            biased;
            Some(()) = interrupts.recv() => {}
            () = std::future::ready(()) => return,
        }
    }
}
