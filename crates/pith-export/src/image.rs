//! Pictures, the only content a page loads, and only from itself.

use std::io;

use crate::html::Html;

/// Shows a picture, or says why it is not shown.
pub(crate) fn image(html: &mut Html<'_>, mime_type: &str, data: &str, alt: &str) -> io::Result<()> {
    match prefix(mime_type) {
        Some(prefix) if is_base64(data) => {
            html.markup("<img loading=lazy decoding=async")?;
            html.attribute("alt", alt)?;
            html.markup(" src=\"")?;
            html.markup(prefix)?;
            html.text(data)?;
            html.markup("\">")
        }
        Some(_) => html.markup("<p class=note>Image not shown: its data is damaged.</p>"),
        None => html.element("<p class=note>Image not shown: its type is ", mime_type, ".</p>"),
    }
}

/// Returns the picture of a `data:` address.
pub(crate) fn data_url(address: &str) -> Option<(&str, &str)> {
    let (mime_type, data) = address.strip_prefix("data:")?.split_once(";base64,")?;
    (prefix(mime_type).is_some() && is_base64(data)).then_some((mime_type, data))
}

/// Returns the start of the address for a picture format. SVG is left out: it is a document with scripts.
fn prefix(mime_type: &str) -> Option<&'static str> {
    match mime_type {
        "image/png" => Some("data:image/png;base64,"),
        "image/jpeg" => Some("data:image/jpeg;base64,"),
        "image/gif" => Some("data:image/gif;base64,"),
        "image/webp" => Some("data:image/webp;base64,"),
        _ => None,
    }
}

fn is_base64(data: &str) -> bool {
    let body = data.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    data.len() - body.len() <= 2 && !body.is_empty() && body.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::to_string;

    fn check(mime_type: &str, data: &str, expected: &str) {
        let page = to_string(|html| image(html, mime_type, data, "a \"b\""));
        assert!(page.contains(expected), "{page}");
        assert_eq!(page.contains("src="), expected.starts_with("src="), "{page}");
    }

    #[test]
    fn pictures_of_known_types_are_shown() {
        for mime_type in ["image/png", "image/jpeg", "image/gif", "image/webp"] {
            check(mime_type, "AAAA", &format!("src=\"data:{mime_type};base64,AAAA\""));
        }
        check("image/png", "AA==", "src=\"data:image/png;base64,AA==\"");
    }

    #[test]
    fn other_types_and_damaged_data_are_named_only() {
        check("image/svg+xml", "AAAA", "its type is image/svg+xml");
        check("text/html", "AAAA", "its type is text/html");
        check("image/png\" onerror=\"x", "AAAA", "image/png&quot; onerror=&quot;x");
        check("IMAGE/PNG;charset=x", "AAAA", "its type is");
        for data in ["", "=", "A===", "AA\"><script>", "A A", "AA=A", "https://example.org/x", "é"] {
            check("image/png", data, "its data is damaged");
        }
    }

    #[test]
    fn data_addresses() {
        assert_eq!(data_url("data:image/png;base64,AAAA"), Some(("image/png", "AAAA")));
        for bad in ["data:image/svg+xml;base64,AAAA", "data:image/png,AAAA", "data:image/png;base64,\"", "http://x"] {
            assert_eq!(data_url(bad), None);
        }
    }
}
