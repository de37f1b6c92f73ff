//! Where a session with a sandbox may have its directory.

use std::path::{Path, PathBuf};

use crate::policy::Places;
use crate::settings::{Require, SandboxSettings};

const SHARED_MEMORY: &str = "/dev/shm";

/// Refuses a session's directory that cannot be held to a policy. The error says what to do.
pub fn check(
    settings: &SandboxSettings,
    places: &Places,
    writable: &[PathBuf],
    has_namespaces: bool,
) -> Result<(), String> {
    let profile = settings.profile();
    let cwd = real(&places.cwd);
    let is_writable = writable.iter().any(|root| cwd.starts_with(root));
    let home = places.home.as_deref().map(real);
    let is_home = home.is_some_and(|home| home.starts_with(&cwd));
    let is_best_effort = settings.require == Some(Require::BestEffort);
    if is_home && is_writable && !has_namespaces && !is_best_effort {
        return Err(format!(
            "sandbox \"{profile}\" cannot be enforced in {}, which is or holds your home directory: without namespaces \
             files that start programs there can be replaced for a moment. Start pith in a directory below it, let it \
             use namespaces, or use the profile \"read-only\"",
            places.cwd.display()
        ));
    }
    if cwd.starts_with(SHARED_MEMORY) && !is_writable {
        return Err(format!(
            "sandbox \"{profile}\" cannot be had in {SHARED_MEMORY}, which commands and file tools do not see. \
             Use the profile \"workspace-write\", or another directory"
        ));
    }
    Ok(())
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn homes_need_namespaces_and_shared_memory_needs_rights() {
        let check = |cwd: &str, settings: serde_json::Value, has_namespaces: bool, expected: Option<&str>| {
            let settings = SandboxSettings::read(&settings).expect("settings");
            let path = |path: &str| PathBuf::from(path);
            let (temp, home) = (path("/nowhere/t"), Some(path("/nowhere/home/u")));
            let places = Places { cwd: path(cwd), home, agent_dir: path("/nowhere/home/u/.pi"), temp };
            let writable = if settings.profile().as_str() == "workspace-write" { vec![path(cwd)] } else { Vec::new() };
            let found = super::check(&settings, &places, &writable, has_namespaces);
            match expected {
                None => assert_eq!(found, Ok(()), "{cwd}"),
                Some(expected) => assert!(found.is_err_and(|error| error.contains(expected)), "{cwd}"),
            }
        };
        let write = || json!({"profile": "workspace-write"});
        let home = Some("which is or holds your home directory: without namespaces");
        check("/nowhere/home/u", write(), false, home);
        check("/nowhere", write(), false, home);
        check("/", write(), false, home);
        check("/nowhere/home/u", write(), true, None);
        check("/nowhere/home/u/work", write(), false, None);
        check("/nowhere/home/u", json!({"profile": "read-only"}), false, None);
        check("/nowhere/home/u", json!({"profile": "workspace-write", "require": "best-effort"}), false, None);
        let memory = Some("cannot be had in /dev/shm, which commands and file tools do not see");
        check("/dev/shm/work", json!({"profile": "read-only"}), true, memory);
        check("/dev/shm/work", json!({"profile": "read-only"}), false, memory);
        check("/dev/shm/work", write(), true, None);
    }
}
