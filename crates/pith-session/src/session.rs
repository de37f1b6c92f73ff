//! The live session: one task that owns everything that can change.
//!
//! `handle` is an ordinary function. Anything that has to be awaited runs in a task and comes back as an [`Event`], so
//! an `abort` never waits for the thing it aborts.

use crate::failure;
use std::sync::Arc;
use std::time::Duration;

use pith_agent::Tracer;
use pith_config::Settings;
use pith_ext::FromExtension;
use pith_protocol::{Inbound, Response};
use pith_store::SessionStore;
use pith_tools::Workbench;
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::activity::{Activity, AfterSettled};
use crate::admission::{Admission, Queues};
use crate::compaction::{SummaryEvents, SummaryProgress};
use crate::extensions::Extensions;
use crate::history::{self, HistoryAskers};
use crate::jobs::{EndedJob, Job, JobEnd, Jobs};
use crate::limits::Governor;
use crate::log::log_line;
use crate::mcp::{FromMcp, Mcp};
use crate::models::{Models, Router};
use crate::outbox::Outbox;
pub use crate::parts::{SessionOptions, SessionParts, SessionPlaces};
use crate::permissions::{FromGate, HostQuestions, Permissions};
use crate::project::Project;
use crate::replace::Replacement;
use crate::reply::Unanswered;
use crate::rules::RuleBook;
use crate::run::FromRun;
use crate::sandbox::ChangeSandbox;
use crate::todos::{TODO_WRITE, TodoWrite, Todos};
use crate::tools::host::{DISCONNECTED, HostTools};
use crate::tools::shell::{FromShell, Shell};
use crate::tools::{FromTool, Tools};

/// The answer to commands that arrive while the process is ending.
pub(crate) const CLOSING: &str = "pith is shutting down";

/// How long nothing must happen before the session counts as at rest.
const REST: Duration = Duration::from_millis(200);

/// The session task's state. Only this task changes it.
pub struct Session {
    pub(crate) out: Box<dyn Outbox>,
    pub(crate) store: SessionStore,
    pub(crate) places: SessionPlaces,
    pub(crate) options: SessionOptions,
    pub(crate) settings: Arc<Settings>,
    pub(crate) models: Models,
    pub(crate) project: Project,
    pub(crate) change_sandbox: ChangeSandbox,
    pub(crate) tools: Tools,
    pub(crate) host_tools: HostTools,
    pub(crate) shell: Shell,
    pub(crate) todos: Todos,
    pub(crate) rules: RuleBook,
    pub(crate) queues: Queues,
    pub(crate) extensions: Extensions,
    pub(crate) mcp: Mcp,
    pub(crate) permissions: Permissions,
    /// Set if somebody watches.
    pub(crate) tracer: Option<Arc<dyn Tracer>>,
    /// Decides which command may be served now.
    pub(crate) admission: Admission,
    pub(crate) activity: Activity,
    /// What the user allows, and what was used of it.
    pub(crate) governor: Governor,
    /// Commands that are carried out, in order, once the activity has ended.
    pub(crate) after_settled: Vec<AfterSettled>,
    /// Set while another session is taking the place of this one.
    pub(crate) replacement: Option<Replacement>,
    pub(crate) summaries: SummaryEvents,
    pub(crate) jobs: Jobs,
    pub(crate) history: HistoryAskers,
    pub(crate) unanswered: UnansweredCommands,
    rest: Rest,
    /// The host wants `agent_settled` also after prompts that were handled without a run.
    pub(crate) settles_handled: bool,
    /// Set when the host has disconnected or the process was told to end.
    pub(crate) is_closing: bool,
}

/// Commands whose replies were dropped without an answer; the session answers them with an error.
pub(crate) struct UnansweredCommands {
    /// Cloned into each reply.
    sender: mpsc::UnboundedSender<Unanswered>,
    receiver: mpsc::UnboundedReceiver<Unanswered>,
}

/// Calls `on_rest` once the session has had nothing to do for [`REST`].
struct Rest {
    on_rest: Box<dyn Fn()>,
    at: Option<Instant>,
}

/// What can happen to a session.
enum Event {
    Line(Inbound),
    History(history::Asker),
    Run(FromRun),
    Shell(FromShell),
    Tool(FromTool),
    Gate(FromGate),
    Summary(SummaryProgress),
    Unanswered(Unanswered),
    Extension(FromExtension),
    McpServer(FromMcp),
    /// The time that extensions have to show something before the first command is read is over.
    InputDelayOver,
    /// A limit of time has to be looked at.
    Deadline,
    Rest,
    Job(Box<EndedJob>),
    Close,
}

/// What a finished session returns to the process: its exit status and the commands it left running.
pub struct SessionExit {
    /// Where its tools worked last. Commands started there may still be running.
    pub workbench: Arc<Workbench>,
    /// The exit status an extension asked for.
    pub exit_status: Option<u8>,
}

impl Session {
    /// Assembles the session and records the model and level it starts with.
    pub fn new(parts: SessionParts) -> Self {
        let host_tools = HostTools::new();
        let options = parts.files.options.clone();
        let mut known = parts.tools;
        known.push(Arc::new(TodoWrite::new(host_tools.link.clone())));
        let mut tool_choice = parts.tool_choice;
        if options.has_todo_tool {
            tool_choice.additional.push(TODO_WRITE);
        } else {
            tool_choice.unlisted.push(TODO_WRITE);
        }
        let mut files = parts.files;
        let settings = files.settings.clone();
        let rules = RuleBook::new(std::mem::take(&mut files.rules));
        let governor = Governor::new(options.session_limits.clone());
        let router = Arc::new(Router::new(parts.client, parts.registry.clone()));
        let permissions = Permissions::new(parts.permissions);
        parts.hosts.set(Arc::new(HostQuestions::new(permissions.to_session())));
        let mut session = Session {
            models: Models::new(parts.registry, router, settings.clone(), parts.start),
            settings,
            change_sandbox: parts.change_sandbox,
            tools: Tools::new(parts.workbench, parts.make_tools, known, tool_choice),
            host_tools,
            project: Project::new(files, parts.load_project),
            queues: Queues::new(options.steering_mode, options.follow_up_mode),
            options,
            out: parts.out,
            store: parts.store,
            places: parts.places,
            shell: Shell::new(),
            todos: Todos::default(),
            rules,
            extensions: Extensions::new(parts.extensions),
            mcp: Mcp::new(parts.mcp),
            permissions,
            tracer: parts.tracer,
            admission: Admission::default(),
            activity: Activity::default(),
            governor,
            after_settled: Vec::new(),
            replacement: None,
            summaries: SummaryEvents::default(),
            jobs: Jobs::default(),
            history: HistoryAskers::new(),
            unanswered: UnansweredCommands::new(),
            rest: Rest { on_rest: parts.on_rest, at: None },
            settles_handled: false,
            is_closing: false,
        };
        session.restore_tools();
        session.assemble_prompt();
        session.begin_session();
        if let Some(name) = session.options.name.take() {
            session.store.append_session_info(&name);
        }
        session
    }

    /// Serves until the inbox is closed or `stop` fires, and everything has ended.
    ///
    /// The caller ends the processes that the returned workbench left running.
    pub async fn serve(mut self, mut inbox: mpsc::Receiver<Inbound>, stop: CancellationToken) -> SessionExit {
        self.mcp.stop_with(stop.clone());
        self.report_store();
        self.resume_inputs();
        self.begin_extensions();
        while !(self.is_closing && self.activity.is_idle() && self.jobs.is_empty()) {
            let reads_input = self.reads_input() && !self.admission.is_input_delayed();
            let deadline = self.tend_limits();
            let event = tokio::select! {
                biased;
                () = stop.cancelled(), if !self.is_closing => Event::Close,
                line = inbox.recv(), if reads_input => line.map_or(Event::Close, Event::Line),
                Some(asker) = self.history.next() => Event::History(asker),
                Some(message) = self.activity.next_from_run() => Event::Run(message),
                Some(message) = self.shell.next() => Event::Shell(message),
                // Behind the run's events: a call is announced before the host gets it.
                Some(question) = self.host_tools.next() => Event::Tool(question),
                Some(message) = self.permissions.next() => Event::Gate(message),
                Some(progress) = self.summaries.next() => Event::Summary(progress),
                Some(request) = self.extensions.next() => Event::Extension(request),
                Some(message) = self.mcp.next() => Event::McpServer(message),
                () = self.admission.input_delay(), if self.admission.is_input_delayed() => Event::InputDelayOver,
                () = until(deadline), if deadline.is_some() => Event::Deadline,
                () = until(self.rest.at), if self.rest.at.is_some() => Event::Rest,
                Some(unanswered) = self.unanswered.receiver.recv() => Event::Unanswered(unanswered),
                Some(ended) = self.jobs.next() => Event::Job(Box::new(ended)),
            };
            self.handle(event);
        }
        // Requests of servers that have ended may have begun one; the runtime may end after this.
        self.models.registry().renewals().end().await;
        self.store.save_leaf();
        self.report_store();
        self.answer_remaining();
        SessionExit { workbench: self.workbench().clone(), exit_status: self.extensions.exit_status }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Line(line) => {
                self.dispatch(line);
                self.schedule_eager_mcp();
            }
            Event::History(asker) => self.tell_history(asker),
            Event::Run(message) => self.on_run(message),
            Event::Shell(message) => self.on_shell(message),
            Event::Tool(question) => self.on_tool(question),
            Event::Gate(message) => self.on_gate(message),
            Event::Summary(progress) => self.on_summary_progress(progress),
            Event::Unanswered(unanswered) => self.answer_for(&unanswered),
            Event::Extension(request) => self.on_extension(request),
            Event::McpServer(message) => self.on_mcp(message),
            Event::InputDelayOver => self.admission.end_input_delay(),
            Event::Deadline => self.on_deadline(),
            Event::Rest => self.on_rest_due(),
            Event::Job(ended) => self.on_job_end(*ended),
            Event::Close => self.close(),
        }
    }

    /// Schedules `on_rest`. Called at the end of the start and of work; a command that arrives in the meantime is
    /// served first.
    pub(crate) fn schedule_rest(&mut self) {
        self.rest.at = Some(Instant::now() + REST);
    }

    fn on_rest_due(&mut self) {
        self.rest.at = None;
        if self.is_fully_idle() {
            self.start_eager_mcp();
            (self.rest.on_rest)();
        }
    }

    /// Called wherever something has ended. If the session is fully idle, answers extensions that wait for that, and
    /// ends the session if an extension asked for it.
    pub(crate) fn check_fully_idle(&mut self) {
        if !self.is_fully_idle() {
            return;
        }
        if self.extension_handle().is_some() {
            self.answer_idle();
        }
        if self.extensions.exit_requested && self.extensions.commands.is_empty() {
            self.close();
        }
    }

    /// Called when the host disconnects or the process is told to end. Stops everything; the loop ends once it has
    /// stopped.
    fn close(&mut self) {
        self.is_closing = true;
        // Before the run is cancelled, so that the calls fail with this reason instead of as aborted.
        self.host_tools.pending.fail_all(DISCONNECTED);
        self.todos.stop_clearing();
        self.project.trust.give_up();
        self.close_admission();
        self.limit_start();
        self.cancel_dialogs();
        self.stop_activity();
        self.shell.abort_all();
        self.close_mcp();
        self.quit_extensions();
    }

    fn on_job_end(&mut self, ended: EndedJob) {
        match ended.end {
            Ok(end) => self.on_job_done(end),
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                error!(target: "pith::session", job = ?ended.job, "a task panicked");
                self.on_job_panic(ended.job, &error);
            }
        }
    }

    fn on_job_panic(&mut self, job: Job, error: &JoinError) {
        match job {
            Job::Run => self.on_run_panic(error),
            Job::Summary => self.on_summary_panic(),
            Job::Announcement => self.on_announced(None),
            Job::Step => self.on_step_panic(),
            Job::Opening => self.fail_replacement(),
            Job::Shell(key) => self.on_shell_panic(key),
            Job::ExtensionCommand(key) => self.on_command_ran(key),
            Job::RetryWait => self.on_retry_due(),
            Job::Servers => self.on_servers_waited(),
            Job::Background => log_line(&format!("work in the background ended unexpectedly: {error}")),
        }
    }

    fn on_job_done(&mut self, end: JobEnd) {
        match end {
            JobEnd::Done => {}
            JobEnd::Report(report) => self.report(&report),
            JobEnd::Summarised(result) => self.on_summarised(result),
            JobEnd::Announced(boundary) => self.on_announced(boundary),
            JobEnd::Stepped(step) => self.on_step(step),
            JobEnd::RetryDue => self.on_retry_due(),
            JobEnd::TodoDue(id) => self.on_todo_due(&id),
            JobEnd::TrustUnanswered => self.on_trust_unanswered(),
            JobEnd::TrustTurn(turn) => self.on_trust_turn(*turn),
            JobEnd::PermissionOverdue(id) => self.on_permission_overdue(&id),
            JobEnd::Opened(opened) => self.on_opened(*opened),
            JobEnd::CommandRan(key) => self.on_command_ran(key),
            JobEnd::Exported { reply, answer } => self.answer(reply, answer),
            JobEnd::Listed { reply, sessions } => self.on_listed(reply, sessions),
            JobEnd::CheckpointsListed { reply, answer } => self.answer(reply, answer),
            JobEnd::MoveTold { answer, reply } => self.answer(reply, Ok(answer)),
            JobEnd::StartOverdue => self.give_up_start(),
            JobEnd::ServersReady(answer) => self.on_servers_ready(answer),
            JobEnd::ServersListed { arguments, answer } => self.on_servers_listed(&arguments, answer),
            JobEnd::Measured { measured, turn } => self.on_measured(measured, turn),
            JobEnd::ServersAsked(reply) => self.on_servers_asked(reply),
            JobEnd::SignInBegun { reply, begun } => self.on_sign_in_begun(reply, begun),
            JobEnd::ModelsRefreshed(models) => self.on_models_refreshed(models),
            JobEnd::RepeatAnswered(question) => self.on_repeat_answered(*question),
            JobEnd::ModelsDiscovered(answer) => self.on_models_discovered(answer),
        }
    }

    fn answer_for(&mut self, unanswered: &Unanswered) {
        let why = if self.is_closing {
            failure::closing()
        } else {
            failure::internal("Internal error: the command was not answered")
        };
        self.out.respond(&Response::failure(unanswered.id.raw(), unanswered.command, &why));
    }

    /// Answers every command that has no answer yet, before the stream ends.
    fn answer_remaining(&mut self) {
        self.after_settled.clear();
        self.replacement = None;
        while let Ok(unanswered) = self.unanswered.receiver.try_recv() {
            self.answer_for(&unanswered);
        }
    }
}

impl UnansweredCommands {
    fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        UnansweredCommands { sender, receiver }
    }

    pub fn sender(&self) -> mpsc::UnboundedSender<Unanswered> {
        self.sender.clone()
    }
}

/// Waits until `moment`; for ever if it is `None`.
pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
