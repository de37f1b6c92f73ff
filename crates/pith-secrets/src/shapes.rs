//! What looks like a credential, whether or not it is known: for files that are made to be shown to others.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::searcher::MASK;

/// Each kind, as `pith debug check` names it, and how it looks. No mask looks like any of them.
const SHAPES: [(&str, &str); 6] = [
    (
        "private key",
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|\z)",
    ),
    ("JSON web token", r"\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_.-]*"),
    (
        "authorization",
        r#"(?i)\bauthorization\b["'\\]*\s*[:=]\s*["'\\]*((bearer|basic|token|digest|apikey)\s+)?[^\s"'\\,;{}\[\]]+"#,
    ),
    ("authorization", r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/_.~-]{16,}=*"),
    ("password in an address", r"://[^\s/:@\[\]]*:[^\s/@\[\]]+@"),
    (
        "vendor key",
        concat!(
            r"\b(sk-[A-Za-z0-9_-]{16,}|[sprw]k_(live|test)_[A-Za-z0-9]{12,}|whsec_[A-Za-z0-9]{16,}",
            r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|gl[a-z]{2,6}-[A-Za-z0-9_-]{20,}",
            r"|xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}|A[KSB]IA[A-Z0-9]{16}",
            r"|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}",
            r"|hf_[A-Za-z0-9]{20,}|gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|nvapi-[A-Za-z0-9_-]{20,}",
            r"|pplx-[A-Za-z0-9]{20,}|csk-[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}|fw_[A-Za-z0-9]{20,}",
            r"|tgp_v1_[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|do[opr]_v1_[a-f0-9]{40,}",
            r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|dckr_pat_[A-Za-z0-9_-]{20,}|lin_api_[A-Za-z0-9]{20,}",
            r"|AGE-SECRET-KEY-1[A-Z0-9]{20,})",
        ),
    ),
];

static PATTERNS: LazyLock<Vec<(&'static str, Regex)>> = LazyLock::new(|| {
    SHAPES.iter().map(|(kind, shape)| (*kind, Regex::new(shape).expect("patterns that tests have built"))).collect()
});

/// Returns the text without anything that looks like a credential.
pub fn mask_shapes(text: &str) -> Cow<'_, str> {
    let mut masked = Cow::Borrowed(text);
    for (_, pattern) in PATTERNS.iter() {
        if let Cow::Owned(without) = pattern.replace_all(&masked, MASK) {
            masked = Cow::Owned(without);
        }
    }
    masked
}

/// Returns what kind of credential a text seems to have in it.
pub fn shape_in(text: &str) -> Option<&'static str> {
    PATTERNS.iter().find(|(_, pattern)| pattern.is_match(text)).map(|(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_credential_is_masked_and_named() {
        let check = |text: &str, kind: &str, masked: &str| {
            assert_eq!(shape_in(text), Some(kind), "{text}");
            assert_eq!(mask_shapes(text), masked, "{text}");
            assert_eq!(shape_in(&mask_shapes(text)), None, "what is left of {text}");
        };
        check("a sk-ant-api03-abcdefghijklmnop b", "vendor key", "a [redacted] b");
        check("ghp_0123456789abcdefghij,AKIA0123456789ABCDEF", "vendor key", "[redacted],[redacted]");
        check("AIzaSyA0123456789abcdefghijklmnopqrstuvw", "vendor key", "[redacted]");
        check("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl!", "JSON web token", "[redacted]!");
        check("Authorization: Bearer abc, next", "authorization", "[redacted], next");
        check(r#"{"authorization":"tiny"}"#, "authorization", r#"{"[redacted]"}"#);
        check("curl -H 'Proxy-Authorization: Basic dTpw'", "authorization", "curl -H 'Proxy-[redacted]'");
        check("bearer 0123456789abcdef==", "authorization", "[redacted]");
        check("https://me:hunter2@example.org/x", "password in an address", "https[redacted]example.org/x");
        let pem = "-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----";
        check(&format!("x {pem} y"), "private key", "x [redacted] y");
        // One that was cut has no end.
        check(&pem[..40], "private key", "[redacted]");
    }

    #[test]
    fn ordinary_texts_stay() {
        for text in [
            "a task-list-with-a-long-name and a risk-assessment-of-something",
            r#"headers=["authorization", "content-type"]"#,
            r#"{"authorization":{"bytes":12,"hash":"00"}}"#,
            "http://127.0.0.1:40631/v1/messages",
            "-----BEGIN PUBLIC KEY-----",
            "basic knowledge, bearer of news, eyJ",
            "3b570b2a-11b9-72ee-b80d-8eb83b570b2a",
        ] {
            assert_eq!(mask_shapes(text), text);
            assert_eq!(shape_in(text), None, "{text}");
        }
    }
}
