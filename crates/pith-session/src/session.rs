//! The live session: one task that owns everything that can change.
//!
//! `handle` is an ordinary function. Whatever needs waiting is spawned and comes
//! back as an [`Event`], so an `abort` is never stuck behind the thing it aborts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pith_agent::{ModelClient, Tool};
use pith_ai::registry::Registry;
use pith_ai::select::Start;
use pith_ai::settings::{Fsync, Settings};
use pith_ext::FromExtension;
use pith_protocol::{Inbound, InterruptMode, QueueMode, Response, StreamUpdates, ThinkingLevel};
use pith_store::SessionStore;
use pith_tools::Workbench;
use tokio::sync::mpsc;
use tokio::task::{Id as TaskId, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::acceptance::Accepted;
use crate::activity::{Activity, JobEnd, Waiter};
use crate::compact::FromSummary;
use crate::compaction::Recovery;
use crate::extensions::{CLOSING, ExtensionSetup, Extensions, Lane, Router};
use crate::library::{Brought, Library, ReadAgain};
use crate::models::Models;
use crate::outbox::Outbox;
use crate::pending::{DISCONNECTED, Pending};
use crate::queue::Queues;
use crate::reply::Owed;
use crate::retry::{Retry, RetryPolicy};
use crate::run_link::FromRun;
use crate::shell::{FromShell, Shell};
use crate::summary::Summarising;
use crate::todos::{TODO_WRITE, TodoWrite, Todos};
use crate::tool_link::{FromTool, ToolLink};
use crate::tools::{ToolChoice, Tools};
use crate::trust::TrustQuestion;
use crate::ttsr::{StreamRules, Ttsr};

/// Nothing has happened for so long: work is over for now.
const REST: Duration = Duration::from_millis(200);

/// Everything a session is made of.
pub struct SessionParts {
    pub out: Box<dyn Outbox>,
    pub store: SessionStore,
    pub places: SessionPlaces,
    /// Makes the tools of another working directory, for sessions that belong there.
    pub relocation: Relocation,
    pub client: Arc<dyn ModelClient>,
    pub registry: Arc<Registry>,
    /// Settings, options and resources of the session's directory.
    pub brought: Brought,
    /// Reads them again, for `reload` and when a file has changed.
    pub read_again: ReadAgain,
    /// The model, level and scope to start with.
    pub start: Start,
    pub workbench: Arc<Workbench>,
    pub tools: Vec<Arc<dyn Tool>>,
    pub tool_choice: ToolChoice,
    /// Rules that watch the model's answers.
    pub rules: StreamRules,
    pub extensions: ExtensionSetup,
    /// Called when nothing has happened for a moment after the start or after work.
    pub on_rest: fn(),
}

/// Makes the tools of a working directory as settings want them; those in whose place they come, if they work in the
/// same one, hand on what they know and what they have running.
pub type Relocation = Box<dyn Fn(&Path, &Settings, Option<&Workbench>) -> (Arc<Workbench>, Vec<Arc<dyn Tool>>) + Send>;

/// Where sessions are looked for.
#[derive(Clone, Debug)]
pub struct SessionPlaces {
    /// Those of this working directory.
    pub dir: PathBuf,
    /// All of them.
    pub root: PathBuf,
}

/// Choices fixed for the life of the process or changed by setters.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    pub steering_mode: QueueMode,
    pub follow_up_mode: QueueMode,
    pub interrupt_mode: InterruptMode,
    pub stream_updates: StreamUpdates,
    pub auto_compaction: bool,
    pub retry: RetryPolicy,
    pub max_turns: Option<u32>,
    pub block_images: bool,
    pub cache: pith_protocol::CacheRetention,
    /// Who a user message is attributed to, where hosts expect it.
    pub attribution: Option<&'static str>,
    /// What the name of an exported page begins with, where the host names none.
    pub export_app: &'static str,
    /// The refusal of a second prompt.
    pub busy_text: &'static str,
    /// Whether `get_state` repeats the system prompt and the tools.
    pub state_has_prompt: bool,
    /// The strongest thinking level the host knows; stronger ones are shown as this one.
    pub highest_level: ThinkingLevel,
    /// Whether `get_session_stats` counts premium requests.
    pub counts_premium_requests: bool,
    /// Whether an accepted prompt that turns out to be impossible is answered a second time.
    pub tells_late_failures: bool,
    /// Whether tool calls of an aborted answer are reported as failed.
    pub reports_aborted_calls: bool,
    /// Whether the model has the todo tool before the host has set todos.
    pub has_todo_tool: bool,
    /// Whether a model that stops is reminded of the host's open todos.
    pub todo_reminders: bool,
    /// When finished todos disappear; `None` keeps them.
    pub todo_clear_after: Option<Duration>,
    /// How long a host tool may take; `None` waits for ever.
    pub host_tool_timeout: Option<Duration>,
    /// When data must have reached the disk.
    pub fsync: Fsync,
    /// The session's display name, from the command line.
    pub name: Option<String>,
}

/// The session task's state. Only this task changes it.
pub struct Session {
    pub(crate) out: Box<dyn Outbox>,
    pub(crate) store: SessionStore,
    pub(crate) places: SessionPlaces,
    pub(crate) relocation: Relocation,
    pub(crate) client: Arc<dyn ModelClient>,
    pub(crate) models: Models,
    pub(crate) settings: Arc<Settings>,
    pub(crate) tools: Tools,
    pub(crate) library: Library,
    /// Whether the host still has to say if the project may be trusted.
    pub(crate) trust: TrustQuestion,
    pub(crate) workbench: Arc<Workbench>,
    pub(crate) queues: Queues,
    pub(crate) shell: Shell,
    pub(crate) pending: Pending,
    pub(crate) todos: Todos,
    pub(crate) ttsr: Ttsr,
    pub(crate) extensions: Extensions,
    on_rest: fn(),
    /// When that moment is over.
    rest_at: Option<Instant>,
    /// What waits for extensions, in order.
    pub(crate) lane: Lane,
    /// The prompt the active run began with, while it may still turn out to be impossible.
    pub(crate) accepted: Option<Accepted>,
    pub(crate) activity: Activity,
    /// The summary being written, for its own sake or while a run waits.
    pub(crate) summary: Option<Summarising>,
    pub(crate) recovery: Recovery,
    /// The task that reads the session file to switch to.
    pub(crate) opening: Option<TaskId>,
    /// Commands to be carried out, in order, once the running activity has settled.
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) retry: Retry,
    pub(crate) options: SessionOptions,
    /// Runs, shell commands and disk syncs; every one is noticed when it ends.
    pub(crate) jobs: JoinSet<JobEnd>,
    /// From the active run; replaced with each run, closed when it has ended.
    pub(crate) run_events: Option<mpsc::Receiver<FromRun>>,
    /// From the host's shell commands; lives as long as the session.
    shell_events: mpsc::Receiver<FromShell>,
    /// Handed to the tools that are part of the session.
    pub(crate) tool_link: ToolLink,
    /// From those tools; lives as long as the session.
    tool_events: mpsc::Receiver<FromTool>,
    /// Handed to each summary.
    pub(crate) summary_news: mpsc::UnboundedSender<FromSummary>,
    /// From the summary being written; lives as long as the session.
    summary_events: mpsc::UnboundedReceiver<FromSummary>,
    /// Replies dropped without an answer.
    pub(crate) owed: mpsc::UnboundedSender<Owed>,
    owed_events: mpsc::UnboundedReceiver<Owed>,
    /// The host has gone or the process was told to end.
    pub(crate) is_closing: bool,
}

/// What can happen to a session.
enum Event {
    Line(Inbound),
    Run(FromRun),
    Shell(FromShell),
    Tool(FromTool),
    Summary(FromSummary),
    Owed(Owed),
    Extension(FromExtension),
    /// Extensions have had their moment at the start.
    Started,
    Rest,
    Job(TaskId, Result<JobEnd, JoinError>),
    Close,
}

/// What is left of a session that has ended.
pub struct Served {
    /// Its commands may still be running.
    pub workbench: Arc<Workbench>,
    /// What an extension wants the process to end with.
    pub exit_status: Option<u8>,
}

impl Session {
    /// Puts the parts together and records what the session starts with.
    pub fn new(parts: SessionParts) -> Self {
        let (shell, shell_events) = Shell::new();
        let (tool_link, tool_events) = ToolLink::new();
        let (owed, owed_events) = mpsc::unbounded_channel();
        let (summary_news, summary_events) = mpsc::unbounded_channel();
        let options = parts.brought.options.clone();
        let mut known = parts.tools;
        known.push(Arc::new(TodoWrite::new(tool_link.clone())));
        let mut tool_choice = parts.tool_choice;
        match options.has_todo_tool {
            true => tool_choice.additional.push(TODO_WRITE),
            false => tool_choice.unlisted.push(TODO_WRITE),
        }
        let router = Arc::new(Router::new(parts.client, parts.registry.clone()));
        let mut session = Session {
            models: Models::new(parts.registry, parts.brought.settings.clone(), parts.start),
            settings: parts.brought.settings.clone(),
            tools: Tools::new(known, tool_choice),
            trust: TrustQuestion::of(parts.brought.question.clone()),
            library: Library::new(parts.brought, parts.read_again),
            queues: Queues::new(options.steering_mode, options.follow_up_mode),
            out: parts.out,
            store: parts.store,
            places: parts.places,
            relocation: parts.relocation,
            client: router.clone(),
            workbench: parts.workbench,
            shell,
            pending: Pending::default(),
            todos: Todos::default(),
            ttsr: Ttsr::new(parts.rules),
            on_rest: parts.on_rest,
            rest_at: None,
            extensions: Extensions::new(parts.extensions, router),
            lane: Lane::default(),
            accepted: None,
            activity: Activity::Idle,
            summary: None,
            recovery: Recovery::default(),
            opening: None,
            waiters: Vec::new(),
            retry: Retry::default(),
            options,
            jobs: JoinSet::new(),
            run_events: None,
            shell_events,
            tool_link,
            tool_events,
            summary_news,
            summary_events,
            owed,
            owed_events,
            is_closing: false,
        };
        session.assemble_prompt();
        session.begin();
        if let Some(name) = session.options.name.take() {
            session.store.append_session_info(&name);
        }
        session
    }

    /// Serves until the inbox is closed or `stop` fires, and everything has ended.
    ///
    /// Returns the place its tools worked at last, whose processes are the caller's to end.
    pub async fn serve(mut self, mut inbox: mpsc::Receiver<Inbound>, stop: CancellationToken) -> Served {
        self.report_store();
        self.begin_extensions();
        while !(self.is_closing && self.is_idle()) {
            let event = tokio::select! {
                biased;
                () = stop.cancelled(), if !self.is_closing => Event::Close,
                line = inbox.recv(), if self.takes_lines() && !self.lane.is_quiet() => line.map_or(Event::Close, Event::Line),
                Some(message) = next_of(&mut self.run_events) => Event::Run(message),
                Some(message) = self.shell_events.recv() => Event::Shell(message),
                // Behind the run's events: a call is announced before the host gets it.
                Some(question) = self.tool_events.recv() => Event::Tool(question),
                Some(message) = self.summary_events.recv() => Event::Summary(message),
                Some(request) = self.extensions.next() => Event::Extension(request),
                () = self.lane.quiet(), if self.lane.is_quiet() => Event::Started,
                () = until(self.rest_at), if self.rest_at.is_some() => Event::Rest,
                Some(owed) = self.owed_events.recv() => Event::Owed(owed),
                Some(ended) = self.jobs.join_next_with_id() => match ended {
                    Ok((id, end)) => Event::Job(id, Ok(end)),
                    Err(error) => Event::Job(error.id(), Err(error)),
                },
            };
            self.handle(event);
            self.advance_lane();
            self.answer_idle();
            self.leave_if_asked();
            self.quit_extensions();
        }
        self.store.settle_leaf();
        self.report_store();
        self.settle_debts();
        Served { workbench: self.workbench, exit_status: self.extensions.exit_status }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Line(line) => self.dispatch(line),
            Event::Run(message) => self.on_run(message),
            Event::Shell(message) => self.on_shell(message),
            Event::Tool(question) => self.on_tool(question),
            Event::Summary(message) => self.on_summary(message),
            Event::Owed(owed) => self.answer_owed(&owed),
            Event::Extension(request) => self.on_extension(request),
            Event::Started => self.lane.end_quiet(),
            Event::Rest => self.rest(),
            Event::Job(task, ended) => self.on_job_end(task, ended),
            Event::Close => self.close(),
        }
    }

    /// While a session is being replaced, later commands wait for the new one: here, or in the lane if
    /// extensions have a say, since they may ask for answers of the host.
    pub(crate) fn takes_lines(&self) -> bool {
        let is_replacing = self.opening.is_some() || self.waiters.iter().any(Waiter::replaces_session);
        !self.is_closing && (self.lane.is_taken() || !is_replacing)
    }

    /// Work is over, or the start is. The first commands of a host, and a next prompt that follows at once, come first.
    pub(crate) fn rest_soon(&mut self) {
        self.rest_at = Some(Instant::now() + REST);
    }

    fn rest(&mut self) {
        self.rest_at = None;
        if self.is_still() {
            (self.on_rest)();
        }
    }

    fn is_idle(&self) -> bool {
        matches!(self.activity, Activity::Idle) && self.jobs.is_empty()
    }

    /// The host is gone: stop what runs; the loop ends when it has stopped.
    pub(crate) fn close(&mut self) {
        self.is_closing = true;
        // Before the run is cancelled, so that the calls end for this reason and not as aborted.
        self.pending.fail_all(DISCONNECTED);
        self.todos.stop_clearing();
        self.trust.give_up();
        self.close_lane();
        self.cancel_dialogs();
        self.cancel_run();
        self.shell.abort_all();
    }

    fn on_job_end(&mut self, task: TaskId, ended: Result<JobEnd, JoinError>) {
        match ended {
            Ok(JobEnd::Done) => {}
            Ok(JobEnd::Report(report)) => self.report(&report),
            Ok(JobEnd::RetryDue) => self.on_retry_due(),
            Ok(JobEnd::TodoDue(id)) => self.on_todo_due(&id),
            Ok(JobEnd::TrustUnanswered) => self.on_trust_unanswered(),
            Ok(JobEnd::Opened(opened)) => self.on_opened(*opened),
            Ok(JobEnd::Exported { reply, answer }) => self.on_exported(reply, answer),
            Ok(JobEnd::Listed { reply, sessions }) => self.on_listed(reply, sessions),
            Ok(JobEnd::Then(then)) => then(self),
            Err(error) if error.is_cancelled() => {}
            Err(_) if self.lane.is_step(task) => self.on_step_panic(),
            Err(error) if self.activity.task() == Some(task) => self.on_run_panic(&error),
            Err(_) if self.was_summary(task) => self.on_summary_panic(),
            Err(_) if self.opening == Some(task) => self.on_opening_panic(),
            Err(_) => self.on_shell_panic(task),
        }
    }

    fn answer_owed(&mut self, owed: &Owed) {
        let why = match self.is_closing {
            true => CLOSING,
            false => "Internal error: the command was not answered",
        };
        self.out.respond(&Response::failure(owed.id.raw(), owed.command, why));
    }

    /// Whatever was never answered is answered before the stream ends.
    fn settle_debts(&mut self) {
        self.waiters.clear();
        while let Ok(owed) = self.owed_events.try_recv() {
            self.answer_owed(&owed);
        }
    }
}

/// Returns at that moment, if there is one.
pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

async fn next_of(events: &mut Option<mpsc::Receiver<FromRun>>) -> Option<FromRun> {
    match events {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}
