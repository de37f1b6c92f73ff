//! Any bytes as a session file: read, migrated if old, walked and projected.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pith_store::fuzz_load(bytes));
