//! Tells comments, strings, numbers, keywords and a few kinds of names apart by [`Language`] tables. Not a parser; it is
//! wrong now and then, which costs a colour and never a character.

use std::collections::HashSet;

use crate::languages::{Family, Language};

/// Returns code in pieces; those without a token have no colour.
pub fn tokens<'t>(text: &'t str, language: &'static Language) -> impl Iterator<Item = (&'t str, Option<Token>)> {
    Scanner::new(text, language)
}

/// What a piece of code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    Comment,
    String,
    Number,
    Keyword,
    Function,
    Type,
    Member,
}

/// Walks through a text.
pub(crate) struct Scanner<'t> {
    text: &'t str,
    at: usize,
    language: &'static Language,
    keywords: HashSet<&'static str>,
    /// A token that stands behind the text without a colour that was returned last.
    found: Option<(&'t str, Token)>,
    /// Whether there are further lines, which may end what this text leaves open.
    is_line: bool,
    /// A comment or a string that the text leaves open, and what ends it.
    pub open: Option<(Token, &'static str)>,
    /// Inside `<…>` of a markup language.
    in_tag: bool,
    /// For each quote, up to where no string of it ends. Keeps hostile text linear.
    unclosed: [usize; 4],
}

impl<'t> Scanner<'t> {
    fn new(text: &'t str, language: &'static Language) -> Self {
        let keywords = language.keywords.split_ascii_whitespace().collect();
        let unclosed = [0; 4];
        Scanner { text, at: 0, language, keywords, found: None, is_line: false, open: None, in_tag: false, unclosed }
    }

    /// Walks through one line of several.
    pub fn of_line(line: &'t str, language: &'static Language) -> Self {
        Scanner { is_line: true, ..Scanner::new(line, language) }
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
            let end = inside.find(close).map(|at| open.len() + at + close.len());
            if end.is_none() {
                self.open = Some((Token::Comment, close));
            }
            self.at += end.unwrap_or(rest.len());
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
                // Only these marks are never an apostrophe.
                Err(_) if self.is_line && quote.spans_lines && (quote.mark.len() > 1 || quote.mark == "`") => {
                    self.open = Some((Token::String, quote.mark));
                    self.at = self.text.len();
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

impl<'t> Iterator for Scanner<'t> {
    type Item = (&'t str, Option<Token>);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some((text, token)) = self.found.take() {
            return Some((text, Some(token)));
        }
        let plain = self.at;
        while self.at < self.text.len() {
            let start = self.at;
            let Some(token) = self.token() else { continue };
            let text = &self.text[start..self.at];
            if start == plain {
                return Some((text, Some(token)));
            }
            self.found = Some((text, token));
            return Some((&self.text[plain..start], None));
        }
        (plain < self.at).then(|| (&self.text[plain..], None))
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
    use crate::languages::by_name;

    fn marked(language: &str, text: &str) -> String {
        let mark = |(text, token): (&str, Option<Token>)| match token {
            Some(token) => format!("[{}>{text}]", &format!("{token:?}")[..1]),
            None => text.to_owned(),
        };
        tokens(text, by_name(language).expect("a known language")).map(mark).collect()
    }

    fn check(language: &str, text: &str, expected: &str) {
        assert_eq!(marked(language, text), expected);
    }

    #[test]
    fn tokens_of_common_languages() {
        check("rust", "fn main() { // x", "[K>fn] [F>main]() { [C>// x]");
        check("rust", "'a: 'x' '\\n' \"s\\\"\" 1.5", "'a: [S>'x'] [S>'\\n'] [S>\"s\\\"\"] [N>1.5]");
        check("py", "@d\ndef f(): '''a\nb''' # c", "[T>@d]\n[K>def] [F>f](): [S>'''a\nb'''] [C># c]");
        check("json", "{\"a\": [1, true, \"b\"]}", "{[M>\"a\"]: [[N>1], [K>true], [S>\"b\"]]}");
        check("sh", "cd \"$X\" && echo $HOME # go", "[K>cd] [S>\"$X\"] && [K>echo] [T>$HOME] [C># go]");
        check("sql", "SELECT a FROM t -- x", "[K>SELECT] a [K>FROM] t [C>-- x]");
        check("html", "<a href=\"x\">it's</a><!-- c -->", "<[K>a] [M>href]=[S>\"x\"]>it's</[K>a]>[C><!-- c -->]");
        check("yaml", "my-key: don't # c", "[M>my-key]: don't [C># c]");
        check("js", "let x = `a\n${b}`; x != Foo", "[K>let] x = [S>`a\n${b}`]; x != [T>Foo]");
    }

    #[test]
    fn quotes_without_end_cost_linear_time() {
        let text = "\"\\".repeat(100_000);
        for name in ["rust", "js", "py", "sh"] {
            let started = std::time::Instant::now();
            marked(name, &text);
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
                let text = &odd[start..];
                let pieces = tokens(text, by_name(name).expect("a known language")).map(|(piece, _)| piece);
                assert_eq!(pieces.collect::<String>(), text, "{name}");
            }
        }
    }
}
