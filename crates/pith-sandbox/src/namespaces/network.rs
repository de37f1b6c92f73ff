//! The network of a namespace: a loopback device, and the socket that pith's proxy listens on.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};

use super::{NamespaceError, failed};

/// Where commands find the proxy, inside their namespace.
pub const PROXY_PORT: u16 = 3128;

/// The loopback device is the first one of every namespace.
const LOOPBACK: u32 = 1;

/// Listens inside the namespace. The socket stays part of it wherever it is sent.
pub(super) fn listen() -> Result<TcpListener, NamespaceError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT)).map_err(|error| failed("the proxy's port", error))
}

/// Switches the loopback device on.
pub(super) fn raise_loopback() -> Result<(), NamespaceError> {
    const RTM_NEWLINK: u16 = 16;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;
    const UP: u32 = 1;
    let why = |error: io::Error| failed("the loopback device", error);
    // A header, and a link whose flag is set; see rtnetlink(7).
    let length: u32 = 32;
    let (sequence, port): (u32, u32) = (1, 0);
    let family_and_type: u32 = 0;
    let message = [
        &length.to_ne_bytes()[..],
        &RTM_NEWLINK.to_ne_bytes(),
        &REQUEST_AND_ACKNOWLEDGE.to_ne_bytes(),
        &sequence.to_ne_bytes(),
        &port.to_ne_bytes(),
        &family_and_type.to_ne_bytes(),
        &LOOPBACK.to_ne_bytes(),
        &UP.to_ne_bytes(),
        &UP.to_ne_bytes(),
    ]
    .concat();
    let routes = socket(AddressFamily::NETLINK, SocketType::RAW, None).map_err(|error| why(error.into()))?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&routes, &message, SendFlags::empty(), &kernel).map_err(|error| why(error.into()))?;
    let mut answer = [0; 256];
    let (_, length) = recv(&routes, &mut answer, RecvFlags::empty()).map_err(|error| why(error.into()))?;
    // The answer is a header and the error's number, below zero.
    match answer[..length].get(16..).and_then(<[u8]>::first_chunk::<4>).map(|number| i32::from_ne_bytes(*number)) {
        Some(0) => Ok(()),
        Some(number) => Err(why(io::Error::from_raw_os_error(-number))),
        None => Err(why(io::ErrorKind::InvalidData.into())),
    }
}
