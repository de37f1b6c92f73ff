//! The member `oauth` of an entry: how to sign in to the server.

use serde_json::Value;
use url::Url;

use super::entry::{ServerConfig, Transport};
use super::fields::Fields;
use crate::oauth::is_loopback;

/// How to sign in. Texts still contain their variables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OAuth {
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    pub client_name: Option<String>,
    pub scope: Option<String>,
    pub callback_port: Option<u16>,
    pub callback_url: Option<String>,
    pub metadata_url: Option<String>,
}

impl OAuth {
    /// Reads the member; `None` if the entry wants no sign-in.
    pub fn read(entry: &Fields<'_>) -> Result<Option<Self>, String> {
        let is_off = |key: &str| entry.0.get(key) == Some(&Value::Bool(false));
        if is_off("oauth") || is_off("auth") {
            return Ok(None);
        }
        let members = match entry.0.get("oauth") {
            None | Some(Value::Null | Value::Bool(true)) => return Ok(Some(OAuth::default())),
            Some(Value::Object(members)) => members,
            Some(_) => return Err("oauth: expected an object or false".to_owned()),
        };
        let fields = Fields(members);
        let text = |key: &str| fields.text(key).map_err(|why| format!("oauth.{why}"));
        let port = fields.number("callbackPort").map_err(|why| format!("oauth.{why}"))?;
        let is_port = |port: &f64| port.fract() == 0.0 && (1.0..=65535.0).contains(port);
        if port.is_some_and(|port| !is_port(&port)) {
            return Err("oauth.callbackPort: it is no port".to_owned());
        }
        Ok(Some(OAuth {
            client_id: text("clientId")?,
            client_secret: text("clientSecret")?,
            client_name: text("clientName")?,
            scope: text("scope")?,
            callback_port: port.map(|port| port as u16),
            callback_url: text("callbackUrl")?,
            metadata_url: text("authServerMetadataUrl")?,
        }))
    }

    /// The address of the authorization server's metadata, where the user names it.
    pub fn metadata_url(&self) -> Result<Option<Url>, String> {
        let parse = |url: &String| Url::parse(url).map_err(|error| format!("oauth.authServerMetadataUrl: {error}"));
        self.metadata_url.as_ref().map(parse).transpose()
    }
}

impl ServerConfig {
    /// The command with which the user signs in to the server; `None` if its entry has credentials, wants no sign-in, or
    /// has an address where everybody on the way could read the token.
    pub fn login_command(&self) -> Option<String> {
        let Transport::Remote(remote) = &self.transport else { return None };
        let is_signed = remote.bearer.is_some()
            || remote.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let is_readable = Url::parse(&remote.url).is_ok_and(|url| url.scheme() == "http" && !is_loopback(&url));
        if remote.oauth.is_none() || is_signed || is_readable {
            return None;
        }
        // Of what a name may contain, only spaces mean something to a shell.
        let quote = if self.name.contains(' ') { "\"" } else { "" };
        Some(format!("pith mcp login {quote}{}{quote}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Source, TimeoutUnit, read_entry};
    use serde_json::json;

    #[test]
    fn the_command_to_sign_in_can_be_run() {
        let command = |name: &str, entry: Value| {
            read_entry(name, &entry, Source::User, TimeoutUnit::Seconds).expect("usable").login_command()
        };
        let far = json!({"url": "https://example.com/mcp"});
        assert_eq!(command("my-tracker", far.clone()).as_deref(), Some("pith mcp login my-tracker"));
        assert_eq!(command("my tracker", far).as_deref(), Some("pith mcp login \"my tracker\""));
        assert!(command("s", json!({"url": "http://127.0.0.1:1/mcp"})).is_some());
        assert_eq!(command("s", json!({"url": "http://example.com/mcp"})), None);
        assert_eq!(command("s", json!({"url": "https://example.com", "bearerToken": "t"})), None);
        assert_eq!(command("s", json!({"url": "https://example.com", "oauth": false})), None);
        assert_eq!(command("s", json!({"command": "sh"})), None);
    }

    #[test]
    fn the_member_is_checked() {
        let read = |value: Value| OAuth::read(&Fields(value.as_object().expect("an object")));
        assert_eq!(read(json!({})), Ok(Some(OAuth::default())));
        assert_eq!((read(json!({"oauth": false})), read(json!({"auth": false}))), (Ok(None), Ok(None)));
        let check = |oauth: Value, why: &str| assert_eq!(read(json!({ "oauth": oauth })), Err(why.to_owned()));
        check(json!("yes"), "oauth: expected an object or false");
        check(json!({"clientId": 7}), "oauth.clientId: expected a string, got number");
        check(json!({"callbackPort": 70000}), "oauth.callbackPort: it is no port");
        let given = read(json!({"oauth": {"clientId": "c", "callbackPort": 8123}})).expect("usable").expect("on");
        assert_eq!((given.client_id.as_deref(), given.callback_port), (Some("c"), Some(8123)));
    }
}
