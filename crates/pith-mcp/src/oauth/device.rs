//! Sign-in with a code that the user types into a browser on any machine (RFC 8628).

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{sleep, timeout};
use url::Url;

use super::exchange::{Answer, is_loopback, post_form};
use super::login::{Grant, Login, with_scope};
use super::store::StoredSignIn;

pub const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Between two questions whether the user has signed in, where the server names no time; added when it wants fewer.
const INTERVAL: Duration = Duration::from_secs(5);
/// How long a code is good for, where the server does not say.
const LIFETIME: Duration = Duration::from_secs(15 * 60);
const WHAT: &str = "the device authorization";

/// What the user has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCode {
    /// The page to open.
    pub page: String,
    /// What to type there.
    pub code: String,
}

impl Login {
    /// Shows a code and waits until somebody has typed it in.
    pub(super) async fn with_device(
        &self,
        sign_in: &mut StoredSignIn,
        show: &mut (dyn FnMut(&DeviceCode) + Send),
    ) -> Result<Map<String, Value>, String> {
        let authority = self.authority(sign_in).await?;
        let endpoint = authority.device_endpoint.clone();
        let endpoint = endpoint.ok_or("the authorization server takes no device codes: sign in without --device")?;
        let client = self.client(sign_in, &authority, &Grant::Device).await?;
        let mut fields = vec![("resource", authority.resource.as_str())];
        let scope = self.scope(sign_in, &authority);
        fields.extend(scope.as_deref().map(|scope| ("scope", scope)));
        let authorization = client.authorize(&authority, &mut fields);
        let begun = post_form(&self.web, &endpoint, &fields, authorization).await?;
        let begun = Begun::read(&begun.accepted(WHAT)?)?;
        show(&begun.shown);
        let mut interval = begun.interval;
        let polling = async {
            loop {
                sleep(interval).await;
                let mut fields = vec![
                    ("grant_type", GRANT_TYPE),
                    ("device_code", begun.device_code.as_str()),
                    ("resource", authority.resource.as_str()),
                ];
                let authorization = client.authorize(&authority, &mut fields);
                let answer = post_form(&self.web, &authority.token_endpoint, &fields, authorization).await?;
                match Polled::of(answer) {
                    Polled::Done(outcome) => return outcome,
                    Polled::Pending => {}
                    Polled::TooOften => interval += INTERVAL,
                }
            }
        };
        let minutes = begun.lifetime.as_secs().div_ceil(60);
        let tokens = timeout(begun.lifetime, polling).await;
        let tokens = tokens.map_err(|_| format!("nobody signed in within {minutes} minutes"))??;
        Ok(with_scope(tokens, scope))
    }
}

/// A sign-in that the authorization server has begun.
#[derive(Debug, PartialEq)]
struct Begun {
    shown: DeviceCode,
    device_code: String,
    interval: Duration,
    lifetime: Duration,
}

impl Begun {
    fn read(answer: &Map<String, Value>) -> Result<Self, String> {
        let text = |key: &str| answer.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let needed = |key: &str| text(key).map(str::to_owned).ok_or_else(|| format!("{WHAT}: no {key} in the answer"));
        let seconds = |key: &str| {
            let seconds = answer.get(key).and_then(Value::as_f64).filter(|seconds| (0.0..=86_400.0).contains(seconds));
            seconds.map(Duration::from_secs_f64)
        };
        let page = needed("verification_uri")?;
        let url = Url::parse(&page).map_err(|error| format!("{WHAT}: verification_uri: {error}"))?;
        if url.scheme() != "https" && !is_loopback(&url) {
            return Err(format!("{}: a sign-in needs https://", url.origin().ascii_serialization()));
        }
        Ok(Begun {
            shown: DeviceCode { page, code: needed("user_code")? },
            device_code: needed("device_code")?,
            interval: seconds("interval").unwrap_or(INTERVAL),
            lifetime: seconds("expires_in").unwrap_or(LIFETIME),
        })
    }
}

/// What the token endpoint says while the user is at it.
#[derive(Debug, PartialEq)]
enum Polled {
    Done(Result<Map<String, Value>, String>),
    Pending,
    TooOften,
}

impl Polled {
    fn of(answer: Answer) -> Self {
        let error = answer.body.as_ref().and_then(|body| body.get("error")).and_then(Value::as_str);
        match error.filter(|_| !answer.is_success()) {
            Some("authorization_pending") => Polled::Pending,
            Some("slow_down") => Polled::TooOften,
            Some("expired_token") => Polled::Done(Err("the code has expired".to_owned())),
            _ => Polled::Done(answer.accepted("the token endpoint")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn what_the_server_begins_is_checked() {
        let good = json!({"device_code": "d", "user_code": "A-B", "verification_uri": "https://a/device"});
        let begun = Begun::read(&object(good.clone())).expect("usable");
        assert_eq!((begun.interval, begun.lifetime), (INTERVAL, LIFETIME));
        assert_eq!(begun.shown, DeviceCode { page: "https://a/device".into(), code: "A-B".into() });
        let check = |key: &str, value: Value, why: &str| {
            let mut answer = object(good.clone());
            answer.insert(key.to_owned(), value);
            assert_eq!(Begun::read(&answer), Err(why.to_owned()));
        };
        check("user_code", json!(7), "the device authorization: no user_code in the answer");
        check("device_code", json!(""), "the device authorization: no device_code in the answer");
        check("verification_uri", json!("http://a/device"), "http://a: a sign-in needs https://");
    }

    #[test]
    fn the_server_says_when_to_ask_again() {
        let polled = |status: u16, body: Value| Polled::of(Answer { status, body: Some(object(body)) });
        assert_eq!(polled(400, json!({"error": "authorization_pending"})), Polled::Pending);
        assert_eq!(polled(400, json!({"error": "slow_down"})), Polled::TooOften);
        let failed = |why: &str| Polled::Done(Err(why.to_owned()));
        assert_eq!(polled(400, json!({"error": "expired_token"})), failed("the code has expired"));
        let denied = json!({"error": "access_denied", "error_description": "not you"});
        assert_eq!(polled(400, denied), failed("the token endpoint: not you (400)"));
        let token = json!({"access_token": "t"});
        assert_eq!(polled(200, token.clone()), Polled::Done(Ok(object(token))));
    }
}
