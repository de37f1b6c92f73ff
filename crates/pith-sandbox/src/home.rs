//! What of a home can be read in a sandbox: everything but names that begin with a dot, and of those what this table opens.
//!
//! Keys are where their programs put them, and nobody has a list of all programs. So a name is closed unless it is
//! known to hold none, in a row of the table with its reason.

mod table;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

pub use table::{OPENED_IN_HOME, OpenedInHome};

/// What can be read of the agent directory, wherever it is: what models and their commands are meant to read.
pub(crate) const OPENED_IN_AGENT_DIR: &[&str] = &[
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "APPEND_SYSTEM.md",
    "SYSTEM.md",
    "agents",
    "bin",
    "commands",
    "docs",
    "extensions",
    "git",
    "hooks",
    "node_modules",
    "npm",
    "packages",
    "prompts",
    "rules",
    "skills",
    "themes",
    "tools",
];

/// Where keys are outside of homes, and what leads to daemons that hold some.
pub(crate) const CLOSED_ELSEWHERE: &[&str] = &[
    "/etc/NetworkManager/system-connections",
    "/etc/docker/key.json",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/letsencrypt",
    "/etc/rancher",
    "/etc/security/opasswd",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssh/ssh_host_dsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/wireguard",
    "/run/buildkit",
    "/run/containerd",
    "/run/credentials",
    "/run/crio",
    "/run/docker.sock",
    "/run/k3s",
    "/run/podman",
    "/run/secrets",
    "/run/user",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/lib/rancher",
    "/var/run/secrets",
];

/// Where a variable says that a directory of the home is, and what it is called there if it does not.
const MOVED: [(&str, &str); 7] = [
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("CARGO_HOME", ".cargo"),
    ("GRADLE_USER_HOME", ".gradle"),
    ("npm_config_cache", ".npm"),
];

/// Variables that say where keys are.
const NAMING_KEYS: [&str; 26] = [
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_CONFIG_DIR",
    "BUNDLE_USER_CONFIG",
    "CLOUDSDK_CONFIG",
    "CODEX_HOME",
    "CLAUDE_CONFIG_DIR",
    "COMPOSER_AUTH_FILE",
    "CONDARC",
    "DOCKER_CONFIG",
    "GH_CONFIG_DIR",
    "GNUPGHOME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HF_TOKEN_PATH",
    "KRB5_CLIENT_KTNAME",
    "KUBECONFIG",
    "NETRC",
    "NPM_CONFIG_USERCONFIG",
    "PASSWORD_STORE_DIR",
    "PGPASSFILE",
    "PIP_CONFIG_FILE",
    "REGISTRY_AUTH_FILE",
    "TF_CLI_CONFIG_FILE",
    "XDG_RUNTIME_DIR",
    "npm_config_userconfig",
];

/// Whose links of a home may lead to: software of the system is the same for everybody, and holds no keys.
#[cfg(target_os = "linux")]
const SYSTEM: [&str; 5] = ["/nix/store", "/gnu/store", "/usr", "/opt", "/proc"];

/// The homes of the user, links resolved: the one that programs are told, and the one in the list of users, where keys
/// stay when somebody tells programs another one.
pub(crate) fn homes(told: Option<PathBuf>) -> Vec<PathBuf> {
    let listed = listed_home().and_then(|home| home.canonicalize().ok()).filter(|home| home.is_dir());
    let listed = listed.filter(|home| Some(home) != told.as_ref());
    told.into_iter().chain(listed).collect()
}

#[cfg(target_os = "linux")]
fn listed_home() -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let home =
        fields.filter(|fields| fields.get(2) == Some(&&*user)).find_map(|fields| fields.get(5).map(PathBuf::from));
    // Users of services live where programs are, or nowhere.
    const NO_HOMES: [&str; 6] = ["/bin", "/dev", "/etc", "/proc", "/sbin", "/usr"];
    home.filter(|home| home.parent().is_some() && !NO_HOMES.iter().any(|top| home.starts_with(top)))
}

#[cfg(not(target_os = "linux"))]
fn listed_home() -> Option<PathBuf> {
    None
}

/// What variables close, and what of it is open all the same, for these homes.
pub(crate) fn named_by_variables(homes: &[PathBuf], value: impl Fn(&str) -> Option<OsString>) -> Named {
    let mut named = Named::default();
    let is_place = |path: &PathBuf| {
        path.is_absolute() && path.parent().is_some() && !homes.iter().any(|home| home.starts_with(path))
    };
    for (variable, name) in MOVED {
        let Some(path) = value(variable).map(PathBuf::from).filter(is_place) else { continue };
        let rows = OPENED_IN_HOME.iter().filter_map(|row| Path::new(row.path).strip_prefix(name).ok());
        named.opened.extend(rows.map(|below| path.join(below)));
        named.closed.push(path);
    }
    let lists = NAMING_KEYS.iter().filter_map(|variable| value(variable));
    named.closed.extend(lists.flat_map(|list| std::env::split_paths(&list).collect::<Vec<_>>()).filter(is_place));
    named
}

/// What variables say of places.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub closed: Vec<PathBuf>,
    pub opened: Vec<PathBuf>,
}

/// The directories of programs below these homes that commands are found in.
pub(crate) fn programs(homes: &[PathBuf]) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).filter(|path| path.is_absolute() && path.is_dir());
    found.filter(|path| homes.iter().any(|home| path != home && path.starts_with(home))).collect()
}

/// Where closed names of a home lead, if they are links: what is there is closed too. Software of the system is not.
#[cfg(target_os = "linux")]
pub(crate) fn led_to_from(home: &Path) -> Vec<PathBuf> {
    let config = [home.join(".config"), home.join(".local/share")];
    let entries = [home].into_iter().chain(config.iter().map(PathBuf::as_path)).flat_map(|directory| {
        let all = std::fs::read_dir(directory).into_iter().flatten().flatten();
        all.filter(move |entry| directory != home || is_dot(&entry.file_name()))
    });
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let targets = links.filter_map(|link| link.path().canonicalize().ok());
    targets.filter(|target| !home.starts_with(target) && !SYSTEM.iter().any(|top| target.starts_with(top))).collect()
}

/// Whether a name in a home is closed unless the table opens it.
pub(crate) fn is_dot(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_say_where_keys_are() {
        let variables = [
            ("CARGO_HOME", "/data/cargo"),
            ("XDG_CONFIG_HOME", "/home"),
            ("XDG_DATA_HOME", "relative"),
            ("KUBECONFIG", "/k/one:/k/two"),
            ("GNUPGHOME", "/"),
        ];
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
        let Named { closed, opened } = named_by_variables(&["/home/u".into()], value);
        assert_eq!(closed, ["/data/cargo", "/k/one", "/k/two"].map(PathBuf::from));
        assert!(opened.contains(&"/data/cargo/registry".into()) && opened.contains(&"/data/cargo/bin".into()));
        assert!(opened.iter().all(|path| path.starts_with("/data/cargo") && path.as_path() != "/data/cargo"));
    }

    #[test]
    fn rows_are_below_dot_names_and_none_is_in_another() {
        for row in OPENED_IN_HOME {
            assert!(row.path.starts_with('.') && !row.path.ends_with('/') && !row.path.contains("//"), "{row:?}");
            assert!(!row.reason.is_empty() && row.path.len() > 1, "{row:?}");
            let above = OPENED_IN_HOME
                .iter()
                .find(|other| other.path != row.path && Path::new(row.path).starts_with(other.path));
            assert_eq!(above, None, "{row:?}");
            assert_eq!(OPENED_IN_HOME.iter().filter(|other| other.path == row.path).count(), 1, "{row:?}");
        }
    }
}
