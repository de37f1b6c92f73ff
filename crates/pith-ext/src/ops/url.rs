//! URLs by the WHATWG rules.

use serde_json::json;
use url::Url;

/// Returns the parts of a URL as JSON; `None` if it is invalid.
pub fn parse(text: &str, base: Option<&str>) -> Option<String> {
    let url = match base {
        Some(base) => Url::parse(base).ok()?.join(text).ok()?,
        None => Url::parse(text).ok()?,
    };
    Some(parts(&url))
}

/// Returns the parts after one of them was set. Invalid values are ignored.
pub fn set(href: &str, part: &str, value: &str) -> String {
    let Ok(mut url) = Url::parse(href) else { return json!({ "href": href }).to_string() };
    // The setters of URL never fail in JavaScript.
    let _ = set_part(&mut url, part, value);
    parts(&url)
}

fn set_part(url: &mut Url, part: &str, value: &str) -> Result<(), ()> {
    let failed = |_| ();
    match part {
        "protocol" => url.set_scheme(value.trim_end_matches(':')),
        "username" => url.set_username(value),
        "password" => url.set_password(Some(value).filter(|value| !value.is_empty())),
        "host" => match value.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() => {
                url.set_host(Some(host)).map_err(failed)?;
                url.set_port(port.parse().ok())
            }
            _ => url.set_host(Some(value)).map_err(failed),
        },
        "hostname" => url.set_host(Some(value)).map_err(failed),
        "port" => url.set_port(value.parse().ok()),
        "pathname" => {
            url.set_path(value);
            Ok(())
        }
        "search" => {
            url.set_query(Some(value.trim_start_matches('?')).filter(|query| !query.is_empty()));
            Ok(())
        }
        "hash" => {
            url.set_fragment(Some(value.trim_start_matches('#')).filter(|hash| !hash.is_empty()));
            Ok(())
        }
        _ => Ok(()),
    }
}

fn parts(url: &Url) -> String {
    let prefixed = |mark: &str, part: Option<&str>| match part {
        Some(part) if !part.is_empty() => format!("{mark}{part}"),
        _ => String::new(),
    };
    let port = url.port().map(|port| port.to_string()).unwrap_or_default();
    let hostname = url.host_str().unwrap_or_default();
    let host = if port.is_empty() { hostname.to_owned() } else { format!("{hostname}:{port}") };
    json!({
        "href": url.as_str(),
        "origin": url.origin().ascii_serialization(),
        "protocol": format!("{}:", url.scheme()),
        "username": url.username(),
        "password": url.password().unwrap_or_default(),
        "host": host,
        "hostname": hostname,
        "port": port,
        "pathname": url.path(),
        "search": prefixed("?", url.query()),
        "hash": prefixed("#", url.fragment()),
    })
    .to_string()
}
