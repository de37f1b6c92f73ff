//! Where a path leads, links included.

use std::path::{Component, Path, PathBuf};

use pith_sandbox::names::is_named;

/// How many links that lead nowhere are followed; the kernel gives up at as many.
const MAX_LINKS: usize = 40;

/// Returns the path with its links resolved, those that lead to nothing yet included.
pub fn real(path: &Path) -> PathBuf {
    follow(path, MAX_LINKS)
}

fn follow(path: &Path, n_links: usize) -> PathBuf {
    for existing in path.ancestors() {
        let rest = path.strip_prefix(existing).expect("ancestors are prefixes");
        if let Ok(resolved) = existing.canonicalize() {
            return if rest.as_os_str().is_empty() { resolved } else { normalise(&resolved.join(rest)) };
        }
        if let Ok(target) = existing.read_link() {
            let from = existing.parent().unwrap_or(Path::new("/"));
            let target = from.join(target).join(rest);
            return if n_links == 0 { target } else { follow(&target, n_links - 1) };
        }
    }
    path.to_owned()
}

/// Removes `.` and `..` without reading the disk.
pub fn normalise(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => normal.push(component),
        }
    }
    normal
}

/// Whether a change of this file stays inside the workspace and changes nothing that programs obey.
pub fn is_ordinary_change(path: &Path, workspace: &Path) -> bool {
    let is_inside = |path: &Path, workspace: &Path| {
        path.strip_prefix(workspace).is_ok_and(|below| {
            let is_of_git = below.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
            !is_of_git && !is_named(below)
        })
    };
    is_inside(&normalise(path), workspace) && is_inside(&real(path), &real(workspace))
}
