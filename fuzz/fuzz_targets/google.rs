//! Any bytes as a Gemini stream.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pith_ai::fuzz::fuzz_google(bytes));
