//! The lines below the editor: where the session works, with which model, and what it has used.

use std::path::{Path, PathBuf};

use pith_protocol::permissions::PermissionMode;
use serde_json::Value;

use crate::modes::chat::text::Row;
use crate::modes::chat::theme;
use crate::modes::screen::count;

/// What the footer shows.
#[derive(Debug, Default)]
pub struct Footer {
    cwd: PathBuf,
    directory: String,
    branch: Option<String>,
    pub model: Option<String>,
    pub level: String,
    /// Mode of approvals and profile of the sandbox, where they are not the default.
    mode: Option<String>,
    sandbox: Option<String>,
    name: Option<String>,
    session_id: Option<String>,
    is_saved: bool,
    n_messages: u64,
    percent: Option<f64>,
    input: u64,
    output: u64,
    cost: f64,
}

impl Footer {
    pub fn new(cwd: &Path, home: &Path) -> Self {
        let directory = match cwd.strip_prefix(home) {
            Ok(inside) if inside.as_os_str().is_empty() => "~".to_owned(),
            Ok(inside) => format!("~/{}", inside.display()),
            Err(_) => cwd.display().to_string(),
        };
        Footer { cwd: cwd.to_owned(), directory, branch: branch(cwd), ..Footer::default() }
    }

    /// Takes the answer of `get_state`.
    pub fn set_state(&mut self, state: &Value) {
        let text = |key: &str| state[key].as_str().map(str::to_owned);
        let model = &state["model"];
        self.model = model["id"].as_str().map(|id| format!("{}/{id}", model["provider"].as_str().unwrap_or_default()));
        self.level = text("thinkingLevel").unwrap_or_default();
        let profile = state["sandbox"]["profile"].as_str().filter(|profile| *profile != "off");
        self.sandbox = profile.map(|profile| format!("sandbox {profile}"));
        self.name = text("sessionName");
        self.session_id = text("sessionId");
        self.is_saved = state["sessionFile"].is_string();
        self.n_messages = state["messageCount"].as_u64().unwrap_or(0);
        self.branch = branch(&self.cwd);
    }

    /// Takes the answer of `get_permissions`.
    pub fn set_permissions(&mut self, permissions: &Value) {
        let mode = permissions["mode"].as_str().filter(|mode| *mode != PermissionMode::default().as_str());
        self.mode = mode.map(str::to_owned);
    }

    /// Takes the answer of `get_session_stats`.
    pub fn set_stats(&mut self, stats: &Value) {
        let number = |path: &str| stats.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        self.percent = stats.pointer("/contextUsage/percent").and_then(Value::as_f64);
        self.input = number("/tokens/input") + number("/tokens/cacheRead") + number("/tokens/cacheWrite");
        self.output = number("/tokens/output");
        self.cost = stats["cost"].as_f64().unwrap_or(0.0);
        self.n_messages = number("/totalMessages");
    }

    /// The id of the session.
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// The rows, cut to the width; what matters least is left out first.
    pub fn rows<'a>(&self, width: usize, queued: usize, statuses: impl Iterator<Item = &'a str>) -> Vec<Row> {
        let place = match &self.branch {
            Some(branch) => format!("{} ({branch})", self.directory),
            None => self.directory.clone(),
        };
        // Until the session has said which model it has, there is nothing to say about it.
        let known = self.session_id.as_ref();
        let mut used: Vec<String> = known
            .map(|_| self.model.clone().unwrap_or_else(|| "no model: /model, or set an API key".to_owned()))
            .into_iter()
            .collect();
        used.extend(self.mode.clone().filter(|_| known.is_some()));
        used.extend(self.sandbox.clone());
        if self.model.is_some() && !self.level.is_empty() {
            used.push(self.level.clone());
        }
        used.extend(self.percent.map(|percent| format!("{percent:.0}% of context")));
        used.extend((queued > 0).then(|| format!("{queued} queued")));
        used.extend(
            (self.input + self.output > 0).then(|| format!("{} in {} out", count(self.input), count(self.output))),
        );
        used.extend((self.cost > 0.0).then(|| format!("${:.4}", self.cost)));
        let place: Vec<String> = std::iter::once(place).chain(self.name.clone()).collect();
        let statuses: Vec<String> = statuses.map(str::to_owned).collect();
        [place, used, statuses].iter().filter(|parts| !parts.is_empty()).map(|parts| fitted(parts, width)).collect()
    }

    /// How to go on with the session, and what it has cost; `None` if nothing was said in it.
    pub fn farewell(&self) -> Option<String> {
        if self.n_messages == 0 {
            return None;
        }
        let tokens = format!("{} in, {} out", count(self.input), count(self.output));
        let cost = if self.cost > 0.0 { format!(" · ${:.4}", self.cost) } else { String::new() };
        let resume = self.session_id.as_ref().filter(|_| self.is_saved);
        let resume = resume.map_or_else(String::new, |id| format!("pith --session {id}   goes on with this session\n"));
        Some(format!("{resume}{tokens}{cost}"))
    }
}

/// Joins as many parts as fit.
fn fitted(parts: &[String], width: usize) -> Row {
    let joined = |n_parts: usize| Row::new(&parts[..n_parts].join(" · "), theme::dim());
    let fitting = (1..=parts.len()).rev().map(joined).find(|row| row.width() <= width);
    fitting.unwrap_or_else(|| joined(1).cut(width))
}

/// The branch that is checked out in a directory, or the short name of its commit.
fn branch(cwd: &Path) -> Option<String> {
    let (directory, found) =
        cwd.ancestors().find_map(|directory| Some((directory, std::fs::metadata(directory.join(".git")).ok()?)))?;
    let git = directory.join(".git");
    // A worktree has a file that says where its directory is.
    let git = if found.is_dir() {
        git
    } else {
        let text = std::fs::read_to_string(&git).ok()?;
        directory.join(text.strip_prefix("gitdir:")?.trim())
    };
    let head = std::fs::read_to_string(git.join("HEAD")).ok()?;
    let head = head.trim();
    Some(head.strip_prefix("ref: refs/heads/").map_or_else(|| head.chars().take(7).collect(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut footer = Footer::new(Path::new("/home/me/work"), Path::new("/home/me"));
        footer.set_state(&json!({"model": {"provider": "p", "id": "m"}, "thinkingLevel": "low", "messageCount": 2,
            "sessionId": "abc", "sessionFile": "/x"}));
        footer.set_stats(&json!({"tokens": {"input": 1200, "output": 30}, "cost": 0.5, "totalMessages": 2,
            "contextUsage": {"percent": 12.4}}));
        let rows = |width| footer.rows(width, 1, ["busy"].into_iter()).iter().map(Row::text).collect::<Vec<_>>();
        assert_eq!(rows(80), ["~/work", "p/m · low · 12% of context · 1 queued · 1.2k in 30 out · $0.5000", "busy"]);
        assert_eq!(rows(40)[1], "p/m · low · 12% of context · 1 queued");
        let mut held = Footer::new(Path::new("/home/me/work"), Path::new("/home/me"));
        held.set_state(&json!({"model": {"provider": "p", "id": "m"}, "thinkingLevel": "low", "sessionId": "abc",
            "sandbox": {"profile": "workspace-write"}}));
        held.set_permissions(&json!({"mode": "ask"}));
        let held = |width| held.rows(width, 0, std::iter::empty()).get(1).map(Row::text);
        assert_eq!(held(80).as_deref(), Some("p/m · ask · sandbox workspace-write · low"));
        assert_eq!(held(36).as_deref(), Some("p/m · ask · sandbox workspace-write"));
        assert_eq!(rows(3), ["~/…", "p/m", "bu…"]);
        assert_eq!(
            footer.farewell().expect("said"),
            "pith --session abc   goes on with this session\n1.2k in, 30 out · $0.5000"
        );
    }

    #[test]
    fn the_branch_of_a_directory_is_found_above_it() {
        let directory = std::env::temp_dir().join(format!("pith-branch-{}", std::process::id()));
        std::fs::create_dir_all(directory.join(".git")).expect("created");
        std::fs::create_dir_all(directory.join("a/b")).expect("created");
        std::fs::write(directory.join(".git/HEAD"), "ref: refs/heads/feature/x\n").expect("written");
        assert_eq!(branch(&directory.join("a/b")).as_deref(), Some("feature/x"));
        std::fs::write(directory.join(".git/HEAD"), "0123456789abcdef\n").expect("written");
        assert_eq!(branch(&directory).as_deref(), Some("0123456"));
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
