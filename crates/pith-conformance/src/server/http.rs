//! Minimal HTTP/1.1: requests with a body in, heads and bodies out.

use std::io::{self, BufRead, Write};

use serde_json::{Map, Value};

/// A request.
pub(super) struct Incoming {
    pub method: String,
    /// Without the query.
    pub path: String,
    pub query: String,
    /// Lower-case names, in order of arrival.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Reads the next request of a connection; `None` when the client has closed it.
pub(super) fn read(reader: &mut impl BufRead) -> io::Result<Option<Incoming>> {
    let Some(request) = line(reader)? else { return Ok(None) };
    let mut words = request.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("not a request line: {request}")));
    };
    let mut headers = Vec::new();
    while let Some(line) = line(reader)?.filter(|line| !line.is_empty()) {
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
    let body = body(reader, &headers)?;
    Ok(Some(Incoming { method, path, query, headers, body }))
}

fn body(reader: &mut impl BufRead, headers: &[(String, String)]) -> io::Result<Vec<u8>> {
    let value = |name: &str| headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str());
    if !value("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        let length = value("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        return exactly(reader, length);
    }
    let mut body = Vec::new();
    loop {
        let head = line(reader)?.unwrap_or_default();
        let size = usize::from_str_radix(head.split(';').next().unwrap_or_default().trim(), 16)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        body.extend(exactly(reader, size)?);
        exactly(reader, 2)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn exactly(reader: &mut impl BufRead, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if reader.read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// Writes a complete JSON response.
pub(super) fn write_json(
    writer: &mut impl Write,
    status: u16,
    body: &Value,
    headers: &Map<String, Value>,
) -> io::Result<()> {
    // A string is a body that is not JSON.
    let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\n");
    head.push_str(&format!("content-length: {}\r\n", body.len()));
    for (name, value) in headers {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    writer.write_all(format!("{head}\r\n{body}").as_bytes())
}

/// The head of a streamed answer.
pub(super) const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

/// The end of a streamed answer.
pub(super) const STREAM_END: &[u8] = b"0\r\n\r\n";
