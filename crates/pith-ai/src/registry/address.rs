//! Tells servers of this machine or network from servers of the internet.

use std::net::IpAddr;

/// Whether an address is on this machine or in a private network, where servers seldom want a key.
pub(super) fn is_private(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    match host.parse() {
        Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified(),
        Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
        Err(_) => {
            let host = host.trim_end_matches('.').to_ascii_lowercase();
            host == "localhost" || host.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses() {
        let private = [
            "http://127.0.0.1:11434/v1",
            "http://localhost:8080",
            "HTTP://LOCALHOST/v1",
            "http://box.localhost./v1",
            "http://[::1]:8080/v1",
            "http://user:pass@192.168.1.7:80/v1",
            "http://10.0.0.1",
            "http://172.16.0.1?x",
            "http://169.254.1.1#x",
            "http://0.0.0.0:1",
            "http://[fd00::1]/v1",
            "localhost:1234",
        ];
        let public = [
            "https://example.com/v1",
            "https://localhost.example.com/v1",
            "http://8.8.8.8/v1",
            "https://127.0.0.1.example.com",
            "https://example.com/@127.0.0.1",
            "http://172.32.0.1",
            "http://[2001:db8::1]/",
            "",
        ];
        for address in private {
            assert!(is_private(address), "{address}");
        }
        for address in public {
            assert!(!is_private(address), "{address}");
        }
    }
}
