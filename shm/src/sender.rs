//! Who sent a packet: the process, as the kernel knows it.
//!
//! A socket's own peer credentials (`SO_PEERCRED`, `SO_PEERPIDFD`) name whoever called `listen`, which
//! need not be the process that serves. What comes with a packet names the process that sent it.

#![allow(unsafe_code, reason = "the system calls that this takes have no safe form here")]

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::socket_option::{last_errno, set};

/// Adds a pidfd of the sender to each packet; Linux 6.5. The number of most architectures.
const SO_PASSPIDFD: libc::c_int = 76;
/// The kind of control message that such a pidfd is.
const SCM_PIDFD: libc::c_int = 4;

/// Bytes for what the kernel adds to a packet. What a peer adds beside it is taken in as far as it
/// fits, and closed.
const CONTROL_BYTES: usize = 512;

/// The process that sent a packet.
#[derive(Debug, Default)]
pub struct Sender {
    /// Its process id here; `None` for one in a pid namespace that this process cannot see into.
    pub pid: Option<u32>,
    /// A descriptor of it that becomes readable when it ends; `None` from a kernel before 6.5.
    pub pidfd: Option<OwnedFd>,
}

/// A packet that was received.
#[derive(Debug)]
pub struct SentPacket {
    /// Bytes of it, also those that had no room in the buffer.
    pub length: usize,
    /// Who sent it.
    pub sender: Sender,
}

/// Storage as the kernel aligns control messages.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; CONTROL_BYTES]);

const _: () = assert!(align_of::<Control>() >= align_of::<libc::cmsghdr>());

/// While it lives, every packet that arrives at a socket says who sent it.
#[derive(Debug)]
pub struct SenderWatch<'a> {
    socket: BorrowedFd<'a>,
}

impl<'a> SenderWatch<'a> {
    /// Begins it; before the peer has reason to send the packet in question.
    ///
    /// # Errors
    /// The system's. A kernel without pidfds is none: the sender then has a process id alone.
    pub fn begin(socket: &'a impl AsFd) -> Result<Self, Errno> {
        let socket = socket.as_fd();
        let watch = SenderWatch { socket }; // from here on, leaving ends it
        set(socket, libc::SO_PASSCRED, true)?;
        match set(socket, SO_PASSPIDFD, true) {
            Ok(()) | Err(Errno::NOPROTOOPT) => Ok(watch),
            Err(errno) => Err(errno),
        }
    }

    /// Waits for the next packet. A packet without bytes is the end of the connection. Descriptors that
    /// come with it are closed.
    ///
    /// # Errors
    /// The system's; `EMSGSIZE` for a packet that brought more descriptors than there is room for.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<SentPacket, Errno> {
        let mut control = Control([MaybeUninit::uninit(); CONTROL_BYTES]);
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: all-zero bytes are a valid `msghdr`: null pointers with lengths of 0.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES;
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_TRUNC;
        let received = loop {
            // SAFETY: the socket is open while it is borrowed. `message` points to one part, which is
            // `buffer` with its length, and to `control` with its length; both live and are not
            // otherwise used until the call is over.
            let result = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, flags) };
            match usize::try_from(result) {
                Ok(length) => break length,
                Err(_) => match last_errno() {
                    Errno::INTR => {}
                    errno => return Err(errno),
                },
            }
        };
        // SAFETY: the kernel has just filled this message in, and nothing else has looked at it: the
        // descriptors in it are nobody's yet.
        let sender = unsafe { take_sender(&message) };
        match message.msg_flags & libc::MSG_CTRUNC {
            0 => Ok(SentPacket { length: received, sender }),
            _ => Err(Errno::MSGSIZE),
        }
    }
}

impl Drop for SenderWatch<'_> {
    fn drop(&mut self) {
        // A socket that cannot be told so any more is no socket, or the kernel knows no such option.
        let _ = set(self.socket, libc::SO_PASSCRED, false);
        let _ = set(self.socket, SO_PASSPIDFD, false);
    }
}

/// What the control messages say of the sender; closes the descriptors that the sender itself added.
///
/// # Safety
/// `recvmsg` has filled the message in, its control storage lives, and this is the only use of the
/// descriptors in it.
unsafe fn take_sender(message: &libc::msghdr) -> Sender {
    let mut sender = Sender::default();
    // SAFETY: the caller's message, with storage aligned for headers (`Control`).
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: `CMSG_FIRSTHDR` and `CMSG_NXTHDR` give headers inside the storage that the kernel
        // has written, or null.
        let libc::cmsghdr { cmsg_len, cmsg_level, cmsg_type } = unsafe { *header };
        // SAFETY: as above; the data lie behind the header in the same storage.
        let data = unsafe { libc::CMSG_DATA(header) };
        // SAFETY: arithmetic on a constant.
        let header_bytes = unsafe { libc::CMSG_LEN(0) } as usize;
        let bytes = cmsg_len.saturating_sub(header_bytes);
        match (cmsg_level, cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) if bytes >= size_of::<libc::ucred>() => {
                // SAFETY: so many bytes of data are there, which the kernel has written; unaligned
                // reads ask for no alignment.
                let credentials = unsafe { data.cast::<libc::ucred>().read_unaligned() };
                sender.pid = u32::try_from(credentials.pid).ok().filter(|pid| *pid != 0);
            }
            (libc::SOL_SOCKET, libc::SCM_RIGHTS | SCM_PIDFD) => {
                for index in 0..bytes / size_of::<libc::c_int>() {
                    let at = data.cast::<libc::c_int>().wrapping_add(index);
                    // SAFETY: the index is inside the data, as above.
                    let raw = unsafe { at.read_unaligned() };
                    // Where no pidfd could be made, for a process that has ended, it is an error code.
                    if raw < 0 {
                        continue;
                    }
                    // SAFETY: the kernel has just opened it for this process, and by the caller's
                    // promise nothing else has it.
                    let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
                    if cmsg_type == SCM_PIDFD {
                        sender.pidfd = Some(descriptor);
                    }
                }
            }
            _ => {}
        }
        // SAFETY: the caller's message, and a header of it.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    sender
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap()
    }

    /// Whether a descriptor becomes readable within this time.
    fn is_readable(descriptor: &OwnedFd, seconds: i64) -> bool {
        let mut fds = [PollFd::new(descriptor, PollFlags::IN)];
        let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
        poll(&mut fds, Some(&time)).unwrap() == 1
    }

    #[test]
    fn a_packet_names_the_process_that_sent_it_and_not_the_one_that_made_the_socket() {
        let (ours, theirs) = pair();
        let watch = SenderWatch::begin(&ours).unwrap();
        // What `cat` writes to the socket is a packet of its own.
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::from(theirs.try_clone().unwrap()))
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"hello").unwrap();
        let mut buffer = [0; 16];
        let SentPacket { length, sender } = watch.receive(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"hello");
        assert_eq!(sender.pid, Some(child.id()));
        if let Some(process) = &sender.pidfd {
            assert!(!is_readable(process, 0), "it lives");
            drop(input);
            assert!(is_readable(process, 60), "and has ended, while the socket is still open");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        drop(watch);
        // From now on packets say nothing.
        send(&theirs, b"more", SendFlags::empty()).unwrap();
        let mut more = [0; 4];
        std::fs::File::from(ours).read_exact(&mut more).unwrap();
        assert_eq!(&more, b"more");
    }

    #[test]
    fn a_packet_that_is_too_long_says_so_and_the_end_is_no_packet() {
        let (ours, theirs) = pair();
        let watch = SenderWatch::begin(&ours).unwrap();
        send(&theirs, &[7; 20], SendFlags::empty()).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(watch.receive(&mut buffer).unwrap().length, 20);
        assert_eq!(buffer, [7; 16]);
        drop(theirs);
        assert_eq!(watch.receive(&mut buffer).unwrap().length, 0);
    }

    #[test]
    fn descriptors_of_the_peer_are_closed_and_too_many_are_refused() {
        use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, sendmsg};
        let (ours, theirs) = pair();
        let watch = SenderWatch::begin(&ours).unwrap();
        for (count, fits) in [(1, true), (250, false)] {
            let (read, write) = rustix::pipe::pipe().unwrap();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(250))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let rights = vec![write.as_fd(); count];
            assert!(control.push(SendAncillaryMessage::ScmRights(&rights)));
            let parts = [std::io::IoSlice::new(b"x")];
            sendmsg(&theirs, &parts, &mut control, SendFlags::empty()).unwrap();
            drop(write);
            assert_eq!(watch.receive(&mut [0; 4]).is_ok(), fits, "{count}");
            // The last writing ends were in the packet: reading now sees the end.
            assert!(is_readable(&read, 60));
            assert_eq!(rustix::io::read(&read, &mut [0; 1]), Ok(0), "{count}");
        }
    }
}
