//! What the wire modules share: addresses, credentials, compat switches and the
//! borrowed pieces of stream events.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use pith_protocol::{CacheRetention, ErrorKind, LlmCall, Model, ToolSpec, Usage};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Headers, RequestInput};
use crate::failure::Fault;
use crate::network;
use crate::prepare::Part;
use crate::schema;

/// The product as servers see it.
const USER_AGENT: &str = concat!("pith/", env!("CARGO_PKG_VERSION"));

/// How a key is presented unless the configuration says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStyle {
    Bearer,
    /// The key alone, in a header of its own.
    Header(&'static str),
}

/// Returns the headers of a request to the model: common ones, credentials, attribution. Configured ones are applied
/// by the caller, last.
pub fn headers(input: &RequestInput<'_>, style: KeyStyle) -> Headers {
    let (call, credentials) = (input.call, input.credentials);
    let platform = format!("{USER_AGENT} ({}; {})", std::env::consts::OS, std::env::consts::ARCH);
    let mut headers = Headers::new(&platform);
    if let Some(key) = &credentials.api_key {
        let style = if credentials.bearer { KeyStyle::Bearer } else { style };
        // User name and password of the address go into the same header, and were put there on purpose.
        let is_free = !network::has_credentials(&call.model.base_url);
        if is_free && (style == KeyStyle::Bearer || credentials.auth_header) {
            headers.set("authorization", &format!("Bearer {key}"));
        }
        if let KeyStyle::Header(name) = style {
            headers.set(name, key);
        }
    }
    if is_host(&call.model, "opencode.ai") {
        headers.set("x-opencode-client", "pith");
        if let Some(id) = session_id(call) {
            headers.set("x-opencode-session", id);
        }
    }
    if input.options.attribution {
        attribute(&call.model, &mut headers);
    }
    headers
}

/// Names the product to aggregators that keep statistics.
fn attribute(model: &Model, headers: &mut Headers) {
    if is_openrouter(model) {
        headers.set("x-openrouter-title", "pith");
        headers.set("x-openrouter-categories", "cli-agent");
    }
    if is_host(model, "api.nvidia.com") {
        headers.set("x-billing-invoke-origin", "pith");
    }
}

/// Returns the session id, unless nothing may be linked to the session.
pub fn session_id(call: &LlmCall) -> Option<&str> {
    call.session_id.as_deref().filter(|_| call.cache != CacheRetention::None)
}

/// Returns the model's base URL without a trailing slash, `{NAME}` filled in from the environment.
pub fn base_url(model: &Model) -> Result<String, Fault> {
    let bad = |text: String| Fault::new(ErrorKind::InvalidRequest, text);
    let mut url = String::with_capacity(model.base_url.len());
    let mut rest = model.base_url.trim().trim_end_matches('/');
    if rest.is_empty() {
        return Err(bad(format!("No base URL for model {}/{}", model.provider, model.id)));
    }
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, tail)) = after.split_once('}') else { break };
        let value = std::env::var(name).ok().filter(|value| !value.is_empty());
        let value =
            value.ok_or_else(|| bad(format!("Provider {} needs the variable {name} to be set", model.provider)))?;
        url.push_str(before);
        url.push_str(&value);
        rest = tail;
    }
    url.push_str(rest);
    match network::parse_address(&url) {
        Ok(_) => Ok(url),
        Err(reason) => {
            let shown = network::without_credentials(&model.base_url);
            Err(bad(format!("Invalid baseUrl \"{shown}\" of provider {}: {reason}", model.provider)))
        }
    }
}

/// Whether the model is served from a host with this name or below it.
pub fn is_host(model: &Model, name: &str) -> bool {
    let host = model.base_url.split("://").nth(1).unwrap_or(&model.base_url);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
    host == name || host.strip_suffix(name).is_some_and(|prefix| prefix.ends_with('.'))
}

/// Whether requests go through OpenRouter.
pub fn is_openrouter(model: &Model) -> bool {
    model.provider == "openrouter" || is_host(model, "openrouter.ai")
}

/// How a server learns which session a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// OpenAI's session header and those beside it.
    Session,
    /// Only those beside it.
    NoSession,
    /// OpenRouter's header.
    Router,
}

impl Affinity {
    /// Reads the `sessionAffinityFormat` of a model; the default depends on its host.
    pub fn of(model: &Model) -> Self {
        let default = if is_openrouter(model) { "openrouter" } else { "openai" };
        match compat(model, "sessionAffinityFormat").and_then(Value::as_str).unwrap_or(default) {
            "openrouter" => Affinity::Router,
            "openai-nosession" => Affinity::NoSession,
            _ => Affinity::Session,
        }
    }
}

/// Returns a compat switch of the model.
pub fn compat<'a>(model: &'a Model, key: &str) -> Option<&'a Value> {
    model.compat.as_ref()?.get(key)
}

/// Whether a compat switch of the model is on.
pub fn flag(model: &Model, key: &str, default: bool) -> bool {
    compat(model, key).and_then(Value::as_bool).unwrap_or(default)
}

/// Returns the strict form of a tool's schema, where the tool asks for it and has one.
pub fn strict_schema(tool: &ToolSpec, is_supported: bool) -> Option<Value> {
    if is_supported && tool.prefer_strict { schema::strict(&tool.parameters) } else { None }
}

/// A string of an event, borrowed unless it has escapes.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl Text<'_> {
    /// Returns the string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A string of an event, or something else that is read over.
#[derive(Debug, Default)]
pub struct Loose<'a>(pub Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Loose<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Loose<'de>, E> {
                Ok(Loose(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> Result<Loose<'de>, E> {
                Ok(Loose(Some(Cow::Owned(text.to_owned()))))
            }

            fn visit_unit<E>(self) -> Result<Loose<'de>, E> {
                Ok(Loose(None))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Loose<'de>, E> {
                Ok(Loose(None))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Loose<'de>, E> {
                Ok(Loose(None))
            }

            fn visit_u64<E>(self, _: u64) -> Result<Loose<'de>, E> {
                Ok(Loose(None))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Loose<'de>, E> {
                Ok(Loose(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Loose<'de>, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Loose(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Loose(None))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// A token count as servers send it: whole, fractional, negative, absurd, null, or not a number at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count(pub Option<u64>);

impl Count {
    /// Returns the count, zero when there is none.
    pub fn or_zero(self) -> u64 {
        self.0.unwrap_or(0)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Value::deserialize(deserializer)?.as_f64();
        let believed = |number: f64| number.clamp(0.0, Usage::MAX_COUNT as f64) as u64;
        Ok(Count(number.filter(|number| number.is_finite()).map(believed)))
    }
}

/// What a bill says an answer has cost, among the counts of its tokens. Other servers have other things there.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Bill {
    cost: Value,
    is_byok: Value,
    cost_details: Value,
}

impl Bill {
    /// Returns the sum, where the server of the model is known to say it. Who brings a key pays the aggregator and,
    /// beside it, the provider.
    pub fn total(&self, model: &Model) -> Option<f64> {
        let amount = |value: &Value| value.as_f64().filter(|amount| amount.is_finite() && *amount >= 0.0);
        let cost = amount(&self.cost).filter(|_| is_openrouter(model))?;
        let part = |name: &str| self.cost_details.get(name);
        match self.is_byok {
            Value::Bool(false) => Some(cost),
            Value::Bool(true) => Some(
                cost + match part("upstream_inference_cost")? {
                    Value::Null => {
                        amount(part("upstream_inference_prompt_cost")?)?
                            + amount(part("upstream_inference_completions_cost")?)?
                    }
                    upstream => amount(upstream)?,
                },
            ),
            _ => None,
        }
    }
}

/// The first element of a list; the others are read over.
pub struct First<T>(pub Option<T>);

impl<T> Default for First<T> {
    fn default() -> Self {
        First(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
            type Value = First<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list or null")
            }

            fn visit_unit<E>(self) -> Result<First<T>, E> {
                Ok(First(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First<T>, A::Error> {
                let first = list.next_element()?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }
        deserializer.deserialize_any(List(PhantomData))
    }
}

/// Returns texts of parts joined by line feeds.
pub fn joined_text(parts: &[Part<'_>]) -> String {
    let mut text = String::new();
    let mut is_first = true;
    for part in parts {
        if let Part::Text(piece) = part {
            if !std::mem::take(&mut is_first) {
                text.push('\n');
            }
            text.push_str(piece);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(base_url: &str) -> Model {
        Model { base_url: base_url.into(), provider: "p".into(), id: "m".into(), ..Model::default() }
    }

    #[test]
    fn hosts_are_compared_by_name() {
        assert!(is_host(&at("https://api.openai.com/v1"), "api.openai.com"));
        assert!(is_host(&at("https://eu.openrouter.ai:8443/api"), "openrouter.ai"));
        assert!(!is_host(&at("https://notopenrouter.ai/api"), "openrouter.ai"));
        assert!(!is_host(&at("http://localhost:1/openrouter.ai"), "openrouter.ai"));
    }

    #[test]
    fn base_urls_are_filled_in() {
        let base_url = |model: &Model| base_url(model).map_err(|fault| fault.text);
        assert_eq!(base_url(&at("http://h/v1/")).as_deref(), Ok("http://h/v1"));
        assert_eq!(
            base_url(&at("https://h/{PITH_TEST_SURELY_UNSET}/x")),
            Err("Provider p needs the variable PITH_TEST_SURELY_UNSET to be set".into())
        );
        assert_eq!(base_url(&at(" ")), Err("No base URL for model p/m".into()));
    }
}
