//! Which files pith itself reads as instructions and settings for a session: it is not confined, and what it reads goes
//! to the model.

use std::path::{Path, PathBuf};

use crate::reading::Reading;

/// Decides about links: a repository, or an earlier session in it, may have put one there that leads to keys.
#[derive(Clone, Debug)]
pub struct OwnReads {
    reading: Reading,
    /// The project, as it is called and where it is.
    project: Vec<PathBuf>,
    /// The user's own place, in which no session writes.
    agent_dir: PathBuf,
}

impl OwnReads {
    /// `reading` is that of the session's policy.
    pub fn new(reading: &Reading, cwd: &Path, agent_dir: &Path) -> OwnReads {
        let repository = cwd.ancestors().find(|directory| directory.join(".git").exists());
        let called = [Some(cwd), repository].into_iter().flatten().map(Path::to_owned);
        let project = called.flat_map(|path| [path.canonicalize().ok(), Some(path)]).flatten().collect();
        OwnReads { reading: reading.clone(), project, agent_dir: agent_dir.to_owned() }
    }

    /// Decides about a file that was opened as `path` and is `real`. The error says why it is not read.
    pub fn admit(&self, path: &Path, real: &Path) -> Result<(), String> {
        if path.starts_with(&self.agent_dir) {
            return Ok(());
        }
        let is_in_project = |path: &Path| self.project.iter().any(|root| path.starts_with(root));
        if is_in_project(path) && !is_in_project(real) {
            return Err(format!("in a sandbox links are not followed out of the project, to {}", real.display()));
        }
        // A place that is closed itself was named by the user.
        let directory = path.parent().and_then(|directory| directory.canonicalize().ok());
        let place = directory.and_then(|directory| Some(directory.join(path.file_name()?)));
        if !self.reading.is_open(real) && place.is_none_or(|place| self.reading.is_open(&place)) {
            return Err(format!("in a sandbox links are not followed to what is closed, {}", real.display()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Said;

    #[test]
    fn links_of_a_project_stay_in_it_and_none_leads_to_keys() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["repository/.git", "repository/sub", "agent", ".keys", "notes"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        let reading = Reading::new(Said { homes: vec![root.clone()], ..Said::default() });
        let reads = OwnReads::new(&reading, &root.join("repository/sub"), &root.join("agent"));
        let check = |path: &str, real: &str, is_read: bool| {
            assert_eq!(reads.admit(&root.join(path), &root.join(real)).is_ok(), is_read, "{path} -> {real}");
        };
        check("repository/sub/AGENTS.md", "repository/sub/AGENTS.md", true);
        check("repository/sub/AGENTS.md", "repository/docs/AGENTS.md", true);
        check("repository/AGENTS.md", "notes/AGENTS.md", false);
        check("repository/sub/.pi/SYSTEM.md", ".keys/id", false);
        check("AGENTS.md", "notes/AGENTS.md", true);
        check("AGENTS.md", ".keys/id", false);
        check("agent/AGENTS.md", ".keys/AGENTS.md", true);
        check(".keys/prompt.md", ".keys/prompt.md", true);
    }
}
