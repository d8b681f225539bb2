//! Options of sockets for which there is no safe form elsewhere.

#![allow(
    unsafe_code,
    reason = "the system call that this takes has no safe form for these options"
)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// Whether a socket takes descriptors that come with messages; Linux 6.16. The number of most architectures.
const SO_PASSRIGHTS: libc::c_int = 83;

/// Bytes of an `int`, as options of sockets are told it.
const INT_BYTES: libc::socklen_t = 4;
const _: () = assert!(size_of::<libc::c_int>() == INT_BYTES as usize);

/// Says whether a socket takes descriptors that come with messages; a new one does. As long as it does not, a peer that
/// sends some is told `EPERM`, and the message does not come. A connection begins as the socket is that listens for it.
/// Gives whether the kernel can do this (Linux 6.16); an older one lets them in always.
///
/// A descriptor that came and was not asked for has to be closed, and its last owner waits for as long as the peer
/// likes: for a TCP socket that lingers, or for a file system that its own process serves.
///
/// # Errors
/// The system's, as for what is no Unix socket. A kernel that cannot do it is none.
pub fn allow_descriptors(socket: impl AsFd, allowed: bool) -> Result<bool, Errno> {
    match set(socket.as_fd(), SO_PASSRIGHTS, allowed) {
        Ok(()) => Ok(true),
        Err(Errno::NOPROTOOPT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Sets a yes-or-no option of a socket.
pub(crate) fn set(socket: BorrowedFd<'_>, option: libc::c_int, value: bool) -> Result<(), Errno> {
    let value = libc::c_int::from(value);
    // SAFETY: the socket is open while it is borrowed; the value is an `int`, with the size of one.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            INT_BYTES,
        )
    };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

pub(crate) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::mem::MaybeUninit;

    use rustix::net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
        SocketType, sendmsg, socketpair,
    };

    use super::*;

    #[test]
    fn who_sends_descriptors_to_a_socket_that_takes_none_is_told_so() {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (ours, theirs) = socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        let sent = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let rights = [ours.as_fd()];
            assert!(control.push(SendAncillaryMessage::ScmRights(&rights)));
            sendmsg(&theirs, &[IoSlice::new(b"x")], &mut control, SendFlags::empty())
        };
        let is_known = allow_descriptors(&ours, false).unwrap();
        assert_eq!(sent(), if is_known { Err(Errno::PERM) } else { Ok(1) });
        assert_eq!(allow_descriptors(&ours, true), Ok(is_known));
        assert_eq!(sent(), Ok(1));
    }

    #[test]
    fn what_is_no_socket_is_an_error() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(allow_descriptors(&file, false), Err(Errno::NOTSOCK));
    }
}
