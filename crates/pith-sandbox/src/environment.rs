//! The variables that confined commands get.

use crate::settings::Env;

const PASSED: [&str; 22] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TERM",
    "COLORTERM",
    "TZ",
    "PWD",
    "EDITOR",
    "PAGER",
    "CI",
    "NO_COLOR",
    "VIRTUAL_ENV",
    "JAVA_HOME",
    "CC",
    "CXX",
    "TMPDIR",
    "TEMP",
    "TMP",
    "PITH",
];
const PASSED_PREFIXES: [&str; 11] = [
    "LC_",
    "CARGO_",
    "RUST",
    "GO",
    "NODE_",
    "NPM_CONFIG_",
    "npm_config_",
    "PYTHON",
    "GIT_AUTHOR_",
    "GIT_COMMITTER_",
    "PI_",
];
const DROPPED: [&str; 5] = ["BASH_ENV", "ENV", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST"];

/// Addresses of these kinds name a user in front of the host as a matter of course, not a key.
const WITH_USER: [&str; 3] = ["ssh", "git+ssh", "svn+ssh"];
/// The shortest value that can look like a key.
const SHORTEST_KEY: usize = 16;

impl Env {
    /// Returns whether a confined command gets this variable. What the user lists passes, key or not.
    pub fn passes(&self, name: &str, value: &str) -> bool {
        if self.drop.iter().any(|dropped| dropped == name) || name.starts_with("LD_") || DROPPED.contains(&name) {
            return false;
        }
        if self.pass.iter().any(|passed| passed == name) {
            return true;
        }
        is_known(name) && !names_key(name) && !holds_key(value)
    }
}

fn is_known(name: &str) -> bool {
    let is_directory_of_user = name.starts_with("XDG_") && name.ends_with("_HOME");
    PASSED.contains(&name)
        || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || name.ends_with("FLAGS")
        || is_directory_of_user
}

/// Whether a name says that its value is a key: one of its words does.
fn names_key(name: &str) -> bool {
    words(name).any(|word| {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        ["token", "secret", "passw", "passphrase", "credential", "netrc"].iter().any(|part| word.contains(part))
            || ["key", "keys", "auth", "pass", "cookie", "cookies"].iter().any(|end| word.ends_with(end))
            || (word.starts_with("auth") && !word.starts_with("author"))
            || ["pwd", "pw", "cred", "creds", "pat", "otp", "jwt", "bearer"].contains(&word)
    }) && name != "PWD"
}

/// The words of a name, in lower case: parts between other signs, and what begins with a capital letter.
fn words(name: &str) -> impl Iterator<Item = String> {
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    parts.flat_map(|part| {
        let mut words = vec![String::new()];
        let mut was_lower = false;
        for c in part.chars() {
            if was_lower && c.is_ascii_uppercase() {
                words.push(String::new());
            }
            was_lower = c.is_ascii_lowercase();
            words.last_mut().expect("there is one").push(c.to_ascii_lowercase());
        }
        words
    })
}

/// Whether a value is a key, or an address with one in it.
fn holds_key(value: &str) -> bool {
    let is_path = value.starts_with('/') && !value.contains("://");
    value.contains("://") && has_user(value)
        || value.len() >= SHORTEST_KEY && !is_path && pith_secrets::shape_in(value).is_some()
}

/// Whether there is an address in which somebody stands in front of the host: a password, or a token in its place.
fn has_user(value: &str) -> bool {
    value.match_indices("://").any(|(at, sign)| {
        let before = &value[..at];
        let kind = before.rsplit(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).next().unwrap_or(before);
        let rest = &value[at + sign.len()..];
        let host = rest.split(['/', '?', '#', ',', '|', ' ', '\t', '\n']).next().unwrap_or(rest);
        let user = host.rsplit_once('@').map(|(user, _)| user);
        user.is_some_and(|user| user.contains(':') || !WITH_USER.contains(&kind.to_ascii_lowercase().as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_and_sockets_stay_out() {
        let env = Env { pass: vec!["MY_TOKEN".into(), "LD_PRELOAD".into()], drop: vec!["CARGO_HOME".into()] };
        let check = |name: &str, passes: bool| assert_eq!(env.passes(name, "/some/where"), passes, "{name}");
        for name in ["PATH", "LC_ALL", "RUSTFLAGS", "CARGO_TARGET_DIR", "XDG_CACHE_HOME", "PI_SESSION_ID", "MY_TOKEN"] {
            check(name, true);
        }
        for name in
            ["ANTHROPIC_API_KEY", "CARGO_REGISTRY_TOKEN", "LD_PRELOAD", "SSH_AUTH_SOCK", "CARGO_HOME", "SOMETHING_ELSE"]
        {
            check(name, false);
        }
    }

    #[test]
    fn variables_of_toolchains_pass() {
        let env = Env::default();
        for (name, value) in [
            ("PWD", "/work"),
            ("LANG", "en_US.UTF-8"),
            ("TERM", "xterm-256color"),
            ("GOPRIVATE", "example.org/*,git.example.org"),
            ("GOPATH", "/home/u/go"),
            ("GOPROXY", "https://proxy.example.org,direct"),
            ("GOTOOLCHAIN", "local"),
            ("RUSTUP_TOOLCHAIN", "stable-x86_64-unknown-linux-gnu"),
            ("RUST_LOG", "debug,hyper=info"),
            ("CARGO_HTTP_PROXY", "http://proxy.example.org:3128"),
            ("CARGO_REGISTRIES_OWN_INDEX", "ssh://git@example.org/index"),
            ("NODE_OPTIONS", "--max-old-space-size=4096 --enable-source-maps"),
            ("NODE_EXTRA_CA_CERTS", "/etc/ssl/own.pem"),
            ("npm_config_registry", "https://registry.example.org/@scope/"),
            ("npm_config_user_agent", "npm/10.0.0 node/v22.0.0 linux x64"),
            ("PYTHONPATH", "src:tests"),
            ("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring"),
            ("GIT_AUTHOR_NAME", "A. U. Thor"),
            ("GIT_AUTHOR_EMAIL", "a@example.org"),
            ("CARGO_PKG_AUTHORS", "A <a@example.org>"),
            ("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-cpu=native"),
            ("PI_SESSION_ID", "0199a4b2-7c1d-7000-8000-0123456789ab"),
        ] {
            assert!(env.passes(name, value), "{name}={value}");
        }
    }

    /// Every beginning that passes, with every word for a key, spelt in every way; and every name that passes, with
    /// every kind of value.
    #[test]
    fn no_beginning_lets_a_key_through() {
        const KEYS: [&str; 22] = [
            "KEY",
            "API_KEY",
            "APIKEY",
            "KEYS",
            "TOKEN",
            "TOKEN_2",
            "ACCESSTOKEN",
            "SECRET",
            "CLIENT_SECRET_ID",
            "PASSWORD",
            "PASSWD",
            "PASS",
            "PASSPHRASE",
            "CREDENTIALS",
            "CREDENTIAL_FILE",
            "AUTH",
            "_AUTH",
            "_authToken",
            "AUTH_HEADER",
            "COOKIE",
            "_PAT",
            "NETRC",
        ];
        const VALUES: [&str; 11] = [
            "https://user:hunter2@example.org/simple",
            "https://abcdef@example.org",
            "direct|http://u:p@10.0.0.1:3128",
            "socks5://:p@localhost",
            "ssh://git:p@example.org/x",
            "git+https://abcdef@example.org/x.git",
            "ghp_0123456789abcdefghijABCDEFGHIJ",
            "-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
            "--header=Authorization: Bearer abcdef",
            "{\"private_key\": \"-----BEGIN PRIVATE KEY-----\\nMHcC\"}",
        ];
        let env = Env::default();
        let mut passed = BTreeSet::new();
        for prefix in PASSED_PREFIXES {
            for key in KEYS {
                let camel = format!("{prefix}{}{}", &key[..1], key[1..].to_ascii_lowercase());
                for name in [format!("{prefix}{key}"), format!("{prefix}_{key}"), format!("{prefix}X_{key}"), camel] {
                    for name in [name.to_ascii_lowercase(), name.to_ascii_uppercase(), name] {
                        if env.passes(&name, "abcdef") {
                            passed.insert(name);
                        }
                    }
                }
            }
        }
        assert!(passed.is_empty(), "{passed:?}");
        let names = PASSED_PREFIXES.iter().map(|prefix| format!("{prefix}X")).chain(PASSED.map(str::to_owned));
        for name in names.chain(["RUSTFLAGS", "XDG_DATA_HOME"].map(str::to_owned)) {
            for value in VALUES {
                assert!(!env.passes(&name, value), "{name}={value}");
            }
        }
        for name in ["GOAUTH", "GOOGLE_CREDENTIALS", "npm_config_//registry.example.org/:_authToken", "NODE_AUTH_TOKEN"]
        {
            assert!(!env.passes(name, "x"), "{name}");
        }
    }
}
