//! Messages and descriptors over a `SOCK_SEQPACKET` socket: one message, one packet.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags,
};

use crate::WireError;
use crate::control::MESSAGE_MAX;

/// Descriptors that go with one message; the kernel's own limit is 253.
pub const DESCRIPTORS_MAX: usize = 250;

/// Storage for received messages, used again for each.
#[derive(Debug)]
pub struct Inbox {
    bytes: Vec<u8>,
    length: usize,
    descriptors: Vec<OwnedFd>,
}

impl Default for Inbox {
    fn default() -> Self {
        Inbox { bytes: vec![0; MESSAGE_MAX], length: 0, descriptors: Vec::new() }
    }
}

impl Inbox {
    /// The message received last.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Takes the descriptors that came with it. Those that the caller does not take are closed with the next
    /// message.
    #[must_use]
    pub fn take_descriptors(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.descriptors)
    }
}

/// A connected pair, closed on exec.
///
/// # Errors
/// The system's.
pub fn pair() -> Result<(OwnedFd, OwnedFd), WireError> {
    Ok(rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Sends one message with its descriptors; from several threads at once too.
///
/// # Errors
/// [`WireError::Closed`] when the peer has closed the socket; [`WireError::MessageTooLong`] and
/// [`WireError::Limit`] for what no receiver takes.
pub fn send(
    socket: impl AsFd,
    message: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), WireError> {
    send_with(socket, message, descriptors, SendFlags::NOSIGNAL)
}

/// As [`send`], where there is room just now.
///
/// # Errors
/// As [`send`]; one that [`timed_out`] tells of where there is no room, and then nothing was sent.
pub fn send_now(
    socket: impl AsFd,
    message: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), WireError> {
    send_with(socket, message, descriptors, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
}

fn send_with(
    socket: impl AsFd,
    message: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> Result<(), WireError> {
    if message.len() > MESSAGE_MAX {
        return Err(WireError::MessageTooLong { bytes: message.len(), limit: MESSAGE_MAX });
    }
    let over = WireError::Limit { count: descriptors.len() as u64, limit: DESCRIPTORS_MAX as u64 };
    if descriptors.len() > DESCRIPTORS_MAX {
        return Err(over);
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(over);
    }
    let parts = [IoSlice::new(message)];
    let sent = retry_on_intr(|| rustix::net::sendmsg(socket.as_fd(), &parts, &mut control, flags));
    match sent {
        Ok(_) => Ok(()), // a packet goes as a whole or not at all
        Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Err(WireError::Closed),
        Err(errno) => Err(WireError::Socket(errno)),
    }
}

/// Waits for one message.
///
/// # Errors
/// [`WireError::Closed`] at the end of the connection; [`WireError::Truncated`] for a message
/// with more descriptors than any end of ours sends: what came of it is dropped, its
/// descriptors are closed. [`WireError::MessageTooLong`] for a longer message: its beginning is in the
/// inbox, its descriptors are closed. [`WireError::DescriptorsLost`] where this process could not take in the
/// descriptors: the message itself is in the inbox. `EAGAIN` as [`WireError::Socket`] after a time-out that was set.
pub fn receive(socket: impl AsFd, inbox: &mut Inbox) -> Result<(), WireError> {
    inbox.descriptors.clear();
    inbox.length = 0;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut next = || {
        retry_on_intr(|| {
            let mut parts = [IoSliceMut::new(&mut inbox.bytes)];
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::TRUNC; // says how long it really is
            rustix::net::recvmsg(socket.as_fd(), &mut parts, &mut control, flags)
        })
    };
    // The kernel says once that the peer left without reading all that it was sent, and says it before it
    // hands out what the peer had sent itself, which may be why it left.
    let received = match next() {
        Err(Errno::CONNRESET) => next(),
        other => other,
    };
    let received = match received {
        Ok(received) => received,
        Err(Errno::CONNRESET | Errno::NOTCONN) => return Err(WireError::Closed),
        Err(errno) => return Err(WireError::Socket(errno)),
    };
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            inbox.descriptors.extend(rights);
        }
    }
    // The room is rounded up to whole words, so that one or two more than the limit come whole.
    let too_many = inbox.descriptors.len() > DESCRIPTORS_MAX;
    if too_many || received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        let is_whole = !received.flags.contains(ReturnFlags::TRUNC);
        let is_short = inbox.descriptors.len() < DESCRIPTORS_MAX;
        inbox.descriptors.clear();
        if !is_whole && !too_many && !received.flags.contains(ReturnFlags::CTRUNC) {
            inbox.length = inbox.bytes.len();
            return Err(WireError::MessageTooLong { bytes: received.bytes, limit: MESSAGE_MAX });
        }
        if is_whole && is_short && received.bytes > 0 {
            // There was space to say more of them: the process may not open as many.
            inbox.length = received.bytes;
            return Err(WireError::DescriptorsLost);
        }
        return Err(WireError::Truncated);
    }
    if received.bytes == 0 {
        inbox.descriptors.clear();
        return Err(WireError::Closed); // we never send an empty message
    }
    inbox.length = received.bytes;
    Ok(())
}

/// How long [`receive`] waits at most; for ever with `None`.
///
/// # Errors
/// The system's.
pub fn set_receive_timeout(socket: impl AsFd, timeout: Option<Duration>) -> Result<(), WireError> {
    use rustix::net::sockopt::{Timeout, set_socket_timeout};
    Ok(set_socket_timeout(socket, Timeout::Recv, timeout)?)
}

/// How long [`send`] waits at most for room; for ever with `None`.
///
/// # Errors
/// The system's.
pub fn set_send_timeout(socket: impl AsFd, timeout: Option<Duration>) -> Result<(), WireError> {
    use rustix::net::sockopt::{Timeout, set_socket_timeout};
    Ok(set_socket_timeout(socket, Timeout::Send, timeout)?)
}

/// Whether waiting ended because of a time-out that was set.
#[must_use]
pub fn timed_out(error: &WireError) -> bool {
    matches!(error, WireError::Socket(Errno::AGAIN))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn messages_come_whole_with_their_descriptors_closed_on_exec() {
        let (ours, theirs) = pair().unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        send(&ours, b"first", &[read.as_fd(), write.as_fd()]).unwrap();
        send(&ours, b"second", &[]).unwrap();
        let mut inbox = Inbox::default();
        receive(&theirs, &mut inbox).unwrap();
        assert_eq!(inbox.message(), b"first");
        let descriptors = inbox.take_descriptors();
        assert_eq!(descriptors.len(), 2);
        for fd in &descriptors {
            let flags = rustix::io::fcntl_getfd(fd).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        }
        receive(&theirs, &mut inbox).unwrap();
        assert_eq!(inbox.message(), b"second");
        assert!(inbox.take_descriptors().is_empty());
        drop(ours);
        assert_eq!(receive(&theirs, &mut inbox), Err(WireError::Closed));
        assert_eq!(send(&theirs, b"late", &[]), Err(WireError::Closed));
    }

    #[test]
    fn the_last_words_of_a_peer_that_did_not_read_everything_are_heard() {
        let (ours, theirs) = pair().unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        send(&theirs, b"nobody reads this", &[]).unwrap();
        send(&ours, b"last but one", &[write.as_fd()]).unwrap();
        send(&ours, b"last", &[]).unwrap();
        drop((ours, write));
        let mut inbox = Inbox::default();
        receive(&theirs, &mut inbox).unwrap();
        assert_eq!(inbox.message(), b"last but one");
        rustix::io::write(inbox.take_descriptors().pop().unwrap(), b"x").unwrap();
        assert_eq!(rustix::io::read(&read, &mut [0; 1]), Ok(1));
        receive(&theirs, &mut inbox).unwrap();
        assert_eq!(inbox.message(), b"last");
        assert_eq!(receive(&theirs, &mut inbox), Err(WireError::Closed));
    }

    #[test]
    fn a_cut_off_message_is_refused_and_its_descriptors_are_closed() {
        let (ours, theirs) = pair().unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        let long = vec![7; MESSAGE_MAX + 1];
        assert!(matches!(send(&ours, &long, &[]), Err(WireError::MessageTooLong { .. })));
        // A peer that does not keep to the limit.
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [write.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        let parts = [IoSlice::new(&long)];
        rustix::net::sendmsg(&ours, &parts, &mut control, SendFlags::NOSIGNAL).unwrap();
        drop(write);
        let mut inbox = Inbox::default();
        let (bytes, limit) = (long.len(), MESSAGE_MAX);
        let too_long = Err(WireError::MessageTooLong { bytes, limit });
        assert_eq!(receive(&theirs, &mut inbox), too_long);
        assert_eq!(inbox.message(), &long[..MESSAGE_MAX], "its beginning says whose it is");
        // The pipe's last writing end was in the message: reading now sees the end.
        let mut byte = [0; 1];
        assert_eq!(rustix::io::read(&read, &mut byte), Ok(0), "fd {} leaked", read.as_raw_fd());
        send(&ours, b"next", &[]).unwrap();
        receive(&theirs, &mut inbox).unwrap();
        assert_eq!(inbox.message(), b"next");
    }

    #[test]
    fn too_many_descriptors_are_refused_before_sending() {
        let (ours, theirs) = pair().unwrap();
        let many = vec![theirs.as_fd(); DESCRIPTORS_MAX + 1];
        assert_eq!(
            send(&ours, b"x", &many),
            Err(WireError::Limit { count: 251, limit: DESCRIPTORS_MAX as u64 })
        );
        send(&ours, b"x", &many[1..]).unwrap();
        let mut inbox = Inbox::default();
        receive(&theirs, &mut inbox).unwrap();
        assert_eq!(inbox.take_descriptors().len(), DESCRIPTORS_MAX);
    }

    #[test]
    fn one_descriptor_over_the_limit_is_refused_although_there_is_room() {
        let (ours, theirs) = pair().unwrap();
        let mut inbox = Inbox::default();
        for (count, bytes) in [(251, 1), (252, 1), (253, 1), (251, 0)] {
            let many = vec![theirs.as_fd(); count];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(&many)));
            let message = vec![7; bytes];
            let parts = [IoSlice::new(&message)];
            rustix::net::sendmsg(&ours, &parts, &mut control, SendFlags::NOSIGNAL).unwrap();
            assert_eq!(receive(&theirs, &mut inbox), Err(WireError::Truncated), "{count}");
            assert!(inbox.take_descriptors().is_empty() && inbox.message().is_empty());
        }
    }

    #[test]
    fn waiting_ends_with_the_time_out_that_was_set() {
        let (_ours, theirs) = pair().unwrap();
        set_receive_timeout(&theirs, Some(Duration::from_millis(1))).unwrap();
        let error = receive(&theirs, &mut Inbox::default()).unwrap_err();
        assert!(timed_out(&error), "{error:?}");
    }
}
