//! Code with its tokens marked.

use std::io;

use pith_highlight::{Language, Token, tokens};

use crate::html::Html;

/// Longer code stays plain: markup around each word would multiply the page.
const MAX_CODE: usize = 200_000;

/// Writes code with its tokens marked.
pub(crate) fn code(html: &mut Html<'_>, text: &str, language: Option<&'static Language>) -> io::Result<()> {
    let Some(language) = language.filter(|_| text.len() <= MAX_CODE) else { return html.text(text) };
    for (piece, token) in tokens(text, language) {
        match token {
            Some(token) if html.take_colour() => html.element(open(token), piece, "</i>")?,
            _ => html.text(piece)?,
        }
    }
    Ok(())
}

fn open(token: Token) -> &'static str {
    match token {
        Token::Comment => "<i class=c>",
        Token::String => "<i class=s>",
        Token::Number => "<i class=n>",
        Token::Keyword => "<i class=k>",
        Token::Function => "<i class=f>",
        Token::Type => "<i class=t>",
        Token::Member => "<i class=p>",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::to_string;
    use pith_highlight::by_name;

    fn check(language: &str, text: &str, expected: &str) {
        assert_eq!(to_string(|html| code(html, text, by_name(language))), expected);
    }

    #[test]
    fn tokens_are_marked_and_text_is_escaped() {
        check("rust", "fn f() { 'x' }", "<i class=k>fn</i> <i class=f>f</i>() { <i class=s>&#39;x&#39;</i> }");
        check("nope", "<b> // x", "&lt;b&gt; // x");
        let long = "fn ".repeat(MAX_CODE / 3 + 1);
        check("rust", &long, &long);
    }
}
