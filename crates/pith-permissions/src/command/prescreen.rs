//! What is refused before a parser sees it: texts that are too long, too deep or too odd.

/// Longer commands are not read.
const MAX_BYTES: usize = 64 * 1024;

/// The deepest nesting that is read. The parser calls itself for each level.
const MAX_DEPTH: usize = 64;

/// Returns why a text is not parsed.
pub fn refusal(script: &str) -> Option<&'static str> {
    if script.len() > MAX_BYTES {
        return Some("longer than 64 KiB");
    }
    if script.contains('\0') {
        return Some("a NUL character");
    }
    if script.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return Some("a control character");
    }
    // Bash keeps both characters there, the parser drops them.
    if script.contains("\\\n") && script.contains("$'") {
        return Some("a line that goes on, and $'…'");
    }
    if nesting(script) > MAX_DEPTH {
        return Some("nested more than 64 levels deep");
    }
    // The parser tries both readings of each, one inside the other.
    if n_of(script, "((") > 8 {
        return Some("too many double parentheses");
    }
    let numbered = |prefix: char| {
        script.split(prefix).skip(1).any(|rest| {
            let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
            rest.bytes().take_while(u8::is_ascii_digit).count() > 9
        })
    };
    if numbered('~') || numbered('$') || numbered('{') || numbered('<') || numbered('>') {
        return Some("a number that is too large");
    }
    if long_digits_before_redirection(script) {
        return Some("a number that is too large");
    }
    None
}

fn n_of(script: &str, needle: &str) -> usize {
    script.matches(needle).count()
}

/// Descriptors are numbers before a redirection.
fn long_digits_before_redirection(script: &str) -> bool {
    let mut n_digits = 0;
    script.bytes().any(|byte| {
        let is_long = n_digits > 9 && matches!(byte, b'<' | b'>');
        n_digits = if byte.is_ascii_digit() { n_digits + 1 } else { 0 };
        is_long
    })
}

/// The deepest nesting of parentheses, braces and compound commands, quotes not regarded: more is counted than there
/// is, never less.
fn nesting(script: &str) -> usize {
    let brackets = depth(script.bytes().map(|byte| match byte {
        b'(' | b'{' | b'[' => 1,
        b')' | b'}' | b']' => -1,
        _ => 0,
    }));
    let words = script.split(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '`'));
    let compounds = depth(words.map(|word| match word {
        "if" | "for" | "while" | "until" | "case" | "select" | "function" | "coproc" | "time" | "!" => 1,
        "fi" | "done" | "esac" => -1,
        _ => 0,
    }));
    let backquotes = script.bytes().filter(|byte| *byte == b'`').count() / 2;
    brackets + compounds + backquotes
}

fn depth(steps: impl Iterator<Item = i32>) -> usize {
    let (mut depth, mut deepest) = (0_i32, 0);
    for step in steps {
        depth = (depth + step).max(0);
        deepest = deepest.max(depth);
    }
    usize::try_from(deepest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_goes_on_is_refused_only_beside_dollar_quotes() {
        assert!(refusal("p $'a\\\nb'").is_some());
        assert_eq!(refusal("p 'a\\\nb'"), None);
        assert_eq!(refusal("p $'a\\nb'"), None);
    }
}
