//! Any file under any edits: all of them apply or none, and a single exact edit does what it says.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use pith_tools::edit::{Edit, apply};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    /// Old and new texts.
    edits: Vec<(String, String)>,
    /// Edits whose old text is a part of the file, so that many match: start, length, new text.
    matching: Vec<(u16, u8, String)>,
    file: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let part = |start: u16, length: u8| {
        let start = usize::from(start).min(input.file.len());
        let end = (start + usize::from(length)).min(input.file.len());
        String::from_utf8_lossy(&input.file[start..end]).into_owned()
    };
    let mut edits: Vec<_> =
        input.matching.iter().map(|(start, length, new)| (part(*start, *length), new.clone())).collect();
    edits.extend(input.edits.iter().cloned());
    let edits: Vec<_> = edits.into_iter().map(|(old_text, new_text)| Edit { old_text, new_text }).collect();
    match apply(input.file, &edits, "file") {
        Err(error) => assert!(!error.is_empty(), "a refusal says why"),
        Ok(edited) => {
            assert_ne!(*edited.before, *edited.after, "an edit that changes nothing is refused");
            check_single(input.file, &edits, &edited.contents);
        }
    }
});

/// Plain replacement is the model for one edit of a UTF-8 file with LF line ends and no byte order mark.
fn check_single(file: &[u8], edits: &[Edit], contents: &[u8]) {
    let [edit] = edits else { return };
    let Ok(text) = std::str::from_utf8(file) else { return };
    let is_plain = !text.starts_with('\u{feff}') && ![text, &edit.old_text, &edit.new_text].concat().contains('\r');
    if is_plain && text.matches(&edit.old_text).count() == 1 {
        assert_eq!(contents, text.replacen(&edit.old_text, &edit.new_text, 1).as_bytes());
    }
}
