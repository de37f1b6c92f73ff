//! The transport over the pipes of a program. Banners and blank lines are skipped.

use std::io;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use crate::frames::{Reading, Requests, read_message};
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
        self.requests().sent(&message);
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
        pipes.requests().expect_answers([1, 2, 3]);
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
