//! Whether a rule against something is meant: by the words of a command in another order or spelling, or by a text that
//! mentions its program. Rules that allow are compared elsewhere, word by word.

use std::collections::BTreeSet;

use crate::command::{COMPUTED, Scan, Text, TextKind, Word, is_computed};
use crate::pattern::{CommandPattern, Fit, Symbol, overlap};
use crate::programs::{flag_name, is_group, is_plain_flag, takes_value};

/// What a rule is about: a program, then operands in this order, and options anywhere.
#[derive(Clone, Debug)]
pub struct Wanted {
    program: String,
    operands: Vec<String>,
    options: BTreeSet<String>,
    /// Whether other operands may follow.
    is_open: bool,
    /// Whether anything may stand between the operands.
    has_gap: bool,
    /// What people call it.
    shown: String,
}

impl Wanted {
    /// Takes a pattern of commands apart.
    pub fn of(pattern: &CommandPattern) -> Wanted {
        let (words, is_open) = match pattern {
            CommandPattern::Prefix(words) => (words.clone(), true),
            CommandPattern::Text(symbols) => {
                let written = symbols.iter().map(|symbol| match symbol {
                    Symbol::Char(c) => *c,
                    Symbol::Gap => ' ',
                    Symbol::Any => '*',
                });
                let text: String = written.collect();
                (text.split_whitespace().map(str::to_owned).collect(), text.ends_with('*'))
            }
        };
        let program = words.first().cloned().unwrap_or_default();
        let program = program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(&program).to_owned();
        let is_option = |word: &&String| word.len() > 1 && word.starts_with('-');
        let rest = words.get(1..).unwrap_or_default();
        let inner = &rest[..rest.len() - usize::from(rest.last().is_some_and(|word| word == "*"))];
        Wanted {
            operands: inner.iter().filter(|word| !is_option(word) && *word != "*").cloned().collect(),
            options: rest.iter().filter(is_option).flat_map(|word| options_in(&program, word)).collect(),
            shown: words.iter().take(1).chain(inner).map(String::as_str).collect::<Vec<_>>().join(" "),
            has_gap: inner.iter().any(|word| word.contains('*')),
            program,
            is_open,
        }
    }

    /// Returns how a command fits whose options may stand anywhere, alone or together, before the subcommand too.
    pub fn fit(&self, words: &[Word]) -> Fit {
        let Some(name) = words.first().and_then(Word::literal) else { return Fit::No };
        if !fits(&self.program, base(name)) || self.has_gap {
            return Fit::No;
        }
        let arguments = &words[1..];
        let mut found = BTreeSet::new();
        let mut is_unknown = false;
        let before_end = arguments.iter().take_while(|word| word.literal() != Some("--"));
        for word in before_end {
            match word {
                Word::Literal(word) => found.extend(options_in(&self.program, word)),
                Word::Unknown(raw) => {
                    is_unknown |= raw.trim_start_matches('"').starts_with(['-']) || raw.starts_with('$')
                }
            }
        }
        let has_options = self.options.iter().all(|name| has_option(name, &found));
        match self.operands_in(arguments) {
            Fit::Yes if has_options => Fit::Yes,
            Fit::Yes | Fit::Maybe if has_options || is_unknown => Fit::Maybe,
            _ => Fit::No,
        }
    }

    /// Follows the operands of the rule through those of a command. The word after an option that is not known may be its
    /// value or an operand, so both are tried.
    fn operands_in(&self, arguments: &[Word]) -> Fit {
        let n_operands = self.operands.len();
        // For each place: how many operands of the rule may have been met before it.
        let mut met = vec![BTreeSet::new(); arguments.len() + 3];
        met[0].insert(0);
        let mut fit = Fit::No;
        let mut is_over = false;
        for (at, word) in arguments.iter().enumerate() {
            for n_met in std::mem::take(&mut met[at]) {
                if n_met == n_operands && self.is_open {
                    return Fit::Yes;
                }
                let Some(word) = word.literal() else {
                    fit = Fit::Maybe;
                    continue;
                };
                let is_option = word.len() > 1 && word.starts_with('-') && !is_over;
                if is_option {
                    let is_known = n_met == 0;
                    if !(is_known && takes_value(&self.program, word)) {
                        met[at + 1].insert(n_met);
                    }
                    if word != "--" && !word.contains('=') && !(is_known && is_plain_flag(&self.program, word)) {
                        met[at + 2].insert(n_met);
                    }
                } else if self.operands.get(n_met).is_some_and(|operand| operand == word) {
                    met[at + 1].insert(n_met + 1);
                } else if n_met == 0 && is_group(&self.program, word) {
                    met[at + 1].insert(n_met);
                }
            }
            is_over |= word.literal() == Some("--");
        }
        let ends = met[arguments.len()..].iter().any(|met| met.contains(&n_operands));
        if ends { Fit::Yes } else { fit }
    }

    /// Whether a text mentions what the rule is about.
    fn is_in(&self, text: &Text, tokens: &[Vec<String>]) -> bool {
        tokens.iter().any(|tokens| self.is_among(text.kind, tokens))
    }

    fn is_among(&self, kind: TextKind, tokens: &[String]) -> bool {
        let mut first = None;
        let mut may_follow = None;
        for (at, token) in tokens.iter().enumerate() {
            let rest = &tokens[at + 1..];
            if self.names(token) {
                let is_place = token.contains("bin/") || token.contains("git-core/");
                let is_whole = kind == TextKind::Alone || kind == TextKind::Value && tokens.len() == 1;
                let may_follow = may_follow.get_or_insert_with(|| self.may_follow(tokens));
                if is_place || is_whole || may_follow[at + 1] {
                    return true;
                }
                first.get_or_insert(at);
            } else if self.is_joined(token) || self.is_computed_program(token, rest) {
                return true;
            }
        }
        first.is_some_and(|at| self.follows(&tokens[at + 1..]))
    }

    fn names(&self, token: &str) -> bool {
        fits(&self.program, base(token))
    }

    /// Whether the operands stand there in their order, and all options.
    fn follows(&self, rest: &[String]) -> bool {
        let mut wanted = self.operands.iter();
        let mut next = wanted.next();
        let mut options = BTreeSet::new();
        for token in rest {
            if next.is_some_and(|operand| fits(operand, token)) {
                next = wanted.next();
            }
            if token.len() > 1 && token.starts_with('-') && !self.options.is_empty() {
                options.extend(options_in(&self.program, token));
            }
        }
        next.is_none() && self.options.iter().all(|name| has_option(name, &options))
    }

    /// Says for each place whether the word where the subcommand, or the options, would stand is computed, if a program
    /// stood before it. From the end, so that each token is looked at once.
    fn may_follow(&self, tokens: &[String]) -> Vec<bool> {
        let mut may = vec![false; tokens.len() + 2];
        if self.operands.is_empty() && self.options.is_empty() {
            may.fill(true);
            return may;
        }
        for (at, token) in tokens.iter().enumerate().rev() {
            let has_computed_value = tokens.get(at + 1).is_some_and(|value| is_computed(value));
            may[at] = if !token.starts_with('-') {
                token.chars().all(|c| c == COMPUTED)
            } else if takes_value(&self.program, token) {
                may[at + 2]
            } else if is_plain_flag(&self.program, token) || token.contains('=') || !has_computed_value {
                may[at + 1]
            } else {
                // The value of an option that is not known, perhaps.
                may[at + 2]
            };
        }
        may
    }

    /// Whether it is a program such as `git-push`.
    fn is_joined(&self, token: &str) -> bool {
        let rest = base(token).strip_prefix(self.program.as_str()).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|rest| self.operands.first().is_some_and(|operand| operand == rest))
    }

    /// Whether a computed word may be the program, because what it is denied follows at once.
    fn is_computed_program(&self, token: &str, rest: &[String]) -> bool {
        let n_wanted = self.operands.len() + usize::from(!self.options.is_empty());
        n_wanted > 0
            && token.chars().all(|c| c == COMPUTED)
            && rest.len() >= n_wanted
            && self.follows(&rest[..n_wanted])
    }
}

/// A rule's patterns against the texts of a command line.
pub struct Mentions<'a> {
    texts: Vec<(&'a Text, Vec<Vec<String>>)>,
}

impl<'a> Mentions<'a> {
    pub fn of(scan: &'a Scan) -> Mentions<'a> {
        Mentions { texts: scan.texts.iter().map(|text| (text, text.tokens())).collect() }
    }

    /// Returns the first text that mentions what a pattern is about. `is_judged` says of a command whether its own words
    /// are judged elsewhere.
    pub fn find(&self, pattern: &CommandPattern, is_judged: impl Fn(&[Word]) -> bool) -> Option<(String, &'a Text)> {
        let wanted = Wanted::of(pattern);
        let is_command = |text: &Text| {
            text.as_command().is_some_and(|words| {
                let is_joined = words.first().and_then(Word::literal).is_some_and(|name| wanted.is_joined(name));
                let may_fit = wanted.fit(&words) != Fit::No || pattern.fit(&words) != Fit::No;
                is_joined || may_fit && !is_judged(&words)
            })
        };
        let is_meant = |text: &Text, tokens: &[Vec<String>]| wanted.is_in(text, tokens) || is_command(text);
        self.texts.iter().find(|(text, tokens)| is_meant(text, tokens)).map(|(text, _)| (wanted.shown.clone(), *text))
    }
}

/// Returns the names of the options in a word: letters, or a long name.
fn options_in(program: &str, word: &str) -> Vec<String> {
    match (word.strip_prefix("--"), word.strip_prefix('-')) {
        (Some(""), _) | (None, None | Some("")) => Vec::new(),
        (Some(long), _) => vec![flag_name(program, long.split('=').next().unwrap_or(long)).to_owned()],
        (None, Some(letters)) => {
            let letters = letters.chars().map(|letter| match letter {
                // `-r*` may become anything.
                COMPUTED => COMPUTED.to_string(),
                letter => flag_name(program, letter.encode_utf8(&mut [0; 4])).to_owned(),
            });
            letters.collect()
        }
    }
}

/// Whether an option is there, perhaps cut short as programs allow it.
fn has_option(name: &str, found: &BTreeSet<String>) -> bool {
    found.contains(name)
        || found.contains(&COMPUTED.to_string())
        || name.len() > 1 && found.iter().any(|short| short.len() > 1 && name.starts_with(short.as_str()))
}

/// Whether a pattern with `*` fits a word in which parts may be computed.
fn fits(pattern: &str, word: &str) -> bool {
    if !pattern.contains('*') && !is_computed(word) {
        return pattern == word.strip_suffix(".exe").unwrap_or(word);
    }
    // Of a word that may be anything nothing is mentioned.
    let has_letters = word.chars().any(char::is_alphanumeric);
    let symbols = |text: &str, any: char| -> Vec<Symbol> {
        text.chars().map(|c| if c == any { Symbol::Any } else { Symbol::Char(c) }).collect()
    };
    has_letters && overlap(&symbols(pattern, '*'), &symbols(word, COMPUTED))
}

fn base(word: &str) -> &str {
    word.trim_end_matches('/').rsplit('/').next().unwrap_or(word)
}
