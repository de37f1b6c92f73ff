//! Sockets of every kind.

use serde_json::json;

use crate::ground::{Attempt, Expected, Rights, call, make, write};

/// Families and types are those of Linux, which are the same on every processor.
const SOCKETS: &[Attempt] = &[
    call("tcp to this machine", "$TRY tcp $PORT"),
    call("tcp over ipv6", "$TRY tcp6 $PORT6"),
    call("udp, as names are asked for", "$TRY udp 53"),
    call("listening", "$TRY listen"),
    call("a socket with a name", "$TRY named $ROOT/outside/socket"),
    call("a socket with an abstract name", "$TRY abstract $ABSTRACT"),
    call("a socket of netlink", "$TRY socket 16 3 0"),
    call("mptcp", "$TRY socket 2 1 262"),
    call("sctp", "$TRY socket 2 5 132"),
    call("vsock", "$TRY socket 40 1 0"),
    call("ciphers of the kernel", "$TRY socket 38 5 0"),
    call("ping", "$TRY socket 2 2 1"),
    call("raw packets", "$TRY socket 2 3 1").by(Rights::OfRoot),
    call("packets of devices", "$TRY socket 17 3 768").by(Rights::OfRoot),
];

#[test]
fn there_is_no_network() {
    make(&write(), Expected::Closed, SOCKETS);
    make(&write(), Expected::Allowed, &[call("work: a pair of sockets", "$TRY pair")]);
}

#[test]
fn a_network_that_is_on_has_no_other_sockets() {
    let open = json!({"profile": "workspace-write", "network": {"mode": "on"}});
    let attempts = [
        call("network on: a socket with a name", "$TRY named $ROOT/outside/socket"),
        call("network on: a socket with an abstract name", "$TRY abstract $ABSTRACT"),
        call("network on: netlink beyond routes", "$TRY socket 16 3 15"),
        call("network on: vsock", "$TRY socket 40 1 0"),
        call("network on: raw packets", "$TRY socket 2 3 1").by(Rights::OfRoot),
        call("network on: packets of devices", "$TRY socket 17 3 768").by(Rights::OfRoot),
    ];
    make(&open, Expected::Closed, &attempts);
    let allowed = [
        call("network on: tcp", "$TRY tcp $PORT"),
        call("network on: udp", "$TRY udp 53"),
        call("network on: routes", "$TRY socket 16 3 0"),
    ];
    make(&open, Expected::Allowed, &allowed);
    let sockets = json!({"profile": "workspace-write", "network": {"allowAllUnixSockets": true}});
    make(&sockets, Expected::Allowed, &[call("sockets on: a socket with a name", "$TRY named $ROOT/outside/socket")]);
    make(&sockets, Expected::Closed, &[call("sockets on: tcp", "$TRY tcp $PORT")]);
}
