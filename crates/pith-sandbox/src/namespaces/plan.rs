//! What the namespaces of a policy look like, as the processes that arrange and join them are told.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::policy::{NetworkRule, Policy};
use crate::settings::NetworkMode;

/// Sockets through which a command could start something that is not confined.
const CONTAINER_SOCKETS: [&str; 6] = [
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/crio/crio.sock",
    "/run/buildkit/buildkitd.sock",
    "/run/k3s/containerd/containerd.sock",
];

/// Written as a matter of course, though no policy names them.
const ALWAYS_WRITABLE: [&str; 2] = ["/dev/pts", "/dev/shm"];

/// What is arranged. Paths have no links in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What stays writable while everything else becomes read-only.
    pub(super) writable: Vec<PathBuf>,
    held: Vec<Held>,
    /// What is covered by something empty.
    pub(super) masked: Vec<PathBuf>,
    pub(super) network: OwnNetwork,
}

/// A path below a writable root that must stay what it is, because a mount cannot be renamed or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub path: PathBuf,
    pub is_read_only: bool,
}

/// Whether there is a network namespace, and what is in it beside the loopback device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnNetwork {
    /// The network is that of the machine.
    None,
    Alone,
    WithProxy,
}

impl OwnNetwork {
    const WORDS: [(OwnNetwork, &'static str); 3] =
        [(OwnNetwork::None, "none"), (OwnNetwork::Alone, "alone"), (OwnNetwork::WithProxy, "proxy")];

    fn of(network: &NetworkRule) -> OwnNetwork {
        match network.mode {
            NetworkMode::On => OwnNetwork::None,
            NetworkMode::Domains => OwnNetwork::WithProxy,
            NetworkMode::Off => OwnNetwork::Alone,
        }
    }
}

impl Plan {
    /// Plans for a policy. `runtime_dir` is where the user's daemons have their sockets.
    pub fn of(policy: &Policy, runtime_dir: Option<&Path>) -> Plan {
        let mut writable = policy.writable.clone();
        writable.extend(ALWAYS_WRITABLE.iter().map(PathBuf::from));
        // The outer of two comes first, so that it does not cover the inner one.
        writable.sort();
        let held = policy.protected.iter().filter(|path| link_in(path, &writable).is_none());
        let held = in_order(held.filter_map(|path| steps_to(path, &writable)).flatten());
        let mut masked = Vec::new();
        // Whoever allows all sockets wants to reach daemons through them.
        if !policy.network.unix {
            masked.extend(runtime_dir.and_then(|path| path.canonicalize().ok()));
            masked.extend(CONTAINER_SOCKETS.iter().filter_map(|path| Path::new(path).canonicalize().ok()));
            masked.retain(|masked| !writable.iter().any(|root| root.starts_with(masked)));
        }
        Plan { writable, held, masked, network: OwnNetwork::of(&policy.network) }
    }

    /// The least that namespaces are good for, to see whether this system allows them.
    pub fn probe() -> Plan {
        Plan { writable: Vec::new(), held: Vec::new(), masked: Vec::new(), network: OwnNetwork::Alone }
    }

    /// Returns the protected paths that have a link on the way, which no mount can hold.
    pub fn not_held(policy: &Policy) -> Vec<PathBuf> {
        let linked = policy.protected.iter().filter(|path| link_in(path, &policy.writable).is_some());
        linked.cloned().collect()
    }

    pub fn network(&self) -> OwnNetwork {
        self.network
    }

    /// What is held, directories before what is in them.
    pub(super) fn held(&self) -> impl Iterator<Item = &Held> {
        self.held.iter()
    }

    /// Returns which files the writable paths are now. Rights and mounts belong to these, not to their names.
    pub fn roots(&self) -> Vec<Option<(u64, u64)>> {
        use std::os::unix::fs::MetadataExt;
        let identity = |path: &PathBuf| fs::symlink_metadata(path).ok().map(|root| (root.dev(), root.ino()));
        self.writable.iter().map(identity).collect()
    }

    /// The plan for another process: entries of a letter and a text, each ended by a zero.
    pub fn to_bytes(&self) -> Vec<u8> {
        let word =
            OwnNetwork::WORDS.iter().find(|(network, _)| *network == self.network).map_or("none", |(_, word)| word);
        let entries = self.writable.iter().map(|path| (b'w', path.as_os_str()));
        let held = self.held.iter().map(|held| (if held.is_read_only { b'r' } else { b'h' }, held.path.as_os_str()));
        let masked = self.masked.iter().map(|path| (b'm', path.as_os_str()));
        let entries = entries.chain(held).chain(masked).chain([(b'n', OsStr::new(word))]);
        let encode = |(letter, text): (u8, &OsStr)| [&[letter], text.as_bytes(), &[0]].concat();
        entries.flat_map(encode).collect()
    }

    /// Reads what [`Plan::to_bytes`] has written; `None` if it has not.
    pub fn from_bytes(bytes: &[u8]) -> Option<Plan> {
        let (mut writable, mut held, mut masked, mut network) = (Vec::new(), Vec::new(), Vec::new(), None);
        for entry in bytes.strip_suffix(&[0])?.split(|byte| *byte == 0) {
            let (letter, text) = entry.split_first()?;
            let path = PathBuf::from(OsStr::from_bytes(text));
            match letter {
                b'w' => writable.push(path),
                b'h' => held.push(Held { path, is_read_only: false }),
                b'r' => held.push(Held { path, is_read_only: true }),
                b'm' => masked.push(path),
                b'n' => network = OwnNetwork::WORDS.iter().find(|(_, word)| word.as_bytes() == text).map(|(it, _)| *it),
                _ => return None,
            }
        }
        Some(Plan { writable, held, masked, network: network? })
    }
}

/// What has to be held so that a path stays: itself, and each directory between it and the root it lies below. `None`
/// for a path that cannot be written anyway.
fn steps_to(path: &Path, writable: &[PathBuf]) -> Option<Vec<Held>> {
    let root = writable.iter().find(|root| path.starts_with(root))?;
    let between = path.ancestors().skip(1).take_while(|above| above != root);
    let above = between.map(|above| Held { path: above.to_owned(), is_read_only: false });
    Some(above.chain([Held { path: path.to_owned(), is_read_only: true }]).collect())
}

/// Puts directories before what is in them, each once.
fn in_order(held: impl Iterator<Item = Held>) -> Vec<Held> {
    let mut held: Vec<Held> = held.collect();
    held.sort_by(|a, b| a.path.cmp(&b.path).then(b.is_read_only.cmp(&a.is_read_only)));
    held.dedup_by(|later, first| later.path == first.path);
    // What lies below something that is read-only needs nothing more.
    let read_only: Vec<PathBuf> = held.iter().filter(|held| held.is_read_only).map(|held| held.path.clone()).collect();
    held.retain(|held| !read_only.iter().any(|above| held.path != *above && held.path.starts_with(above)));
    held
}

/// Finds the first link on the way from the root that a path lies below.
fn link_in(path: &Path, writable: &[PathBuf]) -> Option<PathBuf> {
    let root = writable.iter().find(|root| path.starts_with(root))?;
    let is_link = |path: &&Path| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    path.ancestors().take_while(|above| above != root).filter(is_link).last().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domains::Domains;
    use crate::settings::Profile;
    use std::os::unix::fs::symlink;

    fn policy(root: &Path) -> Policy {
        Policy {
            profile: Profile::WorkspaceWrite,
            writable: vec![root.join("work"), root.join("temp")],
            unreadable: Vec::new(),
            protected: [".git/hooks", ".git/config", ".pi", "linked/x"].map(|name| root.join("work").join(name)).into(),
            names: Default::default(),
            allows_git_config: false,
            home: None,
            network: NetworkRule { mode: NetworkMode::Off, unix: false, local: false },
            domains: Domains::default(),
            namespaces: true,
        }
    }

    #[test]
    fn directories_above_are_held_before_what_is_in_them() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("work/real")).unwrap();
        symlink("real", root.join("work/linked")).unwrap();
        let plan = Plan::of(&policy(&root), None);
        let held: Vec<(String, bool)> = plan
            .held()
            .map(|held| (held.path.strip_prefix(root.join("work")).unwrap().display().to_string(), held.is_read_only))
            .collect();
        let expected = [(".git", false), (".git/config", true), (".git/hooks", true), (".pi", true)];
        assert_eq!(held, expected.map(|(path, is_read_only)| (path.to_owned(), is_read_only)));
        assert_eq!(Plan::not_held(&policy(&root)), [root.join("work/linked/x")]);
    }

    #[test]
    fn a_plan_arrives_as_it_was_sent() {
        let mut plan = Plan::of(&policy(Path::new("/nowhere")), None);
        plan.masked.push(PathBuf::from(OsStr::from_bytes(b"/odd\xFF\nname")));
        let bytes = plan.to_bytes();
        assert_eq!(Plan::from_bytes(&bytes), Some(plan));
        for broken in [&bytes[..bytes.len() - 1], b"x/a\0", b"w/a\0", b""] {
            assert_eq!(Plan::from_bytes(broken), None);
        }
    }
}
