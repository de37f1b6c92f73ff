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
const DROPPED_SUFFIXES: [&str; 4] = ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"];

impl Env {
    /// Returns whether a confined command gets this variable.
    pub fn passes(&self, name: &str) -> bool {
        if self.drop.iter().any(|dropped| dropped == name) || name.starts_with("LD_") || DROPPED.contains(&name) {
            return false;
        }
        if self.pass.iter().any(|passed| passed == name) {
            return true;
        }
        if DROPPED_SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) {
            return false;
        }
        let is_directory_of_user = name.starts_with("XDG_") && name.ends_with("_HOME");
        PASSED.contains(&name)
            || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || name.ends_with("FLAGS")
            || is_directory_of_user
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_sockets_stay_out() {
        let env = Env { pass: vec!["MY_TOKEN".into(), "LD_PRELOAD".into()], drop: vec!["CARGO_HOME".into()] };
        let check = |name: &str, passes: bool| assert_eq!(env.passes(name), passes, "{name}");
        for name in ["PATH", "LC_ALL", "RUSTFLAGS", "CARGO_TARGET_DIR", "XDG_CACHE_HOME", "PI_SESSION_ID", "MY_TOKEN"] {
            check(name, true);
        }
        for name in
            ["ANTHROPIC_API_KEY", "CARGO_REGISTRY_TOKEN", "LD_PRELOAD", "SSH_AUTH_SOCK", "CARGO_HOME", "SOMETHING_ELSE"]
        {
            check(name, false);
        }
    }
}
