//! What the user has allowed in a project for good: `pith-permissions.json` in the agent directory, never in the
//! project, which the model can write.

use std::io;
use std::path::{Path, PathBuf};

use pith_config::locked_file;
use serde_json::{Value, json};

/// The file with the grants of all projects.
#[derive(Clone, Debug)]
pub struct GrantFile {
    path: PathBuf,
}

impl GrantFile {
    /// Names the file of an agent directory. It need not exist.
    pub fn in_agent_dir(agent_dir: &Path) -> GrantFile {
        GrantFile { path: agent_dir.join("pith-permissions.json") }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the rules that allow something in a directory.
    pub fn of(&self, cwd: &Path) -> Result<Vec<String>, String> {
        let document = locked_file::read(&self.path)?.unwrap_or_default();
        let Some(granted) = document.get(key(cwd)) else { return Ok(Vec::new()) };
        let rules = granted.get("allow").and_then(Value::as_array);
        let rules = rules.map(|rules| rules.iter().map(|rule| rule.as_str().map(str::to_owned)).collect());
        rules.flatten().ok_or_else(|| format!("{}: expected {{\"allow\": [rules]}}", cwd.display()))
    }

    /// Allows something in a directory; what is there stays.
    pub fn add(&self, cwd: &Path, rules: &[String]) -> io::Result<()> {
        self.update(cwd, |allowed| {
            let new = rules.iter().filter(|rule| !allowed.contains(rule)).cloned().collect::<Vec<_>>();
            allowed.extend(new);
        })
    }

    /// Takes back what was allowed in a directory.
    pub fn forget(&self, cwd: &Path, rules: &[String]) -> io::Result<()> {
        self.update(cwd, |allowed| allowed.retain(|rule| !rules.contains(rule)))
    }

    fn update(&self, cwd: &Path, change: impl FnOnce(&mut Vec<String>)) -> io::Result<()> {
        let mut allowed = self.of(cwd).map_err(io::Error::other)?;
        locked_file::update(&self.path, |document| {
            // Another process may have written since.
            if let Some(rules) = document.get(&key(cwd)).and_then(|granted| granted["allow"].as_array()) {
                allowed = rules.iter().filter_map(|rule| rule.as_str().map(str::to_owned)).collect();
            }
            change(&mut allowed);
            if allowed.is_empty() {
                document.shift_remove(&key(cwd));
            } else {
                document.insert(key(cwd), json!({ "allow": allowed }));
            }
        })
    }
}

fn key(cwd: &Path) -> String {
    cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_kept_by_directory() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = GrantFile::in_agent_dir(directory.path());
        let (one, other) = (directory.path().join("one"), directory.path().join("other"));
        let rules = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(file.of(&one), Ok(Vec::new()));
        file.add(&one, &rules(&["bash(git push:*)"])).expect("add");
        file.add(&one, &rules(&["bash(git push:*)", "edit"])).expect("add");
        file.add(&other, &rules(&["read"])).expect("add");
        assert_eq!(file.of(&one), Ok(rules(&["bash(git push:*)", "edit"])));
        file.forget(&one, &rules(&["bash(git push:*)", "edit"])).expect("forget");
        assert_eq!((file.of(&one), file.of(&other)), (Ok(Vec::new()), Ok(rules(&["read"]))));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(file.path()).expect("metadata").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
