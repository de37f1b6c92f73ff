//! Logins of providers that extensions register. The extension turns the stored
//! credentials into a key, and renews them when they have expired.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use pith_agent::blocking;
use pith_config::FileLock;
use pith_secrets::Secrets;
use serde_json::Value;
use tokio::time::{Instant, interval, sleep, timeout};

use super::Registry;
use super::auth::Missing;
use crate::auth_file::AuthFile;

/// How long another process may take to renew the same login.
const LOCK_LIMIT: Duration = Duration::from_secs(30);
/// How long to wait before the lock is tried again.
const PAUSE: Duration = Duration::from_millis(100);
/// How long an extension may take to renew a login; nobody else can, as long as it does.
const RENEWAL_LIMIT: Duration = Duration::from_secs(60);
/// How often the lock is refreshed, so that other processes see that its owner is alive.
const LOCK_REFRESH: Duration = Duration::from_secs(3);

/// Understands stored logins. Credentials are what `auth.json` holds for the provider.
pub trait Logins: Send + Sync {
    /// Returns the key for requests.
    fn key(&self, provider: &str, credentials: Value) -> BoxFuture<'static, Result<String, String>>;

    /// Returns new credentials for expired ones.
    fn refresh(&self, provider: &str, credentials: Value) -> BoxFuture<'static, Result<Value, String>>;
}

impl Registry {
    /// Sets the implementation for logins of registered providers.
    pub fn set_logins(&self, logins: Option<Arc<dyn Logins>>) {
        *self.logins.lock().unwrap_or_else(PoisonError::into_inner) = logins;
    }

    /// Returns the key of a stored login, which is renewed first if it has expired.
    pub(super) async fn login_key(&self, provider: &str) -> Result<String, String> {
        let logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(logins) = logins else { return Err(Missing::Expired.text(provider)) };
        let mut credentials = stored_login(&self.auth, provider)?;
        if has_expired(&credentials) {
            let (auth, secrets) = (self.auth.clone(), self.secrets.clone());
            let renewal = Renewal { auth, secrets, logins: logins.clone(), provider: provider.to_owned() };
            self.renewals.join(&format!("provider {provider}"), || renewal.run()).await?;
            credentials = stored_login(&self.auth, provider)?;
        }
        let key = logins.key(provider, credentials).await?;
        if key.is_empty() { Err(Missing::Nothing.text(provider)) } else { Ok(key) }
    }
}

/// The renewal of the login of one provider.
struct Renewal {
    auth: Arc<AuthFile>,
    secrets: Arc<Secrets>,
    logins: Arc<dyn Logins>,
    provider: String,
}

impl Renewal {
    /// Renews the login and stores it, unless another process has done so.
    async fn run(self) -> Result<(), String> {
        let lock = self.lock_auth_file().await?;
        let stored = stored_login(&self.auth, &self.provider)?;
        if !has_expired(&stored) {
            return Ok(());
        }
        let fresh = self.refresh(stored, &lock).await.and_then(|fresh| match fresh {
            Value::Object(_) => Ok(fresh),
            _ => Err("the renewed login is not an object".to_owned()),
        });
        let fresh = fresh.map_err(|why| format!("{} ({why})", Missing::Expired.text(&self.provider)))?;
        // The new tokens may be in a text before a request has used them.
        let tokens = ["access", "refresh"].map(|name| fresh.get(name).and_then(Value::as_str));
        tokens.into_iter().flatten().for_each(|token| self.secrets.remember(token));
        self.auth.store_login(&lock, &self.provider, &fresh).map_err(|error| format!("auth.json: {error}"))
    }

    /// Has the login renewed, and meanwhile tells other processes that this one is alive.
    async fn refresh(&self, stored: Value, lock: &FileLock) -> Result<Value, String> {
        let renewing = timeout(RENEWAL_LIMIT, self.logins.refresh(&self.provider, stored));
        tokio::pin!(renewing);
        let mut refreshes = interval(LOCK_REFRESH);
        loop {
            tokio::select! {
                biased;
                fresh = &mut renewing => {
                    return fresh.unwrap_or_else(|_| Err(format!("no answer within {} s", RENEWAL_LIMIT.as_secs())));
                }
                // A lock that cannot be refreshed is at worst taken over by another process.
                _ = refreshes.tick() => drop(lock.refresh()),
            }
        }
    }

    async fn lock_auth_file(&self) -> Result<FileLock, String> {
        let until = Instant::now() + LOCK_LIMIT;
        loop {
            let file = self.auth.path().to_owned();
            let locked = blocking(move || FileLock::acquire(&file)).await;
            match locked.map_err(|_| "the lock of auth.json could not be taken".to_owned())? {
                Ok(lock) => return Ok(lock),
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock || Instant::now() > until => {
                    return Err(format!("auth.json: {error}"));
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }
}

fn stored_login(auth: &AuthFile, provider: &str) -> Result<Value, String> {
    auth.login(provider).ok_or_else(|| Missing::Nothing.text(provider))
}

fn has_expired(credentials: &Value) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as f64;
    credentials.get("expires").and_then(Value::as_f64).is_none_or(|expires| expires <= now)
}
