//! The environment that configuration is read in: variables and the home directory.
//!
//! All code takes an [`Environment`] instead of asking the process, so that
//! sessions in one process may differ and tests share nothing.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::paths;

/// Returns the value of a variable.
type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Variables and home directory. Cheap to clone.
#[derive(Clone)]
pub struct Environment {
    lookup: Arc<Lookup>,
    home: Arc<Path>,
    /// All variables, where they are not those of this process.
    variables: Option<Arc<HashMap<String, String>>>,
}

impl Environment {
    /// Makes an environment whose variables come from `lookup`.
    pub fn new(
        home: impl Into<PathBuf>,
        lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Environment {
        Environment { lookup: Arc::new(lookup), home: home.into().into(), variables: None }
    }

    /// Makes the environment of this process.
    pub fn of_process() -> Environment {
        let home = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
        Environment::new(home, |name| std::env::var(name).ok())
    }

    /// Makes an environment of a fixed set of variables.
    pub fn of<const N: usize>(home: impl Into<PathBuf>, variables: [(&str, &str); N]) -> Environment {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Environment::of_variables(home, variables.into_iter().map(owned))
    }

    /// Makes an environment of a list of variables.
    pub fn of_variables(
        home: impl Into<PathBuf>,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Environment {
        let variables: Arc<HashMap<String, String>> = Arc::new(variables.into_iter().collect());
        let known = variables.clone();
        let environment = Environment::new(home, move |name| known.get(name).cloned());
        Environment { variables: Some(variables), ..environment }
    }

    /// Returns the variables that commands and extensions inherit; `None` stands for those of this process.
    pub fn variables(&self) -> Option<Vec<(String, String)>> {
        let variables = self.variables.as_ref()?;
        Some(variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// Returns a variable; an empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<String> {
        (self.lookup)(name).filter(|value| !value.is_empty())
    }

    /// Whether a variable is set and not empty.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the user's home directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the path a value names: a leading `~` is replaced by the home directory, and `file://` addresses are
    /// understood.
    pub fn expand(&self, path: &str) -> PathBuf {
        paths::expand(path, Some(&self.home))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The variables stay out: they hold secrets.
        f.debug_struct("Environment").field("home", &self.home).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_variables_count_as_unset() {
        let environment = Environment::of("/home/u", [("A", "x"), ("B", "")]);
        assert_eq!(environment.get("A").as_deref(), Some("x"));
        assert!(!environment.has("B"));
        assert!(!environment.has("C"));
    }

    #[test]
    fn paths_are_expanded() {
        let environment = Environment::of("/home/u", []);
        let check = |path, expected: &str| assert_eq!(environment.expand(path), PathBuf::from(expected));
        check("~", "/home/u");
        check("~/x/y", "/home/u/x/y");
        check("~other/x", "~other/x");
        check("file:///etc/x", "/etc/x");
        check("file:///a%20b/%C3%A9%zz%", "/a b/é%zz%");
        check("rel/x", "rel/x");
    }

    #[test]
    fn debug_output_names_no_variable() {
        let environment = Environment::of("/home/u", [("KEY", "sk-secret")]);
        assert!(!format!("{environment:?}").contains("sk-secret"));
    }
}
