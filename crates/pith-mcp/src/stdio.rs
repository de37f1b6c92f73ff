//! The transport over the pipes of a program. rmcp has one as well, but its strict types lose what odd servers send:
//! here results stay raw JSON, banners and blank lines are skipped, and what cannot be read ends one call, not all.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, CustomResult, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use crate::remarks::Remarks;

/// The longest accepted line.
pub const MAX_LINE: usize = 16 * 1024 * 1024;
/// So many lines that are no frames, and not one that is, mean that the program speaks something else.
const MAX_NOISE: usize = 100;

/// The pipes of a program. Clones share them: a second handshake may follow a refused first one.
pub struct Pipes<R, W> {
    reader: Arc<Mutex<LineReader<R>>>,
    /// Taken when the connection is closed, which ends the program's input.
    writer: Arc<Mutex<Option<W>>>,
    requests: Arc<std::sync::Mutex<Requests>>,
    remarks: Remarks,
    /// Why nothing more is read, if it is not the end of the stream.
    broken: Arc<OnceLock<String>>,
}

impl<R, W> Clone for Pipes<R, W> {
    fn clone(&self) -> Self {
        Pipes {
            reader: self.reader.clone(),
            writer: self.writer.clone(),
            requests: self.requests.clone(),
            remarks: self.remarks.clone(),
            broken: self.broken.clone(),
        }
    }
}

impl<R: AsyncRead + Unpin, W> Pipes<R, W> {
    pub fn new(output: R, input: W, remarks: Remarks) -> Self {
        Pipes {
            reader: Arc::new(Mutex::new(LineReader::new(output))),
            writer: Arc::new(Mutex::new(Some(input))),
            requests: Arc::default(),
            remarks,
            broken: Arc::default(),
        }
    }

    /// Why nothing more is read, if the program did not just end.
    pub fn broken(&self) -> Option<&str> {
        self.broken.get().map(String::as_str)
    }

    /// Ends the program's input.
    pub async fn close_input(&self) {
        drop(self.writer.lock().await.take());
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, line: &[u8]) -> Reading {
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return Reading::Nothing;
        }
        let Ok(Value::Object(message)) = serde_json::from_slice(line) else {
            self.remarks.push(line);
            return Reading::Noise;
        };
        read_message(message, |id| self.requests().answered(id))
    }
}

/// The requests that were sent and have no answer.
#[derive(Default)]
struct Requests {
    pending: HashSet<i64>,
    /// The last handshake; its result is read by rmcp.
    handshake: Option<i64>,
}

impl Requests {
    /// Takes an answer; `None` if nobody has asked, or it is the second one.
    fn answered(&mut self, id: i64) -> Option<ResultOf> {
        let is_handshake = self.handshake == Some(id);
        self.pending.remove(&id).then_some(if is_handshake { ResultOf::Handshake } else { ResultOf::Request })
    }
}

/// What a result answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResultOf {
    Handshake,
    Request,
}

/// What a line is.
enum Reading {
    Message(Box<ServerJsonRpcMessage>),
    /// A request that cannot be understood; this is the answer.
    Refusal(Value),
    Noise,
    Nothing,
}

/// Reads a frame. An answer with both members counts as what it says first; what fits nothing is ignored.
fn read_message(mut message: Map<String, Value>, answered: impl FnOnce(i64) -> Option<ResultOf>) -> Reading {
    if message.contains_key("method") {
        let id = message.get("id").cloned();
        return match (serde_json::from_value(Value::Object(message)), id) {
            (Ok(message), _) => Reading::Message(Box::new(message)),
            (Err(error), Some(id)) => Reading::Refusal(json!({
                "jsonrpc": "2.0", "id": id,
                "error": {"code": ErrorCode::INVALID_PARAMS.0, "message": error.to_string()},
            })),
            (Err(_), None) => Reading::Nothing,
        };
    }
    let id = match message.get("id") {
        Some(Value::Number(id)) => id.as_i64(),
        Some(Value::String(id)) => id.parse().ok(),
        _ => None,
    };
    let Some((id, of)) = id.and_then(|id| Some((id, answered(id)?))) else { return Reading::Nothing };
    let first = message.keys().find(|key| *key == "result" || *key == "error").cloned();
    let message = match (first.as_deref(), first.as_ref().and_then(|key| message.remove(key))) {
        (Some("result"), Some(result)) => match read_result(result, of) {
            Ok(result) => JsonRpcMessage::response(result, RequestId::Number(id)),
            Err(why) => JsonRpcMessage::error(ErrorData::invalid_request(why, None), Some(RequestId::Number(id))),
        },
        (Some("error"), Some(error)) => JsonRpcMessage::error(read_error(error), Some(RequestId::Number(id))),
        _ => return Reading::Nothing,
    };
    Reading::Message(Box::new(message))
}

/// Keeps a result as it is, unless rmcp itself has to understand it.
fn read_result(result: Value, of: ResultOf) -> Result<ServerResult, String> {
    if of == ResultOf::Request {
        return Ok(ServerResult::CustomResult(CustomResult(result)));
    }
    let Value::Object(mut result) = result else { return Err("the answer to the handshake is no object".to_owned()) };
    if result.contains_key("supportedVersions") {
        let read = serde_json::from_value(Value::Object(result));
        return read.map(ServerResult::DiscoverResult).map_err(|error| format!("server/discover: {error}"));
    }
    // What older servers leave out is not needed.
    result.entry("capabilities").or_insert_with(|| json!({}));
    if !result.get("serverInfo").is_some_and(|info| info.get("name").is_some_and(Value::is_string)) {
        result.insert("serverInfo".to_owned(), json!({"name": "", "version": ""}));
    }
    if let Some(Value::Object(info)) = result.get_mut("serverInfo") {
        info.entry("version").or_insert_with(|| json!(""));
    }
    let read = serde_json::from_value(Value::Object(result));
    read.map(ServerResult::InitializeResult).map_err(|error| format!("initialize: {error}"))
}

fn read_error(error: Value) -> ErrorData {
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned);
    let code = code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    ErrorData::new(code, message, error.get("data").cloned())
}

impl<R, W> Transport<RoleClient> for Pipes<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message
            && let RequestId::Number(id) = &request.id
        {
            let mut requests = self.requests();
            requests.pending.insert(*id);
            if let ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_) = &request.request {
                requests.handshake = Some(*id);
            }
        }
        let writer = self.writer.clone();
        async move { write_line(&writer, &serde_json::to_value(&message)?).await }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let reader = self.reader.clone();
        let mut reader = reader.lock().await;
        loop {
            match reader.fill().await {
                Ok(Filled::Line) => {}
                Ok(Filled::End) => return None,
                Ok(Filled::TooLong) => {
                    let _ = self.broken.set(format!("sent a line longer than {} MiB", MAX_LINE >> 20));
                    return None;
                }
                Err(error) => {
                    let _ = self.broken.set(format!("cannot be read: {error}"));
                    return None;
                }
            }
            let reading = self.read(&reader.line);
            reader.line.clear();
            match reading {
                Reading::Message(message) => {
                    reader.has_frame = true;
                    return Some(*message);
                }
                Reading::Refusal(answer) => {
                    let _ = write_line(&self.writer, &answer).await;
                }
                Reading::Noise => {
                    reader.n_noise += 1;
                    if reader.n_noise >= MAX_NOISE && !reader.has_frame {
                        let _ = self.broken.set("does not speak MCP: its output is no JSON".to_owned());
                        return None;
                    }
                }
                Reading::Nothing => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        drop(self.writer.lock().await.take());
        Ok(())
    }
}

async fn write_line<W: AsyncWrite + Unpin>(writer: &Mutex<Option<W>>, message: &Value) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    match &mut *writer.lock().await {
        Some(writer) => writer.write_all(&line).await,
        None => Err(io::ErrorKind::NotConnected.into()),
    }
}

/// Gathers lines; what was read of one survives a cancelled wait.
struct LineReader<R> {
    source: BufReader<R>,
    line: Vec<u8>,
    n_noise: usize,
    has_frame: bool,
}

enum Filled {
    Line,
    TooLong,
    End,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    fn new(source: R) -> Self {
        LineReader { source: BufReader::new(source), line: Vec::new(), n_noise: 0, has_frame: false }
    }

    /// Reads to the end of a line. Cancel safe.
    async fn fill(&mut self) -> io::Result<Filled> {
        loop {
            let available = self.source.fill_buf().await?;
            if available.is_empty() {
                // The last line needs no newline.
                return Ok(if self.line.is_empty() { Filled::End } else { Filled::Line });
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if self.line.len() + taken > MAX_LINE {
                return Ok(Filled::TooLong);
            }
            self.line.extend_from_slice(&available[..taken]);
            self.source.consume(taken);
            if end.is_some() {
                return Ok(Filled::Line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server that writes `bytes`, cut into pieces of `size`, is understood to say.
    async fn received(bytes: &[u8], size: usize) -> (Vec<String>, Remarks, Option<String>) {
        let (mut theirs, ours) = tokio::io::duplex(size.max(1));
        let bytes = bytes.to_vec();
        let writing = tokio::spawn(async move {
            for piece in bytes.chunks(size.max(1)) {
                if theirs.write_all(piece).await.is_err() {
                    break;
                }
            }
        });
        let remarks = Remarks::default();
        let mut pipes = Pipes::new(ours, tokio::io::sink(), remarks.clone());
        pipes.requests().pending.extend([1, 2, 3]);
        let mut messages = Vec::new();
        while let Some(message) = pipes.receive().await {
            messages.push(serde_json::to_string(&message).expect("a message"));
        }
        let broken = pipes.broken().map(str::to_owned);
        drop(pipes);
        writing.await.expect("no panic");
        (messages, remarks, broken)
    }

    #[tokio::test]
    async fn odd_output_is_tolerated_however_it_is_cut() {
        let output = "\u{feff}Welcome to the server!\r\n\n\
            {\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{\"content\":[{\"type\":\"hologram\"}]},\"error\":{\"code\":1}}\r\n\
            {\"id\":2,\"error\":{\"message\":\"no\"}}\n\
            [1]\n\
            {\"id\":{},\"result\":{}}\n\
            {\"id\":2,\"result\":{}}\n\
            {\"id\":77,\"result\":{}}\n\
            {\"jsonrpc\":\"2.0\",\"method\":\"notifications/none\"}\n\
            {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":7}";
        for size in [1, 2, 7, 64, 4096] {
            let (messages, remarks, broken) = received(output.as_bytes(), size).await;
            assert_eq!(
                messages,
                [
                    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"hologram"}]}}"#,
                    r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no"}}"#,
                    r#"{"jsonrpc":"2.0","method":"notifications/none","params":null}"#,
                    r#"{"jsonrpc":"2.0","id":3,"result":7}"#,
                ],
                "pieces of {size}"
            );
            assert_eq!(remarks.last(5), ["Welcome to the server!", "[1]"]);
            assert_eq!(broken, None);
        }
    }

    #[tokio::test]
    async fn a_program_that_only_talks_is_given_up() {
        let (messages, _, broken) = received("hello\n".repeat(200).as_bytes(), 1024).await;
        assert_eq!((messages.len(), broken.as_deref()), (0, Some("does not speak MCP: its output is no JSON")));
    }

    #[tokio::test]
    async fn a_line_without_end_is_given_up() {
        let (_, _, broken) = received(&vec![b'x'; MAX_LINE + 2], 1 << 20).await;
        assert_eq!(broken.as_deref(), Some("sent a line longer than 16 MiB"));
    }
}
