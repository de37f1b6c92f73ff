//! The secrets seen so far, so that no text leaves with one of them in it.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

/// Shorter values are dummies such as `ollama`; blanking them would only garble texts.
const MIN_LENGTH: usize = 8;
const MASK: &str = "[redacted]";

/// Collects resolved credentials and blanks them out of texts.
#[derive(Debug, Default)]
pub struct Secrets {
    /// Longest first, so that a secret containing another one goes as a whole.
    known: Mutex<Vec<String>>,
}

impl Secrets {
    /// Remembers a secret.
    pub fn remember(&self, secret: &str) {
        if secret.len() < MIN_LENGTH {
            return;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.iter().any(|other| other == secret) {
            known.push(secret.to_owned());
            known.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        }
    }

    /// Returns the text without any known secret.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = Cow::Borrowed(text);
        for secret in known.iter() {
            if text.contains(secret.as_str()) {
                text = Cow::Owned(text.replace(secret.as_str(), MASK));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_secrets_are_blanked_out() {
        let secrets = Secrets::default();
        for secret in ["sk-12345678", "sk-12345678-long", "ollama", "sk-12345678"] {
            secrets.remember(secret);
        }
        let check = |text: &str, expected: &str| assert_eq!(secrets.redact(text), expected);
        check("401: Bearer sk-12345678 is wrong", "401: Bearer [redacted] is wrong");
        check("sk-12345678-long", "[redacted]");
        check("is ollama running?", "is ollama running?");
        assert!(matches!(secrets.redact("nothing here"), Cow::Borrowed(_)));
    }
}
