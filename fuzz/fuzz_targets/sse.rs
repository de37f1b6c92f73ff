//! Any bytes as server-sent events, whole and in single bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pith_ai::fuzz::fuzz_sse(bytes));
