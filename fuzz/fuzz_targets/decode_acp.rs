//! Any bytes as a line of an editor: decoded without a panic, and an id is given back as JSON on one line. Prompts in it
//! are read as far as they go.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use pith_acp::acp::PromptRequest;
use pith_acp::error::cancelled;
use pith_acp::prompt::{PromptPlace, convert};
use pith_acp::wire::{Incoming, append_answer, decode};

fuzz_target!(|line: &[u8]| {
    let (id, params) = match decode(line) {
        Some(Incoming::Request { id, params, .. }) => (id, Some(params)),
        Some(Incoming::Refused { id, error }) => {
            assert!(!error.message.is_empty(), "a refusal says why");
            (id, None)
        }
        Some(Incoming::Notification { .. } | Incoming::Answer { .. }) | None => return,
    };
    let mut answer = Vec::new();
    append_answer(&mut answer, &id, Err(&cancelled()));
    assert!(!answer.contains(&b'\n'), "an answer is one line");
    serde_json::from_slice::<serde_json::Value>(&answer).expect("an answer is JSON");
    if let Some(Ok(request)) = params.map(pith_acp::params::read::<PromptRequest>) {
        let keep = |_: &str| Err(std::io::ErrorKind::Unsupported.into());
        let _ = convert(&request.prompt, &PromptPlace { cwd: Path::new("/nowhere"), keep: &keep });
    }
});
