//! Any text as tool-call arguments: every snapshot is an object on one line, cuts change nothing, and what
//! counts as complete is what a JSON parser reads.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pith_protocol::PartialArguments;
use serde_json::{Map, Value};

fuzz_target!(|text: &str| {
    let mut whole = PartialArguments::new();
    whole.push(text);
    let mut cut = PartialArguments::new();
    for (at, character) in text.char_indices() {
        cut.push(character.encode_utf8(&mut [0; 4]));
        // Reading every snapshot back would take quadratic time.
        if at < 256 {
            snapshot(&cut);
        }
    }
    let shown = snapshot(&whole);
    assert_eq!(shown, snapshot(&cut), "cutting the text changed the snapshot");
    let complete = whole.finish();
    assert_eq!(complete, cut.finish(), "cutting the text changed the arguments");
    if let Ok(complete) = complete {
        assert_eq!(shown, complete, "the last snapshot is the arguments");
    }
});

fn snapshot(arguments: &PartialArguments) -> Map<String, Value> {
    let mut line = Vec::new();
    arguments.append_snapshot(&mut line);
    assert!(!line.contains(&b'\n'), "a snapshot is one line");
    serde_json::from_slice(&line).expect("a snapshot is an object")
}
