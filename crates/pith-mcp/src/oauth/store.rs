//! `mcp-auth.json`: sign-ins of servers, shared with pi. What is not understood here stays as it is.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pith_agent::blocking;
use pith_config::{FileLock, locked_file, make_private};
use pith_secrets::Secrets;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, interval, sleep};
use url::Url;

use super::discovery::Discovery;
use crate::digest;

/// How long another process may take to renew a token, and how often it is looked for.
const REFRESH_WAIT: Duration = Duration::from_secs(25);
const REFRESH_PAUSE: Duration = Duration::from_millis(100);
/// A process that has not refreshed its lock for so long has died; pi says the same.
const LOCK_STALE: Duration = Duration::from_secs(20);
/// How long other processes may keep the file locked; they do so while they write it.
const SAVE_WAIT: Duration = Duration::from_secs(10);
/// How often a lock is refreshed while it is held.
const LOCK_REFRESH: Duration = Duration::from_secs(5);

/// The member of an entry for what its tokens are not good for; pi leaves it as it is.
const MISSING_SCOPE: &str = "missingScope";

/// Where the sign-in of one server is kept.
#[derive(Clone, Debug)]
pub struct Store {
    file: PathBuf,
    key: String,
    /// The address as pi writes it: the key of older files, and what pi compares an entry with before it believes it.
    address: String,
}

/// The sign-in of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredSignIn(Map<String, Value>);

impl StoredSignIn {
    fn token_text(&self, name: &str) -> Option<&str> {
        self.0.get("tokens")?.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    pub fn access_token(&self) -> Option<&str> {
        self.token_text("access_token")
    }

    pub fn refresh_token(&self) -> Option<&str> {
        self.token_text("refresh_token")
    }

    /// Lets no text show its tokens and the secret of its client.
    pub fn hide_in(&self, secrets: &Secrets) {
        let secret = self.client().and_then(|client| client.get("client_secret")).and_then(Value::as_str);
        [self.access_token(), self.refresh_token(), secret]
            .into_iter()
            .flatten()
            .for_each(|text| secrets.remember(text));
    }

    /// The client that the authorization server knows.
    pub fn client(&self) -> Option<&Value> {
        self.0.get("clientInformation").filter(|client| client.get("client_id").is_some_and(Value::is_string))
    }

    pub fn set_client(&mut self, client: Value) {
        self.0.insert("clientInformation".to_owned(), client);
    }

    /// Where the sign-in was made, if that is known.
    pub fn discovery(&self) -> Option<Discovery> {
        serde_json::from_value(self.0.get("discovery")?.clone()).ok()
    }

    pub fn set_discovery(&mut self, discovery: &Discovery) {
        self.0.insert("discovery".to_owned(), json!(discovery));
    }

    /// Begins a new sign-in. Another authorization server than that of the last one does not know its client.
    pub fn begin(&mut self, discovery: &Discovery) {
        if !self.discovery().is_some_and(|last| last.is_same_server(discovery)) {
            self.0.shift_remove("clientInformation");
            self.0.shift_remove(MISSING_SCOPE);
        }
        self.set_discovery(discovery);
    }

    /// Takes the tokens of a new sign-in. Nothing of the last one stays, which may have been that of another user.
    pub fn replace_tokens(&mut self, answer: Map<String, Value>) {
        self.0.shift_remove("tokens");
        self.0.shift_remove(MISSING_SCOPE);
        self.take_tokens(answer);
    }

    /// What the tokens are good for.
    pub fn granted_scope(&self) -> Option<&str> {
        self.token_text("scope")
    }

    /// What they would have to be good for as well, as the server has said since the sign-in.
    pub fn missing_scope(&self) -> Option<&str> {
        self.0.get(MISSING_SCOPE)?.as_str()
    }

    /// Whether the access token ends within this time.
    pub fn ends_within(&self, margin: Duration) -> bool {
        let end = self.0.get("tokensExpireAt").and_then(Value::as_f64);
        end.is_some_and(|end| end <= now() + margin.as_secs_f64() * 1000.0)
    }

    /// Takes the answer to a renewal. A refresh token that is not replaced stays, and what the tokens are good for.
    pub fn take_tokens(&mut self, mut answer: Map<String, Value>) {
        for name in ["refresh_token", "scope"] {
            if let Some(known) = self.token_text(name).map(str::to_owned) {
                answer.entry(name).or_insert_with(|| json!(known));
            }
        }
        match answer.get("expires_in").and_then(Value::as_f64) {
            Some(seconds) => {
                drop(self.0.insert("tokensExpireAt".to_owned(), json!((now() + seconds * 1000.0).round())))
            }
            None => drop(self.0.shift_remove("tokensExpireAt")),
        }
        self.0.insert("tokens".to_owned(), Value::Object(answer));
    }
}

/// Milliseconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() * 1000.0)
}

impl Store {
    /// The place of a server's sign-in in the file of an agent directory.
    pub fn of(file: &Path, server: &str, url: &Url) -> Self {
        let namespace = server.replace('-', "_");
        Store { file: file.to_owned(), key: format!("mcp__{namespace}|{url}"), address: url.to_string() }
    }

    /// Returns what names the sign-in in the file.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the sign-in, if there is one. The first server that asks for an entry of an older file takes it over, so
    /// that no two servers renew it.
    pub fn load(&self) -> Result<Option<StoredSignIn>, String> {
        let read = locked_file::read(&self.file).map_err(|why| format!("{}: {why}", self.file.display()))?;
        let mut found = read.as_ref().and_then(|all| all.get(&self.key)).cloned();
        if found.is_none() && read.is_some_and(|all| all.get(&self.address).is_some()) {
            self.edit(|all| {
                if !all.contains_key(&self.key) {
                    let older = all.shift_remove(&self.address);
                    all.extend(older.map(|older| (self.key.clone(), older)));
                }
                found = all.get(&self.key).cloned();
            })
            .map_err(|error| error.to_string())?;
        }
        let Some(Value::Object(entry)) = found else { return Ok(None) };
        let is_own = entry.get("serverUrl").is_none_or(|url| url.as_str() == Some(&self.address));
        Ok(is_own.then_some(StoredSignIn(entry)))
    }

    /// Keeps the sign-in. Waits for whoever has the file locked, because a refresh token that is not kept is lost.
    pub async fn save(&self, sign_in: &StoredSignIn) -> Result<(), String> {
        let mut entry = sign_in.0.clone();
        // pi takes an entry without it for that of another server, and empties it.
        entry.insert("serverUrl".to_owned(), json!(self.address));
        let key = self.key.clone();
        self.change(move |all| drop(all.insert(key, Value::Object(entry)))).await
    }

    /// Notes what the tokens of a sign-in are not good for.
    pub async fn note_missing(&self, scope: &str) -> Result<(), String> {
        if self.load()?.is_none_or(|sign_in| sign_in.missing_scope() == Some(scope)) {
            return Ok(());
        }
        let (key, scope) = (self.key.clone(), scope.to_owned());
        self.change(move |all| {
            if let Some(Value::Object(entry)) = all.get_mut(&key) {
                entry.insert(MISSING_SCOPE.to_owned(), json!(scope));
            }
        })
        .await
    }

    async fn change(
        &self,
        change: impl FnOnce(&mut Map<String, Value>) + Clone + Send + 'static,
    ) -> Result<(), String> {
        let until = Instant::now() + SAVE_WAIT;
        loop {
            let (store, change) = (self.clone(), change.clone());
            let written = blocking(move || store.edit(change)).await;
            match written.map_err(|_| format!("{}: it could not be written", self.file.display()))? {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {}
                written => return written.map_err(|error| error.to_string()),
            }
        }
    }

    /// Forgets the sign-in; `false` if there was none.
    pub fn remove(&self) -> Result<bool, String> {
        if self.load()?.is_none() {
            return Ok(false);
        }
        self.edit(|all| drop(all.shift_remove(&self.key))).map_err(|error| error.to_string())?;
        Ok(true)
    }

    fn edit(&self, edit: impl FnOnce(&mut Map<String, Value>)) -> io::Result<()> {
        // Another program may have made the file for all to read.
        make_private(&self.file)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.file.display())))?;
        locked_file::update(&self.file, edit)
    }

    /// Does a renewal while no other process makes one, however long it takes. Servers replace refresh tokens, so two
    /// renewals with the same one would lose the sign-in.
    pub async fn renewing<T>(&self, renewal: impl Future<Output = T>) -> Result<T, String> {
        let lock = self.lock_refresh().await?;
        let mut renewal = pin!(renewal);
        let mut refreshes = interval(LOCK_REFRESH);
        loop {
            tokio::select! {
                biased;
                renewed = &mut renewal => return Ok(renewed),
                // A lock that cannot be refreshed is at worst taken over by another process.
                _ = refreshes.tick() => drop(lock.refresh()),
            }
        }
    }

    async fn lock_refresh(&self) -> Result<FileLock, String> {
        let name = format!("mcp-auth-refresh-{}", &digest::hex(&[&self.key])[..16]);
        let file = self.file.with_file_name(name);
        let until = Instant::now() + REFRESH_WAIT;
        loop {
            match FileLock::try_acquire(&file, LOCK_STALE) {
                Ok(lock) => return Ok(lock),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock || Instant::now() >= until => {
                    return Err(format!("{}: {error}", file.display()));
                }
                Err(_) => sleep(REFRESH_PAUSE).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_token_is_kept_although_another_process_writes_the_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("mcp-auth.json");
        let store = Store::of(&file, "s", &Url::parse("https://example.com").expect("an address"));
        let lock = FileLock::acquire(&file).expect("free");
        let sign_in = StoredSignIn::default();
        let others = async {
            assert!(!file.exists(), "the thread was held up until the lock counted as that of a dead process");
            drop(lock);
        };
        let (saved, ()) = tokio::join!(store.save(&sign_in), others);
        assert_eq!(saved, Ok(()));
        assert!(store.load().expect("readable").is_some());
    }

    #[tokio::test]
    async fn sign_ins_of_pi_are_found_and_what_is_unknown_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("mcp-auth.json");
        let url = Url::parse("https://example.com").expect("an address");
        let theirs = json!({"mcp__my_server|https://example.com/": {"tokens": {"access_token": "a", "refresh_token": "r"},
            "tokensExpireAt": 5, "discovery": {"x": 1}}, "other": 7});
        std::fs::write(&file, theirs.to_string()).expect("written");
        let store = Store::of(&file, "my-server", &url);
        let mut sign_in = store.load().expect("readable").expect("there");
        assert_eq!((sign_in.access_token(), sign_in.ends_within(Duration::ZERO)), (Some("a"), true));
        sign_in.take_tokens(json!({"access_token": "b", "expires_in": 3600}).as_object().expect("an object").clone());
        store.save(&sign_in).await.expect("saved");
        let read: Value = serde_json::from_slice(&std::fs::read(&file).expect("there")).expect("JSON");
        let kept = &read["mcp__my_server|https://example.com/"];
        assert_eq!((&read["other"], &kept["discovery"]), (&json!(7), &json!({"x": 1})));
        assert_eq!(kept["serverUrl"], "https://example.com/", "pi believes it");
        assert_eq!(kept["tokens"], json!({"access_token": "b", "expires_in": 3600, "refresh_token": "r"}));
        assert!(!store.load().expect("readable").expect("there").ends_within(Duration::from_secs(60)));
        assert_eq!((store.remove(), store.remove()), (Ok(true), Ok(false)));
    }

    #[tokio::test]
    async fn a_token_is_renewed_under_the_lock_of_pi() {
        let directory = tempfile::tempdir().expect("a directory");
        let url = Url::parse("https://example.com").expect("an address");
        let store = Store::of(&directory.path().join("mcp-auth.json"), "my-server", &url);
        let held = store.lock_refresh().await.expect("free");
        // SHA-256 of "mcp__my_server|https://example.com/".
        let theirs = directory.path().join("mcp-auth-refresh-c2e07d654e9115d4");
        let refused = FileLock::acquire(&theirs).map(drop).expect_err("held");
        assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);
        drop(held);
        assert!(FileLock::acquire(&theirs).is_ok());
    }

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_renewal_may_take_long_and_is_waited_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let url = Url::parse("https://example.com").expect("an address");
        let store = Store::of(&directory.path().join("mcp-auth.json"), "my-server", &url);
        let lock = directory.path().join("mcp-auth-refresh-c2e07d654e9115d4.lock");
        let age = |seconds: u64| {
            let old = SystemTime::now() - Duration::from_secs(seconds);
            std::fs::File::open(&lock).and_then(|lock| lock.set_modified(old)).expect("aged");
        };
        let renewal = async {
            age(60);
            // Meanwhile the owner says that it is alive.
            sleep(LOCK_REFRESH * 2).await;
            let began = Instant::now();
            let refused = store.lock_refresh().await.expect_err("held");
            assert!(refused.ends_with("locked by another process"), "{refused}");
            assert!((REFRESH_WAIT..REFRESH_WAIT * 2).contains(&began.elapsed()), "{:?}", began.elapsed());
        };
        store.renewing(renewal).await.expect("free");
        let held = store.lock_refresh().await.expect("free again");
        age(15);
        store.lock_refresh().await.expect_err("its owner counts as alive for 20 s");
        age(25);
        store.lock_refresh().await.expect("its owner has died");
        drop(held);
    }

    #[test]
    fn an_older_entry_is_that_of_the_first_server_to_ask_for_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("mcp-auth.json");
        let url = Url::parse("https://example.com/mcp").expect("an address");
        std::fs::write(&file, r#"{"https://example.com/mcp": {"tokens": {"access_token": "a"}}}"#).expect("written");
        let store = Store::of(&file, "s", &url);
        assert_eq!(store.load().expect("readable").expect("there").access_token(), Some("a"));
        assert_eq!(Store::of(&file, "another", &url).load(), Ok(None));
        assert_eq!(store.load().expect("readable").expect("still there").access_token(), Some("a"));
        let read: Value = serde_json::from_slice(&std::fs::read(&file).expect("there")).expect("JSON");
        assert_eq!(read.as_object().expect("an object").keys().collect::<Vec<_>>(), ["mcp__s|https://example.com/mcp"]);
        let foreign = r#"{"mcp__s|https://example.com/mcp": {"serverUrl": "https://example.org/", "tokens": {}}}"#;
        std::fs::write(&file, foreign).expect("written");
        assert_eq!(store.load(), Ok(None), "pi does not believe it either");
    }
}
