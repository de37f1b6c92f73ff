//! Any text on its way to a terminal: nothing that comes out is an order, and what has passed once stays as it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pith_visible::{is_order, visible};

fuzz_target!(|text: &[u8]| {
    let text = String::from_utf8_lossy(text);
    let shown = visible(&text);
    assert!(!shown.contains(is_order), "an order is left: {shown:?}");
    assert!(shown.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | 0x20..=0x7e | 0x80..)), "a control byte is left");
    assert_eq!(visible(&shown), *shown);
    assert_eq!(text.matches('\n').count(), shown.matches('\n').count(), "lines stay lines");
});
