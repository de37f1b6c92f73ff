//! The task between a host and its pith: it owns the process, knows which command waits for which answer, and passes
//! on what is told.

use std::collections::HashMap;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use pith_protocol::json;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::handlers::Handlers;
use crate::host::{Dialog, HostTool};
use crate::process::Process;
use crate::{Exited, Pith, Told};

/// How much of stderr is kept to explain an unexpected end.
const STDERR_KEPT: usize = 64 * 1024;

/// How long the last words of a process are waited for: what it started may hold its streams open.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long a process may live that has closed its stdin or stdout, so that no command can be answered any more.
const MUTE: Duration = Duration::from_secs(2);

/// What a host wants of its connection.
#[derive(Debug)]
pub(crate) enum Request {
    /// Writes a line and sends on the response with that id. Dropping `answer` means that none comes.
    Ask { id: String, line: Vec<u8>, answer: oneshot::Sender<Answered> },
    /// Adds a subscription; it ends when the sender is dropped.
    Listen(mpsc::UnboundedSender<Told>),
    /// Closes stdin; the process has so long to end.
    Close(Duration),
}

/// A response. Read as widely as possible: whatever a later version sends, its command is answered.
#[derive(Debug, Deserialize)]
pub(crate) struct Answered {
    #[serde(default)]
    id: Value,
    /// Where a dialect drops the id.
    #[serde(default, rename = "requestId")]
    request_id: Value,
    #[serde(default)]
    success: Value,
    #[serde(default)]
    pub(crate) data: Option<Box<RawValue>>,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    code: Value,
}

impl Answered {
    pub(crate) fn is_success(&self) -> bool {
        self.success == Value::Bool(true)
    }

    /// Returns text and code.
    pub(crate) fn failure(&self) -> (String, Option<String>) {
        let error = self.error.as_str().unwrap_or("unknown error").to_owned();
        (error, self.code.as_str().map(str::to_owned))
    }

    fn id(&self) -> Option<&str> {
        self.id.as_str().or(self.request_id.as_str())
    }
}

/// Returns a frame as a line.
pub(crate) fn encode(frame: &impl Serialize) -> Vec<u8> {
    let mut line = Vec::with_capacity(128);
    json::append(&mut line, frame);
    line.push(b'\n');
    line
}

/// The state of the task.
pub(crate) struct Connection {
    process: Process,
    stdout: BufReader<ChildStdout>,
    /// The line that is being read.
    line: Vec<u8>,
    stderr: ChildStderr,
    last_words: Vec<u8>,
    /// To the writer, which closes stdin when it has written everything and this is dropped.
    outgoing: Option<mpsc::UnboundedSender<Vec<u8>>>,
    /// Gone once it was waited for.
    writer: Option<JoinHandle<io::Result<()>>>,
    /// From [`Pith`].
    requests: mpsc::UnboundedReceiver<Request>,
    waiting: HashMap<String, oneshot::Sender<Answered>>,
    listeners: Vec<mpsc::UnboundedSender<Told>>,
    handlers: Handlers,
    streams: Streams,
}

/// Which streams can still say something.
struct Streams {
    is_stdout_open: bool,
    is_stderr_open: bool,
}

/// What happens next.
enum Next {
    Request(Request),
    Reply(Vec<u8>),
    Stdout(io::Result<usize>),
    Stderr(io::Result<usize>),
    Written(io::Result<()>),
    End(Option<ExitStatus>),
}

impl Connection {
    /// Starts the task; it ends with the process, and the process with it.
    pub(crate) fn start(mut process: Process, dialog: Option<Dialog>, tools: Vec<HostTool>) -> Pith {
        let (stdin, stdout, stderr) = process.streams().expect("all streams were piped");
        let pid = process.id();
        let (outgoing, lines) = mpsc::unbounded_channel();
        let (requester, requests) = mpsc::unbounded_channel();
        let (ended, end) = watch::channel(None);
        let connection = Connection {
            process,
            stdout: BufReader::with_capacity(1 << 16, stdout),
            line: Vec::new(),
            stderr,
            last_words: Vec::new(),
            outgoing: Some(outgoing),
            writer: Some(tokio::spawn(write(stdin, lines))),
            requests,
            waiting: HashMap::new(),
            listeners: Vec::new(),
            handlers: Handlers::new(dialog, tools),
            streams: Streams { is_stdout_open: true, is_stderr_open: true },
        };
        // Its end is what `end` hears of, also after a panic.
        tokio::spawn(connection.serve(ended));
        Pith::new(requester, end, pid)
    }

    async fn serve(mut self, ended: watch::Sender<Option<Exited>>) {
        let status = loop {
            match self.next().await {
                Next::Request(request) => self.take(request),
                Next::Reply(line) => self.write(line),
                Next::Stdout(read) => self.read_stdout(read),
                Next::Stderr(read) => self.read_stderr(read),
                Next::Written(end) => self.writer_ended(end),
                Next::End(status) => break status,
            }
        };
        timeout(LAST_WORDS, self.read_the_rest()).await.ok();
        if let Some(writer) = &self.writer {
            writer.abort();
        }
        let stderr = String::from_utf8_lossy(&self.last_words).into_owned();
        // Told before the answers and subscriptions are dropped, which then know why.
        ended.send_replace(Some(Exited { status, stderr }));
    }

    async fn next(&mut self) -> Next {
        let Streams { is_stdout_open, is_stderr_open } = self.streams;
        tokio::select! {
            biased;
            Some(request) = self.requests.recv() => Next::Request(request),
            reply = self.handlers.next() => Next::Reply(encode(&reply)),
            // Before the streams, so that a process that never stops talking can be ended too.
            status = self.process.wait() => Next::End(status),
            end = written(&mut self.writer) => Next::Written(end),
            read = self.stderr.read_buf(&mut self.last_words), if is_stderr_open => Next::Stderr(read),
            read = self.stdout.read_until(b'\n', &mut self.line), if is_stdout_open => Next::Stdout(read),
        }
    }

    fn take(&mut self, request: Request) {
        match request {
            Request::Ask { id, line, answer } => {
                self.waiting.insert(id, answer);
                self.write(line);
            }
            Request::Listen(listener) => self.listeners.push(listener),
            Request::Close(grace) => {
                self.outgoing = None;
                self.process.end_within(grace);
            }
        }
    }

    /// Queues a line. Once stdin is closed nothing is written any more, and what waits hears of the end.
    fn write(&mut self, line: Vec<u8>) {
        if let Some(outgoing) = &self.outgoing {
            outgoing.send(line).ok();
        }
    }

    fn read_stdout(&mut self, read: io::Result<usize>) {
        if self.line.ends_with(b"\n") || (!self.line.is_empty() && matches!(read, Ok(0))) {
            let line = std::mem::take(&mut self.line);
            self.frame(String::from_utf8_lossy(&line).trim());
        } else if !matches!(read, Ok(1..)) {
            self.streams.is_stdout_open = false;
            self.hang_up();
        }
    }

    /// Called when nothing can be written any more: by intention, or because the process has closed its stdin.
    fn writer_ended(&mut self, end: io::Result<()>) {
        self.writer = None;
        if end.is_err() {
            self.hang_up();
        }
    }

    /// Ends a process that cannot be talked to any more.
    fn hang_up(&mut self) {
        self.outgoing = None;
        self.process.end_within(MUTE);
    }

    fn read_stderr(&mut self, read: io::Result<usize>) {
        self.streams.is_stderr_open = matches!(read, Ok(1..));
        let surplus = self.last_words.len().saturating_sub(STDERR_KEPT);
        self.last_words.drain(..surplus);
    }

    /// Reads what an ended process has left in its streams.
    async fn read_the_rest(&mut self) {
        while self.streams.is_stdout_open {
            let read = self.stdout.read_until(b'\n', &mut self.line).await;
            self.read_stdout(read);
        }
        while self.streams.is_stderr_open {
            let read = self.stderr.read_buf(&mut self.last_words).await;
            self.read_stderr(read);
        }
    }

    /// Deals with one line. What is no JSON object is nobody's: every command still gets its answer.
    fn frame(&mut self, line: &str) {
        if let Some(answered) = response(line) {
            let waiting = answered.id().and_then(|id| self.waiting.remove(id));
            if let Some(answer) = waiting {
                // Whoever asked may have lost interest.
                answer.send(answered).ok();
            }
            return;
        }
        self.listeners.retain(|listener| !listener.is_closed());
        let Some(told) = Told::read(line) else { return };
        if let Some(outgoing) = &self.outgoing {
            match &told {
                Told::HostTool(frame) => self.handlers.host_tool(frame.clone(), outgoing),
                Told::UiRequest(request) => self.handlers.ui_request(request.clone()),
                Told::Event(_) | Told::Permission(_) | Told::Ready(_) | Told::Other(_) => {}
            }
        }
        for listener in &self.listeners {
            listener.send(told.clone()).ok();
        }
    }
}

/// Reads a line if it is a response.
fn response(line: &str) -> Option<Answered> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow)]
        r#type: std::borrow::Cow<'a, str>,
    }
    let kind: Kind = serde_json::from_str(line).ok()?;
    if kind.r#type == "response" { serde_json::from_str(line).ok() } else { None }
}

/// Writes lines as fast as pith takes them; closes stdin at the end.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<Vec<u8>>) -> io::Result<()> {
    while let Some(line) = lines.recv().await {
        stdin.write_all(&line).await?;
    }
    Ok(())
}

/// Waits for the end of the writer; for ever if that has been heard of.
async fn written(writer: &mut Option<JoinHandle<io::Result<()>>>) -> io::Result<()> {
    match writer {
        Some(writer) => writer.await.unwrap_or_else(|error| Err(error.into())),
        None => std::future::pending().await,
    }
}
