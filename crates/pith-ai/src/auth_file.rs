//! `auth.json`: credentials the user stored, possibly with another agent.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pith_config::{FileLock, document, locked_file};
use serde_json::{Map, Value};

use crate::catalogue::current_id;
use crate::config_value::CredentialEnv;

/// A stored credential. It owns its provider: no other source is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// A key in any of the value forms, and variables that come with it.
    ApiKey { key: Option<String>, env: CredentialEnv },
    /// A token of a login, good until `expires`.
    Token { access: String, expires: SystemTime },
    /// An entry that cannot be understood, with the reason.
    Unreadable(String),
}

/// Stored credentials by provider.
pub type Entries = BTreeMap<String, Stored>;

/// The file, re-read whenever it changed.
#[derive(Debug)]
pub struct AuthFile {
    file: PathBuf,
    /// What settings of old releases held; used while there is no file.
    legacy_keys: BTreeMap<String, String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    stamp: Option<Stamp>,
    entries: Arc<Entries>,
    /// Why the newest text was not used.
    problem: Option<String>,
}

/// Identity and change marks of a file.
type Stamp = (u64, u64, u64, i128, i128);

impl AuthFile {
    /// Names the file. Reads nothing yet.
    pub fn new(file: impl Into<PathBuf>, legacy_keys: BTreeMap<String, String>) -> AuthFile {
        AuthFile { file: file.into(), legacy_keys, state: Mutex::default() }
    }

    /// Returns the current credentials. A file that does not parse leaves the last good ones.
    pub fn entries(&self) -> Arc<Entries> {
        let stamp = stamp(&self.file);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if stamp.is_none() {
            *state = State { entries: Arc::new(self.legacy()), ..State::default() };
        } else if state.stamp != stamp {
            match self.read() {
                Ok(entries) => *state = State { stamp, entries: Arc::new(entries), problem: None },
                Err(reason) => {
                    state.problem = Some(format!("Invalid credentials file {}: {reason}", self.file.display()));
                    state.stamp = stamp;
                }
            }
        }
        state.entries.clone()
    }

    /// Returns what is wrong with the file at the moment, if anything.
    pub fn problem(&self) -> Option<String> {
        self.entries();
        self.state.lock().unwrap_or_else(PoisonError::into_inner).problem.clone()
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Stores a key for a provider.
    pub fn store_key(&self, provider: &str, key: &str) -> io::Result<()> {
        locked_file::update(&self.file, |object| {
            let entry = object.entry(provider).or_insert_with(|| Value::Object(Map::new()));
            // Variables stored with a key stay; a login does not mix with a key.
            let old = entry.as_object().filter(|old| old.get("type").is_some_and(|kind| kind == "api_key"));
            let mut new = old.cloned().unwrap_or_default();
            new.insert("type".into(), "api_key".into());
            new.insert("key".into(), key.into());
            *entry = Value::Object(new);
        })
    }

    /// Returns everything stored about the login of a provider.
    pub fn login(&self, provider: &str) -> Option<Value> {
        let mut document = locked_file::read(&self.file).ok()??;
        let entry = document.get_mut(provider)?.take();
        (entry.get("type").and_then(Value::as_str) == Some("oauth")).then_some(entry)
    }

    /// Returns the tokens of all logins, those among them that only renew others.
    pub fn tokens(&self) -> Vec<String> {
        let Ok(Some(Value::Object(document))) = locked_file::read(&self.file) else { return Vec::new() };
        let logins = document.values().filter(|entry| entry.get("type").is_some_and(|kind| kind == "oauth"));
        let tokens = logins.flat_map(|login| [login.get("access"), login.get("refresh")]);
        tokens.filter_map(|token| token?.as_str().map(str::to_owned)).collect()
    }

    /// Stores a login for a provider, in place of whatever there was.
    pub fn store_login(&self, lock: &FileLock, provider: &str, credentials: &Value) -> io::Result<()> {
        locked_file::update_locked(lock, &self.file, |object| {
            let mut entry = credentials.as_object().cloned().unwrap_or_default();
            entry.insert("type".into(), "oauth".into());
            object.insert(provider.to_owned(), Value::Object(entry));
        })
    }

    /// Forgets a provider.
    pub fn remove(&self, provider: &str) -> io::Result<()> {
        locked_file::update(&self.file, |object| object.retain(|id, _| current_id(id) != current_id(provider)))
    }

    fn read(&self) -> Result<Entries, String> {
        match locked_file::read(&self.file)? {
            None => Ok(Entries::new()),
            Some(Value::Object(object)) => {
                // An entry under the id of today comes before one under the former id.
                let (current, former): (Vec<_>, Vec<_>) = object.iter().partition(|(id, _)| current_id(id) == *id);
                let entries = former.into_iter().chain(current);
                Ok(entries.map(|(id, entry)| (current_id(id).to_owned(), stored(entry))).collect())
            }
            Some(_) => Err("expected an object".into()),
        }
    }

    /// Returns the credentials that releases without an `auth.json` stored.
    fn legacy(&self) -> Entries {
        let mut entries = Entries::new();
        if let Ok(Some(Value::Object(logins))) = document::read(&self.file.with_file_name("oauth.json")) {
            entries.extend(logins.iter().map(|(id, login)| (id.clone(), token(login))));
        }
        for (id, key) in &self.legacy_keys {
            let entry = Stored::ApiKey { key: Some(key.clone()), env: CredentialEnv::new() };
            entries.entry(id.clone()).or_insert(entry);
        }
        entries
    }
}

fn stored(entry: &Value) -> Stored {
    match entry.get("type").and_then(Value::as_str) {
        Some("api_key") => api_key(entry),
        Some("oauth") => token(entry),
        Some(other) => Stored::Unreadable(format!("unknown type \"{other}\"")),
        None => Stored::Unreadable("missing \"type\"".into()),
    }
}

fn api_key(entry: &Value) -> Stored {
    let key = match entry.get("key") {
        None | Some(Value::Null) => None,
        Some(Value::String(key)) => Some(key.clone()).filter(|key| !key.is_empty()),
        Some(_) => return Stored::Unreadable("\"key\" is not a string".into()),
    };
    let mut env = CredentialEnv::new();
    if let Some(Value::Object(variables)) = entry.get("env") {
        for (name, value) in variables {
            match value {
                Value::String(value) => drop(env.insert(name.clone(), value.clone())),
                _ => return Stored::Unreadable(format!("\"env.{name}\" is not a string")),
            }
        }
    }
    Stored::ApiKey { key, env }
}

fn token(entry: &Value) -> Stored {
    let access = entry.get("access").and_then(Value::as_str).filter(|access| !access.is_empty());
    let expires = entry.get("expires").and_then(Value::as_f64).filter(|millis| (0.0..1e16).contains(millis));
    match (access, expires) {
        (Some(access), Some(millis)) => {
            Stored::Token { access: access.to_owned(), expires: UNIX_EPOCH + Duration::from_millis(millis as u64) }
        }
        (None, _) => Stored::Unreadable("missing \"access\"".into()),
        (_, None) => Stored::Unreadable("missing \"expires\"".into()),
    }
}

#[cfg(unix)]
fn stamp(file: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(file).ok()?;
    let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let modified = nanos(metadata.mtime(), metadata.mtime_nsec());
    Some((metadata.dev(), metadata.ino(), metadata.len(), modified, nanos(metadata.ctime(), metadata.ctime_nsec())))
}

#[cfg(not(unix))]
fn stamp(file: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(file).ok()?;
    let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
    Some((0, 0, metadata.len(), modified as i128, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(key: &str) -> Stored {
        Stored::ApiKey { key: Some(key.into()), env: CredentialEnv::new() }
    }

    #[test]
    fn entries_of_every_kind() {
        let check = |entry: Value, expected: Stored| assert_eq!(stored(&entry), expected, "{entry}");
        let unreadable = |reason: &str| Stored::Unreadable(reason.into());
        check(json!({"type": "api_key", "key": "k"}), key("k"));
        check(
            json!({"type": "api_key", "env": {"A": "1"}}),
            Stored::ApiKey { key: None, env: [("A".to_owned(), "1".to_owned())].into() },
        );
        check(
            json!({"type": "oauth", "access": "a", "refresh": "r", "expires": 1500}),
            Stored::Token { access: "a".into(), expires: UNIX_EPOCH + Duration::from_millis(1500) },
        );
        check(json!({"type": "oauth", "access": "a"}), unreadable("missing \"expires\""));
        check(json!({"type": "oauth", "expires": 1}), unreadable("missing \"access\""));
        check(json!({"type": "api_key", "key": 7}), unreadable("\"key\" is not a string"));
        check(json!({"type": "api_key", "env": {"A": 1}}), unreadable("\"env.A\" is not a string"));
        check(json!({"type": "magic"}), unreadable("unknown type \"magic\""));
        check(json!("k"), unreadable("missing \"type\""));
    }

    #[test]
    fn changes_are_noticed_and_bad_ones_ignored() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("auth.json");
        let auth = AuthFile::new(&file, BTreeMap::new());
        assert!(auth.entries().is_empty());
        fs::write(&file, r#"{"p":{"type":"api_key","key":"one"}}"#).expect("write");
        assert_eq!(auth.entries()["p"], key("one"));
        fs::write(&file, r#"{"p":{"type":"api_key","key":"three"}}"#).expect("write");
        assert_eq!(auth.entries()["p"], key("three"));
        fs::write(&file, "{ half").expect("write");
        assert_eq!(auth.entries()["p"], key("three"), "the last good text stays in force");
        assert!(auth.problem().expect("problem").starts_with("Invalid credentials file /"));
        fs::write(&file, "{}").expect("write");
        assert!(auth.entries().is_empty());
        assert_eq!(auth.problem(), None);
    }

    #[test]
    fn storing_keeps_what_is_not_ours() {
        let directory = tempfile::tempdir().expect("temp dir");
        let file = directory.path().join("agent/auth.json");
        let auth = AuthFile::new(&file, BTreeMap::new());
        auth.store_key("a", "first").expect("store");
        let other = json!({"type": "oauth", "access": "x", "refresh": "y", "expires": 1, "accountId": "kept"});
        locked_file::update(&file, |object| drop(object.insert("b".into(), other.clone()))).expect("update");
        auth.store_key("a", "second").expect("store");
        let document = document::read(&file).expect("parse").expect("file");
        assert_eq!(document, json!({"a": {"type": "api_key", "key": "second"}, "b": other}));
        auth.remove("b").expect("remove");
        assert_eq!(auth.entries().len(), 1);
    }

    #[test]
    fn old_homes_of_credentials_are_read_but_never_moved() {
        let directory = tempfile::tempdir().expect("temp dir");
        let legacy = directory.path().join("oauth.json");
        let text = r#"{"anthropic":{"access":"a","refresh":"r","expires":9000000000000}}"#;
        fs::write(&legacy, text).expect("write");
        let keys = BTreeMap::from([("openai".to_owned(), "sk".to_owned())]);
        let auth = AuthFile::new(directory.path().join("auth.json"), keys);
        assert_eq!(auth.entries()["openai"], key("sk"));
        assert!(matches!(auth.entries()["anthropic"], Stored::Token { .. }));
        assert_eq!(fs::read_to_string(&legacy).expect("read"), text);
        // Once there is an auth.json it alone counts.
        fs::write(directory.path().join("auth.json"), "{}").expect("write");
        assert!(auth.entries().is_empty());
    }
}
