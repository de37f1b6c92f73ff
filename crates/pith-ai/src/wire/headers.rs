//! Request headers: a short list in which a later value of a name wins.

/// Header names in lower case, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Makes the headers that every request carries.
    pub fn new(user_agent: &str) -> Self {
        let mut headers = Headers::default();
        headers.set("content-type", "application/json");
        headers.set("accept", "application/json");
        headers.set("user-agent", user_agent);
        headers
    }

    /// Sets a header, replacing an earlier value.
    pub fn set(&mut self, name: &str, value: &str) {
        self.remove(name);
        self.0.push((name.to_ascii_lowercase(), value.to_owned()));
    }

    /// Takes a header out.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }

    /// Returns the value of a header.
    #[cfg(test)]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Applies configured headers, which win; no value suppresses one.
    pub fn apply(&mut self, configured: &[(String, Option<String>)]) {
        for (name, value) in configured {
            match value {
                Some(value) => self.set(name, value),
                None => self.remove(name),
            }
        }
    }

    /// Returns all of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_headers_win_and_nothing_suppresses() {
        let mut headers = Headers::default();
        headers.set("x-api-key", "k");
        headers.set("anthropic-beta", "a");
        headers.apply(&[("Anthropic-Beta".into(), Some("b".into())), ("X-API-Key".into(), None)]);
        assert_eq!(headers.iter().collect::<Vec<_>>(), [("anthropic-beta", "b")]);
    }
}
