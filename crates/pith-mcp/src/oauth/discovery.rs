//! Finds out where to sign in: the metadata of the server (RFC 9728), then of its authorization server (RFC 8414).

use pith_ai::Web;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use super::exchange::get;

/// What a server says when it refuses a request without a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    pub resource_metadata: Option<String>,
    pub scope: Option<String>,
    pub error: Option<String>,
}

impl Challenge {
    /// Reads `WWW-Authenticate`.
    pub fn read(header: &str) -> Self {
        let value = |name: &str| {
            let start = header.find(&format!("{name}="))? + name.len() + 1;
            let rest = &header[start..];
            let text = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next()?,
                None => rest.split([',', ' ']).next()?,
            };
            Some(text.to_owned()).filter(|text| !text.is_empty())
        };
        Challenge { resource_metadata: value("resource_metadata"), scope: value("scope"), error: value("error") }
    }

    /// Returns what a token would have to be good for, if it was refused because it is not.
    pub fn missing_scope(&self) -> Option<&str> {
        self.scope.as_deref().filter(|_| self.error.as_deref() == Some("insufficient_scope"))
    }
}

/// What servers said about where to sign in. It is kept with the sign-in, in the shape that pi gives it, so that a
/// refresh token goes to those who gave it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Discovery {
    pub authorization_server_url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource_metadata: Option<Map<String, Value>>,
    /// Without metadata the endpoints are where servers had them before there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    authorization_server_metadata: Option<Map<String, Value>>,
}

impl Discovery {
    /// Whether nobody has said where the endpoints are.
    pub fn is_by_convention(&self) -> bool {
        self.authorization_server_metadata.is_none()
    }

    /// Whether both lead to the same authorization server.
    pub fn is_same_server(&self, other: &Discovery) -> bool {
        same_issuer(&self.authorization_server_url, &other.authorization_server_url)
    }

    /// Returns the authorization server of the server at an address.
    pub fn authority(&self, url: &Url) -> Result<Authority, String> {
        let member = |key: &str| self.resource_metadata.as_ref().and_then(|found| found.get(key));
        let resource = match member("resource").and_then(Value::as_str) {
            Some(named) => check_resource(url, named)?,
            None => url.to_string(),
        };
        let scopes = member("scopes_supported").and_then(Value::as_array);
        let scopes = scopes.map(|all| all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "));
        let scope = scopes.filter(|scope| !scope.is_empty());
        match &self.authorization_server_metadata {
            Some(metadata) => read(metadata, &self.authorization_server_url, resource, scope),
            None => by_convention(&self.authorization_server_url, resource, scope),
        }
    }
}

/// An authorization server, and what it needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Authority {
    pub issuer: String,
    pub authorization_endpoint: Option<Url>,
    pub token_endpoint: Url,
    pub registration_endpoint: Option<Url>,
    pub device_endpoint: Option<Url>,
    /// The server that tokens are for.
    pub resource: String,
    pub scope: Option<String>,
    pub is_issuer_returned: bool,
    /// Whether a client's secret goes into the form instead of a header.
    pub wants_secret_in_form: bool,
}

/// Finds the authorization server of a server. `given` is the address of its metadata, if the user knows it.
pub async fn discover(web: &Web, url: &Url, challenge: &Challenge, given: Option<&Url>) -> Result<Discovery, String> {
    let resource_metadata = protected_resource(web, url, challenge).await?;
    let issuers = resource_metadata.as_ref().and_then(|found| found.get("authorization_servers"));
    let issuer = issuers.and_then(|all| all.get(0)).and_then(Value::as_str).map(str::to_owned);
    let issuer = issuer.unwrap_or_else(|| url.origin().ascii_serialization());
    let (authorization_server_url, authorization_server_metadata) = match given {
        Some(given) => {
            let metadata = get(web, given).await?.accepted("the metadata of the authorization server")?;
            // Whoever names the document knows better than the server whose it is.
            let own = metadata.get("issuer").and_then(Value::as_str).map(str::to_owned);
            (own.unwrap_or(issuer), Some(metadata))
        }
        None => {
            let metadata = authorization_server(web, &issuer).await?;
            (issuer, metadata)
        }
    };
    Ok(Discovery { authorization_server_url, resource_metadata, authorization_server_metadata })
}

async fn protected_resource(web: &Web, url: &Url, challenge: &Challenge) -> Result<Option<Map<String, Value>>, String> {
    if let Some(named) = &challenge.resource_metadata {
        let named = url.join(named).map_err(|error| format!("resource_metadata: {error}"))?;
        return get(web, &named).await?.accepted("the metadata of the server").map(Some);
    }
    first_found(web, &well_known(url, "oauth-protected-resource")).await
}

async fn authorization_server(web: &Web, issuer: &str) -> Result<Option<Map<String, Value>>, String> {
    let issuer = Url::parse(issuer).map_err(|error| format!("authorization_servers: {error}"))?;
    let mut places = well_known(&issuer, "oauth-authorization-server");
    places.extend(well_known(&issuer, "openid-configuration"));
    let appended = format!("{}/.well-known/openid-configuration", issuer.as_str().trim_end_matches('/'));
    places.extend(Url::parse(&appended));
    first_found(web, &places).await
}

/// The well-known addresses of a document: with the path behind it, then without.
fn well_known(url: &Url, document: &str) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let at = |path: &str| url.join(&format!("/.well-known/{document}{path}")).ok();
    let mut places: Vec<Url> = at(path).into_iter().collect();
    if !path.is_empty() {
        places.extend(at(""));
    }
    places
}

async fn first_found(web: &Web, places: &[Url]) -> Result<Option<Map<String, Value>>, String> {
    for place in places {
        let answer = get(web, place).await?;
        if answer.is_success() && answer.body.is_some() {
            return Ok(answer.body);
        }
    }
    Ok(None)
}

/// Returns the name that a server has for itself. A token for one server must not be asked for in the name of another.
fn check_resource(url: &Url, named: &str) -> Result<String, String> {
    let is_same = Url::parse(named).is_ok_and(|named| {
        let (path, base) = (url.path().trim_end_matches('/'), named.path().trim_end_matches('/'));
        let is_below = path == base || path.strip_prefix(base).is_some_and(|rest| rest.starts_with('/'));
        named.origin() == url.origin() && is_below
    });
    if is_same { Ok(named.to_owned()) } else { Err(format!("its metadata is that of another server: {named}")) }
}

fn read(
    metadata: &Map<String, Value>,
    issuer: &str,
    resource: String,
    scope: Option<String>,
) -> Result<Authority, String> {
    let text = |key: &str| metadata.get(key).and_then(Value::as_str);
    let address = |key: &str| match text(key).map(Url::parse) {
        Some(Ok(url)) => Ok(Some(url)),
        Some(Err(error)) => Err(format!("the metadata of the authorization server: {key}: {error}")),
        None => Ok(None),
    };
    let lists = |key: &str, word: &str| {
        metadata.get(key).and_then(Value::as_array).map(|all| all.iter().any(|item| item.as_str() == Some(word)))
    };
    let own = text("issuer").unwrap_or(issuer);
    if !same_issuer(own, issuer) {
        return Err(format!("the authorization server calls itself {own}, not {issuer}"));
    }
    if lists("code_challenge_methods_supported", "S256") == Some(false) {
        return Err("the authorization server has no PKCE with S256".to_owned());
    }
    let token_endpoint = address("token_endpoint")?;
    let methods = "token_endpoint_auth_methods_supported";
    Ok(Authority {
        issuer: own.to_owned(),
        authorization_endpoint: address("authorization_endpoint")?,
        token_endpoint: token_endpoint.ok_or("the authorization server has no token_endpoint")?,
        registration_endpoint: address("registration_endpoint")?,
        device_endpoint: address("device_authorization_endpoint")?,
        resource,
        scope,
        is_issuer_returned: metadata.get("authorization_response_iss_parameter_supported") == Some(&Value::Bool(true)),
        wants_secret_in_form: lists(methods, "client_secret_basic") == Some(false),
    })
}

fn same_issuer(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// The endpoints of servers that were made before there was metadata.
fn by_convention(issuer: &str, resource: String, scope: Option<String>) -> Result<Authority, String> {
    let base = Url::parse(issuer).map_err(|error| format!("authorization_servers: {error}"))?;
    let at = |path: &str| base.join(path).map_err(|error| error.to_string());
    Ok(Authority {
        issuer: issuer.to_owned(),
        authorization_endpoint: Some(at("/authorize")?),
        token_endpoint: at("/token")?,
        registration_endpoint: Some(at("/register")?),
        device_endpoint: None,
        resource,
        scope,
        is_issuer_returned: false,
        wants_secret_in_form: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn challenges_are_read() {
        let check = |header: &str, metadata: Option<&str>, scope: Option<&str>| {
            let challenge = Challenge::read(header);
            assert_eq!(
                (challenge.resource_metadata.as_deref(), challenge.scope.as_deref()),
                (metadata, scope),
                "{header}"
            );
        };
        check(r#"Bearer resource_metadata="https://a/x", scope="a b""#, Some("https://a/x"), Some("a b"));
        check("Bearer scope=one, error=x", None, Some("one"));
        check("Basic", None, None);
    }

    #[test]
    fn documents_are_looked_for_behind_and_without_the_path() {
        let places = |url: &str| {
            let url = Url::parse(url).expect("an address");
            well_known(&url, "d").iter().map(Url::to_string).collect::<Vec<_>>()
        };
        assert_eq!(places("https://a/b/c/"), ["https://a/.well-known/d/b/c", "https://a/.well-known/d"]);
        assert_eq!(places("https://a"), ["https://a/.well-known/d"]);
    }

    #[test]
    fn a_server_cannot_ask_for_tokens_of_another() {
        let url = Url::parse("https://a/mcp/x").expect("an address");
        assert!(check_resource(&url, "https://a/mcp").is_ok() && check_resource(&url, "https://a").is_ok());
        assert!(check_resource(&url, "https://b/mcp/x").is_err() && check_resource(&url, "https://a/mc").is_err());
    }

    #[test]
    fn metadata_is_checked() {
        let check = |metadata: Value, why: &str| {
            let metadata = metadata.as_object().expect("an object");
            let read = read(metadata, "https://a", "https://r".to_owned(), None);
            assert_eq!(read.expect_err("refused"), why);
        };
        check(json!({"issuer": "https://b"}), "the authorization server calls itself https://b, not https://a");
        check(json!({"issuer": "https://a/"}), "the authorization server has no token_endpoint");
        let plain = json!({"token_endpoint": "https://a/t", "code_challenge_methods_supported": ["plain"]});
        check(plain, "the authorization server has no PKCE with S256");
    }
}
