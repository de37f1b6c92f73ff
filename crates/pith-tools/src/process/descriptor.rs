//! Passes a descriptor over the channel: what a command reads, or the rules it is held to. Nothing else inherits it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

/// The byte that carries the descriptor; it is read with it, before the first order.
const MARK: [u8; 1] = [b'D'];

/// Sends a copy of the descriptor.
pub(super) fn send(channel: &UnixStream, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let descriptors = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("no room for a descriptor"));
    }
    rustix::net::sendmsg(channel, &[IoSlice::new(&MARK)], &mut ancillary, SendFlags::empty())?;
    Ok(())
}

/// Waits for the descriptor.
pub(super) fn receive(channel: &UnixStream) -> io::Result<OwnedFd> {
    let mut mark = MARK;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    rustix::net::recvmsg(channel, &mut [IoSliceMut::new(&mut mark)], &mut ancillary, RecvFlags::empty())?;
    let descriptors = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let descriptor = descriptors.ok_or_else(|| io::Error::other("no descriptor was sent"))?;
    rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::CLOEXEC)?;
    Ok(descriptor)
}
