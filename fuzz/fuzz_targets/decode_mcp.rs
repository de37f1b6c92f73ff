//! Any bytes as what an MCP server writes, and as the entry of a server: read or refused without a panic, and a refusal
//! says why.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pith_mcp::config::{Source, TimeoutUnit, read_entry};
use serde_json::Value;

fuzz_target!(|line: &[u8]| {
    if let Some(answer) = pith_mcp::answer_to_line(line) {
        assert!(answer.get("error").is_some(), "a request that cannot be read is refused");
    }
    if let Ok(entry) = serde_json::from_slice::<Value>(line)
        && let Err(error) = read_entry("s", &entry, Source::User, TimeoutUnit::Seconds)
    {
        assert!(!error.why.is_empty(), "a refusal says why");
    }
});
