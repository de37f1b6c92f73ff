//! Which hosts commands may reach: the lists of the settings, and the decision about one host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use url::Host;

/// The ports of an entry that names none.
const USUAL_PORTS: [u16; 2] = [443, 80];

/// Hosts that may be reached, and hosts that may not though the first list has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domains {
    allowed: Vec<Domain>,
    denied: Vec<Domain>,
}

/// An entry of a list, or what a rule is about. Names are in punycode, without a dot at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// As the settings have it.
    written: String,
    host: HostPattern,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Name(String),
    /// Every name that ends like this; it begins with a dot.
    Below(String),
    Address(IpAddr),
}

/// Why a host is not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No list has it.
    NotAllowed,
    Denied,
    /// The name leads to an address inside this machine or its network.
    Address,
    /// What is said in the tunnel is for another server.
    ServerName,
}

impl Refusal {
    /// The word for programs.
    pub fn code(self) -> &'static str {
        match self {
            Refusal::NotAllowed => "blocked-by-allowlist",
            Refusal::Denied => "blocked-by-denylist",
            Refusal::Address => "blocked-by-address",
            Refusal::ServerName => "blocked-by-sni",
        }
    }

    /// The sentence for people.
    pub fn text(self, host: &str) -> String {
        match self {
            Refusal::NotAllowed => format!("pith: {host} is not in allowedDomains"),
            Refusal::Denied => format!("pith: {host} is in deniedDomains"),
            Refusal::Address => format!("pith: {host} leads to an address that is not in allowedDomains"),
            Refusal::ServerName => format!("pith: the first message to {host} is not TLS for that name"),
        }
    }
}

impl Domains {
    /// Reads both lists. The error names the list and the entry.
    pub fn read(allowed: &[String], denied: &[String]) -> Result<Domains, String> {
        let list = |key: &str, entries: &[String]| -> Result<Vec<Domain>, String> {
            let read =
                |entry: &String| Domain::read(entry).map_err(|why| format!("sandbox.network.{key}: {entry:?} {why}"));
            entries.iter().map(read).collect()
        };
        Ok(Domains { allowed: list("allowedDomains", allowed)?, denied: list("deniedDomains", denied)? })
    }

    /// Decides whether a host may be reached, by its name alone. About one that no list has ([`Refusal::NotAllowed`])
    /// there may be a rule elsewhere.
    pub fn decide(&self, host: &Host, port: u16) -> Result<(), Refusal> {
        if self.denied.iter().any(|domain| domain.includes(host, port)) {
            return Err(Refusal::Denied);
        }
        if self.lists(host, port) { Ok(()) } else { Err(Refusal::NotAllowed) }
    }

    /// Decides whether an address that a name has led to may be connected to.
    pub fn decide_address(&self, address: IpAddr, port: u16) -> Result<(), Refusal> {
        let host = match address {
            IpAddr::V4(four) => Host::Ipv4(four),
            IpAddr::V6(six) => Host::Ipv6(six),
        };
        if is_public(address) || self.lists(&host, port) { Ok(()) } else { Err(Refusal::Address) }
    }

    /// The list as the settings have it, for texts.
    pub fn allowed(&self) -> impl Iterator<Item = &str> {
        self.allowed.iter().map(|domain| domain.written.as_str())
    }

    fn lists(&self, host: &Host, port: u16) -> bool {
        self.allowed.iter().any(|domain| domain.admits(host, port))
    }
}

impl Domain {
    /// Reads a name, or `*.` and a name of two labels, or an address, with an optional port. The error follows the entry.
    pub fn read(entry: &str) -> Result<Domain, &'static str> {
        if entry.contains("://") || entry.contains('/') {
            return Err("is an address; expected a domain");
        }
        let (name, port) = match entry.rsplit_once(':') {
            // The colons of an IPv6 address stand in brackets.
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            Some(_) | None => (entry, None),
        };
        let port = port.map(|port| port.parse().ok().filter(|port| *port != 0));
        let port = port.map(|port| port.ok_or("has a port that is not a number from 1 to 65535")).transpose()?;
        let (is_wild, rest) = match name.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, name),
        };
        if name == "*" || (is_wild && rest.split('.').count() < 2) {
            return Err("is too broad");
        }
        let is_label = |label: &str| !label.is_empty() && !label.contains(|c: char| c == '*' || c.is_whitespace());
        if !rest.starts_with('[') && !rest.split('.').all(is_label) {
            return Err("is no domain");
        }
        let host = match (is_wild, host(rest)) {
            (false, Some(Host::Domain(name))) => HostPattern::Name(name),
            (true, Some(Host::Domain(name))) => HostPattern::Below(format!(".{name}")),
            (false, Some(Host::Ipv4(four))) => HostPattern::Address(four.into()),
            (false, Some(Host::Ipv6(six))) => HostPattern::Address(six.into()),
            (true, Some(_)) | (_, None) => return Err("is no domain"),
        };
        Ok(Domain { written: entry.to_owned(), host, port })
    }

    /// Returns the entry that stands for one host and port.
    pub fn written_for(host: &Host, port: u16) -> String {
        if USUAL_PORTS.contains(&port) { host.to_string() } else { format!("{host}:{port}") }
    }

    /// Whether a connection is let through by what this allows: without a port that is 443 and 80.
    pub fn admits(&self, host: &Host, port: u16) -> bool {
        let has_port = self.port.map_or(USUAL_PORTS.contains(&port), |own| own == port);
        has_port && self.matches(host)
    }

    /// Whether a connection is held back by what this forbids: without a port that is every port.
    pub fn includes(&self, host: &Host, port: u16) -> bool {
        self.port.is_none_or(|own| own == port) && self.matches(host)
    }

    fn matches(&self, host: &Host) -> bool {
        match (&self.host, host) {
            (HostPattern::Name(listed), Host::Domain(name)) => listed == name,
            (HostPattern::Below(end), Host::Domain(name)) => name.ends_with(end),
            (HostPattern::Address(listed), Host::Ipv4(four)) => *listed == IpAddr::V4(*four),
            (HostPattern::Address(listed), Host::Ipv6(six)) => *listed == IpAddr::V6(*six),
            (HostPattern::Name(_) | HostPattern::Below(_), Host::Ipv4(_) | Host::Ipv6(_))
            | (HostPattern::Address(_), Host::Domain(_)) => false,
        }
    }
}

/// Reads a host as it stands in an address: a name becomes punycode in small letters and loses a dot at its end, and
/// whatever the system would take for an address is one. `None` if it is no host.
pub fn host(text: &str) -> Option<Host> {
    match Host::parse(text).ok()? {
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(&name);
            (!name.is_empty()).then(|| Host::Domain(name.to_owned()))
        }
        address => Some(address),
    }
}

/// Whether an address is one of the internet, not of this machine, its network or the services beside it.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => is_public_four(four),
        IpAddr::V6(six) => match carried(six) {
            Some(four) => is_public_four(four),
            None => is_public_six(six),
        },
    }
}

fn is_public_four(four: Ipv4Addr) -> bool {
    let [a, b, c, _] = four.octets();
    let is_shared = a == 100 && (64..128).contains(&b);
    let is_reserved = a == 0 || a >= 240 || (a == 192 && b == 0 && c == 0) || (a == 198 && (18..20).contains(&b));
    !(four.is_loopback()
        || four.is_private()
        || four.is_link_local()
        || four.is_multicast()
        || four.is_documentation()
        || is_shared
        || is_reserved)
}

fn is_public_six(six: Ipv6Addr) -> bool {
    // 2000::/3 is what is given out; examples in documents come from one part of it.
    let [first, second, ..] = six.segments();
    (first & 0xE000) == 0x2000 && !(first == 0x2001 && second == 0x0DB8)
}

/// The IPv4 address that an IPv6 address stands for: mapped, translated or tunnelled.
fn carried(six: Ipv6Addr) -> Option<Ipv4Addr> {
    let four = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match six.segments() {
        [0, 0, 0, 0, 0, 0xFFFF, high, low] | [0x64, 0xFF9B, 0, 0, 0, 0, high, low] => Some(four(high, low)),
        [0x2002, high, low, ..] => Some(four(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domains(allowed: &[&str], denied: &[&str]) -> Domains {
        let list = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>();
        Domains::read(&list(allowed), &list(denied)).expect("lists")
    }

    #[test]
    fn names_are_compared_in_punycode_and_denied_before_they_are_allowed() {
        let lists = domains(
            &["github.com", "*.example.org", "git.example.net:22", "bücher.example", "127.0.0.1:8080", "[::1]:8080"],
            &["secret.example.org", "*.bad.example.org"],
        );
        let check = |name: &str, port: u16, expected: Result<(), Refusal>| {
            assert_eq!(lists.decide(&host(name).expect("a host"), port), expected, "{name}:{port}");
        };
        for (name, port) in [
            ("github.com", 443),
            ("GitHub.com.", 80),
            ("a.example.org", 443),
            ("a.b.example.org", 443),
            ("git.example.net", 22),
            ("xn--bcher-kva.example", 443),
            ("BÜCHER.example", 443),
            ("127.0.0.1", 8080),
            ("2130706433", 8080),
            ("[::1]", 8080),
        ] {
            check(name, port, Ok(()));
        }
        for (name, port) in [
            ("github.com", 22),
            ("api.github.com", 443),
            ("notgithub.com", 443),
            ("github.com.evil.net", 443),
            ("example.org", 443),
            ("git.example.net", 443),
            ("127.0.0.1", 80),
            ("127.0.0.2", 8080),
            ("bucher.example", 443),
        ] {
            check(name, port, Err(Refusal::NotAllowed));
        }
        for name in ["secret.example.org", "SECRET.example.org.", "x.bad.example.org"] {
            check(name, 443, Err(Refusal::Denied));
        }
    }

    #[test]
    fn a_name_that_leads_inside_is_refused_unless_the_address_is_listed() {
        let lists = domains(&["example.org", "10.0.0.7", "[fd00::7]:8443"], &[]);
        let check = |address: &str, port: u16, is_allowed: bool| {
            let decided = lists.decide_address(address.parse().expect("an address"), port);
            assert_eq!(decided, if is_allowed { Ok(()) } else { Err(Refusal::Address) }, "{address}");
        };
        for address in ["8.8.8.8", "93.184.216.34", "2606:2800:220:1::1", "::ffff:8.8.8.8", "64:ff9b::808:808"] {
            check(address, 443, true);
        }
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.0.0.8",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fd00:ec2::254",
            "fec0::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
        ] {
            check(address, 443, false);
        }
        check("10.0.0.7", 443, true);
        check("10.0.0.7", 8080, false);
        check("fd00::7", 8443, true);
    }
}
