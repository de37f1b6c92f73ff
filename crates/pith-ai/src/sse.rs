//! Server-sent events from bytes that arrive in any pieces.
//!
//! Knows lines, fields and events; the wire modules know what an event means. Comments produce nothing here but reached
//! the socket, so the driver counts their bytes as a sign of life.

use std::ops::ControlFlow;
use std::time::Duration;

use memchr::memchr2;

/// Longest event accepted; a server that sends more is not talking to us.
pub const MAX_EVENT_BYTES: usize = 32 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event. Both parts are borrowed from the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The `event:` field, empty when absent.
    pub name: &'a str,
    /// The `data:` lines, joined by line feeds.
    pub data: &'a str,
}

/// An event grew past the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event stream: an event is longer than {0} bytes")]
pub struct EventTooLong(pub usize);

/// Incremental decoder of one stream.
#[derive(Debug)]
pub struct SseDecoder {
    /// A line whose end has not arrived.
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    /// The `id:` of the event that is being read, and that of the last one that was complete.
    id: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
    /// The last byte was a CR; an LF right after it belongs to the same line end.
    after_cr: bool,
    at_start: bool,
    limit: usize,
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl SseDecoder {
    /// Makes a decoder that refuses events longer than `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        SseDecoder {
            line: Vec::new(),
            name: String::new(),
            data: String::new(),
            has_data: false,
            id: None,
            last_id: None,
            retry: None,
            after_cr: false,
            at_start: true,
            limit,
        }
    }

    /// Feeds the next bytes; `handle` sees every event they complete and may stop the rest.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        handle: &mut impl FnMut(SseEvent<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, EventTooLong> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let flow = if self.line.is_empty() {
                self.read_line(&bytes[..end], handle)
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                let flow = self.read_line(&line, handle);
                line.clear();
                self.line = line;
                flow
            };
            let is_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if is_cr {
                self.after_cr = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            self.check_size()?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        self.line.extend_from_slice(bytes);
        self.check_size()?;
        Ok(ControlFlow::Continue(()))
    }

    /// Called at the end of the stream. A last line needs no line end, a last event no blank line.
    pub fn finish(&mut self, handle: &mut impl FnMut(SseEvent<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() && self.read_line(&line, handle).is_break() {
            return ControlFlow::Break(());
        }
        self.dispatch(handle)
    }

    /// Whether data has arrived that is not an event yet.
    pub fn has_pending_data(&self) -> bool {
        self.has_data || self.line.starts_with(b"data")
    }

    /// The id of the last event that was complete, for a reader that goes on there; also of events without data.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref().filter(|id| !id.is_empty())
    }

    /// How long the server wants a reader to wait before it comes back.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn check_size(&self) -> Result<(), EventTooLong> {
        if self.line.len() + self.data.len() > self.limit { Err(EventTooLong(self.limit)) } else { Ok(()) }
    }

    fn read_line(&mut self, line: &[u8], handle: &mut impl FnMut(SseEvent<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let line =
            if std::mem::take(&mut self.at_start) { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        if line.is_empty() {
            return self.dispatch(handle);
        }
        // A line never ends inside a character, so whole lines can be checked on their own.
        let line = String::from_utf8_lossy(line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
            }
            "event" => {
                self.name.clear();
                self.name.push_str(value);
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" => self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry),
            // Comments have an empty field name.
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn dispatch(&mut self, handle: &mut impl FnMut(SseEvent<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        if let Some(id) = self.id.take() {
            self.last_id = Some(id);
        }
        let flow = if std::mem::take(&mut self.has_data) {
            handle(SseEvent { name: &self.name, data: &self.data })
        } else {
            ControlFlow::Continue(())
        };
        self.name.clear();
        self.data.clear();
        flow
    }
}

/// Checks that the same bytes give the same events, whole and one by one.
pub fn fuzz_sse(bytes: &[u8]) {
    let whole = collect(&[bytes]);
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(whole, collect(&single), "cutting the stream changed its events");
}

fn collect(chunks: &[&[u8]]) -> Vec<(String, String)> {
    let mut events = Vec::new();
    let mut decoder = SseDecoder::with_limit(1 << 20);
    let mut handle = |event: SseEvent<'_>| {
        events.push((event.name.to_owned(), event.data.to_owned()));
        ControlFlow::Continue(())
    };
    for chunk in chunks {
        if decoder.push(chunk, &mut handle).is_err() {
            return events;
        }
    }
    let _ = decoder.finish(&mut handle);
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(stream: &[u8], expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(name, data)| (name.to_string(), data.to_string())).collect();
        assert_eq!(collect(&[stream]), expected, "{:?}", String::from_utf8_lossy(stream));
        fuzz_sse(stream);
    }

    #[test]
    fn events_end_at_blank_lines_and_at_the_end() {
        check(b"data: a\n\ndata:b\n\n", &[("", "a"), ("", "b")]);
        check(b"event: ping\ndata: {}\n\n", &[("ping", "{}")]);
        check(b"data: last", &[("", "last")]);
        check(b"data: a\ndata: b\n\n", &[("", "a\nb")]);
        check(b"data\n\n", &[("", "")]);
        check(b"data:  two blanks\n\n", &[("", " two blanks")]);
    }

    #[test]
    fn all_line_ends_count_once() {
        check(b"data: a\r\n\r\ndata: b\r\rdata: c\n\r\ndata: d\r\n", &[("", "a"), ("", "b"), ("", "c"), ("", "d")]);
        check(b"data: a\r\ndata: b\r\n\r\n", &[("", "a\nb")]);
    }

    #[test]
    fn what_is_not_an_event_is_skipped() {
        check(b": comment\n\nid: 1\nretry: 5\nevent: none\n\n\n\ndata: x\n\n", &[("", "x")]);
        check(b"\xEF\xBB\xBFdata: x\n\n", &[("", "x")]);
        check(b"", &[]);
        check(b"<html>\n<body>no: thing</body>", &[]);
    }

    #[test]
    fn a_reader_learns_where_to_go_on() {
        let mut decoder = SseDecoder::default();
        let mut read = |bytes: &[u8]| {
            let _ = decoder.push(bytes, &mut |_| ControlFlow::Continue(())).expect("short");
            (decoder.last_id().map(str::to_owned), decoder.retry())
        };
        assert_eq!(read(b"id: 1\nretry: 20\ndata: \n"), (None, Some(Duration::from_millis(20))));
        assert_eq!(read(b"\ndata: x\nretry: soon\n\n"), (Some("1".into()), Some(Duration::from_millis(20))));
        assert_eq!(read(b"id: 2\n\nid: 3\ndata: cut").0, Some("2".into()));
        assert_eq!(read(b"\nid: a\0b\n\n").0, Some("3".into()));
        assert_eq!(read(b"id\n\n").0, None, "an empty id forgets the last one");
    }

    #[test]
    fn text_is_utf8_or_made_so() {
        check("data: é€😀\n\n".as_bytes(), &[("", "é€😀")]);
        check(b"data: a\xFFb\n\n", &[("", "a\u{FFFD}b")]);
    }

    #[test]
    fn events_have_a_limit() {
        let mut decoder = SseDecoder::with_limit(10);
        let mut handle = |_: SseEvent<'_>| ControlFlow::Continue(());
        assert!(decoder.push(b"data: 12345\n\n", &mut handle).is_ok());
        assert!(decoder.push(b"data: 12345\ndata: 67890", &mut handle).is_err());
        let mut decoder = SseDecoder::with_limit(10);
        assert!(decoder.push(b"no line end in sight", &mut handle).is_err());
    }

    #[test]
    fn a_handler_can_stop_the_stream() {
        let mut seen = 0;
        let mut decoder = SseDecoder::default();
        let flow = decoder.push(b"data: a\n\ndata: b\n\n", &mut |_| {
            seen += 1;
            ControlFlow::Break(())
        });
        assert_eq!((flow, seen), (Ok(ControlFlow::Break(())), 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn any_chunking_gives_the_same_events(
            lines in prop::collection::vec(r"(data|event|id|)(: ?)?[a-zé:€ ]{0,8}(\r|\n|\r\n){1,2}", 0..12),
            cuts in prop::collection::vec(0usize..200, 0..12),
        ) {
            let text = lines.concat();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(collect(&chunks), collect(&[bytes]));
            fuzz_sse(bytes);
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            fuzz_sse(&bytes);
        }
    }
}
