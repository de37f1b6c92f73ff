//! Patterns of commands: `words:*`, or text in which `*` stands for anything.

use crate::command::Word;

/// Which commands a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandPattern {
    /// These words, then anything.
    Prefix(Vec<String>),
    /// The whole command; a gap stands between two words.
    Text(Vec<Symbol>),
}

/// How well a command fits a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    No,
    /// It depends on words that only the shell will know.
    Maybe,
    Yes,
}

/// A piece of a pattern, or of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    Char(char),
    /// Between two words.
    Gap,
    /// Any text: `*` in a pattern, a computed word in a command.
    Any,
}

impl CommandPattern {
    /// Reads what stands between the parentheses of a rule; `None` if it is empty.
    pub fn parse(specifier: &str) -> Option<Self> {
        let specifier = specifier.trim();
        if let Some(words) = specifier.strip_suffix(":*") {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            return (!words.is_empty()).then_some(CommandPattern::Prefix(words));
        }
        let mut symbols = Vec::new();
        for (position, word) in specifier.split_whitespace().enumerate() {
            if position > 0 {
                symbols.push(Symbol::Gap);
            }
            symbols.extend(word.chars().map(|c| if c == '*' { Symbol::Any } else { Symbol::Char(c) }));
        }
        (!symbols.is_empty()).then_some(CommandPattern::Text(symbols))
    }

    /// Returns how a command fits. Only `Yes` is certain.
    pub fn fit(&self, words: &[Word]) -> Fit {
        match self {
            CommandPattern::Prefix(prefix) => fit_prefix(prefix, words),
            CommandPattern::Text(pattern) => {
                let command = symbols(words);
                // A trailing ` *` also stands for nothing.
                let without_rest = pattern.strip_suffix(&[Symbol::Gap, Symbol::Any]).filter(|rest| !rest.is_empty());
                let patterns = [Some(&pattern[..]), without_rest].into_iter().flatten();
                let fits = patterns.map(|pattern| {
                    if covers(pattern, &command) {
                        Fit::Yes
                    } else if overlap(pattern, &command) {
                        Fit::Maybe
                    } else {
                        Fit::No
                    }
                });
                fits.max_by_key(|fit| *fit as u8).unwrap_or(Fit::No)
            }
        }
    }
}

fn fit_prefix(prefix: &[String], words: &[Word]) -> Fit {
    for (position, wanted) in prefix.iter().enumerate() {
        match words.get(position) {
            Some(Word::Literal(word)) if word == wanted => {}
            Some(Word::Unknown(_)) => return Fit::Maybe,
            _ => return Fit::No,
        }
    }
    Fit::Yes
}

fn symbols(words: &[Word]) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    for (position, word) in words.iter().enumerate() {
        if position > 0 {
            symbols.push(Symbol::Gap);
        }
        match word {
            Word::Literal(text) => symbols.extend(text.chars().map(Symbol::Char)),
            Word::Unknown(_) => symbols.push(Symbol::Any),
        }
    }
    symbols
}

/// Whether the pattern matches whatever the computed words become: only `*` covers those.
fn covers(pattern: &[Symbol], command: &[Symbol]) -> bool {
    meets(pattern, command, |_| false)
}

/// Whether the pattern matches for some value of the computed words.
pub(crate) fn overlap(pattern: &[Symbol], command: &[Symbol]) -> bool {
    meets(pattern, command, |symbol| symbol == Symbol::Any)
}

/// Compares symbol by symbol. `is_open` says which symbols of the command may stand for any part of the pattern.
fn meets(pattern: &[Symbol], command: &[Symbol], is_open: impl Fn(Symbol) -> bool) -> bool {
    // Row by row over the command: which ends of the pattern are reached.
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    skip_stars(pattern, &mut reached);
    for symbol in command {
        let mut next = vec![false; pattern.len() + 1];
        for at in 0..=pattern.len() {
            if !reached[at] {
                continue;
            }
            if is_open(*symbol) {
                // It may take any number of symbols of the pattern.
                next[at..].fill(true);
                break;
            }
            match pattern.get(at) {
                Some(Symbol::Any) => next[at] = true,
                Some(wanted) if wanted == symbol => next[at + 1] = true,
                _ => {}
            }
        }
        skip_stars(pattern, &mut next);
        reached = next;
    }
    reached[pattern.len()]
}

/// `*` also stands for nothing.
fn skip_stars(pattern: &[Symbol], reached: &mut [bool]) {
    for at in 0..pattern.len() {
        if reached[at] && pattern[at] == Symbol::Any {
            reached[at + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command;

    fn fit(specifier: &str, script: &str) -> Fit {
        let reading = command::read(script);
        CommandPattern::parse(specifier).expect("pattern").fit(&reading.parts[0].words)
    }

    #[test]
    fn words_match_at_word_boundaries() {
        assert_eq!(fit("git diff:*", "git diff --stat"), Fit::Yes);
        assert_eq!(fit("git diff:*", "git diff"), Fit::Yes);
        assert_eq!(fit("git diff:*", "git difftool"), Fit::No);
        assert_eq!(fit("git diff:*", "'git diff' x"), Fit::No);
        assert_eq!(fit("git diff:*", "git $x"), Fit::Maybe);
        assert_eq!(fit("git diff:*", "git diff $x"), Fit::Yes);
    }

    #[test]
    fn a_star_stands_for_anything_in_one_command() {
        assert_eq!(fit("rm -rf *", "rm -rf a b"), Fit::Yes);
        assert_eq!(fit("rm -rf *", "rm -rf"), Fit::Yes, "a trailing star also stands for nothing");
        assert_eq!(fit("rm -rf *", "rm -r a"), Fit::No);
        assert_eq!(fit("rm -rf *", "rm $flags a"), Fit::Maybe);
        assert_eq!(fit("rm -rf *", "rm '-rf a'"), Fit::No, "a space inside a word is no gap");
        assert_eq!(fit("cargo test *", "cargo test $x"), Fit::Yes);
        assert_eq!(fit("cargo test a", "cargo test $x"), Fit::Maybe);
        assert_eq!(fit("*curl*", "curl http://x"), Fit::Yes);
        assert_eq!(fit("git * main", "git push origin main"), Fit::Yes);
    }
}
