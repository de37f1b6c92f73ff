//! Makes room for deeply nested source text.
//!
//! The compiler recurses over its tree, and dependencies of extensions include generated code with very long
//! expressions. The depth of a text is estimated, generously, by counting. A text that might not fit the current stack
//! is compiled on a thread with a larger one, and a text that would need an absurd stack is refused. Strings and
//! comments do not count for that.

use super::transpile::SyntaxError;

/// Nesting that certainly fits the engine thread.
const SAFE_DEPTH: usize = 400;
/// How much stack one level may take; unoptimised builds need more.
const PER_LEVEL: usize = if cfg!(debug_assertions) { 24 << 10 } else { 8 << 10 };
const MAX_STACK: usize = 512 << 20;

/// Runs `work` on a stack that is large enough for the nesting of `source`.
pub fn with_room<T: Send>(
    source: &str,
    work: impl FnOnce() -> Result<T, SyntaxError> + Send,
) -> Result<T, SyntaxError> {
    let depth = nesting(source.as_bytes());
    if depth <= SAFE_DEPTH {
        return work();
    }
    let refused = || SyntaxError { message: "The code is nested too deeply".to_owned(), line: 1, column: 1 };
    let stack_for = |depth: usize| (4 << 20) + depth * PER_LEVEL;
    // Regular expressions make it guesswork to tell code from strings, so that decides only about the refusal; the
    // stack, of which only the used part takes memory, is for the worst case.
    if stack_for(depth) > MAX_STACK && stack_for(nesting(&code(source))) > MAX_STACK {
        return Err(refused());
    }
    let stack = stack_for(depth).min(MAX_STACK);
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("pith-ext-compile".to_owned()).stack_size(stack);
        let thread = builder.spawn_scoped(scope, work).map_err(|_| refused())?;
        thread.join().unwrap_or_else(|_| Err(refused()))
    })
}

/// An upper bound for the depth of the syntax tree: open brackets, plus operators since the last statement ended.
fn nesting(code: &[u8]) -> usize {
    let (mut open, mut chain, mut deepest) = (0usize, 0usize, 0usize);
    // Operators before a bracket still count inside it.
    let mut outer = Vec::new();
    for &byte in code {
        match byte {
            b'(' | b'[' | b'{' => {
                open += 1;
                outer.push(chain);
                if byte == b'{' {
                    chain = 0;
                }
            }
            b')' | b']' | b'}' => {
                open = open.saturating_sub(1);
                chain = outer.pop().unwrap_or(0);
            }
            b';' => chain = 0,
            b'!' | b'~' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'<' | b'>' | b'?' | b':' | b'='
            | b'.' => {
                chain += 1;
            }
            _ => continue,
        }
        deepest = deepest.max(open + chain);
    }
    deepest
}

/// Removes the contents of strings, templates, regular expressions and comments.
fn code(source: &str) -> Vec<u8> {
    let bytes = source.as_bytes();
    let mut code = Vec::new();
    // The number of open braces, and that number where each template substitution began.
    let (mut open, mut substitutions) = (0usize, Vec::new());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        match (byte, next) {
            (b'/', Some(b'/')) => at = end_of(bytes, at, b"\n"),
            (b'/', Some(b'*')) => at = end_of(bytes, at + 2, b"*/"),
            (b'"' | b'\'', _) => {
                at = string_end(bytes, at + 1, byte);
                code.push(byte);
            }
            (b'/', _) if may_begin_regex(&code) => match regex_end(bytes, at + 1) {
                Some(end) => {
                    at = end;
                    code.push(b'"');
                }
                None => at += 1,
            },
            (b'`', _) => at = template(bytes, at + 1, &mut code, &mut open, &mut substitutions),
            (b'}', _) if substitutions.last() == Some(&open) => {
                substitutions.pop();
                open = open.saturating_sub(1);
                code.push(byte);
                at = template(bytes, at + 1, &mut code, &mut open, &mut substitutions);
            }
            _ => {
                match byte {
                    b'{' => open += 1,
                    b'}' => open = open.saturating_sub(1),
                    _ => {}
                }
                code.push(byte);
                at += 1;
            }
        }
    }
    code
}

/// Skips the text of a template up to its end or its next substitution.
fn template(
    bytes: &[u8],
    mut at: usize,
    code: &mut Vec<u8>,
    open: &mut usize,
    substitutions: &mut Vec<usize>,
) -> usize {
    while let Some(&byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (b'\\', _) => at += 2,
            (b'`', _) => {
                code.push(byte);
                return at + 1;
            }
            (b'$', Some(b'{')) => {
                *open += 1;
                substitutions.push(*open);
                code.push(b'{');
                return at + 2;
            }
            _ => at += 1,
        }
    }
    at
}

/// The position after the mark, or the end of the text.
fn end_of(bytes: &[u8], from: usize, mark: &[u8]) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.windows(mark.len()).position(|window| window == mark).map_or(bytes.len(), |found| from + found + mark.len())
}

/// The position after the closing quote; an open string ends with its line.
fn string_end(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'\n' => return at,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// The position after the closing slash, if there is one on the line.
fn regex_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut is_in_class = false;
    loop {
        match bytes.get(at)? {
            b'\n' => return None,
            b'\\' => at += 1,
            b'[' => is_in_class = true,
            b']' => is_in_class = false,
            b'/' if !is_in_class => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
}

/// Whether a slash after this code begins a regular expression: after a value it is a division.
fn may_begin_regex(code: &[u8]) -> bool {
    const WORDS: &[&[u8]] = &[
        b"return",
        b"typeof",
        b"case",
        b"in",
        b"of",
        b"do",
        b"else",
        b"void",
        b"delete",
        b"instanceof",
        b"throw",
        b"yield",
        b"await",
    ];
    let code = code.trim_ascii_end();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii();
    let word = code.iter().rposition(|byte| !is_word(byte)).map_or(code, |before| &code[before + 1..]);
    match code.last() {
        Some(b')' | b']' | b'"' | b'\'' | b'`') => false,
        Some(_) => word.is_empty() || WORDS.contains(&word),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_covers_brackets_and_chains() {
        let nesting = |source: &str| nesting(source.as_bytes());
        let check = |source: &str, least: usize| assert!(nesting(source) >= least, "{source}: {}", nesting(source));
        check(&"[".repeat(50), 50);
        check(&"!".repeat(50), 50);
        check(&"a+(".repeat(50), 100);
        check(&"a?b:".repeat(50), 100);
        check(&"()=>".repeat(50), 50);
        assert!(nesting(&"f(a + b);\n".repeat(5000)) < 10, "statements do not add up");
        assert!(nesting(&"if (a) { b = c.d; }\n".repeat(5000)) < 10);
    }

    #[test]
    fn texts_and_comments_are_not_code() {
        let check = |source: &str, expected: &str| assert_eq!(String::from_utf8_lossy(&code(source)), expected);
        check(r#"a = "((\"((" + '[[';"#, r#"a = " + ';"#);
        check("a /* (( */ + b // ((\nc", "a  + b c");
        check("`((${f(`((`)}))`;", "{f(`)}`;");
        check("x = /[/\"(]\\/(/g; y = a / b / (c)", "x = \"g; y = a / b / (c)");
        check("return /'/.test(a) ? 1 / 2 : {}", "return \".test(a) ? 1 / 2 : {}");
        check("'open\n(b)", "'\n(b)");
    }

    #[test]
    fn long_texts_are_not_refused() {
        let operators = "+/=.".repeat(200_000);
        for source in [format!("a = \"{operators}\";"), format!("a = `{operators}`;"), format!("/* {operators} */")] {
            assert_eq!(with_room(&source, || Ok(1)), Ok(1));
        }
    }

    #[test]
    fn deep_code_gets_room_and_absurd_code_is_refused() {
        let deep = "[".repeat(5000);
        assert_eq!(with_room(&deep, || Ok(1)), Ok(1));
        let absurd = "[".repeat(1_000_000);
        assert!(with_room(&absurd, || Ok(1)).is_err());
    }
}
