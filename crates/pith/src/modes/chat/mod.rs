//! The chat: a session for a person at a terminal. A client of the session like every host: commands go in, frames come
//! out.
//!
//! `app` is what is shown and known, `view` what that looks like, `interface` the loop between them and the terminal.

mod app;
mod approval;
mod console;
mod dialog;
mod editor;
mod frames;
mod highlight;
mod history;
mod interface;
mod keyboard;
mod lines;
mod markdown;
mod menu;
mod picker;
mod picture;
mod stream;
mod surface;
mod table;
mod text;
mod theme;
mod view;

use std::path::Path;
use std::sync::mpsc::Sender;

use pith_config::Environment;
use pith_protocol::{Announcement, Inbound};
use pith_session::SessionParts;
use pith_tools::image::Rules;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use self::app::{Opening, Setup};
use self::editor::Editor;
use self::frames::{Backlog, ChatOutbox, Happening};
use self::history::History;
use self::interface::{Channels, Interface};
use self::keyboard::Keyboard;
use self::picture::Protocol;
use self::surface::Looks;
use super::attach::{Draft, resolve};
use super::confirm::confirm;
use super::serve;
use super::terminal::Abilities;
use crate::cli::Cli;
use crate::dialect::Dialect;
use crate::lifecycle::Ending;
use crate::open::{self, OpenRequest, OpenedSession, Shared};
use crate::rpc::release_memory;
use crate::{debug, warn};

/// The history of typed lines, in the agent directory. Not named like a session file.
const HISTORY: &str = "pith-history";

/// The thread that owns the terminal.
const THREAD: &str = "terminal";

/// Commands that may wait for the session.
const BACKLOG: usize = 256;

/// Opens the chat and returns the exit code.
pub fn chat(mut cli: Cli, dialect: &'static Dialect) -> anyhow::Result<u8> {
    // The chat shows a list to choose from.
    let wants_list = cli.sessions.resume.take_if(|id| id.is_empty()).is_some();
    open_chat(cli, dialect, Opening { wants_list, ..Opening::default() })
}

/// Plays a scripted session: the prompt of the command line, one steering message, and the end.
pub fn tour(cli: Cli, dialect: &'static Dialect, steering: &str) -> anyhow::Result<u8> {
    open_chat(cli, dialect, Opening { tour: Some(steering.to_owned()), ..Opening::default() })
}

fn open_chat(cli: Cli, dialect: &'static Dialect, mut opening: Opening) -> anyhow::Result<u8> {
    let (messages, files) = (cli.messages.clone(), cli.files.clone());
    let environment = Environment::of_process();
    let agent_dir = open::agent_dir(dialect, &environment);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ask = |question: &pith_resources::Question| {
        confirm(&format!("{}\n{}\n\nTrust it from now on?", question.title, question.message))
    };
    let request =
        OpenRequest { ask: Some(Box::new(ask)), ..OpenRequest::of_process(cli, dialect, pith_ext::Mode::Tui)? };
    let shared = Shared::default();
    let start = runtime.block_on(open::open(&shared, request))?;
    let home = environment.home().to_owned();
    opening.problems = start.resource_problems();
    opening.prompt = draft(&messages.join("\n"), &files, start.cwd(), &home, start.image_rules())?;
    std::fs::create_dir_all(agent_dir.path())?;
    let abilities = Abilities::of(&std::io::stdout());
    let setup = Setup {
        cwd: start.cwd().to_owned(),
        home,
        rules: start.image_rules(),
        editor: Editor::new(History::load(agent_dir.path().join(HISTORY))),
        size: console::size(),
        has_keys: abilities.can_redraw,
        has_editor: interface::editor().is_some(),
        pictures: Protocol::of(|name| std::env::var(name).ok()).filter(|_| abilities.can_redraw),
        opening,
    };
    let ending = Ending::default();
    let served = serve_chat(&runtime, start, setup, abilities, dialect, &ending);
    console::leave();
    shared.end();
    if let Err(error) = served {
        warn(&format!("Error: {error:#}"));
        std::process::exit(1);
    }
    // The keyboard thread may still be waiting for a key.
    std::process::exit(ending.code());
}

/// Runs the session and, on a thread of its own, the interface, until both have ended.
fn serve_chat(
    runtime: &tokio::runtime::Runtime,
    start: OpenedSession,
    setup: Setup,
    abilities: Abilities,
    dialect: &'static Dialect,
    ending: &Ending,
) -> anyhow::Result<()> {
    let (sender, happenings) = std::sync::mpsc::channel();
    let (typed, inputs) = std::sync::mpsc::channel();
    let (session, inbox) = mpsc::channel(BACKLOG);
    let announced = Announcement { shows_dialogs: true, takes_permission_requests: true };
    session.try_send(Inbound::Announced(announced)).expect("the channel is empty");
    let backlog = Backlog::default();
    let outbox = debug::watched(Box::new(ChatOutbox::new(sender.clone(), backlog.clone())), dialect)?;
    let parts = start.into_parts(outbox);
    let parts = SessionParts { on_rest: Box::new(release_memory), ..parts };
    let channels = Channels { happenings, inputs, backlog, session };
    let keys = sender.clone();
    let lost = ending.clone();
    let interface = move || {
        let served = if setup.has_keys {
            let has_links = std::env::var("TERM").is_ok_and(|term| term != "linux");
            let looks = Looks { has_colour: abilities.has_colour, has_links };
            console::collect_stderr(keys.clone())
                .and_then(|()| Keyboard::start(typed, keys))
                .and_then(|keyboard| Interface::start(setup, channels, keyboard, looks)?.run())
        } else {
            lines::read(keys).and_then(|()| lines::run(setup, &channels))
        };
        if served.is_err() {
            lost.host_gone();
        }
    };
    runtime.block_on(async {
        ending.watch_all_but_interrupt();
        watch(SignalKind::interrupt(), &sender, || Happening::Interrupted)?;
        watch(SignalKind::window_change(), &sender, || Happening::Resized)?;
        watch(SignalKind::from_raw(libc::SIGCONT), &sender, || Happening::Continued)?;
        drop(sender);
        let interface = std::thread::Builder::new().name(THREAD.to_owned()).spawn(interface)?;
        serve(parts, inbox, ending).await;
        // The end of the session ends the interface.
        anyhow::ensure!(interface.join().is_ok(), "the terminal interface has failed");
        anyhow::Ok(())
    })
}

/// Tells the interface of a signal.
fn watch(kind: SignalKind, happenings: &Sender<Happening>, happening: fn() -> Happening) -> std::io::Result<()> {
    let (mut signals, happenings) = (signal(kind)?, happenings.clone());
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            if happenings.send(happening()).is_err() {
                break;
            }
        }
    });
    Ok(())
}

/// Makes a prompt from a message and files; `None` if it is empty.
fn draft(message: &str, files: &[String], cwd: &Path, home: &Path, rules: Rules) -> anyhow::Result<Option<Value>> {
    let mut draft = Draft::default();
    for file in files {
        draft.attach(&resolve(file, cwd, home), rules)?;
    }
    draft.push(message);
    Ok(draft.into_prompt())
}
