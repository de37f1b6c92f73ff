use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;

#[test]
fn numbers_and_separators() {
    assert_eq!(to_string(&json!({"a": 3.0, "b": 0.00009, "c": 1})), r#"{"a":3,"b":0.00009,"c":1}"#);
    assert_eq!(to_string(&[f64::NAN, f64::INFINITY, -0.5]), "[null,null,-0.5]");
    assert_eq!(to_string("a\u{2028}b\u{2029}c\u{85}d\u{2027}é"), "\"a\\u2028b\\u2029c\\u0085d\u{2027}é\"");
}

#[test]
fn escaped_text_has_no_quotes_of_its_own() {
    let mut out = b"x".to_vec();
    append_escaped(&mut out, "say \"hi\"\n");
    assert_eq!(out, br#"xsay \"hi\"\n"#);
}

/// Everything serde knows.
#[derive(Serialize)]
enum Kind<'a> {
    Unit,
    One(&'a str),
    Two(u8, i64),
    Named { a: Option<bool>, b: char },
}

#[derive(Serialize)]
struct Whole<'a> {
    kinds: [Kind<'a>; 4],
    nothing: (),
    pair: (f32, i128),
    bytes: &'a [u8],
    raw: &'a RawValue,
    numbered: BTreeMap<u16, bool>,
    #[serde(flatten)]
    more: BTreeMap<&'a str, u64>,
}

#[test]
fn every_shape_is_written_as_the_library_writes_it() {
    let raw = serde_json::from_str(r#"{ "kept":  1.0 }"#).expect("JSON");
    let whole = Whole {
        kinds: [Kind::Unit, Kind::One("x"), Kind::Two(1, -2), Kind::Named { a: None, b: '"' }],
        nothing: (),
        pair: (0.5, -(1 << 90)),
        bytes: b"ab",
        raw,
        numbered: BTreeMap::from([(7, true)]),
        more: BTreeMap::from([("z", u64::MAX)]),
    };
    assert_eq!(to_string(&whole), serde_json::to_string(&whole).expect("serializes"));
    assert_eq!(to_string(&json!({})), "{}");
    assert_eq!(to_string(&json!([])), "[]");
}

fn trees() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((texts(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Long runs of plain letters with something between them.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{0,70}",
        "\\PC{0,4}",
        prop::sample::select(vec!["\"", "\\", "\n", "\r", "\t", "\u{8}", "\u{c}", "\u{1}", "\u{7f}", "\u{85}"])
            .prop_map(str::to_owned),
        prop::sample::select(vec!["\u{2028}", "\u{2029}", "\u{2027}", "â", "\u{80}", "\u{e2}\u{80}", "😀"])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn what_is_written_reads_back(tree in trees()) {
        let line = to_string(&tree);
        prop_assert!(!line.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']), "{line:?}");
        let read: Value = serde_json::from_str(&line).expect("JSON");
        // Integral floats have become integers.
        prop_assert_eq!(to_string(&read), line);
    }

    #[test]
    fn texts_are_escaped_as_the_library_escapes_them(text in texts()) {
        let plain = serde_json::to_string(&text).expect("serializes");
        let separated = plain.replace('\u{85}', "\\u0085").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
        prop_assert_eq!(to_string(&text), separated);
    }
}
