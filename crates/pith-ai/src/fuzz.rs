//! Entry points for fuzzing: plain functions over bytes that panic when an
//! invariant breaks. The test suite calls them too.

use std::ops::ControlFlow;

use pith_protocol::{AssistantEvent, PartialArguments};

use crate::assemble::MessageBuilder;
use crate::sse::{SseDecoder, SseEvent};
use crate::wire::{self, Wire};

pub use crate::sse::fuzz_sse;

/// Decodes any bytes as an Anthropic stream.
pub fn fuzz_anthropic(bytes: &[u8]) {
    decode(&wire::anthropic::Anthropic, Calls::OfPieces, bytes);
}

/// Decodes any bytes as a chat-completions stream.
pub fn fuzz_completions(bytes: &[u8]) {
    decode(&wire::completions::Completions, Calls::OfPieces, bytes);
}

/// Decodes any bytes as a Responses stream.
pub fn fuzz_responses(bytes: &[u8]) {
    decode(&wire::responses::Responses, Calls::EndWhole, bytes);
}

/// Decodes any bytes as a Gemini stream.
pub fn fuzz_google(bytes: &[u8]) {
    decode(&wire::google::Google, Calls::OfPieces, bytes);
}

/// Where a wire has the arguments of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    OfPieces,
    /// The last event of a call has all of them, whatever the pieces were.
    EndWhole,
}

/// Checks a decoder: whatever the bytes, there is one end event and nothing after it.
fn decode(wire: &dyn Wire, calls: Calls, bytes: &[u8]) {
    let mut message = MessageBuilder::new(Default::default(), 0);
    let mut decoder = wire.decoder();
    let mut sse = SseDecoder::with_limit(1 << 20);
    let mut handle = |event: SseEvent<'_>| {
        decoder.event(event, &mut message);
        if message.is_finished() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    if sse.push(bytes, &mut handle).is_ok_and(|flow| flow.is_continue()) {
        let _ = sse.finish(&mut handle);
    }
    if !message.is_finished() {
        decoder.end(None, &mut message);
    }
    let events: Vec<_> = std::iter::from_fn(|| message.next_event()).collect();
    let ends = events.iter().filter(|event| matches!(event, AssistantEvent::End(_))).count();
    assert!(ends == 1 && matches!(events.last(), Some(AssistantEvent::End(_))), "no clean end");
    check_blocks(&events, calls);
}

/// Checks that every block starts once, grows, ends once, and that its pieces make up its content.
fn check_blocks(events: &[AssistantEvent], calls: Calls) {
    use AssistantEvent as E;
    let mut open: Vec<Option<String>> = Vec::new();
    for event in events {
        match event {
            E::TextStart { index } | E::ThinkingStart { index } | E::ToolCallStart { index, .. } => {
                assert_eq!(*index, open.len(), "blocks start in order");
                open.push(Some(String::new()));
            }
            E::TextDelta { index, delta } | E::ThinkingDelta { index, delta } | E::ToolCallDelta { index, delta } => {
                open[*index].as_mut().expect("the block is open").push_str(delta);
            }
            E::TextEnd { index, content, .. } | E::ThinkingEnd { index, content, .. } => {
                assert_eq!(open[*index].take().as_ref(), Some(content), "pieces make up the content");
            }
            E::ToolCallEnd { index, call } => {
                let raw = open[*index].take().expect("the call is open");
                if calls == Calls::EndWhole {
                    continue;
                }
                let mut arguments = PartialArguments::new();
                arguments.push(&raw);
                match arguments.finish() {
                    Ok(whole) => assert_eq!(call.arguments, whole),
                    // Those of an answer that was broken off are kept as far as they can be read.
                    Err(_) => assert!(call.arguments.is_empty() || call.arguments == arguments.snapshot()),
                }
            }
            E::Start(_) | E::Meta { .. } => {}
            E::End(message) => {
                assert!(open.iter().all(Option::is_none), "every block has ended");
                assert_eq!(message.content.len(), open.len());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fixture;
    use proptest::prelude::*;

    #[test]
    fn absurd_counts_are_survived() {
        let check = |entry: fn(&[u8]), json: &str| {
            for number in ["18446744073709551615", "2e77", "-1", "1e999"] {
                entry(format!("data: {}\n\n", json.replace('#', number)).as_bytes());
            }
        };
        check(
            fuzz_anthropic,
            r#"{"type":"message_start","message":{"usage":{"input_tokens":#,"output_tokens":#,"cache_creation_input_tokens":#}}}"#,
        );
        check(
            fuzz_completions,
            r#"{"choices":[],"usage":{"prompt_tokens":#,"completion_tokens":#,"prompt_tokens_details":{"cached_tokens":#,"cache_write_tokens":#}}}"#,
        );
        check(
            fuzz_responses,
            r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":#,"output_tokens":#,"input_tokens_details":{"cached_tokens":#}}}}"#,
        );
        check(
            fuzz_google,
            r#"{"usageMetadata":{"promptTokenCount":#,"candidatesTokenCount":#,"thoughtsTokenCount":#}}"#,
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        /// Pieces of real streams in any order, with anything between them.
        #[test]
        fn any_mixture_of_streams_ends_cleanly(
            cuts in prop::collection::vec((0usize..4, 0usize..5000, 1usize..400), 0..8),
            noise in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let streams = ["anthropic", "completions", "responses", "google"].map(|name| fixture(&format!("{name}.sse")));
            let mut bytes = Vec::new();
            for (stream, start, length) in cuts {
                let stream = streams[stream].as_bytes();
                let start = start % stream.len();
                bytes.extend_from_slice(&stream[start..(start + length).min(stream.len())]);
                bytes.extend_from_slice(&noise);
            }
            for entry in [fuzz_sse, fuzz_anthropic, fuzz_completions, fuzz_responses, fuzz_google] {
                entry(&bytes);
            }
        }
    }
}
