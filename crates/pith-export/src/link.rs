//! Which addresses a page may lead to.

use std::borrow::Cow;

/// Returns the address of a link, if following it is harmless: web pages and mail.
///
/// Browsers ignore control characters inside an address, so they go before the
/// scheme is looked at. Relative addresses mean nothing in an exported file.
pub(crate) fn safe_link(address: &str) -> Option<Cow<'_, str>> {
    let is_ignored = |c: char| c.is_control();
    let address: Cow<'_, str> =
        if address.contains(is_ignored) { address.replace(is_ignored, "").into() } else { address.into() };
    let address = match address {
        Cow::Borrowed(address) => Cow::Borrowed(address.trim()),
        Cow::Owned(address) => Cow::Owned(address.trim().to_owned()),
    };
    let (scheme, _) = address.split_once(':')?;
    ["http", "https", "mailto"].iter().any(|allowed| scheme.eq_ignore_ascii_case(allowed)).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_and_mail() {
        let check = |address: &str, expected: Option<&str>| assert_eq!(safe_link(address).as_deref(), expected);
        check("https://example.org/a?b#c", Some("https://example.org/a?b#c"));
        check("HTTP://example.org", Some("HTTP://example.org"));
        check("mailto:a@example.org", Some("mailto:a@example.org"));
        check(" https://example.org ", Some("https://example.org"));
        check("ht\ntps://example.org", Some("https://example.org"));
        for bad in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "java\tscript:alert(1)",
            "\u{1}javascript:alert(1)",
            "\u{85}javascript:alert(1)",
            " javascript:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "file:///etc/passwd",
            "//example.org/x",
            "/relative",
            "#e-1",
            "x:y",
            "",
            "http",
            "javascript://http://x",
            "blob:https://x",
        ] {
            check(bad, None);
        }
    }
}
