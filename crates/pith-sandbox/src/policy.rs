//! What one session may touch: the settings, resolved for its directory.

use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use globset::Glob;

use crate::domains::Domains;
use crate::names::{self, Names};
use crate::protected;
use crate::settings::{Namespaces, NetworkMode, Profile, SandboxSettings};
use crate::support::Support;

/// Where credentials usually are, below the home directory.
const SECRETS: [&str; 12] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".config/gcloud",
    ".netrc",
    ".docker/config.json",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials.toml",
    ".git-credentials",
];

/// What pith keeps in the agent directory for itself.
const OWN_SECRETS: [&str; 6] =
    ["auth.json", "trust.json", "pith-permissions.json", "sessions", "pith-checkpoints", "mcp-auth.json"];

/// Caches of build tools, below the home directory.
const CACHES: [&str; 11] = [
    ".cargo/registry",
    ".cargo/git",
    ".npm",
    ".cache/pip",
    ".cache/uv",
    ".cache/yarn",
    ".cache/go-build",
    "go/pkg/mod",
    ".m2/repository",
    ".gradle/caches",
    ".cache/ccache",
];

/// What a confined thread may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub profile: Profile,
    /// Directories and files that can be written, links resolved. The session's own temporary directory is the last.
    pub writable: Vec<PathBuf>,
    /// What cannot be read, links resolved.
    pub unreadable: Vec<PathBuf>,
    /// What cannot be changed though it is below a writable root.
    pub protected: Vec<PathBuf>,
    /// Which names are protected in every directory, and where.
    pub names: Names,
    /// Whether configuration of git can be changed.
    pub allows_git_config: bool,
    pub home: Option<PathBuf>,
    pub network: NetworkRule,
    /// Which hosts commands reach, if the network is that of a list.
    pub domains: Domains,
    /// Whether commands run in namespaces of their own.
    pub namespaces: bool,
}

/// What commands may do with sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkRule {
    pub mode: NetworkMode,
    /// Sockets with a name in the file system.
    pub unix: bool,
    /// Listening, where nobody but the commands themselves can connect.
    pub local: bool,
}

impl NetworkRule {
    /// Whether sockets of the internet can be made; where they lead is another matter.
    pub fn has_internet_sockets(self) -> bool {
        self.mode != NetworkMode::Off || self.local
    }
}

/// The directories that paths of the settings are relative to.
#[derive(Clone, Debug)]
pub struct Places {
    /// The session's directory.
    pub cwd: PathBuf,
    pub home: Option<PathBuf>,
    pub agent_dir: PathBuf,
    /// A private directory of the session, which becomes its `TMPDIR`.
    pub temp: PathBuf,
}

impl Policy {
    /// Resolves the settings for one session; `None` for profile `off`. The error names the key.
    pub fn resolve(settings: &SandboxSettings, places: &Places, support: Support) -> Result<Option<Policy>, String> {
        let profile = settings.profile();
        if profile == Profile::Off {
            return Ok(None);
        }
        let namespaces = Policy::uses_namespaces(settings, support)?;
        if !settings.network.allow_unix_sockets.is_empty() {
            return Err("sandbox.network.allowUnixSockets cannot be enforced by this kernel; \
                        use allowAllUnixSockets, or leave it out"
                .to_owned());
        }
        let mut writable: Vec<PathBuf> = Policy::roots(settings, places).into_iter().map(|(_, real)| real).collect();
        let mut unreadable = places.all("sandbox.filesystem.denyRead", &settings.filesystem.deny_read)?;
        if profile != Profile::Custom {
            unreadable.extend(places.in_home(&SECRETS));
            unreadable.extend(OWN_SECRETS.iter().map(|name| real(&places.agent_dir.join(name))));
        }
        unreadable.retain(|path| path.exists());
        let names = Policy::names(settings, places);
        let allows_git_config = settings.filesystem.allow_git_config == Some(true);
        let mut protected = protected::of(&names, places, allows_git_config);
        protected.extend(places.all("sandbox.filesystem.denyWrite", &settings.filesystem.deny_write)?);
        // What cannot be read must not be replaced either.
        protected.extend(unreadable.iter().filter(|path| writable.iter().any(|root| path.starts_with(root))).cloned());
        writable.push(real(&places.temp));
        for list in [&mut writable, &mut unreadable, &mut protected] {
            remove_repeated(list);
        }
        let network = NetworkRule {
            mode: settings.network_mode(),
            unix: settings.network.allow_all_unix_sockets == Some(true),
            // Without a network of their own others could connect.
            local: namespaces && settings.network.allow_local_binding == Some(true),
        };
        let domains = settings.domains()?;
        let home = places.home.clone();
        Ok(Some(Policy {
            profile,
            writable,
            unreadable,
            protected,
            names,
            allows_git_config,
            home,
            network,
            domains,
            namespaces,
        }))
    }

    /// Decides whether commands run in namespaces of their own. The error says what cannot be had without.
    fn uses_namespaces(settings: &SandboxSettings, support: Support) -> Result<bool, String> {
        let wanted = settings.namespaces.unwrap_or_default();
        let is_used = support.namespaces && wanted != Namespaces::Never;
        if wanted == Namespaces::Require && !is_used {
            return Err("sandbox.namespaces \"require\" cannot be had: this system allows no namespaces".to_owned());
        }
        if settings.network_mode() == NetworkMode::Domains && !is_used {
            let who = if wanted == Namespaces::Never { "sandbox.namespaces" } else { "this system" };
            return Err(format!(
                "sandbox.network.mode \"domains\" needs network namespaces, which {who} does not allow; \
                 use \"off\" or \"on\""
            ));
        }
        Ok(is_used)
    }

    /// Returns what can be written beside the temporary directory: each path as written, and what it leads to now.
    pub fn roots(settings: &SandboxSettings, places: &Places) -> Vec<(PathBuf, PathBuf)> {
        let profile = settings.profile();
        let mut roots = Vec::new();
        if profile == Profile::WorkspaceWrite {
            roots.push(places.cwd.clone());
        }
        if profile != Profile::ReadOnly {
            roots.extend(settings.filesystem.allow_write.iter().map(|entry| places.absolute(entry)));
        }
        let mut roots: Vec<_> = roots.into_iter().map(|path| (path.clone(), real(&path))).collect();
        if profile != Profile::ReadOnly && settings.caches == Some(true) {
            let caches = places.in_home(&CACHES).filter(|cache| cache.exists());
            roots.extend(caches.map(|cache| (cache.clone(), cache)));
        }
        roots
    }

    /// Where names of the table are protected, and which of them the user has opened: those that `allowWrite` names.
    fn names(settings: &SandboxSettings, places: &Places) -> Names {
        let mut found = Names::default();
        if settings.profile() == Profile::WorkspaceWrite {
            found.trees.push(real(&places.cwd));
        }
        let entries = settings.filesystem.allow_write.iter().filter(|_| settings.profile() != Profile::ReadOnly);
        for entry in entries {
            if names::is_row(entry) {
                found.opened.push(entry.clone());
            }
            let path = real(&places.absolute(entry));
            found.opened_paths.push(path.clone());
            found.trees.push(path);
        }
        // What lies in another tree is a part of it.
        let all = found.trees.clone();
        found.trees.retain(|tree| !all.iter().any(|other| other != tree && tree.starts_with(other)));
        remove_repeated(&mut found.trees);
        found
    }

    /// Returns why file tools must leave a path alone, if they must; nothing is said of what lists name. `path` has its
    /// links resolved.
    pub fn protection(&self, path: &Path) -> Option<String> {
        if let Some((_, row)) = self.names.find(path) {
            return Some(format!("{}: {}", row.program, row.reason));
        }
        if self.names.trees.iter().any(|tree| path.strip_prefix(tree).is_ok_and(|below| self.is_of_git(below))) {
            return Some("git: what is in a git directory is for git to write".to_owned());
        }
        let is_listed = self.protected.iter().any(|protected| starts_with_ignoring_case(path, protected));
        is_listed.then(String::new)
    }

    /// Returns whether file tools must leave a path alone. `path` has its links resolved.
    pub fn is_protected(&self, path: &Path) -> bool {
        self.protection(path).is_some()
    }

    /// Whether a path below a tree is a `.git`, or in one and not plain text that people write themselves.
    fn is_of_git(&self, below: &Path) -> bool {
        const TEXTS: [&str; 5] = ["info/exclude", "description", "COMMIT_EDITMSG", "MERGE_MSG", "SQUASH_MSG"];
        let mut parts = below.components();
        let is_git = parts.any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
        let inside = parts.as_path();
        let is_open = TEXTS.iter().any(|text| inside == Path::new(text))
            || self.allows_git_config && inside == Path::new("config");
        is_git && !is_open
    }

    /// The line that commands which failed inside, and the model, are told.
    pub fn summary(&self) -> String {
        let roots = self.writable.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", ");
        let network = match self.network.mode {
            NetworkMode::On => "on".to_owned(),
            NetworkMode::Off => "off".to_owned(),
            NetworkMode::Domains => {
                let listed = self.domains.allowed().collect::<Vec<_>>().join(", ");
                let listed = if listed.is_empty() { "hosts that rules allow" } else { &listed };
                format!("limited to {listed}, through the proxy")
            }
        };
        format!("Sandbox {}: writing is limited to {roots}; network is {network}.", self.profile)
    }
}

impl Places {
    /// Resolves the paths of a list that denies something. What cannot be resolved would not be denied, so it is an
    /// error.
    fn all(&self, key: &str, entries: &[String]) -> Result<Vec<PathBuf>, String> {
        let mut all = Vec::new();
        for entry in entries {
            all.extend(self.expand(entry).map_err(|why| format!("{key}: {entry:?}: {why}"))?);
        }
        Ok(all)
    }

    fn in_home<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = PathBuf> + 'a {
        self.home.iter().flat_map(move |home| names.iter().map(|name| real(&home.join(name))))
    }

    /// A path as written; its last part may be a pattern such as `*.pem`, which stands for the files there now.
    fn expand(&self, entry: &str) -> Result<Vec<PathBuf>, String> {
        let path = self.absolute(entry);
        let pattern = path.file_name().and_then(|name| name.to_str()).filter(|name| name.contains(['*', '?']));
        let (Some(pattern), Some(parent)) = (pattern, path.parent()) else { return Ok(vec![real(&path)]) };
        let pattern = Glob::new(pattern).map_err(|error| error.kind().to_string())?.compile_matcher();
        let unlisted = |error: io::Error| format!("{} cannot be listed: {error}", parent.display());
        let files = match fs::read_dir(parent) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unlisted(error)),
        };
        let mut found = Vec::new();
        for file in files {
            let file = file.map_err(unlisted)?;
            if pattern.is_match(file.file_name()) {
                found.push(real(&file.path()));
            }
        }
        Ok(found)
    }

    /// A path as written, from the home directory or the session's.
    fn absolute(&self, entry: &str) -> PathBuf {
        match (entry.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ if entry == "~" => self.home.clone().unwrap_or_else(|| entry.into()),
            _ => self.cwd.join(entry),
        }
    }
}

/// Resolves the links of a path as far as it exists.
fn real(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return rest.components().fold(real, |real, part| match part {
                Component::ParentDir => real.parent().unwrap_or(&real).to_owned(),
                part => real.join(part),
            });
        }
    }
    path.to_owned()
}

fn starts_with_ignoring_case(path: &Path, prefix: &Path) -> bool {
    let mut parts = path.components();
    prefix
        .components()
        .all(|expected| parts.next().is_some_and(|part| part.as_os_str().eq_ignore_ascii_case(expected.as_os_str())))
}

/// Keeps the first of equal paths.
fn remove_repeated(paths: &mut Vec<PathBuf>) {
    let mut seen = std::collections::HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn resolve(root: &Path, filesystem: &Value) -> Result<Policy, String> {
        let places = Places {
            cwd: root.join("work"),
            home: Some(root.to_owned()),
            agent_dir: root.join("agent"),
            temp: root.join("temp"),
        };
        let settings = json!({"profile": "workspace-write", "filesystem": filesystem});
        let settings = SandboxSettings::read(&settings).expect("settings");
        let support = Support { landlock_abi: 7, seccomp: true, namespaces: false };
        Policy::resolve(&settings, &places, support).map(|policy| policy.expect("a policy"))
    }

    #[test]
    fn a_pattern_stands_for_the_files_that_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("work")).unwrap();
        for name in ["a.pem", "b.pem", "b.key", "notes"] {
            fs::write(root.join("work").join(name), "").unwrap();
        }
        let denied = |entry: &str| {
            let mut names = resolve(&root, &json!({"denyRead": [entry]})).unwrap().unreadable;
            names.sort();
            names
                .iter()
                .map(|path| path.strip_prefix(root.join("work")).unwrap().display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(denied("*.pem"), ["a.pem", "b.pem"]);
        assert_eq!(denied("b.*"), ["b.key", "b.pem"]);
        assert_eq!(denied("?.{key,pem}"), ["a.pem", "b.key", "b.pem"]);
        assert_eq!(denied("~/work/notes"), ["notes"]);
        assert_eq!(denied("nowhere/*.pem"), [""; 0], "a directory that does not exist has nothing to deny");
    }

    #[test]
    fn a_pattern_that_cannot_be_resolved_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("work")).unwrap();
        fs::write(root.join("work/file"), "").unwrap();
        // A file has no list either, and root can be refused nothing by modes.
        for key in ["denyRead", "denyWrite"] {
            let error = resolve(&root, &json!({key: ["file/*.pem"]})).unwrap_err();
            let expected =
                format!("sandbox.filesystem.{key}: \"file/*.pem\": {}/work/file cannot be listed: ", root.display());
            assert!(error.starts_with(&expected), "{error}");
        }
        let error = resolve(&root, &json!({"denyRead": ["[a*"]})).unwrap_err();
        assert_eq!(error, "sandbox.filesystem.denyRead: \"[a*\": unclosed character class; missing ']'");
    }
}
