//! Any bytes as a chat-completions stream.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pith_ai::fuzz::fuzz_completions(bytes));
