//! Any text is a shell command, a refusal or something that is not understood; reading it ends and never fails.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pith_permissions::CommandPattern;
use pith_permissions::command::{Part, read, scan};

fuzz_target!(|script: &str| {
    let reading = read(script);
    assert_eq!(reading, read(script), "the same text reads the same");
    assert_eq!(scan(script), scan(script), "the same text mentions the same");
    let pattern = CommandPattern::parse("git *").expect("a pattern");
    reading.parts.iter().for_each(|part| check(part, &pattern));
});

fn check(part: &Part, pattern: &CommandPattern) {
    assert!(!part.words.is_empty(), "a command has a name");
    pattern.fit(&part.words);
    part.inner.iter().for_each(|inner| check(inner, pattern));
}
