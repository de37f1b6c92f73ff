//! Any bytes as a line of a host: decoded without a panic, and an id is given back as valid JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pith_protocol::inbound::{Announcement, Id, Inbound, decode};

fuzz_target!(|line: &[u8]| {
    Announcement::read(line);
    match decode(line) {
        Some(Inbound::Command(id, _) | Inbound::Unknown { id, .. }) => check(&id),
        Some(Inbound::Malformed { id, error } | Inbound::BadFields { id, error, .. }) => {
            check(&id);
            assert!(!error.text.is_empty(), "a refusal says why");
        }
        Some(Inbound::Reply(_) | Inbound::Announced(_)) | None => {}
    }
});

fn check(id: &Id) {
    if let Some(raw) = id.raw() {
        assert!(!raw.get().contains(['\n', '\r']), "an answer is one line");
        serde_json::from_str::<serde_json::Value>(raw.get()).expect("an id is JSON");
    }
}
