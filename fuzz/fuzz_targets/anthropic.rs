//! Any bytes as an Anthropic stream.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pith_ai::fuzz::fuzz_anthropic(bytes));
