//! Changes of files, coloured line by line.

use std::io;

use crate::html::Html;

/// How the lines of a diff are to be read.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Form {
    /// Sign, line number, text: no headers.
    Numbered,
    /// As `diff -u` and git write it.
    Unified,
}

/// Writes the lines of a diff.
pub(crate) fn diff(html: &mut Html<'_>, text: &str, form: Form) -> io::Result<()> {
    html.markup("<pre class=diff><code>")?;
    // Headers look like changed lines; only their place tells them apart.
    let mut in_header = form == Form::Unified;
    for line in crate::words::body(text).split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if form == Form::Unified {
            in_header = match line.get(..2) {
                Some("@@") => false,
                _ if line.starts_with("diff ") => true,
                _ => in_header && is_header(line),
            };
        }
        let open = match line.as_bytes().first() {
            _ if in_header => "<i class=hd>",
            Some(b'+') => "<i class=in>",
            Some(b'-') => "<i class=de>",
            Some(b'@') if form == Form::Unified => "<i class=hd>",
            _ => "<i>",
        };
        html.element(open, line, "\n</i>")?;
    }
    html.markup("</code></pre>")
}

/// Writes a replacement that was asked for, without knowing the file around it.
pub(crate) fn replacement(html: &mut Html<'_>, old: &str, new: &str) -> io::Result<()> {
    html.markup("<pre class=diff><code>")?;
    for (open, text) in [("<i class=de>- ", old), ("<i class=in>+ ", new)] {
        for line in text.lines() {
            html.element(open, line, "\n</i>")?;
        }
    }
    html.markup("</code></pre>")
}

fn is_header(line: &str) -> bool {
    let starts =
        ["---", "+++", "diff ", "index ", "new file", "deleted file", "old mode", "new mode", "rename ", "similarity "];
    starts.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::to_string;

    fn check(text: &str, form: Form, expected: &str) {
        let page = to_string(|html| diff(html, text, form));
        let lines = page.strip_prefix("<pre class=diff><code>").and_then(|page| page.strip_suffix("</code></pre>"));
        assert_eq!(lines.unwrap().replace("\n</i>", "|"), expected);
    }

    #[test]
    fn lines_are_coloured_by_their_sign() {
        check(" 1 a\n-2 b\n+2 <c>\n", Form::Numbered, "<i> 1 a|<i class=de>-2 b|<i class=in>+2 &lt;c&gt;|");
        // A removed line of dashes is no header.
        check("--- x", Form::Numbered, "<i class=de>--- x|");
    }

    #[test]
    fn headers_of_unified_diffs() {
        check(
            "--- a\n+++ b\n@@ -1 +1 @@\n--- gone\n+new\r\n",
            Form::Unified,
            "<i class=hd>--- a|<i class=hd>+++ b|<i class=hd>@@ -1 +1 @@|<i class=de>--- gone|<i class=in>+new|",
        );
        check("-a\n+b", Form::Unified, "<i class=de>-a|<i class=in>+b|");
    }

    #[test]
    fn wanted_replacements() {
        let page = to_string(|html| replacement(html, "a\nb\n", "</pre>"));
        assert_eq!(
            page,
            "<pre class=diff><code><i class=de>- a\n</i><i class=de>- b\n</i><i class=in>+ &lt;/pre&gt;\n</i></code></pre>"
        );
    }
}
