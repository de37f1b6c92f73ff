//! Bodies that a server or a gateway has compressed, asked or not.

use async_compression::tokio::write::{BrotliEncoder, GzipEncoder, ZlibEncoder};
use pith_agent::ModelClient;
use pith_protocol::{AssistantEvent, ErrorKind, StopReason};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use super::server::{Act, ask, end, failure, providers, question, serve, timeouts};
use crate::client::ClientOptions;
use crate::testing::fixture;

const ENCODINGS: [&str; 3] = ["gzip", "deflate", "br"];

/// The pieces of a body, each of which can be read when it has arrived.
async fn compress(encoding: &str, pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    async fn write<E: AsyncWrite + Unpin>(
        mut encoder: E,
        take: fn(&mut E) -> Vec<u8>,
        pieces: &[&[u8]],
    ) -> Vec<Vec<u8>> {
        let mut written = Vec::new();
        for piece in pieces {
            encoder.write_all(piece).await.expect("memory");
            encoder.flush().await.expect("memory");
            written.push(take(&mut encoder));
        }
        encoder.shutdown().await.expect("memory");
        written.push(take(&mut encoder));
        written
    }
    match encoding {
        "gzip" => write(GzipEncoder::new(Vec::new()), |encoder| std::mem::take(encoder.get_mut()), pieces).await,
        "deflate" => write(ZlibEncoder::new(Vec::new()), |encoder| std::mem::take(encoder.get_mut()), pieces).await,
        "br" => write(BrotliEncoder::new(Vec::new()), |encoder| std::mem::take(encoder.get_mut()), pieces).await,
        other => panic!("no encoder for {other}"),
    }
}

fn head(status: &str, encoding: &str) -> Act {
    Act::Send(format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/event-stream\r\ncontent-encoding: {encoding}\r\n\
         transfer-encoding: chunked\r\n\r\n"
    ))
}

fn chunk(bytes: &[u8]) -> Act {
    Act::Bytes([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
}

async fn body(status: &str, encoding: &str, pieces: &[&[u8]]) -> Vec<Act> {
    let mut acts = vec![head(status, encoding)];
    acts.extend(compress(encoding, pieces).await.iter().filter(|piece| !piece.is_empty()).map(|piece| chunk(piece)));
    acts.push(Act::Send("0\r\n\r\n".into()));
    acts
}

#[tokio::test]
async fn streams_are_read_as_they_come() {
    let text = fixture("anthropic.sse");
    let (first, rest) = text.split_at(text.find("event: content_block_stop").expect("there"));
    for encoding in ENCODINGS {
        let pieces = compress(encoding, &[first.as_bytes(), rest.as_bytes()]).await;
        let (held, release) = (pieces.clone(), std::sync::Arc::new(tokio::sync::Semaphore::new(0)));
        // The second piece stays with the server until the first has been read.
        let gate = release.clone();
        let server = serve(move |_, _| {
            let mut acts = vec![head("200 OK", encoding), chunk(&held[0]), Act::Await(gate.clone())];
            acts.extend(held[1..].iter().filter(|piece| !piece.is_empty()).map(|piece| chunk(piece)));
            acts.push(Act::Send("0\r\n\r\n".into()));
            acts
        })
        .await;
        let providers = providers(ClientOptions::default());
        let mut events = providers.stream(question(&server, "anthropic-messages"), CancellationToken::new());
        while !matches!(events.recv().await.expect("a delta"), AssistantEvent::ThinkingDelta { .. }) {}
        release.add_permits(1);
        let message = end(events).await;
        assert_eq!((message.stop_reason, message.content.len()), (StopReason::ToolUse, 3), "{encoding}");
        assert!(server.head(0).contains("accept-encoding: identity\r\n"), "{}", server.head(0));
    }
}

#[tokio::test]
async fn errors_are_readable() {
    for encoding in ENCODINGS {
        let acts = body("429 Slow down", encoding, &[br#"{"error":{"message":"slow down"}}"#]).await;
        let message = ask(ClientOptions::default(), acts).await;
        assert_eq!(failure(&message), (ErrorKind::RateLimit, r#"429 {"error":{"message":"slow down"}}"#), "{encoding}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_what_it_claims_is_not_asked_for_again() {
    for encoding in ENCODINGS {
        let acts = vec![head("200 OK", encoding), chunk(b"data: {}\n\n"), Act::Send("0\r\n\r\n".into())];
        let options = timeouts(|timeouts| timeouts.retries = 2);
        let message = ask(options, acts).await;
        let (kind, text) = failure(&message);
        assert_eq!(kind, ErrorKind::Protocol, "{encoding}: {text}");
        assert!(!crate::failure::is_retryable(&message), "{encoding}");
    }
    for unknown in ["compress", "zstd"] {
        let acts = vec![head("200 OK", unknown), chunk(b"?"), Act::Send("0\r\n\r\n".into())];
        let message = ask(ClientOptions::default(), acts).await;
        let text = format!("The server compressed its answer with \"{unknown}\", which pith cannot read");
        assert_eq!(failure(&message), (ErrorKind::Protocol, text.as_str()));
    }
}

#[tokio::test]
async fn a_cut_connection_is_worth_another_try() {
    for encoding in ENCODINGS {
        for last in [Act::Reset, Act::Close] {
            let pieces = compress(encoding, &[&fixture("anthropic.sse").as_bytes()[..400]]).await;
            let acts = vec![head("200 OK", encoding), chunk(&pieces[0]), last];
            let message = ask(ClientOptions::default(), acts).await;
            let (kind, text) = failure(&message);
            assert_eq!(kind, ErrorKind::Network, "{encoding}: {text}");
        }
    }
}

#[tokio::test]
async fn bodies_that_grow_without_end_are_cut_off() {
    let line = ": nothing at all, over and over again\n".repeat(1 << 10);
    let pieces = vec![line.as_bytes(); 40];
    for encoding in ENCODINGS {
        let endless = compress(encoding, &pieces).await;
        let acts = std::iter::once(head("200 OK", encoding)).chain(endless.iter().map(|piece| chunk(piece))).collect();
        let mut options = ClientOptions::default();
        options.timeouts.max_answer = 1 << 20;
        let message = ask(options, acts).await;
        assert_eq!(failure(&message), (ErrorKind::Protocol, "The answer is longer than 1 MiB"), "{encoding}");
        // An error is read as far as it is quoted.
        let acts =
            std::iter::once(head("500 Oops", encoding)).chain(endless.iter().map(|piece| chunk(piece))).collect();
        let message = ask(ClientOptions::default(), acts).await;
        assert!(failure(&message).1.len() < 8192, "{encoding}");
    }
}
