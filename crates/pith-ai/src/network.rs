//! What can be seen of the way to a server without taking it: addresses, proxies
//! and certificate files that cannot be right.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper_util::client::proxy::matcher::Matcher;
use percent_encoding::percent_decode_str;
use pith_config::{Diagnostic, Environment};
use url::{ParseError, Url};

/// Variables that name a proxy, first those of one scheme. The first that is set counts.
const PROXIES: [&str; 6] = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Where a proxy stands that no variable names.
const SETTING: &str = "the setting httpProxy";

/// Variables that name certificate files.
pub const CERTIFICATE_FILES: [&str; 2] = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"];

/// Parses the address of a server, or says what is wrong with it.
pub fn parse_address(address: &str) -> Result<Url, String> {
    match Url::parse(address) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        Ok(_) | Err(ParseError::RelativeUrlWithoutBase) => Err("it must begin with http:// or https://".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns an address without its credentials, for people. It need not be valid.
pub fn without_credentials(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let Some(at) = rest[..end].rfind('@') else { return address.to_owned() };
    let separator = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{separator}{}", &rest[at + 1..])
}

/// Returns where an address leads, for logs: without credentials, query and fragment.
pub fn place(address: &str) -> String {
    let shown = without_credentials(address);
    shown.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Whether an address has a user name or a password of its own.
pub fn has_credentials(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| !url.username().is_empty() || url.password().is_some())
}

/// Returns the credentials of an address as they may show up in a text: as written, decoded, and encoded for a header.
pub fn address_secrets(address: &str) -> Vec<String> {
    let Some(url) = Url::parse(address).ok().filter(|_| has_credentials(address)) else { return Vec::new() };
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (user, password) = (decode(url.username()), url.password().map(decode).unwrap_or_default());
    let mut secrets = vec![BASE64_STANDARD.encode(format!("{user}:{password}"))];
    secrets.extend(url.password().map(str::to_owned).filter(|written| *written != password));
    secrets.push(password);
    secrets.retain(|secret| !secret.is_empty());
    secrets
}

/// A proxy and where it is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// A variable, or the setting.
    pub place: &'static str,
    pub value: String,
}

impl Proxy {
    /// Whether it stands in the settings.
    pub fn is_setting(&self) -> bool {
        self.place == SETTING
    }

    /// Whether requests to addresses of a scheme may go through it.
    fn serves(&self, scheme: &str) -> bool {
        let variable = self.place.to_ascii_lowercase();
        !variable.starts_with("http") || variable.strip_suffix("_proxy") == Some(scheme)
    }

    /// Whether requests can go through it.
    fn is_usable(&self) -> bool {
        let anywhere = http::Uri::from_static("http://model.test/");
        Matcher::builder().all(self.value.clone()).build().intercept(&anywhere).is_some()
    }

    /// Returns why requests cannot go through it. The value may hold a password and is shown without.
    pub fn problem(&self) -> Option<String> {
        if self.is_usable() {
            return None;
        }
        let shown = without_credentials(&self.value);
        let expected = "expected http://, https:// or socks5:// with a host and a port";
        Some(format!("{} names a proxy that cannot be used: {shown}: {expected}", self.place))
    }
}

/// Returns the proxies that requests of a scheme use.
pub fn proxies_of(scheme: &str, environment: &Environment, setting: Option<&str>) -> Vec<Proxy> {
    proxies(environment, setting).into_iter().filter(|proxy| proxy.serves(scheme)).collect()
}

/// Returns the proxies in use: those of the environment, else the one of the settings.
pub fn proxies(environment: &Environment, setting: Option<&str>) -> Vec<Proxy> {
    let named = PROXIES.iter().filter_map(|place| Some(Proxy { place, value: environment.get(place)? }));
    let found: Vec<Proxy> = named.collect();
    match setting {
        Some(value) if found.is_empty() => vec![Proxy { place: SETTING, value: value.to_owned() }],
        Some(_) | None => found,
    }
}

/// Finds the proxy that an address matches.
pub fn proxy_for(url: &Url, environment: &Environment, setting: Option<&str>) -> Option<Proxy> {
    let proxy = proxies_of(url.scheme(), environment, setting).into_iter().next()?;
    let exceptions = environment.get("NO_PROXY").or_else(|| environment.get("no_proxy")).unwrap_or_default();
    let matcher = Matcher::builder().all(proxy.value.clone()).no(exceptions).build();
    matcher.intercept(&url.as_str().parse().ok()?)?;
    Some(Proxy { place: proxy.place, value: without_credentials(&proxy.value) })
}

/// Proxies that cannot be used and certificate files that cannot be read.
pub fn diagnostics(environment: &Environment, proxy: Option<&str>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for problem in proxies(environment, proxy).iter().filter_map(Proxy::problem) {
        found.push(Diagnostic { path: None, ..Diagnostic::warning("network_proxy", PathBuf::new(), problem) });
    }
    for (name, path, reason) in unreadable_certificates(environment) {
        let message = format!("{name} names a certificate file that cannot be read: {}: {reason}", path.display());
        found.push(Diagnostic::warning("network_certificates", path, message));
    }
    found
}

/// Returns the certificate files that are named and cannot be opened, each with its variable and the reason.
pub fn unreadable_certificates(environment: &Environment) -> Vec<(&'static str, PathBuf, String)> {
    let named = CERTIFICATE_FILES.iter().filter_map(|name| Some((*name, PathBuf::from(environment.get(name)?))));
    named.filter_map(|(name, path)| Some((name, path.clone(), unreadable(&path)?))).collect()
}

fn unreadable(path: &Path) -> Option<String> {
    match std::fs::File::open(path) {
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_that_cannot_be_used_are_named_without_their_password() {
        let problem = |value: &str| Proxy { place: "HTTPS_PROXY", value: value.into() }.problem();
        for value in ["http://proxy.test:3128", "proxy.test:3128", "socks5h://user:secret@proxy.test", "https://p.test"]
        {
            assert_eq!(problem(value), None, "{value}");
        }
        assert_eq!(
            problem("gopher://user:secret@proxy.test").as_deref(),
            Some(
                "HTTPS_PROXY names a proxy that cannot be used: gopher://proxy.test: expected http://, https:// or \
                 socks5:// with a host and a port"
            )
        );
        assert!(problem("http://").is_some());
    }

    #[test]
    fn credentials_are_not_shown() {
        for (address, shown) in [
            ("http://user:secret@host:1/v1?x=@", "http://host:1/v1?x=@"),
            ("user:secret@host/v1", "host/v1"),
            ("https://host/@/v1", "https://host/@/v1"),
            ("https://a@b@host", "https://host"),
        ] {
            assert_eq!(without_credentials(address), shown);
        }
    }

    #[test]
    fn the_environment_goes_before_the_settings() {
        let environment = Environment::of("/", [("HTTP_PROXY", "http://a:1"), ("ALL_PROXY", "http://b:2")]);
        let places = |found: Vec<Proxy>| found.into_iter().map(|proxy| proxy.place).collect::<Vec<_>>();
        assert_eq!(places(proxies(&environment, Some("http://c:3"))), ["HTTP_PROXY", "ALL_PROXY"]);
        assert_eq!(places(proxies(&Environment::of("/", []), Some("http://c:3"))), [SETTING]);
    }

    #[test]
    fn an_address_goes_through_the_proxy_of_its_scheme() {
        let environment = Environment::of(
            "/",
            [("HTTPS_PROXY", "http://u:p@a:1"), ("ALL_PROXY", "socks5://b:2"), ("NO_PROXY", "near.test,10.0.0.0/8")],
        );
        let through = |address: &str, environment: &Environment, setting| {
            let proxy = proxy_for(&Url::parse(address).expect("an address"), environment, setting)?;
            Some((proxy.place, proxy.value))
        };
        let named = |place, value: &str| Some((place, value.to_owned()));
        assert_eq!(through("https://far.test", &environment, None), named("HTTPS_PROXY", "http://a:1"));
        assert_eq!(through("http://far.test", &environment, Some("http://c")), named("ALL_PROXY", "socks5://b:2"));
        assert_eq!(through("https://api.near.test", &environment, None), None);
        assert_eq!(through("https://10.1.2.3", &environment, None), None);
        let empty = Environment::of("/", []);
        let setting = named(SETTING, "http://c");
        assert_eq!(through("https://far.test", &empty, Some("http://c")), setting);
        assert_eq!(through("https://far.test", &empty, None), None);
    }

    #[test]
    fn certificate_files_that_are_not_there_are_found() {
        let environment = Environment::of("/", [("NODE_EXTRA_CA_CERTS", "/no/such/file.pem"), ("SSL_CERT_FILE", "/")]);
        let found = diagnostics(&environment, None);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.starts_with("NODE_EXTRA_CA_CERTS names a certificate file that cannot be read: /no/"));
    }
}
