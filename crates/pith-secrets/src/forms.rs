//! The forms in which a value may stand in a text.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What RFC 3986 encodes.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// What `encodeURIComponent` encodes.
const COMPONENT: &AsciiSet = &RESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');
/// A shorter part of a base64 text is too common to be hidden.
const MIN_PART: usize = 8;

/// Returns a value plain, JSON-escaped, percent-encoded and in base64, each form once.
pub(crate) fn forms(value: &str) -> Vec<String> {
    let escaped = json_escaped(value);
    let percent = |set| utf8_percent_encode(value, set).to_string();
    let mut forms = vec![
        value.to_owned(),
        // Text in JSON may be JSON itself: what a tool returns, in a frame.
        json_escaped(&escaped),
        escaped.replace('/', "\\/"),
        ascii_escaped(&escaped),
        escaped,
    ];
    for encoded in [percent(RESERVED), percent(COMPONENT), percent(RESERVED).replace("%20", "+")] {
        forms.push(lower_case_escapes(&encoded));
        forms.push(encoded);
    }
    forms.extend(base64_forms(value.as_bytes()));
    forms.sort_unstable();
    forms.dedup();
    forms
}

fn json_escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Returns an escaped text with everything beyond ASCII as `\uXXXX`.
fn ascii_escaped(escaped: &str) -> String {
    let mut units = [0; 2];
    let one = |char: char| match char {
        ascii if ascii.is_ascii() => ascii.to_string(),
        char => char.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    escaped.chars().map(one).collect()
}

fn lower_case_escapes(encoded: &str) -> String {
    let mut left = 0;
    let one = |char: char| {
        let is_digit = left > 0;
        left = if char == '%' { 2_usize } else { left.saturating_sub(1) };
        if is_digit { char.to_ascii_lowercase() } else { char }
    };
    encoded.chars().map(one).collect()
}

/// Returns the value in base64 by itself, and what all base64 texts have in common that contain it somewhere.
fn base64_forms(value: &[u8]) -> Vec<String> {
    let mut forms = vec![STANDARD.encode(value)];
    for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
        forms.push(engine.encode(value));
        for n_before in 0..3 {
            let text = engine.encode([&[0; 2][..n_before], value].concat());
            // A character takes six bits: those at the ends are shared with what stands before and behind.
            let first = (n_before * 8).div_ceil(6);
            let end = (n_before + value.len()) * 8 / 6;
            forms.extend(text.get(first..end).filter(|part| part.len() >= MIN_PART).map(str::to_owned));
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_the_forms_that_programs_write() {
        let check = |value: &str, written: &str| {
            let forms = forms(value);
            assert!(forms.iter().any(|form| form == written), "{written} is not in {forms:?}");
        };
        check("key/with \"all\"", "key/with \"all\"");
        check("key/with \"all\"", r#"key/with \"all\""#);
        check("key/with \"all\"", r#"key/with \\\"all\\\""#);
        check("key/with \"all\"", r#"key\/with \"all\""#);
        check("key/with \"all\"", "key%2Fwith%20%22all%22");
        check("key/with \"all\"", "key%2fwith%20%22all%22");
        check("key/with \"all\"", "key%2Fwith+%22all%22");
        check("clé-1234", r"cl\u00e9-1234");
        check("12345678", "MTIzNDU2Nzg=");
        check("12345678", "MTIzNDU2Nzg");
        check("???>>>???", "Pz8_Pj4-Pz8_");
        // A plain value is looked for in few forms.
        assert!(forms("sk-abcdefgh").len() <= 6, "{:?}", forms("sk-abcdefgh"));
    }

    #[test]
    fn base64_is_known_wherever_the_value_stands() {
        let value = "sk-0123456789abcdef";
        for before in ["", "u", "us", "user:"] {
            for behind in ["", "\n", "!!", "@host"] {
                let text = STANDARD.encode(format!("{before}{value}{behind}"));
                assert!(forms(value).iter().any(|form| text.contains(form.as_str())), "{text}");
            }
        }
    }
}
