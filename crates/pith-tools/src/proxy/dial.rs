//! Where a request wants to go, and the connection there if it may.

use std::net::{IpAddr, SocketAddr};

use hyper::body::Incoming;
use hyper::{Method, Request};
use pith_sandbox::domains::{self, Domains, Refusal};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use url::Host;

use super::{CONNECT_LIMIT, Gate};
use crate::hosts::HostVerdict;

/// The port of an `http` address that names none.
const HTTP_PORT: u16 = 80;

/// A host and a port that a request names.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub host: Host,
    pub port: u16,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum NotReached {
    Refused(Refused),
    Unreachable(String),
}

/// A refusal as it is answered: a word for programs and a sentence for people.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub code: &'static str,
    pub text: String,
}

impl Target {
    /// Reads `CONNECT host:port`, or an `http` address; `None` for anything else.
    pub fn of(request: &Request<Incoming>) -> Option<Target> {
        let (uri, is_tunnel) = (request.uri(), request.method() == Method::CONNECT);
        let port = if is_tunnel { uri.port_u16()? } else { uri.port_u16().unwrap_or(HTTP_PORT) };
        if !is_tunnel && uri.scheme_str() != Some("http") {
            return None;
        }
        Some(Target { host: domains::host(uri.host()?)?, port })
    }

    /// The host as it is told.
    pub fn name(&self) -> String {
        self.host.to_string()
    }

    pub fn refused(&self, why: Refusal) -> Refused {
        Refused { code: why.code(), text: why.text(&self.name()) }
    }
}

/// Connects to a target that lists or rules allow, at an address that the lists allow.
pub(super) async fn connect(target: &Target, gate: &Gate) -> Result<TcpStream, NotReached> {
    admit(target, gate).await.map_err(NotReached::Refused)?;
    let addresses = resolve(target).await?;
    let allowed = reachable(&addresses, &gate.domains);
    let allowed = allowed.map_err(|why| NotReached::Refused(target.refused(why)))?;
    let unreachable = |why: &dyn std::fmt::Display| NotReached::Unreachable(format!("cannot be reached: {why}"));
    match timeout(CONNECT_LIMIT, TcpStream::connect(&*allowed)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(unreachable(&error)),
        Err(elapsed) => Err(unreachable(&elapsed)),
    }
}

/// Decides by the name: lists come first, then the rules of the session, which may ask the user.
async fn admit(target: &Target, gate: &Gate) -> Result<(), Refused> {
    let Err(why) = gate.domains.decide(&target.host, target.port) else { return Ok(()) };
    if why != Refusal::NotAllowed {
        return Err(target.refused(why));
    }
    match gate.hosts.judge(&target.host, target.port).await {
        HostVerdict::Allowed => Ok(()),
        HostVerdict::NoRule => Err(target.refused(why)),
        HostVerdict::Refused(text) => {
            Err(Refused { code: Refusal::Denied.code(), text: format!("pith: {}: {text}", target.name()) })
        }
    }
}

/// The addresses that may be dialled. Names may lead anywhere, and elsewhere with each answer.
fn reachable(addresses: &[SocketAddr], domains: &Domains) -> Result<Vec<SocketAddr>, Refusal> {
    let is_allowed = |address: &&SocketAddr| domains.decide_address(address.ip(), address.port()).is_ok();
    let allowed: Vec<SocketAddr> = addresses.iter().filter(is_allowed).copied().collect();
    if allowed.is_empty() { Err(Refusal::Address) } else { Ok(allowed) }
}

async fn resolve(target: &Target) -> Result<Vec<SocketAddr>, NotReached> {
    let name = match &target.host {
        Host::Domain(name) => name,
        Host::Ipv4(four) => return Ok(vec![SocketAddr::new(IpAddr::V4(*four), target.port)]),
        Host::Ipv6(six) => return Ok(vec![SocketAddr::new(IpAddr::V6(*six), target.port)]),
    };
    let unresolved = |why: &dyn std::fmt::Display| NotReached::Unreachable(format!("cannot be resolved: {why}"));
    match timeout(CONNECT_LIMIT, lookup_host((name.as_str(), target.port))).await {
        Ok(Ok(addresses)) => Ok(addresses.collect()),
        Ok(Err(error)) => Err(unresolved(&error)),
        Err(elapsed) => Err(unresolved(&elapsed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_rebound_leads_to_public_addresses_only() {
        let domains = Domains::read(&["example.org".to_owned(), "10.1.1.1".to_owned()], &[]).unwrap();
        let check = |addresses: &[&str], expected: Result<&[&str], Refusal>| {
            let parse = |list: &[&str]| -> Vec<SocketAddr> { list.iter().map(|text| text.parse().unwrap()).collect() };
            assert_eq!(reachable(&parse(addresses), &domains), expected.map(parse), "{addresses:?}");
        };
        check(&["93.184.216.34:443"], Ok(&["93.184.216.34:443"]));
        check(&["127.0.0.1:443", "93.184.216.34:443"], Ok(&["93.184.216.34:443"]));
        check(&["127.0.0.1:443"], Err(Refusal::Address));
        check(&["169.254.169.254:80", "[fd00:ec2::254]:80"], Err(Refusal::Address));
        check(&["10.1.1.1:443"], Ok(&["10.1.1.1:443"]));
        check(&[], Err(Refusal::Address));
    }
}
