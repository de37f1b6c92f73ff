//! Any bytes as a Responses stream.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pith_ai::fuzz::fuzz_responses(bytes));
