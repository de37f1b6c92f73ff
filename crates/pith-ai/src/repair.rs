//! Mends JSON texts that servers get almost right.

/// Makes strings of a JSON text legal: raw control characters are escaped, a
/// backslash that begins no escape is doubled, half a surrogate pair becomes
/// U+FFFD. Returns nothing if there was nothing to mend.
pub fn repair(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len() + 16);
    let (mut kept, mut at, mut in_string) = (0, 0, false);
    while at < bytes.len() {
        let (mended, length) = match bytes[at] {
            b'"' => {
                in_string = !in_string;
                (None, 1)
            }
            b'\\' if in_string => mend_escape(&bytes[at..]),
            byte @ ..0x20 if in_string => (Some(format!("\\u{byte:04x}")), 1),
            _ => (None, 1),
        };
        if let Some(mended) = mended {
            out.push_str(&text[kept..at]);
            out.push_str(&mended);
            kept = at + length;
        }
        at += length;
    }
    if kept == 0 {
        return None;
    }
    out.push_str(&text[kept..]);
    Some(out)
}

/// Returns the replacement of the escape at the start of `bytes`, if it needs one, and its length.
fn mend_escape(bytes: &[u8]) -> (Option<String>, usize) {
    const REPLACEMENT: &str = "\\ufffd";
    match bytes.get(1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => (None, 2),
        Some(b'u') => match (code_unit(bytes), bytes.get(6..).and_then(code_unit)) {
            (None, _) => (Some("\\\\".to_owned()), 1),
            (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => (None, 12),
            (Some(0xD800..0xE000), _) => (Some(REPLACEMENT.to_owned()), 6),
            (Some(_), _) => (None, 6),
        },
        _ => (Some("\\\\".to_owned()), 1),
    }
}

fn code_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.get(..6)?.strip_prefix(b"\\u")?;
    let digits =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(repair(text).as_deref(), expected, "{text}");
    }

    #[test]
    fn only_strings_are_mended() {
        check("{\n\"a\": 1}", None);
        check(r#"{"a":"\n\u0041\ud83d\ude00"}"#, None);
        check("{\"a\":\"x\ny\"}", Some("{\"a\":\"x\\u000ay\"}"));
        check(r#"{"a":"C:\q\u00zz"}"#, Some(r#"{"a":"C:\\q\\u00zz"}"#));
        check(r#"{"a":"\ud83d","b":"\ude00\ud83d\n"}"#, Some(r#"{"a":"\ufffd","b":"\ufffd\ufffd\n"}"#));
        check(r#"{"a":"cut\"#, Some(r#"{"a":"cut\\"#));
        check(r#"{"a":"é\u12"#, Some(r#"{"a":"é\\u12"#));
    }

    proptest! {
        #[test]
        fn good_json_stays_and_nothing_panics(text in any::<String>(), noise in r#"["\\u0-9a-f\n{}d8c]{0,40}"#) {
            let good = serde_json::to_string(&Value::from(text)).expect("serializes");
            prop_assert_eq!(repair(&good), None);
            let _ = repair(&noise);
        }
    }
}
