//! What servers offered when they last ran, so that their tools can be declared without starting them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pith_config::Environment;
use pith_secrets::Secrets;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tracing::debug;

use crate::config::{Places, SamplingConsent, ServerConfig, Source, Transport, Variables};
use crate::offer::Offer;

/// How long a list is good.
const VALID: Duration = Duration::from_secs(7 * 24 * 3600);
/// After that long it is asked for again in the background.
const FRESH: Duration = Duration::from_secs(24 * 3600);
const FORMAT: u32 = 4;

/// The directory with one file per server, as a session uses it.
#[derive(Clone)]
pub struct Cache {
    directory: PathBuf,
    environment: Environment,
    /// The session's directory.
    cwd: PathBuf,
}

/// A list that was kept.
#[derive(Clone, Debug)]
pub struct Kept {
    pub offer: Offer,
    /// Whether it is worth asking again.
    pub is_old: bool,
}

#[derive(Serialize, Deserialize)]
struct CacheFile {
    format: u32,
    /// Seconds since 1970.
    time: u64,
    #[serde(flatten)]
    offer: Offer,
}

impl Cache {
    pub fn of(places: &Places) -> Self {
        let Places { agent_dir, environment, cwd } = places.clone();
        Cache { directory: agent_dir.path().join("pith-mcp"), environment, cwd }
    }

    /// Returns what a server of this configuration offered; a damaged file is removed.
    pub fn read(&self, config: &ServerConfig) -> Option<Kept> {
        let path = self.path(config)?;
        let text = std::fs::read(&path).ok()?;
        let read = serde_json::from_slice::<CacheFile>(&text).ok().filter(|file| file.format == FORMAT);
        let Some(file) = read else {
            let _ = std::fs::remove_file(&path);
            return None;
        };
        let age = Duration::from_secs(now().saturating_sub(file.time));
        let valid = validity(file.offer.ttl);
        (age < valid).then_some(Kept { is_old: age >= FRESH.min(valid / 2), offer: file.offer })
    }

    /// Keeps what a server offers.
    pub fn write(&self, config: &ServerConfig, offer: &Offer) {
        let file = CacheFile { format: FORMAT, time: now(), offer: offer.clone() };
        let written = pith_config::create_private_directory(&self.directory).and_then(|()| {
            self.make_key()?;
            let path = self.path(config).ok_or(std::io::ErrorKind::NotFound)?;
            pith_config::replace(&path, &serde_json::to_vec(&file)?)
        });
        if let Err(error) = written {
            debug!(target: "pith::mcp", server = config.name, %error, "the list of tools was not kept");
        }
    }

    /// The file of a server: its name and a digest of everything that decides what it offers. The digest is keyed,
    /// because secrets are among that.
    fn path(&self, config: &ServerConfig) -> Option<PathBuf> {
        let key = std::fs::read(self.key_file()).ok()?;
        let what = match &config.transport {
            Transport::Stdio(stdio) => json!([stdio.command, stdio.args, stdio.env, stdio.cwd, stdio.inherits_env]),
            Transport::Remote(remote) => json!([remote.url, remote.headers, remote.bearer, remote.is_sse]),
        };
        // The same entry in another project may be another program. The user's own are the same everywhere.
        let place = (config.source != Source::User).then_some(&self.cwd);
        // What a server may ask decides what it offers.
        let what = json!([self.expanded(what), place, config.sampling == SamplingConsent::Never]);
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), what.to_string().as_bytes());
        let digits: String = tag.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let name = config.name.replace(['.', ' '], "_");
        Some(self.directory.join(format!("{name}-{digits}.json")))
    }

    /// Replaces variables: with another token a server may offer something else. What is known only when the server
    /// starts stays as it is written.
    fn expanded(&self, what: Value) -> Value {
        match what {
            Value::String(text) => {
                let (inputs, secrets) = (HashMap::new(), Secrets::default());
                let Cache { environment, cwd, .. } = self;
                let variables = Variables { environment, cwd, inputs: &inputs, secrets: &secrets, withheld: &[] };
                json!(variables.replace(&text).unwrap_or(text))
            }
            Value::Array(items) => items.into_iter().map(|item| self.expanded(item)).collect(),
            other => other,
        }
    }

    fn key_file(&self) -> PathBuf {
        self.directory.join("key")
    }

    fn make_key(&self) -> std::io::Result<()> {
        if self.key_file().exists() {
            return Ok(());
        }
        let mut key = [0; 32];
        SystemRandom::new().fill(&mut key).map_err(|_| std::io::Error::other("no random numbers"))?;
        pith_config::replace(&self.key_file(), &key)
    }
}

/// How long a list is good for which a server has said so, or not. 0 only means that it may differ at the next start.
fn validity(ttl: Option<u64>) -> Duration {
    ttl.filter(|ttl| *ttl > 0).map_or(VALID, Duration::from_millis).min(VALID)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pith_config::{AgentDir, Layout};

    use super::*;
    use crate::config::{TimeoutUnit, read_entry, read_host};

    fn config(entry: Value) -> ServerConfig {
        read_host(json!({ "s": entry }).as_object().expect("an object")).expect("usable").remove(0)
    }

    /// The cache of a session in a directory, with the variable `TOKEN`.
    fn cache(directory: &Path, cwd: &str, token: &str) -> Cache {
        let environment = Environment::of("/home/u", [("TOKEN", token)]);
        Cache::of(&Places { agent_dir: AgentDir::at(directory.to_owned(), Layout::Pi), environment, cwd: cwd.into() })
    }

    #[test]
    fn a_list_belongs_to_a_project_and_to_the_values_of_variables() {
        let directory = tempfile::tempdir().expect("a directory");
        let entry = json!({"command": "sh", "args": ["run.sh"], "env": {"T": "${TOKEN}", "N": "${NOT_SET}"}});
        let of_host = config(entry.clone());
        let of_user = read_entry("s", &entry, Source::User, TimeoutUnit::Seconds).expect("usable");
        let is_known =
            |server: &ServerConfig, cwd: &str, token: &str| cache(directory.path(), cwd, token).read(server).is_some();
        for server in [&of_host, &of_user] {
            cache(directory.path(), "/a", "one").write(server, &Offer::default());
            assert!(is_known(server, "/a", "one"));
            assert!(!is_known(server, "/a", "two"), "another account");
        }
        assert!(is_known(&of_user, "/b", "one"), "the user's own are the same everywhere");
        std::fs::remove_dir_all(directory.path().join("pith-mcp")).expect("there");
        cache(directory.path(), "/a", "one").write(&of_host, &Offer::default());
        assert!(!is_known(&of_host, "/b", "one"), "another project's run.sh");
    }

    #[test]
    fn a_list_belongs_to_its_configuration() {
        let directory = tempfile::tempdir().expect("a directory");
        let cache = cache(directory.path(), "/w", "");
        let server = config(json!({"command": "a", "env": {"TOKEN": "secret-token"}}));
        assert!(cache.read(&server).is_none());
        let offer = Offer { protocol_version: "2025-11-25".to_owned(), ..Offer::default() };
        cache.write(&server, &offer);
        let kept = cache.read(&server).expect("kept");
        assert_eq!((kept.offer, kept.is_old), (offer, false));
        assert!(cache.read(&config(json!({"command": "a", "env": {"TOKEN": "other"}}))).is_none());
        let files: Vec<_> = std::fs::read_dir(directory.path().join("pith-mcp")).expect("made").flatten().collect();
        for file in files {
            let bytes = std::fs::read(file.path()).expect("readable");
            assert!(!String::from_utf8_lossy(&bytes).contains("secret-token"));
            let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().expect("there").permissions());
            assert_eq!(mode & 0o777, 0o600, "{file:?}");
        }
    }

    #[test]
    fn a_list_is_good_as_long_as_its_server_says() {
        let check = |ttl: Option<u64>, days: f64| assert_eq!(validity(ttl), Duration::from_secs_f64(days * 86400.0));
        check(None, 7.0);
        check(Some(0), 7.0);
        check(Some(43_200_000), 0.5);
        check(Some(u64::MAX), 7.0);
        let directory = tempfile::tempdir().expect("a directory");
        let (cache, server) = (cache(directory.path(), "/w", ""), config(json!({"command": "a"})));
        // Kept two hours ago.
        let kept = |ttl: u64| {
            let file =
                CacheFile { format: FORMAT, time: now() - 7200, offer: Offer { ttl: Some(ttl), ..Offer::default() } };
            cache.write(&server, &file.offer);
            let path = cache.path(&server).expect("a path");
            std::fs::write(path, serde_json::to_vec(&file).expect("JSON")).expect("written");
            cache.read(&server).map(|kept| kept.is_old)
        };
        assert_eq!([kept(3_600_000), kept(10_800_000), kept(86_400_000)], [None, Some(true), Some(false)]);
    }

    #[test]
    fn a_damaged_file_is_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let cache = cache(directory.path(), "/w", "");
        let server = config(json!({"command": "a"}));
        cache.write(&server, &Offer::default());
        let path = cache.path(&server).expect("a path");
        std::fs::write(&path, "{").expect("written");
        assert!(cache.read(&server).is_none());
        assert!(!path.exists());
    }
}
