//! The environment of a server: what programs need to run, and no key of a model.

use pith_config::Environment;

/// Variables that programs need, besides those that begin as below. pith itself reads none of them here.
const NAMES: &str = "PATH HOME USER LOGNAME SHELL TERM LANG TZ TMPDIR HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY \
    http_proxy https_proxy no_proxy all_proxy SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE \
    CURL_CA_BUNDLE";
const BEGINNINGS: &str = "LC_ XDG_ NVM_ npm_config_ NPM_CONFIG_ UV_ PIP_ PYTHON DOCKER_";

/// How much of pith's environment a program gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Inherited {
    /// What programs need to run.
    Needed,
    All,
}

/// What a program inherits; never what is `hidden`.
pub fn inherited(environment: &Environment, hidden: &[String], wanted: Inherited) -> Vec<(String, String)> {
    let variables = environment.variables().unwrap_or_else(|| {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        std::env::vars_os().filter_map(text).collect()
    });
    let is_allowed = |name: &str| {
        let is_needed = NAMES.split_whitespace().any(|needed| needed == name)
            || BEGINNINGS.split_whitespace().any(|beginning| name.starts_with(beginning));
        wanted == Inherited::All || is_needed
    };
    variables.into_iter().filter(|(name, _)| is_allowed(name) && !hidden.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_keys_are_never_inherited() {
        let environment = Environment::of(
            "/home/u",
            [("PATH", "/bin"), ("LC_ALL", "C"), ("ANTHROPIC_API_KEY", "sk"), ("MY_TOKEN", "t"), ("UV_CACHE", "c")],
        );
        let hidden = ["ANTHROPIC_API_KEY".to_owned()];
        let names = |wanted| {
            let mut names: Vec<String> =
                inherited(&environment, &hidden, wanted).into_iter().map(|(name, _)| name).collect();
            names.sort();
            names
        };
        assert_eq!(names(Inherited::Needed), ["LC_ALL", "PATH", "UV_CACHE"]);
        assert_eq!(names(Inherited::All), ["LC_ALL", "MY_TOKEN", "PATH", "UV_CACHE"]);
    }
}
