//! Opens the session that the command line selects.

use std::path::{Path, PathBuf};

use pith_config::{AgentDir, Environment};
use pith_session::SessionPlaces;
use pith_store::{
    FoundSession, NewSession, Places, SessionStore, StoreError, find_by_id, find_session, is_session_id, latest,
};

use crate::warn;

/// The flags that select a session.
#[derive(Clone, Debug, Default)]
pub struct SessionFlags {
    /// `--session`
    pub open: Option<String>,
    /// `--create`
    pub may_create_directory: bool,
    /// Whether a host reads the error messages, and chooses the paths.
    pub serves_host: bool,
    /// `--session-id`
    pub id: Option<String>,
    /// `--fork`
    pub fork: Option<String>,
    /// `--continue`
    pub is_latest: bool,
    /// `--resume`; empty without an id.
    pub resume: Option<String>,
    /// `--no-session`
    pub is_unsaved: bool,
}

/// Removes the file that opening a session has made, unless the session comes to be.
#[must_use = "dropped, it removes the file"]
pub struct UnkeptFile(Option<PathBuf>);

impl UnkeptFile {
    /// Called when the session is open.
    pub fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for UnkeptFile {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // What cannot be removed is listed, and can be deleted by its user.
            let _ = pith_store::remove(&path);
        }
    }
}

/// Which session it is.
#[derive(Clone, Debug)]
pub struct SessionName {
    pub id: String,
    /// `None` for a session in memory.
    pub file: Option<String>,
}

/// An error that is the whole line on stderr, because scripts compare it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PlainError(String);

const BAD_ID: &str = "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', \
                      and start and end with an alphanumeric character";
const NO_PICKER: &str = "--resume cannot show a list to choose from here: \
                         use --continue for the newest session of this directory, or --session <path|id>";

impl SessionFlags {
    /// Sets `--session`, which without a value asks for a list to choose from.
    pub fn open_or_choose(&mut self, value: String) {
        if value.is_empty() {
            self.resume = Some(value);
        } else {
            self.open = Some(value);
        }
    }

    /// Refuses flags that contradict each other; `Err` is the text after `Error: `.
    pub fn check(&self) -> Result<(), String> {
        let given = [
            ("--session", self.open.is_some()),
            ("--continue", self.is_latest),
            ("--resume", self.resume.is_some()),
            ("--no-session", self.is_unsaved),
        ];
        let conflicts = |flags: &[(&str, bool)]| {
            let given: Vec<_> = flags.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect();
            (!given.is_empty()).then(|| given.join(", "))
        };
        if let Some(flags) = self.fork.as_ref().and_then(|_| conflicts(&given)) {
            return Err(format!("--fork cannot be combined with {flags}"));
        }
        if let Some(flags) = self.id.as_ref().and_then(|_| conflicts(&given[..3])) {
            return Err(format!("--session-id cannot be combined with {flags}"));
        }
        if self.id.as_ref().is_some_and(|id| !is_session_id(id)) {
            return Err(BAD_ID.to_owned());
        }
        Ok(())
    }

    /// Opens or creates the session. The file of a copy is to be kept when nothing can fail any more.
    pub fn open(
        &self,
        places: &SessionPlaces,
        cwd: &Path,
        environment: &Environment,
    ) -> anyhow::Result<(SessionStore, UnkeptFile)> {
        let store = self.open_store(places, cwd, environment)?;
        // What processes have left that were killed while they wrote a session here, or a page.
        store.path().and_then(Path::parent).into_iter().for_each(pith_store::remove_stale_replacements);
        pith_export::remove_unfinished(store.cwd());
        let copy = UnkeptFile(self.fork.as_ref().and(store.path()).map(Path::to_owned));
        Ok((store, copy))
    }

    fn open_store(
        &self,
        places: &SessionPlaces,
        cwd: &Path,
        environment: &Environment,
    ) -> anyhow::Result<SessionStore> {
        let found = |argument: &str| {
            let places = Places { cwd, session_dir: &places.dir, root: &places.root };
            find_session(&environment.expand(argument).to_string_lossy(), places).map_err(plain)
        };
        let new = |id: Option<String>| NewSession {
            cwd: cwd.to_owned(),
            session_dir: places.dir.clone(),
            id,
            parent_session: None,
        };
        if self.is_unsaved {
            return Ok(SessionStore::in_memory(cwd, self.id.clone()));
        }
        if let Some(source) = &self.fork {
            if let Some(id) = self.id.as_ref().filter(|id| find_by_id(id, &places.dir, cwd).is_some()) {
                return Err(plain(StoreError::IdTaken(id.clone())));
            }
            let (FoundSession::Path(path) | FoundSession::Here(path) | FoundSession::Elsewhere { path, .. }) =
                found(source)?;
            return SessionStore::fork_file(&path, new(self.id.clone())).map_err(plain);
        }
        if let Some(argument) = self.open.as_ref().or(self.resume.as_ref()) {
            anyhow::ensure!(!argument.is_empty() || self.open.is_some(), NO_PICKER);
            return match found(argument)? {
                FoundSession::Path(path) => {
                    self.check_directory(&path)?;
                    SessionStore::resume_or_create(&path, cwd).map_err(|error| self.advised(error))
                }
                FoundSession::Here(path) => SessionStore::resume(&path, cwd).map_err(|error| self.advised(error)),
                FoundSession::Elsewhere { path, cwd } => {
                    let path = path.display();
                    anyhow::bail!(
                        "Session found in different project: {cwd}. Use --fork {path} to copy it, or --session {path}"
                    )
                }
            };
        }
        if self.is_latest
            && let Some(path) = latest(&places.dir, cwd)
        {
            return SessionStore::resume(&path, cwd).map_err(|error| self.advised(error));
        }
        if let Some(id) = &self.id {
            match find_by_id(id, &places.dir, cwd) {
                Some(path) => return SessionStore::resume(&path, cwd).map_err(plain),
                None => warn(&format!(
                    "Warning: No project session found with id '{id}'; creating a new session with that id."
                )),
            }
        }
        Ok(SessionStore::create(new(self.id.clone())))
    }
}

impl SessionFlags {
    /// Refuses a new session in a missing directory, which is usually a typo.
    fn check_directory(&self, path: &Path) -> anyhow::Result<()> {
        if let Some(directory) = path.parent()
            && !(self.may_create_directory || self.serves_host)
            && !directory.is_dir()
        {
            anyhow::bail!(
                "There is no directory {} for the session. Check the path, or add --create to make it",
                directory.display()
            );
        }
        Ok(())
    }

    /// Adds what a user can do to the error. Hosts get the text that they compare.
    fn advised(&self, error: StoreError) -> anyhow::Error {
        match &error {
            _ if self.serves_host => plain(error),
            StoreError::MissingCwd { path, .. } => {
                let text = format!("{error}\nUse --fork {} to go on with a copy of it here.", path.display());
                PlainError(text).into()
            }
            StoreError::InUse { .. } => anyhow::anyhow!(in_use_advice(&error.to_string())),
            _ => plain(error),
        }
    }
}

/// Adds what a user can do to the text about a session in use; returns other texts unchanged.
pub fn in_use_advice(text: &str) -> String {
    if text.starts_with("Session is in use by another process") {
        format!("{text}. Wait until it is done, or use --fork with that path to go on in a copy")
    } else {
        text.to_owned()
    }
}

/// Hosts compare some errors literally, so those get no prefix.
fn plain(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::NoMatch(_) | StoreError::IdTaken(_) | StoreError::MissingCwd { .. } => {
            PlainError(error.to_string()).into()
        }
        other => other.into(),
    }
}

/// Where sessions are stored: a directory given by flag, variable or setting replaces the default ones.
pub fn places(
    given: Option<PathBuf>,
    environment: &Environment,
    setting: Option<&str>,
    agent_dir: &AgentDir,
    cwd: &Path,
) -> SessionPlaces {
    let variable = || environment.get("PITH_SESSION_DIR").or_else(|| environment.get("PI_CODING_AGENT_SESSION_DIR"));
    let configured =
        given.map(|dir| dir.to_string_lossy().into_owned()).or_else(variable).or_else(|| setting.map(str::to_owned));
    match configured {
        Some(dir) => {
            let dir = cwd.join(environment.expand(&dir));
            SessionPlaces { root: dir.clone(), dir }
        }
        None => SessionPlaces {
            dir: pith_store::session_directory(agent_dir.path(), cwd),
            root: pith_store::sessions_root(agent_dir.path()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictions_are_named() {
        let check = |flags: SessionFlags, expected: Result<(), &str>| {
            assert_eq!(flags.check(), expected.map_err(str::to_owned))
        };
        let (some, none) = (Some("x".to_owned()), SessionFlags::default());
        check(none.clone(), Ok(()));
        let fork = SessionFlags { fork: some.clone(), ..none.clone() };
        check(
            SessionFlags { open: some.clone(), is_latest: true, ..fork.clone() },
            Err("--fork cannot be combined with --session, --continue"),
        );
        check(SessionFlags { is_unsaved: true, ..fork.clone() }, Err("--fork cannot be combined with --no-session"));
        check(SessionFlags { id: some.clone(), ..fork }, Ok(()));
        let id = SessionFlags { id: some, ..none };
        check(
            SessionFlags { resume: Some(String::new()), ..id.clone() },
            Err("--session-id cannot be combined with --resume"),
        );
        check(SessionFlags { is_unsaved: true, ..id.clone() }, Ok(()));
        check(SessionFlags { id: Some("-x".into()), ..id }, Err(BAD_ID));
    }
}
