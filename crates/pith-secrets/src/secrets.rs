//! The values known so far.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use regex::bytes::Regex;

use crate::rule::{Hides, Rule};
use crate::searcher::{Mask, Searcher};

/// Shorter values are dummies such as `ollama`; blanking them would only garble texts.
const MIN_CHARS: usize = 8;

/// Collects the values of credentials and takes them out of texts.
#[derive(Default)]
pub struct Secrets {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    values: BTreeMap<String, Mask>,
    patterns: Vec<(Regex, Mask)>,
    /// Asked once, before the next text is searched.
    sources: Vec<Source>,
    /// Made for the next text; `None` after a change.
    searcher: Option<Arc<Searcher>>,
}

/// Knows values that nobody has resolved yet.
type Source = Box<dyn FnOnce() -> Vec<String> + Send>;

impl Secrets {
    /// Returns the secrets of this process: what one session knows is hidden in the texts of all of them.
    pub fn of_process() -> &'static Arc<Secrets> {
        static SECRETS: LazyLock<Arc<Secrets>> = LazyLock::new(Arc::default);
        &SECRETS
    }

    /// Remembers a value.
    pub fn remember(&self, value: &str) {
        let value = value.trim();
        if value.chars().nth(MIN_CHARS - 1).is_none() {
            return;
        }
        let mut state = self.state();
        if !state.values.contains_key(value) {
            state.values.insert(value.to_owned(), None);
            state.searcher = None;
        }
    }

    /// Asks a source for values when the next text is searched, so that knowing them costs nothing until then.
    pub fn ask(&self, source: impl FnOnce() -> Vec<String> + Send + 'static) {
        self.state().sources.push(Box::new(source));
    }

    /// Adds rules of the user. What a rule says about a value counts.
    pub fn add_rules(&self, rules: impl IntoIterator<Item = Rule>) {
        let mut state = self.state();
        for Rule { hides, mask } in rules {
            match hides {
                Hides::Value(value) => drop(state.values.insert(value, mask)),
                Hides::Pattern(pattern) => {
                    state.patterns.retain(|(known, _)| known.as_str() != pattern.as_str());
                    state.patterns.push((pattern, mask));
                }
            }
            state.searcher = None;
        }
    }

    /// Returns the text without any known value.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.searcher().redact(text)
    }

    pub(crate) fn searcher(&self) -> Arc<Searcher> {
        // A source may read files and complain about them, in a text that is searched too.
        let sources = std::mem::take(&mut self.state().sources);
        sources.into_iter().flat_map(|source| source()).for_each(|value| self.remember(&value));
        let mut state = self.state();
        let State { values, patterns, searcher, .. } = &mut *state;
        searcher.get_or_insert_with(|| Arc::new(Searcher::build(values, patterns))).clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Secrets {
    /// Shows how many there are.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Secrets").field("n_values", &self.state().values.len()).finish_non_exhaustive()
    }
}

/// Whether a header or variable of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "password", "cookie"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_are_blanked_out() {
        let secrets = Secrets::default();
        for value in ["sk-12345678", "sk-12345678-long", "ollama", " sk-12345678\n"] {
            secrets.remember(value);
        }
        let check = |text: &str, expected: &str| assert_eq!(secrets.redact(text), expected);
        check("401: Bearer sk-12345678 is wrong", "401: Bearer [redacted] is wrong");
        check("sk-12345678-long", "[redacted]");
        check("sk-12345678sk-12345678-", "[redacted][redacted]-");
        check("is ollama running?", "is ollama running?");
        check("", "");
        assert!(matches!(secrets.redact("nothing here"), Cow::Borrowed(_)));
        secrets.remember("nothing here");
        check("nothing here", "[redacted]");
        assert!(!format!("{secrets:?}").contains("1234"));
    }

    #[test]
    fn sources_are_asked_when_there_is_a_text() {
        let secrets = Arc::new(Secrets::default());
        let again = secrets.clone();
        // It may have to say something itself.
        secrets.ask(move || vec![format!("{}-late", again.redact("12345678"))]);
        assert_eq!(secrets.redact("of 12345678-late!"), "of [redacted]!");
    }

    #[test]
    fn rules_of_the_user_count() {
        let secrets = Secrets::default();
        secrets.remember("company-name");
        let badge = Rule::pattern("badge ([a-z]+)", "gi").map(|rule| rule.shown_as("$1"));
        let company = Rule::value("company-name").map(|rule| rule.shown_as("ACME"));
        secrets.add_rules([company, Rule::value("tiny"), badge].map(|rule| rule.expect("a rule")));
        assert_eq!(secrets.redact("tiny company-name Badge abc"), "[redacted] ACME $1");
        let problem = |pattern: &str, flags: &str| Rule::pattern(pattern, flags).expect_err(pattern);
        assert_eq!(problem("a*", ""), "it matches the empty text");
        assert_eq!(problem("a", "y"), "there is no flag \"y\"");
        assert_eq!(problem("a(", ""), "unclosed group");
    }
}
