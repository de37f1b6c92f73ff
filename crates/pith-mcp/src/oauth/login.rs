//! Signs the user in: registers a client where that is needed, sends the browser to the authorization server and
//! exchanges the code it comes back with.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use pith_ai::Web;
use pith_secrets::Secrets;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::time::timeout;
use url::Url;

use super::callback::{Returned, wait};
use super::device::{DeviceCode, GRANT_TYPE};
use super::discovery::{Authority, Challenge, discover};
use super::exchange::{is_loopback, post_form, post_json};
use super::sign_in::access_token;
use super::store::{Store, StoredSignIn};
use crate::config::OAuth;

/// How long the user may take in the browser.
const LIMIT: Duration = Duration::from_secs(5 * 60);
const CALLBACK: &str = "http://127.0.0.1/callback";
const CLIENT_NAME: &str = "pith";

/// How somebody signs in.
pub enum Means<'a> {
    /// With a browser. `show` gets the address to open; the address it led to may come from `pasted` instead.
    Browser { show: &'a mut (dyn FnMut(&str) + Send), pasted: &'a mut (dyn Future<Output = String> + Send + Unpin) },
    /// With a code that is typed into a browser on any machine. `show` gets the code and the page it is for.
    Device { show: &'a mut (dyn FnMut(&DeviceCode) + Send) },
    /// With the client's own secret, for machines.
    ClientCredentials,
    /// With a token the user has.
    Token(String),
}

/// A sign-in to one server.
pub struct Login {
    pub web: Web,
    pub url: Url,
    pub oauth: OAuth,
    pub store: Store,
    pub secrets: Arc<Secrets>,
    pub challenge: Challenge,
}

impl Login {
    /// Signs in and keeps the tokens.
    pub async fn run(&self, means: Means<'_>) -> Result<(), String> {
        let mut sign_in = self.store.load()?.unwrap_or_default();
        let tokens = match means {
            Means::Token(token) if token.is_empty() => return Err("the token is empty".to_owned()),
            Means::Token(token) => {
                Map::from_iter([("access_token".to_owned(), json!(token)), ("token_type".to_owned(), json!("Bearer"))])
            }
            Means::ClientCredentials => self.with_secret(&mut sign_in).await?,
            Means::Browser { show, pasted } => self.with_browser(&mut sign_in, show, pasted).await?,
            Means::Device { show } => self.with_device(&mut sign_in, show).await?,
        };
        sign_in.replace_tokens(tokens);
        sign_in.hide_in(&self.secrets);
        access_token(&sign_in)?;
        self.store.save(&sign_in).await
    }

    /// Finds the authorization server, and notes it for renewals.
    pub(super) async fn authority(&self, sign_in: &mut StoredSignIn) -> Result<Authority, String> {
        let given = self.oauth.metadata_url()?;
        let discovery = discover(&self.web, &self.url, &self.challenge, given.as_ref()).await?;
        let authority = discovery.authority(&self.url)?;
        sign_in.begin(&discovery);
        Ok(authority)
    }

    /// Returns what to ask for. If a token was refused because it may do too little, that is what it may do and what
    /// was missing.
    pub(super) fn scope(&self, sign_in: &StoredSignIn, authority: &Authority) -> Option<String> {
        let given = self.oauth.scope.as_deref();
        let Some(missing) = sign_in.missing_scope() else {
            return given.or(self.challenge.scope.as_deref()).or(authority.scope.as_deref()).map(str::to_owned);
        };
        let granted = sign_in.granted_scope().or(self.challenge.scope.as_deref());
        let mut all: Vec<&str> = Vec::new();
        for word in [given, granted, Some(missing)].into_iter().flatten().flat_map(str::split_whitespace) {
            if !all.contains(&word) {
                all.push(word);
            }
        }
        Some(all.join(" "))
    }

    async fn with_secret(&self, sign_in: &mut StoredSignIn) -> Result<Map<String, Value>, String> {
        let client = Client::configured(&self.oauth).filter(|client| client.secret.is_some());
        let client = client.ok_or("oauth: clientId and clientSecret are needed for --client-credentials")?;
        let authority = self.authority(sign_in).await?;
        let mut fields = vec![("grant_type", "client_credentials"), ("resource", authority.resource.as_str())];
        let scope = self.scope(sign_in, &authority);
        fields.extend(scope.as_deref().map(|scope| ("scope", scope)));
        let authorization = client.authorize(&authority, &mut fields);
        let answer = post_form(&self.web, &authority.token_endpoint, &fields, authorization).await?;
        Ok(with_scope(answer.accepted("the token endpoint")?, scope))
    }

    async fn with_browser(
        &self,
        sign_in: &mut StoredSignIn,
        show: &mut (dyn FnMut(&str) + Send),
        pasted: &mut (dyn Future<Output = String> + Send + Unpin),
    ) -> Result<Map<String, Value>, String> {
        let authority = self.authority(sign_in).await?;
        let endpoint = authority.authorization_endpoint.clone();
        let mut page = endpoint.ok_or("the authorization server has no authorization_endpoint")?;
        if page.scheme() != "https" && !is_loopback(&page) {
            return Err(format!("{}: a sign-in needs https://", page.origin().ascii_serialization()));
        }
        let (listener, redirect) = self.listen(sign_in).await?;
        let client = self.client(sign_in, &authority, &Grant::Code { redirect: &redirect }).await?;
        let (verifier, state) = (random()?, random()?);
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        page.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &client.id),
            ("redirect_uri", redirect.as_str()),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &authority.resource),
        ]);
        let scope = self.scope(sign_in, &authority);
        if let Some(scope) = &scope {
            page.query_pairs_mut().append_pair("scope", scope);
        }
        show(page.as_str());
        let returned = async {
            tokio::select! {
                returned = wait(&listener, &redirect, &state) => returned,
                text = pasted => {
                    let url = Url::parse(text.trim()).map_err(|error| format!("the pasted address: {error}"))?;
                    Returned::read(&url).ok_or_else(|| "the pasted address has no code".to_owned())
                }
            }
        };
        let returned = timeout(LIMIT, returned).await.map_err(|_| "nobody signed in within 5 minutes".to_owned())??;
        let code = checked(returned, &state, &authority)?;
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", redirect.as_str()),
            ("code_verifier", verifier.as_str()),
            ("resource", authority.resource.as_str()),
        ];
        let authorization = client.authorize(&authority, &mut fields);
        let answer = post_form(&self.web, &authority.token_endpoint, &fields, authorization).await?;
        Ok(with_scope(answer.accepted("the token endpoint")?, scope))
    }

    /// Listens where the browser comes back to: if it is free, where the registered client wants it to.
    async fn listen(&self, sign_in: &StoredSignIn) -> Result<(TcpListener, Url), String> {
        let wanted = self.oauth.callback_url.as_deref().unwrap_or(CALLBACK);
        let mut redirect = Url::parse(wanted).map_err(|error| format!("oauth.callbackUrl: {error}"))?;
        if redirect.scheme() != "http" || !is_loopback(&redirect) {
            return Err("oauth.callbackUrl: it must be an http:// address of this machine".to_owned());
        }
        let at = |port: u16| TcpListener::bind(("127.0.0.1", port));
        let (port, listener) = match redirect.port().or(self.oauth.callback_port) {
            Some(port) => (port, at(port).await),
            None => match at(registered_port(sign_in, &redirect).unwrap_or(0)).await {
                Err(_) => (0, at(0).await),
                bound => (0, bound),
            },
        };
        let listener = listener.map_err(|error| format!("port {port} of the callback: {error}"))?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        if redirect.port().is_none() {
            redirect.set_port(Some(port)).map_err(|()| "oauth.callbackUrl: it takes no port".to_owned())?;
        }
        Ok((listener, redirect))
    }

    /// Returns the client to sign in with: the configured one, one that is registered for this grant, or a new one.
    pub(super) async fn client(
        &self,
        sign_in: &mut StoredSignIn,
        authority: &Authority,
        grant: &Grant<'_>,
    ) -> Result<Client, String> {
        if let Some(client) = Client::configured(&self.oauth) {
            return Ok(client);
        }
        let scope = self.scope(sign_in, authority);
        // A client that was registered for less would be refused more.
        let is_enough = |stored: &&Value| {
            let registered = stored.get("scope").and_then(Value::as_str);
            let has = |word| registered.is_none_or(|all| all.split_whitespace().any(|other| other == word));
            sign_in.missing_scope().is_none_or(|missing| missing.split_whitespace().all(has))
        };
        let stored = sign_in.client().filter(|stored| grant.is_that_of(stored)).filter(is_enough);
        if let Some(client) = stored.and_then(Client::read) {
            return Ok(client);
        }
        let Some(endpoint) = &authority.registration_endpoint else {
            return Err("the authorization server registers no clients: set oauth.clientId".to_owned());
        };
        let mut wanted = json!({
            "client_name": self.oauth.client_name.as_deref().unwrap_or(CLIENT_NAME),
            "token_endpoint_auth_method": "none",
            // Servers that speak OpenID take a callback on this machine only from such a one.
            "application_type": "native",
        });
        merge(&mut wanted, grant.registration());
        if let Some(scope) = &scope {
            wanted["scope"] = json!(scope);
        }
        let answer = post_json(&self.web, endpoint, &wanted).await?;
        let answer = answer.accepted("the registration of pith")?;
        // Servers need not repeat what they were asked for.
        let mut registered = grant.registration();
        if let Some(scope) = scope {
            registered["scope"] = json!(scope);
        }
        merge(&mut registered, Value::Object(answer));
        let client = Client::read(&registered).ok_or("the registration of pith: no client_id in the answer")?;
        sign_in.set_client(registered);
        Ok(client)
    }
}

/// Returns the port at which the registered client expects the browser, if all else about the address is the same.
fn registered_port(sign_in: &StoredSignIn, redirect: &Url) -> Option<u16> {
    let registered = Url::parse(sign_in.client()?.get("redirect_uris")?.get(0)?.as_str()?).ok()?;
    let mut expected = redirect.clone();
    expected.set_port(registered.port()).ok()?;
    registered.port().filter(|_| expected == registered)
}

/// What a client is registered for.
pub enum Grant<'a> {
    /// A code that the browser brings back.
    Code { redirect: &'a Url },
    /// A code that the user types into a browser.
    Device,
}

impl Grant<'_> {
    /// What a registration says about it.
    fn registration(&self) -> Value {
        match self {
            Grant::Code { redirect } => json!({
                "redirect_uris": [redirect.as_str()],
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
            }),
            Grant::Device => json!({"grant_types": [GRANT_TYPE, "refresh_token"]}),
        }
    }

    /// Whether a client was registered for it.
    fn is_that_of(&self, client: &Value) -> bool {
        let lists = |key: &str, word: &str| {
            let words = client.get(key).and_then(Value::as_array);
            words.is_some_and(|words| words.iter().any(|other| other.as_str() == Some(word)))
        };
        match self {
            Grant::Code { redirect } => lists("redirect_uris", redirect.as_str()),
            Grant::Device => lists("grant_types", GRANT_TYPE),
        }
    }
}

/// Adds what was asked for to tokens: servers leave it out where they grant all of it.
pub(super) fn with_scope(mut tokens: Map<String, Value>, asked: Option<String>) -> Map<String, Value> {
    if let Some(asked) = asked {
        tokens.entry("scope").or_insert_with(|| json!(asked));
    }
    tokens
}

/// Adds the members of an object to another one.
fn merge(into: &mut Value, members: Value) {
    if let (Value::Object(into), Value::Object(members)) = (into, members) {
        into.extend(members);
    }
}

/// Takes the code of a browser that has come back from the right place, with what it was sent away with.
fn checked(returned: Returned, state: &str, authority: &Authority) -> Result<String, String> {
    if returned.state.as_deref() != Some(state) {
        return Err("the browser came back from another sign-in".to_owned());
    }
    match returned.issuer {
        Some(issuer) if issuer.trim_end_matches('/') != authority.issuer.trim_end_matches('/') => {
            return Err(format!("the browser came back from {issuer}, not from {}", authority.issuer));
        }
        None if authority.is_issuer_returned => {
            return Err(format!("the browser did not say that it came back from {}", authority.issuer));
        }
        _ => {}
    }
    returned.code.map_err(|why| format!("the authorization server refused: {why}"))
}

/// A client that the authorization server knows.
pub struct Client {
    pub id: String,
    pub secret: Option<String>,
}

impl Client {
    fn configured(oauth: &OAuth) -> Option<Self> {
        Some(Client { id: oauth.client_id.clone()?, secret: oauth.client_secret.clone() })
    }

    fn read(stored: &Value) -> Option<Self> {
        let text = |key: &str| stored.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Client { id: text("client_id")?, secret: text("client_secret") })
    }

    /// The client of a sign-in.
    pub fn known(oauth: &OAuth, sign_in: &StoredSignIn) -> Option<Self> {
        Client::configured(oauth).or_else(|| Client::read(sign_in.client()?))
    }

    /// Makes a form that of this client, and returns the header that proves it, where there is one.
    pub fn authorize<'a>(&'a self, authority: &Authority, fields: &mut Vec<(&'a str, &'a str)>) -> Option<String> {
        match &self.secret {
            Some(secret) if !authority.wants_secret_in_form => {
                Some(format!("Basic {}", STANDARD.encode(format!("{}:{secret}", self.id))))
            }
            secret => {
                fields.push(("client_id", &self.id));
                fields.extend(secret.as_ref().map(|secret| ("client_secret", secret.as_str())));
                None
            }
        }
    }
}

/// 32 random bytes as text.
fn random() -> Result<String, String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "no random numbers".to_owned())?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
