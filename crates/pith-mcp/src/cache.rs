//! What servers offered when they last ran, so that their tools can be declared without starting them.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tracing::debug;

use crate::config::{SamplingConsent, ServerConfig, Transport};
use crate::offer::Offer;

/// How long a list is good.
const VALID: Duration = Duration::from_secs(7 * 24 * 3600);
/// After that long it is asked for again in the background.
const FRESH: Duration = Duration::from_secs(24 * 3600);
const FORMAT: u32 = 3;

/// The directory with one file per server.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
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
    /// The cache of an agent directory.
    pub fn below(agent_dir: &Path) -> Self {
        Cache { directory: agent_dir.join("pith-mcp") }
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
        // What a server may ask decides what it offers.
        let what = json!([what, config.sampling == SamplingConsent::Never]);
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), what.to_string().as_bytes());
        let digits: String = tag.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let name = config.name.replace(['.', ' '], "_");
        Some(self.directory.join(format!("{name}-{digits}.json")))
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
    use super::*;
    use crate::config::read_host;

    fn config(entry: serde_json::Value) -> ServerConfig {
        read_host(json!({ "s": entry }).as_object().expect("an object")).expect("usable").remove(0)
    }

    #[test]
    fn a_list_belongs_to_its_configuration() {
        let directory = tempfile::tempdir().expect("a directory");
        let cache = Cache::below(directory.path());
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
        let (cache, server) = (Cache::below(directory.path()), config(json!({"command": "a"})));
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
        let cache = Cache::below(directory.path());
        let server = config(json!({"command": "a"}));
        cache.write(&server, &Offer::default());
        let path = cache.path(&server).expect("a path");
        std::fs::write(&path, "{").expect("written");
        assert!(cache.read(&server).is_none());
        assert!(!path.exists());
    }
}
