//! A connection to a running server: the handshake, lists, calls, the end.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pith_tools::process::Job;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ListToolsRequest, NumberOrString, PaginatedRequestParams,
    ProgressNotificationParam, ServerPeerInfo, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RunningService, ServiceError};
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::{ServerConfig, Transport};
use crate::handler::Handler;
use crate::handshake::{self, Refusal};
use crate::launch::Launch;
use crate::offer::{Offer, ServerInfo, ToolList, instructions};
use crate::remarks::Remarks;
use crate::state::Failure;
use crate::stdio::Pipes;

/// How long a program may take to end after its input was closed.
const END_OF_INPUT_GRACE: Duration = Duration::from_secs(1);
/// How long it may take after SIGTERM.
const TERM_GRACE: Duration = Duration::from_millis(500);
/// How long to wait for what follows a lost connection: the exit code and the last lines.
const AFTERMATH: Duration = Duration::from_millis(500);
/// However much progress a call reports.
const LONGEST_CALL: Duration = Duration::from_secs(30 * 60);
/// How long telling a server of a cancelled call may take.
const CANCEL_GRACE: Duration = Duration::from_millis(100);
const MAX_PAGES: usize = 200;
/// How many lines of stderr an error shows.
const SHOWN_REMARKS: usize = 5;

/// The server's child process and its pipes.
struct Child {
    job: Job,
    pipes: Pipes<pipe::Receiver, pipe::Sender>,
    /// Reads stderr until it is closed.
    errors: AbortHandle,
}

/// A connection whose handshake is done.
pub struct Connection {
    /// Taken when the connection is closed.
    service: tokio::sync::Mutex<Option<RunningService<RoleClient, Handler>>>,
    peer: Peer<RoleClient>,
    progress: Arc<Routes>,
    pub list_changed: Arc<Notify>,
    child: Option<Child>,
    remarks: Remarks,
    timeout: Duration,
}

/// Who hears of the progress of which call.
#[derive(Default)]
pub struct Routes(Mutex<HashMap<NumberOrString, mpsc::UnboundedSender<ProgressNotificationParam>>>);

/// Why a request has no result.
#[derive(Debug)]
pub enum CallError {
    /// The server refused it.
    Refused {
        code: i32,
        message: String,
    },
    Aborted,
    TimedOut(Duration),
    /// The connection is gone; the text says what is known.
    Lost(String),
}

impl Routes {
    /// Passes a report on; reports of calls that have ended are dropped.
    pub fn pass(&self, progress: ProgressNotificationParam) {
        if let Some(route) = self.all().get(&progress.progress_token.0) {
            let _ = route.send(progress);
        }
    }

    fn all(
        &self,
    ) -> std::sync::MutexGuard<'_, HashMap<NumberOrString, mpsc::UnboundedSender<ProgressNotificationParam>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Connects to a server: starts its program if it has one, and shakes hands.
    pub async fn open(config: &ServerConfig, launch: &Launch) -> Result<Connection, Failure> {
        let opened = match &config.transport {
            Transport::Stdio(stdio) => {
                let launched = launch.start(config, stdio).await?;
                let (piped, remarks) = (launched.pipes, launched.remarks);
                let pipes = Pipes::new(piped.output, piped.input, remarks.clone());
                let errors = tokio::spawn(keep_remarks(piped.errors, remarks.clone())).abort_handle();
                let child = Child { job: piped.job, pipes, errors };
                Connection::over_pipes(config, &launch.cwd, child, remarks)
            }
            Transport::Remote(_) => {
                return Err(Failure::failed("servers with \"url\" are not supported by this build of pith"));
            }
        };
        opened.await
    }

    async fn over_pipes(
        config: &ServerConfig,
        cwd: &Path,
        child: Child,
        remarks: Remarks,
    ) -> Result<Connection, Failure> {
        let (progress, list_changed) = (Arc::<Routes>::default(), Arc::new(Notify::new()));
        let handler = || Handler::new(cwd, progress.clone(), list_changed.clone());
        let shaken = timeout(config.startup_timeout, handshake::over_pipes(config.protocol, &child.pipes, handler));
        let service = match shaken.await {
            Ok(Ok(service)) => service,
            Ok(Err(refusal)) => {
                let why = match refusal {
                    Refusal::Said(why) => remarks.masked(&why) + &quoted(&remarks),
                    Refusal::Lost(why) => child.fate(&remarks, Some(why)).await,
                };
                child.end().await;
                return Err(Failure::failed(why));
            }
            Err(_) => {
                let seconds = config.startup_timeout.as_secs_f64();
                let why = format!("did not answer within {seconds} s{}", quoted(&remarks));
                child.end().await;
                return Err(Failure::failed(why));
            }
        };
        let peer = service.peer().clone();
        let connection = Connection {
            service: tokio::sync::Mutex::new(Some(service)),
            peer,
            progress,
            list_changed,
            child: Some(child),
            remarks,
            timeout: config.timeout,
        };
        Ok(connection)
    }

    /// What the server said about itself.
    pub fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Whether nothing can be sent any more.
    pub fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Asks for everything that is kept of a server. Problems of single tools are returned beside it.
    pub async fn offer(&self) -> Result<(Offer, Vec<String>), CallError> {
        let info = self.info().ok_or_else(|| CallError::Lost("has not introduced itself".to_owned()))?;
        let capabilities = &info.capabilities;
        let list = if capabilities.tools.is_some() { self.list_tools().await? } else { ToolList::default() };
        let named = info.server_info.as_ref().filter(|named| !named.name.is_empty());
        let offer = Offer {
            protocol_version: info.protocol_version.to_string(),
            server_info: named.map(|named| ServerInfo { name: named.name.clone(), version: named.version.clone() }),
            instructions: info.instructions.as_deref().and_then(instructions),
            tools: list.tools,
            has_resources: capabilities.resources.is_some(),
            has_prompts: capabilities.prompts.is_some(),
        };
        Ok((offer, list.problems))
    }

    async fn list_tools(&self) -> Result<ToolList, CallError> {
        let (mut list, mut cursor, mut seen) = (ToolList::default(), None, Vec::new());
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let page = self.request(request, &CancellationToken::new(), |_| {}).await?;
            list.add(&page);
            cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            match &cursor {
                Some(next) if !next.is_empty() && !seen.contains(next) => seen.push(next.clone()),
                _ => break,
            }
        }
        Ok(list)
    }

    /// Calls a tool. `report` hears of progress, which also starts the time of the call again.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
        report: impl FnMut(ProgressNotificationParam),
    ) -> Result<Value, CallError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.request(ClientRequest::CallToolRequest(CallToolRequest::new(params)), cancel, report).await
    }

    async fn request(
        &self,
        request: ClientRequest,
        cancel: &CancellationToken,
        mut report: impl FnMut(ProgressNotificationParam),
    ) -> Result<Value, CallError> {
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options());
        let mut handle = match sent.await {
            Ok(handle) => handle,
            Err(error) => return Err(self.failed(error).await),
        };
        let token = handle.progress_token.0.clone();
        let (route, mut progress) = mpsc::unbounded_channel();
        self.progress.all().insert(token.clone(), route);
        let longest = Instant::now() + LONGEST_CALL;
        let mut deadline = Instant::now() + self.timeout;
        let ended = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => break Ended::Answered(Box::new(answer.unwrap_or(Err(ServiceError::TransportClosed)))),
                () = cancel.cancelled() => break Ended::Aborted,
                Some(step) = progress.recv() => {
                    deadline = Instant::now() + self.timeout;
                    report(step);
                }
                () = sleep_until(deadline.min(longest)) => break Ended::TimedOut,
            }
        };
        self.progress.all().remove(&token);
        match ended {
            Ended::Answered(answer) => match *answer {
                Ok(ServerResult::CustomResult(result)) => Ok(result.0),
                Ok(other) => Ok(serde_json::to_value(other).unwrap_or_default()),
                Err(error) => Err(self.failed(error).await),
            },
            Ended::Aborted => {
                withdraw(handle, "the user aborted the call").await;
                Err(CallError::Aborted)
            }
            Ended::TimedOut => {
                withdraw(handle, "the call took too long").await;
                Err(CallError::TimedOut(self.timeout))
            }
        }
    }

    async fn failed(&self, error: ServiceError) -> CallError {
        match error {
            ServiceError::McpError(error) => {
                CallError::Refused { code: error.code.0, message: self.remarks.masked(&error.message) }
            }
            _ => match &self.child {
                Some(child) => CallError::Lost(child.fate(&self.remarks, None).await),
                None => CallError::Lost(self.remarks.masked(&error.to_string())),
            },
        }
    }

    /// Waits until the program of the server has ended; for ever if it has none.
    pub async fn ended(&self) {
        match &self.child {
            Some(child) => drop(child.job.exited().await),
            None => std::future::pending().await,
        }
    }

    /// The last lines the server wrote beside the protocol.
    pub fn remarks(&self, n_lines: usize) -> Vec<String> {
        self.remarks.last(n_lines)
    }

    /// Ends the connection and the program behind it.
    pub async fn close(&self) {
        if let Some(mut service) = self.service.lock().await.take() {
            let _ = service.close_with_timeout(CANCEL_GRACE).await;
        }
        if let Some(child) = &self.child {
            child.end().await;
        }
    }
}

enum Ended {
    Answered(Box<Result<ServerResult, ServiceError>>),
    Aborted,
    TimedOut,
}

/// Tells the server that nobody waits any more. One that does not read is not waited for.
async fn withdraw(handle: RequestHandle<RoleClient>, why: &str) {
    let _ = timeout(CANCEL_GRACE, handle.cancel(Some(why.to_owned()))).await;
}

impl Child {
    /// Says what became of a program that does not answer.
    async fn fate(&self, remarks: &Remarks, refusal: Option<String>) -> String {
        let why = match (self.pipes.broken(), refusal) {
            (Some(broken), _) => broken.to_owned(),
            (None, refusal) => match timeout(AFTERMATH, self.job.exited()).await {
                Ok(Ok(code)) => format!("ended with exit code {code}"),
                Ok(Err(error)) => format!("cannot be started: {error}"),
                Err(_) => refusal.unwrap_or_else(|| "closed the connection".to_owned()),
            },
        };
        remarks.masked(&why) + &quoted(remarks)
    }

    /// Closes the input, then insists.
    async fn end(&self) {
        // A write that is stuck holds the pipe; then the signals below end it.
        let _ = timeout(CANCEL_GRACE, self.pipes.close_input()).await;
        if timeout(END_OF_INPUT_GRACE, self.job.exited()).await.is_ok() {
            // What it started may have stayed.
            self.job.end(Duration::ZERO);
        } else {
            self.job.end(TERM_GRACE);
        }
        let _ = timeout(TERM_GRACE * 2, self.job.gone()).await;
        self.errors.abort();
    }
}

/// The last remarks, to be appended to an error.
fn quoted(remarks: &Remarks) -> String {
    let last = remarks.last(SHOWN_REMARKS);
    if last.is_empty() { String::new() } else { format!("; it wrote: {}", last.join(" | ")) }
}

async fn keep_remarks(errors: pipe::Receiver, remarks: Remarks) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        // A line that never ends is kept in pieces.
        let available = match errors.fill_buf().await {
            Ok(available) if !available.is_empty() => available,
            _ => break,
        };
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |end| end + 1);
        line.extend_from_slice(&available[..taken]);
        errors.consume(taken);
        if end.is_some() || line.len() > 4096 {
            remarks.push(&line);
            line.clear();
        }
    }
    remarks.push(&line);
}
