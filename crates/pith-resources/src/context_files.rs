//! Context files with instructions: `AGENTS.md` and the like in the agent
//! directory and in every directory from the root down to the working directory.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pith_config::Diagnostic;

use crate::followed::Followed;
use crate::notes::Notes;
use crate::text::{self, Text};

/// In one directory the first of these is taken.
const NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];
/// What one file may contribute to the prompt.
const FILE_LIMIT: usize = 128 * 1024;
/// What all of them may contribute together.
const TOTAL_LIMIT: usize = 512 * 1024;

/// One file of instructions for the system prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFile {
    pub path: PathBuf,
    /// The text, cut with a visible mark if it was too long.
    pub content: String,
}

/// A file as found, before the limit on all of them is applied.
struct Found {
    path: PathBuf,
    text: Text,
    /// Size of the whole file.
    n_bytes: u64,
}

/// Finds the files that apply to `cwd`, outermost first, after the user's own.
pub(crate) fn load(agent_dir: &Path, cwd: &Path, notes: &mut Notes) -> Vec<ContextFile> {
    let mut directories: Vec<&Path> = cwd.ancestors().chain([agent_dir]).collect();
    directories.reverse();
    let mut seen = HashSet::new();
    let mut found: Vec<Found> = Vec::new();
    for directory in directories {
        if let Some(file) = first_in(directory, notes) {
            let real = fs::canonicalize(&file.path).unwrap_or_else(|_| file.path.clone());
            if seen.insert(real) {
                found.push(file);
            }
        }
    }
    if let Some(worktree) = Worktree::around(cwd) {
        worktree.hide_main_file(&mut found);
    }
    bounded(found, notes)
}

/// Returns the first file of a directory that can be read.
fn first_in(directory: &Path, notes: &mut Notes) -> Option<Found> {
    for name in NAMES {
        let path = directory.join(name);
        let metadata = match notes.look(&path) {
            Ok(metadata) if metadata.is_file() => metadata,
            // A directory or a pipe of that name is not an instruction.
            Ok(_) => continue,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => continue,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // The directory cannot be entered; the other names would fail the same way.
                let message = format!("cannot look for context files: {error}");
                notes.diagnostics.push(Diagnostic::warning("context_unreadable", directory, message));
                return None;
            }
            Err(error) => {
                notes.diagnostics.push(unreadable(&path, &error));
                continue;
            }
        };
        match text::read(&path, FILE_LIMIT, &notes.followed) {
            Ok(text) => return Some(Found { path, text, n_bytes: metadata.len() }),
            Err(error) => notes.diagnostics.push(unreadable(&path, &error)),
        }
    }
    None
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::warning("context_unreadable", path, format!("cannot read context file: {error}"))
}

/// Applies the limit on all files. The innermost ones are cut last: they know the work best.
fn bounded(found: Vec<Found>, notes: &mut Notes) -> Vec<ContextFile> {
    let mut left = TOTAL_LIMIT;
    let mut files: Vec<ContextFile> = found
        .into_iter()
        .rev()
        .map(|mut file| {
            let is_cut = file.text.is_cut || file.text.text.len() > left;
            text::cut(&mut file.text.text, left);
            let n_shown = file.text.text.len();
            left -= n_shown;
            if !file.text.is_utf8 {
                let message = "not UTF-8 text; the bytes in question were replaced";
                notes.diagnostics.push(Diagnostic::warning("context_not_utf8", &file.path, message));
            }
            let mut content = file.text.text;
            if is_cut {
                let n_bytes = file.n_bytes;
                content
                    .push_str(&format!("\n[cut: only the first {n_shown} of {n_bytes} bytes of this file are shown]"));
                let message = format!("context file is too long: only the first {n_shown} of {n_bytes} bytes are used");
                notes.diagnostics.push(Diagnostic::warning("context_cut", &file.path, message));
            }
            ContextFile { path: file.path, content }
        })
        .collect();
    files.reverse();
    files
}

/// A linked git worktree that lies inside its main checkout.
struct Worktree {
    root: PathBuf,
    main: PathBuf,
}

impl Worktree {
    /// Finds the worktree that `cwd` is in. Submodules and worktrees outside of the main checkout do not count.
    fn around(cwd: &Path) -> Option<Worktree> {
        let root = cwd.ancestors().find(|directory| directory.join(".git").exists())?;
        // In a worktree `.git` is a file that names `<main>/.git/worktrees/<name>`.
        let pointer = text::read(&root.join(".git"), 4096, &Followed::default()).ok()?;
        let git_dir = root.join(pointer.text.strip_prefix("gitdir:")?.trim());
        let git_dir = fs::canonicalize(&git_dir).ok()?;
        let worktrees = git_dir.parent().filter(|parent| parent.ends_with("worktrees"))?;
        let main = worktrees.parent().filter(|git| git.ends_with(".git"))?.parent()?;
        let real_root = fs::canonicalize(root).ok()?;
        let is_nested = real_root != main && real_root.starts_with(main);
        is_nested.then(|| Worktree { root: root.to_path_buf(), main: main.to_path_buf() })
    }

    /// Drops the main checkout's file where the worktree has a version of its own.
    fn hide_main_file(&self, found: &mut Vec<Found>) {
        let own = found.iter().find(|file| file.path.parent() == Some(&self.root));
        let Some(name) = own.and_then(|file| file.path.file_name()).map(ToOwned::to_owned) else { return };
        found.retain(|file| {
            let is_same_name = file.path.file_name() == Some(&name);
            let directory = file.path.parent().unwrap_or(&file.path);
            let is_main = || fs::canonicalize(directory).is_ok_and(|directory| directory == self.main);
            !(is_same_name && is_main())
        });
    }
}
