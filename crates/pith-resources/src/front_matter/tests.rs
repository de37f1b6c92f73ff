//! Heads of all lengths and shapes.

use serde_json::json;

use super::*;

fn head(bytes: &[u8]) -> Result<Head, HeadError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.md");
    std::fs::write(&path, bytes).unwrap();
    read_head(&path, &mut Notes::default())
}

#[test]
fn texts_are_split() {
    let check = |text: &str, expected: Option<(&str, &str)>| assert_eq!(split(text), expected, "{text:?}");
    check("---\na: 1\n---\n\n body \n", Some(("\na: 1", "body")));
    check("---\n---\nbody", Some(("", "body")));
    check("---\na: 1\n---", Some(("\na: 1", "")));
    check("---\na: 1\n--- body", Some(("\na: 1", "body")));
    check("-----\na: 1\n---\nbody", Some(("\na: 1", "body"))); // a longer line opens it, too
    check("body\n---\nx\n---\n", None);
    check(" ---\na: 1\n---\n", None);
    check("---\na: 1\n", None);
    check("", None);
}

#[test]
fn heads_are_read() {
    let check = |bytes: &[u8], fields: Value, first_line: &str| {
        let head = head(bytes).unwrap();
        assert_eq!(
            (Value::Object(head.fields), &*head.first_line),
            (fields, first_line),
            "{}",
            String::from_utf8_lossy(bytes)
        );
    };
    check(b"---\nname: x\ndescription: 'a: b'\n---\nbody\n", json!({"name": "x", "description": "a: b"}), "body");
    check(b"\xef\xbb\xbf---\r\nname: x\r\n---\r\nbody\r\n", json!({"name": "x"}), "body");
    check(b"---\rname: x\r---\rbody", json!({"name": "x"}), "body");
    check(b"---\na: no\nb: On\nc: true\n---\n", json!({"a": "no", "b": "On", "c": true}), "");
    check(b"---\n# nothing\n---\nbody", json!({}), "body");
    check(b"---\n\n---\nbody", json!({}), "body");
    check(b"just text\n", json!({}), "just text");
    check(b"---\nnever closed\n", json!({}), "---");
    check(b"", json!({}), "");
    check(b"---\ndescription: >\n  folded\n  text\n---\n", json!({"description": "folded text\n"}), "");
    check(b"---\nmetadata:\n  tags: [a, b]\n---\n", json!({"metadata": {"tags": ["a", "b"]}}), "");
    check(b"---\na: .inf\nb: -.inf\nc: .nan\nd: 0x1F\n---\n", json!({"a": null, "b": null, "c": null, "d": 31}), "");
    // YAML, but without fields.
    for yaml in ["just text", "- a\n- b", "42", "true", ".inf"] {
        check(format!("---\n{yaml}\n---\nbody").as_bytes(), json!({}), "body");
    }
}

#[test]
fn heads_that_cannot_be_used() {
    let check = |bytes: &[u8], expected: &str| {
        let message = head(bytes).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    };
    check(b"---\ndescription: a: b\n---\n", "invalid front matter: ");
    check(b"---\n\t- x: [\n---\n", "invalid front matter: ");
    check(b"---\na: 1\na: 2\n---\n", "invalid front matter: ");
    let endless = ["---\nx: ".as_bytes(), &[b'y'; 100_000]].concat();
    check(&endless, "front matter is longer than 65536 bytes");
    // Nine anchors that multiply to a billion.
    let mut bomb = String::from("---\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..9 {
        let inner = vec![format!("*a{}", n - 1); 10].join(", ");
        bomb.push_str(&format!("a{n}: &a{n} [{inner}]\n"));
    }
    check(format!("{bomb}---\n").as_bytes(), "invalid front matter: ");
}

#[test]
fn an_error_names_the_line_of_the_file() {
    let message = head(b"---\nname: x\ndescription: [open\n---\n").unwrap_err().to_string();
    assert!(message.contains("line 3") || message.contains("line 4"), "{message}");
    assert!(!message.contains('\n'), "{message}");
}

#[test]
fn a_long_head_is_read_in_full_and_a_long_body_is_not() {
    let long = "x".repeat(30_000);
    let head_of = |text: String| head(text.as_bytes()).unwrap();
    let head = head_of(format!("---\ndescription: {long}\nname: n\n---\nfirst line\n{long}"));
    assert_eq!(text_field(&head.fields, "name").as_deref(), Some("n"));
    assert!(head.first_line == "first line");
    // The front matter ends right where the first read does.
    let filler = "x".repeat(FIRST_READ - "---\nd: \n---".len());
    let head = head_of(format!("---\nd: {filler}\n---\nfirst line\n{long}"));
    assert!(head.first_line == "first line");
    let head = head_of(format!("---\nname: n\n---\n{}", "x".repeat(1_000_000)));
    assert!(head.first_line.len() <= FIRST_READ, "{}", head.first_line.len());
}

#[test]
fn fields_as_text() {
    let fields = json!({"text": "a", "number": 12, "switch": true, "none": null, "list": ["a"], "map": {}});
    let Value::Object(fields) = fields else { unreachable!() };
    let check = |name, expected: Option<&str>| assert_eq!(text_field(&fields, name).as_deref(), expected, "{name}");
    check("text", Some("a"));
    check("number", Some("12"));
    check("switch", Some("true"));
    for name in ["none", "list", "map", "missing"] {
        check(name, None);
    }
}
