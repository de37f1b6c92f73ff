use super::*;
use proptest::prelude::*;

fn edits(list: &[(&str, &str)]) -> Vec<Edit> {
    list.iter().map(|(old, new)| Edit { old_text: (*old).to_owned(), new_text: (*new).to_owned() }).collect()
}

fn check(original: &[u8], list: &[(&str, &str)], expected: &[u8]) {
    let edited = apply(original, &edits(list), "f").unwrap_or_else(|error| panic!("{list:?}: {error}"));
    assert_eq!(edited.contents, expected, "{list:?} gave {:?}", String::from_utf8_lossy(&edited.contents));
}

fn refuse(original: &[u8], list: &[(&str, &str)], expected: &str) {
    assert_eq!(apply(original, &edits(list), "f").unwrap_err(), expected, "{list:?}");
}

#[test]
fn replacements_refer_to_the_original() {
    check(b"one\ntwo\n", &[("two", "2")], b"one\n2\n");
    check(b"one\ntwo\n", &[("two", "one"), ("one", "two")], b"two\none\n");
    check(b"abc", &[("a", "x"), ("b", "y")], b"xyc"); // touching is not overlapping
    check(b"a\nb\n", &[("b\n", "")], b"a\n");
}

#[test]
fn an_occurrence_that_overlaps_the_first_is_not_another() {
    check(b"}\n}\n}\n", &[("}\n}", "end")], b"end\n}\n");
    check(b"x\n\n\ny", &[("\n\n", "\n")], b"x\n\ny");
    check(b"aaa", &[("aa", "b")], b"ba");
    check(b"\xffaaa", &[("aa", "b")], b"\xffba");
}

#[test]
fn untouched_line_endings_stay() {
    check(b"l1\nl2\r\nl3\n", &[("l2", "L2")], b"l1\nL2\r\nl3\n");
    check(b"a\r\nb\r\nc\r\n", &[("b\nc", "B\nC")], b"a\r\nB\r\nC\r\n");
    check(b"a\r\nb\r\nc\r\n", &[("b", "b\nnew")], b"a\r\nb\r\nnew\r\nc\r\n");
    check(b"a\nb\r\nc\n", &[("a\r\nb\r\nc", "x\ny\nz")], b"x\ny\r\nz\n"); // the argument's endings do not matter
    check(b"a\rb\rc", &[("b", "B")], b"a\rB\rc");
    check(b"a\r\nb", &[("b", "b\nc")], b"a\r\nb\r\nc");
    check(b"\xef\xbb\xbfone\r\ntwo\n", &[("one\ntwo", "1\n2")], b"\xef\xbb\xbf1\r\n2\n");
}

#[test]
fn look_alikes_match_and_other_lines_keep_their_bytes() {
    let original = "say \u{201c}hi\u{201d}   \nnext  \nthird\u{a0}x  \n";
    check(original.as_bytes(), &[("say \"hi\"\nnext", "said")], "said\nthird\u{a0}x  \n".as_bytes());
    let original = "keep \u{2019}  \r\nfoo  \r\n   \nbar\u{a0}baz tail\nlast\u{2019}  \n";
    let expected = "keep \u{2019}  \r\nFOO tail\nlast\u{2019}  \n";
    check(original.as_bytes(), &[("foo\n\nbar baz", "FOO")], expected.as_bytes());
    // The line after a matched newline is not changed.
    check(
        "one \u{2014}  \ntwo  \nthree\u{a0}\n".as_bytes(),
        &[("two\n", "2\n")],
        "one \u{2014}  \n2\nthree\u{a0}\n".as_bytes(),
    );
    // One inexact edit makes all of them match look-alike text.
    check("a\u{a0}b  \nc  \n".as_bytes(), &[("a b", "x"), ("c", "y")], b"x\ny\n");
}

#[test]
fn blanks_at_the_end_of_old_text_are_replaced_where_the_file_has_them() {
    check("say \u{2018}hi\u{2019} there".as_bytes(), &[("say 'hi' ", "")], b"there");
    check("x \u{2014} y".as_bytes(), &[("x - ", "x: ")], b"x: y");
    check("it\u{2019}s\u{a0}so".as_bytes(), &[("it\u{2019}s ", "")], b"so"); // look-alikes on both sides
    check("x \u{2014}\ny".as_bytes(), &[("x - \ny", "z")], b"z"); // at the end of a line they do not count
    check("k = 1; n\nit\u{2019}s".as_bytes(), &[("k = 1; ", ""), ("it's", "is")], b"n\nis");
    refuse("k = 1; n\nk = 1;\nit\u{2019}s".as_bytes(), &[("k = 1; ", ""), ("it's", "is")], FIRST_TWICE);
}

#[test]
fn a_line_that_loses_only_its_newline_is_touched() {
    check("one \u{2014} two  \nit\u{2019}s".as_bytes(), &[("\nit's", " it is")], b"one - two it is");
    check("  \nit\u{2019}s".as_bytes(), &[("\nit's", "x")], b"x");
}

#[test]
fn bytes_that_are_not_text_survive() {
    check(b"caf\xe9 needle\n\xff\xfe\n", &[("needle", "pin")], b"caf\xe9 pin\n\xff\xfe\n");
    check(b"\xe9\r\nx\ny", &[("x\ny", "1\n2")], b"\xe9\r\n1\n2");
    refuse(b"caf\xe9  \n", &[("caf\u{e9}", "x")], NOT_FOUND);
    refuse(b"\xe9 a a", &[("a", "x")], TWO);
    refuse(b"a\0b", &[("a", "x")], "Could not edit file: f. It contains NUL bytes, so it is not a text file.");
}

const NOT_FOUND: &str =
    "Could not find the exact text in f. The old text must match exactly including all whitespace and newlines.";
const FIRST_TWICE: &str =
    "Found 2 occurrences of edits[0] in f. Each oldText must be unique. Please provide more context to make it unique.";
const TWO: &str =
    "Found 2 occurrences of the text in f. The text must be unique. Please provide more context to make it unique.";

#[test]
fn edits_that_cannot_be_applied_say_why() {
    refuse(b"a", &[], "Edit tool input is invalid. edits must contain at least one replacement.");
    refuse(b"a", &[("", "x")], "oldText must not be empty in f.");
    refuse(b"a", &[("a", "x"), ("", "x")], "edits[1].oldText must not be empty in f.");
    refuse(b"a", &[("z", "x")], NOT_FOUND);
    refuse(b"a", &[("  ", "x")], NOT_FOUND);
    refuse(
        b"a",
        &[("a", "x"), ("q", "y")],
        "Could not find edits[1] in f. The oldText must match exactly including all whitespace and newlines.",
    );
    refuse(b"dup\nx\ndup\n", &[("dup", "y")], TWO);
    refuse(b"foo  \nbar\nfoo\n", &[("foo\n", "x\n")], TWO); // alike but for trailing blanks
    refuse(b"aaaa", &[("aa", "b")], TWO);
    refuse("e e\u{301}".as_bytes(), &[("e", "x")], TWO); // one of them is only half a letter
    refuse(
        b"a a b",
        &[("b", "x"), ("a", "y")],
        "Found 2 occurrences of edits[1] in f. Each oldText must be unique. Please provide more context to make it \
         unique.",
    );
    refuse(
        b"dup\nx\ndup\n",
        &[("x\ndup", "2"), ("dup\nx", "1")],
        "edits[1] and edits[0] overlap in f. Merge them into one edit or target disjoint regions.",
    );
    refuse(
        b"x\n",
        &[("x", "x")],
        "No changes made to f. The replacement produced identical content. This might indicate an issue with special \
         characters or the text not existing as expected.",
    );
    refuse(b"x\ny\n", &[("x", "x"), ("y", "y")], "No changes made to f. The replacements produced identical content.");
    refuse(b"x\r\n", &[("x\n", "x\r\n")], &apply(b"x", &edits(&[("x", "x")]), "f").unwrap_err());
}

proptest! {
    /// A unique text is replaced and every other byte stays, whatever the file contains.
    #[test]
    fn an_exact_edit_changes_exactly_its_place(
        before in proptest::collection::vec(any::<u8>().prop_filter("no NUL", |byte| *byte != 0), 0..40),
        after in proptest::collection::vec(any::<u8>().prop_filter("no NUL", |byte| *byte != 0), 0..40),
        new in "[a-z]{0,6}",
    ) {
        let original = [before.as_slice(), b"<needle>", &after].concat();
        let edited = apply(&original, &edits(&[("<needle>", &new)]), "f").unwrap();
        prop_assert_eq!(edited.contents, [before.as_slice(), new.as_bytes(), &after].concat());
    }

    /// The result is either an error, or the edits applied to the original, in any order.
    #[test]
    fn edits_apply_wholly_or_not_at_all(
        original in "(a|b| |\u{2019}|é|\n|\r\n){0,24}",
        list in proptest::collection::vec(("(a|b|'|é| |\n){0,4}", "(x|y|\n){0,4}"), 1..4),
    ) {
        let list: Vec<Edit> = list.into_iter().map(|(old_text, new_text)| Edit { old_text, new_text }).collect();
        let reversed: Vec<Edit> = list.iter().rev().cloned().collect();
        match (apply(original.as_bytes(), &list, "f"), apply(original.as_bytes(), &reversed, "f")) {
            (Ok(one), Ok(other)) => {
                prop_assert_ne!(&one.contents, original.as_bytes());
                for edit in &list {
                    let new = edit.new_text.as_bytes();
                    prop_assert!(new.is_empty() || memchr::memmem::find(&one.after, new).is_some());
                }
                prop_assert_eq!(one, other);
            }
            (Err(one), Err(_)) => prop_assert!(one.contains(" f") || one.contains("in f")),
            (one, other) => prop_assert!(false, "order matters: {one:?} {other:?}"),
        }
    }
}
