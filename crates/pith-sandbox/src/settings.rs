//! The `sandbox` settings: as written, checked, and joined so that a project can only tighten them.

use serde::Deserialize;
use serde_json::Value;

use crate::domains::Domains;

pub use pith_protocol::{
    SandboxNamespaces as Namespaces, SandboxNetwork as NetworkMode, SandboxProfile as Profile,
    SandboxRequirement as Require,
};

/// The value of `sandbox`. What is absent was not said.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxSettings {
    /// Older spelling: `true` means `workspace-write`, `false` means `off`.
    pub enabled: Option<bool>,
    pub profile: Option<Profile>,
    pub require: Option<Require>,
    pub namespaces: Option<Namespaces>,
    /// Whether the usual caches of build tools can be written.
    pub caches: Option<bool>,
    pub filesystem: Filesystem,
    pub network: Network,
    pub env: Env,
    pub allow_unsandboxed_commands: Option<bool>,
    /// Whether `bash` commands of the host are confined too.
    pub host_commands: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Filesystem {
    pub allow_write: Vec<String>,
    pub deny_write: Vec<String>,
    pub deny_read: Vec<String>,
    /// What can be read although it is usually closed.
    pub allow_read: Vec<String>,
    pub allow_git_config: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Network {
    pub mode: Option<NetworkMode>,
    pub allowed_domains: Vec<String>,
    pub denied_domains: Vec<String>,
    pub allow_unix_sockets: Vec<String>,
    pub allow_all_unix_sockets: Option<bool>,
    pub allow_local_binding: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Env {
    pub pass: Vec<String>,
    pub drop: Vec<String>,
}

impl SandboxSettings {
    /// Reads the value of `sandbox`. The error names the key.
    pub fn read(value: &Value) -> Result<SandboxSettings, String> {
        let settings: SandboxSettings =
            serde_json::from_value(value.clone()).map_err(|error| format!("sandbox: {error}"))?;
        settings.domains()?;
        Ok(settings)
    }

    pub fn profile(&self) -> Profile {
        let from_enabled = self.enabled.map(|enabled| if enabled { Profile::WorkspaceWrite } else { Profile::Off });
        self.profile.or(from_enabled).unwrap_or_default()
    }

    /// The network mode; a list of domains without a mode means that list.
    pub fn network_mode(&self) -> NetworkMode {
        let listed = !self.network.allowed_domains.is_empty();
        self.network.mode.unwrap_or(if listed { NetworkMode::Domains } else { NetworkMode::Off })
    }

    /// The lists of hosts. The error names the entry.
    pub fn domains(&self) -> Result<Domains, String> {
        Domains::read(&self.network.allowed_domains, &self.network.denied_domains)
    }

    /// Puts what is said in another place of what is said here.
    pub fn replace_by(&mut self, other: SandboxSettings) {
        if other.profile.is_some() {
            self.profile = other.profile;
        }
        if other.network != Network::default() {
            self.network = other.network;
        }
        if other.filesystem != Filesystem::default() {
            self.filesystem = other.filesystem;
        }
    }

    /// Adds what a project's file asks for, as far as it is stricter. Returns the keys that would have loosened
    /// something and were left out.
    pub fn tighten(&mut self, project: SandboxSettings) -> Vec<&'static str> {
        let mut ignored = Vec::new();
        let asked = project.profile.is_some() || project.enabled.is_some();
        if asked && is_stricter(project.profile(), self.profile()) {
            self.profile = Some(project.profile());
        } else if asked && project.profile() != self.profile() {
            ignored.push("sandbox.profile");
        }
        if let Some(mode) = project.network.mode {
            if mode > self.network_mode() {
                self.network.mode = Some(mode);
            } else if mode < self.network_mode() {
                ignored.push("sandbox.network.mode");
            }
        }
        self.filesystem.deny_write.extend(project.filesystem.deny_write);
        self.filesystem.deny_read.extend(project.filesystem.deny_read);
        self.network.denied_domains.extend(project.network.denied_domains);
        self.env.drop.extend(project.env.drop);
        let loosening = [
            ("sandbox.filesystem.allowWrite", !project.filesystem.allow_write.is_empty()),
            ("sandbox.filesystem.allowRead", !project.filesystem.allow_read.is_empty()),
            ("sandbox.filesystem.allowGitConfig", project.filesystem.allow_git_config == Some(true)),
            ("sandbox.network.allowedDomains", !project.network.allowed_domains.is_empty()),
            ("sandbox.network.allowUnixSockets", !project.network.allow_unix_sockets.is_empty()),
            ("sandbox.network.allowAllUnixSockets", project.network.allow_all_unix_sockets == Some(true)),
            ("sandbox.network.allowLocalBinding", project.network.allow_local_binding == Some(true)),
            ("sandbox.env.pass", !project.env.pass.is_empty()),
            ("sandbox.require", project.require.is_some()),
            ("sandbox.namespaces", project.namespaces.is_some()),
            ("sandbox.caches", project.caches == Some(true)),
            ("sandbox.allowUnsandboxedCommands", project.allow_unsandboxed_commands == Some(true)),
        ];
        ignored.extend(loosening.into_iter().filter(|(_, asked)| *asked).map(|(key, _)| key));
        if project.host_commands == Some(true) {
            self.host_commands = Some(true);
        }
        ignored
    }
}

/// Whether a profile allows nothing that the other one does not. `custom` and `workspace-write` each allow something
/// that the other one may not.
fn is_stricter(profile: Profile, other: Profile) -> bool {
    match profile {
        Profile::Off => false,
        Profile::Custom | Profile::WorkspaceWrite => other == Profile::Off,
        Profile::ReadOnly => other != Profile::ReadOnly,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> SandboxSettings {
        SandboxSettings::read(&value).expect("settings")
    }

    #[test]
    fn the_older_spelling_means_a_profile() {
        assert_eq!(read(json!({"enabled": true})).profile(), Profile::WorkspaceWrite);
        assert_eq!(read(json!({"enabled": false})).profile(), Profile::Off);
        assert_eq!(read(json!({"enabled": true, "profile": "read-only"})).profile(), Profile::ReadOnly);
        assert_eq!(read(json!({})).profile(), Profile::Off);
    }

    #[test]
    fn listed_domains_without_a_mode_are_the_mode() {
        assert_eq!(read(json!({"network": {"allowedDomains": ["github.com"]}})).network_mode(), NetworkMode::Domains);
        assert_eq!(read(json!({})).network_mode(), NetworkMode::Off);
    }

    #[test]
    fn an_error_names_key_and_value() {
        let check = |value: Value, expected: &str| {
            let error = SandboxSettings::read(&value).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        let domains = |entry: &str| json!({"network": {"allowedDomains": [entry]}});
        check(domains("*.com"), "sandbox.network.allowedDomains: \"*.com\" is too broad");
        check(domains("*"), "is too broad");
        check(domains("https://a.b"), "is an address");
        check(domains("a.b:0"), "port");
        check(domains("a..b"), "is no domain");
        check(json!({"profile": "loose"}), "sandbox: unknown variant `loose`");
        for good in ["github.com", "*.example.org", "git.example.org:22", "127.0.0.1"] {
            read(domains(good));
        }
    }

    #[test]
    fn a_project_only_tightens() {
        let mut user = read(json!({"profile": "workspace-write", "network": {"mode": "on"}}));
        let project = read(json!({
            "profile": "off", "require": "best-effort", "caches": true,
            "filesystem": {"allowWrite": ["/"], "allowRead": ["~/.aws"], "denyRead": ["secret"], "denyWrite": ["Makefile"]},
            "network": {"mode": "off", "allowedDomains": ["a.example.org"]}, "env": {"pass": ["X"], "drop": ["Y"]},
        }));
        let ignored = user.tighten(project);
        assert_eq!(user.profile(), Profile::WorkspaceWrite);
        assert_eq!(user.network_mode(), NetworkMode::Off);
        assert_eq!(user.filesystem.deny_read, ["secret"]);
        assert_eq!(user.filesystem.deny_write, ["Makefile"]);
        assert_eq!(user.env, Env { pass: vec![], drop: vec!["Y".to_owned()] });
        assert_eq!(
            ignored,
            [
                "sandbox.profile",
                "sandbox.filesystem.allowWrite",
                "sandbox.filesystem.allowRead",
                "sandbox.network.allowedDomains",
                "sandbox.env.pass",
                "sandbox.require",
                "sandbox.caches",
            ]
        );
        let mut user = read(json!({"profile": "workspace-write"}));
        assert_eq!(user.tighten(read(json!({"profile": "read-only"}))), [""; 0]);
        assert_eq!(user.profile(), Profile::ReadOnly);
        // What the user lists may be less than the project.
        let mut user = read(json!({"profile": "custom"}));
        assert_eq!(user.tighten(read(json!({"profile": "workspace-write"}))), ["sandbox.profile"]);
        assert_eq!(user.profile(), Profile::Custom);
    }
}
