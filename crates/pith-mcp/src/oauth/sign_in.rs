//! The stored sign-in of a server: the token that requests carry, renewed in time.

use std::sync::Arc;
use std::time::Duration;

use pith_ai::{Renewals, Web};
use pith_secrets::Secrets;
use tracing::debug;
use url::Url;

use super::discovery::{Authority, Challenge, discover};
use super::exchange::post_form;
use super::login::{Client, Login, Means};
use super::store::{Store, StoredSignIn};
use crate::config::OAuth;

/// A token is renewed this long before its end.
const MARGIN: Duration = Duration::from_secs(60);

/// How requests to one server get their token.
pub struct SignIn {
    pub web: Web,
    pub url: Url,
    pub oauth: OAuth,
    pub store: Store,
    /// Hears of tokens before a text of the authorization server can repeat them.
    pub secrets: Arc<Secrets>,
    pub renewals: Arc<Renewals>,
}

impl SignIn {
    /// Signs somebody in.
    pub async fn begin(&self, challenge: Challenge, means: Means<'_>) -> Result<(), String> {
        let (web, url, oauth) = (self.web.clone(), self.url.clone(), self.oauth.clone());
        let (store, secrets) = (self.store.clone(), self.secrets.clone());
        Login { web, url, oauth, store, secrets, challenge }.run(means).await
    }

    /// Forgets the sign-in; `false` if there was none.
    pub fn end(&self) -> Result<bool, String> {
        self.store.remove()
    }

    /// Returns the access token, renewed if it is about to end; `None` if nobody has signed in.
    pub async fn token(self: &Arc<Self>) -> Option<String> {
        let sign_in = self.store.load().ok()??;
        let token = sign_in.access_token()?.to_owned();
        // Where it is not known who gave it, the server has to say so first, when it refuses the token.
        let is_renewable = sign_in.refresh_token().is_some() && sign_in.discovery().is_some();
        if is_renewable && sign_in.ends_within(MARGIN) {
            // If that fails the old one is sent, and the server decides.
            return Some(self.renew(&token, &Challenge::default()).await.unwrap_or(token));
        }
        Some(token)
    }

    /// Replaces a token that has ended or was refused, with this challenge. Another process may have done so already.
    pub async fn renew(self: &Arc<Self>, stale: &str, challenge: &Challenge) -> Result<String, String> {
        let renewal = || {
            let (sign_in, stale, challenge) = (self.clone(), stale.to_owned(), challenge.clone());
            async move { sign_in.store.renewing(sign_in.renew_alone(&stale, &challenge)).await? }
        };
        let login = format!("mcp {}", self.store.key());
        self.renewals.join(&login, renewal).await?;
        let token = self.stored_token()?;
        if token != stale {
            return Ok(token);
        }
        // What was joined replaced an older token than this one.
        self.renewals.join(&login, renewal).await?;
        self.stored_token()
    }

    /// Notes what the token may not do, for the next sign-in.
    pub async fn note_missing(&self, scope: &str) {
        if let Err(why) = self.store.note_missing(scope).await {
            debug!(target: "pith::mcp", why, "what the sign-in lacks was not noted");
        }
    }

    fn stored_token(&self) -> Result<String, String> {
        access_token(&self.store.load()?.ok_or("nobody has signed in")?)
    }

    async fn renew_alone(&self, stale: &str, challenge: &Challenge) -> Result<(), String> {
        let mut sign_in = self.store.load()?.ok_or("nobody has signed in")?;
        sign_in.hide_in(&self.secrets);
        if sign_in.access_token().is_some_and(|token| token != stale) {
            return Ok(());
        }
        let refresh = sign_in.refresh_token().ok_or("the sign-in cannot be renewed")?.to_owned();
        let authority = self.authority(&mut sign_in, challenge).await?;
        let client = Client::known(&self.oauth, &sign_in).ok_or("the client of the sign-in is not known")?;
        let mut fields = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.as_str()),
            ("resource", authority.resource.as_str()),
        ];
        let authorization = client.authorize(&authority, &mut fields);
        let answer = post_form(&self.web, &authority.token_endpoint, &fields, authorization).await?;
        sign_in.take_tokens(answer.accepted("the renewal of the sign-in")?);
        sign_in.hide_in(&self.secrets);
        access_token(&sign_in)?;
        self.store.save(&sign_in).await
    }

    /// Returns the authorization server that gave the refresh token; nobody else may see it.
    async fn authority(&self, sign_in: &mut StoredSignIn, challenge: &Challenge) -> Result<Authority, String> {
        if let Some(known) = sign_in.discovery() {
            return known.authority(&self.url);
        }
        let given = self.oauth.metadata_url()?;
        let found = discover(&self.web, &self.url, challenge, given.as_ref()).await?;
        if found.is_by_convention() {
            return Err("the server does not say where its sign-in is renewed".to_owned());
        }
        sign_in.set_discovery(&found);
        found.authority(&self.url)
    }
}

/// The token that an authorization server has given.
pub fn access_token(sign_in: &StoredSignIn) -> Result<String, String> {
    sign_in.access_token().map(str::to_owned).ok_or_else(|| "the authorization server gave no access_token".to_owned())
}
