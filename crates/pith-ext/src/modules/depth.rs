//! Room for deeply nested source text.
//!
//! The compiler walks its tree by recursion, and what extensions depend on
//! includes generated code with very long expressions. How deep a text can
//! nest is estimated, generously, by counting; what might not fit the stack at
//! hand is compiled on a thread with a larger one, and what would need an
//! absurd stack is refused.

use super::transpile::SyntaxError;

/// Nesting that certainly fits the engine thread.
const COMFORTABLE: usize = 400;
/// Stack one level may take; unoptimised builds need more.
const PER_LEVEL: usize = if cfg!(debug_assertions) { 24 << 10 } else { 8 << 10 };
const MAX_STACK: usize = 512 << 20;

/// Runs `work` on a stack that can take the nesting of `source`.
pub fn with_room<T: Send>(
    source: &str,
    work: impl FnOnce() -> Result<T, SyntaxError> + Send,
) -> Result<T, SyntaxError> {
    let depth = nesting(source);
    if depth <= COMFORTABLE {
        return work();
    }
    let refused = || SyntaxError { message: "The code is nested too deeply".to_owned(), line: 1, column: 1 };
    let stack = (4 << 20) + depth * PER_LEVEL;
    if stack > MAX_STACK {
        return Err(refused());
    }
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("pith-ext-compile".to_owned()).stack_size(stack);
        let thread = builder.spawn_scoped(scope, work).map_err(|_| refused())?;
        thread.join().unwrap_or_else(|_| Err(refused()))
    })
}

/// At least as deep as the syntax tree can be: open brackets, plus operators since the last statement ended.
fn nesting(source: &str) -> usize {
    let (mut open, mut chain, mut deepest) = (0usize, 0usize, 0usize);
    // Operators before a bracket still count inside it.
    let mut outer = Vec::new();
    for byte in source.bytes() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_covers_brackets_and_chains() {
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
    fn deep_code_gets_room_and_absurd_code_is_refused() {
        let deep = "[".repeat(5000);
        assert_eq!(with_room(&deep, || Ok(1)), Ok(1));
        let absurd = "[".repeat(1_000_000);
        assert!(with_room(&absurd, || Ok(1)).is_err());
    }
}
