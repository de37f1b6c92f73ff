//! Colours for code: comments, strings, numbers, keywords and a few kinds of
//! names, told apart by [`Language`] tables. Not a parser; it is wrong now and
//! then, which costs a colour and never a character.

use std::collections::HashSet;
use std::io;

use crate::html::Html;
use crate::languages::{Family, Language};

/// Longer code stays plain: markup around each word would multiply the page.
const MAX_CODE: usize = 200_000;

/// Writes code with its tokens marked.
pub(crate) fn code(html: &mut Html<'_>, text: &str, language: Option<&Language>) -> io::Result<()> {
    let Some(language) = language.filter(|_| text.len() <= MAX_CODE) else { return html.text(text) };
    let mut scanner = Scanner::new(text, language);
    let mut plain = 0;
    while scanner.at < text.len() {
        let start = scanner.at;
        let Some(token) = scanner.token() else { continue };
        if !html.take_colour() {
            break;
        }
        html.text(&text[plain..start])?;
        html.element(token.open(), &text[start..scanner.at], "</i>")?;
        plain = scanner.at;
    }
    html.text(&text[plain..])
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    Comment,
    String,
    Number,
    Keyword,
    Function,
    Type,
    Member,
}

impl Token {
    fn open(self) -> &'static str {
        match self {
            Token::Comment => "<i class=c>",
            Token::String => "<i class=s>",
            Token::Number => "<i class=n>",
            Token::Keyword => "<i class=k>",
            Token::Function => "<i class=f>",
            Token::Type => "<i class=t>",
            Token::Member => "<i class=p>",
        }
    }
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    language: &'t Language,
    keywords: HashSet<&'t str>,
    /// Inside `<…>` of a markup language.
    in_tag: bool,
    /// For each quote, up to where no string of it ends. Keeps hostile text linear.
    unclosed: [usize; 4],
}

impl<'t> Scanner<'t> {
    fn new(text: &'t str, language: &'t Language) -> Self {
        let keywords = language.keywords.split_ascii_whitespace().collect();
        Scanner { text, at: 0, language, keywords, in_tag: false, unclosed: [0; 4] }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Skips the next token, or text that is not one.
    fn token(&mut self) -> Option<Token> {
        if self.skip_comment() {
            return Some(Token::Comment);
        }
        if self.language.family == Family::Markup && !self.in_tag {
            return self.text_between_tags();
        }
        if self.skip_string() {
            return Some(if self.is_member() { Token::Member } else { Token::String });
        }
        let first = self.rest().chars().next()?;
        if first == '>' {
            self.in_tag = false;
        }
        if first.is_ascii_digit() {
            self.skip_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'));
            return Some(Token::Number);
        }
        self.at += first.len_utf8();
        if self.language.sigils.contains(first) && self.rest().starts_with(|c: char| c.is_alphabetic() || c == '_') {
            self.skip_while(|c| is_word(c, Family::Code));
            return Some(Token::Type);
        }
        if !is_word_start(first) {
            return None;
        }
        self.at -= first.len_utf8();
        self.word()
    }

    fn word(&mut self) -> Option<Token> {
        let start = self.at;
        self.skip_while(|c| is_word(c, self.language.family));
        let word = &self.text[start..self.at];
        if self.language.family == Family::Markup {
            let is_tag = self.text[..start].ends_with(['<', '/']);
            return Some(if is_tag { Token::Keyword } else { Token::Member });
        }
        if self.is_member() {
            return Some(Token::Member);
        }
        let is_keyword = match self.language.family {
            Family::Sql => self.keywords.contains(word.to_ascii_lowercase().as_str()),
            Family::Code | Family::Rust | Family::Markup | Family::Dashed => self.keywords.contains(word),
        };
        if is_keyword {
            return Some(Token::Keyword);
        }
        let is_capital =
            word.starts_with(|c: char| c.is_ascii_uppercase()) && word.contains(|c: char| c.is_ascii_lowercase());
        match self.language.family {
            Family::Code | Family::Rust if is_capital => Some(Token::Type),
            Family::Code | Family::Rust if self.rest().starts_with(['(', '!']) && !self.rest().starts_with("!=") => {
                Some(Token::Function)
            }
            _ => None,
        }
    }

    fn text_between_tags(&mut self) -> Option<Token> {
        if self.rest().starts_with('<') {
            self.in_tag = true;
            self.at += 1;
        } else {
            self.skip_while(|c| c != '<');
        }
        None
    }

    /// Whether what was just skipped names a member: `name:`, `name =`.
    fn is_member(&self) -> bool {
        let Some(mark) = self.language.member_mark else { return false };
        self.rest().trim_start_matches([' ', '\t']).starts_with(mark)
    }

    fn skip_comment(&mut self) -> bool {
        let rest = self.rest();
        if let Some((open, close)) = self.language.block_comment
            && let Some(inside) = rest.strip_prefix(open)
        {
            let end = inside.find(close).map_or(rest.len(), |at| open.len() + at + close.len());
            self.at += end;
            return true;
        }
        let before = self.text[..self.at].chars().next_back().unwrap_or('\n');
        let is_comment = |mark: &str| {
            // `$#`, `a#b` and `https://` are no comments.
            let is_glued = before == ':' || (mark.len() == 1 && !before.is_whitespace());
            rest.starts_with(mark) && !is_glued
        };
        if self.language.line_comments.iter().any(|mark| is_comment(mark)) {
            self.skip_while(|c| c != '\n');
            return true;
        }
        false
    }

    fn skip_string(&mut self) -> bool {
        let rest = self.rest();
        if self.language.family == Family::Rust && rest.starts_with('\'') {
            let Some(end) = char_literal(rest) else { return false };
            self.at += end;
            return true;
        }
        for (quote, unclosed) in self.language.quotes.iter().zip(&mut self.unclosed) {
            let Some(inside) = rest.strip_prefix(quote.mark) else { continue };
            if self.at < *unclosed {
                return false;
            }
            match string_end(inside, quote.mark, quote.spans_lines) {
                Ok(end) => {
                    self.at += quote.mark.len() + end;
                    return true;
                }
                // A quote without its other half is an apostrophe.
                Err(searched) => {
                    *unclosed = self.at + searched;
                    return false;
                }
            }
        }
        false
    }

    fn skip_while(&mut self, is_part: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    }
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_word(c: char, family: Family) -> bool {
    c.is_alphanumeric() || c == '_' || (c == '-' && matches!(family, Family::Dashed | Family::Markup))
}

/// Returns the length of a string with its closing mark, or of all that follows if there is none.
fn string_end(inside: &str, mark: &str, spans_lines: bool) -> Result<usize, usize> {
    let mut at = 0;
    while let Some(found) = inside[at..].find(|c| c == '\\' || c == '\n' || mark.starts_with(c)) {
        at += found;
        let rest = &inside[at..];
        if rest.starts_with(mark) {
            return Ok(at + mark.len());
        }
        match rest.as_bytes().first() {
            Some(b'\\') => at += 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            Some(b'\n') if !spans_lines => return Err(at),
            _ => at += 1,
        }
    }
    Err(inside.len())
}

/// Returns the length of a character literal; a lifetime is not one.
fn char_literal(text: &str) -> Option<usize> {
    let inside = &text[1..];
    if inside.starts_with('\\') {
        // The longest is `'\u{10ffff}'`.
        let end = inside.floor_char_boundary(12);
        return string_end(&inside[..end], "'", false).ok().map(|end| end + 1);
    }
    let width = inside.chars().next()?.len_utf8();
    inside[width..].starts_with('\'').then_some(width + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::to_string;
    use crate::languages::by_name;

    fn check(language: &str, text: &str, expected: &str) {
        let page = to_string(|html| code(html, text, by_name(language)));
        assert_eq!(page.replace("<i class=", "[").replace("</i>", "]"), expected);
    }

    #[test]
    fn tokens_of_common_languages() {
        check("rust", "fn main() { // x", "[k>fn] [f>main]() { [c>// x]");
        check(
            "rust",
            "'a: 'x' '\\n' \"s\\\"\" 1.5",
            "&#39;a: [s>&#39;x&#39;] [s>&#39;\\n&#39;] [s>&quot;s\\&quot;&quot;] [n>1.5]",
        );
        check(
            "py",
            "@d\ndef f(): '''a\nb''' # c",
            "[t>@d]\n[k>def] [f>f](): [s>&#39;&#39;&#39;a\nb&#39;&#39;&#39;] [c># c]",
        );
        check("json", "{\"a\": [1, true, \"b\"]}", "{[p>&quot;a&quot;]: [[n>1], [k>true], [s>&quot;b&quot;]]}");
        check("sh", "cd \"$X\" && echo $HOME # go", "[k>cd] [s>&quot;$X&quot;] &amp;&amp; [k>echo] [t>$HOME] [c># go]");
        check("sql", "SELECT a FROM t -- x", "[k>SELECT] a [k>FROM] t [c>-- x]");
        check(
            "html",
            "<a href=\"x\">it's</a><!-- c -->",
            "&lt;[k>a] [p>href]=[s>&quot;x&quot;]&gt;it&#39;s&lt;/[k>a]&gt;[c>&lt;!-- c --&gt;]",
        );
        check("yaml", "my-key: don't # c", "[p>my-key]: don&#39;t [c># c]");
        check("js", "let x = `a\n${b}`; x != Foo", "[k>let] x = [s>`a\n${b}`]; x != [t>Foo]");
    }

    #[test]
    fn text_without_language_is_only_escaped() {
        check("nope", "<b> // x", "&lt;b&gt; // x");
        let long = "fn ".repeat(MAX_CODE / 3 + 1);
        check("rust", &long, &long);
    }

    #[test]
    fn quotes_without_end_cost_linear_time() {
        let text = "\"\\".repeat(MAX_CODE / 2);
        for name in ["rust", "js", "py", "sh"] {
            let started = std::time::Instant::now();
            to_string(|html| code(html, &text, by_name(name)));
            assert!(started.elapsed().as_secs() < 60, "{name}");
        }
    }

    #[test]
    fn no_character_is_ever_lost() {
        let odd = "'\"`\\#/*<!--@$é😀'''\"\"\"\n\\\u{2028}-1.e_9 'é' '\\é x: \"a\\";
        for name in [
            "rust", "js", "py", "go", "c", "java", "sh", "json", "yaml", "toml", "html", "css", "sql", "rb", "php",
            "lua",
        ] {
            for start in odd.char_indices().map(|(at, _)| at) {
                let page = to_string(|html| code(html, &odd[start..], by_name(name)));
                let plain = to_string(|html| html.text(&odd[start..]));
                let stripped = ["c", "s", "n", "k", "f", "t", "p"]
                    .iter()
                    .fold(page, |page, class| page.replace(&format!("<i class={class}>"), ""));
                assert_eq!(stripped.replace("</i>", ""), plain, "{name}");
            }
        }
    }
}
