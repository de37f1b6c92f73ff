use super::*;
use proptest::prelude::*;

fn arguments(pieces: &[&str]) -> PartialArguments {
    let mut arguments = PartialArguments::new();
    pieces.iter().for_each(|piece| arguments.push(piece));
    arguments
}

fn snapshot(arguments: &PartialArguments) -> String {
    let mut out = Vec::new();
    arguments.append_snapshot(&mut out);
    String::from_utf8(out).expect("UTF-8")
}

/// Checks the snapshot of `text` fed whole and character by character.
fn check(text: &str, expected: &str) {
    assert_eq!(snapshot(&arguments(&[text])), expected, "whole: {text:?}");
    let mut single = PartialArguments::new();
    for character in text.chars() {
        single.push(character.encode_utf8(&mut [0; 4]));
    }
    assert_eq!(snapshot(&single), expected, "in single characters: {text:?}");
    assert_eq!(single.raw(), text);
    serde_json::from_str::<Map<String, Value>>(expected).expect("an object");
}

#[test]
fn open_text_is_closed() {
    check(r#"{"a": "x"#, r#"{"a":"x"}"#);
    check(r#"{"a": [1, 2"#, r#"{"a":[1,2]}"#);
    check(r#"{"a": [1, {"b": [[]"#, r#"{"a":[1,{"b":[[]]}]}"#);
    check(r#"{"a": tr"#, r#"{"a":true}"#);
    check(r#"{"a": fal"#, r#"{"a":false}"#);
    check(r#"{"a": nul"#, r#"{"a":null}"#);
    check(r#"{"a":"", "b": [ ], "c": { } , "d":-0.5e+3 }"#, r#"{"a":"","b":[],"c":{},"d":-0.5e+3}"#);
}

#[test]
fn what_is_not_known_yet_is_left_out() {
    check("", "{}");
    check(" \n", "{}");
    check("{", "{}");
    check(r#"{"a"#, "{}");
    check(r#"{"a":"#, "{}");
    check(r#"{"a": 1."#, "{}");
    check(r#"{"a": -"#, "{}");
    check(r#"{"a": 1e"#, "{}");
    check(r#"{"x":1, "a": -"#, r#"{"x":1}"#);
    check(r#"{"x":[1, -"#, r#"{"x":[1]}"#);
    check(r#"{"x":{"y":"z"}, "a"#, r#"{"x":{"y":"z"}}"#);
    check(r#"{"path": "a\"#, r#"{"path":"a"}"#);
    check(r#"{"a":"\u00"#, r#"{"a":""}"#);
    check("{\"a\":\"\\ud83d", r#"{"a":""}"#);
}

#[test]
fn faulty_strings_are_repaired() {
    check(r#"{"a":"C:\q"}"#, r#"{"a":"C:\\q"}"#);
    check(r#"{"a":"\u00g"}"#, r#"{"a":"\\u00g"}"#);
    check(r#"{"a":"\u00""#, r#"{"a":"\\u00"}"#);
    check("{\"a\":\"x\ny\u{1}\"", "{\"a\":\"x\\u000ay\\u0001\"}");
    check("{\"a\":\"\u{2028}é\u{2029}€\u{85}â\"}", "{\"a\":\"\\u2028é\\u2029€\\u0085â\"}");
}

#[test]
fn half_a_surrogate_pair_becomes_the_replacement_character() {
    check(r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\ud83d\ude00"}"#);
    check(r#"{"a":"\ud83dx"}"#, r#"{"a":"\ufffdx"}"#);
    check(r#"{"a":"\ude00"}"#, r#"{"a":"\ufffd"}"#);
    check(r#"{"a":"\ud83d\ud83d\n"}"#, r#"{"a":"\ufffd\ufffd\n"}"#);
    check(r#"{"\ud83d":"\ud83d\q"}"#, r#"{"\ufffd":"\ufffd\\q"}"#);
    check(r#"{"a":"\uD83D\u0041"}"#, r#"{"a":"\ufffd\u0041"}"#);
}

#[test]
fn text_that_is_not_json_shows_what_came_before() {
    check("garbage", "{}");
    check("[1]", "{}");
    check("null", "{}");
    check(r#"{"a":1 oops"#, r#"{"a":1}"#);
    check(r#"{"a":1,"b":truX"#, r#"{"a":1}"#);
    check(r#"{"a":1,"b":01}"#, r#"{"a":1,"b":0}"#);
    check(r#"{"a":1]"#, r#"{"a":1}"#);
    check(r#"{"a":[1}"#, r#"{"a":[1]}"#);
    check(r#"{"a":1,}"#, r#"{"a":1}"#);
    check(r#"{"a":1} {"b":2}"#, r#"{"a":1}"#);
    check(r#"{"a":1,"b":1e999}"#, r#"{"a":1}"#);
}

#[test]
fn depth_is_bounded() {
    let deep = "{\"a\":".to_owned() + &"[".repeat(100_000);
    let shown = snapshot(&arguments(&[&deep]));
    assert!(serde_json::from_str::<Map<String, Value>>(&shown).is_ok());
    assert_eq!(shown.matches('[').count(), MAX_DEPTH - 1);
    assert!(arguments(&[&deep]).finish().is_err());
}

#[test]
fn only_complete_objects_can_be_called_with() {
    let good = |text: &str| Value::Object(arguments(&[text]).finish().expect(text));
    assert_eq!(good(" "), serde_json::json!({}));
    assert_eq!(good("{\"a\":\"x\ny\\q\"} \n"), serde_json::json!({"a": "x\ny\\q"}));
    let bad = |text: &str| arguments(&[text]).finish().expect_err(text).to_string();
    assert_eq!(bad(r#"{"command":"echo hello wor"#), "text ends inside a string at offset 26");
    assert_eq!(bad(r#"{"a":[1"#), "text ends at offset 7 with 2 open brackets");
    assert_eq!(bad(r#"{"a":1} x"#), "unexpected 'x' at offset 8");
    assert_eq!(bad("[1"), "unexpected '[' at offset 0");
    assert_eq!(bad("{\"a\":é}"), "unexpected 'é' at offset 5");
}

#[test]
fn json_that_is_no_object_is_called_by_its_kind() {
    let check = |text: &str, kind| {
        assert_eq!(arguments(&[text]).finish(), Err(BadArguments::NotAnObject(kind)), "{text}");
    };
    check(" [1] ", "array");
    check(r#""{\"a\":1}""#, "string");
    check("-1.5e3", "number");
    check("true", "boolean");
    check("null", "null");
}

#[test]
fn a_mebibyte_in_single_bytes_costs_no_more_than_its_length() {
    let text = format!("{{\"content\":\"{}\"}}", "abc\\n".repeat(1 << 18));
    // Reading it again for every byte would take hours.
    let mut arguments = PartialArguments::new();
    for at in 0..text.len() {
        arguments.push(&text[at..=at]);
    }
    assert_eq!(arguments.finish().expect("complete")["content"].as_str().map(str::len), Some(1 << 20));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((any::<String>(), value()), 0..5).prop_map(|members| members.into_iter().collect())
}

/// Feeds `text` in pieces of the given sizes, looking at every snapshot.
fn feed(text: &str, sizes: &[usize]) -> PartialArguments {
    let mut arguments = PartialArguments::new();
    let (mut rest, mut sizes) = (text, sizes.iter().cycle());
    while !rest.is_empty() {
        let mut cut = rest.len().min(*sizes.next().unwrap_or(&1));
        while !rest.is_char_boundary(cut) {
            cut += 1;
        }
        let (piece, tail) = rest.split_at(cut);
        arguments.push(piece);
        rest = tail;
        let shown = snapshot(&arguments);
        assert!(serde_json::from_str::<Map<String, Value>>(&shown).is_ok(), "{shown}");
        assert!(!shown.contains(['\n', '\r', '\u{2028}', '\u{2029}', '\u{85}']), "{shown}");
    }
    arguments
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_prefix_is_an_object_and_the_whole_is_equal(
        object in object(), pretty in any::<bool>(), sizes in prop::collection::vec(1usize..9, 1..8)
    ) {
        let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) };
        let text = text.expect("serializes");
        let parsed: Map<String, Value> = serde_json::from_str(&text).expect("parses");
        let arguments = feed(&text, &sizes);
        let shown: Map<String, Value> = serde_json::from_str(&snapshot(&arguments)).expect("an object");
        prop_assert_eq!(&shown, &parsed);
        prop_assert_eq!(arguments.finish(), Ok(parsed));
    }

    #[test]
    fn anything_at_all_gives_an_object(
        text in r#"(\{"a":)?([\{\}\[\]":,\\ut0-9eE.nr\-\n \u{2028}é]|\\ud83d|\\udc00|true|null|"a":){0,60}"#,
        sizes in prop::collection::vec(1usize..9, 1..8)
    ) {
        let arguments = feed(&text, &sizes);
        if let Ok(object) = arguments.finish() {
            prop_assert_eq!(serde_json::from_str::<Map<String, Value>>(&snapshot(&arguments)).expect("object"), object);
        }
    }
}
